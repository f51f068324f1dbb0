"""One service for a desktop: how it begins, who finds it, how long it lives, and how it ends."""

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from stage import processes, service
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.program import deskhand
from stage.service import Wire, client, command, gone, serve, shared, status, wait_no_service


@pytest.fixture
def desk():
    """A desktop of the test's own: services of other tests are not on it."""
    with OwnDesktop() as made:
        yield made
        for pid, line in processes.marked(made.mark).items():
            if " serve" in line:
                processes.kill(pid)
                gone(pid)


def runtime(desk):
    return Path(desk.env["XDG_RUNTIME_DIR"]) / "deskhand"


def sockets(desk):
    return [path for path in runtime(desk).iterdir() if path.is_socket()]


def test_the_first_client_starts_a_service_and_the_last_one_ends_it(desk):
    first = client(desk)
    running = status(desk)
    assert running["lifetime"] == "managed" and running["pid"] != first.pid
    assert first.errors.decode().count("\n") == 1 and "--no-daemon-relaunch" in first.errors.decode()
    second = client(desk)
    assert {first.call("list_windows").is_error, second.call("list_windows").is_error} == {False}
    assert status(desk)["pid"] == running["pid"]
    assert len(status(desk)["sessions"]) == 2
    first.close()
    assert status(desk)["pid"] == running["pid"], "a client that leaves does not end what another one uses"
    second.kill()
    gone(running["pid"])
    assert not sockets(desk)
    assert not [line for line in processes.marked(desk.mark).values() if line.split()[0].endswith("deskhand")]


def test_a_desktop_that_is_not_there_is_said_before_the_handshake(desk):
    done = command(desk, "mcp", env=shared(desk, DISPLAY=":987"))
    assert done.returncode == 1 and ":987" in done.stderr and "--private" in done.stderr and done.stdout == ""
    # A tool that needs no desktop can be called there all the same.
    command(desk, "call", "get_config", env=shared(desk, DISPLAY=":987"), check=0)


@pytest.mark.parametrize("number, rounds", [(2, 25), (20, 3)])
def test_simultaneous_starts_end_up_in_one_service(desk, number, rounds):
    for _ in range(rounds):
        with concurrent.futures.ThreadPoolExecutor(number) as pool:
            clients = list(pool.map(lambda _: client(desk), range(number)))
        try:
            running = status(desk)
            assert len(running["sessions"]) == number
            services = [pid for pid, line in processes.marked(desk.mark).items() if " serve" in line]
            assert services == [running["pid"]]
            assert all("windows" in one.call("list_windows").structured for one in clients)
        finally:
            for one in clients:
                one.kill()
        gone(running["pid"])


def test_a_stale_socket_is_replaced(desk):
    with client(desk):
        pid = status(desk)["pid"]
        processes.kill(pid)
        gone(pid)
        assert sockets(desk), "a killed service leaves its socket"
    with client(desk) as next_one:
        assert status(desk)["pid"] != pid
        next_one.call("list_windows")


def test_a_stopped_holder_is_waited_for_and_never_replaced(desk):
    with client(desk):
        pid = status(desk)["pid"]
        service.stop(pid)
        try:
            done = command(desk, "mcp", timeout=25)
            assert done.returncode == 1 and str(pid) in done.stderr and "stopped" in done.stderr
            assert [p for p, line in processes.marked(desk.mark).items() if " serve" in line] == [pid]
        finally:
            service.go_on(pid)
        assert status(desk)["pid"] == pid


def other_build(folder):
    """This program, with one byte more."""
    path = Path(folder) / "deskhand"
    shutil.copy(deskhand(), path)
    with path.open("ab") as program:
        program.write(b"\0")
    return path


def test_another_build_is_refused_by_name(desk, tmp_path):
    with client(desk):
        running = status(desk)
        other = other_build(tmp_path)
        done = command(desk, "mcp", program=other)
        assert done.returncode == 1
        for part in ("build_conflict", str(running["pid"]), running["path"], "deskhand stop"):
            assert part in done.stderr, done.stderr
        done = command(desk, "serve", program=other)
        assert done.returncode == 1 and "build_conflict" in done.stderr


def test_two_builds_at_one_path_never_run_together(desk, tmp_path):
    path = tmp_path / "deskhand"
    shutil.copy(deskhand(), path)
    with client(desk, command=[str(path), "mcp"]) as first:
        pid = status(desk)["pid"]
        # Replaced on disk: the program that runs goes on as it is.
        (tmp_path / "new").mkdir()
        os.replace(other_build(tmp_path / "new"), path)
        done = command(desk, "mcp", program=path)
        assert done.returncode == 1 and "build_conflict" in done.stderr and str(pid) in done.stderr
        first.call("list_windows")


def test_two_desktops_have_two_services(desk, tmp_path):
    with OwnDesktop() as other:
        env = shared(other, XDG_RUNTIME_DIR=desk.env["XDG_RUNTIME_DIR"])
        with client(desk) as here, client(other, env=env) as there:
            here.call("list_windows"), there.call("list_windows")
            assert status(desk)["pid"] != status(other, env=env)["pid"]
            # Where no desktop is named, several services are no answer.
            nowhere = {name: value for name, value in shared(desk).items() if name != "DISPLAY"}
            done = command(desk, "mcp", env=nowhere)
            assert done.returncode == 1 and desk.env["DISPLAY"] in done.stderr and other.env["DISPLAY"] in done.stderr
            done = command(desk, "status", "--json", "--desktop", other.env["DISPLAY"], env=nowhere)
            assert json.loads(done.stdout)["desktop"] == other.env["DISPLAY"]


def test_f65_where_no_desktop_is_named_the_only_service_is_found(desk):
    nowhere = {name: value for name, value in shared(desk).items() if name != "DISPLAY"}
    with client(desk):
        with client(desk, env=nowhere) as remote:
            assert "windows" in remote.call("list_windows").structured
    wait_no_service(desk)
    done = command(desk, "mcp", env=nowhere)
    assert done.returncode == 1 and "DISPLAY" in done.stderr


def test_serve_stays_until_it_is_stopped(desk):
    process = serve(desk)
    with client(desk) as one:
        one.call("list_windows")
        assert status(desk)["pid"] == process.pid
    assert status(desk)["lifetime"] == "persistent"
    done = command(desk, "stop", "--json", check=0)
    assert json.loads(done.stdout) == {"stopped": True, "pid": process.pid}
    assert process.wait(5) == 0
    assert command(desk, "stop").returncode == 3
    assert not sockets(desk)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(desk, number):
    process = serve(desk)
    with client(desk) as one:
        waiting = one.start("wait_for", condition="window_opens", title="never", timeout_ms=20_000)
        one.call("list_windows")
        process.send_signal(number)
        answer = one.wait(waiting, timeout=10)
        assert process.wait(10) == 0
        assert "error" in answer or answer["result"]["isError"]
    assert not sockets(desk)


def test_serve_makes_a_managed_service_persistent_and_says_so(desk):
    with client(desk):
        pid = status(desk)["pid"]
        done = command(desk, "serve", check=0)
        assert "persistent" in done.stdout + done.stderr
    assert status(desk)["pid"] == pid and status(desk)["lifetime"] == "persistent"
    command(desk, "stop", check=0)


def test_a_second_serve_is_refused(desk):
    process = serve(desk)
    done = command(desk, "serve")
    assert done.returncode == 1 and "desktop_in_use" in done.stderr and str(process.pid) in done.stderr


def test_a_socket_of_ones_own(desk, tmp_path):
    path = str(tmp_path / "d.sock")
    process = serve(desk, "--socket", path)
    with client(desk, "--socket", path) as one:
        one.call("list_windows")
    assert os.stat(path).st_mode & 0o777 == 0o600
    # The desktop is taken; the client that looks for it where it usually is is told where it is.
    elsewhere = str(tmp_path / "other.sock")
    done = command(desk, "mcp", "--socket", elsewhere)
    assert done.returncode == 1 and path in done.stderr and "desktop_in_use" in done.stderr
    command(desk, "stop", "--socket", path, check=0)
    assert process.wait(5) == 0 and not os.path.exists(path)


def test_in_its_own_process_it_takes_the_desktop_too(desk):
    with client(desk, "--no-daemon-relaunch") as alone:
        alone.call("list_windows")
        assert alone.errors == b""
        assert status(desk) is None
        done = command(desk, "mcp", timeout=25)
        assert done.returncode == 1 and "desktop_in_use" in done.stderr and str(alone.pid) in done.stderr
    with client(desk):
        done = command(desk, "mcp", env=shared(desk, DESKHAND_MCP_NO_RELAUNCH="Yes"))
        assert done.returncode == 1 and "desktop_in_use" in done.stderr
        assert str(status(desk)["pid"]) in done.stderr and "deskhand stop" in done.stderr


def test_in_its_own_process_it_waits_for_a_service_that_is_just_left(desk):
    for _ in range(5):
        command(desk, "call", "list_windows", check=0)
        with client(desk, "--no-daemon-relaunch") as alone:
            assert not alone.try_call("list_windows").is_error
            assert alone.errors == b""


def test_a_service_in_its_last_moments_is_none_and_is_not_named(desk):
    """Its socket is gone and its process lives: commands about it wait for the end, and say then what is."""
    with Fixture(desk, "gtk3", "widgets", title="Frozen") as frozen:
        running = serve(desk)
        with client(desk) as one:
            window = one.window(title="Frozen")["window_id"]
            one.call("get_accessibility_tree", window_id=window)
            service.stop(frozen.pid)
            try:
                # Ends no sooner than its grace time.
                one.start("get_window_state", window_id=window, capture_mode="ax")
                processes.wait_until(lambda: any(session["calls"] for session in status(desk)["sessions"]), 5, "the call is at work")
                running.terminate()
                processes.wait_until(lambda: not sockets(desk), 5, "the socket is gone")
                said = [subprocess.Popen(
                    [deskhand(), *words], env=shared(desk), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True,
                ) for words in (["status"], ["stop"], ["stop", "--json"], ["sessions"])]
                assert running.poll() is None, "the commands came while it was ending"
                for one_said in said:
                    text, _ = one_said.communicate(timeout=20)
                    assert one_said.returncode == 3 and str(running.pid) not in text, (one_said.args, text)
                    assert "no service runs here" in text or json.loads(text) == {"stopped": False}, text
                    assert running.wait(0.5) == 0
            finally:
                service.go_on(frozen.pid)


def test_a_service_of_another_runtime_folder_is_found_on_the_display(desk, tmp_path):
    process = serve(desk)
    with client(desk) as one:
        one.call("list_windows")
        apart = tmp_path / "apart"
        apart.mkdir(mode=0o700)
        env = shared(desk, XDG_RUNTIME_DIR=str(apart))
        with client(desk, env=env) as other:
            answer = other.try_call("list_windows")
            assert answer.code == "desktop_in_use" and str(process.pid) in answer.error_message


@pytest.mark.parametrize("how", ["link", "mode"])
def test_a_runtime_folder_that_others_could_change_is_refused(desk, tmp_path, how):
    base = tmp_path / "run"
    base.mkdir(mode=0o700)
    folder = base / "deskhand"
    if how == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    done = command(desk, "mcp", env=shared(desk, XDG_RUNTIME_DIR=str(base)))
    assert done.returncode == 1 and str(folder) in done.stderr


def test_what_a_client_inherited_stays_with_it(desk):
    """A pipe on descriptor 9 ends with the client, and the service does not know the client's variables."""
    read, write = os.pipe()
    env = shared(desk, CANARY_OF_THE_CLIENT="secret")
    script = f"exec 9>&{write}; exec {write}>&-; exec {deskhand()} mcp"
    process = subprocess.Popen(
        ["bash", "-c", script], env=env, pass_fds=[write], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    try:
        processes.wait_until(lambda: status(desk), 10, "a service")
        pid = status(desk)["pid"]
        command(desk, "serve", check=0)  # it stays
        environment = processes.environment_of(pid)
        assert "CANARY_OF_THE_CLIENT" not in environment and environment["DISPLAY"] == desk.env["DISPLAY"]
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    os.set_blocking(read, True)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"", "somebody still holds the pipe"
    assert status(desk)["pid"] == pid


def test_the_log_of_a_service_stays_short_while_it_lives(desk):
    env = shared(desk, DESKHAND_SESSION_IDLE_TTL_SECS="1", DESKHAND_LOG="debug")
    with client(desk, env=env):  # keeps the service
        log, = runtime(desk).glob("*.log")
        pid = status(desk)["pid"]
        for name in ("one", "two"):
            # As if it had said as much itself: it appends, whatever the length is.
            with log.open("ab") as file:
                file.write(b"x" * (1024 * 1024))
            command(desk, "call", "--session", name, "get_config", env=env, check=0)
            processes.wait_until(lambda: f"session={name}" in log.read_text(), 10, "the end of the session is logged")
            assert log.stat().st_size < 4096 and log.stat().st_mode & 0o777 == 0o600
            logs = sorted(path.name for path in runtime(desk).iterdir() if ".log" in path.name)
            assert logs == [log.name, log.name + ".old"]
            assert log.with_name(log.name + ".old").stat().st_size < 1024 * 1024 + 4096
            for number in (1, 2):
                assert os.readlink(f"/proc/{pid}/fd/{number}") == str(log)


def test_a_service_that_is_gone_is_said_and_not_started_again(desk):
    with client(desk) as one:
        running = status(desk)
        waiting = one.start("wait_for", condition="window_opens", title="never", timeout_ms=20_000)
        one.call("list_windows")
        processes.kill(running["pid"])
        error = one.wait(waiting, timeout=5)["error"]
        assert error["code"] == -32603
        assert error["data"] == {"code": "service_unreachable", "recovery": "process"}
        assert running["socket"] in error["message"] and "deskhand serve" in error["message"]
        assert one.request("tools/call", {"name": "list_windows", "arguments": {}})["error"]["code"] == -32603
        assert status(desk) is None
        process = serve(desk)
        answer = one.try_call("list_windows")
        assert (answer.code, answer["recovery"]) == ("service_restarted", "process")
        assert "windows" in one.call("list_windows").structured
        assert [session["leased"] for session in status(desk)["sessions"]] == [True]
    processes.wait_until(lambda: not status(desk)["sessions"], 5, "the new session has ended with its client")
    process.terminate()


def test_a_lost_service_is_started_again_if_that_is_asked_for(desk):
    with client(desk, "--on-service-loss", "relaunch") as one:
        processes.kill(status(desk)["pid"])
        processes.wait_until(lambda: status(desk) is None, 5, "it is gone")
        assert one.try_call("list_windows").code == "service_restarted"
        one.call("list_windows")
    with client(desk, "--on-service-loss", "fail") as one:
        processes.kill(status(desk)["pid"])
        processes.wait_until(lambda: status(desk) is None, 5, "it is gone")
        process = serve(desk)
        for _ in range(2):
            assert one.request("tools/call", {"name": "list_windows", "arguments": {}})["error"]["code"] == -32603
        process.terminate()


def test_a_desktop_that_goes_away_ends_the_service(desk):
    process = serve(desk)
    with client(desk) as one:
        one.call("list_windows")
        waiting = one.start("wait_for", condition="window_opens", title="never", timeout_ms=20_000)
        one.call("get_config")
        server = next(pid for pid, line in processes.marked(desk.mark).items() if line.startswith("Xvfb"))
        processes.kill(server)
        assert one.finish(waiting).code == "desktop_lost"
        assert process.wait(10) != 0
        answer = one.request("tools/call", {"name": "list_windows", "arguments": {}})
        assert "error" in answer or answer["result"]["structuredContent"]["code"] == "desktop_lost"
    assert not sockets(desk)


def test_a_stopped_service_is_said_by_the_commands_about_it(desk):
    with client(desk):
        pid = status(desk)["pid"]
        service.stop(pid)
        try:
            # Each waits for an answer for a while, so they do it side by side.
            commands = (["status"], ["stop"], ["sessions"], ["config", "get", "max_elements"])
            with concurrent.futures.ThreadPoolExecutor() as pool:
                for done in pool.map(lambda words: command(desk, *words, timeout=30), commands):
                    assert done.returncode == 1 and str(pid) in done.stderr and "stopped" in done.stderr, done
            done = command(desk, "serve", timeout=20)
            assert done.returncode == 1
        finally:
            service.go_on(pid)
        assert status(desk)["lifetime"] == "managed", "what was asked in vain is not done later"


def test_a_service_that_is_stopped_in_mid_session_is_said_in_bounded_time(desk):
    with client(desk) as one:
        one.call("list_windows")
        pid = status(desk)["pid"]
        service.stop(pid)
        try:
            error = one.request("tools/call", {"name": "get_screen_size", "arguments": {}}, timeout=20)["error"]
            assert error["data"]["code"] == "service_unreachable" and "does not answer" in error["message"]
        finally:
            service.go_on(pid)
        assert one.call("get_screen_size").structured, "the same service and session go on"


def test_the_end_of_the_input_ends_a_client_that_looks_for_its_service(desk):
    with client(desk):
        pid = status(desk)["pid"]
        service.stop(pid)
        try:
            process = subprocess.Popen(
                [deskhand(), "mcp"], env=shared(desk), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            process.stderr.readline()
            process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            process.stdin.close()
            assert process.wait(2) == 0
            process.stdout.close(), process.stderr.close()
        finally:
            service.go_on(pid)


def test_a_burst_after_a_loss_begins_one_session(desk):
    with client(desk, "--on-service-loss", "relaunch") as one:
        one.call("list_windows")
        pid = status(desk)["pid"]

        def connections():
            count = 0
            for number in os.listdir(f"/proc/{one.pid}/fd"):
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    count += os.readlink(f"/proc/{one.pid}/fd/{number}").startswith("socket:")
            return count

        before = connections()
        processes.kill(pid)
        gone(pid)
        # A call that is sent sooner is one of those under way when the service ended.
        processes.wait_until(lambda: connections() < before, 5, "the client has seen that it is gone")
        numbers, lines = [], b""
        for _ in range(12):
            number, line = one.tool_line("get_config")
            numbers.append(number)
            lines += line
        one.send_bytes(lines)
        answers = [one.finish(number) for number in numbers]
        assert answers[0].code == "service_restarted", [answer.message for answer in answers]
        assert all(not answer.is_error or answer.code == "service_restarted" for answer in answers)
        assert len(status(desk)["sessions"]) == 1
        assert status(desk)["connections"] == 2, "the client's and that of the question"


def test_a_full_service_says_so(desk):
    process = serve(desk, "--limit", "sessions=1")
    with client(desk):
        done = command(desk, "mcp")
        assert done.returncode == 1 and "limit_exceeded" in done.stderr and "sessions" in done.stderr
    process.terminate()
    process.wait(10)
    process = serve(desk, "--limit", "connections=1")
    with client(desk):
        for words in (["status"], ["mcp"]):
            done = command(desk, *words)
            assert done.returncode == 1 and "limit_exceeded" in done.stderr and "connections" in done.stderr
    process.terminate()
    process.wait(10)


def test_a_relative_socket_is_the_same_everywhere(desk, tmp_path):
    run = lambda *words: subprocess.run(  # noqa: E731
        [deskhand(), *words, "--socket", "rel.sock"], env=shared(desk), cwd=tmp_path, capture_output=True, text=True, timeout=20,
    )
    done = run("call", "--session", "s", "get_screen_size")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "rel.sock") in run("status").stdout
    assert run("stop").returncode == 0


def test_a_launch_that_fails_says_why(desk):
    env = shared(desk, XDG_RUNTIME_DIR="/proc/nowhere")
    done = command(desk, "mcp", env=env)
    assert done.returncode == 1 and "/proc/nowhere" in done.stderr


def test_managed_services_end_after_the_last_client_however_it_leaves(desk):
    for first_leaves in ("eof", "kill", "mid_call"):
        one, two = client(desk), client(desk)
        pid = status(desk)["pid"]
        if first_leaves == "mid_call":
            one.start("wait_for", condition="window_opens", title="never", timeout_ms=20_000)
            two.call("list_windows")
        one.close() if first_leaves == "eof" else one.kill()
        assert "windows" in two.call("list_windows").structured
        three = client(desk)
        two.kill() if first_leaves == "eof" else two.close()
        assert "windows" in three.call("list_windows").structured and status(desk)["pid"] == pid
        three.close()
        gone(pid)
    assert not sockets(desk)


def test_a_private_desktop_can_be_shared(tmp_path):
    folder = tmp_path / "stage"
    folder.mkdir()
    mark = processes.new_mark()
    env = processes.environment(folder, mark)
    process = subprocess.Popen(
        [deskhand(), "serve", "--private", "800x600"], env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    try:
        def answers():
            done = subprocess.run([deskhand(), "status", "--json"], env=env, capture_output=True)
            return done.returncode == 0

        processes.wait_until(answers, 15, "the service answers")
        assert "private:shared" in process.stderr.readline().decode()
        with Client(env=env, arguments=[]) as one, Client(env=env, arguments=[]) as two:
            one.call("launch_app", app="xterm", wait_for_window=True)
            assert any("xterm" in window["app"].lower() for window in two.windows())
        with Client(env={**env, "DISPLAY": ":0"}, arguments=["--desktop", "private:shared"]) as three:
            assert any("xterm" in window["app"].lower() for window in three.windows())
    finally:
        process.terminate()
        assert process.wait(10) == 0
        process.stderr.close()
    processes.wait_until(lambda: not processes.marked(mark), 5, lambda: f"left: {processes.marked(mark)}")


def test_connect_gives_any_program_the_wire(desk):
    lines = b'{"id": 1, "method": "hello"}\n{"id": 2, "method": "call", "tool": "list_windows"}\n{"id": 3, "method": "x"}\n'
    # Only in a build of its own (docs/consent.md).
    lines += b'{"id": 4, "method": "machine_consent_host"}\n'
    done = subprocess.run([deskhand(), "connect"], env=shared(desk), input=lines, capture_output=True, timeout=20)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0 and answers[1]["ok"]["lifetime"] == "managed"
    assert "windows" in answers[2]["ok"]["structured"]
    assert [answers[number]["error"]["code"] for number in (3, 4)] == ["unknown_method"] * 2
    wait_no_service(desk)


def test_look_in_one_command_and_click_in_the_next(desk):
    desk.start(["galculator"])
    with client(desk) as one:
        window = one.window(app="galculator")
    number = window["window_id"]
    command(desk, "call", "--session", "shell", "get_window_state", json.dumps({"window_id": number}), check=0)
    done = command(
        desk, "call", "--session", "shell", "--json", "click",
        json.dumps({"window_id": number, "query": {"name": "7", "exact": True}}), check=0,
    )
    assert json.loads(done.stdout)["effect"] == "confirmed"
    listed = json.loads(command(desk, "sessions", "--json", check=0).stdout)["sessions"]
    assert [(one["session"], one["leased"]) for one in listed] == [("shell", False)]
    command(desk, "sessions", "end", "shell", check=0)
    wait_no_service(desk)


def test_named_sessions_end_when_they_are_idle(desk):
    env = shared(desk, DESKHAND_SESSION_IDLE_TTL_SECS="1")
    command(desk, "call", "--session", "short", "list_windows", env=env, check=0)
    assert status(desk)["sessions"][0]["session"] == "short"
    wait_no_service(desk)


def test_configuration_with_and_without_a_service(desk):
    file = Path(command(desk, "config", "path", check=0).stdout.strip())
    command(desk, "config", "set", "max_elements", "77", check=0)
    assert json.loads(file.read_text()) == {"max_elements": 77} and file.stat().st_mode & 0o777 == 0o600
    with client(desk) as one:
        assert one.call("get_config")["settings"]["max_elements"] == 77
        one.call("set_config", max_elements=55)
        command(desk, "config", "set", "max_elements", "66", check=0)
        assert one.call("get_config")["settings"]["max_elements"] == 55
        assert command(desk, "config", "get", "max_elements", check=0).stdout.strip() == "66"
        assert json.loads(file.read_text()) == {"max_elements": 66}
    wait_no_service(desk)
    assert command(desk, "config", "get", "max_elements", check=0).stdout.strip() == "66"
    assert "max_elements" in command(desk, "config", "get", "nothing").stderr
    command(desk, "config", "unset", "max_elements", check=0)
    assert json.loads(file.read_text()) == {}


def test_limits_are_those_of_the_service(desk):
    assert command(desk, "serve", "--limit", "gravity=2").returncode == 2
    process = serve(desk, "--limit", "connections=3", "--limit", "calls=2")
    path = status(desk)["socket"]
    with Wire(path) as one, Wire(path) as two:
        assert one.ask("hello")["ok"]["limits"]["connections"] == 3
        third = Wire(path)
        third.ask("status")
        with Wire(path) as turned_away:
            answer = turned_away.line()
            assert answer["error"]["code"] == "limit_exceeded" and "connections" in answer["error"]["message"]
        third.close()
        two.ask("hello", session="few", lease=True)
        waiting = {"condition": "window_opens", "title": "never", "timeout_ms": 9000}
        for _ in range(2):
            two.send("call", session="few", tool="wait_for", arguments=waiting)
        answer = two.call("get_config", session="few")
        assert answer["error"]["code"] == "limit_exceeded" and "calls" in answer["error"]["message"]
    process.terminate()
    assert process.wait(10) == 0


def test_another_user_is_turned_away(desk):
    """The socket lies in a folder that only its owner may enter; and whoever gets at it is looked at."""
    with client(desk):
        path = Path(status(desk)["socket"])
        assert path.parent.stat().st_mode & 0o777 == 0o700
        script = (
            f"import os,socket; os.setuid(65534)\n"
            f"s=socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect('{path}'); s.send(b'{{\"id\":1,\"method\":\"status\"}}\\n')\n"
            f"print(s.recv(10))"
        )
        base = Path(desk.folder.name)
        modes = {folder: folder.stat().st_mode for folder in (base, base / "run", path.parent)}
        try:
            for folder in modes:
                folder.chmod(0o755)
            path.chmod(0o777)
            done = subprocess.run(["python3", "-c", script], capture_output=True, text=True, timeout=20)
        finally:
            for folder, mode in modes.items():
                folder.chmod(mode)
        # Turned away before or after it could send.
        assert done.stdout.strip() == "b''" or "ConnectionResetError" in done.stderr or "BrokenPipeError" in done.stderr, done
