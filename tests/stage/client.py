"""A client that speaks MCP by hand, line by line: it can send what an SDK refuses to."""

import base64
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

from . import processes
from .program import deskhand

LATEST_BY_HANDSHAKE = "2025-11-25"


class ToolError(AssertionError):
    """A tool answered with an error where the test expected none."""

    def __init__(self, tool, answer):
        super().__init__(f"{tool}: {answer.structured or answer.text}")
        self.answer = answer
        self.code = answer.code


class Answer:
    """What a tool call was answered with."""

    def __init__(self, message):
        self.message = message
        self.protocol_error = message.get("error")
        result = message.get("result") or {}
        self.is_error = bool(result.get("isError")) or self.protocol_error is not None
        self.structured = result.get("structuredContent") or {}
        content = result.get("content") or []
        self.text = "\n".join(block["text"] for block in content if block["type"] == "text")
        self.images = [base64.b64decode(block["data"]) for block in content if block["type"] == "image"]
        self.mimes = [block["mimeType"] for block in content if block["type"] == "image"]

    def __getitem__(self, key):
        return self.structured[key]

    @property
    def code(self):
        return self.structured.get("code")

    @property
    def error_message(self):
        if self.protocol_error:
            return self.protocol_error.get("message", "")
        return self.structured.get("message", self.text)

    @property
    def elements(self):
        return outline(self.text)


class Element:
    """One line of an outline: `[12] button "Save" focused`."""

    START = re.compile(r"^( *)\[(\d+)\] (.*)$")
    NAME = re.compile(r' "((?:[^"\\]|\\.)*)"')
    # What can stand where a role without a name ends.
    AFTER_ROLE = re.compile(
        r" (?:focused|checked|unchecked|mixed|pressed|selected|expanded|collapsed|disabled|read-only|required|invalid"
        r"|busy|modal|value=|text=|selection=|actions=|@|\(|…)"
    )

    def __init__(self, match):
        self.depth = len(match[1])
        self.index = int(match[2])
        self.line = match[3]
        state = self.AFTER_ROLE.search(self.line)
        name = self.NAME.search(self.line)
        if name and not (state and state.start() < name.start()):
            self.role, self.name, self.rest = self.line[: name.start()], name[1], self.line[name.end() :].strip()
        elif state:
            self.role, self.name, self.rest = self.line[: state.start()], "", self.line[state.start() :].strip()
        else:
            self.role, self.name, self.rest = self.line, "", ""

    @property
    def words(self):
        """The states, as words."""
        return self.rest.split()

    def __repr__(self):
        return f"[{self.index}] {self.line}"


def outline(text):
    return [Element(match) for match in map(Element.START.match, text.splitlines()) if match]


class Client:
    """One `deskhand mcp` process and a reader of its answers. `desktop=None` gives it a private desktop of its own."""

    def __init__(self, desktop=None, arguments=None, initialize=True, command=None, env=None, size="1280x800"):
        self._folder = None
        if desktop is None:
            self._folder = tempfile.TemporaryDirectory(prefix="deskhand-test-", ignore_cleanup_errors=True)
            self.mark = processes.new_mark()
            base = processes.environment(self._folder.name, self.mark)
            given = ["--private", size] if arguments is None else arguments
        else:
            self.mark = desktop.mark
            base = desktop.env
            given = [] if arguments is None else arguments
        self.process = subprocess.Popen(
            command or [deskhand(), "mcp", *given], env=base if env is None else env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.pid = self.process.pid
        self.errors = b""
        self.received_bytes = 0
        self._next = 0
        self._answers = {}
        self._arrived = {}
        self.order = []
        self.stray = []
        self._closed = False
        self._lock = threading.Lock()
        self._new = threading.Condition(self._lock)
        self._threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._drain, daemon=True)]
        for thread in self._threads:
            thread.start()
        self.server = None
        if initialize:
            self.server = self.initialize()

    # Lines

    def _read(self):
        for line in self.process.stdout:
            now = time.monotonic()
            with self._new:
                self.received_bytes += len(line)
                try:
                    message = json.loads(line)
                except ValueError:
                    message = {"not_json": line}
                if "id" in message and "method" not in message and message["id"] is not None:
                    self._answers[message["id"]] = message
                    self._arrived[message["id"]] = now
                    self.order.append(message["id"])
                else:
                    self.stray.append(message)
                self._new.notify_all()
        with self._new:
            self._closed = True
            self._new.notify_all()

    def _drain(self):
        for line in self.process.stderr:
            self.errors += line

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_line(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def request_line(self, method, params=None):
        """A request as bytes, and its id: for bursts that go out in one write."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method}
        if params is not None:
            message["params"] = params
        return self._next, json.dumps(message).encode() + b"\n"

    def tool_line(self, tool, **arguments):
        return self.request_line("tools/call", {"name": tool, "arguments": arguments})

    # Requests

    def send(self, method, params=None):
        number, line = self.request_line(method, params)
        self.send_bytes(line)
        return number

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send_line(message)

    def wait(self, number, timeout=40):
        """The answer to request `number`."""
        end = time.monotonic() + timeout
        with self._new:
            while number not in self._answers:
                left = end - time.monotonic()
                if left <= 0 or self._closed:
                    raise AssertionError(f"no answer to {number}; stderr: {self.errors[-2000:].decode(errors='replace')}")
                self._new.wait(left)
            return self._answers.pop(number)

    def arrived(self, number):
        """When the answer arrived, on the monotonic clock."""
        return self._arrived[number]

    def answered(self, number):
        with self._lock:
            return number in self._answers

    def wait_stray(self, condition, timeout=10):
        """The first message without a request's id that fulfils the condition."""
        end = time.monotonic() + timeout
        with self._new:
            while True:
                for message in self.stray:
                    if condition(message):
                        return message
                left = end - time.monotonic()
                if left <= 0 or self._closed:
                    raise AssertionError(f"no such message; strays: {self.stray[-5:]}")
                self._new.wait(left)

    def request(self, method, params=None, timeout=40):
        return self.wait(self.send(method, params), timeout)

    def initialize(self, version=LATEST_BY_HANDSHAKE):
        answer = self.request(
            "initialize",
            {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "acceptance", "version": "1"}},
        )
        if "result" not in answer:
            raise AssertionError(f"initialize: {answer}")
        self.notify("notifications/initialized")
        return answer["result"]

    # Tools

    def start(self, tool, **arguments):
        """Sends a tool call and returns its number at once."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def finish(self, number, timeout=40):
        return Answer(self.wait(number, timeout))

    def try_call(self, tool, timeout=40, **arguments):
        """Calls a tool; an error is an answer like others."""
        return self.finish(self.start(tool, **arguments), timeout)

    def call(self, tool, timeout=40, **arguments):
        """Calls a tool that must succeed."""
        answer = self.try_call(tool, timeout, **arguments)
        if answer.is_error:
            raise ToolError(tool, answer)
        return answer

    def timed(self, tool, **arguments):
        start = time.monotonic()
        answer = self.call(tool, **arguments)
        return answer, time.monotonic() - start

    # What tests ask again and again

    def windows(self):
        return self.call("list_windows")["windows"]

    def window(self, title=None, pid=None, app=None, timeout=20):
        """The window with that title (a part of it), waiting for it to open."""

        def find():
            for window in self.windows():
                if (
                    (title is None or title in window["title"])
                    and (pid is None or window["pid"] == pid)
                    and (app is None or app.lower() in (window["app"] or "").lower())
                    and window.get("kind", "normal") in ("normal", "dialog")
                ):
                    return window
            return None

        return processes.wait_until(find, timeout, lambda: f"window {title or pid or app}; there are {self.windows()}")

    def tree(self, window, **arguments):
        arguments.setdefault("capture_mode", "ax")
        return self.call("get_window_state", window_id=window["window_id"], **arguments)

    def element(self, window, role=None, name=None, contains=None, timeout=10, **arguments):
        """The first element of that role and name in a new snapshot, waiting for it to be there."""

        def find():
            answer = self.tree(window, **arguments)
            for element in answer.elements:
                if (
                    (role is None or element.role == role)
                    and (name is None or element.name == name)
                    and (contains is None or contains in element.line)
                ):
                    element.snapshot = answer["snapshot_id"]
                    return element
            find.last = answer.text
            return None

        return processes.wait_until(
            find, timeout, lambda: f"element {role} {name!r}; the tree was:\n{getattr(find, 'last', '')}"
        )

    # The end

    def close_input(self):
        self.process.stdin.close()

    def wait_exit(self, timeout=5):
        return self.process.wait(timeout)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        processes.end(self.process)
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
