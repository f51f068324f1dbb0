"""What an action is said to have done is its own doing: not a clock's, and not the late effect of the one before."""

import os
import re
import signal
import time

import pytest

from stage import processes, reference
from stage.application import Fixture, chromium

PAGE = """<!doctype html><title>Attribution</title>
<button onclick="setTimeout(() => document.querySelector('#shown').textContent = 'came ' + Date.now(), 250)">Late</button>
<button>Dead</button>
<p id=shown>nothing</p><p id=clock>clock</p>
<label>Day <input type=date aria-label=Day></label>
<textarea aria-label=Lines></textarea><select aria-label=Which><option>one<option>two</select>
<button onclick="setInterval(() => document.querySelector('#clock').textContent = Date.now(), 100)">Start</button>
<div style="height: 3000px"></div>
<button onclick="document.title = 'Attribution, far below'">Far below</button>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(PAGE)
    return path.as_uri()


@pytest.fixture
def browser(client, desktop, page, tmp_path):
    process = desktop.start(chromium(tmp_path / "profile", page))
    try:
        window = client.window(title="Attribution", timeout=40)
        client.element(window, role="button", name="Dead", timeout=20)
        yield window
    finally:
        processes.end(process)


@pytest.fixture(scope="module")
def calculator(desktop):
    process = desktop.start(["galculator"])
    yield process
    processes.end(process)


def display(desktop):
    return reference.text_of(desktop, "galculator")


def test_an_animation_does_not_hide_the_effect_of_the_next_click(client, desktop):
    """GTK 3 announces the place of a check box in each frame of the animation that follows a click on it."""
    with Fixture(desktop, "gtk3", "widgets", title="Animated") as fixture:
        window = client.window(pid=fixture.pid)
        state = client.call("get_window_state", window_id=window["window_id"], capture_mode="ax", frames=True)
        line = next(element.line for element in state.elements if element.name == "Send news")
        x, y, width, height = (int(number) for number in re.search(r"@(-?\d+),(-?\d+) (\d+)x(\d+)", line).groups())
        point = {"x": x + width // 2, "y": y + height // 2, "space": "screen"}
        for wanted in ("is checked", "is not checked", "is checked"):
            answer = client.call("click", window_id=window["window_id"], **point)
            assert answer["effect"] == "confirmed" and answer["after"].endswith(wanted), answer.structured
            # Long enough for the whole animation, which is what is then known of the check box.
            time.sleep(0.5)


@pytest.mark.parametrize(("keys", "shown"), [("777", "777"), ("100*5=", "500"), ("11+11=", "22")])
@pytest.mark.parametrize("delivery", ["auto", "background"])
def test_quick_clicks_on_keys_that_spring_back_are_all_entered(client, desktop, calculator, keys, shown, delivery):
    window = client.window(pid=calculator.pid)["window_id"]
    click = {"window_id": window, "delivery": delivery}
    client.call("click", query={"name": "C", "exact": True}, **click)
    for key in keys:
        answer = client.call("click", query={"name": key, "exact": True}, **click)
        assert answer["effect"] == "confirmed", answer.structured
    processes.wait_until(lambda: display(desktop) == shown, 2, lambda: display(desktop))


def test_a_late_effect_is_not_that_of_the_next_action(client, browser):
    number = browser["window_id"]
    for _ in range(3):
        client.call("click", window_id=number, query={"name": "Late"})
        assert client.call("click", window_id=number, query={"name": "Dead"})["effect"] == "unverifiable"
        assert client.call("press_key", window_id=number, key="F20")["effect"] == "unverifiable"
        time.sleep(1.5)


def test_a_clock_on_the_page_is_no_evidence(client, browser):
    number = browser["window_id"]
    client.call("click", window_id=number, query={"name": "Start"})
    for _ in range(5):
        assert client.call("click", window_id=number, query={"name": "Dead"})["effect"] == "unverifiable"
        assert client.call("press_key", window_id=number, key="F20")["effect"] == "unverifiable"


def test_what_was_typed_into_a_part_of_a_date_is_not_denied(client, browser):
    number = browser["window_id"]
    answer = client.call("type_text", window_id=number, query={"name": "Month Day"}, text="11")
    assert answer["effect"] != "suspected_noop", answer.structured
    client.element(browser, role="spin button", name="Month Day", contains="value=11")


def test_a_focus_that_moves_on_while_typing_is_named(client, browser):
    answer = client.call(
        "type_text", window_id=browser["window_id"], query={"name": "Lines"}, text="one\n\ttwo", delivery="foreground"
    )
    assert answer["effect"] == "unverifiable"
    assert 'moved on to combo box "Which"' in answer["hint"], answer.structured


def test_what_is_scrolled_away_is_brought_into_view_and_clicked(client, browser):
    answer = client.call(
        "click", window_id=browser["window_id"], query={"name": "Far below"}, delivery="foreground"
    )
    assert answer["effect"] == "confirmed", answer.structured
    assert client.window(title="Attribution, far below")


def test_an_open_menu_is_left_as_the_error_says(client, desktop):
    with Fixture(desktop, "gtk3", "pad", title="With menu") as pad, Fixture(
        desktop, "gtk3", "widgets", title="Without menu", at="500,300"
    ):
        menu, other = client.window(title="With menu"), client.window(title="Without menu")
        client.call("click", window_id=menu["window_id"], query={"role": "text"}, button="right")
        popup = processes.wait_until(
            lambda: [window for window in client.windows() if window["kind"] == "popup"], 5, "the menu is open"
        )
        answer = client.try_call(
            "click", window_id=other["window_id"], query={"name": "Name", "exact": True}, delivery="foreground"
        )
        assert answer.code == "occluded", answer.structured
        assert client.window(title="With menu")["focused"], "the click that was refused raised nothing"
        client.call("press_key", window_id=menu["window_id"], key="Escape")
        gone = lambda: not [window for window in client.windows() if window["window_id"] == popup[0]["window_id"]]  # noqa: E731
        processes.wait_until(gone, 5, "the menu is closed")
        assert pad.text("Pad") == ""


def test_a_key_for_a_stopped_application_is_said_to_wait(client, desktop):
    with Fixture(desktop, "gtk3", "pad", title="Stopped") as pad:
        window = client.window(title="Stopped")["window_id"]
        client.call("press_key", window_id=window, key="a")
        os.kill(pad.pid, signal.SIGSTOP)
        try:
            answer = client.call("press_key", window_id=window, key="b")
        finally:
            os.kill(pad.pid, signal.SIGCONT)
        assert answer["effect"] == "unverifiable"
        assert "does not answer" in answer["hint"], answer.structured
