"""The training log, train.jsonl: one line of JSON for every report and every validation.

A checkpoint knows how many lines its run had written by then. A run that goes on from it drops the
later ones, since it makes those updates again. The lines of the base name no part; the others name
theirs."""

from __future__ import annotations

import json
from pathlib import Path

from tmnmt.durable import append, write

LOG_FILE = "train.jsonl"


def add_line(folder: Path, entry: dict[str, object]) -> None:
    """Writes `entry` behind what is there."""
    append(folder / LOG_FILE, f"{json.dumps(entry)}\n".encode())


def count_lines(folder: Path, part: str | None) -> int:
    """How many lines are of `part`; None: of the base."""
    return sum(line.endswith("\n") and _part_of(line) == part for line in _lines(folder))


def keep_lines(folder: Path, part: str | None, count: int) -> None:
    """Drops the lines of `part` behind its first `count`, and a line that a killed run left
    unfinished."""
    lines, own = [], 0
    for line in _lines(folder):
        own += _part_of(line) == part
        if line.endswith("\n") and (_part_of(line) != part or own <= count):
            lines.append(line)
    path = folder / LOG_FILE
    if path.exists() and path.read_text(encoding="utf-8") != (content := "".join(lines)):
        write(path, content.encode(), alone=True)


def _lines(folder: Path) -> list[str]:
    path = folder / LOG_FILE
    return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []


def _part_of(line: str) -> str | None:
    try:
        return str(json.loads(line)["part"])
    except (ValueError, KeyError, TypeError):
        return None
