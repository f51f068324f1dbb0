"""Pictures show what they say they show."""

import io
import struct

import pytest
from PIL import Image, ImageChops

from stage import processes
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop


def picture(answer, place=0):
    return Image.open(io.BytesIO(answer.images[place])).convert("RGB")


def root_picture(desktop, folder):
    """What another program sees on the screen: a dump of xwd, whose header is a row of 32-bit numbers."""
    path = folder / "root.xwd"
    desktop.run("xwd", "-silent", "-root", "-out", str(path))
    data = path.read_bytes()
    header = struct.unpack(">25I", data[:100])
    size, width, height, line, colours = header[0], header[4], header[5], header[12], header[19]
    pixels = data[size + 12 * colours :]
    order = {24: "BGR", 32: "BGRX"}[header[11]]
    return Image.frombytes("RGB", (width, height), pixels, "raw", order, line, 1)


def colours(image):
    return {colour: count for count, colour in image.getcolors(1 << 24)}


RED, GREEN = (200, 16, 32), (16, 160, 48)


def solid(desktop, title, colour, **options):
    return Fixture(desktop, "gtk3", "solid", title=title, colour="#%02x%02x%02x" % colour, **options)


def test_the_first_picture_of_a_covered_window_has_no_pixel_of_its_cover(desktop):
    for place in range(5):
        with solid(desktop, f"Covered {place}", GREEN, at="300,200", size="300,200"):
            with solid(desktop, f"Cover {place}", RED, at="250,150", size="500,400"), Client(desktop) as client:
                window = client.window(title=f"Covered {place}")
                client.window(title=f"Cover {place}")
                processes.wait_until(lambda: client.window(title=f"Cover {place}")["focused"], 5, "the cover is in front")
                answer = client.call("screenshot", window_id=window["window_id"])
                seen = colours(picture(answer))
                assert RED not in seen
                assert seen.get(GREEN, 0) > 50_000


def test_the_desktop_picture_shows_the_cover(client, desktop):
    with solid(desktop, "Under", GREEN, at="300,200", size="300,200"), solid(desktop, "Over", RED, at="250,150", size="500,400"):
        client.window(title="Under")
        processes.wait_until(lambda: client.window(title="Over")["focused"], 5, "the cover is in front")
        processes.wait_until(
            lambda: colours(picture(client.call("get_desktop_state"))).get(RED, 0) > 100_000, 5, "the cover is drawn"
        )
        seen = colours(picture(client.call("get_desktop_state")))
        assert seen.get(GREEN, 0) < 10_000


def test_a_window_picture_matches_an_independent_one(client, desktop, tmp_path):
    with Fixture(desktop, "gtk3", "widgets", title="Same", at="200,100", size="400,600"):
        window = client.window(title="Same")
        client.element(window, role="button", name="Save")
        frame = window["frame"]
        client.call("move_cursor", x=2, y=2)
        box = (frame["x"], frame["y"], frame["x"] + frame["width"], frame["y"] + frame["height"])

        def differing():
            ours = picture(client.call("screenshot")).crop(box)
            theirs = root_picture(desktop, tmp_path).crop(box)
            difference = ImageChops.difference(ours, theirs).convert("L")
            differing.count = sum(difference.histogram()[1:])
            return differing.count

        # Between the two pictures a caret may blink and a widget may still be fading in.
        processes.wait_until(lambda: differing() < 100, 10, lambda: f"{differing.count} pixels differ")


@pytest.mark.parametrize("limit", [64, 500, 1568])
def test_a_picture_is_scaled_to_the_limit_and_says_the_factor(desktop, limit):
    with OwnDesktop(size="1920x1080", bus=False) as wide, Client(wide) as client:
        client.call("set_config", max_image_dimension=limit)
        answer = client.call("screenshot")
        image = picture(answer)
        assert max(image.size) <= limit
        assert abs(image.size[0] / image.size[1] - 1920 / 1080) < 0.05
        info = answer["picture"]
        assert (info["width"], info["height"]) == image.size
        assert image.size[0] * info["scale_x"] == pytest.approx(1920, abs=1e-6)
        assert image.size[1] * info["scale_y"] == pytest.approx(1080, abs=1e-6)


@pytest.mark.parametrize("kind, magic", [("png", b"\x89PNG"), ("jpeg", b"\xff\xd8")])
def test_the_format_is_the_one_asked_for(client, kind, magic):
    answer = client.call("screenshot", format=kind)
    assert answer.images[0].startswith(magic)
    assert answer.mimes == [f"image/{kind}"]


def test_a_picture_into_a_file(client, tmp_path):
    path = tmp_path / "out.png"
    client.call("screenshot", out_file=str(path))
    assert Image.open(path).size[0] > 0
    assert path.stat().st_mode & 0o077 == 0, "what is on the screen is nobody else's"


def test_f61_a_minimised_window_is_no_black_picture(client, desktop):
    with solid(desktop, "Minimised", GREEN, at="300,200") :
        window = client.window(title="Minimised")
        desktop.run("xdotool", "windowminimize", str(window["window_id"]))
        processes.wait_until(lambda: client.window(title="Minimised")["minimized"], 5, "it is minimised")
        answer = client.try_call("screenshot", window_id=window["window_id"])
        if answer.is_error:
            assert answer.code == "capture_failed"
            assert "minimi" in answer.error_message
        else:
            assert colours(picture(answer)).get(GREEN, 0) > 10_000


def test_f61_a_window_partly_off_the_screen_is_clipped_or_whole_but_never_black(client, desktop):
    with solid(desktop, "Partly off", GREEN, at="300,200", size="400,300") as fixture:
        window = client.window(title="Partly off")
        fixture.ask("move -200,-100", "moved")
        processes.wait_until(lambda: client.window(title="Partly off")["frame"]["x"] < 0, 5, "it has moved")
        answer = client.call("screenshot", window_id=window["window_id"])
        image = picture(answer)
        seen = colours(image)
        assert seen.get(GREEN, 0) > 0.8 * 200 * 200
        assert seen.get((0, 0, 0), 0) < 0.1 * image.size[0] * image.size[1]


def test_f60_a_window_picture_has_its_open_menu(client, desktop):
    with Fixture(desktop, "gtk3", "menu", title="With menu", at="300,200", size="300,60"):
        window = client.window(title="With menu")
        before = picture(client.call("screenshot", window_id=window["window_id"]))
        things = client.element(window, role="menu", name="Things")
        client.call("click", window_id=window["window_id"], element_index=things.index, delivery="foreground")
        popups = processes.wait_until(lambda: [w for w in client.windows() if w["kind"] == "popup"], 5, "the menu opens")
        after = picture(client.call("screenshot", window_id=window["window_id"]))
        # The menu hangs out of the small window, so the picture has grown by it.
        assert after.size[1] > before.size[1]
        assert [w for w in client.windows() if w["kind"] == "popup"] == popups, "looking closes nothing"


def test_screens_are_listed(client):
    answer = client.call("get_screen_size")
    display = answer["displays"][0]
    assert (display["frame"]["width"], display["frame"]["height"]) == (1280, 800)
