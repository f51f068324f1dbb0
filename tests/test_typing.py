"""Typing arrives exactly, whatever the keyboard is like, and leaves the keyboard as it was."""

import contextlib
import time

import pytest

from stage import processes, reference, x11
from stage.application import Fixture
from stage.client import Client

EVERYTHING = "Grüße 漢字 😀 tab\there"
ASCII = "".join(chr(code) for code in range(32, 127))

LAYOUTS = ["us", "de", "fr", "us,ru", "dvorak", "cz"]


@contextlib.contextmanager
def layout(desktop, name):
    """A keyboard layout; of two groups the second is made the active one."""
    desktop.run("setxkbmap", "-layout", name)
    with x11.Server(desktop) as server:
        server.lock_group(1 if "," in name else 0)
        try:
            yield server
        finally:
            server.lock_modifiers(x11.LOCK, False)
            server.key("Shift_L", False)
            server.key("Control_L", False)
            server.lock_group(0)
            desktop.run("setxkbmap", "-layout", "us")


@pytest.fixture(scope="module")
def mousepad(desktop):
    process = desktop.start(["mousepad"])
    yield process
    processes.end(process)


@pytest.fixture(scope="module")
def pad(desktop):
    with Fixture(desktop, "gtk3", "pad", title="Pad window", at="500,300") as fixture:
        yield fixture


def type_into(client, window, text, **arguments):
    field = client.element(window, role="text")
    return client.call(
        "type_text", window_id=window["window_id"], element_index=field.index, snapshot_id=field.snapshot, text=text,
        **arguments,
    )


def type_exactly(client, pad, text, **arguments):
    """Types into the fixture, which says what it got."""
    pad.ask("clear Pad", "cleared")
    window = client.window(title="Pad window")
    answer = type_into(client, window, text, **arguments)
    assert answer["effect"] == "confirmed", answer.structured
    assert pad.text("Pad") == text
    return answer


@pytest.mark.parametrize("delivery", ["auto", "foreground"])
@pytest.mark.parametrize("keyboard", LAYOUTS)
def test_mousepad_gets_the_exact_text(client, desktop, mousepad, keyboard, delivery):
    window = client.window(pid=mousepad.pid)
    with layout(desktop, keyboard) as server:
        field = client.element(window, role="text")
        client.call("set_value", window_id=window["window_id"], element_index=field.index, value="")
        before = server.keyboard()
        answer = type_into(client, window, EVERYTHING, delivery=delivery)
        assert answer["effect"] == "confirmed", answer.structured
        assert reference.text_of(desktop, "Mousepad") == EVERYTHING
        assert server.keyboard() == before, before.difference(server.keyboard())


@pytest.mark.parametrize("keyboard", LAYOUTS)
def test_f41_all_of_ascii_in_every_layout(client, desktop, pad, keyboard):
    with layout(desktop, keyboard) as server:
        before = server.keyboard()
        type_exactly(client, pad, ASCII + "\nnext", delivery="foreground")
        assert server.keyboard() == before, before.difference(server.keyboard())


@pytest.mark.parametrize("keyboard", ["us", "de", "fr", "us,ru"])
def test_f42_caps_lock_does_not_change_the_text_and_stays_on(client, desktop, pad, keyboard):
    with layout(desktop, keyboard) as server:
        server.lock_modifiers(x11.LOCK, True)
        before = server.keyboard()
        type_exactly(client, pad, "Hello1 " + EVERYTHING, delivery="foreground")
        assert server.keyboard_state().locked_mods & x11.LOCK
        assert server.keyboard() == before, before.difference(server.keyboard())


@pytest.mark.parametrize("keyboard", ["us", "de", "fr", "us,ru"])
@pytest.mark.parametrize("held", ["Shift_L", "Control_L"])
def test_f42_a_held_modifier_does_not_change_the_text(client, desktop, pad, keyboard, held):
    with layout(desktop, keyboard) as server:
        keymap = server.keyboard().keymap
        server.key(held, True)
        type_exactly(client, pad, "Hello1 " + EVERYTHING, delivery="foreground")
        server.key(held, False)
        after = server.keyboard()
        assert after.keymap == keymap
        assert after.keys == []
        assert after.mods == 0


def test_f40_two_hundred_han_characters_then_ascii(client, desktop, pad):
    han = "".join(chr(0x4E00 + 7 * place) for place in range(200))
    with layout(desktop, "us") as server:
        before = server.keyboard()
        type_exactly(client, pad, "Привет ñ 日本 😀 É" + han, delivery="foreground")
        type_exactly(client, pad, "plain again", delivery="foreground")
        assert server.keyboard() == before, before.difference(server.keyboard())


def test_f46_two_thousand_mixed_characters_in_order(client, desktop, pad):
    text = ("Zwölf Boxkämpfer, 漢字 and 😀; Привет! " * 60)[:2000]
    type_exactly(client, pad, text, delivery="foreground")


def test_what_cannot_be_typed_is_named_and_nothing_is_typed(client, pad):
    pad.ask("clear Pad", "cleared")
    window = client.window(title="Pad window")
    field = client.element(window, role="text")
    answer = client.try_call(
        "type_text", window_id=window["window_id"], element_index=field.index, text="ab\u0000cd", delivery="foreground"
    )
    assert answer.is_error
    assert answer.code in ("untypable", "invalid_argument"), answer.structured
    assert pad.text("Pad") == ""


@pytest.mark.parametrize("keyboard", ["us", "us,ru"])
def test_f43_killed_in_mid_typing_the_keyboard_is_put_right_within_a_second(desktop, pad, keyboard):
    with layout(desktop, keyboard) as server:
        server.lock_modifiers(x11.LOCK, True)
        before = server.keyboard()
        pad.ask("clear Pad", "cleared")
        with Client(desktop) as client:
            window = client.window(title="Pad window")
            field = client.element(window, role="text")
            seen = len(pad.events)
            client.start(
                "type_text", window_id=window["window_id"], element_index=field.index, delivery="foreground",
                text="ÄÖ漢字X😀 " * 400, delay_ms=3,
            )
            processes.wait_until(lambda: len(pad.matching("text", seen)) > 12, 10, "typing has begun")
            client.kill()
            killed = time.monotonic()
        processes.wait_until(
            lambda: server.keyboard() == before, 5, lambda: before.difference(server.keyboard())
        )
        assert time.monotonic() - killed < 1.0


def test_f43_killed_while_a_chord_is_held_nothing_stays_pressed(desktop, pad):
    with layout(desktop, "us") as server:
        before = server.keyboard()
        with Client(desktop) as client:
            window = client.window(title="Pad window")
            client.element(window, role="text")
            client.start("hotkey", window_id=window["window_id"], keys=["ctrl", "shift", "F9"], hold_ms=5000)
            processes.wait_until(server.pressed_keys, 10, "the chord is held")
            client.kill()
            killed = time.monotonic()
        processes.wait_until(lambda: server.keyboard() == before, 5, lambda: before.difference(server.keyboard()))
        assert time.monotonic() - killed < 1.0


def test_f86_cancelled_typing_stops_and_releases_and_the_session_goes_on(client, desktop, pad):
    with layout(desktop, "us") as server:
        before = server.keyboard()
        pad.ask("clear Pad", "cleared")
        window = client.window(title="Pad window")
        field = client.element(window, role="text")
        seen = len(pad.events)
        number = client.start(
            "type_text", window_id=window["window_id"], element_index=field.index, delivery="foreground",
            text="abcdefghij" * 500, delay_ms=2,
        )
        processes.wait_until(lambda: len(pad.matching("text", seen)) > 12, 10, "typing has begun")
        client.notify("notifications/cancelled", {"requestId": number, "reason": "test"})
        processes.wait_until(lambda: server.keyboard() == before, 1, "the keyboard is as before")
        # What was delivered by now may still be on its way through the application.
        time.sleep(0.2)
        first = pad.text("Pad")
        assert client.call("get_cursor_position").structured
        time.sleep(0.3)
        assert pad.text("Pad") == first
        assert 0 < len(first) < 5000
        assert not client.answered(number), "a cancelled request gets no answer"


@pytest.mark.parametrize("toolkit", ["gtk3", "qt5"])
def test_f36_text_goes_into_the_field_that_was_named(client, desktop, toolkit):
    with Fixture(desktop, toolkit, "form", title=f"Form {toolkit}") as form:
        window = client.window(title=f"Form {toolkit}")
        second = client.element(window, role="text", name="Second")
        answer = client.call(
            "type_text", window_id=window["window_id"], element_index=second.index, text="Zwölf 漢"
        )
        assert answer["effect"] == "confirmed", answer.structured
        assert [form.text(name) for name in ("First", "Second", "Third")] == ["", "Zwölf 漢", ""]


def test_f36_a_stolen_focus_is_not_reported_as_success(client, desktop):
    with Fixture(desktop, "gtk3", "form", title="Thief") as form:
        window = client.window(title="Thief")
        second = client.element(window, role="text", name="Second")
        form.command("steal 300 Third")
        text = "abcdefghij" * 30
        answer = client.try_call(
            "type_text", window_id=window["window_id"], element_index=second.index, text=text, delivery="foreground",
            delay_ms=5,
        )
        form.wait("stolen")
        arrived = form.text("Second")
        if answer.is_error or answer["effect"] != "confirmed":
            assert arrived != text
        else:
            assert arrived == text


def test_clear_replaces_what_was_there(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Clear") as fixture:
        window = client.window(title="Clear")
        name = client.element(window, role="text", name="Name")
        answer = client.call(
            "type_text", window_id=window["window_id"], element_index=name.index, text="Grace Hopper", clear=True
        )
        assert answer["effect"] == "confirmed"
        assert fixture.text("Name") == "Grace Hopper"


def test_f21_a_password_is_typed_and_never_said(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Secrets") as fixture:
        window = client.window(title="Secrets")
        secret = client.element(window, role="password text")
        answer = client.call(
            "type_text", window_id=window["window_id"], element_index=secret.index, text="c4n4ry-Ü", clear=True
        )
        assert fixture.text("Secret") == "c4n4ry-Ü"
        said = answer.text + str(answer.structured) + client.tree(window).text + client.errors.decode(errors="replace")
        assert "c4n4ry" not in said
        assert "●" not in said, "bullets give the length away"


def test_keys_and_chords(client, desktop, pad):
    pad.ask("clear Pad", "cleared")
    window = client.window(title="Pad window")["window_id"]
    field = client.element({"window_id": window}, role="text")
    client.call("type_text", window_id=window, element_index=field.index, text="one", delivery="foreground")
    client.call("press_key", window_id=window, key="Return")
    client.call("press_key", window_id=window, key="a", repeat=3)
    client.call("hotkey", window_id=window, keys=["ctrl", "a"])
    client.call("hotkey", window_id=window, keys=["ctrl", "c"])
    client.call("press_key", window_id=window, key="End")
    client.call("hotkey", window_id=window, keys=["ctrl", "v"])
    processes.wait_until(lambda: pad.text("Pad") == "one\naaaone\naaa", 5, lambda: pad.text("Pad"))


@pytest.mark.parametrize("pause", [0.005, 0.02, 0.035, 0.06])
def test_f36_clear_types_nothing_into_a_window_that_is_clicked_meanwhile(client, desktop, pad, pause):
    text = "abcdefghij" * 30
    with Fixture(desktop, "gtk3", "pad", title="Other pad", at="50,50") as other:
        window = client.window(title="Pad window")
        pad.ask("clear Pad", "cleared")
        type_into(client, window, "precious")
        frame = client.window(title="Other pad")["frame"]
        with x11.Server(desktop) as server, Client(desktop) as person:
            server.move_pointer(frame["x"] + 60, frame["y"] + 60)
            number = client.start(
                "type_text", window_id=window["window_id"], query={"role": "text"}, text=text, clear=True,
                delivery="foreground",
            )
            time.sleep(pause)
            person.call("click", x=frame["x"] + 60, y=frame["y"] + 60, space="screen")
            answer = client.finish(number)
        strayed = other.text("Pad")
        # A key that is on its way when the focus changes cannot be called back; a burst can.
        arrived = pad.text("Pad")
        assert len(strayed) <= 16, f"{len(strayed)} characters went to the other window: {answer.text}"
        if answer.is_error:
            assert answer.code == "focus_lost", answer.structured
        else:
            assert arrived == text


def test_an_application_that_is_killed_while_typing_is_said_to_be_gone(client, desktop):
    with Fixture(desktop, "gtk3", "pad", title="Mortal") as mortal:
        window = client.window(title="Mortal")
        seen = len(mortal.events)
        number = client.start(
            "type_text", window_id=window["window_id"], query={"role": "text"}, text="abcdefghij" * 300, delay_ms=2,
            delivery="foreground",
        )
        processes.wait_until(lambda: len(mortal.matching("text", seen)) > 12, 10, "typing has begun")
        processes.kill(mortal.pid)
        answer = client.finish(number)
    assert answer.code in ("window_gone", "app_gone"), answer.structured
    assert 0 < answer["details"]["done"] < 3000, answer.structured


def test_clear_needs_no_element_where_the_window_tells_what_has_the_focus(client, desktop, pad):
    with Fixture(desktop, "gtk3", "pad", title="Front pad", at="50,50"):
        window = client.window(title="Pad window")
        pad.ask("clear Pad", "cleared")
        type_into(client, window, "precious")
        client.call("bring_to_front", window_id=client.window(title="Front pad")["window_id"])
        answer = client.call("type_text", window_id=window["window_id"], text="new", clear=True)
        assert answer["effect"] == "confirmed", answer.structured
        assert pad.text("Pad") == "new"


def test_a_field_is_not_emptied_for_what_cannot_be_typed(client, pad):
    window = client.window(title="Pad window")
    pad.ask("clear Pad", "cleared")
    type_into(client, window, "precious")
    answer = client.try_call(
        "type_text", window_id=window["window_id"], query={"role": "text"}, text="x\ufffey", clear=True, delivery="foreground"
    )
    assert answer.code == "untypable", answer.structured
    assert pad.text("Pad") == "precious"


def test_a_deadline_that_was_set_cuts_typing_and_dragging_short(desktop, client, pad):
    window = client.window(title="Pad window")
    client.call("set_config", call_timeout_ms=600)
    start = time.monotonic()
    answer = client.try_call(
        "type_text", window_id=window["window_id"], text="slow " * 20, delay_ms=100, delivery="foreground"
    )
    assert answer.code == "timeout", answer.structured
    assert time.monotonic() - start < 4
    details = answer["details"]
    assert details["delivery"] == "partial" and 0 < details["done"] < 100, answer.structured
    # Long lines before this test have made it wider than the screen.
    left, top = (max(window["frame"][side], 0) for side in ("x", "y"))
    start = time.monotonic()
    answer = client.try_call(
        "drag", duration_ms=8000,
        **{"from": {"x": left + 60, "y": top + 80, "space": "screen"}, "to": {"x": left + 200, "y": top + 150, "space": "screen"}},
    )
    assert answer.code == "timeout", answer.structured
    assert time.monotonic() - start < 4
    assert answer["details"]["delivery"] == "partial", answer.structured
