"""Answers that were long to find, kept in a file beside the questions: what another run asks again
is read. And the settings of a run, which another one must not have otherwise."""

from __future__ import annotations

import gzip
import io
import json
import logging
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tmnmt.durable import replacing, write
from tmnmt.errors import UsageError

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


def read_kept(
    path: Path, header: dict[str, Any], count: int, parse: Callable[[Any], Answer]
) -> list[Answer] | None:
    """The `count` answers, made of JSON by `parse`, where the file holds those to `header`; None
    where they are to be found anew. `parse` raises TypeError or ValueError for what is no
    answer."""
    if not path.exists():
        return None
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            saved = json.loads(next(lines))
            if saved == header:
                answers = [parse(json.loads(line)) for line in lines]
                if len(answers) != count:
                    raise ValueError(f"{len(answers):,} answers, wanted {count:,}")
                return answers
    except (EOFError, OSError, zlib.error, ValueError, TypeError, StopIteration) as error:
        log.warning("%s: damaged: %s; made again", path, error)
        return None
    log.info("%s: holds %s, wanted is %s; made again", path, saved, header)
    return None


def write_kept(path: Path, header: dict[str, Any], answers: Sequence[Any]) -> None:
    """Writes them, a line each, whole or not at all; the same answers are the same bytes at any
    time."""
    with (
        replacing(path, alone=True) as new,
        new.open("wb") as raw,
        gzip.GzipFile("", "wb", 3, raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as stream,
    ):
        stream.write(json.dumps(header) + "\n")
        stream.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)


def same_settings(path: Path, settings: dict[str, Any]) -> None:
    """Keeps the settings of a run in a file. Raises UsageError where that has other ones: what was
    trained with them would be taken for what is asked now."""
    requested = json.loads(json.dumps(settings))
    saved = json.loads(path.read_text(encoding="utf-8")) if path.exists() else requested
    differing = [
        f"{name} was {saved.get(name)!r}, is {requested.get(name)!r}"
        for name in sorted({*saved, *requested})
        if saved.get(name) != requested.get(name)
    ]
    if differing:
        raise UsageError(f"{path.parent}: trained with other settings: {'; '.join(differing)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps(requested, indent=1).encode())
