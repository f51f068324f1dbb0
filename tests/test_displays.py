"""Several displays and scaled toolkits: what is clicked is what was seen."""

import io
import re

import pytest
from PIL import Image

from stage import processes
from stage.application import Fixture, chromium
from stage.client import Client
from stage.desktop import OwnDesktop

DISPLAYS = {"LEFT": (0, 200, 1000, 700), "RIGHT": (1000, 0, 1400, 900)}


@pytest.fixture(scope="module")
def two_displays():
    """A desktop of two monitors of different sizes; the main one is the right one, so the other lies left of it."""
    with OwnDesktop(size="2400x900") as desktop:
        for name, (x, y, width, height) in DISPLAYS.items():
            geometry = f"{width}/300x{height}/200+{x}+{y}"
            output = "screen" if name == "LEFT" else "none"
            desktop.run("xrandr", "--setmonitor", ("*" if name == "RIGHT" else "") + name, geometry, output)
        yield desktop


def rectangle(frame):
    return frame["x"], frame["y"], frame["width"], frame["height"]


def test_f70_displays_are_listed_with_their_places(two_displays):
    with Client(two_displays) as client:
        displays = client.call("get_screen_size")["displays"]
        assert {display["name"]: rectangle(display["frame"]) for display in displays} == DISPLAYS
        assert [display["name"] for display in displays if display["primary"]] == ["RIGHT"]
        assert rectangle(client.call("get_desktop_state")["display"]["frame"]) == DISPLAYS["RIGHT"]
        for display in displays:
            answer = client.call("screenshot", display=display["display"], max_image_dimension=8192)
            assert Image.open(io.BytesIO(answer.images[0])).size == DISPLAYS[display["name"]][2:]
        missing = client.try_call("screenshot", display=2)
        assert missing.code == "invalid_argument"


@pytest.mark.parametrize("name", list(DISPLAYS))
@pytest.mark.parametrize("limit", [401, 777, 1568])
def test_f70_points_of_a_scaled_picture_land_within_a_pixel(two_displays, name, limit):
    x, y, width, height = DISPLAYS[name]
    with Client(two_displays) as client, Fixture(
        two_displays, "gtk3", "solid", title=f"Points {name}", at=f"{x + 60},{y + 60}", size="800,500"
    ) as fixture:
        window = client.window(title=f"Points {name}")
        displays = client.call("get_screen_size")["displays"]
        number = next(display["display"] for display in displays if display["name"] == name)
        shown = client.call("screenshot", display=number, max_image_dimension=limit)["picture"]
        client.call("click", window_id=window["window_id"], x=200, y=200)  # is in front from now on
        first = fixture.wait("press")
        # Where the area that tells of its presses lies on the screen.
        frame = window["frame"]
        left, top = frame["x"] + 200 - first["x"], frame["y"] + 200 - first["y"]
        for row in range(3):
            for column in range(3):
                wanted = (left + 100 + 300 * column, top + 80 + 170 * row)
                image = [(wanted[0] + 0.5 - x) / shown["scale_x"], (wanted[1] + 0.5 - y) / shown["scale_y"]]
                start = len(fixture.events)
                client.call("click", x=image[0], y=image[1], picture_id=shown["picture_id"])
                press = fixture.wait("press", start=start)
                assert abs(left + press["x"] - wanted[0]) <= 1, (wanted, press)
                assert abs(top + press["y"] - wanted[1]) <= 1, (wanted, press)


@pytest.mark.parametrize("name", list(DISPLAYS))
def test_f70_each_button_of_a_grid_is_hit_through_a_small_picture(two_displays, name):
    x, y, width, height = DISPLAYS[name]
    with Client(two_displays) as client, Fixture(
        two_displays, "gtk3", "grid", title=f"Grid {name}", at=f"{x + 100},{y + 100}", size="600,400"
    ) as fixture:
        window = client.window(title=f"Grid {name}")
        client.element(window, name="R2C2")
        client.call("bring_to_front", window_id=window["window_id"])
        displays = client.call("get_screen_size")["displays"]
        number = next(display["display"] for display in displays if display["name"] == name)
        client.call("set_config", max_image_dimension=500)
        frame = window["frame"]
        for row in range(3):
            for column in range(3):
                shown = client.call("get_desktop_state", display=number)["picture"]
                place = frame["x"] + frame["width"] * (2 * column + 1) / 6, frame["y"] + frame["height"] * (2 * row + 1) / 6
                image = [int((place[0] - x) / shown["scale_x"]), int((place[1] - y) / shown["scale_y"])]
                start = len(fixture.events)
                client.call("click", x=image[0], y=image[1], space="image")
                fixture.wait("click", start=start, name=f"R{row}C{column}")


SCALED = [
    ("gtk3", {"GDK_SCALE": "2"}),
    ("gtk4", {"GDK_SCALE": "2"}),
    ("qt5", {"QT_SCALE_FACTOR": "1.25"}),
    ("qt5", {"QT_SCALE_FACTOR": "1.5"}),
    ("qt5", {"QT_SCALE_FACTOR": "2"}),
]


@pytest.mark.parametrize("toolkit, env", SCALED, ids=lambda value: value if isinstance(value, str) else "=".join(*value.items()))
def test_f70_elements_of_a_scaled_toolkit_are_where_they_are(client, desktop, toolkit, env):
    title = "Scaled " + " ".join(env.values())
    with Fixture(desktop, toolkit, "grid", title=title, size="300,200", env=env) as fixture:
        window = client.window(title=title)
        client.element(window, name="R2C2")
        shown = client.tree(window, frames=True)
        frame = window["frame"]
        for row in range(3):
            for column in range(3):
                name = f"R{row}C{column}"
                element = next(e for e in shown.elements if e.name == name)
                x, y = (int(number) for number in element.rest.split("@")[1].split()[0].split(","))
                assert frame["x"] <= x < frame["x"] + frame["width"] and frame["y"] <= y < frame["y"] + frame["height"]
                start = len(fixture.events)
                client.call("click", window_id=window["window_id"], element_index=element.index, delivery="foreground")
                fixture.wait("click", start=start, name=name)
        # And where it is seen.
        for limit in (8192, 300):
            seen = client.call("screenshot", window_id=window["window_id"], max_image_dimension=limit)["picture"]
            for element in [element for element in shown.elements if element.name.startswith("R")]:
                x, y, width, height = map(int, re.search(r"@(-?\d+),(-?\d+) (\d+)x(\d+)", element.rest).groups())
                place = {
                    "x": (x + width / 2 - seen["frame"]["x"]) / seen["scale_x"],
                    "y": (y + height / 2 - seen["frame"]["y"]) / seen["scale_y"],
                }
                start = len(fixture.events)
                client.call("click", **place, picture_id=seen["picture_id"])
                fixture.wait("click", start=start, name=element.name)


BUTTONS = "<!doctype html><title>Scaled page</title><table>" + "".join(
    "<tr>" + "".join(f"<td><button onclick='document.title=\"hit R{row}C{column}\"'>R{row}C{column}</button>" for column in range(3))
    for row in range(3)
) + "</table>"


@pytest.mark.parametrize("scale", ["1.25", "1.5", "2"])
def test_f70_elements_of_a_scaled_chromium_are_where_they_are(client, desktop, tmp_path, scale):
    page = tmp_path / "page.html"
    page.write_text(BUTTONS)
    process = desktop.start([*chromium(tmp_path / "profile", page.as_uri()), f"--force-device-scale-factor={scale}"])
    try:
        window = client.window(title="Scaled page", timeout=40)
        for name in ("R0C0", "R1C2", "R2C1", "R2C2"):
            button = client.element(window, role="button", name=name, timeout=30)
            client.call("click", window_id=window["window_id"], element_index=button.index, delivery="foreground")
            client.window(title=f"hit {name}")
    finally:
        processes.end(process)
