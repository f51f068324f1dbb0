"""Processes of a test: marked in their environment, so that what is left behind can be found."""

import os
import signal
import time
import uuid
from pathlib import Path

MARK = "DESKHAND_TEST_MARK"

# Variables of whoever runs the tests that would lead a program to their desktop, or change what it does.
FOREIGN = (
    "ACPMUX_HOME",
    "AT_SPI_BUS_ADDRESS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GNOME_ACCESSIBILITY",
    "GTK_MODULES",
    "NO_AT_BRIDGE",
    "QT_ACCESSIBILITY",
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON",
    "SESSION_MANAGER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
)


def new_mark():
    return uuid.uuid4().hex


def environment(folder, mark, **more):
    """A clean environment with its home and runtime folders under `folder`."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in FOREIGN and not name.startswith(("XDG_", "DESKHAND_", "PYTHON", "VIRTUAL_ENV"))
    }
    home = Path(folder) / "home"
    runtime = Path(folder) / "run"
    for made in (home, runtime):
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
    clean.update(HOME=str(home), XDG_RUNTIME_DIR=str(runtime), LANG="C.UTF-8", LC_ALL="C.UTF-8")
    clean[MARK] = mark
    clean.update(more)
    return clean


def environment_of(pid):
    """The environment a running process was started with; empty if it is gone."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if b"=" in entry)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}


def all_pids():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def alive(pid):
    """Whether the process exists and is no zombie."""
    return state(pid) not in ("Z", "X", "")


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def parent(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def resident_bytes(pid):
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def descendants(pid):
    """All processes below `pid`, nearest first."""
    parents = {child: parent(child) for child in all_pids()}
    found, front = [], [pid]
    while front:
        front = [child for child, its_parent in parents.items() if its_parent in front]
        found += front
    return found


def marked(mark):
    """Living processes that carry the mark: `{pid: command line}`."""
    found = {}
    for pid in all_pids():
        if environment_of(pid).get(MARK) == mark and alive(pid):
            found[pid] = command(pid)
    return found


def wait_until(condition, timeout, what):
    """Waits for a fact about the system that nothing announces; fails with `what`."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what() if callable(what) else what}")
        time.sleep(0.01)


def end(process, grace=3.0):
    """Ends a child of ours: asks, waits, kills."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace)
        except Exception:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            try:
                stream.close()
            except OSError:
                pass


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_marked(mark):
    """Kills what still carries the mark (each by its id); returns what that was."""
    left = marked(mark)
    for pid in left:
        kill(pid)
    return left


def socket_paths(pid):
    """Files of the sockets that a process holds."""
    held = set()
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            held.add(os.readlink(entry).removeprefix("socket:[").removesuffix("]"))
    except OSError:
        pass
    lines = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return [fields[7] for fields in lines if len(fields) > 7 and fields[6] in held and fields[7].startswith("/")]
