"""What a client hears of a call besides its answer: progress while it runs, its outcome after it was cancelled, and whether its
input arrived when the display server fell silent."""

import os
import signal
import time

import anyio
from mcp import StdioServerParameters
from mcp.client.client import Client as SdkClient

from stage import processes, x11
from stage.application import Fixture
from stage.client import Client
from stage.program import deskhand


def with_sdk(desktop, conversation):
    """Runs `conversation` with a client of the official SDK on the desktop."""

    async def session():
        server = StdioServerParameters(command=deskhand(), args=["mcp"], env=desktop.env)
        async with SdkClient(server) as client:
            return await conversation(client)

    return anyio.run(session)


class Heard:
    """Progress as the SDK tells it."""

    def __init__(self):
        self.reports = []
        self.times = []

    async def __call__(self, progress, total, message):
        self.reports.append((progress, total, message))
        self.times.append(time.monotonic())

    def assert_orderly(self):
        measures = [progress for progress, _, _ in self.reports]
        assert measures == sorted(set(measures)), self.reports
        gaps = [later - earlier for earlier, later in zip(self.times, self.times[1:])]
        # Reports are half a second apart; a busy machine may hand one on late.
        assert all(gap > 0.2 for gap in gaps), gaps


def test_a_long_wait_tells_its_seconds(desktop):
    heard = Heard()

    async def conversation(client):
        arguments = {"condition": "window_opens", "title": "Never there", "timeout_ms": 2600}
        answer = await client.call_tool("wait_for", arguments, progress_callback=heard)
        count = len(heard.reports)
        assert answer.structured_content["code"] == "timeout"
        await client.call_tool("list_windows", {}, progress_callback=heard)
        await anyio.sleep(0.7)
        assert len(heard.reports) == count, "progress after the answer"

    with_sdk(desktop, conversation)
    assert 3 <= len(heard.reports) <= 5, heard.reports
    assert all(total == 2.6 and "still waiting" in message for _, total, message in heard.reports), heard.reports
    heard.assert_orderly()


def test_long_typing_tells_its_characters_and_who_waits_is_told_so(desktop):
    typing, waiting = Heard(), Heard()

    async def conversation(client):
        windows = (await client.call_tool("list_windows", {})).structured_content["windows"]
        window = next(window for window in windows if window["title"] == "Progress")

        async def press():
            await anyio.sleep(0.3)
            arguments = {"key": "F5", "window_id": window["window_id"]}
            await client.call_tool("press_key", arguments, progress_callback=waiting)

        async with anyio.create_task_group() as group:
            group.start_soon(press)
            arguments = {
                "text": "x" * 120, "delay_ms": 20, "window_id": window["window_id"], "delivery": "foreground",
            }
            await client.call_tool("type_text", arguments, progress_callback=typing)

    with Fixture(desktop, "gtk3", "pad", title="Progress"):
        with_sdk(desktop, conversation)
    assert len(typing.reports) >= 3, typing.reports
    assert all(total == 120 and message.startswith("typed ") for _, total, message in typing.reports), typing.reports
    typing.assert_orderly()
    assert waiting.reports and "waits for its turn" in waiting.reports[0][2], waiting.reports
    waiting.assert_orderly()


def test_the_outcome_of_a_cancelled_call_is_read_with_get_session(desktop):
    async def conversation(client):
        windows = (await client.call_tool("list_windows", {})).structured_content["windows"]
        window = next(window for window in windows if window["title"] == "Cancelled")
        arguments = {"text": "secret " * 100, "delay_ms": 20, "window_id": window["window_id"], "delivery": "foreground"}
        with anyio.move_on_after(1.0) as scope:
            await client.call_tool("type_text", arguments)
        assert scope.cancelled_caught, "the SDK cancels the request, and it gets no answer"
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            told = (await client.call_tool("get_session", {})).structured_content
            typed = [call for call in told["last_calls"] if call["tool"] == "type_text"]
            if typed:
                return told, typed[-1]
            await anyio.sleep(0.02)
        raise AssertionError(f"no outcome: {told}")

    with Fixture(desktop, "gtk3", "pad", title="Cancelled"):
        told, typed = with_sdk(desktop, conversation)
    assert (typed["code"], typed["delivery"], typed["total"]) == ("cancelled", "partial", 700), typed
    assert 0 < typed["done"] < 700, typed
    assert "secret" not in str(told)
    assert sorted(typed["arguments"]) == ["delay_ms", "delivery", "text", "window_id"]


def test_a_key_that_is_held_is_let_go_when_its_call_is_cancelled(client, desktop):
    with Fixture(desktop, "gtk3", "pad", title="Held"), x11.Server(desktop) as server:
        window = client.window(title="Held")
        number = client.start("press_key", key="shift", hold_ms=10000, window_id=window["window_id"])
        processes.wait_until(lambda: server.pressed_keys(), 5, "the key is down")
        client.notify("notifications/cancelled", {"requestId": number})
        cancelled = time.monotonic()
        processes.wait_until(lambda: not server.pressed_keys(), 5, "the key is up")
        assert time.monotonic() - cancelled < 0.5
        told = client.call("get_session")
        assert not client.answered(number)
        pressed = [call for call in told["last_calls"] if call["tool"] == "press_key"]
        assert pressed[-1]["delivery"] == "partial", pressed


def test_input_to_a_display_server_that_falls_silent_is_uncertain(own_desktop):
    with Fixture(own_desktop, "gtk3", "pad", title="Silent") as fixture, Client(own_desktop) as client:
        window = client.window(title="Silent")
        text = {"window_id": window["window_id"], "delivery": "foreground", "delay_ms": 20}
        client.call("type_text", text="a", **text)
        typing = client.start("type_text", text="b" * 400, **text)
        processes.wait_until(lambda: "bb" in fixture.text("Pad"), 10, "typing has begun")
        os.kill(own_desktop.server_pid, signal.SIGSTOP)
        try:
            answer = client.finish(typing, timeout=10)
            assert (answer.code, answer["details"]["delivery"]) == ("desktop_not_responding", "uncertain"), answer.message
            begun = time.monotonic()
            again = client.try_call("press_key", key="F5")
            assert again.code == "desktop_not_responding", again.message
            assert time.monotonic() - begun < 4
        finally:
            os.kill(own_desktop.server_pid, signal.SIGCONT)

        def works():
            return not client.try_call("press_key", key="F5").is_error

        processes.wait_until(works, 10, "the display server answers again")
        before = fixture.text("Pad")
        client.call("list_windows")
        assert fixture.text("Pad") == before and before.count("b") < 400, "typing went on after its answer"
        outcome = [call for call in client.call("get_session")["last_calls"] if call["tool"] == "type_text"][-1]
        assert outcome["delivery"] == "uncertain", outcome
