"""The service: what its socket says, and commands about it."""

import json
import os
import signal
import socket
import subprocess
import threading

from . import processes
from .client import Client
from .program import deskhand

def shared(desktop, **more):
    """The desktop's environment, changed."""
    return {**desktop.env, **more}


def command(desktop, *arguments, env=None, check=None, timeout=30, program=None):
    """Runs a command to its end. `check`: the exit code that it must have."""
    done = subprocess.run(
        [program or deskhand(), *arguments], env=shared(desktop) if env is None else env,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
    )
    if check is not None and done.returncode != check:
        raise AssertionError(f"{arguments}: {done.returncode}: {done.stdout} {done.stderr}")
    return done


def status(desktop, **options):
    """What `deskhand status --json` says; `None` if no service runs."""
    done = command(desktop, "status", "--json", **options)
    answer = json.loads(done.stdout)
    assert done.returncode == (0 if answer["running"] else 3), done.stderr
    return answer if answer["running"] else None


def client(desktop, *arguments, env=None, **options):
    """A client that shares the desktop's service."""
    return Client(desktop, arguments=list(arguments), env=shared(desktop) if env is None else env, **options)


def serve(desktop, *arguments, program=None, env=None):
    """`deskhand serve`, once it answers."""
    env = shared(desktop) if env is None else env
    process = desktop.start(
        [program or deskhand(), "serve", *arguments], env=env, stderr=subprocess.PIPE
    )
    process.lines = []
    threading.Thread(target=lambda: process.lines.extend(process.stderr), daemon=True).start()
    where = [arguments[arguments.index("--socket") + 1]] if "--socket" in arguments else []
    look = ["--socket", *where] if where else []

    def answers():
        assert process.poll() is None, b"".join(process.lines).decode()
        done = command(desktop, "status", "--json", *look, env=env)
        return done.returncode == 0 and json.loads(done.stdout)["pid"] == process.pid

    processes.wait_until(answers, 15, "the service answers")
    return process


def gone(pid, seconds=5):
    processes.wait_until(lambda: not processes.alive(pid), seconds, f"process {pid} has ended")


def wait_no_service(desktop, seconds=5):
    processes.wait_until(lambda: status(desktop) is None, seconds, lambda: f"no service; {status(desktop)}")


class Wire:
    """One connection to a service's socket, as a program in another language would make it."""

    def __init__(self, path, timeout=20):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")
        self._next = 0

    def send(self, method, session=None, **parameters):
        self._next += 1
        request = {"id": self._next, "method": method, **parameters}
        if session is not None:
            request["session_id"] = session
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        return self._next

    def line(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def ask(self, method, session=None, **parameters):
        number = self.send(method, session, **parameters)
        while True:
            answer = self.line()
            if answer is None:
                raise AssertionError(f"{method}: the connection ended")
            if answer["id"] == number and "progress" not in answer:
                return answer

    def call(self, tool, session=None, **arguments):
        return self.ask("call", session, tool=tool, arguments=arguments)

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def stop(process):
    os.kill(process if isinstance(process, int) else process.pid, signal.SIGSTOP)


def go_on(process):
    os.kill(process if isinstance(process, int) else process.pid, signal.SIGCONT)
