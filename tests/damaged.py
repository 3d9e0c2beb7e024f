"""An index one of whose arrays is not what was written."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

HEAD = 128  # bytes of an .npy file before its numbers
BYTES: dict[str, Callable[[int], bytes]] = {
    "random": random.Random(5).randbytes,
    "zeros": bytes,
    "ones": lambda size: b"\xff" * size,
}


def damaged(undamaged: Path, to: Path, name: str, kind: str) -> None:
    """Copies an index; the numbers of one array of its postings are these bytes."""
    shutil.copytree(undamaged, to)
    part = to / f"generation-1/postings-1/{name}.npy"
    content = part.read_bytes()
    part.write_bytes(content[:HEAD] + BYTES[kind](len(content) - HEAD))
