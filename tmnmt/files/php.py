"""Texts of programs in PHP: the arrays of Laravel and CodeIgniter 4, which a file returns, and
$lang['key'] = 'text'; of CodeIgniter 3.

The file is in the source language, and what is written in the target language. A text of Laravel
with plural forms, "One file|:count files" or "{0} None|[1,*] Some", has a unit for each. Without
such conditions there are as many as Laravel has for the target language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tmnmt.codes.placeholders import CATALOGUE_FINDERS, by_pattern
from tmnmt.codes.record import Text
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.php_syntax import Literal, literals, written
from tmnmt.files.plurals import Plurals, plurals_of, plurals_of_language
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.formats.encoding import byte_order_mark

_TABLE = re.compile(
    rb"^(?:return\s*(?:\[|array\s*\()|\$lang\s*(?:\[|=))", re.MULTILINE | re.IGNORECASE
)
_FINDERS = (*CATALOGUE_FINDERS, by_pattern(r"(?<![\w:]):[A-Za-z_]\w{0,99}(?!:)", signs=":"))
_CONDITION = re.compile(r"\s*(?:\{[^\[\]{}]{0,40}\}|\[[^\[\]{}]{0,40}\])\s*")  # of numbers
_BARRED = re.compile(r"(?<=\S)\|(?=\S)")
_NUMBERS = re.compile(r"[\[{][\d\s,*-]+[\]}]")
# where Laravel has other forms than gettext (Illuminate\Translation\MessageSelector)
_SINGLE_FORM = plurals_of("nplurals=1; plural=0;")
_FORMS_OF_LARAVEL = {
    **dict.fromkeys(("az", "bo", "dz", "ka", "km", "kn", "tr"), _SINGLE_FORM),
    "lv": plurals_of("nplurals=3; plural=(n==0 ? 0 : n%10==1 && n%100!=11 ? 1 : 2);"),
}


class _Slot(NamedTuple):
    """A unit's place: a literal, and which of its plural forms; -1 where it has none. `prefix`: the
    numbers that the form is of, as they are written; `string`: its text."""

    literal: Literal
    string: str
    form: int = -1
    prefix: str = ""
    suffix: str = ""


class PhpFile(WholeFile[_Slot]):
    """A file with texts of one language."""

    kind = "php"
    title = FILE_KINDS["php"].title

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name, and by a line that begins with an array that is returned, or $lang: most
        PHP is no table of texts."""
        return FILE_KINDS[cls.kind].has_name(path) and _TABLE.search(head) is not None

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    # --- reading

    @cached_property
    def _slots(self) -> list[_Slot]:
        return [
            slot
            for literal in literals(self.text, self.wrong)
            if any(map(str.isalnum, literal.value))
            for slot in self._forms(literal)
        ]

    @cached_property
    def _plurals(self) -> Plurals | None:
        language = self.tgt_lang.partition("-")[0]
        return _FORMS_OF_LARAVEL.get(language) or plurals_of_language(self.tgt_lang)

    def _forms(self, literal: Literal) -> Iterator[_Slot]:
        """The units of a text: one for each of its plural forms."""
        segments = literal.value.split("|")
        conditions = [_condition(segment) for segment in segments]
        has_conditions = any(map(_NUMBERS.match, map(str.strip, conditions)))
        if len(segments) == 1 or not (has_conditions or _BARRED.search(literal.value)):
            yield _Slot(literal, literal.value)
            return
        if not has_conditions and self._plurals:
            singular = self._plurals.singular
            forms = range(self._plurals.count)
            segments = [segments[0] if form == singular else segments[-1] for form in forms]
            conditions = [""] * len(segments)
        for form, (segment, condition) in enumerate(zip(segments, conditions, strict=True)):
            string = segment[len(condition) :]
            text = string.strip()
            suffix = string[len(string.rstrip()) :]
            yield _Slot(literal, text, form, condition, suffix)

    def _unit(self, slot: _Slot) -> Unit:
        literal, string, form, condition, _ = slot
        label = ".".join(literal.path) + (f"[{form}]" if form >= 0 else "")
        unit = unit_of(
            string,
            finders=_FINDERS,
            id=label,
            notes=literal.notes,
            line=self.line(literal.start),
        )
        if not string:
            return replace(unit, state="locked", problem="an empty plural form")
        return replace(unit, plural=self._plural(form, condition.strip())) if form >= 0 else unit

    def _plural(self, form: int, condition: str) -> str:
        if condition:
            return f"plural form for {condition}"
        return self._plurals.describe(form) if self._plurals else f"plural form {form + 1}"

    # --- writing

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        pairs = zip(self._slots, fillings, strict=True)
        for literal, group in groupby(pairs, key=lambda pair: pair[0].literal):
            forms = list(group)
            if all(filling is None for _, filling in forms):
                continue
            value = "|".join(
                f"{slot.prefix}{_string(slot, filling)}{slot.suffix}" for slot, filling in forms
            )
            new = written(value, self.text[literal.start])
            yield Edit(literal.start, literal.end, new)

    def refused(self, unit: Unit, target: Text) -> str:
        """Also a plural form with the sign that parts these."""
        if unit.plural and "|" in string_of(target):
            return "a plural form cannot have | in it"
        return unit.problem


def _string(slot: _Slot, filling: Filling | None) -> str:
    return slot.string if filling is None else string_of(filling.target)


def _condition(segment: str) -> str:
    """The numbers that a plural form is of, with the blanks around them; the blanks alone where it
    says none."""
    match = _CONDITION.match(segment)
    if match and _NUMBERS.fullmatch(match[0].strip()):
        return match[0]
    return segment[: len(segment) - len(segment.lstrip())]
