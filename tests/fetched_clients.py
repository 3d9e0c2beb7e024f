"""Clients that `python tests/fetch_clients.py` gets, run as programs of their own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from places import TESTS
from required import absent

FETCHED = TESTS.parent / ".cache" / "clients"


def printed(folder: str, command: Sequence[str]) -> str:
    """What a client prints. `folder`: the part of the clients that has to be there."""
    if not (FETCHED / folder).exists():
        absent("clients", "the clients are not here; python tests/fetch_clients.py gets them")
    if not shutil.which(command[0]):
        absent("clients", f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
