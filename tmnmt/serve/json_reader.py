"""Reads JSON, and is the program of a process that does: `python json_reader.py MOST`. It takes a
body from its standard input and writes what `answer` gives, as `marshal` has it.

A large body is read in a process of its own, because Python reads JSON under its global lock: a
thread that reads 18 MB of empty lists stops every other thread of the server for seconds. This file
imports the standard library alone, so that the process starts in some milliseconds."""

from __future__ import annotations

import json
import marshal
import re
import sys
from typing import Any

try:
    import resource
except ImportError:  # on Windows, which holds a process to no such bound
    resource = None  # type: ignore[assignment]

MEMORY = 1_500_000_000  # bytes that the process may take
_TEXT = re.compile(rb'"[^"]*"')


class TooManyValuesError(ValueError):
    """JSON has more values than a request may have."""


def parse_json(body: bytes, limit: int) -> Any:
    """The value of a body. Raises TooManyValuesError for more than `limit` values, and ValueError
    or RecursionError for what is no JSON, no UTF-8, or holds halves of characters, which no file
    can hold."""
    if _count(body) > limit:
        raise TooManyValuesError(f"JSON of more than {limit:,} values")
    value = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant)
    if b"\\u" in body:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _count(body: bytes) -> int:
    """How many values there are at most: each follows a comma or opens a list or an object."""
    plain = _TEXT.sub(b"", body.replace(b"\\\\", b"").replace(b'\\"', b""))
    return 1 + sum(plain.count(sign) for sign in (b",", b"[", b"{"))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def answer(body: bytes, limit: int) -> tuple[str, Any]:
    """ "value" and the value; or "many" or "wrong" for what `parse_json` raises."""
    try:
        return "value", parse_json(body, limit)
    except (TooManyValuesError, MemoryError):
        return "many", None
    except (ValueError, RecursionError):
        return "wrong", None


if __name__ == "__main__":
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.stdout.buffer.write(marshal.dumps(answer(sys.stdin.buffer.read(), int(sys.argv[1]))))
