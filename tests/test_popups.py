"""Menus and lists that pop up: in the picture, in the list of windows, and in the tree of the window they belong to."""

import io

import pytest
from PIL import Image

from stage import processes
from stage.application import Fixture, chromium, firefox

PAGE = """<!doctype html><title>Popups</title><p>Some text</p>
<select aria-label="Colour"><option>Red<option selected>Green<option>Blue</select>
<script>document.querySelector("select").onchange = e => document.title = "Popups " + e.target.value</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "popups.html"
    path.write_text(PAGE)
    return path.as_uri()


def popups(client, window):
    return [other for other in client.windows() if other["kind"] == "popup" and other.get("parent") == window["window_id"]]


def picture(client, window):
    answer = client.call("screenshot", window_id=window["window_id"])
    return Image.open(io.BytesIO(answer.images[0]))


def look_at_the_menu(client, window, entry, before):
    """What the owner's window id shows of its open menu. Looking closes nothing."""
    popup = processes.wait_until(lambda: popups(client, window), 5, "the menu opens")[-1]
    listed = next(other for other in client.windows() if other["window_id"] == window["window_id"])
    assert popup["window_id"] in listed["popups"]
    item = client.element(window, contains=f'menu item "{entry}')
    own = client.tree(popup)
    assert f'menu item "{entry}' in own.text, own.text
    after = picture(client, window)
    frame = popup["frame"]
    if frame["y"] + frame["height"] > window["frame"]["y"] + window["frame"]["height"]:
        assert after.size[1] > before.size[1], "a menu that hangs out of its window makes the picture larger"
    assert popup["window_id"] in [other["window_id"] for other in popups(client, window)], "looking closes nothing"
    return item


def open_by_key(client):
    """GTK 4 takes no key for a moment after a menu has closed, and what was pressed is then said to have done nothing."""
    processes.wait_until(lambda: client.call("press_key", key="Menu")["effect"] == "confirmed", 15, "the key opens a menu")


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
def test_f60_a_context_menu_is_read_and_used_by_its_owners_window(client, desktop, toolkit):
    title = f"Context {toolkit}"
    with Fixture(desktop, toolkit, "form", title=title, size="300,120") as fixture:
        window = client.window(title=title)
        entry = client.element(window, name="Second", role="text") if toolkit != "qt5" else client.element(window, role="text")
        client.call("type_text", window_id=window["window_id"], element_index=entry.index, text="some words")
        before = picture(client, window)
        client.call("right_click", window_id=window["window_id"], element_index=entry.index)
        for place in range(2):  # Qt makes a new menu each time, and calls it by an old name
            if place > 0:
                open_by_key(client)  # a second press of the button might be a double click
            item = look_at_the_menu(client, window, "Select All", before)
            client.call("press_key", key="Escape")
            processes.wait_until(lambda: not popups(client, window), 5, "the menu closes")
        gone = client.try_call("click", window_id=window["window_id"], element_index=item.index, snapshot_id=item.snapshot)
        assert gone.code == "element_gone", gone.structured
        open_by_key(client)
        item = look_at_the_menu(client, window, "Select All", before)
        client.call("click", window_id=window["window_id"], element_index=item.index, delivery="foreground")
        processes.wait_until(lambda: not popups(client, window), 5, "choosing closes the menu")

        def emptied():
            client.call("press_key", key="Delete")  # GTK 4 takes no key for a moment after a menu has closed
            return [event for event in fixture.events if event["event"] == "text" and event["text"] == ""]

        processes.wait_until(emptied, 5, lambda: f"all of it was selected: {fixture.events[-5:]}")


@pytest.mark.parametrize("toolkit", ["gtk3", "qt5"])
def test_f60_the_list_of_a_combo_box_is_in_the_tree_once(client, desktop, toolkit):
    title = f"Combo {toolkit}"
    with Fixture(desktop, toolkit, "widgets", title=title, size="400,400") as fixture:
        window = client.window(title=title)
        box = client.element(window, role="combo box")
        client.call("click", window_id=window["window_id"], element_index=box.index, delivery="foreground")
        processes.wait_until(lambda: popups(client, window), 5, "the list opens")
        blue = client.element(window, name="Blue")
        names = [element.name for element in client.tree(window).elements]
        assert names.count("Blue") == 1, names
        client.call("click", window_id=window["window_id"], element_index=blue.index, delivery="foreground")
        fixture.wait("select", name="Colour", row="Blue")


def choose_in_browser(client, window):
    """Opens the context menu and then the list of the page's select, each read by the browser's window id."""
    text = client.element(window, contains="Some text", timeout=30)
    before = picture(client, window)
    client.call("right_click", window_id=window["window_id"], element_index=text.index)
    processes.wait_until(lambda: popups(client, window), 5, "the context menu opens")
    client.element(window, contains='menu item "Save')
    picture(client, window)
    assert popups(client, window), "looking closes nothing"
    client.call("press_key", key="Escape")
    processes.wait_until(lambda: not popups(client, window), 5, "the context menu closes")
    assert picture(client, window).size == before.size
    colour = client.element(window, role="combo box", contains="Colour")
    client.call("click", window_id=window["window_id"], element_index=colour.index, delivery="foreground")
    processes.wait_until(lambda: popups(client, window), 5, "the list opens")
    blue = client.element(window, contains='"Blue"')
    client.call("click", window_id=window["window_id"], element_index=blue.index, delivery="foreground")
    client.window(title="Popups Blue")


def test_f60_menus_and_lists_of_chromium(client, desktop, page, tmp_path):
    process = desktop.start(chromium(tmp_path, page))
    try:
        choose_in_browser(client, client.window(title="Popups", timeout=40))
    finally:
        processes.end(process)


def test_f60_menus_and_lists_of_firefox(client, desktop, page, tmp_path):
    process = desktop.start(firefox(tmp_path, page), env={"GNOME_ACCESSIBILITY": "1"})
    try:
        choose_in_browser(client, client.window(title="Popups", timeout=60))
    finally:
        processes.end(process)
