"""Applications of every toolkit that show one of everything, and say by a way of their own what happened to them."""

import json
import subprocess
import threading
import time
from pathlib import Path

from . import processes
from .application import Fixture, calc, chromium, end_office, firefox, swing
from .program import FIXTURES, SYSTEM_PYTHON

# How long an effect may take to show: what comes later did not come of the action.
PATIENCE = 3.0


class Gallery:
    """One application. `events` is what it said; subclasses fill it."""

    # What an application has that others have under the same names.
    ROWS = ("Apple", "Banana", "Cherry")

    def __init__(self, name):
        self.name = name
        self.events = []
        self.places = {}
        self._new = threading.Condition()

    def said(self, event):
        with self._new:
            self.events.append(event)
            self._new.notify_all()

    def mark(self):
        return len(self.events)

    def happened(self, start, wanted, patience=PATIENCE):
        """Whether an event for which `wanted` holds came since `start`, or comes soon."""
        end = time.monotonic() + patience
        with self._new:
            while not any(wanted(event) for event in self.events[start:]):
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._new.wait(left)
        return True


class FixtureGallery(Gallery):
    """A fixture application of one toolkit."""

    def __init__(self, desktop, client, name, toolkit, program=None, size="380,560"):
        super().__init__(name)
        title = f"{name} gallery"
        self.fixture = Fixture(desktop, toolkit, "gallery", title=title, program=program, at="60,60", size=size)
        self.events = self.fixture.events
        self._new = self.fixture._new
        self.window = client.window(title=title)
        if toolkit == "tk":
            self.places = self.fixture.ask("places", "places")["places"]

    def close(self):
        self.fixture.close()


class Page(Gallery):
    """The page in a browser. It says what happened in its title, which the X server tells."""

    def __init__(self, desktop, client, name, command):
        super().__init__(name)
        self.process = desktop.start(command)
        self.window = client.window(title="Gallery", timeout=60)
        self.spy = desktop.start(
            ["xprop", "-spy", "-id", str(self.window["window_id"]), "-notype", "_NET_WM_NAME"],
            stdout=subprocess.PIPE, env={"LC_ALL": "C.UTF-8"},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.spy.stdout:
            text = line.decode("utf-8", "replace").replace('\\"', '"').replace("\\\\", "\\")
            if "{" in text:
                self.said(json.loads(text[text.index("{"): text.rindex("}") + 1]))

    def close(self):
        processes.end(self.spy)
        processes.end(self.process)


class Sheet(Gallery):
    """LibreOffice Calc. It says what it looks like over its own interface, which asks nothing of accessibility."""

    ROWS = ()

    def __init__(self, desktop, client, folder):
        super().__init__("LibreOffice")
        self.desktop = desktop
        pipe = f"deskhand{desktop.mark[:12]}"
        self.process = desktop.start([*calc(folder), f"--accept=pipe,name={pipe};urp;"])
        self.window = client.window(title="LibreOffice Calc", timeout=120)
        self.observer = desktop.start(
            [SYSTEM_PYTHON, str(Path(__file__).with_name("office.py")), pipe],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        self.state()

    def state(self):
        self.observer.stdin.write(b"\n")
        self.observer.stdin.flush()
        return json.loads(self.observer.stdout.readline())

    def mark(self):
        return self.state()

    def happened(self, start, wanted, patience=PATIENCE):
        """Whether `wanted` holds for what it looked like at `start` and looks like now, or soon."""
        end = time.monotonic() + patience
        while not wanted(start, self.state()):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)  # nothing announces it
        return True

    def close(self):
        processes.end(self.observer)
        end_office(self.desktop, self.process)


def gallery(toolkit, desktop, client, folder):
    """Opens the gallery of `toolkit` with its files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    page = (FIXTURES / "gallery.html").as_uri()
    match toolkit:
        case "GTK 3" | "GTK 4" | "Qt 5" | "Qt 6" | "Tk":
            return FixtureGallery(desktop, client, toolkit, toolkit.lower().replace(" ", ""))
        case "Swing":
            return FixtureGallery(desktop, client, toolkit, "swing", program=swing(folder))
        case "Chromium":
            return Page(desktop, client, toolkit, chromium(folder, page))
        case "Firefox":
            return Page(desktop, client, toolkit, firefox(folder, page))
        case "LibreOffice":
            return Sheet(desktop, client, folder)
    raise AssertionError(toolkit)
