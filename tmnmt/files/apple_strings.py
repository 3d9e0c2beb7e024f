"""Apple's .strings (Property List Programming Guide, old-style property lists): keys with texts.

The file is in the source language, and what is written in the target language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.codes.placeholders import ALL_FINDERS, by_pattern
from tmnmt.errors import short_repr
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import BOM, Edit, WholeFile
from tmnmt.formats.encoding import byte_order_mark

# arguments of Foundation, with the names of plural rules, as in %#@files@
APPLE_FINDERS = (*ALL_FINDERS, by_pattern(r"%(?:\d{1,2}\$)?#@\w{1,100}@|%arg\b", signs="%"))
_SPACE = re.compile(rf"[\s{BOM}]+")
_COMMENT = re.compile(r"/\*([\s\S]*?)\*/|//([^\r\n]*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\[\s\S])*)"')
_KEY = re.compile(rf"{_QUOTED.pattern}|([\w.$/:-]+)")
_EQUALS = re.compile(r"\s*=\s*")
_END = re.compile(r"\s*;")
_ESCAPE = re.compile(r"\\(?:[Uu]([0-9A-Fa-f]{4})|([0-7]{3})|([\s\S]))")
_SIGNS = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPES = {sign: f"\\{letter}" for letter, sign in _SIGNS.items()} | {"\\": "\\\\", '"': '\\"'}


class _Entry(NamedTuple):
    key: str
    start: int  # of the text, inside its quotation marks
    end: int
    notes: tuple[str, ...]


class AppleStringsFile(WholeFile[_Entry]):
    """A table of texts, in UTF-8 or as its byte-order mark says."""

    kind = "strings"
    title = FILE_KINDS["strings"].title

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name."""
        return FILE_KINDS[cls.kind].has_name(path) and not head.startswith((b"bplist", b"<?xml"))

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    @cached_property
    def _slots(self) -> list[_Entry]:
        return [
            entry
            for entry in self._read()
            if any(map(str.isalnum, _unescaped(self.text[entry.start : entry.end])))
        ]

    def _read(self) -> Iterator[_Entry]:
        text, notes, keys = self.text, list[str](), set[str]()
        offset = 0
        while offset < len(text):
            if space := _SPACE.match(text, offset):
                offset = space.end()
            elif comment := _COMMENT.match(text, offset):
                notes.append(" ".join((comment[1] or comment[2] or "").split()))
                offset = comment.end()
            else:
                entry, offset = self._entry(offset, tuple(filter(None, notes)))
                if entry.key in keys:
                    raise self.wrong(entry.start, f"the key {short_repr(entry.key)} a second time")
                keys.add(entry.key)
                notes = []
                yield entry

    def _entry(self, offset: int, notes: tuple[str, ...]) -> tuple[_Entry, int]:
        """An entry and where it ends."""
        text = self.text
        key = _KEY.match(text, offset)
        equals = _EQUALS.match(text, key.end()) if key else None
        value = _QUOTED.match(text, equals.end()) if equals else None
        end = _END.match(text, value.end()) if value else None
        if key is None or value is None or end is None:
            raise self.wrong(offset, 'no entry; allowed: "key" = "text"; and comments')
        name = _unescaped(key[1]) if key[1] is not None else key[2]
        return _Entry(name, value.start(1), value.end(1), notes), end.end()

    def _unit(self, slot: _Entry) -> Unit:
        return unit_of(
            _unescaped(self.text[slot.start : slot.end]),
            finders=APPLE_FINDERS,
            id=slot.key,
            notes=slot.notes,
            line=self.line(slot.start),
        )

    def _text_place(self, slot: _Entry) -> tuple[int, int] | None:
        return slot.start, slot.end

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for entry, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                target = string_of(filling.target)
                escaped = "".join(_ESCAPES.get(sign, sign) for sign in target)
                yield Edit(entry.start, entry.end, escaped)


def _unescaped(string: str) -> str:
    def sign(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2]:
            return chr(int(match[2], 8))
        return _SIGNS.get(match[3], match[3])

    text = _ESCAPE.sub(sign, string) if "\\" in string else string
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
