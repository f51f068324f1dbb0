"""What people see of agents: cursors that are drawn over everything and take part in nothing."""

import io
import os
import subprocess
import time
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from stage import processes, service
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.x11 import Server

SCREEN = (1280, 800)
RED = (194, 8, 32)


@pytest.fixture(scope="module", params=["composited", "plain"])
def stage(request):
    """A desktop with and without a compositing manager."""
    manager = ["xfwm4", f"--compositor={'on' if request.param == 'composited' else 'off'}"]
    with OwnDesktop(window_manager=manager) as desktop:
        if request.param == "composited":
            composited = lambda: "_GTK_FRAME_EXTENTS" in desktop.run("xprop", "-root", "_NET_SUPPORTED")  # noqa: E731
            processes.wait_until(composited, 10, "shadows are supported")
        desktop.composited = request.param == "composited"
        yield desktop


@pytest.fixture
def form(stage):
    with Fixture(stage, "gtk3", "titled", title="Form", at="200,150", size="500,300") as fixture:
        yield fixture


def cursors(desktop):
    """What is shown: the label of each cursor, and its window."""
    with Server(desktop) as server:
        named = {}
        for window in server.stacking():
            said = desktop.run("xprop", "-id", str(window), "WM_CLASS", "_NET_WM_NAME", check=False)
            if "agent-cursor" in said:
                named[said.split("agent cursor: ")[1].split('"')[0]] = window
        return named


def on_screen(desktop):
    """What a person sees."""
    done = subprocess.run(
        ["import", "-window", "root", "png:-"], env=desktop.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=True
    )
    return Image.open(io.BytesIO(done.stdout)).convert("RGB")


def has_arrow(image, at):
    """Whether a red arrow shows this point."""
    inside = image.getpixel((at[0] + 6, at[1] + 9))
    return all(abs(one - other) < 12 for one, other in zip(inside, RED))


def picture(answer):
    return Image.open(io.BytesIO(answer.images[0])).convert("RGB")


def red(client, **more):
    client.call("set_agent_cursor_style", color="#%02x%02x%02x" % RED, **more)
    client.call("set_agent_cursor_motion", glide_duration_ms=0, idle_hide_ms=60000)


def overlay_threads(client):
    """The threads of the service that owns the desktop which show cursors."""
    pid = service.status(client.desktop)["pid"]
    threads = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == "x11-overlay":
                threads.append(task)
        except OSError:
            pass
    return threads


@pytest.fixture
def agent(stage):
    with Client(stage) as client:
        client.desktop = stage
        yield client


def center(client, title, name):
    """The middle of a button, on the screen."""
    window = client.window(title=title)
    element = client.element(window, name=name, frames=True)
    x, y, width, height = (int(part) for part in element.line.split("@")[1].replace("x", " ").replace(",", " ").split()[:4])
    return x + width // 2, y + height // 2


def test_a_click_at_its_place_reaches_what_lies_below(stage, form, agent):
    red(agent, label="tester")
    at = center(agent, "Form", "R1C1")
    for _ in range(2):  # the second one with the cursor in its place
        start = len(form.events)
        agent.call("click", x=at[0], y=at[1])
        form.wait("click", start=start, name="R1C1")
        processes.wait_until(lambda: has_arrow(on_screen(stage), at), 5, "the cursor is there")
    start = len(form.events)
    window = agent.window(title="Form")
    shown = agent.element(window, name="R1C1")
    agent.call("click", window_id=window["window_id"], element_index=shown.index, delivery="foreground")
    form.wait("click", start=start, name="R1C1")
    # A person's click on the arrow, and on the label.
    for off in ((5, 8), (30, 30)):
        start = len(form.events)
        stage.run("xdotool", "mousemove", str(at[0] + off[0]), str(at[1] + off[1]), "click", "1")
        form.wait("click", start=start, name="R1C1")
    with Server(stage) as server:
        assert server.grab_pointer(), "another program can take the pointer"
        assert cursors(stage)["tester"] in server.stacking()


def test_the_driver_does_not_see_it(stage, form, agent):
    red(agent)
    at = center(agent, "Form", "R1C1")
    agent.call("bring_to_front", window_id=agent.window(title="Form")["window_id"])
    agent.call("move_cursor", x=900, y=700)
    agent.call("set_agent_cursor_enabled", enabled=False)
    agent.call("screenshot", max_image_dimension=8192)
    processes.wait_until(lambda: not overlay_threads(agent), 5, "no thread is left")
    # What the pointer left behind fades.
    agent.call("wait_for", condition="idle", window_id=agent.window(title="Form")["window_id"])
    shots = [picture(agent.call("screenshot", max_image_dimension=8192))]

    def rests():
        time.sleep(0.3)
        shots.append(picture(agent.call("screenshot", max_image_dimension=8192)))
        return ImageChops.difference(*shots[-2:]).getbbox() is None

    processes.wait_until(rests, 10, "the picture rests")
    bare = shots[-1]
    windows = agent.windows()
    agent.call("set_agent_cursor_enabled", enabled=True)
    # Over a button, over the window's edge, over the bare desktop.
    for point in (at, (at[0], at[1] + 300), (900, 700)):
        agent.call("move_cursor", x=point[0], y=point[1])
        agent.call("move_cursor", x=900, y=700)
        agent.call("move_cursor", x=point[0], y=point[1])
        shot = picture(agent.call("screenshot", max_image_dimension=8192))
        processes.wait_until(lambda: has_arrow(on_screen(stage), point), 5, f"people see it at {point}")
        still = picture(agent.call("screenshot", max_image_dimension=8192))
        agent.call("move_cursor", x=900, y=700)
        for seen in (shot, still):
            place = (point[0] - 30, point[1] - 30, min(point[0] + 160, SCREEN[0]), min(point[1] + 70, SCREEN[1]))
            colours = seen.crop(place).getcolors(1 << 20)
            assert not any(max(abs(one - other) for one, other in zip(colour, RED)) < 24 for _, colour in colours), point
    # The pointer's own effect on the buttons is gone again: all else is as it was.
    agent.call("move_cursor", x=900, y=700)
    different = lambda: ImageChops.difference(picture(agent.call("screenshot", max_image_dimension=8192)), bare).getbbox()  # noqa: E731
    processes.wait_until(lambda: different() is None, 5, lambda: f"the picture is that without the cursor; {different()} is not")
    assert agent.windows() == windows
    assert "agent-cursor" not in agent.call("list_apps").text


def test_two_sessions_have_two_cursors_and_each_goes_with_its_own(stage, form, agent):
    with Client(stage) as other:
        red(agent, label="first")
        other.call("set_agent_cursor_motion", idle_hide_ms=60000)
        other.call("set_agent_cursor_style", label="second")
        agent.call("move_cursor", x=300, y=300)
        other.call("move_cursor", x=700, y=500)
        processes.wait_until(lambda: set(cursors(stage)) == {"first", "second"}, 5, lambda: cursors(stage))
        assert agent.call("get_agent_cursor_state")["shown"] and other.call("get_agent_cursor_state")["shown"]
        assert agent.call("get_agent_cursor_state")["color"] != other.call("get_agent_cursor_state")["color"]
        other.kill()
        processes.wait_until(lambda: set(cursors(stage)) == {"first"}, 5, lambda: cursors(stage))
    agent.call("set_agent_cursor_enabled", enabled=False)
    processes.wait_until(lambda: not cursors(stage), 5, lambda: cursors(stage))


def test_f17_it_ends_with_a_service_that_is_killed(stage, agent):
    red(agent, label="doomed")
    agent.call("move_cursor", x=300, y=300)
    processes.wait_until(lambda: "doomed" in cursors(stage), 5, "it is shown")
    os.kill(service.status(stage)["pid"], 9)
    processes.wait_until(lambda: not cursors(stage), 5, "its windows are gone")


def test_f12_no_thread_where_nobody_acts_and_no_wake_up_while_it_rests(stage, form, agent):
    assert not overlay_threads(agent) and not cursors(stage)
    agent.call("get_desktop_state")
    agent.call("list_windows")
    assert not overlay_threads(agent), "who only looks is not shown"
    red(agent)
    agent.call("move_cursor", x=640, y=650)
    processes.wait_until(lambda: has_arrow(on_screen(stage), (640, 650)), 5, "the cursor is there")
    [thread] = overlay_threads(agent)

    def counts():
        status = (thread / "status").read_text().splitlines()
        switches = sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
        times = (thread / "stat").read_text().rsplit(")", 1)[1].split()
        return switches, int(times[11]) + int(times[12])

    before = counts()
    time.sleep(2)  # what is measured is that nothing happens in this time
    after = counts()
    assert after[0] - before[0] <= 2 and after[1] == before[1], (before, after)
    agent.call("set_agent_cursor_motion", idle_hide_ms=200)
    agent.call("move_cursor", x=640, y=660)
    processes.wait_until(lambda: not overlay_threads(agent) and not cursors(stage), 5, "nothing is left of it")
    assert not agent.call("get_agent_cursor_state")["shown"]
    agent.call("move_cursor", x=640, y=650)
    processes.wait_until(lambda: cursors(stage), 5, "it comes again")


def test_it_stays_above_windows_that_come_to_the_front(stage, form, agent):
    red(agent, label="on top")
    at = center(agent, "Form", "R1C1")
    agent.call("move_cursor", x=at[0], y=at[1])
    processes.wait_until(lambda: has_arrow(on_screen(stage), at), 5, "the cursor is there")
    with Fixture(stage, "gtk3", "grid", title="Above", at="150,120", size="700,500"):
        agent.window(title="Above")
        with Server(stage) as server:
            processes.wait_until(lambda: server.stacking()[-1] == cursors(stage)["on top"], 5, "it is above")
        assert agent.call("wait_for", window_id=agent.window(title="Above")["window_id"], condition="idle")


def test_elements_that_are_acted_on_through_accessibility(stage, form, agent):
    red(agent)
    at = center(agent, "Form", "R2C2")
    window = agent.window(title="Form")
    shown = agent.element(window, name="R2C2")
    answer = agent.call("click", window_id=window["window_id"], element_index=shown.index, delivery="background")
    assert answer["route"] == "ax_action"
    processes.wait_until(lambda: has_arrow(on_screen(stage), at), 5, "the cursor is in its middle")


def test_a_private_desktop_has_none_unless_asked_for():
    with Client(size="800x600") as client:
        assert client.call("get_config")["settings"]["agent_cursor"] is False
        assert client.call("get_agent_cursor_state")["enabled"] is False
        client.call("move_cursor", x=100, y=100)
        assert "x11-overlay" not in [(task / "comm").read_text().strip() for task in Path(f"/proc/{client.pid}/task").iterdir()]
        client.call("set_config", agent_cursor=True)
        client.call("move_cursor", x=200, y=100)
        processes.wait_until(lambda: client.call("get_agent_cursor_state")["shown"], 5, "it is shown")
