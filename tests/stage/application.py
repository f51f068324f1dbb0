"""Applications on a desktop: the fixtures, which say what happened to them, and real ones."""

import json
import subprocess
import threading
import time
from pathlib import Path

from . import processes
from .program import FIXTURES, SYSTEM_PYTHON


class Fixture:
    """A fixture application: takes commands, reports events."""

    def __init__(self, desktop, toolkit, page, title="Fixture", program=None, env=None, **options):
        arguments = [item for name, value in options.items() for item in (f"--{name}", str(value))]
        self.title = title
        self.process = desktop.start(
            [*(program or [SYSTEM_PYTHON, str(FIXTURES / f"{toolkit}.py")]), page, "--title", title, *arguments], env=env or {},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(desktop.path / "fixtures.log", "ab"),
        )
        self.log = desktop.path / "fixtures.log"
        self.pid = self.process.pid
        self.events = []
        self._new = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.ready = self.wait("ready", timeout=30)
        except BaseException:
            self.close()
            raise

    def _read(self):
        for line in self.process.stdout:
            with self._new:
                self.events.append(json.loads(line))
                self._new.notify_all()
        with self._new:
            self._ended = True
            self._new.notify_all()

    def command(self, line):
        self.process.stdin.write((line + "\n").encode())
        self.process.stdin.flush()

    def ask(self, line, event, **facts):
        """Sends a command and waits for the event that answers it."""
        start = len(self.events)
        self.command(line)
        return self.wait(event, start=start, **facts)

    def text(self, name):
        return self.ask(f"get {name}", "got", name=name)["text"]

    def matching(self, event, start=0, **facts):
        return [
            seen for seen in self.events[start:]
            if seen["event"] == event and all(seen.get(key) == value for key, value in facts.items())
        ]

    def wait(self, event, start=0, timeout=10, **facts):
        """The first such event, from the `start`-th on."""
        end = time.monotonic() + timeout
        with self._new:
            while True:
                if found := self.matching(event, start, **facts):
                    return found[0]
                left = end - time.monotonic()
                if left <= 0 or self._ended:
                    raise AssertionError(f"no {event} {facts} from the fixture; last events: {self.events[-8:]}; {self.log.read_text()[-2000:]}")
                self._new.wait(left)

    def close(self):
        processes.end(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def swing(folder):
    """Command line of the Swing fixture, compiled into `folder`, with the bridge to the accessibility bus."""
    subprocess.run(
        ["javac", "-d", str(folder), str(FIXTURES / "Swing.java")],
        check=True, timeout=120, stdin=subprocess.DEVNULL, capture_output=True,
    )
    return [
        "java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:/usr/share/java/java-atk-wrapper.jar",
        "-Djava.library.path=/usr/lib/x86_64-linux-gnu/jni:/usr/lib/aarch64-linux-gnu/jni",
        "-Djavax.accessibility.assistive_technologies=org.GNOME.Accessibility.AtkWrapper", "Swing",
    ]


CHROMIUM = (
    "chromium", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--password-store=basic",
    "--disable-features=Translate",
)


def chromium(folder, url):
    """Command line of a Chromium with a fresh profile in `folder` that talks to nobody by itself."""
    return [*CHROMIUM, f"--user-data-dir={folder}", url]


FIREFOX_PREFERENCES = """
user_pref("app.normandy.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.newtabpage.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage", "about:blank");
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("startup.homepage_welcome_url", "about:blank");
user_pref("startup.homepage_welcome_url.additional", "");
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
"""


def firefox(folder, url):
    """Command line of a Firefox with a fresh profile in `folder` and no pages of its own."""
    (folder / "user.js").write_text(FIREFOX_PREFERENCES)
    return ["firefox-esr", "--no-remote", "--profile", str(folder), url]


def calc(folder):
    """Command line of a LibreOffice Calc that cannot take the machine's memory, with its profile in `folder`."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    return [
        "prlimit", "--as=8000000000", "soffice", "--calc", "--norestore", "--nologo", "--nofirststartwizard",
        f"-env:UserInstallation=file://{folder}",
    ]


def end_office(desktop, process):
    """Ends an office program. Killed, it leaves its socket among the temporary files of everybody."""
    sockets = [
        path
        for pid, command in processes.marked(desktop.mark).items()
        if "soffice.bin" in command
        for path in processes.socket_paths(pid)
        if "OSL_PIPE" in path
    ]
    processes.end(process)
    for pid, command in processes.marked(desktop.mark).items():
        if "soffice.bin" in command:
            processes.kill(pid)
    for path in sockets:
        Path(path).unlink(missing_ok=True)
