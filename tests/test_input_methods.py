"""F52: an input method is active, which keeps letters back and makes other text of them."""

import json
import subprocess

import pytest

from stage import processes
from stage.application import Fixture
from stage.client import Client
from stage.desktop import PrivateDesktop
from stage.program import FIXTURES, SYSTEM_PYTHON

TEXT = "hello World 1, Grüße 漢字 😀 end "
USES_IT = {"GTK_IM_MODULE": "ibus", "QT_IM_MODULE": "ibus", "XMODIFIERS": "@im=ibus"}


@pytest.fixture(scope="module")
def composing():
    """A desktop with IBus and a small engine on it that is switched on."""
    with PrivateDesktop() as desktop:
        desktop.start([
            "ibus-daemon", "--panel=disable", "--emoji-extension=disable", "--config=/usr/libexec/ibus-memconf", "--xim",
        ])
        processes.wait_until(lambda: "unix" in desktop.run("ibus", "address", check=False), 10, "IBus runs")
        engine = desktop.start([SYSTEM_PYTHON, str(FIXTURES / "ime.py")], stdout=subprocess.PIPE)
        assert json.loads(engine.stdout.readline())["on"]
        yield desktop


def engine(desktop):
    return desktop.run("ibus", "engine", check=False).strip()


def field(fixture, client):
    window = client.window(title=fixture.title)
    return {"window_id": window["window_id"], "query": {"role": "text", "name": "Name"}}


@pytest.mark.parametrize("delivery", ["auto", "foreground"])
@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
def test_f52_text_arrives_exactly_and_the_engine_stays(composing, toolkit, delivery):
    with Fixture(composing, toolkit, "widgets", title=f"{toolkit} {delivery}", env=USES_IT) as fixture, Client(composing) as client:
        for text in (TEXT, "漢字" * 20, "ascii again "):
            answer = client.call("type_text", **field(fixture, client), text=text, clear=True, delivery=delivery)
            assert fixture.text("Name") == text, answer.structured
            assert answer["effect"] == "confirmed"
            assert engine(composing) == "composing"


def test_f52_keys_are_for_the_input_method(composing):
    """What a person would press does what it would do for them."""
    with Fixture(composing, "gtk3", "widgets", title="Keys", env=USES_IT) as fixture, Client(composing) as client:
        where = field(fixture, client)
        client.call("type_text", **where, text="plain ", clear=True, delivery="foreground")
        for key in ("a", "b", "space"):
            client.call("press_key", key=key, window_id=where["window_id"])
        processes.wait_until(lambda: fixture.text("Name") == "plain 字", 5, lambda: fixture.text("Name"))


def test_f52_a_terminal_gets_the_text_through_the_protocol_of_x(composing, tmp_path):
    said = tmp_path / "said"
    process = composing.start(["xterm", "-e", "sh", "-c", f"read line; echo \"$line\" > {said}; exec cat"], env=USES_IT)
    with Client(composing) as client:
        window = client.window(app="xterm")
        client.call("type_text", window_id=window["window_id"], text="hello there World\n")
        processes.wait_until(lambda: said.exists() and said.read_text(), 5, "the line was read")
        assert said.read_text() == "hello there World\n"
        assert engine(composing) == "composing"
    processes.end(process)


def test_f52_killed_in_mid_typing_the_engine_is_put_back(composing):
    with Fixture(composing, "gtk3", "widgets", title="Killed", env=USES_IT) as fixture, Client(composing) as client:
        start = len(fixture.events)
        client.start("type_text", **field(fixture, client), text="x" * 400, delay_ms=50, delivery="foreground")
        fixture.wait("text", start=start)
        assert engine(composing) != "composing"
        client.kill()
        processes.wait_until(lambda: engine(composing) == "composing", 3, lambda: engine(composing))
