"""Java's .properties (java.util.Properties, method load): keys with texts.

The file is in the source language, and what is written in the target language. It is read as UTF-8,
or else as ISO 8859-1, as java.util.PropertyResourceBundle does. In a text with arguments such as
{0}, which java.text.MessageFormat reads, an apostrophe is doubled. Characters beyond ASCII are
written as \\uXXXX, unless the file has such characters in UTF-8."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from tmnmt.codes.placeholders import CATALOGUE_FINDERS, by_pattern
from tmnmt.codes.record import Text, join_parts
from tmnmt.errors import short_repr
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import BOM, Edit, WholeFile
from tmnmt.formats.encoding import utf8_or

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
_FINDERS = (*CATALOGUE_FINDERS, by_pattern("'[{}][^']{0,99}'"))  # a brace that MessageFormat shows


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
    title = FILE_KINDS["properties"].title

    def _encoding(self, data: bytes) -> str:
        return utf8_or(data, "iso8859-1")

    @cached_property
    def _slots(self) -> list[_Property]:
        properties, keys = list[_Property](), set[str]()
        for entry in self._read():
            if entry.key in keys:
                raise self.wrong(entry.line, f"the key {short_repr(entry.key)} a second time")
            keys.add(entry.key)
            if any(map(str.isalnum, entry.value)):
                properties.append(entry)
        return properties

    def _read(self) -> Iterator[_Property]:
        text, notes = self.text, list[str]()
        offset = 1 if text.startswith(BOM) else 0
        while offset < len(text):
            if blank := _BLANK.match(text, offset):
                notes, end = [], blank.end()
            elif comment := _COMMENT.match(text, offset):
                notes.append(comment[1].strip())
                end = comment.end()
            else:
                if text[offset] == BOM:
                    raise self.wrong(offset, "a byte-order mark in the middle of the file")
                entry = self._property(offset, tuple(filter(None, notes)))
                yield entry
                notes, end = [], entry.end
            newline = _NEWLINE.match(text, end)
            offset = newline.end() if newline and not blank else end

    def _property(self, offset: int, notes: tuple[str, ...]) -> _Property:
        text = self.text
        key = _KEY.match(text, offset)
        start = _SEPARATOR.match(text, key.end() if key else offset)
        begin = start.end() if start else offset
        value = _LOGICAL.match(text, begin)
        end = value.end() if value else begin
        if wrong := _WRONG_ESCAPE.search(text, offset, end):
            raise self.wrong(wrong.start(), r"\u without four hexadecimal digits")
        return _Property(
            _unescaped(key[1] if key else ""),
            begin,
            end,
            _unescaped(text[begin:end]),
            notes,
            offset,
        )

    def _unit(self, slot: _Property) -> Unit:
        return unit_of(
            _message(slot.value),
            finders=_FINDERS,
            id=slot.key,
            notes=slot.notes,
            line=self.line(slot.line),
        )

    def _text_place(self, slot: _Property) -> tuple[int, int] | None:
        return slot.start, slot.end

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for entry, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                target = filling.target
                string = (
                    _message_string(target) if _ARGUMENT.search(entry.value) else string_of(target)
                )
                yield Edit(entry.start, entry.end, self._escaped(string))

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
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))


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


def _message_string(target: Text) -> str:
    """A text as MessageFormat wants it: apostrophes doubled, but for those that quote a brace."""
    return "".join(
        part.replace("'", "''") if isinstance(part, str) else string_of(join_parts([part]))
        for part in target.parts()
    )
