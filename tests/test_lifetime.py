"""Processes end when they should, with nothing left, and live on when they should."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from stage import processes
from stage.application import Fixture
from stage.client import Client
from stage.program import SYSTEM_PYTHON, deskhand

# The bar for the end of everything after its owner ended.
END = 2.0


def gone_within(mark, seconds=END):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not processes.marked(mark):
            return
        time.sleep(0.02)
    left = processes.kill_marked(mark)
    assert not left, f"still there after {seconds} s: {left}"


def displays():
    return set(os.listdir("/tmp/.X11-unix")) if os.path.isdir("/tmp/.X11-unix") else set()


@pytest.fixture
def private():
    """A client with a private desktop that runs: an application is open on it."""
    client = Client()
    try:
        client.call("launch_app", app="xterm", wait_for_window=True)
        # The desktop's own folder, with its home below.
        client.private_folder = Path(private_display(client)["HOME"]).parent
        assert client.private_folder.name.startswith("deskhand-")
        yield client
    finally:
        client.close()
        processes.kill_marked(client.mark)


def private_display(client):
    """DISPLAY of the private desktop: what its window manager was started with."""
    for pid, command in processes.marked(client.mark).items():
        if command.split()[0].endswith("openbox"):
            return processes.environment_of(pid)
    raise AssertionError("no window manager")


def test_f1_end_of_input_ends_it_all(private):
    environment = private_display(private)
    socket = "X" + environment["DISPLAY"].partition(":")[2].partition(".")[0]
    assert socket in displays()
    private.close_input()
    assert private.wait_exit(END) == 0
    gone_within(private.mark)
    assert socket not in displays()
    assert not os.path.exists(f"/tmp/.{socket}-lock")
    assert not private.private_folder.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_f1_a_signal_ends_it_all(private, number):
    os.kill(private.pid, number)
    private.wait_exit(END)
    gone_within(private.mark)
    assert not private.private_folder.exists()


def test_f3_sigkill_ends_it_all(private):
    socket = "X" + private_display(private)["DISPLAY"].partition(":")[2].partition(".")[0]
    private.kill()
    gone_within(private.mark)
    assert socket not in displays()
    assert not os.path.exists(f"/tmp/.{socket}-lock")
    assert not private.private_folder.exists()


def test_f1_without_input_it_ends_at_once(tmp_path):
    mark = processes.new_mark()
    start = time.monotonic()
    done = subprocess.run(
        [deskhand(), "mcp", "--private"], env=processes.environment(tmp_path, mark), stdin=subprocess.DEVNULL,
        capture_output=True, timeout=10,
    )
    assert done.returncode == 0
    assert done.stdout == b"" and done.stderr == b""
    assert time.monotonic() - start < END
    gone_within(mark)


WRAPPERS = {
    # The shell stays between client and server and waits for it.
    "shell waits": ["sh", "-c", '"$@"; :', "sh"],
    # Another process holds a copy of both ends of the pipe open.
    "pipe held open": ["sh", "-c", 'sleep 30 & "$@"; :', "sh"],
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_f2_a_client_that_died_behind_a_wrapper_is_noticed(tmp_path, wrapper):
    """The client is killed; a wrapper lives on and the input never ends."""
    mark = processes.new_mark()
    environment = processes.environment(tmp_path, mark)
    answers = tmp_path / "answers"
    # The client: starts the wrapper with a pipe whose writing end the wrapper inherits too, so that it stays open.
    client = subprocess.Popen(
        [
            SYSTEM_PYTHON, "-c",
            "import os, subprocess, sys, time\n"
            "read, write = os.pipe()\n"
            "os.set_inheritable(write, True)\n"
            "subprocess.Popen(sys.argv[2:], stdin=read, stdout=open(sys.argv[1], 'wb'), close_fds=False)\n"
            "os.close(read)\n"
            "request = b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
            "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\\n'\n"
            "os.write(write, request)\n"
            "time.sleep(60)\n",
            str(answers), *WRAPPERS[wrapper], deskhand(), "mcp", "--private",
        ],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        # Who dies before a server has looked who started it cannot be found by it any more.
        processes.wait_until(lambda: answers.exists() and answers.read_bytes().endswith(b"\n"), 10, "the server answers")
        client.kill()
        client.wait()
        processes.wait_until(
            lambda: not any(" mcp " in command and not command.startswith("sh ") for command in processes.marked(mark).values()),
            END, lambda: f"the server ends; there are {processes.marked(mark)}",
        )
    finally:
        processes.end(client)
        processes.kill_marked(mark)


def test_f1_thirty_connects_and_kills_leave_nothing(tmp_path):
    mark = processes.new_mark()
    environment = processes.environment(tmp_path, mark)
    for place in range(30):
        process = subprocess.Popen(
            [deskhand(), "mcp", "--private"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        request = {
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        }
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        if place % 2:
            process.kill()
        else:
            process.stdin.close()
        process.wait(END)
        processes.end(process)
    gone_within(mark)


def test_a_call_that_runs_at_the_end_of_input_may_finish(desktop):
    with Fixture(desktop, "gtk3", "pad", title="Finishing") as fixture, Client(desktop) as client:
        window = client.window(title="Finishing")
        field = client.element(window, role="text")
        number = client.start(
            "type_text", window_id=window["window_id"], element_index=field.index, text="abc" * 20, delay_ms=5,
            delivery="foreground",
        )
        fixture.wait("text")
        client.close_input()
        answer = client.finish(number, timeout=3)
        assert not answer.is_error, answer.structured
        assert client.wait_exit(END + 1) == 0


def test_a_long_call_at_the_end_of_input_ends_within_the_bound(desktop):
    with Fixture(desktop, "gtk3", "pad", title="Too long") as fixture, Client(desktop) as client:
        window = client.window(title="Too long")
        field = client.element(window, role="text")
        client.start(
            "type_text", window_id=window["window_id"], element_index=field.index, text="abc" * 2000, delay_ms=20,
            delivery="foreground",
        )
        fixture.wait("text")
        client.close_input()
        client.wait_exit(END)
        before = fixture.text("Pad")
        time.sleep(0.3)
        assert fixture.text("Pad") == before, "nobody types on"


def test_f13_initialize_and_the_tool_list_open_no_display_and_no_bus(tmp_path):
    """No process is started and no socket but the standard streams is opened."""
    with Client() as client:
        tools = client.request("tools/list")["result"]["tools"]
        assert tools
        # The guard and the desktop come with the first tool that needs them.
        assert processes.descendants(client.pid) == []
        sockets = [
            os.readlink(entry) for entry in Path(f"/proc/{client.pid}/fd").iterdir()
            if os.readlink(entry).startswith("socket:")
        ]
        unix = Path("/proc/net/unix").read_text()
        for socket in sockets:
            inode = socket.removeprefix("socket:[").removesuffix("]")
            line = next((line for line in unix.splitlines() if line.split()[6:7] == [inode]), "")
            assert "X11-unix" not in line and "dbus" not in line and "at-spi" not in line


def test_f65_a_desktop_that_cannot_be_reached_is_an_error_and_no_empty_list(tmp_path):
    mark = processes.new_mark()
    environment = processes.environment(tmp_path, mark, DISPLAY=":4321")
    with Client(command=[deskhand(), "mcp", "--no-daemon-relaunch"], env=environment, arguments=[]) as client:
        answer = client.try_call("list_windows")
        assert answer.is_error
        assert answer.code == "desktop_unavailable", answer.structured
        assert ":4321" in answer.error_message


def test_another_user_cannot_open_the_private_display(private):
    environment = private_display(private)
    for with_cookie in ("", environment["XAUTHORITY"]):
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "xdpyinfo"],
            env={"DISPLAY": environment["DISPLAY"], "XAUTHORITY": with_cookie, "PATH": os.environ["PATH"]},
            capture_output=True, text=True, timeout=10,
        )
        assert done.returncode != 0
        assert "unable to open display" in done.stderr
    mine = subprocess.run(
        ["xdpyinfo"], env={**os.environ, "DISPLAY": environment["DISPLAY"], "XAUTHORITY": environment["XAUTHORITY"]},
        capture_output=True, text=True, timeout=10,
    )
    assert mine.returncode == 0


def test_the_private_display_listens_on_no_network(private):
    pids = set(processes.marked(private.mark))
    inodes = set()
    for pid in pids:
        try:
            for entry in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
        except OSError:
            continue
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            assert line.split()[9] not in inodes, f"{table}: {line}"


def test_a_child_of_the_driver_lives_on_past_sixty_idle_seconds():
    """A death signal that is bound to the thread that started a child kills it when that idle thread ends."""
    with Client() as client:
        launched = client.call("launch_app", app="xterm", wait_for_window=True)
        pid = launched["pid"]
        start = time.monotonic()
        while time.monotonic() - start < 65:
            assert processes.alive(pid), f"ended after {time.monotonic() - start:.0f} s"
            time.sleep(1)
        assert client.window(app="xterm")
    gone_within(client.mark)


def test_f3_launched_applications_are_separate_from_the_drivers_streams(desktop, client):
    """What a program writes must not end up in the protocol, and its end must not be the driver's."""
    answer = client.call("launch_app", app="xterm", args=["-e", "sh", "-c", "echo noise; echo noise >&2; sleep 20"], wait_for_window=True)
    pid = answer["pid"]
    assert client.windows()
    assert not client.stray
    ended = client.call("kill_app", pid=pid, force=True)
    assert ended.structured
    processes.wait_until(lambda: not processes.alive(pid), 5, "xterm ends")


def test_desktop_run_passes_streams_and_exit_code(tmp_path):
    mark = processes.new_mark()
    done = subprocess.run(
        [deskhand(), "desktop", "run", "--size", "800x600", "--", "sh", "-c",
         "cat; xdpyinfo | grep dimensions; echo $HOME >&2; exit 7"],
        env=processes.environment(tmp_path, mark), input="hello\n", capture_output=True, text=True, timeout=30,
    )
    assert done.returncode == 7
    assert done.stdout.startswith("hello\n")
    assert "800x600" in done.stdout
    assert str(tmp_path) not in done.stderr, "it has a home of its own"
    gone_within(mark)


def test_desktop_run_ends_with_its_owner_killed(tmp_path):
    mark = processes.new_mark()
    process = subprocess.Popen(
        [deskhand(), "desktop", "run", "--", "sh", "-c", "echo up; exec sleep 60"],
        env=processes.environment(tmp_path, mark), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout.readline() == b"up\n"
        process.kill()
        process.wait()
        gone_within(mark)
    finally:
        processes.end(process)


def test_a_missing_program_is_named_with_its_package(tmp_path):
    mark = processes.new_mark()
    environment = processes.environment(tmp_path, mark)
    # Only the shell's own folder of tools, without an X server.
    bare = tmp_path / "bin"
    bare.mkdir()
    environment["PATH"] = str(bare)
    with Client(command=[deskhand(), "mcp", "--private"], env=environment, arguments=[]) as client:
        answer = client.try_call("list_windows")
        assert answer.is_error
        assert "xvfb" in answer.error_message.lower()
        assert "install" in answer.error_message.lower()


def test_f88_version_tools_and_doctor_run_without_x_and_d_bus(tmp_path):
    environment = {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    for arguments in (["--version"], ["tools"], ["tools", "click"], ["doctor"], ["doctor", "--json"]):
        done = subprocess.run(
            [deskhand(), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20
        )
        assert done.stdout, (arguments, done.stderr)
        assert "panicked" not in done.stderr
        if arguments[0] != "doctor":
            assert done.returncode == 0
    assert json.loads(done.stdout)


def test_f88_the_binary_needs_no_desktop_libraries():
    needed = subprocess.run(["ldd", deskhand()], capture_output=True, text=True, check=True).stdout
    for library in ("libX", "libxcb", "libwayland", "libdbus", "libxkbcommon", "libglib"):
        assert library not in needed
    assert os.path.getsize(deskhand()) <= 15_000_000
