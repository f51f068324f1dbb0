"""The activity log of a service: what each call leaves in it, what is never in it, and where it is not kept."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from mcp import Client as SdkClient
from mcp import StdioServerParameters

from stage import processes, service
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.program import SYSTEM_PYTHON, deskhand
from stage.service import command, serve, status

# Must turn up nowhere.
CANARY = "Canary-5f1c"

# Somebody that no password database knows.
NOBODY = 54_321

PASSWORD = """
import gi; gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window = Gtk.Window(title="Canary-5f1c password"); entry = Gtk.Entry(visibility=False, input_purpose=Gtk.InputPurpose.PASSWORD)
entry.get_accessible().set_name("Secret"); window.add(entry); window.show_all(); Gtk.main()
"""


@pytest.fixture
def desk():
    """A desktop that no service has."""
    with OwnDesktop() as made:
        yield made


def lines(folder):
    """Every line, the oldest first; each is whole."""
    text = (Path(folder) / "activity.jsonl").read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def wait_lines(folder, number):
    return processes.wait_until(
        lambda: (found := lines(folder)) and len(found) >= number and found, 15, lambda: f"{number} lines; there are {lines(folder)}"
    )


def holds(folder, text):
    """Files below the folder in which the text stands, in whatever case."""
    text = text.lower().encode()
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    assert files
    return [path for path in files if text in path.read_bytes().lower() or text in str(path.relative_to(folder)).lower().encode()]


def jpeg_size(path):
    done = subprocess.run(["identify", "-format", "%m %w %h", str(path)], capture_output=True, text=True, check=True, timeout=20)
    kind, width, height = done.stdout.split()
    assert kind == "JPEG"
    return int(width), int(height)


def test_two_agents_leave_a_line_for_each_call_and_none_of_what_they_typed(desk, tmp_path):
    folder = tmp_path / "deep" / "log"
    serving = serve(desk, "--activity-dir", str(folder))
    desk.start(["mousepad", "--disable-server"])
    desk.start([SYSTEM_PYTHON, "-c", PASSWORD])
    server = StdioServerParameters(command=deskhand(), args=["mcp", "--profile", "full"], env=desk.env)

    async def session():
        async with SdkClient(server) as a, SdkClient(server) as b:
            async def window(title):
                while True:
                    listed = await a.call_tool("list_windows", {})
                    for window in listed.structured_content["windows"]:
                        if title in window["title"]:
                            return window["window_id"]
                    await asyncio.sleep(0.2)

            editor, password = await window("Mousepad"), await window("password")
            async def looked(times):
                # A look that another call overtakes is given up.
                while sum(1 for line in lines(folder) if line["tool"] == "type_text" and "frame" in line) < times:
                    await asyncio.sleep(0.05)

            written = await a.call_tool("type_text", {"window_id": editor, "text": f"{CANARY} written"})
            assert not written.is_error, written
            await asyncio.wait_for(looked(1), 10)
            await b.call_tool("type_text", {"window_id": password, "query": {"name": "Secret"}, "text": f"{CANARY} hidden"})
            await asyncio.wait_for(looked(2), 10)
            failed = await b.call_tool("click", {"window_id": editor, "query": {"name": f"{CANARY} button"}})
            assert failed.is_error
            bad = await b.call_tool("click", {"window_id": editor, f"{CANARY}": 1, "count": CANARY})
            assert bad.is_error and CANARY in bad.content[0].text, "messages repeat what was given"
            await a.call_tool("clipboard_write", {"text": f"{CANARY} copied"})
            return editor, password

    editor, password = asyncio.run(session())
    command(desk, "call", "get_screen_size", check=0)
    command(desk, "stop", check=0)
    serving.wait(15)
    # The end of the service waits for the last frames.
    found = lines(folder)
    assert [line["line"] for line in found] == list(range(1, len(found) + 1))
    acting = [line for line in found if "frame" in line or "frame_missing" in line]
    typed = [line for line in acting if line["tool"] == "type_text"]
    assert len(typed) == 2 and len({line["session_id"] for line in typed}) == 2, typed
    assert all(line["session"] for line in typed)
    by_arguments = {tuple(line["arguments"]): line for line in typed}
    plain, secret = by_arguments["window_id", "text"], by_arguments["window_id", "query", "text"]
    assert plain["effect"] == "confirmed" and plain["duration_ms"] > 0, plain
    for line in (plain, secret):
        assert line["frame"] == f"frames/{line['line']:07}.jpg", line
        assert max(jpeg_size(folder / line["frame"])) <= 1280
    refused = [line for line in found if line.get("code") == "invalid_argument"]
    assert [(line["arguments"], line["unknown_arguments"], line.get("frame")) for line in refused] == [(["window_id", "count"], 1, None)]
    assert [line["arguments"] for line in found if line.get("code") == "element_not_found"] == [["window_id", "query"]]
    anonymous = [line for line in found if "session_id" not in line]
    assert [line["tool"] for line in anonymous] == ["get_screen_size"]
    assert sorted(path.name for path in (folder / "frames").iterdir()) == sorted(Path(line["frame"]).name for line in acting if "frame" in line)
    assert holds(folder, CANARY) == [] and holds(folder, "deskhand") != []
    assert CANARY not in b"".join(serving.lines).decode()
    modes = {path: path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items()), modes


def test_a_killed_service_leaves_whole_lines_and_the_next_one_goes_on(desk, tmp_path):
    folder = tmp_path / "log"
    first = serve(desk, "--activity-dir", str(folder))
    said = status(desk)["activity_log"]
    assert said == {"folder": str(folder), "lines": 0, "lines_dropped": 0, "frames": 0}
    with service.client(desk) as client:
        for _ in range(5):
            client.call("press_key", key="shift")
        before = wait_lines(folder, 5)
        numbers = [client.start("press_key", key="shift") for _ in range(20)]
        client.finish(numbers[3])
        os.kill(first.pid, signal.SIGKILL)
        first.wait(10)
        killed = lines(folder)
        assert killed[:5] == before and len(killed) >= 5
        frames = list((folder / "frames").glob("*.jpg"))
        assert all(jpeg_size(frame) for frame in frames)
    second = serve(desk, "--activity-dir", str(folder))
    assert not list(folder.rglob(".*.part"))
    command(desk, "call", "press_key", '{"key": "shift"}', check=0)
    after = wait_lines(folder, len(killed) + 1)
    assert after[:-1] == killed and after[-1]["line"] > killed[-1]["line"]
    assert f"activity    {folder}: 1 lines, 1 pictures" in command(desk, "status", check=0).stdout
    command(desk, "stop", check=0)
    second.wait(15)


def test_of_a_burst_each_call_is_a_line_and_the_last_has_a_frame(desk, tmp_path):
    folder = tmp_path / "log"
    serving = serve(desk, "--activity-dir", str(folder))
    with service.client(desk) as client:
        burst = [client.tool_line("press_key", key="shift") for _ in range(40)]
        client.send_bytes(b"".join(line for _, line in burst))
        for number, _ in burst:
            assert not client.finish(number).is_error
        found = wait_lines(folder, 40)
    assert {line.get("frame_missing", "superseded") for line in found} == {"superseded"}
    assert all(("frame" in line) != ("frame_missing" in line) for line in found)
    assert "frame" in found[-1]
    assert len(list((folder / "frames").iterdir())) == sum("frame" in line for line in found)
    command(desk, "stop", check=0)
    serving.wait(15)


def test_a_log_has_one_writer_and_a_service_is_told_at_its_start(desk, tmp_path):
    folder = tmp_path / "log"
    serving = serve(desk, "--activity-dir", str(folder))
    with OwnDesktop() as other:
        refused = command(other, "serve", "--activity-dir", str(folder), check=1)
        assert "file_error" in refused.stderr and "something writes into it already" in refused.stderr, refused.stderr
        assert status(other) is None
    too_late = command(desk, "serve", "--activity-dir", str(tmp_path / "late"), check=1)
    assert "runs already" in too_late.stderr, too_late.stderr
    assert not (tmp_path / "late").exists()
    proxy = command(desk, "mcp", "--activity-dir", str(tmp_path / "late"), check=2)
    assert "deskhand serve" in proxy.stderr and proxy.stdout == "" and not (tmp_path / "late").exists()
    command(desk, "stop", check=0)
    serving.wait(15)
    # One that is there to stay, made so by a command that wants a log of it.
    with service.client(desk):
        too_late = command(desk, "serve", "--activity-dir", str(tmp_path / "late"), check=1)
        assert "--activity-dir counts only at the start" in too_late.stderr, too_late.stderr
    command(desk, "stop", check=0)


def test_the_environment_asks_whoever_owns_the_desktop(desk, tmp_path):
    env = {**desk.env, "DESKHAND_ACTIVITY_DIR": str(tmp_path / "log")}
    with service.client(desk, env=env) as client:
        client.call("list_windows")
        assert [line["tool"] for line in wait_lines(tmp_path / "log", 1)] == ["list_windows"]
        pid = status(desk)["pid"]
        # The same for a second desktop: nobody is logged elsewhere than was asked for.
        with OwnDesktop() as other:
            refused = command(other, "mcp", env={**other.env, "DESKHAND_ACTIVITY_DIR": str(tmp_path / "log")}, check=1)
            assert "something writes into it already" in refused.stderr and refused.stdout == "", refused.stderr
    service.gone(pid, 10)
    with service.client(desk, "--no-daemon-relaunch", env=env) as client:
        client.call("press_key", key="shift")
    # Its end waits for the frame.
    assert [(line["tool"], "frame" in line) for line in lines(tmp_path / "log")] == [("list_windows", False), ("press_key", True)]
    relative = command(desk, "serve", env={**desk.env, "DESKHAND_ACTIVITY_DIR": "log"}, check=1)
    assert "absolute" in relative.stderr
    started = subprocess.run(
        [deskhand(), "mcp", "--no-daemon-relaunch", "--activity-dir", "here"], env=desk.env, cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=30,
    )
    assert started.returncode == 0, started.stderr
    assert lines(tmp_path / "here") == [], "relative to where the command was run"


def test_folders_that_must_not_be_used_end_the_start_with_the_reason(desk, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "foreign").mkdir()
    reasons = {"full": "not empty", "link": "link", "full/notes": "no folder"}
    if os.geteuid() == 0:
        os.chown(tmp_path / "foreign", NOBODY, NOBODY)
        reasons["foreign"] = "another user"
    for name, reason in reasons.items():
        refused = command(desk, "serve", "--activity-dir", str(tmp_path / name), check=1)
        assert "file_error" in refused.stderr and reason in refused.stderr and name in refused.stderr, refused.stderr
        refused = command(desk, "mcp", "--no-daemon-relaunch", "--activity-dir", str(tmp_path / name), check=1)
        assert reason in refused.stderr and refused.stdout == "", refused.stderr
    assert status(desk) is None
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes"]
    assert not list((tmp_path / "real").iterdir()) and not list((tmp_path / "foreign").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_folder_without_permission_is_refused():
    base = Path(tempfile.mkdtemp(prefix="deskhand-activity-"))
    try:
        base.chmod(0o755)
        program = shutil.copy(deskhand(), base / "deskhand")
        (base / "run").mkdir(mode=0o700)
        (base / "open").mkdir()
        for name in ("run", "open"):
            os.chown(base / name, NOBODY, NOBODY)
        env = {"PATH": os.environ["PATH"], "DISPLAY": ":987", "XDG_RUNTIME_DIR": str(base / "run"), "ACPMUX_HOME": str(base / "none")}

        def start(folder):
            return subprocess.run(
                [program, "mcp", "--no-daemon-relaunch", "--activity-dir", str(folder)], env=env, user=NOBODY, group=NOBODY,
                extra_groups=[], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
            )

        refused = start(base / "log")
        assert refused.returncode == 1 and "Permission denied" in refused.stderr, refused.stderr
        read_only = base / "open" / "read-only"
        read_only.mkdir()
        os.chown(read_only, NOBODY, NOBODY)
        read_only.chmod(0o500)
        refused = start(read_only)
        assert refused.returncode == 1 and "Permission denied" in refused.stderr, refused.stderr
        kept = start(base / "open" / "log")
        assert kept.returncode == 0, kept.stderr
        assert (base / "open" / "log" / "activity.jsonl").read_text() == ""
        # It was open to others, and is not any more.
        (base / "open" / "mine").mkdir()
        (base / "open" / "mine").chmod(0o777)
        os.chown(base / "open" / "mine", NOBODY, NOBODY)
        assert start(base / "open" / "mine").returncode == 0
        assert (base / "open" / "mine").stat().st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(base)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True, stdin=subprocess.DEVNULL)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True, stdin=subprocess.DEVNULL)


def test_a_full_disk_costs_no_call_and_the_log_goes_on_when_there_is_room(desk, small_disk):
    folder = small_disk / "log"
    serving = serve(desk, "--activity-dir", str(folder))
    (small_disk / "ballast").write_bytes(b"x")
    with service.client(desk) as client:
        client.call("press_key", key="shift")
        wait_lines(folder, 1)
        # Whatever room there is.
        with open(small_disk / "ballast", "wb", buffering=0) as ballast:
            try:
                while ballast.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        # The last block of the lines has some room left.
        def is_full():
            client.call("press_key", key="shift")
            return status(desk)["activity_log"].get("stopped")

        assert "No space left" in processes.wait_until(is_full, 60, "the disk is full")
        client.call("list_windows")
        processes.wait_until(lambda: status(desk)["activity_log"]["lines_dropped"] >= 2, 10, "lines are missing")
        whole = lines(folder)
        assert any(line.get("frame_missing") == "disk_full" for line in whole[1:]), "frames stop first"
        check = [check for check in client.call("health_report")["checks"] if check["name"] == "activity_log"]
        assert check[0]["status"] == "degraded" and "No space left" in check[0]["detail"], check
        assert "NOT WRITTEN" in command(desk, "status", check=0).stdout
        (small_disk / "ballast").unlink()
        client.call("press_key", key="shift")
        processes.wait_until(lambda: "frame" in lines(folder)[-1], 10, "a line with its frame")
        found = lines(folder)
        # One that is shorter may have found room before.
        assert found[: len(whole)] == whole and sum(line.get("lines_dropped", 0) for line in found) >= 2, found[len(whole) :]
        processes.wait_until(lambda: "stopped" not in status(desk)["activity_log"], 10, "it goes on")
        assert not list(folder.rglob(".*.part"))
    command(desk, "stop", check=0)
    serving.wait(15)
    told = b"".join(serving.lines).decode()
    assert "the activity log stops" in told and "the activity log goes on" in told, told


def test_a_display_server_that_hangs_costs_frames_and_no_line(desk, tmp_path):
    folder = tmp_path / "log"
    serving = serve(desk, "--activity-dir", str(folder))
    with service.client(desk) as client:
        client.call("press_key", key="shift")
        wait_lines(folder, 1)
        service.stop(desk.server_pid)
        try:
            assert client.try_call("press_key", key="shift").code == "desktop_not_responding"
            client.call("get_config")
            found = wait_lines(folder, 3)
            by_tool = {line["tool"]: line for line in found[1:]}
            assert by_tool["press_key"]["frame_missing"] in ("desktop_not_responding", "timeout"), found
            assert "frame_missing" not in by_tool["get_config"]
        finally:
            service.go_on(desk.server_pid)
        processes.wait_until(lambda: not client.try_call("press_key", key="shift").is_error, 20, "it goes on")
    command(desk, "stop", check=0)
    serving.wait(15)
    assert "frame" in lines(folder)[-1]


def test_a_private_desktop_of_an_mcp_process_is_logged_too(tmp_path):
    with Client(arguments=["--private", "800x600", "--activity-dir", str(tmp_path / "log")]) as client:
        client.call("move_cursor", x=10, y=10)
        [line] = wait_lines(tmp_path / "log", 1)
        assert jpeg_size(tmp_path / "log" / line["frame"]) == (800, 600)
        assert line["session_id"].startswith("mcp-")
