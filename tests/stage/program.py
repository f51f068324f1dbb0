"""The program under test and the places in the repository."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "crates" / "deskhand-testkit" / "fixtures"

# The system's interpreter: the toolkits' bindings are Debian packages.
SYSTEM_PYTHON = "/usr/bin/python3"


def deskhand():
    """Path of the release binary, wherever cargo was told to put it; or the one that `DESKHAND_PROGRAM` names."""
    if other := os.environ.get("DESKHAND_PROGRAM"):
        return other
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return str(REPOSITORY / target / "release" / "deskhand")
