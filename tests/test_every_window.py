"""Windows of every kind are listed, read and shown: other pid namespaces, no pids, no window manager, windows that go."""

import io
import os
import signal
import statistics
import threading

import pytest
from PIL import Image

from stage import processes
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.program import FIXTURES, SYSTEM_PYTHON

BLACK = (0, 0, 0)


def picture(answer):
    return Image.open(io.BytesIO(answer.images[0])).convert("RGB")


def test_f28_a_program_in_a_pid_namespace_of_its_own_is_read(client, desktop):
    program = ["unshare", "--pid", "--fork", SYSTEM_PYTHON, str(FIXTURES / "gtk3.py")]
    with Fixture(desktop, "gtk3", "widgets", title="Elsewhere", size="400,700", program=program) as fixture:
        window = client.window(title="Elsewhere")
        assert fixture.ready["pid"] != window["pid"], "the program calls itself by another number"
        save = client.element(window, role="button", name="Save")
        client.call("click", window_id=window["window_id"], element_index=save.index)
        fixture.wait("click", name="Save")


def registered(desktop):
    """Name and process of each application on the accessibility bus, in the registry's order."""
    script = """
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi
Atspi.init()
desktop = Atspi.get_desktop(0)
for place in range(desktop.get_child_count()):
    application = desktop.get_child_at_index(place)
    print(application.get_process_id(), application.get_name())
"""
    lines = desktop.run(SYSTEM_PYTHON, "-c", script).splitlines()
    return [(name, int(pid)) for pid, _, name in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("other", ["nothing", "frame"])
def test_f28_of_two_applications_of_one_process_the_populated_one_is_read(client, desktop, other):
    title = f"Twice, {other}"
    with Fixture(desktop, "two_applications", "widgets", title=title, size="400,700", env={"FIXTURE_OTHER": other}) as fixture:
        window = client.window(title=title)
        applications = [line for line in registered(desktop) if line[1] == fixture.pid]
        assert len(applications) == 2 and applications[0][0] == "twice", applications
        answer = client.tree(window)
        assert '"Save"' in answer.text and answer["element_count"] > 10, answer.text
        client.call("click", window_id=window["window_id"], query={"role": "button", "name": "Save"})
        fixture.wait("click", name="Save")


@pytest.mark.parametrize("other, said", [("nothing", "has not published this window (yet)"), ("frame", "without content")])
def test_f28_an_application_that_publishes_nothing_is_told_from_an_empty_window(client, desktop, other, said):
    title = f"Nothing, {other}"
    env = {"FIXTURE_OTHER": other, "NO_AT_BRIDGE": "1"}
    with Fixture(desktop, "two_applications", "widgets", title=title, size="400,700", env=env):
        answer = client.tree(client.window(title=title))
        assert answer["element_count"] <= 1 and said in answer.text, answer.text


def test_f58_without_a_window_manager_a_window_is_shown():
    with OwnDesktop(window_manager=False) as desktop, Client(desktop) as client:
        with Fixture(desktop, "gtk3", "solid", title="Bare", colour="#10a030", at="50,60", size="300,200"):
            window = client.window(title="Bare")
            answer = client.call("screenshot", window_id=window["window_id"])
            assert dict((colour, count) for count, colour in picture(answer).getcolors(1 << 24))[(16, 160, 48)] > 50_000
            information = client.call("debug_window_info", window_id=window["window_id"])
            assert 'window_system.window_manager: "none' in information.text
            assert f'pid_by_xres: "{window["pid"]}"' in information.text


def test_f61_a_window_that_goes_in_mid_capture_is_no_black_picture(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Blinking", colour="#10a030", at="300,200", size="300,200"):
        window = client.window(title="Blinking")
        over = threading.Event()

        def blink():
            while not over.is_set():
                for word in ("windowunmap", "windowmap"):
                    desktop.run("xdotool", word, str(window["window_id"]), check=False)

        thread = threading.Thread(target=blink)
        thread.start()
        try:
            seen = []
            for _ in range(40):
                answer = client.try_call("screenshot", window_id=window["window_id"])
                seen.append(answer.code)
                if answer.is_error:
                    assert answer.code in ("capture_failed", "window_gone", "unknown_window"), answer.structured
                else:
                    image = picture(answer)
                    black = dict((colour, count) for count, colour in image.getcolors(1 << 24)).get(BLACK, 0)
                    assert black < image.size[0] * image.size[1] / 2 or answer["picture"].get("stale_pixels")
        finally:
            over.set()
            thread.join()
        assert len(seen) == 40


def test_f87_fifty_windows_and_a_stopped_application_are_listed_as_fast(client, desktop):
    terminals = [desktop.start(["xterm", "-T", f"Terminal {number}"]) for number in range(50)]
    try:
        with Fixture(desktop, "gtk3", "widgets", title="Stopped", size="400,700") as fixture:
            processes.wait_until(
                lambda: sum("Terminal" in window["title"] for window in client.windows()) == 50, 30, "all are there"
            )
            client.window(title="Stopped")
            usual = statistics.median(client.timed("list_windows")[1] for _ in range(15))
            os.kill(fixture.pid, signal.SIGSTOP)
            try:
                answers = [client.timed("list_windows") for _ in range(15)]
            finally:
                os.kill(fixture.pid, signal.SIGCONT)
            titles = [window["title"] for window in answers[0][0]["windows"]]
            assert "Stopped" in titles and len([title for title in titles if "Terminal" in title]) == 50
            assert statistics.median(seconds for _, seconds in answers) < 3 * usual
    finally:
        for terminal in terminals:
            processes.end(terminal)


def test_a_query_in_a_stopped_application_says_that_it_does_not_answer(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Halted", size="400,700") as fixture:
        window = client.window(title="Halted")
        os.kill(fixture.pid, signal.SIGSTOP)
        try:
            answer = client.try_call("click", window_id=window["window_id"], query={"name": "Save"})
        finally:
            os.kill(fixture.pid, signal.SIGCONT)
        assert answer.code == "app_not_responding" and "does not answer" in answer.text, answer.text


def test_f84_a_region_magnified_and_without_loss(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Region", colour="#10a030", at="100,100", size="300,200"):
        window = client.window(title="Region")
        region = {"x": 100, "y": 100, "width": 40, "height": 30}
        answer = client.call("screenshot", window_id=window["window_id"], region=region, format="webp")
        assert answer.mimes == ["image/webp"] and answer.images[0][8:12] == b"WEBP"
        assert picture(answer).getcolors() == [(40 * 30, (16, 160, 48))]
        zoomed = client.call("zoom", window_id=window["window_id"], region=region, scale=3)
        assert picture(zoomed).size == (120, 90) and zoomed["picture"]["scale_x"] == pytest.approx(1 / 3)
        assert "base64" not in zoomed.text and len(zoomed.text) < 300, "F84: pictures are no text"


def test_since_tells_only_what_is_different(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Since", size="400,700") as fixture:
        window = client.window(title="Since")
        save = client.element(window, role="button", name="Save")
        same = client.tree(window, since=save.snapshot)
        assert same["unchanged"] and len(same.text) < 300
        fixture.ask("label Other text", "label", text="Other text")
        fixture.ask("remove Delete", "removed")
        answer = client.tree(window, since=same["snapshot_id"])
        assert '"Other text"' in answer.text and "Remember me" not in answer.text
        assert len(answer["changed"]) == 1 and len(answer["removed"]) == 1
        client.call("click", window_id=window["window_id"], element_index=save.index)
        fixture.wait("click", name="Save")


def test_f82_answers_of_actions_stay_small(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Small answers", size="400,700"):
        window = client.window(title="Small answers")["window_id"]
        client.element({"window_id": window}, role="button", name="Save")
        actions = [
            ("click", {"query": {"name": "Save"}}),
            ("click", {"query": {"name": "Remember me"}}),
            ("type_text", {"query": {"name": "Name"}, "text": "x" * 2000, "clear": True}),
            ("set_value", {"query": {"name": "Volume"}, "value": 70}),
            ("press_key", {"key": "Tab"}),
            ("move_cursor", {"x": 10, "y": 10}),
        ]
        for tool, arguments in actions:
            answer = client.call(tool, window_id=window, **arguments)
            said = len(answer.text.encode()) + len(str(answer.structured).encode())
            assert said <= 600, (tool, said, answer.text)
