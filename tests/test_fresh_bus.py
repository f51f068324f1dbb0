"""F27: the first application of a session whose accessibility bus nobody has asked for yet."""

import time

import pytest

from stage import processes
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.program import FIXTURES, SYSTEM_PYTHON

TOOLKITS = ["gtk3", "gtk4", "qt5", "qt6"]


@pytest.fixture
def fresh():
    """A desktop on which neither the accessibility bus nor its registry runs."""
    with OwnDesktop(accessibility=False) as desktop:
        assert not any("at-spi" in command for command in processes.marked(desktop.mark).values())
        yield desktop


@pytest.mark.parametrize("after", [0, 0.2, 1])
@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_f27_the_first_application_is_read_whole(fresh, toolkit, after):
    with Client(fresh) as client, Fixture(fresh, toolkit, "widgets", title="First", size="400,700") as fixture:
        window = client.window(title="First")
        # This age of the window is what is tested, not a state that could be awaited.
        time.sleep(after)
        answer = client.tree(window)
        for name in ("Save", "Delete", "Remember me", "Volume", "Apple"):
            assert f'"{name}"' in answer.text, answer.text
        client.call("click", window_id=window["window_id"], query={"name": "Save"})
        fixture.wait("click", name="Save")


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_f27_the_driver_comes_first(fresh, toolkit):
    """It has looked for applications before there was one, and starts the registry that the application then finds."""
    with Client(fresh) as client:
        with Fixture(fresh, "tk", "gallery", title="Bare"):
            assert client.tree(client.window(title="Bare"))["element_count"] == 0
        with Fixture(fresh, toolkit, "widgets", title="Second", size="400,700"):
            assert '"Save"' in client.tree(client.window(title="Second")).text


@pytest.mark.parametrize("toolkit, app", [("gtk3", "galculator"), ("gtk4", "gnome-calculator")])
def test_f27_a_session_that_switches_accessibility_off(fresh, toolkit, app):
    """Whoever starts such a program by other means than launch_app is told why nothing can be read."""
    off = {"GTK_A11Y": "none", "NO_AT_BRIDGE": "1"}
    with Client(fresh, env={**fresh.env, **off}) as client:
        with Fixture(fresh, toolkit, "widgets", title="Mute", size="400,700", env=off):
            answer = client.tree(client.window(title="Mute"))
            assert answer["element_count"] == 0
            assert "started without accessibility" in answer.text and "launch_app" in answer.text, answer.text
        launched = client.call("launch_app", app=app)
        try:
            shown = client.tree(launched["windows"][0])
            assert len([element for element in shown.elements if "button" in element.role]) > 10, shown.text
        finally:
            client.call("kill_app", pid=launched["pid"], force=True)
