"""Java's .properties (java.util.Properties, method load): keys with texts.

The file is in the source language, and what is written in the target language. It is read as UTF-8,
or else as ISO 8859-1, as java.util.PropertyResourceBundle does. In a text with arguments such as
{0}, which java.text.MessageFormat reads, an apostrophe is doubled. Characters beyond ASCII are
written as \\uXXXX, unless the file has such characters in UTF-8."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.codes.placeholders import ALL, by_pattern
from tmnmt.codes.record import Text, joined
from tmnmt.errors import shown
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import BOM, Edit, WholeFile
from tmnmt.formats.encoding import byte_order_mark

_COMMENT = re.compile(r"[ \t\f]*+[#!]([^\r\n]*+)")
_BLANK = re.compile(r"[ \t\f]*+(?:\r\n|\n|\r|\Z)")
# lines that end in an odd number of backslashes go on
_LOGICAL = re.compile(r"(?:[^\\\r\n]|\\(?:\r\n|[\s\S])|\\\Z)++")
_KEY = re.compile(r"[ \t\f]*+((?:[^\\=: \t\f\r\n]|\\(?:(?:\r\n|\n|\r)[ \t\f]*+|[\s\S]))*+)")
_SEPARATOR = re.compile(
    r"(?:[ \t\f]|\\(?:\r\n|\n|\r)[ \t\f]*+)*+[=:]?(?:[ \t\f]|\\(?:\r\n|\n|\r)[ \t\f]*+)*+"
)
_NEWLINE = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(?:\r\n|\n|\r)[ \t\f]*+|([\s\S])|\Z)")
_WRONG_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*+\\u(?![0-9A-Fa-f]{4})")
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES = {sign: f"\\{letter}" for letter, sign in _SIGNS.items()} | {"\\": "\\\\"}
_ARGUMENT = re.compile(r"\{\s*\d")
_FINDERS = (*ALL, by_pattern("'[{}][^']{0,99}'"))  # a brace that MessageFormat shows


class _Property(NamedTuple):
    key: str
    start: int  # of the value
    end: int
    value: str
    notes: tuple[str, ...]  # of the comments right in front of it
    line: int  # where it begins, as a place


class PropertiesFile(WholeFile[_Property]):
    """A bundle of texts."""

    kind = "properties"
    title = "Java properties"

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name."""
        return path.suffix.lower() == ".properties"

    def _encoding(self, data: bytes) -> str:
        marked, length = byte_order_mark(data)
        if length:
            return marked
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return "iso8859-1"
        return "utf-8"

    @cached_property
    def _slots(self) -> list[_Property]:
        properties, keys = list[_Property](), set[str]()
        for one in self._read():
            if one.key in keys:
                raise self.wrong(one.line, f"the key {shown(one.key)} a second time")
            keys.add(one.key)
            if any(map(str.isalnum, one.value)):
                properties.append(one)
        return properties

    def _read(self) -> Iterator[_Property]:
        text, notes = self.text, list[str]()
        at = 1 if text.startswith(BOM) else 0
        while at < len(text):
            if blank := _BLANK.match(text, at):
                notes, end = [], blank.end()
            elif comment := _COMMENT.match(text, at):
                notes.append(comment[1].strip())
                end = comment.end()
            else:
                if text[at] == BOM:
                    raise self.wrong(at, "a byte-order mark in the middle of the file")
                one = self._property(at, tuple(filter(None, notes)))
                yield one
                notes, end = [], one.end
            newline = _NEWLINE.match(text, end)
            at = newline.end() if newline and not blank else end

    def _property(self, at: int, notes: tuple[str, ...]) -> _Property:
        text = self.text
        key = _KEY.match(text, at)
        start = _SEPARATOR.match(text, key.end() if key else at)
        begin = start.end() if start else at
        value = _LOGICAL.match(text, begin)
        end = value.end() if value else begin
        if wrong := _WRONG_ESCAPE.search(text, at, end):
            raise self.wrong(wrong.start(), r"\u without four hexadecimal digits")
        return _Property(
            _unescaped(key[1] if key else ""), begin, end, _unescaped(text[begin:end]), notes, at
        )

    def _unit(self, slot: _Property) -> Unit:
        return unit_of(
            _message(slot.value),
            finders=_FINDERS,
            id=slot.key,
            notes=slot.notes,
            line=self.line(slot.line),
        )

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for one, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                target = filling.target
                string = _written(target) if _ARGUMENT.search(one.value) else string_of(target)
                yield Edit(one.start, one.end, self._escaped(string))

    @cached_property
    def _is_ascii(self) -> bool:
        return self.text.isascii() or self.encoding == "iso8859-1"

    def _escaped(self, string: str) -> str:
        escaped = "".join(_ESCAPES.get(sign, sign) for sign in string)
        if escaped[:1] == " ":
            escaped = "\\" + escaped
        if not self._is_ascii:
            return escaped
        return "".join(sign if sign.isascii() else _numbered(sign) for sign in escaped)


def _numbered(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _unescaped(string: str) -> str:
    def sign(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _SIGNS.get(match[2], match[2]) if match[2] else ""

    text = _ESCAPE.sub(sign, string) if "\\" in string else string
    # \ud83d\ude00 is one character
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _message(value: str) -> str:
    """A text with the apostrophes that MessageFormat shows."""
    return value.replace("''", "'") if _ARGUMENT.search(value) else value


def _written(target: Text) -> str:
    """A text as MessageFormat wants it: apostrophes doubled, but for those that quote a brace."""
    return "".join(
        part.replace("'", "''") if isinstance(part, str) else string_of(joined([part]))
        for part in target.parts()
    )
