"""Windows as a whole: raised, placed, put away, and given back as they were."""

import pytest

from stage import processes, x11
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop


def frame_of(client, title):
    frame = client.window(title=title)["frame"]
    return frame["x"], frame["y"], frame["width"], frame["height"]


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
def test_a_window_gets_the_frame_that_was_asked_for(client, desktop, toolkit):
    """GTK 4 draws its own decorations and, where there is a compositor, shadows around them."""
    title = f"Frame {toolkit}"
    with Fixture(desktop, toolkit, "form", title=title):
        window = client.window(title=title)["window_id"]
        answer = client.call("set_window_frame", window_id=window, x=140, y=90, width=620, height=480)
        assert answer["effect"] == "confirmed", answer.structured
        assert answer["window"]["frame"] == {"x": 140, "y": 90, "width": 620, "height": 480}
        assert frame_of(client, title) == (140, 90, 620, 480)
        answer = client.call("set_window_frame", window_id=window, x=200)
        assert frame_of(client, title) == (200, 90, 620, 480), answer.structured


def test_a_terminal_that_grows_by_whole_characters_says_what_it_made_of_it(client, desktop):
    terminal = desktop.start(["xterm", "-geometry", "60x10+200+200", "-e", "exec sleep 600"])
    try:
        window = client.window(pid=terminal.pid)["window_id"]
        answer = client.call("set_window_frame", window_id=window, x=50, y=60, width=503, height=307)
        frame = answer["window"]["frame"]
        assert (frame["x"], frame["y"]) == (50, 60)
        assert (frame["width"], frame["height"]) != (503, 307)
        assert answer["effect"] == "unverifiable" and "503x307" in answer["hint"], answer.structured
    finally:
        processes.end(terminal)


def test_states_are_set_and_read_back(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="States", at="200,200", size="300,200"):
        window = client.window(title="States")["window_id"]
        before = frame_of(client, "States")
        screen = client.call("get_screen_size")["displays"][0]["frame"]
        for state in ("maximized", "fullscreen", "minimized", "normal", "fullscreen", "minimized", "normal"):
            answer = client.call("set_window_frame", window_id=window, state=state)
            assert answer["effect"] == "confirmed", answer.structured
            now = client.window(title="States")
            assert now["frame"] == answer["window"]["frame"], "it was told when it had settled"
            assert now["minimized"] == (state == "minimized"), now
            if state != "minimized":
                assert now.get("maximized", False) == (state == "maximized"), now
                assert now.get("fullscreen", False) == (state == "fullscreen"), now
            if state == "fullscreen":
                assert now["frame"] == screen
        assert frame_of(client, "States") == before
        client.call("set_window_frame", window_id=window, state="maximized")
        answer = client.call("set_window_frame", window_id=window, x=10, y=10)
        assert answer["effect"] != "confirmed" or frame_of(client, "States")[:2] == (10, 10), answer.structured


def test_bring_to_front_raises_focuses_and_shows(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Back", at="200,200"), \
            Fixture(desktop, "gtk3", "solid", title="Over it", at="220,220"):
        window = client.window(title="Back")["window_id"]
        client.window(title="Over it")
        for hide in (False, True):
            if hide:
                client.call("bring_to_front", window_id=window)
                client.call("set_window_frame", window_id=window, state="minimized")
                assert [w["minimized"] for w in client.windows()][-1], "what is minimised is listed last"
                refused = client.try_call("screenshot", window_id=window)
                assert not refused.is_error or "bring_to_front" in refused.error_message
            answer = client.call("bring_to_front", window_id=window)
            assert answer["effect"] == "confirmed", answer.structured
            now = client.window(title="Back")
            assert now["focused"] and not now["minimized"]
            assert now["z"] > client.window(title="Over it")["z"]
            client.call("bring_to_front", window_id=client.window(title="Over it")["window_id"])


@pytest.fixture
def three(client, desktop):
    """Three windows; the lowest has a field, the one on top the focus."""
    with Fixture(desktop, "gtk3", "form", title="Lowest", at="100,100", size="400,300") as lowest, \
            Fixture(desktop, "gtk3", "solid", title="Between", at="160,160", size="400,300"), \
            Fixture(desktop, "gtk3", "solid", title="Topmost", at="220,220", size="400,300") as topmost:
        for title in ("Lowest", "Between", "Topmost"):
            client.window(title=title)
        topmost.ask("raise", "raised")
        processes.wait_until(lambda: client.window(title="Topmost")["focused"], 5, "it has the focus")
        yield lowest


def arrangement(client, server):
    # Where a window stands that is put away, nobody sees.
    windows = sorted(client.windows(), key=lambda window: (not window["minimized"], window["z"]))
    return [(w["title"], w["focused"], w["minimized"], w["frame"]) for w in windows], server.pointer()[0]


@pytest.mark.parametrize("put_away", [False, True])
def test_restore_gives_focus_stacking_and_pointer_back(client, desktop, three, put_away):
    window = client.window(title="Lowest")["window_id"]
    first = client.element({"window_id": window}, role="text", name="First")
    target = {"window_id": window, "element_index": first.index, "snapshot_id": first.snapshot}
    if put_away:
        client.call("set_window_frame", window_id=window, state="minimized")
        client.call("bring_to_front", window_id=client.window(title="Topmost")["window_id"])
    with x11.Server(desktop) as server:
        server.move_pointer(17, 23)
        before = arrangement(client, server)
        for tool, arguments in (
            ("type_text", {"text": "given back", "delivery": "foreground", **target}),
            ("click", {"query": {"role": "button", "name": "Submit"}, "window_id": window, "delivery": "foreground"}),
            ("press_key", {"key": "End", "window_id": window}),
            ("drag", {"window_id": window, "from": {"query": {"name": "First"}}, "to": {"x": 30, "y": 60}}),
        ):
            answer = client.call(tool, restore=True, **arguments)
            assert answer["restored"] is True, (tool, answer.structured)
            assert arrangement(client, server) == before, tool
        assert three.text("First") == "given back"
        three.wait("click", name="Submit")


def test_restore_leaves_a_menu_open_that_it_opened(client, desktop):
    with Fixture(desktop, "gtk3", "menu", title="Menus", at="300,200"), \
            Fixture(desktop, "gtk3", "solid", title="User", at="700,200") as user:
        window = client.window(title="Menus")["window_id"]
        client.element({"window_id": window}, role="menu", name="Things")
        client.window(title="User")
        user.ask("raise", "raised")
        answer = client.call(
            "click", window_id=window, query={"role": "menu", "name": "Things"}, delivery="foreground", restore=True
        )
        assert answer["restored"] is False and "close what opened" in answer["hint"], answer.structured
        assert [w for w in client.windows() if w.get("kind") == "popup"]
        client.call("press_key", key="Escape")


def test_f58_without_a_window_manager_windows_are_raised_focused_and_placed():
    with OwnDesktop(window_manager=False) as bare, Client(bare) as client, x11.Server(bare) as server:
        with Fixture(bare, "gtk3", "form", title="Bare") as form, Fixture(bare, "gtk3", "solid", title="Cover"):
            terminal = bare.start(["xterm", "-geometry", "40x10+500+300", "-e", "exec sleep 600"])
            window = client.window(title="Bare")["window_id"]
            client.window(title="Cover")
            assert client.window(pid=terminal.pid)
            answer = client.call("bring_to_front", window_id=window)
            assert answer["effect"] == "confirmed" and "no window manager" in answer["hint"], answer.structured
            assert server.focus() == window
            assert client.window(title="Bare")["z"] > client.window(title="Cover")["z"]
            before = arrangement(client, server)
            cover = client.window(title="Cover")["window_id"]
            answer = client.call("click", window_id=cover, x=50, y=60, delivery="foreground", restore=True)
            assert answer["restored"] is True, answer.structured
            assert arrangement(client, server) == before
            client.call("press_key", key="a")
            processes.wait_until(lambda: form.text("First") == "a", 5, lambda: form.text("First"))
            for number in (window, client.window(pid=terminal.pid)["window_id"]):
                answer = client.call("set_window_frame", window_id=number, x=140, y=90, width=520, height=380)
                assert answer["window"]["frame"] == {"x": 140, "y": 90, "width": 520, "height": 380}, answer.structured
                assert "no window manager" in answer["hint"]
            answer = client.try_call("set_window_frame", window_id=window, state="maximized")
            assert answer.code == "not_supported" and "no window manager" in answer.error_message, answer.structured
            processes.end(terminal)


TK = """
import tkinter
root = tkinter.Tk()
root.title("Tk window")
root.geometry("300x200+400+300")
root.configure(background="#204080")
def pressed(event):
    print("pressed", event.x, event.y, flush=True)
root.bind("<Button-1>", pressed)
root.mainloop()
"""


def test_f59_a_tk_window_is_used_by_its_id_alone(client, desktop, tmp_path):
    with open(tmp_path / "out", "wb") as out:
        process = desktop.start(["/usr/bin/python3", "-c", TK], stdout=out)
    try:
        window = client.window(title="Tk window")
        number = window["window_id"]
        assert "_NET_WM_PID(CARDINAL)" not in desktop.run("xprop", "-id", str(number), "_NET_WM_PID")
        assert window["pid"] == process.pid
        assert client.call("screenshot", window_id=number).images
        client.call("click", window_id=number, x=100, y=120)
        processes.wait_until(lambda: (tmp_path / "out").read_text().startswith("pressed"), 5, "the press arrives")
        answer = client.call("set_window_frame", window_id=number, x=30, y=40)
        assert answer["effect"] == "confirmed", answer.structured
    finally:
        processes.end(process)


def test_f59_xeyes_is_used_by_its_id_alone(client, desktop):
    process = desktop.start(["xeyes", "-geometry", "200x150+400+300"])
    try:
        window = client.window(title="xeyes")
        number = window["window_id"]
        assert window["pid"] == process.pid
        assert client.call("screenshot", window_id=number).images
        answer = client.call("click", window_id=number, x=50, y=75)
        assert answer["window_id"] == number
        assert client.call("bring_to_front", window_id=number)["effect"] == "confirmed"
    finally:
        processes.end(process)


def test_f64_desktop_and_dock_windows_are_marked_and_not_taken_for_applications(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="The background", at="0,0", size="1280,800", kind="desktop"), \
            Fixture(desktop, "gtk3", "solid", title="The panel", at="0,770", size="1280,30", kind="dock"), \
            Fixture(desktop, "gtk3", "solid", title="The program", at="300,200", size="300,200"):
        kinds = lambda: {w["title"]: w.get("kind", "normal") for w in client.windows()}  # noqa: E731
        processes.wait_until(lambda: "The program" in kinds() and "The background" in kinds(), 5, kinds)
        assert kinds()["The background"] == "desktop"
        assert kinds()["The panel"] == "dock"
        by_title = {w["title"]: w for w in client.windows()}
        assert by_title["The background"]["z"] == min(w["z"] for w in by_title.values())
        assert all(w["app"] for w in by_title.values())
