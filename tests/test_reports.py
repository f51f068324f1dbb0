"""Pages of recordings, in a real browser that has no network to ask."""

import base64
import io
import json
import os
import shutil
import subprocess

import pytest
from PIL import Image

from stage.program import deskhand

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> \u202etfel"
FRAME = {"x": 100, "y": 50, "width": 300, "height": 200}
MARK = (229, 0, 110)


def recording(folder):
    """Three clicks at different places of a plain window, by somebody whose window has a hostile name."""
    folder.mkdir()
    part = {"started": "2026-01-01T10:00:00.000Z", "ended": "2026-01-01T10:00:09.000Z", "reason": "idle", "first_turn": 1, "turns": 3}
    whole = {"format": "deskhand-trajectory", "version": 1, "driver": {"name": "deskhand", "version": "0"}, "session": HOSTILE,
             "displays": [], "parts": [part]}
    (folder / "trajectory.json").write_text(json.dumps(whole))
    for turn in (1, 2, 3):
        of = folder / f"turn-{turn:05}"
        of.mkdir()
        for number, name in enumerate(("before.png", "after.png")):
            Image.new("RGB", (300, 200), (200, 200 + number, 210 + turn)).save(of / name)
        shot = {"frame": FRAME, "width": 300, "height": 200}
        action = {"turn": turn, "tool": "click", "arguments": {"query": {"name": HOSTILE}}, "started": f"2026-01-01T10:00:0{turn}.000Z",
                  "duration_ms": 5, "effect": "confirmed", "points": [{"x": 100 + 60 * turn, "y": 100}],
                  "window": {"window_id": 1, "app": "app", "title": HOSTILE, "frame": FRAME},
                  "before": {"file": "before.png", **shot}, "after": {"file": "after.png", **shot}}
        (of / "action.json").write_text(json.dumps(action))
        (of / "tree.txt").write_text(HOSTILE)
    return folder


def render(*arguments, env=None):
    return subprocess.run([str(deskhand()), "recording", "render", *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env)


def report(*arguments):
    return subprocess.run([str(deskhand()), "recording", "report", *map(str, arguments)], capture_output=True, text=True, timeout=60)


class Browser:
    """Chromium, spoken to through a pair of pipes."""

    def __init__(self, profile):
        read, self.write = os.pipe()
        self.read, write = os.pipe()
        flags = ("--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
                 f"--disable-sync --hide-scrollbars --remote-debugging-pipe --user-data-dir={profile}")
        self.process = subprocess.Popen(["bash", "-c", f"exec chromium {flags} about:blank 3<&{read} 4>&{write}"], pass_fds=(read, write),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.ask("Page.bringToFront")
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.rest:
            got = os.read(self.read, 1 << 20)
            assert got, "the browser has ended"
            self.rest += got
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params} | ({"sessionId": self.session} if self.session else {})
        os.write(self.write, json.dumps(request).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, file):
        self.ask("Page.navigate", url=f"file://{file}")
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)["result"].get("value")

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name)
        return self.value("document.querySelector('.turn:not([hidden])').id")

    def picture(self, scheme="light"):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        data = self.ask("Page.captureScreenshot")["data"]
        return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)


@pytest.fixture
def browser(tmp_path):
    profile = tmp_path / "profile"
    made = Browser(profile)
    yield made
    made.close()
    shutil.rmtree(profile, ignore_errors=True)


@pytest.mark.timeout(240)
def test_a_page_opens_offline_and_is_used_by_keys(tmp_path, browser):
    folder = recording(tmp_path / "recording")
    assert report(folder).returncode == 0
    browser.ask("Emulation.setDeviceMetricsOverride", width=1300, height=900, deviceScaleFactor=1, mobile=False)
    browser.open(folder / "report.html")
    assert browser.value("document.title").startswith("Recording of </script>") and "‹U+202E›" in browser.value("document.title")
    assert browser.value("document.scripts.length") == 6 + 1 + 1, "six pictures, one tree, the script: no other"
    assert browser.key("ArrowRight") == "turn-2"
    assert browser.value("document.activeElement.id") == "tab-2"
    assert browser.key("ArrowDown") == "turn-3"
    assert browser.key("ArrowRight") == "turn-3", "the last one"
    assert browser.key("Home") == "turn-1"
    assert browser.key("End") == "turn-3"
    assert browser.key("ArrowLeft") == "turn-2"
    assert browser.value("document.activeElement.id") == "tab-2"

    browser.value("Promise.all([...document.querySelectorAll('.turn:not([hidden]) img')].map(image => image.decode())).then(() => 0)")
    light, dark = browser.picture(), browser.picture("dark")
    for side in ("before", "after"):
        x, y, width, height = browser.value(
            f"(r => [r.x, r.y, r.width, r.height])(document.querySelector('.turn:not([hidden]) .{side} img').getBoundingClientRect())")
        at = (int(x + 120.5 / 300 * width), int(y + 50.5 / 200 * height))
        assert light.getpixel(at) == dark.getpixel(at) == MARK, f"{side}: {light.getpixel(at)} at {at}"
        assert light.getpixel((int(x + width - 8), int(y + height - 8)))[2] == 212, "the picture of the second turn"
    assert sum(light.getpixel((5, 5))) > 600 and sum(dark.getpixel((5, 5))) < 150

    browser.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    assert browser.value("document.documentElement.scrollWidth") <= 400
    assert browser.value("document.querySelectorAll('[onerror]').length") == 0
    faults = [event for event in browser.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")]
    assert not faults
    asked = [event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("data:", "file:///")) and not url.endswith(".png") for url in asked), asked


def test_only_a_report_is_replaced(tmp_path):
    folder = recording(tmp_path / "recording")
    assert report(folder).returncode == 0
    assert report(folder).returncode == 0, "one of ours is made again"
    other = tmp_path / "mine.html"
    other.write_text("mine")
    refused = report(folder, "--out", other)
    assert refused.returncode == 1 and "no report of deskhand" in refused.stderr and other.read_text() == "mine"
    (tmp_path / "link.html").symlink_to(other)
    assert report(folder, "--out", tmp_path / "link.html").returncode == 1 and other.read_text() == "mine"
    assert not [name for name in os.listdir(folder) if name.startswith(".")]


def test_a_video_is_made_of_the_pictures(tmp_path):
    folder, out = recording(tmp_path / "recording"), tmp_path / "out.mp4"
    (folder / "turn-00002/action.json").write_text("{")
    made = render(folder, out)
    assert made.returncode == 0 and "4 pictures of 2 turns" in made.stdout and "cannot be read: 1 turn" in made.stdout, made
    counted = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames,width,height", "-of", "csv=p=0", out],
                             capture_output=True, text=True, timeout=60)
    assert counted.stdout.strip() == "300,200,20", "two pictures of each turn that can be read, five frames each"
    frame = tmp_path / "frame.png"
    subprocess.run(["ffmpeg", "-v", "error", "-i", out, "-frames:v", "1", frame], check=True, stdin=subprocess.DEVNULL, timeout=60)
    shown = Image.open(frame).convert("RGB")
    ring = [shown.getpixel((60 + 14, 50)), shown.getpixel((60, 50 + 14))]
    assert all(red > 150 and green < 120 for red, green, _ in ring), ring
    assert shown.getpixel((250, 150))[1] > 180, "and nothing where it did not act"

    size = out.stat().st_size
    refused = render(folder, out)
    assert refused.returncode == 1 and "exists" in refused.stderr and out.stat().st_size == size
    for name in ("out.webm", "out.txt", "out"):
        refused = render(folder, tmp_path / name)
        assert refused.returncode == 1 and "has to end in .mp4" in refused.stderr and not (tmp_path / name).exists(), refused
    missing = render(folder, tmp_path / "other.mp4", env={**os.environ, "PATH": str(tmp_path)})
    assert missing.returncode == 1 and "apt install ffmpeg" in missing.stderr and not (tmp_path / "other.mp4").exists()


def test_a_pipe_in_a_recording_hangs_no_report(tmp_path):
    folder = recording(tmp_path / "recording")
    for name in ("turn-00001/action.json", "turn-00002/before.png", "turn-00003/tree.txt"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
    made = report(folder)
    assert made.returncode == 0 and "cannot be read (the page says why): 1 turn" in made.stdout, made
    (folder / "trajectory.json").unlink()
    os.mkfifo(folder / "trajectory.json")
    refused = report(folder)
    assert refused.returncode == 1 and "no plain file" in refused.stderr


@pytest.mark.timeout(240)
def test_a_page_of_all_sessions_shows_whose_turn_it_is_and_which_way_a_drag_went(tmp_path, browser):
    folder = recording(tmp_path / "recording")
    whole = json.loads((folder / "trajectory.json").read_text())
    part = whole["parts"][0]
    whole |= {"session": None, "parts": [{**part, "turns": 2}, {**part, "first_turn": 3, "turns": 1, "reason": "max_bytes"}]}
    whole["driver"]["build"] = "06690bd9b688" + "f" * 52
    (folder / "trajectory.json").write_text(json.dumps(whole))
    for turn, session in ((1, "Ada"), (2, "Bob"), (3, "Ada")):
        file = folder / f"turn-{turn:05}/action.json"
        action = json.loads(file.read_text())
        action |= {"session": session, "points": [{"x": 120, "y": 100}, {"x": 320, "y": 200}]}
        file.write_text(json.dumps(action))
    assert report(folder).returncode == 0
    browser.ask("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    browser.open(f"{folder / 'report.html'}#turn-2")
    chips = browser.value("[...document.querySelectorAll('[role=tab] .session')].map(chip => chip.textContent).join()")
    assert chips == "Ada,Bob,Ada"
    assert browser.value("document.querySelectorAll('.parts li').length") == 2 and browser.value("document.querySelectorAll('.divider').length") == 2
    facts = browser.value("[...document.querySelectorAll('.facts')].map(each => each.innerText).join()")
    assert "06690bd9b688" in facts and "more characters" not in facts
    arrow = browser.value("document.querySelector('.turn:not([hidden]) .arrow').getAttribute('transform')")
    assert arrow == "rotate(26.6)", "to the right and down"
    below = "document.querySelector('.turn:not([hidden]) h2').getBoundingClientRect().top - document.querySelector('.toolbar').getBoundingClientRect().bottom"
    for width in (1280, 400):
        browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=500, deviceScaleFactor=1, mobile=False)
        browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        browser.value("location.hash = '#turn-3'; new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert browser.value(below) >= 0, f"{width}: the heading is below the toolbar"
        browser.value("location.hash = '#turn-2'; new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    browser.ask("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    browser.value("document.querySelector('.turn:not([hidden]) .picture').click()")
    assert browser.value("document.querySelector('dialog img').getBoundingClientRect().width") >= 600, "300 pixels wide, enlarged"
