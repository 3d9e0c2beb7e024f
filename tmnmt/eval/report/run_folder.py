"""The files of an evaluated run as readers see them: report.json a checked tree, segments.jsonl
line by line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from tmnmt.errors import DataError

FORMAT = 1  # of report.json
LARGEST = 1e18  # of numbers; 1e999 is JSON, and infinite
REPORT, SEGMENTS = "report.json", "segments.jsonl"


class Node:
    """A JSON object at a place in a file. What is null or absent is None, "" or empty; a wrong type
    is a DataError that says where."""

    def __init__(self, value: Any, location: str) -> None:
        if not isinstance(value, dict):
            raise DataError(f"{location}: an object is expected, not {_kind(value)}")
        self._value, self.location = value, location

    def __bool__(self) -> bool:
        return bool(self._value)

    def keys(self) -> list[str]:
        return list(self._value)

    def raw(self, key: str) -> Any:
        return self._value.get(key)

    def text(self, key: str) -> str:
        value = self._value.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        self._wrong(key, "text")

    def name(self, key: str) -> str:
        """A text that must not be missing."""
        return self.text(key) or self._wrong(key, "text")

    def number(self, key: str) -> float | None:
        value = self._value.get(key)
        if value is None or (
            isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
        ):
            return value
        self._wrong(key, "a number")

    def flag(self, key: str) -> bool:
        value = self._value.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._wrong(key, "true or false")

    def node(self, key: str) -> Node:
        value = self._value.get(key)
        return Node({} if value is None else value, f"{self.location}.{key}")

    def nodes(self, key: str) -> list[Node]:
        return [Node(item, f"{self.location}.{key}[{i}]") for i, item in enumerate(self._list(key))]

    def texts(self, key: str) -> list[str]:
        items = self._list(key)
        return (
            items
            if all(isinstance(item, str) for item in items)
            else self._wrong(key, "a list of texts")
        )

    def _list(self, key: str) -> list[Any]:
        value = self._value.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self._wrong(key, "a list")

    def _wrong(self, key: str, expected: str) -> NoReturn:
        raise DataError(
            f"{self.location}.{key}: {expected} is expected, not {_kind(self._value.get(key))}"
        )


def read_report(run: Path) -> Node:
    """report.json of a run folder. DataError when it is missing, no JSON, of another format, or
    without tests, and when two test sets, or two systems of one, have the same name."""
    path = run / REPORT
    report = Node(parsed(_read(path), str(path)), str(path))
    if report.raw("format") != FORMAT:
        raise DataError(
            f"{path}: format {report.raw('format')!r} is not known; this version reads format "
            f"{FORMAT}"
        )
    if not report.nodes("tests"):
        raise DataError(f"{path}: no test set in it")
    _all_named(report.nodes("tests"), "test sets")
    for test in report.nodes("tests"):
        if not test.nodes("systems"):
            raise DataError(f"{test.location}: no system in it")
        _all_named(test.nodes("systems"), "systems")
    return report


def _all_named(nodes: list[Node], kind: str) -> None:
    name, count = Counter(node.name("name") for node in nodes).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{nodes[0].location}: {count} {kind} are named {name!r}; a name stands for one"
        )


def read_segments(run: Path) -> Iterator[Node]:
    """The lines of segments.jsonl, in constant memory. DataError names the line that is no JSON
    object."""
    path = run / SEGMENTS
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield Node(parsed(line, f"{path}:{number}"), f"{path}:{number}")
    except OSError as error:
        raise DataError(_unreadable(path, error)) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(_unreadable(path, error)) from error


def _unreadable(path: Path, error: OSError) -> str:
    return (
        f"{path}: cannot be read: {error.strerror or error}; a run folder holds {REPORT} and "
        f"{SEGMENTS}"
    )


def parsed(data: bytes, location: str) -> Any:
    """What JSON says. Raises DataError, with `location`, for what is no JSON in UTF-8."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{location}: not JSON: {error}") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; write null")


def _kind(value: Any) -> str:
    kinds = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "nothing",
    }
    return kinds.get(type(value), "a number")
