"""The command line, as scripts use it."""

import json
import subprocess

import pytest

from stage import processes
from stage.application import Fixture
from stage.program import deskhand


def run(desktop, *arguments, given=None):
    return subprocess.run(
        [deskhand(), *arguments], env=desktop.env, capture_output=True, text=True, timeout=30,
        **({"input": given} if given is not None else {"stdin": subprocess.DEVNULL}),
    )


def test_call_takes_arguments_as_json_or_from_input(desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Called", size="400,700"):
        processes.wait_until(lambda: "Called" in run(desktop, "call", "list_windows").stdout, 10, "the window is there")
        listed = run(desktop, "call", "list_windows", "{}")
        assert listed.returncode == 0
        moved = run(desktop, "call", "move_cursor", "-", given='{"x": 44, "y": 55}')
        assert moved.returncode == 0, moved.stderr
        where = run(desktop, "call", "get_cursor_position")
        assert "44" in where.stdout and "55" in where.stdout


def test_call_writes_a_picture(desktop, tmp_path):
    path = tmp_path / "desktop.png"
    done = run(desktop, "call", "screenshot", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["call", "no_such_tool"], "no_such_tool"),
        (["call", "click", "{not json"], "JSON"),
        (["call", "click", '{"window_id": "x"}'], "window_id"),
        (["call", "click", "[]"], "object"),
        (["no-such-command"], "no-such-command"),
        (["mcp", "--no-such-flag"], "--no-such-flag"),
        (["mcp", "--private", "huge"], "huge"),
        (["mcp", "--profile", "none"], "none"),
        (["tools", "no_such_tool"], "no_such_tool"),
        (["mcp-config", "no-such-client"], "no-such-client"),
        (["desktop", "run", "--size", "0x0", "--", "true"], "0x0"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_mistakes_are_named_and_fail(desktop, arguments, said):
    done = run(desktop, *arguments)
    assert done.returncode != 0
    assert said in done.stderr, done.stderr
    assert "panicked" not in done.stderr


def test_a_failed_call_fails_the_command_and_says_the_code(desktop):
    done = run(desktop, "call", "get_window_state", '{"window_id": 99999999}')
    assert done.returncode != 0
    assert "unknown_window" in done.stdout + done.stderr


def test_tools_lists_all_and_shows_one(desktop):
    names = run(desktop, "tools", "--profile", "full").stdout
    for name in ("click", "type_text", "double_click", "health_report"):
        assert name in names
    one = run(desktop, "tools", "click").stdout
    assert "element_index" in one and "delivery" in one


def test_doctor_finds_what_works(desktop):
    done = run(desktop, "doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    text = json.dumps(report)
    for part in ("x11", "accessib"):
        assert part in text.lower()


def test_f65_doctor_says_what_is_missing_and_how_to_mend_it(tmp_path):
    environment = processes.environment(tmp_path, processes.new_mark())
    done = subprocess.run(
        [deskhand(), "doctor"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )
    assert "DISPLAY" in done.stdout or "display" in done.stdout
    assert "panicked" not in done.stderr


@pytest.mark.parametrize("client", ["claude-code", "codex", "vscode"])
def test_mcp_config_names_this_program(desktop, client):
    done = run(desktop, "mcp-config", client)
    assert done.returncode == 0, done.stderr
    assert "deskhand" in done.stdout and "mcp" in done.stdout


def test_a_reader_that_leaves_is_no_error(desktop):
    done = subprocess.run(
        ["sh", "-c", '"$0" tools | head -n 1 >/dev/null', deskhand()], env=desktop.env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30,
    )
    assert "panicked" not in done.stderr and "Broken pipe" not in done.stderr


def test_version(desktop):
    done = run(desktop, "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("deskhand 0.")
