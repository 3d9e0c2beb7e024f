"""JSON (RFC 8259) as its strings, their keys and where they stand. No recursion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from tmnmt.errors import short_repr
from tmnmt.files.whole import BOM, Wrong

DEEPEST = 100  # values inside one another
_BLANK = re.compile(r"[ \t\r\n]*+")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null")


class String(NamedTuple):
    """A string that is a value. `path`: the keys that lead to it, and the numbers in lists."""

    path: tuple[str, ...]
    start: int  # with its quotation marks
    end: int
    value: str


class Span(NamedTuple):
    """Where an object or a list stands, with its braces or brackets."""

    start: int
    end: int


class _Container:
    """An object or a list that has not ended."""

    def __init__(self, is_object: bool, path: tuple[str, ...], start: int) -> None:
        self.is_object, self.path, self.start = is_object, path, start
        self.keys = set[str]()
        self.number = -1


def strings(text: str, wrong: Wrong) -> Iterator[String]:
    """The strings that are values, in order.

    text: the JSON.
    wrong: makes the error of a place and of what is wrong there: no JSON, a key twice in one
    object, more than 100 values inside one another."""
    return _Parser(text, wrong).run()


def containers(text: str, wrong: Wrong) -> dict[tuple[str, ...], Span]:
    """Where objects and lists stand, by the keys that lead to them.

    text: the JSON.
    wrong: makes the error of a place and of what is wrong there, as for `strings`."""
    parser = _Parser(text, wrong)
    for _ in parser.run():
        pass
    return parser.spans


class _Parser:
    def __init__(self, text: str, wrong: Wrong) -> None:
        self._text, self._wrong = text, wrong
        self._position = 1 if text.startswith(BOM) else 0
        self._open = list[_Container]()
        self.spans = dict[tuple[str, ...], Span]()

    def run(self) -> Iterator[String]:
        path: tuple[str, ...] = ()
        while True:
            sign = self._next()
            if sign == '"':
                start = self._position
                yield String(path, start, *self._string()[::-1])
            elif sign in "{[" and sign:
                self._begin(sign == "{", path)
                if not self._is_empty():
                    path = self._step()
                    continue
                self._close()
            else:
                self._skip_other()
            while self._open and not self._goes_on():
                self._close()
            if not self._open:
                break
            path = self._step()
        if self._next():
            raise self._wrong(self._position, "more behind the end of the JSON")

    def _next(self) -> str:
        """The next sign that is no blank; "" at the end."""
        self._position = _BLANK.match(self._text, self._position).end()  # type: ignore[union-attr]
        return self._text[self._position : self._position + 1]

    def _begin(self, is_object: bool, path: tuple[str, ...]) -> None:
        if len(self._open) == DEEPEST:
            raise self._wrong(self._position, f"more than {DEEPEST} values inside one another")
        self._open.append(_Container(is_object, path, self._position))
        self._position += 1

    def _close(self) -> None:
        """Notes the object or list that has ended."""
        container = self._open.pop()
        self.spans[container.path] = Span(container.start, self._position)

    def _is_empty(self) -> bool:
        """Whether the object or list ends at once; then it is read."""
        if self._next() != ("}" if self._open[-1].is_object else "]"):
            return False
        self._position += 1
        return True

    def _goes_on(self) -> bool:
        """Whether a comma comes; otherwise an end must."""
        end = "}" if self._open[-1].is_object else "]"
        sign = self._next()
        if sign not in (",", end):
            raise self._wrong(self._position, f"{self._what_stands()}; allowed: , or {end}")
        self._position += 1
        return sign == ","

    def _step(self) -> tuple[str, ...]:
        """The path to the next value; of an object its key is read."""
        top = self._open[-1]
        if not top.is_object:
            top.number += 1
            return (*top.path, str(top.number))
        if self._next() != '"':
            raise self._wrong(
                self._position, f"{self._what_stands()}; allowed: a key in quotation marks"
            )
        start = self._position
        key, _ = self._string()
        if key in top.keys:
            raise self._wrong(start, f"the key {short_repr(key)} a second time")
        top.keys.add(key)
        if self._next() != ":":
            raise self._wrong(
                self._position, f"{self._what_stands()}; allowed: a colon behind the key"
            )
        self._position += 1
        return (*top.path, key)

    def _string(self) -> tuple[str, int]:
        """The string that begins here, and its end."""
        try:
            value, self._position = scanstring(self._text, self._position + 1, True)
        except ValueError as error:
            raise self._wrong(self._position, "a text that is no JSON: " + str(error)) from error
        return value, self._position

    def _skip_other(self) -> None:
        match = _SCALAR.match(self._text, self._position)
        if match is None:
            raise self._wrong(self._position, f"{self._what_stands()}; allowed: a value of JSON")
        self._position = match.end()

    def _what_stands(self) -> str:
        if not self._text[self._position :]:
            return "the file ends too early"
        if self._text[self._position] == BOM:
            return "a byte-order mark in the middle of the file"
        return (
            f"{short_repr(self._text[self._position : self._position + 20])} is not expected here"
        )
