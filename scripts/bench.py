"""Measures MCP servers on a private desktop. Numbers are of this machine, now: compare rows of one run only."""

import argparse
import json
import os
import re
import shlex
import statistics
import sys
import tempfile
import time
from pathlib import Path

from stage import processes, service
from stage.application import Fixture, calc, chromium, end_office
from stage.client import Client
from stage.desktop import PrivateDesktop

LINKS = "<!doctype html><title>Many links</title>" + "".join(
    f"<p><a href='#{number}'>Link number {number}</a>" for number in range(1000)
)
HUNDRED = "The quick brown fox jumps over the lazy dog and then goes home to sleep for a while, as foxes do...."


class NotOffered(Exception):
    """The server has no such tool."""


class Server:
    """One server: how to start it, and how its tools are called."""

    def __init__(self, name, desktop, command=None):
        self.name = name
        self.desktop = desktop
        self.command = command
        self.properties = {}
        with self.connect() as client:
            for tool in client.request("tools/list", timeout=60)["result"]["tools"]:
                self.properties[tool["name"]] = set(tool.get("inputSchema", {}).get("properties", {}))
        self.hidden = command is None

    def connect(self):
        """A client; deskhand's shares a service that it starts if there is none, and that ends with its last client."""
        return Client(self.desktop, command=self.command)

    def connect_alone(self):
        """A client whose process owns the desktop itself."""
        if not self.hidden:
            raise NotOffered("processes that share a desktop")
        return Client(self.desktop, arguments=["--no-daemon-relaunch"])

    def arguments(self, tool, window=None, **wanted):
        """Arguments as far as the tool takes them; a window goes by id, pid or both."""
        if tool not in self.properties and not self.hidden:
            raise NotOffered(tool)
        if window is not None:
            wanted = {"window_id": window["window_id"], "pid": window["pid"], **wanted}
            if self.hidden:
                del wanted["pid"]
        known = self.properties.get(tool)
        return {name: value for name, value in wanted.items() if known is None or name in known}

    def call(self, client, tool, window=None, **wanted):
        """One call: seconds, bytes of the answer, the answer. A refusal counts as not offered."""
        arguments = self.arguments(tool, window, **wanted)
        before = client.received_bytes
        start = time.monotonic()
        answer = client.try_call(tool, timeout=60, **arguments)
        seconds = time.monotonic() - start
        if answer.is_error:
            raise NotOffered(f"{tool}: {answer.error_message[:100]}")
        return seconds, client.received_bytes - before, answer


class Bench:
    """The desktop, its applications and the rows of the table."""

    def __init__(self, desktop, servers, folder, options):
        self.desktop = desktop
        self.servers = servers
        self.folder = folder
        self.options = options
        self.found = {}
        self.office = None

    # Applications are started once and found by our own list of windows, for all servers.

    def open(self, title, command, timeout=60):
        if title not in self.found:
            process = self.desktop.start(command)
            if "soffice" in command:
                self.office = process
            with Client(self.desktop) as client:
                window = client.window(title=title, timeout=timeout)
                # Let it finish drawing and publishing: the tree stands still over two readings.
                sizes = []
                processes.wait_until(
                    lambda: (sizes.append(client.tree(window)["element_count"]), len(sizes) > 3 and len(set(sizes[-3:])) == 1)[1],
                    30, "the tree stands still",
                )
            self.found[title] = window
        return self.found[title]

    def fixture(self, toolkit, page, title, **options):
        if title not in self.found:
            fixture = Fixture(self.desktop, toolkit, page, title=title, **options)
            with Client(self.desktop) as client:
                self.found[title] = client.window(title=title)
        return self.found[title]

    def window(self, name):
        if name == "Mousepad":
            return self.open("Mousepad", ["mousepad"])
        if name == "galculator":
            return self.open("galculator", ["galculator"])
        if name == "1,000 links":
            page = self.folder / "links.html"
            page.write_text(LINKS)
            return self.open("Many links", chromium(self.folder / "profile", page.as_uri()))
        if name == "Qt 5, 100 buttons":
            return self.fixture("qt5", "many", "Qt window", count=100, size="900,500")
        if name == "xterm":
            return self.open("xterm", ["xterm", "-T", "xterm"])
        if name == "Calc":
            return self.open("LibreOffice Calc", calc(self.folder / "office"), timeout=120)
        raise AssertionError(name)

    # Rows: each gives a list of (seconds, bytes)

    def initialize(self, connect):
        for _ in range(15):
            start = time.monotonic()
            with connect() as client:
                yield time.monotonic() - start, client.received_bytes

    def initialize_alone(self, server):
        yield from self.initialize(server.connect_alone if server.hidden else server.connect)

    def initialize_launching(self, server):
        for _ in range(8):
            processes.wait_until(lambda: service.status(self.desktop) is None, 10, "the last service has ended")
            start = time.monotonic()
            with server.connect() as client:
                yield time.monotonic() - start, client.received_bytes

    def initialize_shared(self, server):
        with server.connect():
            yield from self.initialize(server.connect)

    def through_the_proxy(self, tool, times, **arguments):
        """By how much a call takes longer, each with its answer's bytes: median against median."""
        def row(server):
            medians = []
            for connect in (server.connect_alone, server.connect):
                with connect() as client:
                    taken = [server.call(client, tool, **arguments)[:2] for _ in range(times)]
                    medians.append(statistics.median(seconds for seconds, _ in taken))
                    size = taken[-1][1]
            yield medians[1] - medians[0], size

        return row

    def tool_list(self, server):
        with server.connect() as client:
            for _ in range(15):
                before, start = client.received_bytes, time.monotonic()
                client.request("tools/list")
                yield time.monotonic() - start, client.received_bytes - before

    def tree_cold(self, name):
        def row(server):
            window = self.window(name)
            other = self.window("xterm" if name != "xterm" else "Mousepad")
            for _ in range(5):
                with server.connect() as client:
                    # Connecting to display and bus is not what this row is about: nothing of this application is known.
                    server.call(client, "get_window_state", other, capture_mode="ax")
                    yield server.call(client, "get_window_state", window, capture_mode="ax")[:2]

        return row

    def tree_warm(self, name):
        def row(server):
            window = self.window(name)
            with server.connect() as client:
                server.call(client, "get_window_state", window, capture_mode="ax")
                for _ in range(20):
                    yield server.call(client, "get_window_state", window, capture_mode="ax")[:2]

        return row

    def picture(self, kind):
        def row(server):
            with server.connect() as client:
                server.call(client, "screenshot", format=kind)
                for _ in range(15):
                    yield server.call(client, "screenshot", format=kind)[:2]

        return row

    def check_box(self):
        """A window with a check box, whose state shows that it was clicked, and the middle of the box on the screen."""
        window = self.fixture("gtk3", "widgets", "Boxes", at="700,100", size="300,600")
        with Client(self.desktop) as client:
            answer = client.call("get_window_state", window_id=window["window_id"], capture_mode="ax", frames=True)
        line = next(element.line for element in answer.elements if element.name == "Send news")
        x, y, width, height = (int(number) for number in re.search(r"@(-?\d+),(-?\d+) (\d+)x(\d+)", line).groups())
        return window, (x + width // 2, y + height // 2)

    def click_point(self, server):
        window, (x, y) = self.check_box()
        with server.connect() as client:
            for _ in range(15):
                yield server.call(client, "click", window, x=x, y=y, space="screen")[:2]

    def click_unwatched(self, server):
        """The same without the agent cursor, which is on otherwise: nobody should wait for it."""
        window, (x, y) = self.check_box()
        with server.connect() as client:
            server.call(client, "set_agent_cursor_enabled", enabled=False)
            for _ in range(15):
                yield server.call(client, "click", window, x=x, y=y, space="screen")[:2]

    def click_element(self, server):
        window, _ = self.check_box()
        with server.connect() as client:
            answer = server.call(client, "get_window_state", window, capture_mode="ax")[2]
            box = next((element for element in answer.elements if element.name == "Send news"), None)
            if box is None:
                raise NotOffered("its tree is no outline that this benchmark can read")
            for _ in range(15):
                yield server.call(client, "click", window, element_index=box.index)[:2]

    def click_unseen(self, server):
        """A button that changes nothing that could be read back."""
        window = self.fixture("gtk3", "grid", "Grid", at="300,500", size="300,200")
        with server.connect() as client:
            answer = server.call(client, "get_window_state", window, capture_mode="ax")[2]
            button = next((element for element in answer.elements if element.name == "R1C1"), None)
            if button is None:
                raise NotOffered("its tree is no outline that this benchmark can read")
            for _ in range(15):
                yield server.call(client, "click", window, element_index=button.index)[:2]

    def hundred_characters(self, delivery):
        def row(server):
            window = self.fixture("gtk3", "pad", "Pad", at="100,500", size="400,200")
            with server.connect() as client:
                answer = server.call(client, "get_window_state", window, capture_mode="ax")[2]
                field = next((element for element in answer.elements if element.role in ("text", "entry")), None)
                if field is None:
                    raise NotOffered("its tree is no outline that this benchmark can read")
                for _ in range(8):
                    yield server.call(
                        client, "type_text", window, element_index=field.index, text=HUNDRED, delivery=delivery
                    )[:2]

        return row

    def recorded(self, prepare):
        """What a call takes while its session is recorded; the remark compares it with another session's, in turns."""
        def row(server):
            with server.connect() as plain, server.connect() as filmed, tempfile.TemporaryDirectory() as folder:
                calls = [prepare(server, client) for client in (plain, filmed)]
                server.call(filmed, "start_recording", output_dir=str(Path(folder) / "recording"))
                taken = [[], []]
                for _ in range(12):
                    for times, (tool, window, wanted) in zip(taken, calls):
                        client = filmed if times is taken[1] else plain
                        times.append(server.call(client, tool, window, **wanted)[:2])
                        # An agent thinks between calls: the picture from after one is taken and written by then, or it would be
                        # in the way of the session that is not recorded as well.
                        time.sleep(0.7)
                server.call(filmed, "stop_recording")
                without, with_it = (statistics.median(seconds for seconds, _ in times) for times in taken)
                self.remark(server, f"{100 * (with_it / without - 1):+.0f} % to {1000 * without:.1f} ms without a recording")
                yield from taken[1]

        return row

    def click_box(self, server, client):
        window, _ = self.check_box()
        answer = server.call(client, "get_window_state", window, capture_mode="ax")[2]
        box = next(element for element in answer.elements if element.name == "Send news")
        return "click", window, {"element_index": box.index}

    def click_there(self, server, client):
        window, (x, y) = self.check_box()
        return "click", window, {"x": x, "y": y, "space": "screen"}

    def type_hundred(self, server, client):
        window = self.fixture("gtk3", "pad", "Pad", at="100,500", size="400,200")
        answer = server.call(client, "get_window_state", window, capture_mode="ax")[2]
        field = next(element for element in answer.elements if element.role in ("text", "entry"))
        return "type_text", window, {"element_index": field.index, "text": HUNDRED, "delivery": "foreground"}

    def eight_clients(self, server):
        """One value: the whole of it."""
        window = self.fixture("gtk3", "grid", "Grid", at="300,500", size="300,200")
        clients = [server.connect() for _ in range(8)]
        try:
            # Some servers take a tree of each session before they let it act.
            for client in clients:
                server.call(client, "get_window_state", window, capture_mode="ax")
            kinds = [
                ("list_windows", {}, None), ("get_window_state", {"capture_mode": "ax"}, window),
                ("get_cursor_position", {}, None), ("get_screen_size", {}, None), ("move_cursor", {"x": 5, "y": 5}, None),
            ]
            sent, failed, before = [], 0, sum(client.received_bytes for client in clients)
            start = time.monotonic()
            for client in clients:
                burst = b""
                for place in range(50):
                    tool, wanted, of = kinds[place % len(kinds)]
                    number, line = client.tool_line(tool, **server.arguments(tool, of, **wanted))
                    sent.append((client, number))
                    burst += line
                client.send_bytes(burst)
            for client, number in sent:
                failed += client.finish(number, timeout=120).is_error
            seconds = time.monotonic() - start
            self.remark(server, f"{len(sent) / seconds:.0f} calls/s, {failed} of {len(sent)} failed")
            yield seconds, sum(client.received_bytes for client in clients) - before
        finally:
            for client in clients:
                client.close()

    def idle(self, server):
        """One value: CPU seconds used while nothing was asked."""
        with server.connect() as client:
            server.call(client, "list_windows")
            server.call(client, "get_window_state", self.window("Mousepad"), capture_mode="ax")
            time.sleep(2)
            owner = service.status(self.desktop)["pid"] if server.hidden else client.pid
            ours = [*{client.pid, owner, *processes.descendants(client.pid), *processes.descendants(owner)}]
            before = used(ours)
            time.sleep(self.options.idle_seconds)
            after = used(ours)
            # A thread of a pool may end meanwhile, and is then left out.
            cpu = sum(after[thread][0] - before.get(thread, (0, 0))[0] for thread in after)
            wakes = sum(after[thread][1] - before.get(thread, (0, 0))[1] for thread in after)
            resident = sum(processes.resident_bytes(pid) for pid in ours)
            if server.hidden:
                parts = [processes.resident_bytes(pid) / 1e6 for pid in (owner, client.pid)]
                self.remark(server, f"service {parts[0]:.1f} MB RSS, proxy {parts[1]:.1f} MB RSS")
            self.remark(
                server,
                f"{100 * cpu / self.options.idle_seconds:.2f} % CPU, {wakes} wake-ups in {self.options.idle_seconds} s, "
                f"{resident / 1e6:.0f} MB RSS in {len(ours)} processes",
            )
            yield cpu, 0

    def remark(self, server, text):
        self.remarks.append(f"{server.name}: {text}")

    def rows(self):
        yield "initialize, in-process", "15", self.initialize_alone
        yield "initialize, proxy", "15", self.initialize_shared
        yield "initialize, proxy that launches", "150", self.initialize_launching
        yield "tools/list", "24 KB", self.tool_list
        for name, cold, warm in (
            ("Mousepad", "25", "5"), ("galculator", "8", "5"), ("1,000 links", "200", "40"),
            ("Qt 5, 100 buttons", "40", ""), ("xterm", "5", "5"), ("Calc", "500", ""),
        ):
            yield f"tree cold: {name}", cold, self.tree_cold(name)
            yield f"tree warm: {name}", warm, self.tree_warm(name)
        yield "picture of the desktop, PNG", "40", self.picture("png")
        yield "picture of the desktop, JPEG", "20", self.picture("jpeg")
        yield "click at a point", "5 + hold", self.click_point
        yield "click at a point, no agent cursor", "5 + hold", self.click_unwatched
        yield "click on an element", "5", self.click_element
        yield "click on a button without an effect", "", self.click_unseen
        yield "100 characters, auto", "", self.hundred_characters("auto")
        yield "100 characters, real keys", "", self.hundred_characters("foreground")
        yield "proxy: what it adds to a call", "0.3", self.through_the_proxy("get_cursor_position", 200)
        yield "proxy: what it adds to a picture", "2", self.through_the_proxy("screenshot", 20, max_image_dimension=1920)
        yield "recorded: click on an element", "+20 %", self.recorded(self.click_box)
        yield "recorded: click at a point", "+20 %", self.recorded(self.click_there)
        yield "recorded: 100 characters", "+20 %", self.recorded(self.type_hundred)
        yield "8 clients x 50 calls", "150 calls/s", self.eight_clients
        yield "idle", "0.1 %, 20+8 MB", self.idle

    def run(self):
        headings = "".join(f" {server.name[:14]:>14} {'p95':>8} {'bytes':>9}" for server in self.servers)
        print(f"{'work':<38} {'bar':>12}{headings}", flush=True)
        for name, bar, row in self.rows():
            if self.options.only and not any(word in name for word in self.options.only):
                continue
            self.remarks = []
            line = f"{name:<38} {bar:>12}"
            for server in self.servers:
                try:
                    values = list(row(server))
                except (NotOffered, AssertionError) as error:
                    line += f" {'-':>14} {'':>8} {'':>9}"
                    self.remarks.append(f"{server.name}: {str(error)[:160]}")
                    continue
                times = sorted(seconds * 1000 for seconds, _ in values)
                p95 = times[min(len(times) - 1, round(0.95 * (len(times) - 1)))]
                size = statistics.median(size for _, size in values)
                line += f" {statistics.median(times):>11.1f} ms {p95:>8.1f} {size:>9.0f}"
            print(line, flush=True)
            for remark in self.remarks:
                print(f"    {remark}", flush=True)


def used(pids):
    """CPU seconds and voluntary context switches of each thread of the processes."""
    threads = {}
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                status = (task / "status").read_text()
            except OSError:
                continue
            cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            threads[task.name] = cpu, int(status.partition("voluntary_ctxt_switches:")[2].split()[0])
    return threads


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="rows whose name contains one of these words")
    parser.add_argument("--vs", metavar="COMMAND", help="command line of another MCP server on stdio")
    parser.add_argument("--size", default="1920x1080", help="of the private desktop")
    parser.add_argument("--idle-seconds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-", ignore_cleanup_errors=True) as folder, \
            PrivateDesktop(size=options.size) as desktop:
        servers = [Server("deskhand", desktop)]
        if options.vs:
            command = shlex.split(options.vs)
            servers.append(Server(Path(command[0]).name, desktop, command))
        print(json.dumps({"processors": os.cpu_count(), "load": os.getloadavg()[0], "size": options.size}))
        bench = Bench(desktop, servers, Path(folder), options)
        try:
            bench.run()
        finally:
            if bench.office is not None:
                end_office(desktop, bench.office)
    if PrivateDesktop.outlived:
        sys.exit(f"left behind: {PrivateDesktop.outlived}")


main()
