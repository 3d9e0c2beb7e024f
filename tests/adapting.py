"""`tmnmt adapt` on twenty documents of variations."""

from __future__ import annotations

from pathlib import Path

from tiny_model import PAIRS

from tmnmt.cli import run
from tmnmt.segments import Segment

NUMBERS = ["one", "two", "three", "four", "five"]


def documents() -> list[Segment]:
    """Twenty documents of variations: every sentence has near matches in the others."""
    return [
        Segment(f"{src} {NUMBERS[n % 5]} {n}", f"{tgt} {NUMBERS[n % 5]} {n}", f"doc{n}", position)
        for n in range(20)
        for position, (src, tgt) in enumerate(PAIRS[:6])
    ]


def adapt(model: Path, index: Path, output: Path, *more: str) -> int:
    options = [
        "--model",
        str(model),
        "--memory",
        str(index),
        "-o",
        str(output),
        "--sentences",
        "60",
        "--epochs",
        "1",
    ]
    return run(["adapt", *options, "--dev-share", "0.2", *more])
