"""Windows that draw their own frame and shadow, see-through ones, and ones that lie partly off the screen."""

import io
import re

import pytest
from PIL import Image

from stage import processes
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop

SCREEN = (1280, 800)
GREEN = (0, 255, 0, 255)


@pytest.fixture(scope="module")
def composited():
    """A desktop whose window manager draws shadows and lets applications draw theirs."""
    with OwnDesktop(window_manager=["xfwm4", "--compositor=on"]) as desktop:
        processes.wait_until(
            lambda: "_GTK_FRAME_EXTENTS" in desktop.run("xprop", "-root", "_NET_SUPPORTED"), 10, "shadows are supported"
        )
        yield desktop


def property_of(desktop, window, name):
    said = desktop.run("xprop", "-id", str(window["window_id"]), name)
    return [int(number) for number in re.findall(r"\d+", said.split("=")[1])] if "=" in said else None


def geometry(desktop, window):
    """Place and size of the X window, shadow included."""
    said = desktop.run("xwininfo", "-id", str(window["window_id"]))
    words = ("Absolute upper-left X", "Absolute upper-left Y", "Width", "Height")
    return [int(re.search(rf"{word}: +(-?\d+)", said)[1]) for word in words]


def picture(answer):
    return Image.open(io.BytesIO(answer.images[0])).convert("RGBA")


def hit_each_button(client, fixture, window, off=lambda x, y: False):
    """Clicks each button of the grid by its element, and by where it is in the window's picture."""
    shown = client.call("get_window_state", window_id=window["window_id"], frames=True)
    client.call("bring_to_front", window_id=window["window_id"])
    seen = client.call("screenshot", window_id=window["window_id"], max_image_dimension=8192)["picture"]
    left, top = seen["frame"]["x"], seen["frame"]["y"]
    hit = 0
    for element in [element for element in shown.elements if re.fullmatch(r"R\dC\d|In the bar", element.name)]:
        x, y, width, height = (int(number) for number in re.search(r"@(-?\d+),(-?\d+) (\d+)x(\d+)", element.rest).groups())
        if off(x, y) or off(x + width, y + height):
            continue
        start = len(fixture.events)
        client.call("click", window_id=window["window_id"], element_index=element.index, delivery="foreground")
        fixture.wait("click", start=start, name=element.name)
        start = len(fixture.events)
        image = [x + width // 2 - left, y + height // 2 - top]
        client.call("click", x=image[0], y=image[1], picture_id=seen["picture_id"])
        fixture.wait("click", start=start, name=element.name)
        hit += 1
    return hit


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4"])
def test_f70_a_frame_ends_where_the_shadow_begins(composited, toolkit, scale):
    title = f"Titled {toolkit} {scale}"
    options = {"at": "200,150" if scale == 1 else "100,60", "size": f"{500 // scale},{300 // scale}", "env": {"GDK_SCALE": str(scale)}}
    with Fixture(composited, toolkit, "titled", title=title, **options) as fixture, Client(composited) as client:
        window = client.window(title=title)
        client.element(window, name="R2C2")
        window = client.window(title=title)
        left, right, top, bottom = property_of(composited, window, "_GTK_FRAME_EXTENTS")
        assert min(left, right, top, bottom) > 5, "the application draws a shadow"
        x, y, width, height = geometry(composited, window)
        assert window["frame"] == {"x": x + left, "y": y + top, "width": width - left - right, "height": height - top - bottom}
        image = picture(client.call("screenshot", window_id=window["window_id"], max_image_dimension=8192))
        assert image.size == (window["frame"]["width"], window["frame"]["height"])
        # The sides of the window itself are opaque, the shadow's are not.
        middle = image.size[1] // 2
        assert image.getpixel((0, middle))[3] == image.getpixel((image.size[0] - 1, middle))[3] == 255
        assert hit_each_button(client, fixture, window) == 10
        client.call("set_window_frame", window_id=window["window_id"], x=300, y=200, width=700, height=400)
        assert client.window(title=title)["frame"] == {"x": 300, "y": 200, "width": 700, "height": 400}
        assert hit_each_button(client, fixture, window) == 10


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4"])
@pytest.mark.parametrize("place", [(-180, -30), (1000, 640)])
def test_f61_a_window_with_a_shadow_partly_off_the_screen(composited, toolkit, place):
    title = f"Off {toolkit} {place[0]}"
    with Fixture(composited, toolkit, "titled", title=title, at="200,150", size="500,300") as fixture, Client(composited) as client:
        window = client.window(title=title)
        client.element(window, name="R2C2")
        composited.run("xdotool", "windowmove", str(window["window_id"]), str(place[0]), str(place[1]))
        moved = processes.wait_until(
            lambda: (found := client.window(title=title))["frame"]["x"] != window["frame"]["x"] and found, 5, "it has moved"
        )
        frame = moved["frame"]
        right, bottom = frame["x"] + frame["width"], frame["y"] + frame["height"]
        assert frame["x"] < 0 or right > SCREEN[0], frame
        image = picture(client.call("screenshot", window_id=window["window_id"], max_image_dimension=8192))
        whole = image.size == (frame["width"], frame["height"])
        part = (min(right, SCREEN[0]) - max(frame["x"], 0), min(bottom, SCREEN[1]) - max(frame["y"], 0))
        assert whole or image.size == part, (image.size, frame)
        assert image.getcolors(1 << 24)[0][0] < image.size[0] * image.size[1], "it is not of one colour"
        assert hit_each_button(client, fixture, moved, off=lambda x, y: not (0 <= x < SCREEN[0] and 0 <= y < SCREEN[1])) >= 1


@pytest.mark.parametrize("composites", [True, False])
def test_a_see_through_window_keeps_its_colours_and_its_coverage(composited, own_desktop, composites):
    desktop = composited if composites else own_desktop
    with Fixture(desktop, "gtk3", "glass", title="Glass", at="300,200", size="400,200") as fixture, Client(desktop) as client:
        window = client.window(title="Glass")
        facts = client.call("debug_window_info", window_id=window["window_id"])
        assert "depth 32" in facts.text
        shown = client.call("screenshot", window_id=window["window_id"], max_image_dimension=8192)
        image = picture(shown)
        frame, (x, y, width, height) = window["frame"], geometry(desktop, window)
        inside = (x - frame["x"], y - frame["y"])
        at = lambda dx, dy: image.getpixel((inside[0] + dx, inside[1] + dy))  # noqa: E731
        assert at(100, 100) == GREEN
        red, green, blue, alpha = at(300, 100)
        assert (red >= 250, green, blue) == (True, 0, 0) and 125 <= alpha <= 130, at(300, 100)
        for dx in (100, 300):
            start = len(fixture.events)
            client.call("click", x=inside[0] + dx, y=inside[1] + 100, picture_id=shown["picture"]["picture_id"])
            press = fixture.wait("press", start=start)
            assert abs(press["x"] - dx) <= 1 and abs(press["y"] - 100) <= 1, press
