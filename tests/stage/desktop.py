"""Desktops to test on: one made by the driver, and one made without it."""

import os
import secrets
import subprocess
import tempfile
from pathlib import Path

from . import processes
from .program import deskhand


class Desktop:
    """A running desktop: its environment, and an end. Nothing of it outlives `close`."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="deskhand-test-", ignore_cleanup_errors=True)
        self.mark = processes.new_mark()
        self.env = {}
        self._started = []

    def start(self, command, **options):
        """Starts a program on this desktop."""
        env = options.pop("env", {})
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen(command, env={**self.env, **env}, **options)
        self._started.append(process)
        return process

    def run(self, *command, check=True):
        """Runs a short command on this desktop and returns its output."""
        done = subprocess.run(
            command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20
        )
        if check and done.returncode:
            raise AssertionError(f"{command}: {done.returncode}: {done.stderr}")
        return done.stdout

    @property
    def path(self):
        return Path(self.folder.name)

    def close(self):
        for process in reversed(self._started):
            processes.end(process)
        processes.kill_marked(self.mark)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class OwnDesktop(Desktop):
    """Xvfb, a window manager and the buses, started by the test: a desktop that the driver finds and does not own."""

    def __init__(self, size="1280x800", window_manager=True, bus=True, accessibility=True):
        """`window_manager` may be a command. Without `accessibility` nobody has asked for the accessibility bus yet."""
        super().__init__()
        try:
            self._make(size, window_manager, bus, accessibility)
        except BaseException:
            self.close()
            raise

    def _make(self, size, window_manager, bus, accessibility):
        self.env = processes.environment(self.folder.name, self.mark)
        authority = self.path / "authority"
        authority.touch(mode=0o600)
        cookie = secrets.token_hex(16)
        read, write = os.pipe()
        # Without -noreset it would throw out a program that is just connecting when the one before it leaves; the cookie
        # keeps other users out.
        self.start(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset", "-auth", str(authority)],
            pass_fds=[write],
        )
        self.server_pid = self._started[-1].pid
        # The server reads the file when its first client connects.
        os.close(write)
        with os.fdopen(read) as stream:
            number = stream.readline().strip()
        if not number:
            raise AssertionError("Xvfb did not start")
        self.env["DISPLAY"] = f":{number}"
        self.env["XAUTHORITY"] = str(authority)
        subprocess.run(
            ["xauth", "-f", str(authority), "add", f":{number}", ".", cookie],
            check=True, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        if bus:
            daemon = self.start(
                ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE
            )
            self.env["DBUS_SESSION_BUS_ADDRESS"] = daemon.stdout.readline().decode().strip()
        if bus and accessibility:
            self.run(
                "gdbus", "call", "--session", "--dest", "org.a11y.Bus", "--object-path", "/org/a11y/bus",
                "--method", "org.freedesktop.DBus.Properties.Set", "org.a11y.Status", "IsEnabled", "<true>",
            )
        self.env["QT_LINUX_ACCESSIBILITY_ALWAYS_ON"] = "1"
        self.env["GNOME_ACCESSIBILITY"] = "1"
        if window_manager:
            self.start(["openbox"] if window_manager is True else window_manager)
            processes.wait_until(
                lambda: "window id #" in self.run("xprop", "-root", "_NET_SUPPORTING_WM_CHECK", check=False),
                10, "openbox is there",
            )


class PrivateDesktop(Desktop):
    """A desktop that `deskhand desktop run` made. It lives until the program that it runs ends."""

    outlived = []

    def __init__(self, size="1280x800"):
        super().__init__()
        # The program says its environment and then waits for the end of its input.
        self.holder = subprocess.Popen(
            [deskhand(), "desktop", "run", "--size", size, "--", "sh", "-c", "env -0; printf '\\0\\0'; exec cat"],
            env=processes.environment(self.folder.name, self.mark),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        try:
            raw = b""
            while not raw.endswith(b"\0\0"):
                data = self.holder.stdout.read1(65536)
                if not data:
                    raise AssertionError(f"no private desktop: {self.holder.stderr.read().decode()}")
                raw += data
            pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if b"=" in entry)
            self.env = {name.decode(): value.decode() for name, _, value in pairs}
        except BaseException:
            self.close()
            raise

    def close(self):
        for process in reversed(self._started):
            processes.end(process)
        self._started.clear()
        self.holder.stdin.close()
        try:
            self.holder.wait(10)
            processes.wait_until(lambda: not processes.marked(self.mark), 3, "the desktop's programs end")
        except (subprocess.TimeoutExpired, AssertionError):
            self.outlived.extend(processes.marked(self.mark).values())
        processes.end(self.holder)
        super().close()
