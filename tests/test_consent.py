"""On a joined machine nothing is seen and nothing is touched without the person's leave, by whatever route a call comes."""

import asyncio
import contextlib
import json
import os
import pty
import re
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from mcp import Client as SdkClient
from mcp import StdioServerParameters

from stage import processes
from stage.application import Fixture
from stage.client import Answer, Client
from stage.program import deskhand
from stage.service import Wire

# A revoke has worked by then; what comes on top is the way of the answer to the test.
REVOKE = 0.5
ON_TOP = 0.3

# Must turn up nowhere.
CANARY = "canary-7d02e4"


class Machine:
    """A home with records, and the environment of a process that lives in it."""

    def __init__(self, desktop, folder, own=False):
        self.home = Path(folder) / "home-of-the-records"
        self.home.mkdir(mode=0o755)
        self.records = self.home / ".acpmux"
        # A runtime folder of its own, or a service that another test left would answer, from another home. Paths of sockets
        # are short.
        self.runtime = tempfile.TemporaryDirectory(prefix="deskhand-run-")
        self.shared = {**desktop.env, "HOME": str(self.home), "XDG_RUNTIME_DIR": self.runtime.name}
        if own:
            self.records = self.home / "elsewhere"
            self.shared |= {"ACPMUX_HOME": str(self.records), "HOME": str(self.home / "nowhere")}
        self.env = {**self.shared, "DESKHAND_MCP_NO_RELAUNCH": "1"}

    def close(self):
        """Waits for the service, if there was one: the display is its own until it has ended."""
        def ended():
            done = subprocess.run([deskhand(), "status"], env=self.shared, capture_output=True, timeout=20)
            return done.returncode == 3

        processes.wait_until(ended, 10, "the service ends with its last client")
        self.runtime.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def join_record(self):
        return self.records / "machine-credential.json"

    @property
    def consent_record(self):
        return self.records / "consent.json"

    @property
    def refusal_record(self):
        return self.records / "consent-refusal.json"

    def write(self, path, text):
        """As a program should: whole."""
        self.records.mkdir(mode=0o700, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_bytes(text if isinstance(text, bytes) else text.encode())
        beside.chmod(0o600)
        beside.rename(path)

    def join(self):
        self.write(self.join_record, json.dumps({"machine_id": "m-1", "credential": CANARY, "since": 1}))

    def leave(self):
        self.join_record.unlink()

    def allow(self, screen, control):
        self.write(self.consent_record, json.dumps({"screen": screen, "control": control, "by": "a person"}))


@pytest.fixture
def machine(desktop, tmp_path):
    with Machine(desktop, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def fixture(desktop):
    with Fixture(desktop, "gtk3", "grid", title="Secret grid", at="333,217") as running:
        yield running


def clicks(fixture):
    """How many clicks reached the program."""
    return len(fixture.matching("click"))


def refused(answer, surface, tool):
    assert answer.is_error, answer.structured
    assert set(answer.structured) - {"delivery", "done", "total"} == {"code", "message", "recovery", "surface", "tool"}
    assert answer["code"] == "consent_required" and answer["recovery"] == "request", answer.structured
    assert (answer["surface"], answer["tool"]) == (surface, tool), answer.structured
    assert not answer.images
    assert "/" not in answer.text and CANARY not in answer.text and "Secret" not in answer.text, answer.text
    return answer


# Routes: each a function `call(tool, arguments)` within a context.


@contextlib.contextmanager
def in_process(machine):
    with Client(env=machine.env, command=[deskhand(), "mcp"]) as client:
        yield lambda tool, **arguments: client.try_call(tool, **arguments)


@contextlib.contextmanager
def proxy(machine):
    with Client(env=machine.shared, command=[deskhand(), "mcp"]) as client:
        yield lambda tool, **arguments: client.try_call(tool, **arguments)
        assert "--no-daemon-relaunch" in client.errors.decode(), "it was a service that answered"


@contextlib.contextmanager
def one_shot(machine):
    def call(tool, **arguments):
        done = subprocess.run(
            [deskhand(), "call", tool, json.dumps(arguments), "--json"], env=machine.shared,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )
        result = {"structuredContent": json.loads(done.stdout), "isError": done.returncode != 0}
        return Answer({"result": result | {"content": [{"type": "text", "text": done.stderr}]}})

    yield call


@contextlib.contextmanager
def wire(machine):
    """The service's socket itself, without any of our clients."""
    started = subprocess.Popen(
        [deskhand(), "serve"], env=machine.shared, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )

    def socket():
        done = subprocess.run([deskhand(), "status", "--json"], env=machine.shared, capture_output=True, timeout=20)
        return json.loads(done.stdout).get("socket")

    def call(tool, **arguments):
        answer = connection.call(tool, **arguments)
        if "error" not in answer:
            return Answer({"result": {"structuredContent": answer["ok"]["structured"]}})
        # On the wire the details stand for themselves.
        error = answer["error"] | answer["error"].pop("details", {})
        return Answer({"result": {"structuredContent": error, "isError": True}})

    try:
        with Wire(processes.wait_until(socket, 10, "the service answers")) as connection:
            yield call
    finally:
        processes.end(started)


ROUTES = {"in-process": in_process, "proxy": proxy, "call": one_shot, "wire": wire}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("own", [False, True], ids=["HOME", "ACPMUX_HOME"])
def test_every_route_passes_the_gate(desktop, tmp_path, fixture, route, own):
    with Machine(desktop, tmp_path, own) as machine, ROUTES[route](machine) as call:
        window = next(w for w in call("list_windows")["windows"] if w["title"] == "Secret grid")["window_id"]
        click = {"window_id": window, "query": {"name": "R1C1"}}

        def clicked():
            before = len(fixture.events)
            answer = call("click", **click)
            if not answer.is_error:
                fixture.wait("click", start=before)
            return answer

        assert not clicked().is_error
        assert not machine.records.exists()

        machine.join()
        count = clicks(fixture)
        refused(call("list_windows"), "screen", "list_windows")
        assert json.loads(machine.refusal_record.read_text())["tool"] == "list_windows"
        refused(call("click", **click), "control", "click")
        refused(call("set_config", max_elements=10), "control", "set_config")
        record = json.loads(machine.refusal_record.read_text())
        assert (record["version"], record["surface"], record["tool"]) == (1, "control", "set_config")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["refused_at"])
        assert stat.S_IMODE(machine.refusal_record.stat().st_mode) == 0o600
        assert sorted(path.name for path in machine.records.iterdir()) == ["consent-refusal.json", "machine-credential.json"]
        assert not call("health_report").is_error

        machine.allow(screen=True, control=False)
        assert not call("get_accessibility_tree", window_id=window).is_error
        assert not call("screenshot", window_id=window).is_error
        refused(call("click", **click), "control", "click")
        # An alias needs what its target needs.
        refused(call("type_text_chars", text="x"), "control", "type_text_chars")

        # Acting without seeing is not on offer.
        machine.allow(screen=False, control=True)
        refused(call("click", **click), "screen", "click")
        assert clicks(fixture) == count

        machine.allow(screen=True, control=True)
        assert not clicked().is_error
        count = clicks(fixture)
        assert count > 0

        machine.allow(screen=True, control=False)
        refused(call("click", **click), "control", "click")
        machine.write(machine.consent_record, '{"screen": true, "control": true')
        refused(call("screenshot", window_id=window), "screen", "screenshot")
        refused(call("click", **click), "control", "click")
        assert clicks(fixture) == count

        machine.leave()
        assert not clicked().is_error


@pytest.mark.parametrize("mode", ["in-process", "proxy"])
def test_a_running_server_of_the_official_client_is_bound(machine, fixture, mode):
    """Not joined, joined, screen only, both, revoked, malformed: between calls of one server."""
    env = machine.env if mode == "in-process" else machine.shared

    async def session():
        server = StdioServerParameters(command=deskhand(), args=["mcp", "--profile", "full"], env=env)
        async with SdkClient(server) as client:
            count = clicks(fixture)
            listed = await client.call_tool("list_windows", {})
            window = next(w for w in listed.structured_content["windows"] if w["title"] == "Secret grid")["window_id"]
            tools = {
                "screen": ("screenshot", {"window_id": window}),
                "control": ("click", {"window_id": window, "query": {"name": "R2C2"}}),
            }

            async def runs(expected):
                nonlocal count
                for surface, (tool, arguments) in tools.items():
                    result = await client.call_tool(tool, arguments)
                    if surface in expected:
                        assert not result.is_error, result
                        count += tool == "click"
                    else:
                        content = dict(result.structured_content)
                        del content["message"]
                        assert result.is_error and content == {
                            "code": "consent_required", "surface": surface, "tool": tool, "recovery": "request",
                        }
                        assert [block.type for block in result.content] == ["text"]
                processes.wait_until(lambda: clicks(fixture) >= count, 5, "the clicks arrive")
                assert clicks(fixture) == count

            await runs({"screen", "control"})
            assert not machine.records.exists()
            machine.join()
            await runs(set())
            machine.allow(screen=True, control=False)
            await runs({"screen"})
            machine.allow(screen=True, control=True)
            await runs({"screen", "control"})
            machine.allow(screen=True, control=False)
            await runs({"screen"})
            machine.allow(screen=False, control=False)
            await runs(set())
            machine.write(machine.consent_record, '{"screen": true, "control": "true"}')
            await runs(set())
            machine.consent_record.unlink()
            await runs(set())
            machine.leave()
            await runs({"screen", "control"})

    asyncio.run(asyncio.wait_for(session(), 120))


# Revokes in the middle


@pytest.fixture(scope="module")
def pad(desktop):
    with Fixture(desktop, "gtk3", "pad", title="Secret pad", at="500,300") as running:
        yield running


@pytest.mark.parametrize("surface, mode", [("control", "in-process"), ("screen", "in-process"), ("control", "proxy")])
def test_a_revoke_stops_typing_and_what_waits_behind_it(machine, pad, fixture, surface, mode):
    env = machine.env if mode == "in-process" else machine.shared
    machine.join()
    machine.allow(screen=True, control=True)
    pad.ask("clear Pad", "cleared")
    with Client(env=env, command=[deskhand(), "mcp"]) as client:
        window = client.window(title="Secret pad")
        grid = client.window(title="Secret grid")
        button = client.element(grid, role="button", name="R1C1")
        field = client.element(window, role="text")
        count = clicks(fixture)
        typing = client.start(
            "type_text", window_id=window["window_id"], element_index=field.index, snapshot_id=field.snapshot,
            text="x" * 5000, delivery="foreground", delay_ms=5,
        )
        waiting = client.start(
            "click", window_id=grid["window_id"], element_index=button.index, snapshot_id=button.snapshot,
        )
        processes.wait_until(lambda: len(pad.text("Pad")) > 50, 20, "it is being typed")
        machine.allow(screen=surface == "control", control=surface == "screen")
        revoked = time.monotonic()
        answer = refused(client.finish(typing), surface, "type_text")
        assert client.arrived(typing) - revoked < REVOKE + ON_TOP
        refused(client.finish(waiting), surface, "click")
        assert client.arrived(waiting) - revoked < REVOKE + ON_TOP
        assert (answer["delivery"], answer["total"]) == ("partial", 5000)
        processes.wait_until(lambda: len(pad.text("Pad")) == answer["done"], 5, "what was typed is what was told")
        assert 50 < answer["done"] < 5000
        assert clicks(fixture) == count


def test_a_revoke_ends_a_tool_that_waits(machine, fixture):
    machine.join()
    machine.allow(screen=True, control=False)
    with Client(env=machine.env, command=[deskhand(), "mcp"]) as client:
        assert client.window(title="Secret grid")
        waiting = client.start("wait_for", condition="window_opens", title="never", timeout_ms=60_000)
        looking = client.start("get_screen_size")
        client.finish(looking)
        machine.allow(screen=False, control=False)
        revoked = time.monotonic()
        refused(client.finish(waiting), "screen", "wait_for")
        assert client.arrived(waiting) - revoked < REVOKE + ON_TOP


# Records that count for nothing


def link(path):
    real = path.with_suffix(".real")
    path.rename(real)
    path.symlink_to(real)


def replaced(make):
    def spoil(path):
        path.unlink()
        make(path)

    return spoil


SPOILED = {
    "a link": link,
    "a dangling link": replaced(lambda path: path.symlink_to("nowhere")),
    "a directory": replaced(lambda path: path.mkdir()),
    "a FIFO": replaced(lambda path: os.mkfifo(path, 0o600)),
    "empty": lambda path: path.write_text(""),
    "cut short": lambda path: path.write_text(path.read_text()[:-1]),
    "trailing data": lambda path: path.write_text(path.read_text() + "{}"),
    "64 KiB and a byte": lambda path: path.write_text(path.read_text().ljust(64 * 1024 + 1)),
    "a name twice": lambda path: path.write_text('{"a": 1, "a": 1, ' + path.read_text()[1:]),
    "a list": lambda path: path.write_text(f"[{path.read_text()}]"),
    "not UTF-8": lambda path: path.write_bytes(b'{"x": "\xff", ' + path.read_bytes()[1:]),
    "writable by the group": lambda path: path.chmod(0o620),
    "writable by others": lambda path: path.chmod(0o602),
}

WRONG = {
    "consent_record": {
        "partial": '{"screen": true}',
        "wrong case": '{"Screen": true, "Control": true}',
        "texts": '{"screen": "true", "control": "true"}',
        "numbers": '{"screen": 1, "control": 1}',
        "null": '{"screen": true, "control": null}',
        "twice": '{"screen": true, "control": false, "control": true}',
    },
    "join_record": {
        "partial": json.dumps({"credential": CANARY}),
        "wrong case": json.dumps({"Machine_id": "m", "Credential": CANARY}),
        "numbers": json.dumps({"machine_id": 1, "credential": CANARY}),
        "an empty text": json.dumps({"machine_id": "", "credential": CANARY}),
        "null": '{"machine_id": "m", "credential": null}',
        "twice": f'{{"machine_id": "m", "credential": "{CANARY}", "credential": "{CANARY}"}}',
    },
}


def sound(machine):
    shutil.rmtree(machine.records, ignore_errors=True)
    machine.join()
    machine.allow(screen=True, control=True)


def nothing_is_granted(client, case):
    begun = time.monotonic()
    for tool, surface, arguments in (("list_windows", "screen", {}), ("press_key", "control", {"key": "F13"})):
        try:
            refused(client.try_call(tool, **arguments), surface, tool)
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from error
    assert time.monotonic() - begun < 2, f"{case} took its time"


@pytest.mark.parametrize("record", WRONG)
def test_a_malformed_record_grants_nothing(machine, fixture, record):
    with Client(env=machine.env, command=[deskhand(), "mcp"]) as client:
        path = getattr(machine, record)
        for case, spoil in SPOILED.items():
            sound(machine)
            spoil(path)
            nothing_is_granted(client, f"{record}: {case}")
        for case, text in WRONG[record].items():
            sound(machine)
            machine.write(path, text)
            nothing_is_granted(client, f"{record}: {case}")
        sound(machine)
        assert not client.try_call("list_windows").is_error


def test_a_home_that_leads_nowhere_or_is_unknown_grants_nothing(desktop, machine, tmp_path):
    with Client(env=machine.env, command=[deskhand(), "mcp"]) as client:
        assert not client.try_call("list_windows").is_error
        machine.records.symlink_to(tmp_path / "gone")
        nothing_is_granted(client, "a dangling ~/.acpmux")
        machine.records.unlink()
        machine.records.write_text("")
        nothing_is_granted(client, "~/.acpmux is a file")
        machine.records.unlink()
        assert not client.try_call("list_windows").is_error
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "gone")
    for case, variables in {
        "a dangling $ACPMUX_HOME": {"ACPMUX_HOME": str(dangling)},
        "a relative $ACPMUX_HOME": {"ACPMUX_HOME": "here"},
        "an empty $ACPMUX_HOME": {"ACPMUX_HOME": ""},
        "a relative HOME": {"HOME": "here"},
    }.items():
        with Client(env={**machine.env, **variables}, command=[deskhand(), "mcp"]) as client:
            nothing_is_granted(client, case)
            assert not client.try_call("get_config").is_error


# Somebody that no password database knows.
NOBODY = 54_321


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_other_users_and_the_password_database(tmp_path):
    folder = Path(tempfile.mkdtemp(prefix="deskhand-consent-"))
    try:
        folder.chmod(0o755)
        program = shutil.copy(deskhand(), folder / "deskhand")
        records = folder / "records"
        records.mkdir()

        def asked(user, **variables):
            done = subprocess.run(
                [program, "consent", "status", "--json"], env=variables, user=user, group=user, extra_groups=[], cwd="/",
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=True,
            )
            return json.loads(done.stdout)

        def put(join, consent):
            for name, owner, mode, text in (
                ("machine-credential.json", *join, {"machine_id": "m", "credential": CANARY}),
                ("consent.json", *consent, {"screen": True, "control": True}),
            ):
                path = records / name
                path.write_text(json.dumps(text))
                path.chmod(mode)
                os.chown(path, owner, owner)

        nothing = {"joined": True, "screen": False, "control": False}
        everything = {"joined": True, "screen": True, "control": True}

        def grant(user, **variables):
            answer = asked(user, **variables)
            assert str(folder) not in json.dumps(answer)
            return {name: answer[name] for name in nothing}

        where = {"ACPMUX_HOME": str(records)}
        put((NOBODY, 0o600), (NOBODY, 0o600))
        assert grant(NOBODY, **where) == everything
        # Another owner, be it root.
        assert grant(0, **where) == nothing
        for join, consent in (((0, 0o644), (NOBODY, 0o600)), ((NOBODY, 0o600), (0, 0o644))):
            put(join, consent)
            assert grant(NOBODY, **where) == nothing
        # Their own, and not to be read.
        for join, consent in (((NOBODY, 0o200), (NOBODY, 0o600)), ((NOBODY, 0o600), (NOBODY, 0o200))):
            put(join, consent)
            assert grant(NOBODY, **where) == nothing
        # A folder that cannot be looked into may hold anything.
        records.chmod(0o700)
        assert grant(NOBODY, **where) == nothing
        # Neither a variable nor an entry.
        assert grant(NOBODY) == nothing
        assert "not known" in asked(NOBODY)["trouble"]
    finally:
        shutil.rmtree(folder)


# What is left alone, and what leaks


def test_a_machine_that_is_not_joined_pays_one_failed_look(machine, tmp_path):
    trace = tmp_path / "trace"
    with Client(
        env=machine.env,
        command=["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=file", deskhand(), "mcp"],
    ) as client:
        start = time.monotonic()
        client.call("get_screen_size")
        client.call("list_windows")
        calls, seconds = 2, time.monotonic() - start
    looks, others = [], []
    for line in trace.read_text().splitlines():
        if ".acpmux" in line:
            (looks if re.search(r"(statx|lstat|newfstatat)\(.*= -1 ENOENT", line) else others).append(line)
    records = [line for line in looks if "machine-credential.json" in line]
    assert others == []
    assert all("NOFOLLOW" in line or "lstat(" in line for line in looks), looks
    # Before it queues, when its turn has come, and before the answer is handed out; and while it runs, five times a second.
    assert calls <= len(records) <= 3 * calls + int(seconds / 0.2), records
    assert not machine.records.exists()
    assert [path.name for path in machine.home.iterdir() if path.name.startswith(".acp")] == []


def test_the_credential_turns_up_nowhere(machine, fixture, tmp_path):
    machine.join()
    environment = {**machine.env, "DESKHAND_LOG": "trace"}
    told = []
    with Client(env=environment, command=[deskhand(), "mcp", "--profile", "full"]) as client:
        refused(client.try_call("screenshot"), "screen", "screenshot")
        machine.allow(screen=True, control=True)
        window = client.window(title="Secret grid")["window_id"]
        launched = client.call("launch_app", app="xterm", args=["-e", "sleep", "60"])
        started = processes.wait_until(
            lambda: [pid for pid in processes.descendants(launched["pid"]) if "sleep" in processes.command(pid)], 10, "it runs",
        )
        family = [client.pid, *processes.descendants(client.pid), launched["pid"], *started]
        for pid in family:
            assert CANARY not in json.dumps(processes.environment_of(pid)) + processes.command(pid)
        for tool, arguments in (
            ("get_config", {}), ("health_report", {}), ("check_permissions", {}), ("get_session", {}), ("list_sessions", {}),
            ("debug_window_info", {"window_id": window}),
        ):
            told.append(client.try_call(tool, **arguments).message)
        for broken in ("{", json.dumps({"machine_id": 1, "credential": CANARY}), json.dumps({"credential": [CANARY]})):
            machine.write(machine.join_record, broken)
            told.append(refused(client.try_call("screenshot"), "screen", "screenshot").message)
            told.append(refused(client.try_call("kill_app", pid=launched["pid"]), "control", "kill_app").message)
        machine.join()
        client.call("kill_app", pid=launched["pid"], force=True)
    for command in (["doctor"], ["consent", "status"], ["consent", "grant", "all"], ["consent", "revoke"]):
        done = subprocess.run(
            [deskhand(), *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=30, start_new_session=True,
        )
        told.append(done.stdout + done.stderr)
    told += [client.errors.decode(), machine.refusal_record.read_text(), machine.consent_record.read_text()]
    assert "refused for want of consent" in client.errors.decode()
    assert CANARY not in json.dumps(told)


def test_what_needs_no_leave_tells_nothing_of_the_screen(machine, fixture):
    machine.join()
    machine.allow(screen=True, control=True)
    with Client(env=machine.env, command=[deskhand(), "mcp", "--profile", "full"]) as client:
        grid = client.window(title="Secret grid")
        client.tree(grid)
        client.try_call("click", window_id=grid["window_id"], query={"name": "no such button"})
        machine.allow(screen=False, control=False)
        for tool in ("get_config", "health_report", "check_permissions", "get_session", "list_sessions"):
            answer = client.try_call(tool)
            assert not answer.is_error, answer.structured
            assert "Secret" not in json.dumps(answer.message) and "R1C1" not in json.dumps(answer.message), tool
            assert not answer.images
        checks = {check["name"]: check for check in client.call("health_report")["checks"]}
        assert checks["consent"]["status"] == "missing" and "consent grant" in checks["consent"]["fix"]
        assert not client.call("check_permissions")["ready"]


# What a tool must be given beside the window and the element.
NEEDED = {
    "wait_for": {"condition": "element_vanishes", "name": "R1"},
    "drag": {"from": {"x": 5, "y": 5}, "to": {"x": 9, "y": 9}},
    "scroll": {"direction": "down"},
    "type_text": {"text": "x"},
    "type_text_chars": {"text": "x"},
    "press_key": {"key": "F5"},
    "hotkey": {"keys": ["ctrl", "x"]},
    "set_value": {"value": "x"},
    "select_text": {"text": "R1"},
    "perform_secondary_action": {"action": "x"},
    "invoke_menu": {"path": ["File"]},
    "move_cursor": {"x": 5, "y": 5},
    "set_window_frame": {"x": 5},
    "zoom": {"region": {"x": 0, "y": 0, "width": 9, "height": 9}},
    "launch_app": {"app": "x"},
    "kill_app": {"app": "x"},
    "get_app_state": {"app": "x"},
    "clipboard_write": {"text": "x"},
    "start_recording": {"output_dir": "/nowhere"},
    "replay_trajectory": {"dir": "/nowhere"},
    "set_agent_cursor_enabled": {"enabled": False},
    "set_config": {"max_elements": 10},
}


@pytest.mark.parametrize("mode", ["in-process", "proxy"])
def test_what_was_seen_before_a_revoke_is_told_by_no_tool_after_it(machine, fixture, mode):
    env = machine.env if mode == "in-process" else machine.shared
    machine.join()
    machine.allow(screen=True, control=True)
    with Client(env=env, command=[deskhand(), "mcp", "--profile", "full"]) as client:
        window = client.window(title="Secret grid")
        seen = client.tree(window, capture_mode="som")
        snapshot, index = seen["snapshot_id"], seen.elements[0].index
        assert "R1C1" in seen.text and seen.images
        listed = client.request("tools/list", {})["result"]["tools"]
        machine.allow(screen=False, control=False)
        refusals = 0
        for tool in sorted(listed, key=lambda tool: tool["name"] == "end_session"):
            name, properties = tool["name"], tool["inputSchema"].get("properties", {})
            old = {"window_id": window["window_id"], "element_index": index, "snapshot_id": snapshot, "since": snapshot}
            arguments = {key: value for key, value in old.items() if key in properties} | NEEDED.get(name, {})
            answer = client.try_call(name, **arguments)
            told = json.dumps(answer.message)
            assert "Secret" not in told and "R1C1" not in told and not answer.images, (name, told)
            assert answer.code in (None, "consent_required"), (name, answer.structured)
            refusals += answer.is_error
        assert refusals > 35, refusals


# The person at the machine


def at_a_terminal(machine, *arguments, answer, meanwhile=lambda: None):
    """Runs a command on a terminal of its own, and answers its question there; `meanwhile` happens before the answer."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(deskhand(), [deskhand(), *arguments], machine.env)
    shown = b""
    try:
        with contextlib.suppress(OSError):  # the terminal goes with its last program
            while data := os.read(terminal, 4096):
                shown += data
                if shown.endswith(b"[y/N] "):
                    meanwhile()
                    os.write(terminal, answer.encode() + b"\n")
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def command(machine, *arguments):
    """Without a terminal."""
    done = subprocess.run(
        [deskhand(), "consent", *arguments], env=machine.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=10, start_new_session=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_person_grants_at_a_terminal_and_revokes_anywhere(machine):
    code, text = at_a_terminal(machine, "consent", "grant", "all", answer="y")
    assert code == 1 and "not joined" in text
    code, text = command(machine, "revoke")
    assert code == 0 and "not joined" in text and "as before" in text and "may now" not in text
    assert not machine.records.exists()
    machine.join()
    code, text = command(machine, "grant", "all")
    assert code == 1 and "terminal" in text
    assert not machine.consent_record.exists()
    for answer in ("n", "", "no", "yes please"):
        code, text = at_a_terminal(machine, "consent", "grant", "all", answer=answer)
        assert code == 1 and "nothing was changed" in text
        assert not machine.consent_record.exists()
    code, text = at_a_terminal(machine, "consent", "grant", "screen", answer="y")
    assert code == 0 and "see its screen, not act on it" in text
    assert json.loads(machine.consent_record.read_text()) == {"screen": True, "control": False}
    assert stat.S_IMODE(machine.consent_record.stat().st_mode) == 0o600
    machine.allow(screen=True, control=False)
    assert at_a_terminal(machine, "consent", "grant", "control", answer="YES")[0] == 0
    assert json.loads(machine.consent_record.read_text()) == {"screen": True, "control": True, "by": "a person"}
    code, text = command(machine, "revoke", "control")
    assert code == 0 and "see its screen, not act on it" in text
    state = json.loads(command(machine, "status", "--json")[1])
    assert state == {"joined": True, "screen": True, "control": False, "trouble": None}
    code, text = command(machine, "revoke")
    assert code == 0 and "neither see nor act" in text
    assert json.loads(machine.consent_record.read_text()) == {"screen": False, "control": False, "by": "a person"}


def test_an_answer_counts_for_what_was_asked(machine):
    """What is changed while the question is open is neither undone nor built upon."""
    machine.join()
    for before, meanwhile in (((True, False), (False, False)), ((False, False), (True, False))):
        machine.allow(*before)
        code, text = at_a_terminal(
            machine, "consent", "grant", "control", answer="y", meanwhile=lambda: machine.allow(*meanwhile)
        )
        assert code == 1 and "while the question was open" in text and "nothing was changed" in text, text
        record = json.loads(machine.consent_record.read_text())
        assert (record["screen"], record["control"]) == meanwhile
    machine.allow(screen=True, control=False)
    code, text = at_a_terminal(machine, "consent", "grant", "all", answer="y", meanwhile=machine.leave)
    assert code == 1 and "not joined" in text
    assert json.loads(machine.consent_record.read_text())["control"] is False
    # What concerns neither surface is kept.
    machine.join()
    other = '{"screen": true, "control": %s, "by": "somebody else"}'
    code, text = at_a_terminal(
        machine, "consent", "grant", "all", answer="y",
        meanwhile=lambda: machine.write(machine.consent_record, other % "false"),
    )
    assert code == 0 and machine.consent_record.read_text() == other % "true"


def test_what_else_stands_in_the_record_is_kept_byte_by_byte(machine):
    machine.join()
    record = '{ "large":1e400,"exact" : 12345678901234567890123,\n\t"screen":%s, "nested": [{"n": -0.10}], "control": %s }\n'
    machine.write(machine.consent_record, record % ("false", "false"))
    assert at_a_terminal(machine, "consent", "grant", "all", answer="y")[0] == 0
    assert machine.consent_record.read_text() == record % ("true", "true")
    assert json.loads(command(machine, "status", "--json")[1])["control"] is True
    assert command(machine, "revoke", "control")[0] == 0
    assert machine.consent_record.read_text() == record % ("true", "false")


def test_status_says_what_the_service_goes_by(desktop, tmp_path):
    """A service has the records of who started it; a command may have others."""
    with Machine(desktop, tmp_path) as machine:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()

        def status(*more, **variables):
            done = subprocess.run(
                [deskhand(), "status", *more], env={**machine.shared, **variables}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=20, check=True,
            )
            return done.stdout

        with Client(env=machine.shared, command=[deskhand(), "mcp"]):
            machine.join()
            machine.allow(screen=True, control=False)
            expected = {"joined": True, "screen": True, "control": False, "trouble": None}
            for variables in ({}, {"ACPMUX_HOME": str(elsewhere)}, {"HOME": str(elsewhere)}):
                assert json.loads(status("--json", **variables))["consent"] == expected
                text = status(**variables)
                assert "see its screen, not act on it" in text
                assert ("not joined" in text and "other records" in text) == bool(variables), text
            machine.write(machine.consent_record, "{")
            answer = json.loads(status("--json", ACPMUX_HOME=str(elsewhere)))["consent"]
            assert (answer["screen"], answer["control"]) == (False, False) and "consent record" in answer["trouble"]
            assert str(machine.home) not in status(ACPMUX_HOME=str(elsewhere))


def test_doctor_says_what_is_allowed(machine):
    def line():
        done = subprocess.run(
            [deskhand(), "doctor"], env=machine.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        )
        return done.returncode, next(line for line in done.stdout.splitlines() if " consent " in line)

    assert "not joined" in line()[1]
    machine.join()
    code, text = line()
    assert code == 1 and text.startswith("missing") and "nothing was granted yet" in text
    machine.allow(screen=True, control=False)
    code, text = line()
    assert code == 0 and text.startswith("degraded") and "acting is not" in text
    machine.allow(screen=True, control=True)
    assert line()[1].startswith("ok")
    machine.consent_record.chmod(0o622)
    assert "others can write to it" in line()[1]
