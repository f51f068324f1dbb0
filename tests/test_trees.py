"""Trees: the same that libatspi walks, never old, and short."""


import pytest

from stage import processes, reference
from stage.application import Fixture, chromium, firefox
from stage.client import Client

# The bar for the number of elements, either way.
TOLERANCE = 0.05

FORM = """<!doctype html><title>Form page</title><h1>Order</h1>
<form><label>Name <input id=name value="Ada Lovelace"></label>
<label>Secret <input type=password value=hunter2></label>
<label><input type=checkbox checked> Remember me</label>
<label>Volume <input type=range min=0 max=100 value=40></label>
<select aria-label="Colour"><option>Red<option selected>Green<option>Blue</select>
<button>Save</button></form>
<ul>""" + "".join(f"<li><a href='#{n}'>Link {n}</a>" for n in range(30)) + "</ul>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The form as a file."""
    path = tmp_path_factory.mktemp("pages") / "form.html"
    path.write_text(FORM)
    return path.as_uri()


def everything(client, window):
    """The whole tree, hidden elements included."""
    return client.tree(window, max_elements=5000, include_hidden=True)


def compare(client, desktop, window, title, *options):
    """Holds a tree's size against libatspi's, once both have settled."""

    def close_enough():
        theirs = reference.walk(desktop, title, *options)["count"]
        ours = everything(client, window)["element_count"]
        close_enough.seen = (ours, theirs)
        return theirs and abs(ours - theirs) <= TOLERANCE * theirs

    processes.wait_until(close_enough, 20, lambda: "ours, libatspi's: %d, %d" % close_enough.seen)


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
def test_f29_fixture_tree_is_complete_with_text_value_state_and_selection(client, desktop, toolkit):
    title = f"Complete {toolkit}"
    with Fixture(desktop, toolkit, "widgets", title=title, size="400,700"):
        window = client.window(title=title)
        compare(client, desktop, window, title)
        shown = everything(client, window)
        find = lambda role, name: next(e for e in shown.elements if e.role == role and e.name == name)  # noqa: E731
        assert 'text="Ada Lovelace"' in find("text", "Name").rest
        assert "value=40" in find("slider", "Volume").rest
        assert "checked" in find("check box", "Remember me").words
        assert "unchecked" in find("check box", "Send news").words
        assert find("button", "Save")
        selected = [element for element in shown.elements if "selected" in element.words]
        if toolkit == "qt5":
            assert [element.name for element in selected if element.name == "Banana"]
        else:
            assert selected
        assert "hunter2" not in shown.text
        assert not shown["truncated"]


@pytest.mark.parametrize("command, title", [(["mousepad"], "Mousepad"), (["galculator"], "galculator")])
def test_f29_gtk3_application(client, desktop, command, title):
    process = desktop.start(command)
    try:
        compare(client, desktop, client.window(pid=process.pid), title)
    finally:
        processes.end(process)


def test_f29_gtk4_application(client, desktop):
    process = desktop.start(["gnome-calculator"])
    try:
        window = client.window(pid=process.pid)
        compare(client, desktop, window, "gnome-calculator")
    finally:
        processes.end(process)


def test_f30_gtk4_click_inside_of_the_element(client, desktop):
    process = desktop.start(["gnome-calculator"])
    try:
        window = client.window(pid=process.pid)
        five = client.element(window, role="button", contains='"5')
        client.call(
            "click", window_id=window["window_id"], element_index=five.index, snapshot_id=five.snapshot,
            delivery="foreground",
        )
        processes.wait_until(
            lambda: any('"5"' in e.rest for e in client.tree(window).elements), 5, lambda: client.tree(window).text
        )
    finally:
        processes.end(process)


def test_f23_chromium_is_woken_and_complete(client, desktop, page, tmp_path):
    process = desktop.start(chromium(tmp_path, page))
    try:
        window = client.window(title="Form page", timeout=40)
        client.element(window, name="Link 29", timeout=20, max_elements=5000, include_hidden=True)
        compare(client, desktop, window, "Form page")
        shown = everything(client, window)
        find = lambda role, name: next(e for e in shown.elements if e.role == role and e.name == name)  # noqa: E731
        entry = next(e for e in shown.elements if e.role in ("entry", "text") and e.name == "Name")
        assert 'text="Ada Lovelace"' in entry.rest
        assert "checked" in find("check box", "Remember me").words
        assert "value=40" in find("slider", "Volume").rest
        assert "hunter2" not in shown.text
        assert any("selected" in e.words and e.name == "Green" for e in shown.elements) or any(
            "Green" in e.line for e in shown.elements if e.role == "combo box"
        )
    finally:
        processes.end(process)


def test_f29_firefox_is_complete(client, desktop, page, tmp_path):
    process = desktop.start(firefox(tmp_path, page), env={"GNOME_ACCESSIBILITY": "1"})
    try:
        window = client.window(title="Form page", timeout=60)
        client.element(window, name="Link 29", timeout=30, max_elements=5000, include_hidden=True)
        compare(client, desktop, window, "Form page")
        shown = everything(client, window)
        entry = next(e for e in shown.elements if e.role in ("entry", "text") and e.name.startswith("Name"))
        assert 'text="Ada Lovelace"' in entry.rest
        assert "checked" in next(e for e in shown.elements if e.role == "check box" and "Remember" in e.name).words
        assert "value=40" in next(e for e in shown.elements if e.role == "slider" and "Volume" in e.name).rest
        assert "hunter2" not in shown.text
    finally:
        processes.end(process)


@pytest.mark.parametrize("toolkit", ["gtk3", "qt5"])
def test_a_warm_snapshot_never_shows_the_old_label_1000_times(client, desktop, toolkit):
    title = f"Label {toolkit}"
    with Fixture(desktop, toolkit, "label", title=title) as fixture:
        window = client.window(title=title)
        client.element(window, role="label")
        for place in range(1000):
            text = f"value {place}"
            fixture.ask(f"label {text}", "label", text=text)
            shown = client.tree(window).text
            assert f'"{text}"' in shown, f"at {place}: {shown}"


def test_a_warm_snapshot_is_not_old_after_a_flood_of_changes(client, desktop):
    with Fixture(desktop, "gtk3", "label", title="Flood") as fixture:
        window = client.window(title="Flood")
        for _ in range(20):
            last = fixture.ask("count 300", "label")["text"]
            assert f'"{last}"' in client.tree(window).text


def test_elements_that_come_and_go_are_in_the_next_snapshot(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Coming", size="400,700") as fixture:
        window = client.window(title="Coming")
        client.element(window, role="button", name="Save")
        fixture.ask("remove Save", "removed")
        assert '"Save"' not in client.tree(window).text
        fixture.ask("remove Fruit", "removed")
        assert "Banana" not in client.tree(window).text
        fixture.ask("replace Delete", "replaced")
        # It is part of the window at once, and on the screen with the next frame.
        assert '"Delete"' in client.tree(window, include_hidden=True).text


def test_f33_buttons_after_a_long_list_are_shown_and_the_rest_is_said(client, desktop):
    with Fixture(desktop, "gtk3", "list", title="Long", count=5000):
        window = client.window(title="Long")
        client.element(window, name="Row 1")  # the rows are drawn after the window is there
        answer = client.tree(window, max_elements=200)
        names = [element.name for element in answer.elements]
        assert "OK" in names and "Cancel" in names
        assert "Row 1" in names
        assert answer["truncated"] is True
        assert answer["shown"] <= 200
        assert answer["element_count"] > 5000
        assert str(answer["element_count"]) in answer.text or "more" in answer.text


def test_f79_text_of_the_screen_stays_data(client, desktop):
    with Fixture(desktop, "gtk3", "hostile", title="Hostile"):
        window = client.window(title="Hostile")
        client.element(window, role="button")
        answer = client.tree(window)
        assert not [element for element in answer.elements if element.name == "Injected"]
        for character in "\u202e\u2066\x07":
            assert character not in answer.text
        assert max(len(line) for line in answer.text.splitlines()) < 1500


def test_f84_nothing_is_said_twice(client, desktop):
    with Fixture(desktop, "gtk3", "many", title="Twice", count=100):
        window = client.window(title="Twice")
        client.element(window, role="button", name="Button 99", include_hidden=True)
        before = client.received_bytes
        answer = client.tree(window, include_hidden=True)
        assert client.received_bytes - before <= 1.1 * len(answer.text.encode()) + 1500
        assert "Button 99" not in str(answer.structured)


def test_f34_a_tree_of_1500_widgets_is_whole(client, desktop):
    with Fixture(desktop, "gtk3", "many", title="Big", count=1500):
        window = client.window(title="Big")
        client.element(window, role="button", name="Button 0", timeout=30)
        compare(client, desktop, window, "Big")


def test_a_query_shows_only_what_matches(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Only", size="400,700"):
        window = client.window(title="Only")
        client.element(window, role="button", name="Save")
        answer = client.tree(window, query="check box")
        assert {e.name for e in answer.elements if e.role == "check box"} == {"Remember me", "Send news"}
        assert not [e for e in answer.elements if e.role == "button"]


def test_a_window_without_a_tree_says_so_and_shows_a_picture(client, desktop):
    process = desktop.start(["xterm"])
    try:
        window = client.window(app="xterm")
        answer = client.call("get_window_state", window_id=window["window_id"])
        assert answer.images
        assert answer["element_count"] == 0
        tree = client.call("get_accessibility_tree", window_id=window["window_id"])
        assert not tree.images
        assert "no" in tree.text.lower()
    finally:
        processes.end(process)


def test_f27_the_first_tree_of_a_new_application_is_whole(client, desktop):
    """The first reading of an application that has just opened its window."""
    for place in range(5):
        title = f"Fresh {place}"
        with Fixture(desktop, "gtk3", "widgets", title=title, size="400,700"):
            answer = client.tree(client.window(title=title))
            assert '"Save"' in answer.text, answer.text


def test_snapshots_of_two_clients_do_not_mix(desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Two clients", size="400,700") as fixture:
        with Client(desktop) as one, Client(desktop) as two:
            window = one.window(title="Two clients")
            mine = one.element(window, role="button", name="Save")
            answer = two.try_call(
                "click", window_id=window["window_id"], element_index=mine.index, snapshot_id=mine.snapshot
            )
            assert answer.is_error and answer["recovery"] in ("snapshot", "handle"), answer.structured
            assert fixture.matching("click") == []
