"""Items of menus are chosen by their names, whatever the toolkit; what goes wrong leaves no menu open."""

import contextlib

import pytest

from stage import processes
from stage.application import Fixture

TOOLKITS = ["gtk3_menus", "gtk4_menus", "qt_menus"]
# GTK 4 calls its actions, the others their labels.
SAID = {
    "gtk3_menus": {"New": "_New", "Save": "Save _As…", "Wrap": "_Wrap", "notes": "notes.txt"},
    "gtk4_menus": {"New": "new", "Save": "save-as", "Wrap": "wrap", "notes": "notes"},
    "qt_menus": {"New": "&New", "Save": "Save &As…", "Wrap": "&Wrap", "notes": "notes.txt"},
}


@contextlib.contextmanager
def menus(desktop, client, toolkit):
    with Fixture(desktop, toolkit, "menus", title="Menus") as fixture:
        window = client.window(title="Menus")["window_id"]
        client.element({"window_id": window}, name="File")
        yield fixture, window
        assert popups(client) == []


def popups(client):
    return [window for window in client.windows() if window["kind"] == "popup"]


def invoke(client, window, *path, **arguments):
    return client.call("invoke_menu", window_id=window, path=list(path), **arguments)


@pytest.mark.parametrize("delivery", ["auto", "foreground"])
@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_items_are_chosen(client, desktop, toolkit, delivery):
    with menus(desktop, client, toolkit) as (fixture, window):
        said = SAID[toolkit]
        for path, name in (
            (["File", "New"], said["New"]),
            (["_File", "save as..."], said["Save"]),
            (["File", "Open Recent", "notes.txt"], said["notes"]),
        ):
            start = len(fixture.events)
            answer = invoke(client, window, *path, delivery=delivery)
            assert answer["effect"] == "unverifiable", answer.structured
            fixture.wait("click", start, name=name)
            assert len(fixture.matching("click", start)) == 1, fixture.events[start:]
        for state in ("checked", "unchecked"):
            answer = invoke(client, window, "View", "Wrap", delivery=delivery)
            assert (answer["effect"], answer["after"]) == ("confirmed", state), answer.structured
            fixture.wait("click", name=said["Wrap"], active=state == "checked")
        answer = invoke(client, window, "View", "Rename", delivery=delivery)
        assert answer["effect"] == "confirmed", answer.structured


@pytest.mark.parametrize("toolkit", ["gtk3_menus", "qt_menus"])
def test_a_menu_that_fills_when_it_opens(client, desktop, toolkit):
    with menus(desktop, client, toolkit) as (fixture, window):
        answer = client.try_call("invoke_menu", window_id=window, path=["File", "Late", "Came late"], delivery="background")
        assert answer.code == "not_supported", answer.structured
        assert invoke(client, window, "File", "Late", "Came late")["route"] == "pointer"
        fixture.wait("click", name="Came late")


@pytest.mark.parametrize("toolkit", ["gtk3_menus", "gtk4_menus"])
def test_the_menu_of_a_button(client, desktop, toolkit):
    with menus(desktop, client, toolkit) as (fixture, window):
        invoke(client, window, "More", "From the button")
        fixture.wait("click")


@pytest.mark.parametrize("delivery", ["auto", "foreground", "background"])
@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_what_cannot_be_chosen_is_told_and_no_menu_stays_open(client, desktop, toolkit, delivery):
    with menus(desktop, client, toolkit) as (fixture, window):
        start = len(fixture.events)
        shown = delivery != "background" or toolkit != "gtk4_menus"
        answer = client.try_call("invoke_menu", window_id=window, path=["Fiel"], delivery=delivery)
        assert answer.code == "element_not_found" and '"File", "View"' in answer.error_message, answer.structured
        answer = client.try_call("invoke_menu", window_id=window, path=["File", "Print"], delivery=delivery)
        assert answer.code == ("element_not_found" if shown else "not_supported"), answer.structured
        assert not shown or answer["details"]["items"][:2] == ["New", "Save As…"], answer.structured
        assert popups(client) == []
        answer = client.try_call("invoke_menu", window_id=window, path=["File", "Locked"], delivery=delivery)
        assert answer.code == "not_supported", answer.structured
        assert not shown or "disabled" in answer.error_message
        assert popups(client) == []
        for path in (["File"], ["File", "Open Recent"]):
            answer = client.try_call("invoke_menu", window_id=window, path=path, delivery=delivery)
            assert answer.is_error, answer.structured
            assert popups(client) == []
        assert not fixture.matching("click", start)


def test_in_the_background_no_focus_is_taken(client, desktop):
    with menus(desktop, client, "gtk3_menus") as (fixture, window), Fixture(desktop, "gtk3", "form", title="Front"):
        front = client.window(title="Front")["window_id"]
        client.call("press_key", key="shift", window_id=front)
        invoke(client, window, "File", "Open Recent", "notes.txt", delivery="background")
        fixture.wait("click", name="notes.txt")
        assert [each["window_id"] for each in client.windows() if each["focused"]] == [front]


def test_mousepad(client, desktop):
    process = desktop.start(["mousepad"])
    try:
        window = client.window(pid=process.pid)["window_id"]
        client.element({"window_id": window}, role="text")
        # Its status bar explains the item that is pointed at, which is no effect.
        for delivery in ("auto", "foreground"):
            answer = invoke(client, window, "View", "line numbers", delivery=delivery)
            assert answer.structured.get("after") in (None, "a check mark changed"), answer.structured
        answer = invoke(client, window, "Help", "About")
        assert answer["effect"] != "suspected_noop", answer.structured
        client.window(title="About")
    finally:
        processes.end(process)


def test_a_button_that_shows_a_picture_alone(client, desktop):
    process = desktop.start(["gnome-calculator"])
    try:
        window = client.window(pid=process.pid)
        client.element(window, role="button", contains="Primary menu")
        answer = client.try_call("invoke_menu", window_id=window["window_id"], path=["No such menu"])
        assert answer.code == "element_not_found" and "Primary menu" in answer.error_message, answer.structured
        answer = invoke(client, window["window_id"], "Primary menu", "Preferences")
        assert answer["effect"] == "confirmed", answer.structured
        client.window(title="Preferences")
        # Its name is too long for the kernel, and its entry is called by another.
        apps = client.call("list_apps")["running"]
        assert [app["desktop_id"] for app in apps if process.pid in app["pids"]] == ["org.gnome.Calculator"], apps
    finally:
        processes.end(process)
