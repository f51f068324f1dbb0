"""Whatever a client sends, it gets a clear error, and the server goes on."""

import json

import pytest

from stage.application import Fixture
from stage.client import Answer, Client


def still_serves(client):
    assert client.request("ping")["result"] == {}
    assert client.call("get_config").structured


# Tool, arguments, a word that the message has to contain: the field.
BAD_ARGUMENTS = [
    ("click", {"window_id": "twelve", "element_index": 1}, "window_id"),
    ("click", {"window_id": 1.5, "element_index": 1}, "window_id"),
    ("click", {"window_id": -1, "element_index": 1}, "window_id"),
    ("click", {"window_id": None, "element_index": 1}, "window_id"),
    ("click", {"window_id": [1], "element_index": 1}, "window_id"),
    ("click", {"window_id": 1, "element_index": "one"}, "element_index"),
    ("click", {"window_id": 1, "element_index": -3}, "element_index"),
    ("click", {"window_id": 1, "element_index": 10**30}, "element_index"),
    ("click", {"window_id": 1, "element_index": 1, "buton": "left"}, "buton"),
    ("click", {"window_id": 1, "element_index": 1, "button": "wheel"}, "button"),
    ("click", {"window_id": 1, "element_index": 1, "count": 0}, "count"),
    ("click", {"window_id": 1, "element_index": 1, "count": 1000000}, "count"),
    ("click", {"x": "left", "y": 1}, "x"),
    ("click", {"x": 1}, "y"),
    ("click", {"x": 1, "y": 1, "space": "moon"}, "space"),
    ("click", {"x": 1e300, "y": 1}, "x"),
    ("click", {"window_id": 1, "element_index": 1, "delivery": "by mail"}, "delivery"),
    ("click", {"window_id": 1, "element_index": 1, "modifiers": "ctrl"}, "modifiers"),
    ("click", {"window_id": 1, "element_index": 1, "modifiers": ["hyperspace"]}, "modifiers"),
    ("move_cursor", {}, "x"),
    ("move_cursor", {"x": {}, "y": 1}, "x"),
    ("type_text", {}, "text"),
    ("type_text", {"text": 5}, "text"),
    ("type_text", {"text": "a", "delay_ms": -1}, "delay_ms"),
    ("press_key", {}, "key"),
    ("press_key", {"key": ""}, "key"),
    ("press_key", {"key": "NoSuchKey"}, "NoSuchKey"),
    ("hotkey", {"keys": []}, "keys"),
    ("hotkey", {"keys": "ctrl+a+nonsense"}, "keys"),
    ("set_value", {"window_id": 1, "element_index": 1}, "value"),
    ("screenshot", {"max_image_dimension": -5}, "max_image_dimension"),
    ("screenshot", {"max_image_dimension": 0}, "max_image_dimension"),
    ("screenshot", {"display": 7}, "display"),
    ("screenshot", {"out_file": 5}, "out_file"),
    ("screenshot", {"format": "bmp"}, "format"),
    ("get_window_state", {"max_elements": 0}, "max_elements"),
    ("get_window_state", {"window_id": 1, "max_elements": "many"}, "max_elements"),
    ("get_window_state", {"window_id": 1, "capture_mode": "radar"}, "capture_mode"),
    ("launch_app", {}, "app"),
    ("launch_app", {"app": "xterm", "args": "-e"}, "args"),
    ("launch_app", {"app": "xterm", "env": ["A=B"]}, "env"),
    ("kill_app", {"pid": -7}, "pid"),
    ("set_config", {"max_elements": -1}, "max_elements"),
    ("set_config", {"no_such_setting": 1}, "no_such_setting"),
    ("wait_for", {"condition": "idle", "window_id": 1, "timeout_ms": "soon"}, "timeout_ms"),
    ("wait_for", {"condition": "the end of the world"}, "condition"),
    ("wait_for", {"condition": "element_appears", "name": "x"}, "window_id"),
]


@pytest.mark.parametrize("tool, arguments, field", BAD_ARGUMENTS, ids=lambda value: json.dumps(value)[:60])
def test_a_bad_argument_is_named(client, tool, arguments, field):
    answer = client.try_call(tool, **arguments)
    assert answer.is_error, answer.message
    assert field in answer.error_message, answer.error_message
    if not answer.protocol_error:
        assert answer["recovery"] == "request"
        assert answer.code in ("invalid_argument", "untypable"), answer.structured
        assert answer.text.strip() == answer["message"].strip(), "the text is the message"
    still_serves(client)


def test_windows_that_do_not_exist(client):
    for tool, more in (("get_window_state", {}), ("screenshot", {}), ("click", {"x": 1, "y": 1, "space": "window"})):
        answer = client.try_call(tool, window_id=4_000_000, **more)
        assert answer.code == "unknown_window", (tool, answer.structured)


def test_points_off_the_desktop(client):
    answer = client.try_call("move_cursor", x=100000, y=5)
    assert answer.code == "invalid_argument", answer.structured
    answer = client.try_call("click", x=-5, y=-5)
    assert answer.code == "invalid_argument", answer.structured


def test_an_unknown_tool_is_named(client):
    answer = client.try_call("make_coffee")
    assert answer.is_error
    assert "make_coffee" in answer.error_message
    still_serves(client)


@pytest.mark.parametrize("arguments", ["text", 5, ["list"], None, True])
def test_arguments_that_are_no_object(client, arguments):
    number = client.send("tools/call", {"name": "get_config", "arguments": arguments})
    answer = Answer(client.wait(number))
    # Absent and null are the same to clients.
    assert answer.is_error == (arguments is not None), answer.message
    still_serves(client)


def test_keys_that_begin_with_an_underscore_are_dropped(client):
    assert not client.try_call("get_config", _session_id="somebody else", _meta={"x": 1}).is_error


@pytest.mark.parametrize("raw", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"nan", b"0x10", b"01"])
def test_numbers_that_json_does_not_have(client, raw):
    client.send_bytes(
        b'{"jsonrpc":"2.0","id":"odd","method":"tools/call","params":{"name":"move_cursor","arguments":{"x":'
        + raw + b',"y":1}}}\n'
    )
    # The id can be read off such a line, so that its sender is told.
    answer = Answer(client.wait("odd", timeout=10))
    assert answer.is_error
    still_serves(client)


@pytest.mark.parametrize(
    "text", [rb"\ud83d", rb"\ude00x", rb"\ud83d\ud83d", rb"\udc00"], ids=["high", "low", "two high", "low alone"]
)
def test_lone_surrogates(client, text):
    client.send_bytes(
        b'{"jsonrpc":"2.0","id":"lone","method":"tools/call","params":{"name":"type_text","arguments":{"text":"'
        + text + b'"}}}\n'
    )
    still_serves(client)


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\xfd", b"{", b"}", b"[]", b"null", b"5", b'"text"', b"{}", b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"n1","method":5}', b'{"jsonrpc":"2.0","id":"n2","method":"no/such"}',
        b'{"jsonrpc":"2.0","id":"n3","method":"tools/call"}', b'{"jsonrpc":"2.0","id":"n4","method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":"n5","result":{}}', b'{"jsonrpc":"2.0","id":"n6","error":{}}', b"\0\0\0", b"   ", b"\t",
        b'{"jsonrpc":"2.0","id":"n7","method":"tools/call","params":{"name":"type_text","arguments":{"text":"\xc3("}}}',
        b"[" * 100000, b'{"a":' * 50000,
    ],
    ids=lambda line: repr(line[:40]),
)
def test_lines_that_are_no_request(client, line):
    client.send_bytes(line + b"\n")
    still_serves(client)


def test_a_line_in_two_halves(client):
    number, line = client.tool_line("get_config")
    client.send_bytes(line[:30])
    client.send_bytes(line[30:])
    assert not client.finish(number).is_error
    # CRLF line ends are common on one platform.
    number, line = client.tool_line("get_config")
    client.send_bytes(line.rstrip(b"\n") + b"\r\n")
    assert not client.finish(number).is_error


def test_half_a_line_at_the_end_of_input(desktop):
    with Client(desktop) as client:
        client.send_bytes(b'{"jsonrpc":"2.0","id":9,"met')
        client.close_input()
        assert client.wait_exit(2) == 0


def test_a_line_of_100_mebibytes(client):
    start = b'{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"type_text","arguments":{"text":"'
    client.send_bytes(start)
    for _ in range(100):
        client.send_bytes(b"x" * (1 << 20))
    client.send_bytes(b'"}}}\n')
    still_serves(client)
    peak = next(
        int(line.split()[1]) for line in open(f"/proc/{client.pid}/status") if line.startswith("VmHWM")
    )
    assert peak < 300_000, f"{peak} kB for one line that nobody asked for"


def test_a_huge_text_is_refused_and_its_limit_named(client):
    answer = client.try_call("type_text", text="x" * 5_000_000)
    assert answer.is_error
    assert "text" in answer.error_message
    still_serves(client)


def test_ten_thousand_requests_without_reading_an_answer(desktop):
    """The client sends all of them before it reads; every one is answered, and the server's memory stays bounded."""
    with Fixture(desktop, "gtk3", "label", title="Flooded"), Client(desktop) as other, Client(desktop) as client:
        client.call("list_windows")
        burst, numbers = [], []
        for _ in range(10_000):
            number, line = client.tool_line("list_windows")
            numbers.append(number)
            burst.append(line)
        client.send_bytes(b"".join(burst))
        assert other.windows(), "others are served meanwhile"
        outcomes = [client.finish(number, timeout=120) for number in numbers]
        refused = [answer.code for answer in outcomes if answer.is_error]
        assert set(refused) <= {"limit_exceeded"}, set(refused)
        assert len(outcomes) - len(refused) > 0
        assert client.windows()


def test_two_requests_with_one_id(client):
    line = b'{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"list_windows","arguments":{}}}\n'
    client.send_bytes(line + line)
    still_serves(client)


def test_calls_before_initialize(desktop):
    with Client(desktop, initialize=False) as client:
        number = client.send("tools/list")
        message = client.wait(number, timeout=5)
        assert "error" in message or "result" in message
        client.initialize()
        assert client.request("tools/list")["result"]["tools"]


def test_cancelling_what_does_not_run(client):
    client.notify("notifications/cancelled", {"requestId": 987654})
    client.notify("notifications/cancelled", {})
    client.notify("notifications/no_such_thing", {"a": 1})
    still_serves(client)
