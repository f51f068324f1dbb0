"""Waiting is driven by events and holds up nobody; what is frozen is bounded."""

import os
import signal
import statistics
import time

import pytest

from stage import processes
from stage.application import Fixture
from stage.client import Client


def appears(window, name, **more):
    return {"condition": "element_appears", "window_id": window["window_id"], "name": name, **more}


def vanishes(window, name, **more):
    return {"condition": "element_vanishes", "window_id": window["window_id"], "name": name, **more}


def test_a_wait_for_does_not_delay_another_call(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Patience", size="400,700") as fixture:
        window = client.window(title="Patience")
        news = client.element(window, role="check box", name="Send news")
        waiting = client.start("wait_for", **appears(window, "Never there", timeout_ms=8000))
        for _ in range(10):
            client.call("click", window_id=window["window_id"], element_index=news.index, snapshot_id=news.snapshot)
        assert not client.answered(waiting), "ten clicks took longer than the wait of eight seconds"
        assert len(fixture.matching("toggle", name="Send news")) == 10
        answer = client.finish(waiting)
        assert answer.code == "timeout", answer.message


def test_wait_for_an_element_to_appear_and_to_vanish(client, desktop):
    with Fixture(desktop, "gtk3", "list", title="Appearing", count=2) as fixture:
        window = client.window(title="Appearing")
        client.element(window, contains='"Row 2"')
        waiting = client.start("wait_for", **appears(window, "New 3"))
        fixture.ask("rows 3", "rows")
        assert not client.finish(waiting).is_error
        waiting = client.start("wait_for", **vanishes(window, "New 3"))
        fixture.ask("rows 1", "rows")
        assert not client.finish(waiting).is_error


def test_wait_for_a_label_to_change(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Changing", size="400,700") as fixture:
        window = client.window(title="Changing")
        client.element(window, role="label", name="Old text")
        waiting = client.start("wait_for", **appears(window, "New text", role="label"))
        fixture.ask("label New text", "label")
        said = time.monotonic()
        assert not client.finish(waiting).is_error
        assert client.arrived(waiting) - said < 1.0


def test_wait_for_a_window_to_open_and_to_close(client, desktop):
    waiting = client.start("wait_for", condition="window_opens", title="Opening soon", timeout_ms=20000)
    with Fixture(desktop, "gtk3", "label", title="Opening soon") as fixture:
        assert not client.finish(waiting).is_error
        window = client.window(title="Opening soon")
        waiting = client.start("wait_for", condition="window_closes", window_id=window["window_id"])
        fixture.command("close")
        assert not client.finish(waiting).is_error


def test_f86_a_cancelled_wait_gets_no_answer_and_the_session_goes_on(client, desktop):
    with Fixture(desktop, "gtk3", "label", title="Cancelling"):
        window = client.window(title="Cancelling")
        waiting = client.start("wait_for", **appears(window, "Never there", timeout_ms=20000))
        client.notify("notifications/cancelled", {"requestId": waiting})
        assert client.windows()
        assert not client.answered(waiting)


def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    processes.wait_until(lambda: processes.state(pid) == "T", 5, "the application is stopped")


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
@pytest.mark.parametrize("warm", [False, True])
def test_f25_the_tree_of_a_stopped_application_is_partial_in_bounded_time(client, desktop, toolkit, warm):
    title = f"Stopped {toolkit} {warm}"
    with Fixture(desktop, toolkit, "widgets", title=title, size="400,700") as fixture:
        window = client.window(title=title)
        if warm:
            client.element(window, role="button", name="Save")
        stopped(fixture.pid)
        try:
            answer, seconds = client.timed("get_window_state", window_id=window["window_id"], capture_mode="ax")
            assert seconds < 11
            said = (answer.text + str(answer.structured)).lower()
            assert "not answer" in said or "not respond" in said or "not_responding" in said, answer.text
        finally:
            os.kill(fixture.pid, signal.SIGCONT)
        client.element(window, role="button", name="Save")


def test_f25_clicks_elsewhere_are_not_delayed_by_a_stopped_application(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Going on", size="400,700") as running, \
            Fixture(desktop, "gtk3", "widgets", title="Standing still", at="600,100", size="400,700") as still:
        window = client.window(title="Going on")
        frozen = client.window(title="Standing still")
        news = client.element(window, role="check box", name="Send news")
        client.element(frozen, role="button", name="Save")

        def clicks():
            times = []
            for _ in range(15):
                start = time.monotonic()
                client.call("click", window_id=window["window_id"], element_index=news.index, snapshot_id=news.snapshot)
                times.append(time.monotonic() - start)
            return statistics.median(times), max(times)

        usual, usual_worst = clicks()
        stopped(still.pid)
        try:
            reading = client.start("get_window_state", window_id=frozen["window_id"], capture_mode="ax")
            median, worst = clicks()
            client.finish(reading)
        finally:
            os.kill(still.pid, signal.SIGCONT)
        # The bar: less than 50 ms more. One read keeps its turn for 250 ms at most, which only the first
        # click can meet.
        assert median - usual < 0.05, (usual, median)
        assert worst - usual_worst < 0.35, (usual_worst, worst)
        assert len(running.matching("toggle", name="Send news")) == 30


def test_f25_clicking_in_a_stopped_application_says_that_it_does_not_answer(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="No answer", size="400,700") as fixture:
        window = client.window(title="No answer")
        save = client.element(window, role="button", name="Save")
        stopped(fixture.pid)
        try:
            answer = client.try_call(
                "click", window_id=window["window_id"], element_index=save.index, snapshot_id=save.snapshot,
                delivery="background",
            )
            assert answer.code in ("app_not_responding", "timeout"), answer.structured
        finally:
            os.kill(fixture.pid, signal.SIGCONT)


def test_f25_an_application_killed_in_mid_call_is_gone(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Killed", size="400,700") as fixture:
        window = client.window(title="Killed")
        save = client.element(window, role="button", name="Save")
        stopped(fixture.pid)
        clicking = client.start(
            "click", window_id=window["window_id"], element_index=save.index, snapshot_id=save.snapshot,
            delivery="background",
        )
        os.kill(fixture.pid, signal.SIGKILL)
        assert client.finish(clicking).is_error
        assert client.windows() is not None


def test_f87_listing_windows_asks_no_application(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Listed", size="400,700") as fixture:
        client.window(title="Listed")
        _, usual = client.timed("list_windows")
        stopped(fixture.pid)
        try:
            answer, seconds = client.timed("list_windows")
            assert any(window["title"] == "Listed" for window in answer["windows"])
            assert seconds - usual < 0.05
        finally:
            os.kill(fixture.pid, signal.SIGCONT)


def test_many_clients_and_calls_lose_no_answer(desktop):
    """Eight clients with fifty mixed calls each, all at once."""
    with Fixture(desktop, "gtk3", "widgets", title="Crowd", size="400,700"):
        clients = [Client(desktop) for _ in range(8)]
        try:
            window = clients[0].window(title="Crowd")["window_id"]
            numbers = []
            for client in clients:
                burst = b""
                for place in range(50):
                    tool, arguments = (
                        ("list_windows", {}),
                        ("get_window_state", {"window_id": window, "capture_mode": "ax"}),
                        ("get_cursor_position", {}),
                        ("move_cursor", {"x": place, "y": place}),
                        ("get_screen_size", {}),
                    )[place % 5]
                    number, line = client.tool_line(tool, **arguments)
                    numbers.append((client, number))
                    burst += line
                client.send_bytes(burst)
            for client, number in numbers:
                answer = client.finish(number, timeout=60)
                assert not answer.is_error, answer.structured
        finally:
            for client in clients:
                client.close()
