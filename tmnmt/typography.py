"""How a language, and a region of it, sets text: quotes, blanks in front of marks, percent signs,
currencies and groups of digits, and marks that open a sentence. The data are in
`tmnmt/languages`: percent, currency and groups are those of CLDR, and quotes and blanks are as the
language is printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tmnmt.languages import data_for
from tmnmt.quotes import paired

_BLANK = " \u00a0\u202f"
_CURLY = re.compile(rf"(?<!\w)“[{_BLANK}]*([^“”«»„\"]*[^“”«»„\"{_BLANK}])[{_BLANK}]*”")
_ANGLE = re.compile(rf"«[{_BLANK}]*([^«»]*[^«»{_BLANK}])[{_BLANK}]*»")
_PERCENT = re.compile(rf"(?<=\d)[{_BLANK}]?%(?!\w)")
_CURRENCY = re.compile(r"(?<=\d) (?=[$€£¥])")
_GROUPS = re.compile(r"(?<![\d,.])\d{1,3}(?: \d{3})+(?!\d)")
_SENTENCE = re.compile(r"[^.!?…]*[.!?…]+[\"”»)]*|[^.!?…]+$")
_START = re.compile(r"[\s\"“«(\[–—-]*")


@dataclass(frozen=True)
class Typography:
    """What one language has, in one region. None is what the language leaves open.

    quotes: what opens and what closes a quotation, with the blanks inside.
    blanks: what stands in front of a mark; "" for nothing.
    percent, currency: the blank between a number and the sign behind it.
    group: the blank between groups of digits.
    opening_marks: what opens a sentence that ends with a mark."""

    quotes: tuple[str, str] | None = None
    blanks: Mapping[str, str] = field(default_factory=dict)
    percent: str | None = None
    currency: str | None = None
    group: str | None = None
    opening_marks: Mapping[str, str] = field(default_factory=dict)

    def typeset(self, text: str) -> str:
        """A text as the language sets it. Nothing but quotes, blanks and opening marks changes.

        text: the text."""
        if self.quotes is not None:
            text = self._with_quotes(text, *self.quotes)
        for mark, blank in self.blanks.items():
            expression = rf"(?<=[\w»”)\]’%$€])[{_BLANK}]?(?={re.escape(mark)}(?:[\s»”)]|$))"
            text = re.sub(expression, blank, text)
        if self.percent is not None:
            text = _PERCENT.sub(f"{self.percent}%", text)
        if self.currency is not None:
            text = _CURRENCY.sub(self.currency, text)
        if self.group is not None:
            group = self.group
            text = _GROUPS.sub(lambda number: number[0].replace(" ", group), text)
        return "".join(map(self._opened, _SENTENCE.findall(text))) if self.opening_marks else text

    def _with_quotes(self, text: str, opening: str, closing: str) -> str:
        curly = paired(text)
        unset = curly if opening == "“" else text  # what is not set stays as it was written
        parts, position = list[str](), 0
        for quote in _CURLY.finditer(curly):
            parts += [unset[position : quote.start()], opening, quote[1], closing]
            position = quote.end()
        text = "".join([*parts, unset[position:]])
        if opening[0] != "«":
            return text
        return _ANGLE.sub(lambda quote: opening + quote[1] + closing, text)

    def _opened(self, sentence: str) -> str:
        mark = sentence.rstrip('"”») ')[-1:]
        sign = self.opening_marks.get(mark)
        if sign is None or sign in sentence:
            return sentence
        start = _START.match(sentence)
        place = start.end() if start is not None else 0
        return sentence[:place] + sign + sentence[place:]


@cache
def typography_of(code: str) -> Typography:
    """The typography of a language, in a region where the code has one.

    code: as "fr-CA"."""
    table: dict[str, Any] = dict(data_for(code).typography)
    regions = table.pop("regions", {})
    for subtag in re.split("[-_]", code)[1:]:
        table |= regions.get(subtag.upper(), {})
    if "quotes" in table:
        table["quotes"] = tuple(table["quotes"])
    return Typography(**table)
