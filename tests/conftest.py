"""Desktops and clients that the tests share, and the check that nothing of them is left."""

import shutil
import tempfile
from pathlib import Path

import pytest

from stage import processes
from stage.client import Client
from stage.desktop import OwnDesktop, PrivateDesktop


BASE = pytest.StashKey[Path]()


def pytest_configure(config):
    """Temporary folders of this run alone: two runs at once do not clear each other's away."""
    if config.option.basetemp is None:
        base = Path(tempfile.mkdtemp(prefix="deskhand-tests-"))
        config.stash[BASE] = base
        config.option.basetemp = str(base / "run")


def pytest_unconfigure(config):
    if BASE in config.stash:
        shutil.rmtree(config.stash[BASE], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind():
    """What outlived the desktop it ran on is a fault of the driver, found at the end."""
    mark = processes.new_mark()
    yield mark
    assert not PrivateDesktop.outlived, f"these outlived their private desktop: {PrivateDesktop.outlived}"


@pytest.fixture(scope="module")
def desktop():
    """A private desktop for all tests of a file."""
    with PrivateDesktop() as made:
        yield made


@pytest.fixture(scope="module")
def own_desktop():
    """A desktop that the driver did not make."""
    with OwnDesktop() as made:
        yield made


@pytest.fixture
def client(desktop):
    with Client(desktop) as connected:
        yield connected
