"""JSON catalogues of texts: keys with texts, as i18next and many others have them, in objects or
lists of any depth; ARB (Flutter), whose keys with @ describe others; and messages.json of browser
extensions, of which the messages alone are texts.

The file is in the source language, and what is written in the target language. Numbers, true,
false and null are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from json import dumps
from pathlib import Path

from tmnmt.codes.placeholders import CATALOGUE_FINDERS, by_pattern
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.json_syntax import String, strings
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.formats.encoding import byte_order_mark
from tmnmt.formats.languages import is_code, normal_code

_FINDERS = (*CATALOGUE_FINDERS, by_pattern(r"\$t\([^()\s]{1,200}\)|\$[A-Za-z]\w{0,99}\$"))
_LEFT_ALONE = frozenset({"$schema", "$id"})


class JsonFile(WholeFile[String]):
    """A catalogue, in UTF-8 or as its byte-order mark says."""

    kind = "json"
    title = FILE_KINDS["json"].title

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        super().__init__(path, src_lang, tgt_lang)
        locale = next(
            (string.value for string in self._strings if string.path == ("@@locale",)), ""
        )
        if is_code(locale):
            self.src_lang = normal_code(locale)

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    @cached_property
    def _strings(self) -> list[String]:
        return list(strings(self.text, self.wrong))

    @cached_property
    def _slots(self) -> list[String]:
        """Those of the strings that are to be translated."""
        strings = [string for string in self._strings if any(map(str.isalnum, string.value))]
        if self._is_extension:
            return [string for string in strings if string.path[1:] == ("message",)]
        return [string for string in strings if not _describes(string.path)]

    @cached_property
    def _is_extension(self) -> bool:
        """Whether every key has a message."""
        keys = {string.path[:1] for string in self._strings}
        return bool(keys) and keys == {
            string.path[:1] for string in self._strings if string.path[1:] == ("message",)
        }

    @cached_property
    def _descriptions(self) -> dict[tuple[str, ...], str]:
        """What is said of the texts, by their paths."""
        descriptions = dict[tuple[str, ...], str]()
        for string in self._strings:
            if string.path[-1:] != ("description",) or len(string.path) < 2:
                continue
            *parents, key, _ = string.path
            if self._is_extension:
                descriptions[(*parents, key, "message")] = string.value
            elif key.startswith("@"):
                descriptions[(*parents, key[1:])] = string.value
        return descriptions

    def _unit(self, slot: String) -> Unit:
        path = slot.path[:-1] if self._is_extension else slot.path
        description = self._descriptions.get(slot.path)
        notes = (description,) if description else ()
        return unit_of(
            slot.value, finders=_FINDERS, id=".".join(path), notes=notes, line=self.line(slot.start)
        )

    def _text_place(self, slot: String) -> tuple[int, int] | None:
        return slot.start, slot.end

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for slot, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                yield Edit(slot.start, slot.end, self._quoted(string_of(filling.target)))

    @cached_property
    def _is_ascii(self) -> bool:
        """Whether the file writes other characters by their numbers."""
        return self.text.isascii() and re.search(r"\\u[0-9A-Fa-f]{4}", self.text) is not None

    def _quoted(self, string: str) -> str:
        quoted = dumps(string, ensure_ascii=self._is_ascii)
        # half a surrogate pair has no other form
        return re.sub("[\ud800-\udfff]", lambda sign: f"\\u{ord(sign[0]):04x}", quoted)


def _describes(path: tuple[str, ...]) -> bool:
    """Whether a string says something about others, or about the file."""
    return any(key.startswith("@") for key in path) or path[-1:] in {(key,) for key in _LEFT_ALONE}
