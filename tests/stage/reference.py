"""What libatspi says of a window, read by a process of its own."""

import json

from .program import REPOSITORY, SYSTEM_PYTHON


def walk(desktop, title, *options):
    """Count, nodes and what was left out of the tree of the window whose title contains `title`."""
    script = REPOSITORY / "tests" / "reference" / "atspi_walk.py"
    return json.loads(desktop.run(SYSTEM_PYTHON, str(script), title, *options))


def text_of(desktop, title, role="text"):
    """Text of the first element of that role."""
    return next(node["text"] for node in walk(desktop, title)["nodes"] if node["role"] == role)
