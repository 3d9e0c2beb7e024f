"""YAML of Ruby on Rails (Rails Guides, *Rails Internationalization API*): texts with keys, under
the code of their language.

    en:
      permits:
        one: One permit of %{name}
        other: "%{count} permits of %{name}"

The file is in the source language, and what is written in the target language: its code becomes
that one's, and messages with plurals get the forms that it has. Symbols, numbers and dates are
left alone, and so are aliases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.codes.placeholders import ALL_FINDERS, by_pattern
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.plurals import (
    categories_of_language,
    description_of,
    is_plural,
    needed_categories,
)
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.files.yaml_syntax import Scalar, scalars, written
from tmnmt.formats.encoding import byte_order_mark
from tmnmt.formats.iso639 import NAMES, short
from tmnmt.formats.languages import locale_name, normal_code

_ROOT = re.compile(
    rb"\A(?:\xef\xbb\xbf)?(?:(?:[ \t]*(?:#[^\n]*)?|---[^\n]*|%[^\n]*)\n)*"
    rb"[\"']?([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{2,8}){0,3}[\"']?[ \t]*:[ \t]*"
    rb"(?:&\w+[ \t]*)?(?:#[^\n]*)?\r?\n"
)
_FINDERS = (
    *ALL_FINDERS,
    by_pattern(r"%\{[^{}\s]{1,100}\}|%<\w{1,100}>[-+0-9.#]{0,9}[A-Za-z]", signs="%"),
)
_MAX_NOTES = 50  # lines of comments
_COMMENT_BEHIND = re.compile(r"[ \t]+#([^\r\n]*)")


class _Slot(NamedTuple):
    """A unit's place: a scalar, or the scalar of the plural form `other` in front of which another
    form is put in."""

    scalar: Scalar
    category: str = ""
    is_new: bool = False


class RailsFile(WholeFile[_Slot]):
    """A file of one language."""

    kind = "rails"
    title = FILE_KINDS["rails"].title

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        super().__init__(path, src_lang, tgt_lang)
        self.src_lang = normal_code(self._root.value)

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name, and by the code of a language that it begins with: much else is YAML."""
        root = _ROOT.match(head) if FILE_KINDS[cls.kind].has_name(path) else None
        return root is not None and short(root[1].decode().lower()) in NAMES

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    # --- reading

    @cached_property
    def _scalars(self) -> list[tuple[Scalar, bool]]:
        return list(scalars(self.text, self.wrong))

    @cached_property
    def _root(self) -> Scalar:
        """The key that is the file's language."""
        roots = [scalar for scalar, is_key in self._scalars if is_key and not scalar.path]
        if len(roots) != 1:
            place = roots[1].start if roots else 0
            raise self.wrong(place, "allowed is one key at the root, the code of a language")
        return roots[0]

    @cached_property
    def _slots(self) -> list[_Slot]:
        return list(self._read())

    def _read(self) -> Iterator[_Slot]:
        tables = dict[tuple[str, ...], list[Scalar]]()
        keys = dict[tuple[str, ...], list[str]]()
        for scalar, is_key in self._scalars:
            if is_key:
                keys.setdefault(scalar.path, []).append(scalar.value)
            else:
                tables.setdefault(scalar.path[:-1], []).append(scalar)
        messages = {
            path
            for path, names in keys.items()
            if self._is_message(names) and len(tables.get(path, ())) == len(names)
        }
        for scalar, is_key in self._scalars:
            if is_key or not scalar.is_text or not any(map(str.isalnum, scalar.value)):
                continue
            parent = scalar.path[:-1]
            if parent in messages:
                yield from self._forms(scalar, keys[parent])
            else:
                yield _Slot(scalar)

    def _is_message(self, names: Sequence[str]) -> bool:
        """Whether a table has the plural forms of a message. `other` alone is also a word like
        others, unless the source language has no more forms."""
        categories = categories_of_language(self.src_lang)
        has_single_form = categories is not None and len(categories.names) == 1
        return is_plural(names) and (len(names) > 1 or has_single_form)

    def _forms(self, scalar: Scalar, names: Sequence[str]) -> Iterator[_Slot]:
        """A plural form, behind those that are put in front of it."""
        category = scalar.path[-1]
        if category == "other":
            for name in needed_categories(names, self.tgt_lang):
                if name not in names:
                    yield _Slot(scalar, name, is_new=True)
        yield _Slot(scalar, category)

    def _unit(self, slot: _Slot) -> Unit:
        scalar, category, is_new = slot
        path = (*scalar.path[1:-1], category) if is_new else scalar.path[1:]
        unit = unit_of(
            scalar.value.rstrip("\n"),
            finders=_FINDERS,
            id=".".join(path),
            notes=tuple(filter(None, self._notes(scalar))),
            line=self.line(scalar.key_start),
        )
        return replace(unit, plural=description_of(category, self.tgt_lang) if category else "")

    def _notes(self, scalar: Scalar) -> Iterator[str]:
        """The comments in the lines right in front of a key, and behind its text."""
        text, notes = self.text, list[str]()
        start = self.line_start(scalar.key_start)
        while start and len(notes) < _MAX_NOTES:
            previous = text.rfind("\n", 0, start - 1) + 1
            line = text[previous:start].strip()
            if not line.startswith("#"):
                break
            notes.append(line.lstrip("#").strip())
            start = previous
        yield from reversed(notes)
        if comment := _COMMENT_BEHIND.match(text, scalar.end):
            yield comment[1].strip()

    # --- writing

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        edits = [
            self._edit(slot, string_of(filling.target))
            for slot, filling in zip(self._slots, fillings, strict=True)
            if filling is not None
        ]
        if edits and self.tgt_lang:
            root, code = self._root, locale_name(self.tgt_lang, "-")
            edits.insert(0, Edit(root.start, root.end, self._written(code, root)))
        return edits

    def _column(self, scalar: Scalar) -> int:
        """The column, from 0, where the key of a text begins."""
        return scalar.key_start - self.line_start(scalar.key_start)

    def _written(self, value: str, scalar: Scalar) -> str:
        old = self.text[scalar.start : scalar.end]
        return written(value, scalar, old, self._column(scalar), self.newline)

    def _edit(self, slot: _Slot, string: str) -> Edit:
        scalar = slot.scalar
        ending = scalar.value[len(scalar.value.rstrip("\n")) :]
        value = string.rstrip("\n") + ending
        if not slot.is_new:
            return Edit(scalar.start, scalar.end, self._written(value, scalar))
        style = '"' if scalar.style in ("|", ">") else scalar.style
        new = f"{slot.category}: {self._written(value, scalar._replace(style=style))}"
        place = scalar.key_start
        separator = ", " if scalar.in_flow else self.newline + " " * self._column(scalar)
        return Edit(place, place, new + separator)
