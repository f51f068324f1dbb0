"""The preview: a small window with what agents act on, which takes part in nothing."""

import io
import json
import subprocess
import tempfile

import pytest
from PIL import Image, ImageChops, ImageStat

from stage import processes, service
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.x11 import Server

SCREEN = (1280, 800)
# The picture lies within the rim.
RIM = 2


@pytest.fixture(scope="module", params=["composited", "plain"])
def stage(request):
    """A desktop with and without a compositing manager."""
    manager = ["xfwm4", f"--compositor={'on' if request.param == 'composited' else 'off'}"]
    with OwnDesktop(window_manager=manager) as desktop:
        if request.param == "composited":
            composited = lambda: "_GTK_FRAME_EXTENTS" in desktop.run("xprop", "-root", "_NET_SUPPORTED")  # noqa: E731
            processes.wait_until(composited, 10, "shadows are supported")
        yield desktop


@pytest.fixture
def forms(stage):
    """A window, and one that covers most of it."""
    with Fixture(stage, "gtk3", "titled", title="Form", at="100,80", size="500,300") as form:
        with Fixture(stage, "gtk3", "titled", title="Cover", at="140,120", size="560,420"):
            yield form


@pytest.fixture
def agent(stage):
    with Client(stage) as client:
        yield client
        client.call("set_config", unset=["preview"])


def window(desktop):
    """The preview's window; `None` if it is closed."""
    with Server(desktop) as server:
        for each in reversed(server.stacking()):
            if "agent-preview" in desktop.run("xprop", "-id", str(each), "WM_CLASS", check=False):
                return each
    return None


def place(desktop):
    """Where it is on the screen; `None` if it is closed, or has just been replaced."""
    shown = window(desktop)
    said = desktop.run("xwininfo", "-id", str(shown), check=False) if shown else ""
    if "Absolute" not in said:
        return None
    value = lambda name: int(said.split(f"{name}:")[1].split()[0])  # noqa: E731
    return value("Absolute upper-left X"), value("Absolute upper-left Y"), value("Width"), value("Height")


def on_screen(desktop):
    """What a person sees."""
    done = subprocess.run(
        ["import", "-window", "root", "png:-"], env=desktop.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=True
    )
    return Image.open(io.BytesIO(done.stdout)).convert("RGB")


def picture(answer):
    return Image.open(io.BytesIO(answer.images[0])).convert("RGB")


def click(client, title, name):
    """A click in a window that stays where it is."""
    target = client.window(title=title)["window_id"]
    element = client.element({"window_id": target}, name=name)
    return client.call("click", window_id=target, element_index=element.index, delivery="background")


def difference(one, other):
    """How far two pictures are apart at a usual point, from 0 to 255."""
    return max(ImageStat.Stat(ImageChops.difference(one, other)).mean)


def test_a_covered_window_is_seen_while_an_agent_acts_on_it(stage, forms, agent):
    agent.call("set_config", agent_cursor=False)
    click(agent, "Form", "R1C1")
    assert window(stage) is None, "it is off unless asked for"
    agent.call("set_config", preview=True)
    target = agent.window(title="Form")["window_id"]
    click(agent, "Form", "R1C1")
    processes.wait_until(lambda: window(stage), 5, "it opens")

    def shows(title):
        whole = picture(agent.call("get_window_state", window_id=agent.window(title=title)["window_id"], capture_mode="vision"))
        where = place(stage)
        if where is None:
            return 255
        x, y, width, height = where
        scale = min(400 / whole.width, 280 / whole.height, 1)
        small = whole.resize((round(whole.width * scale), round(whole.height * scale)), Image.Resampling.LANCZOS)
        left = x + (width - small.width) // 2
        seen = on_screen(stage).crop((left, y + RIM, left + small.width, y + RIM + small.height))
        return difference(seen, small)

    # The pictures are scaled by other filters; another window is further away than that.
    processes.wait_until(lambda: shows("Form") < 4, 10, lambda: f"the covered window is shown: {shows('Form')}")
    assert agent.window(title="Form")["window_id"] == target
    click(agent, "Cover", "R0C0")
    processes.wait_until(lambda: shows("Cover") < 4, 10, lambda: f"and then the other: {shows('Cover')}")
    agent.call("set_config", preview=False)
    processes.wait_until(lambda: window(stage) is None, 5, "it closes")


def test_it_takes_part_in_nothing(stage, forms, agent):
    agent.call("set_config", agent_cursor=False, max_image_dimension=8192)
    agent.call("set_window_frame", window_id=agent.window(title="Cover")["window_id"], x=0, y=0, width=1280, height=800)
    agent.call("bring_to_front", window_id=agent.window(title="Cover")["window_id"])
    agent.call("wait_for", condition="idle", window_id=agent.window(title="Cover")["window_id"])
    # Its focus ring is there from now on.
    click(agent, "Cover", "R0C0")
    agent.call("wait_for", condition="idle", window_id=agent.window(title="Cover")["window_id"])
    windows = agent.windows()
    bare = picture(agent.call("screenshot"))
    agent.call("set_config", preview=True)
    click(agent, "Cover", "R0C0")
    processes.wait_until(lambda: window(stage), 5, "it opens")
    x, y, width, height = place(stage)
    assert (x + width, y + height) == (SCREEN[0] - 40, SCREEN[1] - 40), "in the corner"
    part = (x, y, x + width, y + height)
    processes.wait_until(lambda: difference(on_screen(stage).crop(part), bare.crop(part)) > 10, 5, "people see it")
    apart = lambda: ImageChops.difference(picture(agent.call("screenshot")), bare).getbbox()  # noqa: E731
    processes.wait_until(lambda: apart() is None, 5, lambda: f"an agent's picture is that without it; {apart()} is not")
    assert agent.windows() == windows
    # A person's click on it, and an agent's, reach the button below.
    cover = agent.window(title="Cover")
    element = agent.element(cover, name="R2C2", frames=True)
    at = [int(part) for part in element.line.split("@")[1].replace("x", " ").replace(",", " ").split()[:4]]
    at = (at[0] + at[2] // 2, at[1] + at[3] // 2)
    assert x < at[0] < x + width and y < at[1] < y + height, "the preview lies over it"
    stage.run("xdotool", "mousemove", str(at[0]), str(at[1]))
    with Server(stage) as server:
        assert server.grab_pointer(), "another program can take the pointer"
    agent.call("click", x=at[0], y=at[1])
    processes.wait_until(lambda: (place(stage) or (x,))[0] < 600, 5, "it goes out of the way")


def test_serve_opens_it_and_a_person_s_word_closes_it(stage, forms):
    server = service.serve(stage, "--preview")
    try:
        with service.client(stage) as client:
            told = client.call("get_config")
            assert (told["settings"]["preview"], told["origins"]["preview"]) == (True, "process")
            click(client, "Form", "R1C1")
            processes.wait_until(lambda: window(stage), 5, "it opens")
            again = service.command(stage, "serve", "--preview", check=1)
            assert "runs already" in again.stderr
            service.command(stage, "config", "set", "preview", "false", check=0)
            processes.wait_until(lambda: window(stage) is None, 5, "it closes")
            assert client.call("get_config")["origins"]["preview"] == "global"
            click(client, "Form", "R1C1")
            service.command(stage, "config", "set", "preview", "true", check=0)
            click(client, "Form", "R1C1")
            processes.wait_until(lambda: window(stage), 5, "it opens again")
    finally:
        service.command(stage, "config", "unset", "preview", check=0)
        service.command(stage, "stop", check=0)
        server.wait(10)
    assert window(stage) is None, "it ends with the service"


def test_a_revoke_closes_it(stage, forms, tmp_path):
    records = tmp_path / "records"
    records.mkdir(mode=0o700)

    def write(name, what):
        beside = records / f"{name}.new"
        beside.touch(mode=0o600)
        beside.write_text(json.dumps(what))
        beside.rename(records / name)

    write("machine-credential.json", {"machine_id": "m-1", "credential": "c", "since": 1})
    write("consent.json", {"screen": True, "control": True, "by": "a person"})
    with tempfile.TemporaryDirectory(prefix="deskhand-run-") as runtime:
        env = {**stage.env, "ACPMUX_HOME": str(records), "XDG_RUNTIME_DIR": runtime, "DESKHAND_MCP_NO_RELAUNCH": "1"}
        with Client(stage, env=env) as client:
            client.call("set_config", preview=True)
            click(client, "Form", "R1C1")
            processes.wait_until(lambda: window(stage), 5, "it opens")
            write("consent.json", {"screen": False, "control": True, "by": "a person"})
            # Half a second, and the time that looking takes here.
            processes.wait_until(lambda: window(stage) is None, 1.5, "it closes")
