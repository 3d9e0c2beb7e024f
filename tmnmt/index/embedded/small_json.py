"""A small JSON file that says what lies beside it; whoever made it, reading it takes no long time
and little memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_small(path: Path, limit: int) -> tuple[str, Any]:
    """The text of a small file of JSON, and its content.

    path: the file.
    limit: how many bytes it may have.

    Raises OSError where it cannot be read. Raises ValueError where it is larger, no regular file,
    or no JSON."""
    status = path.stat()
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError("no regular file")
    if status.st_size > limit:
        raise ValueError(f"larger than {limit:,} bytes")
    text = path.read_text(encoding="utf-8")
    return text, parsed(text)


def parsed(text: str | bytes) -> Any:
    """The content of JSON.

    text: the JSON.

    Raises ValueError for all that is none, nested too deep, too."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists in lists too deep") from None


def is_text(value: object) -> bool:
    """Whether JSON gave Unicode text: an escape can be half of a character.

    value: what JSON gave."""
    return type(value) is str and (
        value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    )


def is_count(value: object, minimum: int = 0) -> bool:
    """Whether JSON gave a whole number that 63 bits hold.

    value: what JSON gave.
    minimum: the smallest number that counts."""
    return type(value) is int and minimum <= value < 1 << 63


def pairs_of(value: object) -> tuple[tuple[str, str], ...]:
    """Names and values as JSON has them.

    value: what JSON gave, a list of lists of two texts.

    Raises ValueError for anything else."""
    if not isinstance(value, list):
        raise ValueError("no list of names and values")
    for pair in value:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(is_text, pair))):
            raise ValueError("no list of names and values")
    return tuple((name, text) for name, text in value)
