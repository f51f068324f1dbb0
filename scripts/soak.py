"""Long runs of what the tests of the service sample: races, kills, and many clients. See `scripts/soak --help`."""

import argparse
import concurrent.futures
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stage import processes, service
from stage.desktop import OwnDesktop
from stage.program import deskhand
from stage.service import Wire, client, gone, serve, status


def services(desk):
    return [pid for pid, line in processes.marked(desk.mark).items() if " serve" in line]


def end_all(desk):
    for pid in services(desk):
        processes.kill(pid)
        gone(pid)


def start_together(desk, number, **options):
    """Clients that start at the same moment; all of them must be welcomed."""
    with concurrent.futures.ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda _: client(desk, **options), range(number)))


def one_service(desk, clients):
    running = status(desk)
    assert len(running["sessions"]) == len(clients), running
    assert services(desk) == [running["pid"]], (services(desk), running["pid"])
    for one in clients:
        assert "windows" in one.call("list_windows").structured
    return running["pid"]


def race(desk, number, rounds):
    for turn in range(rounds):
        clients = start_together(desk, number)
        pid = one_service(desk, clients)
        for one in clients:
            one.kill() if turn % 2 else one.close()
        gone(pid)
        report(turn + 1, rounds)


def stale(desk, rounds):
    """As `race`, where the last service was killed and left its socket."""
    for turn in range(rounds):
        clients = start_together(desk, 2)
        processes.kill(one_service(desk, clients))
        for one in clients:
            one.kill()
        report(turn + 1, rounds)


def killed_starts(desk, rounds):
    """Services that are killed at a random moment of their start: the clients get another one, or say why not."""
    for turn in range(rounds):
        starting = [
            subprocess.Popen(
                [deskhand(), "mcp"], env=service.shared(desk), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        time.sleep(random.uniform(0, 0.15))
        for pid in services(desk):
            processes.kill(pid)
        with client(desk) as one:
            one_pid = status(desk)["pid"]
            assert "windows" in one.call("list_windows").structured
            assert services(desk) == [one_pid]
        for process in starting:
            processes.end(process)
        processes.wait_until(lambda: not services(desk), 15, lambda: f"left: {services(desk)}")
        report(turn + 1, rounds)


def stopped(desk, rounds):
    """A holder that is stopped while others start is waited for, and serves them when it goes on."""
    for turn in range(rounds):
        with client(desk):
            pid = status(desk)["pid"]
            service.stop(pid)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                waiting = [pool.submit(client, desk) for _ in range(2)]
                time.sleep(random.uniform(0.1, 2))
                assert services(desk) == [pid]
                service.go_on(pid)
                clients = [one.result() for one in waiting]
            assert status(desk)["pid"] == pid
            for one in clients:
                one.close()
        gone(pid)
        report(turn + 1, rounds)


def replaced(desk, rounds):
    """The executable is replaced on disk while clients of it start: one build at a time, the other is refused by name."""
    with tempfile.TemporaryDirectory(prefix="deskhand-test-") as folder:
        path = Path(folder) / "deskhand"
        for turn in range(rounds):
            new = Path(folder) / "new"
            shutil.copy(deskhand(), new)
            with new.open("ab") as program:
                program.write(bytes([turn % 256]))
            os.replace(new, path)
            with client(desk, command=[str(path), "mcp"]) as one:
                pid = status(desk)["pid"]
                shutil.copy(deskhand(), new)
                with new.open("ab") as program:
                    program.write(bytes([turn % 256, 1]))
                os.replace(new, path)
                done = service.command(desk, "mcp", program=path)
                assert done.returncode == 1 and "build_conflict" in done.stderr, done.stderr
                assert "windows" in one.call("list_windows").structured and services(desk) == [pid]
            gone(pid)
            report(turn + 1, rounds)


def many_clients(desk, number, calls):
    """Mixed calls of many clients: none lost, none swapped, the slowest at most twice the median."""
    process = serve(desk)
    path = status(desk)["socket"]

    def work(index):
        session = f"soak-{index}"
        with Wire(path, timeout=120) as wire:
            wire.ask("hello", session=session, lease=True)
            wire.call("set_config", session=session, max_elements=1000 + index)
            begin = time.monotonic()
            for turn in range(calls):
                kind = turn % 4
                if kind == 0:
                    answer = wire.call("get_config", session=session)
                    assert answer["ok"]["structured"]["settings"]["max_elements"] == 1000 + index, answer
                elif kind == 1:
                    answer = wire.call("move_cursor", session=session, x=index, y=turn)
                    assert answer["ok"]["structured"]["effect"] == "confirmed", answer
                elif kind == 2:
                    assert "windows" in wire.call("list_windows", session=session)["ok"]["structured"]
                else:
                    assert wire.call("screenshot", session=session, max_image_dimension=64)["ok"]["images"]
            return time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(number) as pool:
        taken = list(pool.map(work, range(number)))
    print(
        f"  {number} clients × {calls} calls: median {statistics.median(taken):.2f} s, slowest {max(taken):.2f} s, "
        f"{number * calls / max(taken):.0f} calls/s, {processes.resident_bytes(process.pid) / 1e6:.1f} MB"
    )
    assert max(taken) <= 2 * statistics.median(taken), taken
    service.command(desk, "stop", check=0)
    process.wait(10)


def leaving(desk, rounds):
    """Hosts that come and go at random, in every way; at the end nothing is left."""
    for turn in range(rounds):
        clients = start_together(desk, 3)
        for _ in range(6):
            one = clients.pop(random.randrange(len(clients)))
            if random.random() < 0.3:
                one.start("wait_for", condition="window_opens", title="never", timeout_ms=20_000)
            random.choice([one.close, one.kill, one.process.terminate])()
            if one.process.poll() is None:
                one.wait_exit(5)
            if random.random() < 0.5 or not clients:
                clients.append(client(desk))
        for one in clients:
            one.close()
        processes.wait_until(lambda: not services(desk), 10, lambda: f"left: {services(desk)}")
        runtime = Path(desk.env["XDG_RUNTIME_DIR"]) / "deskhand"
        assert not [path for path in runtime.iterdir() if path.is_socket()]
        report(turn + 1, rounds)


def report(done, rounds):
    if sys.stdout.isatty() or done == rounds:
        print(f"\r  {done} of {rounds}", end="\n" if done == rounds else "", flush=True)


RUNS = {
    "two": ("2 simultaneous starts", lambda desk, scale: race(desk, 2, scale(200))),
    "twenty": ("20 simultaneous starts", lambda desk, scale: race(desk, 20, scale(20))),
    "stale": ("starts beside a stale socket", lambda desk, scale: stale(desk, scale(50))),
    "killed": ("services killed in their start", lambda desk, scale: killed_starts(desk, scale(100))),
    "stopped": ("starts beside a stopped service", lambda desk, scale: stopped(desk, scale(20))),
    "replaced": ("the program replaced on disk", lambda desk, scale: replaced(desk, scale(20))),
    "leaving": ("clients that come and go", lambda desk, scale: leaving(desk, scale(50))),
    "clients": ("64 clients × 100 mixed calls", lambda desk, scale: many_clients(desk, 64, scale(100))),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", choices=[*RUNS, []], help="which (all)")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the rounds")
    arguments = parser.parse_args()
    for name in arguments.runs or RUNS:
        words, run = RUNS[name]
        print(f"{name}: {words}", flush=True)
        begin = time.monotonic()
        with OwnDesktop() as desk:
            try:
                run(desk, lambda rounds: max(1, round(rounds * arguments.scale)))
            finally:
                end_all(desk)
        print(f"  held, {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
