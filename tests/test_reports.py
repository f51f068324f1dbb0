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
