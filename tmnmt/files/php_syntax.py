"""The texts of PHP's arrays, their keys and where they stand. Nothing is run: what is no literal
text, such as a call or a concatenation, is stepped over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tmnmt.files.whole import Wrong

DEEPEST = 100  # brackets inside one another
_TOKEN = re.compile(
    r"(?P<blank>\s++)"
    r"|(?P<line>(?://|\#(?!\[))(?:(?!\?>)[^\r\n])*+)"
    r"|(?P<block>/\*[\s\S]*?\*/)"
    r"|(?P<single>'(?:[^'\\]|\\[\s\S])*+')"
    r"|(?P<double>\"(?:[^\"\\]|\\[\s\S])*+\")"
    r"|(?P<shell>`(?:[^`\\]|\\[\s\S])*+`)"
    r"|(?P<heredoc><<<)"
    r"|(?P<end>\?>)"
    r"|(?P<arrow>=>)"
    r"|(?P<variable>\$\w++)"
    r"|(?P<word>[\w\\]++)"
    r"|(?P<sign>[\s\S])"
)
_OPEN = re.compile(r"<\?(?:php\b|=)?")
_TABLE = "$lang"  # the variable of CodeIgniter 3
_FUNCTIONS = ("fn", "function", "static")
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_ESCAPE = re.compile(r"\\(?:([nrtvef\\$\"])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u\{([0-9A-Fa-f]+)\})")
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", "v": "\v", "e": "\x1b", "f": "\f"}
_ESCAPES = {sign: f"\\{letter}" for letter, sign in _SIGNS.items()} | {
    sign: f"\\{sign}" for sign in '\\"$'
}
_VARIABLE = re.compile(r"(?<!\\)(?:\\\\)*+(?:\$[A-Za-z_{]|\{\$)")  # in double quotation marks
# bytes of characters that have several
_BYTES = re.compile(r"(?<!\\)(?:\\\\)*+\\(?:[23][0-7]{2}|x[89A-Fa-f][0-9A-Fa-f])")
_LAST_CHARACTER = 0x10FFFF


class Literal(NamedTuple):
    """A text that is a value. `path`: the keys that lead to it, and the numbers of items without
    one; it stands from `start` to `end`, with its quotation marks; `notes`: the comments in the
    lines in front of it."""

    path: tuple[str, ...]
    start: int
    end: int
    value: str
    notes: tuple[str, ...]


class _Token(NamedTuple):
    kind: str
    start: int
    end: int
    value: str


@dataclass(slots=True)
class _Frame:
    """A bracket that has not ended, or the file. `is_array`: whether its items are values of a
    table of texts; `item`: the tokens since the last comma or semicolon."""

    opener: str
    start: int
    path: tuple[str, ...] = ()
    is_array: bool = False
    key: str = ""
    number: int = 0
    item: list[_Token] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def literals(text: str, wrong: Wrong) -> Iterator[Literal]:
    """The texts that stand in `return [...]` and in `$lang['key'] = ...`, in order.

    text: the file.
    wrong: makes the error of a place and of what is wrong there: a text or bracket that does not
    end, a heredoc, more than 100 brackets inside one another."""
    return _Reader(text, wrong).run()


class _Reader:
    def __init__(self, text: str, wrong: Wrong) -> None:
        self._text, self._wrong = text, wrong
        self._frames = [_Frame("", 0)]

    def run(self) -> Iterator[Literal]:
        opening = _OPEN.search(self._text)
        for match in _TOKEN.finditer(self._text, opening.end() if opening else 0):
            kind = match.lastgroup or ""
            if kind == "end":
                break
            yield from self._read(_Token(kind, match.start(), match.end(), match[0]))
        if len(self._frames) > 1:
            raise self._wrong(self._frames[-1].start, "a bracket that does not end")

    def _read(self, token: _Token) -> Iterator[Literal]:
        frame = self._frames[-1]
        if token.kind == "line":
            frame.notes.append(token.value.lstrip("/#").strip())
        elif token.kind == "blank" or token.kind == "block":
            return
        elif token.kind == "heredoc":
            raise self._wrong(token.start, "a heredoc; allowed are texts in quotation marks")
        elif token.kind == "arrow":
            if frame.key or (frame.item and frame.item[0].value.lower() in _FUNCTIONS):
                frame.item.append(token)  # of a function, whose value is no text of the table
            else:
                frame.key, frame.item = self._key(frame.item), []
        elif token.kind == "sign":
            yield from self._sign(token)
        else:
            frame.item.append(token)

    def _sign(self, token: _Token) -> Iterator[Literal]:
        frame, sign = self._frames[-1], token.value
        if sign in "'\"`":
            raise self._wrong(token.start, "a text that does not end")
        if sign in _CLOSED_BY:
            self._begin(token)
        elif sign in _CLOSED_BY.values():
            yield from self._value(frame)
            self._finish(token)
        elif sign == "," and frame.is_array:
            yield from self._value(frame)
        elif sign == ";":
            yield from self._value(frame)
            frame.item = []
        else:
            frame.item.append(token)

    def _begin(self, token: _Token) -> None:
        if len(self._frames) > DEEPEST:
            problem = f"more than {DEEPEST} brackets inside one another"
            raise self._wrong(token.start, problem)
        frame = self._frames[-1]
        tokens = [each.value for each in frame.item]
        if tokens[-1:] == ["array"] and token.value == "(":
            tokens.pop()
        elif token.value != "[":
            tokens.append("")
        is_root = len(self._frames) == 1
        assigned = self._assigned(frame.item) if is_root and tokens[-1:] == ["="] else None
        path = frame.path
        if frame.is_array:
            path = self._next_path(frame)
        is_array = (not tokens and frame.is_array) or (
            is_root and (tokens == ["return"] or assigned is not None)
        )
        self._frames.append(_Frame(token.value, token.start, assigned or path, is_array))

    def _finish(self, token: _Token) -> None:
        """Ends a bracket; the one that held it has it as a token with the key that it is."""
        frame = self._frames.pop()
        if not self._frames or _CLOSED_BY[frame.opener] != token.value:
            raise self._wrong(token.start, f"{token.value} is not expected here")
        kind = "index" if frame.opener == "[" and len(frame.item) == 1 else "group"
        key = self._key(frame.item) if kind == "index" else ""
        self._frames[-1].item.append(_Token(kind, frame.start, token.end, key))
        if frame.opener == "{" and len(self._frames) == 1:
            self._frames[-1].item = []  # a function or condition, which ends without a semicolon

    def _value(self, frame: _Frame) -> Iterator[Literal]:
        """The text that an item of an array or a statement is, if it is one."""
        item, notes = frame.item, tuple(filter(None, frame.notes))
        frame.notes = []
        path: tuple[str, ...] | None = None
        if frame.is_array:
            path = self._next_path(frame) if len(item) == 1 else None
            frame.number += bool(item) and not frame.key
            frame.key, frame.item = "", []
        elif len(self._frames) == 1 and len(item) > 1:
            path = self._assigned(item[:-1])
        value = _literal(item[-1]) if path is not None else None
        if path is not None and value is not None:
            yield Literal(path, item[-1].start, item[-1].end, value, notes)

    def _next_path(self, frame: _Frame) -> tuple[str, ...]:
        return (*frame.path, frame.key or str(frame.number))

    def _assigned(self, item: list[_Token]) -> tuple[str, ...] | None:
        """The keys of $lang['a']['b'] = ; None where something else stands there."""
        if len(item) < 2 or item[0].value != _TABLE or item[-1].value != "=":
            return None
        keys = item[1:-1]
        return tuple(key.value for key in keys) if {key.kind for key in keys} <= {"index"} else None

    def _key(self, item: list[_Token]) -> str:
        if len(item) != 1:
            return "?"
        value = _literal(item[0])
        return item[0].value if value is None else value


def _literal(token: _Token) -> str | None:
    """The text of a token; None where it is no literal text."""
    inside = token.value[1:-1]
    if token.kind == "single":
        return re.sub(r"\\([\\'])", r"\1", inside)
    if token.kind != "double" or _VARIABLE.search(inside) or _BYTES.search(inside):
        return None
    return _ESCAPE.sub(_sign_of, inside)


def _sign_of(escape: re.Match[str]) -> str:
    if escape[1]:
        return _SIGNS.get(escape[1], escape[1])
    if escape[4]:
        number = int(escape[4][-8:], 16)
        return chr(number) if number <= _LAST_CHARACTER else escape[0]
    return chr(int(escape[2], 8) & 0xFF if escape[2] else int(escape[3], 16))


def written(value: str, quotation_mark: str) -> str:
    """A text as PHP has it.

    value: the text.
    quotation_mark: the quotation mark that it stands in."""
    if quotation_mark == "'":
        return "'" + re.sub(r"([\\'])", r"\\\1", value) + "'"
    return '"' + "".join(_ESCAPES.get(sign, sign) for sign in value) + '"'
