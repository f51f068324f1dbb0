"""Recordings: whose they are, what a crash leaves of them, what is never in them, and doing them again."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from stage import processes, service
from stage.application import Fixture, chromium
from stage.client import Client
from stage.desktop import OwnDesktop, PrivateDesktop
from stage.program import SYSTEM_PYTHON
from stage.service import command, serve, status


@pytest.fixture(scope="module")
def desk():
    """A desktop with a service that stays."""
    with OwnDesktop() as made:
        made.service = serve(made)
        yield made
        command(made, "stop")
        made.service.wait(15)


def turns(folder):
    """What the turns of a recording say, in order."""
    return [json.loads(path.read_text()) for path in sorted(Path(folder).glob("turn-*/action.json"))]


def trajectory(folder):
    return json.loads((Path(folder) / "trajectory.json").read_text())


def probe(video):
    """Frames and length of a video, as another program finds them."""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames,duration,width,height:packet=pts_time",
         "-show_packets", "-of", "json", str(video)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    [stream] = found["streams"]
    return {
        "frames": int(stream["nb_read_frames"]), "size": (stream["width"], stream["height"]),
        "last": max(float(packet["pts_time"]) for packet in found["packets"]),
        "errors": done.stderr,
    }


def encoders(mark):
    return [pid for pid, line in processes.marked(mark).items() if os.path.basename(line.split(" ")[0]) == "ffmpeg"]


def ended(client, reason, seconds=15):
    def state():
        [*_, last] = client.call("get_recording_state")["recordings"]
        return not last["running"] and last

    last = processes.wait_until(state, seconds, lambda: f"the end of {client.call('get_recording_state').structured}")
    assert last["reason"] == reason, last
    return last


def act(client, times=1):
    for _ in range(times):
        client.call("press_key", key="shift")


def holds(folder, text):
    """Files below the folder in which the text stands."""
    return [path for path in Path(folder).rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


# Whose it is


def test_each_session_records_for_itself_and_its_end_is_its_recording_s(desk, tmp_path):
    a, b = service.client(desk), service.client(desk)
    with b:
        with a:
            for client, name in ((a, "a"), (b, "b")):
                client.call("start_recording", output_dir=str(tmp_path / name), record_video=True)
            operator = command(desk, "call", "start_recording", json.dumps({"output_dir": str(tmp_path / "all")}), check=0)
            assert str(tmp_path / "all") in operator.stdout
            act(a, 2), act(b, 1)
            processes.wait_until(lambda: b.call("get_recording_state")["recordings"][0]["video"]["frames"] >= 3, 10, "frames")
            stopped = b.call("stop_recording")["recordings"]
            assert probe(tmp_path / "b" / "video.mp4")["frames"] == stopped[0]["video"]["frames"], "none is lost"
            assert [one["turns"] for one in stopped] == [1]
            assert b.call("stop_recording")["recordings"] == []
            act(a, 1), act(b, 1)
            assert a.call("get_recording_state")["recordings"][0]["running"]
            a.kill()
        processes.wait_until(lambda: trajectory(tmp_path / "a")["parts"][0].get("reason"), 10, "A's recording is finished")
        assert trajectory(tmp_path / "a")["parts"][0]["reason"] == "session_end"
        processes.wait_until(lambda: not encoders(desk.mark), 5, "no encoder is left")
        b.call("start_recording", output_dir=str(tmp_path / "b2"))
        act(b)
        everything = command(desk, "call", "stop_recording", check=0)
        assert str(tmp_path / "all") in everything.stdout and str(tmp_path / "b2") in everything.stdout
        assert ended(b, "operator_stop")["turns"] == 1
    assert len(turns(tmp_path / "a")) == 3 and len(turns(tmp_path / "b")) == 1
    labels = [turn["session"] for turn in turns(tmp_path / "all")]
    assert len(labels) == 6, labels
    for name in ("a", "b"):
        [part] = trajectory(tmp_path / name)["parts"]
        video = probe(tmp_path / name / part["video"]["file"])
        assert video["frames"] >= 3 and video["size"] == (1280, 800), video
        assert "whole of display" in part["video"]["scope"]


def test_a_recording_of_the_operator_keeps_a_managed_service(tmp_path):
    with OwnDesktop() as desktop:
        recording = lambda *arguments, **options: command(desktop, "recording", *arguments, **options)  # noqa: E731
        assert "no service" in recording("status", check=3).stderr
        started = recording("start", str(tmp_path / "r"), check=0).stdout
        assert "video.mp4" in started, started
        pid = status(desktop)["pid"]
        for _ in range(2):
            with service.client(desktop) as client:
                act(client)
        assert status(desktop)["pid"] == pid, "the same service"
        processes.wait_until(lambda: "2 turns" in recording("status", check=0).stdout, 10, "two turns")
        refused = recording("start", str(tmp_path / "other"), "--no-video", "--json", check=1)
        assert json.loads(refused.stdout)["code"] == "recording_active"
        [stopped] = json.loads(recording("stop", "--json", check=0).stdout)["recordings"]
        assert stopped["turns"] == 2 and stopped["reason"] == "operator_stop" and not stopped["running"]
        service.gone(pid, 10)
        assert "no service" in recording("stop", check=3).stderr
        assert len(turns(tmp_path / "r")) == 2 and not (tmp_path / "other").exists()
        assert probe(tmp_path / "r/video.mp4")["frames"] == stopped["video"]["frames"]


# Crashes


@pytest.mark.parametrize("victims", ["proxy", "service", "both"])
def test_what_is_killed_loses_a_second_of_video_at_most(tmp_path, victims):
    folder = tmp_path / "r"
    with OwnDesktop() as desktop:
        with service.client(desktop) as client:
            client.call("start_recording", output_dir=str(folder), record_video=True, fps=10)
            pid = status(desktop)["pid"]
            [encoder] = encoders(desktop.mark)
            act(client)
            processes.wait_until(lambda: turns(folder), 10, "the turn is written")
            # Something to film, until the end.
            desktop.start(["xterm", "-e", "sh", "-c", "while :; do date +%N; done"])
            frames = lambda: client.call("get_recording_state")["recordings"][0]["video"]["frames"]  # noqa: E731
            processes.wait_until(lambda: frames() >= 1, 20, "a frame")
            begun = time.time()  # the video is older than this
            processes.wait_until(lambda: frames() >= 20, 20, "frames")
            for pid_of in {"proxy": [client.pid], "service": [pid], "both": [client.pid, pid]}[victims]:
                os.kill(pid_of, signal.SIGKILL)
            lived = time.time() - begun
            service.gone(encoder, 10)
            if victims == "proxy":
                processes.wait_until(lambda: trajectory(folder)["parts"][0].get("reason") == "session_end", 10, "the end is noted")
        assert encoders(desktop.mark) == []
    video = probe(folder / "video.mp4")
    assert video["errors"] == ""
    # A second, and the frame that was being taken.
    assert video["last"] > lived - 1.5, (video, lived)
    assert len(turns(folder)) == 1
    assert all(path.name.startswith(".") for path in folder.iterdir() if path.name.endswith(".part"))


def test_a_turn_s_pictures_and_its_place(desk, tmp_path):
    """What is seen before a call is what was seen after the one before it, and where a call acts is written down."""
    folder = tmp_path / "r"
    with Fixture(desk, "gtk3", "widgets", title="Boxes", at="100,100", size="300,600"), Client(desk) as client:
        window = client.window(title="Boxes")
        box = client.element(window, name="Send news", frames=True)
        x, y, width, height = (int(part) for part in re.search(r"@(-?\d+),(-?\d+) (\d+)x(\d+)", box.line).groups())
        client.call("start_recording", output_dir=str(folder))
        for _ in range(5):
            answer = client.call("click", window_id=window["window_id"], element_index=box.index)
            assert answer["route"] == "ax_action" and answer["effect"] == "confirmed"
        written = lambda: client.call("get_recording_state")["recordings"][-1]["turns"]  # noqa: E731
        processes.wait_until(lambda: written() == 5, 10, "all turns are written")
        client.call("stop_recording")
        made = turns(folder)
        assert len(made) == 5
        for turn in made:
            [point] = turn["points"]
            assert x <= point["x"] < x + width and y <= point["y"] < y + height, (turn["points"], box.line)
        names = [sorted(folder.glob("turn-*"))[number] for number in range(5)]
        for earlier, later in zip(names, names[1:]):
            assert (earlier / "after.png").read_bytes() == (later / "before.png").read_bytes()
        last = Image.open(names[-1] / "after.png").convert("RGB")
        now = client.call("get_window_state", window_id=window["window_id"], capture_mode="vision")
        now = Image.open(io.BytesIO(now.images[0])).convert("RGB")
        # A box without its mark is white; the end of the toolkit's transition is a shade of its colour.
        furthest = max(most for _, most in ImageChops.difference(last, now).getextrema())
        assert furthest < 80, f"the application had drawn what the last call did: {furthest}"


# Secrets

FIELDS = {
    "gtk3": """
import gi; gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window = Gtk.Window(title="Passwords gtk3"); entry = Gtk.Entry(visibility=False, input_purpose=Gtk.InputPurpose.PASSWORD)
entry.get_accessible().set_name("Secret"); window.add(entry); window.show_all(); Gtk.main()
""",
    "gtk4": """
import gi; gi.require_version("Gtk", "4.0")
from gi.repository import Gtk, GLib
def show(app):
    window = Gtk.ApplicationWindow(application=app, title="Passwords gtk4"); entry = Gtk.PasswordEntry()
    entry.update_property([Gtk.AccessibleProperty.LABEL], ["Secret"]); window.set_child(entry); window.present()
app = Gtk.Application(); app.connect("activate", show); app.run()
""",
    "qt5": """
from PyQt5.QtWidgets import QApplication, QLineEdit
app = QApplication([]); entry = QLineEdit(); entry.setEchoMode(QLineEdit.Password); entry.setWindowTitle("Passwords qt5")
entry.setAccessibleName("Secret"); entry.show(); app.exec()
""",
    "chromium": "<!doctype html><title>Passwords chromium</title><input type=password aria-label=Secret autofocus>",
}


@pytest.mark.parametrize("toolkit", FIELDS)
def test_nothing_that_goes_into_a_password_field_is_kept(desktop, tmp_path, toolkit):
    folder = tmp_path / "r"
    canaries = ["Canary-typed", "Canary-set", "Canary-focus", "Canary-replaced"]
    if toolkit == "chromium":
        page = tmp_path / "page.html"
        page.write_text(FIELDS[toolkit])
        process = desktop.start(chromium(tmp_path / "profile", f"file://{page}"))
    else:
        process = desktop.start([SYSTEM_PYTHON, "-c", FIELDS[toolkit]], env={"GSK_RENDERER": "cairo"})
    with Client(desktop) as client:
        window = client.window(title=f"Passwords {toolkit}")
        fields = ("password text", "text", "entry")
        client.element(window, contains="password" if toolkit != "gtk4" else None, role=None)
        found = [each for each in client.tree(window).elements if each.role in fields and toolkit != "chromium" or each.role == "password text"]
        index = found[-1].index
        client.call("start_recording", output_dir=str(folder), record_video=False)
        aim = {"window_id": window["window_id"], "element_index": index}
        client.try_call("type_text", **aim, text=canaries[0])
        client.try_call("set_value", **aim, value=canaries[1])
        client.try_call("click", **aim, delivery="foreground")
        client.try_call("type_text", window_id=window["window_id"], text=canaries[2])
        for key in "Qzj":
            client.try_call("press_key", window_id=window["window_id"], key=key)
        client.try_call("type_text", **aim, text=canaries[3], clear=True, delivery="foreground")
        stopped = client.call("stop_recording")["recordings"][0]
        assert stopped["turns"] == 8, stopped
    processes.end(process)
    for canary in canaries:
        assert holds(folder, canary) == [], canary
    keys = [turn["arguments"].get("key") for turn in turns(folder) if turn["tool"] == "press_key"]
    assert keys == [None, None, None]
    report = command(desktop, "recording", "report", str(folder), check=0)
    assert holds(folder, "Canary") == [] and "Canary" not in report.stdout
    assert (folder / "report.html").is_file()


LOGIN = """<!doctype html><title>Log in</title>
<input aria-label="User" oninput="if (this.value.length == 4) { second.focus() }">
<input id=second type=password aria-label="Password"><textarea aria-label="Remarks"></textarea>
<input aria-label="Late" onfocus="this.type='password'"><input aria-label="Discs" style="-webkit-text-security: disc">
<button onkeydown="second.focus()">Go</button>"""


def test_what_goes_on_into_a_password_field_is_not_kept(desktop, tmp_path):
    page, folder = tmp_path / "login.html", tmp_path / "r"
    page.write_text(LOGIN)
    process = desktop.start(chromium(tmp_path / "profile", page.as_uri()))
    with Client(desktop) as client:
        window = client.window(title="Log in")
        user, remarks = (client.element(window, name=name) for name in ("User", "Remarks"))
        client.call("start_recording", output_dir=str(folder))

        def write(element, text, **more):
            return client.try_call("type_text", window_id=window["window_id"], element_index=element.index, text=text, **more)

        for delivery in ("auto", "foreground"):
            write(user, "bob\tCanary-tab", delivery=delivery)
            # The page itself goes on after four characters.
            write(user, "fourCanary-page", delivery="foreground", clear=True)
        client.call("bring_to_front", window_id=window["window_id"])
        write(user, "", clear=True, delivery="foreground")
        client.try_call("type_text", window_id=window["window_id"], text="me\tCanary-focus")
        client.try_call("select_text", window_id=window["window_id"], query={"name": "Password"}, text="Canary-select")
        for name, more in (("Late", {"delivery": "foreground"}), ("Discs", {}), ("Discs", {"delivery": "foreground"}), ("Go", {"delivery": "foreground"})):
            field = client.element(window, name=name)
            write(field, f"Canary-{name}", **more)
        client.try_call("clipboard_write", text="Canary-pasted")
        client.try_call("press_key", window_id=window["window_id"], key="ctrl+v")
        write(remarks, "readable", delivery="foreground")
        client.call("stop_recording")
    processes.end(process)
    assert holds(folder, "Canary") == []
    made = turns(folder)
    assert len(made) == 15
    assert made[-1]["arguments"].get("text") == "readable", made[-1]


def test_a_dialogue_that_asks_for_a_password_keeps_it(desktop, tmp_path):
    folder = tmp_path / "r"
    process = desktop.start(["zenity", "--password", "--username"])
    with Client(desktop) as client:
        window = client.window(app="zenity")
        fields = [each for each in client.tree(window).elements if each.role in ("text", "password text")]
        client.call("start_recording", output_dir=str(folder))
        client.try_call("type_text", window_id=window["window_id"], element_index=fields[0].index, text="zed\tCanary-tab", delivery="foreground")
        client.call("stop_recording")
    processes.end(process)
    assert len(turns(folder)) == 1 and holds(folder, "Canary") == []


# What goes wrong


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=True, stdin=subprocess.DEVNULL)
    yield folder
    subprocess.run(["umount", str(folder)], check=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("video", [False, True])
def test_a_full_disk_ends_the_recording_and_no_call(desktop, small_disk, video):
    terminal = desktop.start(["xterm", "-T", "Busy", "-e", "sh", "-c", "while :; do head -c 20000 /dev/urandom | base64; done"])
    with Client(desktop) as client:
        client.window(title="Busy")
        client.call("start_recording", output_dir=str(small_disk / "r"), record_video=video)
        for _ in range(400):
            act(client)
            state = client.call("get_recording_state")["recordings"][-1]
            if not state["running"]:
                break
        assert ended(client, "disk_full", 20)["message"]
        act(client)
        whole = turns(small_disk / "r")
        assert [turn["turn"] for turn in whole] == list(range(1, len(whole) + 1))
        assert not list((small_disk / "r").glob(".turn*"))
    processes.end(terminal)


def test_an_encoder_that_hangs_stalls_nothing(desktop, tmp_path):
    with Client(desktop) as client:
        client.call("start_recording", output_dir=str(tmp_path / "r"), record_video=True)
        [encoder] = encoders(desktop.mark)
        terminal = desktop.start(["xterm", "-e", "sh", "-c", "while :; do date +%N; done"])
        act(client)
        os.kill(encoder, signal.SIGSTOP)
        state = lambda: client.call("get_recording_state")["recordings"][0]  # noqa: E731
        processes.wait_until(lambda: state()["video"]["frames_dropped"] >= 3, 20, "frames are dropped")
        act(client, 3)
        stopped = client.call("stop_recording")["recordings"][0]
        assert stopped["turns"] == 4 and stopped["reason"] == "stopped", stopped
        processes.wait_until(lambda: not encoders(desktop.mark), 10, "the encoder is given up")
    processes.end(terminal)


@pytest.fixture
def alone():
    """A desktop that no service has."""
    with OwnDesktop() as made:
        yield made


def test_without_ffmpeg_turns_alone_are_recorded(alone, tmp_path):
    desktop = alone
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("Xvfb", "openbox", "xterm"):
        (tools / name).symlink_to(shutil.which(name))
    with Client(desktop, env={**desktop.env, "PATH": str(tools)}, arguments=["--no-daemon-relaunch"]) as client:
        answer = client.try_call("start_recording", output_dir=str(tmp_path / "r"), record_video=True)
        assert answer.code == "video_unavailable" and "apt install ffmpeg" in answer.text
        assert "apt install ffmpeg" in client.call("install_ffmpeg").text
        assert not (tmp_path / "r").exists()
        client.call("start_recording", output_dir=str(tmp_path / "r"))
        act(client)
        assert client.call("stop_recording")["recordings"][0]["turns"] == 1
    with Client(desktop) as client:
        assert client.call("install_ffmpeg")["available"]


def test_a_read_only_place_is_refused(desktop, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True, stdin=subprocess.DEVNULL)
    with Client(desktop) as client:
        answer = client.try_call("start_recording", output_dir=str(small_disk / "r"))
        assert answer.code == "file_error" and "Read-only" in answer.text, answer.text
        assert client.call("get_recording_state")["recordings"] == []


def test_idleness_ends_a_recording(alone, tmp_path):
    desktop = alone
    env = {**desktop.env, "DESKHAND_RECORDING_IDLE_TTL_SECS": "1"}
    with Client(desktop, env=env, arguments=["--no-daemon-relaunch"]) as client:
        client.call("start_recording", output_dir=str(tmp_path / "r"), record_video=True)
        folder = trajectory(tmp_path / "r")
        assert folder["format"] == "deskhand-trajectory"
        processes.wait_until(lambda: trajectory(tmp_path / "r")["parts"][0].get("reason"), 15, "the end")
        assert trajectory(tmp_path / "r")["parts"][0]["reason"] == "idle"
        assert not encoders(desktop.mark)
        size = (tmp_path / "r/video.mp4").stat().st_size
        act(client)
        assert (tmp_path / "r/video.mp4").stat().st_size == size and not turns(tmp_path / "r")


# Again

PAGE = """<!doctype html><title>Counter</title><button onclick="n.textContent=+n.textContent+1">More</button>
<input aria-label=Name><p id=n>0</p>"""


class Work:
    """The applications of a recorded session, on a desktop of their own."""

    def __init__(self, folder):
        self.desktop = PrivateDesktop()
        self.page = folder / "counter.html"
        self.page.write_text(PAGE)
        self.desktop.start(chromium(folder / f"profile-{id(self)}", f"file://{self.page}"))
        self.client = Client(self.desktop)
        self.browser = self.client.window(title="Counter", timeout=40)
        self.client.element(self.browser, role="button", name="More", timeout=20)

    def find(self, app):
        return self.client.window(app=app)

    def outcome(self):
        """What is to be seen at the end."""
        client = self.client
        editor, calculator = self.find("mousepad"), self.find("galculator")
        texts = [line.line for line in client.tree(editor).elements if "text" in line.role]
        display = [line.line for line in client.tree(calculator).elements if line.role in ("text", "label", "entry")]
        page = client.tree(self.browser).text
        counter = [line for line in page.splitlines() if line.strip().endswith(('"3"', '"4"'))]
        return {
            "editor": [text.split("text=")[-1] for text in texts if "Replayed" in text],
            "calculator": [text for text in display if '"15"' in text or "15" in text],
            "counter": bool(counter), "name": "Ada Lovelace" in page,
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.desktop.close()


def record(work, folder):
    client = work.client
    client.call("start_recording", output_dir=str(folder))
    client.call("launch_app", app="mousepad")
    editor = work.find("mousepad")
    client.tree(editor)
    client.call("type_text", window_id=editor["window_id"], text="Replayed text\nof two lines")
    client.call("launch_app", app="galculator")
    calculator = work.find("galculator")
    for name in ("7", "+", "8", "="):
        client.call("click", window_id=calculator["window_id"], query={"name": name, "exact": True})
    for _ in range(3):
        client.call("click", window_id=work.browser["window_id"], query={"role": "button", "name": "More"})
    client.call("type_text", window_id=work.browser["window_id"], query={"name": "Name"}, text="Ada Lovelace")
    stopped = client.call("stop_recording")["recordings"][0]
    assert stopped["turns"] == 11 and "turns_dropped" not in stopped
    return work.outcome()


def test_a_session_of_three_applications_is_done_again(tmp_path):
    folder = tmp_path / "r"
    with Work(tmp_path) as first:
        expected = record(first, folder)
    assert expected["editor"] and expected["counter"] and expected["name"], expected
    with Work(tmp_path) as second:
        # Elsewhere, and of another size.
        second.client.call("set_window_frame", window_id=second.browser["window_id"], x=40, y=60, width=700, height=520)
        answer = second.client.call("replay_trajectory", dir=str(folder), timeout=120)
        assert answer["completed"] and {turn["status"] for turn in answer["turns"]} == {"done"}, answer.text
        assert second.outcome() == expected
    with Work(tmp_path) as changed:
        changed.page.write_text(PAGE.replace("More", "Less"))
        changed.client.call("press_key", window_id=changed.browser["window_id"], key="F5")
        changed.client.element(changed.browser, role="button", name="Less", timeout=20)
        answer = changed.client.try_call("replay_trajectory", dir=str(folder), timeout=120)
        report = answer.structured["details"]
        last = report["turns"][-1]
        assert answer.code == "element_not_found" and "stopped at turn 8 of 11 (click)" in answer.text, answer.text
        assert not report["completed"] and report["done"] == 7 and last["status"] == "failed", report
        assert "More" in last["message"] and last["turn"] == 8, last


def test_points_are_done_again_only_in_a_window_of_that_size(desktop, tmp_path):
    folder = tmp_path / "r"
    with Client(desktop) as client:
        calculator = client.call("launch_app", app="galculator")["windows"][0]
        window = {"window_id": calculator["window_id"]}
        # The window manager may place it a moment after it has appeared.
        client.call("wait_for", condition="idle", **window)
        [frame] = [each["frame"] for each in client.windows() if each["window_id"] == window["window_id"]]
        client.call("start_recording", output_dir=str(folder))
        client.call("click", **window, x=frame["width"] // 2, y=frame["height"] - 40)
        client.call("stop_recording")
        [turn] = turns(folder)
        assert turn["points"] == [{"x": frame["x"] + frame["width"] // 2, "y": frame["y"] + frame["height"] - 40}]
        client.call("set_window_frame", **window, x=300, y=200)
        answer = client.call("replay_trajectory", dir=str(folder))
        assert answer["completed"], answer.text
        client.call("set_window_frame", **window, width=frame["width"] + 120, height=frame["height"] + 60)
        answer = client.try_call("replay_trajectory", dir=str(folder))
        assert answer.code == "not_supported" and "so its points mean nothing" in answer.text, answer.text
        client.call("kill_app", pid=calculator["pid"], force=True)


def test_a_point_is_not_used_where_something_else_is_to_be_seen(desktop, tmp_path):
    folder, page = tmp_path / "r", tmp_path / "page.html"
    buttons = ("<!doctype html><title>Look</title><body style='margin:0'>"
               "<button id=b style='position:fixed;left:200px;top:200px;width:160px;height:60px' onclick='document.title=\"Hit\"'>{}</button>")
    page.write_text(buttons.format("Save"))
    process = desktop.start(chromium(tmp_path / "profile", page.as_uri()))
    with Client(desktop) as client:
        window = client.window(title="Look", timeout=40)
        aim = {"window_id": window["window_id"]}
        button = client.element(window, role="button", name="Save", timeout=20)
        client.call("start_recording", output_dir=str(folder))
        client.call("click", **aim, element_index=button.index, delivery="foreground")
        client.window(title="Hit")
        client.call("stop_recording")
        # The same, as a click at a point.
        file = folder / "turn-00001/action.json"
        action = json.loads(file.read_text())
        point, frame = action["points"][0], action["window"]["frame"]
        action |= {"elements": [], "arguments": {**aim, "x": point["x"] - frame["x"], "y": point["y"] - frame["y"], "delivery": "foreground"}}
        file.write_text(json.dumps(action))
        client.call("press_key", **aim, key="F5")
        client.window(title="Look")
        answer = client.call("replay_trajectory", dir=str(folder))
        assert answer["completed"], answer.text
        client.window(title="Hit")
        page.write_text(buttons.format("Save").replace("left:200px", "left:500px"))
        client.call("press_key", **aim, key="F5")
        client.window(title="Look")
        answer = client.try_call("replay_trajectory", dir=str(folder))
        assert answer.code == "not_supported" and "does not look as it did" in answer.text, answer.text
        (folder / "turn-00001/before.png").unlink()
        assert client.call("replay_trajectory", dir=str(folder))["completed"], "nothing is known of how it looked"
    processes.end(process)


def test_a_killed_encoder_is_told_by_the_next_stop(desktop, tmp_path):
    with Client(desktop) as client:
        client.call("start_recording", output_dir=str(tmp_path / "r"), record_video=True)
        [encoder] = encoders(desktop.mark)
        os.kill(encoder, signal.SIGKILL)
        ended(client, "video_failed")
        stopped = client.call("stop_recording")
        assert stopped["recordings"] == [] and stopped["last"]["reason"] == "video_failed", stopped.structured
        assert stopped["last"]["ended"] in stopped.text and "encoder failed" in stopped.text


def test_a_record_runs_no_commands(desktop, tmp_path):
    folder, witness = tmp_path / "r", tmp_path / "witness"
    with Client(desktop) as client:
        client.call("start_recording", output_dir=str(folder))
        client.call("launch_app", app="xterm", args=["-e", "true"], wait_for_window=False)
        client.call("stop_recording")
        action = next(folder.glob("turn-*/action.json"))
        recorded = json.loads(action.read_text())
        for arguments, status_, why in (
            ({"app": "xterm", "args": ["-e", f"touch {witness}"]}, "skipped", "runs no commands"),
            ({"app": "xterm", "env": {"A": "b"}}, "skipped", "runs no commands"),
            ({"app": f"touch {witness}"}, "failed", "no installed application"),
            ({"app": "/bin/true"}, "failed", "no installed application"),
        ):
            action.write_text(json.dumps({**recorded, "arguments": arguments}))
            answer = client.call("replay_trajectory", dir=str(folder), stop_on_error=False)
            [turn] = answer["turns"]
            assert turn["status"] == status_ and why in turn["message"] and not answer["completed"], answer.structured
        action.write_text(json.dumps({**recorded, "tool": "kill_app", "arguments": {"pid": os.getpid()}}))
        [turn] = client.try_call("replay_trajectory", dir=str(folder)).structured["details"]["turns"]
        assert turn["status"] == "failed" and "not started by a turn" in turn["message"]
    assert not witness.exists()
