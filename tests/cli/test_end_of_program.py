"""How the program ends."""

from __future__ import annotations

import subprocess
import sys

TRAINS = """
import sys
import tmnmt.cli
import torch
weight = torch.nn.Parameter(torch.zeros(2))
tmnmt.cli.main = lambda: torch.optim.Adam([weight]).step()
from tmnmt.__main__ import main
main()
"""


def test_a_training_ends_without_a_word_of_what_is_left() -> None:
    done = subprocess.run([sys.executable, "-c", TRAINS], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
