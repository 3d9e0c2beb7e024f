"""The training log, train.jsonl: one line of JSON for every report and every validation.

A checkpoint knows how many lines its run had written by then. A run that goes on from it drops the
later ones, since it makes those updates again. The lines of the base name no part; the others name
theirs."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from tmnmt.durable import append, write
from tmnmt.models.folder import read_regular

LOG_FILE = "train.jsonl"
MOST_LOG_BYTES = 1 << 28
LARGEST = 1e15  # of seconds and tokens: what is beyond is no count of them


class TrainingCost(NamedTuple):
    """What the training of a part took: seconds without validations, and what its log counts as
    tokens, 0 where it counts none."""

    seconds: float
    tokens: int


def training_costs(folder: Path) -> dict[str | None, TrainingCost]:
    """What a model folder's log says of every part, None of the base; empty where there is no log.

    Each line counts from the beginning of its run, so the last one of a run has all of it; the log
    of a model that was made in several says their number as `run`. Raises ModelError where the log
    is no regular file."""
    path = folder / LOG_FILE
    if not path.exists():
        return {}
    last: dict[tuple[str | None, str], TrainingCost] = {}
    for line in read_regular(path, MOST_LOG_BYTES, "no training log is").splitlines():
        entry = _entry(line)
        part, seconds, tokens = (entry.get(key) for key in ("part", "seconds", "tokens"))
        if _is_count(seconds):
            key = str(part) if part is not None else None, str(entry.get("run"))
            last[key] = TrainingCost(seconds, int(tokens) if _is_count(tokens) else 0)
    return _by_part(last)


def _entry(line: bytes) -> dict[str, Any]:
    """A line of the log; empty for what is none."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _is_count(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and type(value) is not bool and 0 <= value < LARGEST


def _by_part(runs: dict[tuple[str | None, str], TrainingCost]) -> dict[str | None, TrainingCost]:
    """The runs of a part together."""
    grouped: dict[str | None, list[TrainingCost]] = defaultdict(list)
    for (part, _), cost in runs.items():
        grouped[part].append(cost)
    return {
        part: TrainingCost(sum(c.seconds for c in costs), sum(c.tokens for c in costs))
        for part, costs in grouped.items()
    }


def add_line(folder: Path, entry: dict[str, object]) -> None:
    """Writes `entry` behind what is there."""
    append(folder / LOG_FILE, f"{json.dumps(entry)}\n".encode())


def count_lines(folder: Path, part: str | None) -> int:
    """How many lines are of `part`; None: of the base."""
    return sum(line.endswith("\n") and _part_of(line) == part for line in _lines(folder))


def keep_lines(folder: Path, part: str | None, count: int) -> None:
    """Drops the lines of `part` behind its first `count`, and a line that a killed run left
    unfinished."""
    lines, part_lines = [], 0
    for line in _lines(folder):
        part_lines += _part_of(line) == part
        if line.endswith("\n") and (_part_of(line) != part or part_lines <= count):
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
