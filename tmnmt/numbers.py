"""Numbers of a source that its translation lacks."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tmnmt.number_words import is_known, is_written_out, named_months, written_numbers

# Digits, with the signs that group them or stand before decimals; a blank only groups three.
NUMBER = re.compile(
    r"\d+(?:[.,'\u2019]\d+|(?:(?<=\b\d)|(?<=\b\d\d)|(?<=\d\d\d))[ \u00a0\u2009\u202f]\d{3}(?!\d))*"
)

BLANK = re.compile(r"\s")
_NO_CENTS = re.compile(r"\.00?\Z")  # 25.00 is 25, 1.000 may be a thousand
_MINUS_REACH = 16  # characters before a number where a minus may stand
# A dash before a number is a minus where it is not a range, as in 5 -10, or a part of a word.
_MINUS = re.compile(r"(?:\A|(?<!\d)[\s(\[])([-\u2212\u2013][$€£]?)\Z")
_MAY_BE_MINUS = re.compile(
    r"(?:[-\u2010-\u2015\u2212\ufe63\uff0d]|\b(?:minus|moins|menos|meno|below))\s?[$€£]?\Z",
    re.IGNORECASE,
)
_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)(?![\d-])")
_FRACTION = re.compile(r"(?<![\w/.,-])(\d{1,2})/(\d{1,2})(?![\w/-])")


class _Number(NamedTuple):
    """A number as it stands in a text. `readings`: what it may mean, more than one only where a
    sign may group digits or mark decimals. `is_negative`: with a minus; `may_be`: perhaps so."""

    text: str
    readings: frozenset[str]
    is_negative: bool
    may_be: bool

    def matches(self, candidate: _Number) -> bool:
        if (self.is_negative and not candidate.may_be) or (
            candidate.is_negative and not self.may_be
        ):
            return False
        return not self.readings.isdisjoint(candidate.readings)


def missing_numbers(src: str, tgt: str) -> list[str]:
    """The numbers of a source, as they stand there, that its translation does not have, or not as
    often.

    How digits are grouped and which sign marks decimals does not count: 12,345.67 is 12 345,67, and
    25.00 is 25; but 2.5 is not 25, and -5 is not 5. Nor does it count whether parts stand together:
    31.12.1996 is 31/12/1996, and the month of 2026-01-31 may be a name. Numbers in words are not
    read.

    src: the source.
    tgt: the translation."""
    src = _without_named_months(src, tgt)
    lacking, unused = _unmatched(_numbers(src), _numbers(tgt))
    parts = _separate_parts(
        lacking, unused, named_months(src) if lacking and unused else frozenset()
    )
    missing = [
        number.text
        for number in lacking
        if number.is_negative or not _take(_date_parts(number.text), parts)
    ]
    return missing + _turned_fractions(src, tgt)


def changed_number_words(src: str, tgt: str, src_lang: str, tgt_lang: str) -> list[str]:
    """The numbers in words of a source that its translation has neither in words nor in figures,
    where it has a number instead that the source does not have: "thirty" for "45 jours". There are
    none where the cardinals of one language are not known.

    src: the source.
    tgt: the translation.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language."""
    ours = written_numbers(src, src_lang)
    if not ours or not is_known(tgt_lang):
        return []
    theirs = [number.readings for number in _numbers(tgt)]
    theirs += [frozenset({str(value)}) for value in written_numbers(tgt, tgt_lang).values()]
    source_values = {str(value) for value in ours.values()}.union(
        *(number.readings for number in _numbers(src))
    )
    if all(source_values & readings for readings in theirs):
        return []
    return [
        word
        for word, value in ours.items()
        if not any(str(value) in readings for readings in theirs)
        and not is_written_out(str(value), tgt, tgt_lang)
    ]


def _separate_parts(
    lacking: Sequence[_Number], unused: Sequence[_Number], months: frozenset[int]
) -> Counter[str]:
    """What those that are left have in parts: a date, an article and its paragraph. `lacking`: what
    is looked for in them; `months`: those that stand there by their names."""
    required = Counter(part for number in lacking for part in _date_parts(number.text))
    required += Counter(map(str, months))
    parts = Counter[str]()
    for number in unused:
        digits = _date_parts(number.text)
        # 5 is not in 2,5; but 7 and 5 are in 7.5
        if not number.is_negative and (len(digits) != 2 or Counter(digits) <= required):
            parts.update(digits)
    return parts


def _unmatched(
    ours: Sequence[_Number], theirs: Sequence[_Number]
) -> tuple[list[_Number], list[_Number]]:
    """Those of both sides that have no partner, where those that are written in the same way are
    partners first."""
    lacking, unused = list(ours), list(theirs)
    for is_partner in (_are_alike, _Number.matches):
        remaining = []
        for number in lacking:
            place = next(
                (i for i, candidate in enumerate(unused) if is_partner(number, candidate)), None
            )
            if place is None:
                remaining.append(number)
            else:
                del unused[place]
        lacking = remaining
    return lacking, unused


def _are_alike(number: _Number, candidate: _Number) -> bool:
    return number[1:] == candidate[1:]


_BARE_POINT = re.compile(r"(?<![\w.,])\.(?=[0-9])")  # .20 is 0.20


def _numbers(text: str) -> list[_Number]:
    text = _BARE_POINT.sub("0.", text)
    return [_number(text, match) for match in NUMBER.finditer(text)]


def _number(text: str, match: re.Match[str]) -> _Number:
    prefix = text[max(0, match.start() - _MINUS_REACH) : match.start()]
    minus = _MINUS.search(prefix)
    sign = minus[1] if minus else ""
    return _Number(
        sign + match[0],
        _readings(match[0]),
        minus is not None,
        _MAY_BE_MINUS.search(prefix) is not None,
    )


def _readings(number: str) -> frozenset[str]:
    """What a number may mean, with a point before decimals and no groups."""
    signs, parts = re.findall(r"\D", number), parts_of(number)
    whole = "".join(parts).lstrip("0") or "0"
    if not signs or BLANK.match(signs[-1]):
        return frozenset({whole})
    groups = parts[1:-1]
    decimals = _NO_CENTS.sub("", f"{''.join(parts[:-1]).lstrip('0') or '0'}.{parts[-1]}")
    if len(set(signs)) > 1:
        return frozenset({decimals})
    readings = {decimals} if len(signs) == 1 else {".".join(parts)}
    if all(len(group) in (2, 3) for group in groups) and len(parts[0]) < 4:
        if len(parts[-1]) == 3 and not parts[0].startswith("0"):
            readings.add(whole)
        else:
            readings.add(decimals)
    return frozenset(readings)


def _without_named_months(src: str, tgt: str) -> str:
    """`src` with no month in those of its dates, as 2026-01-31, whose month `tgt` has by name."""
    months = named_months(tgt) if _ISO_DATE.search(src) else frozenset[int]()

    def drop_month(date: re.Match[str]) -> str:
        return f"{date[1]}; {date[3]}" if int(date[2]) in months else date[0]

    return _ISO_DATE.sub(drop_month, src)


def _turned_fractions(src: str, tgt: str) -> list[str]:
    """The fractions of `src` that `tgt` has upside down: 1/2 as 2/1."""
    ours, theirs = (Counter(_FRACTION.findall(text)) for text in (src, tgt))
    missing, new = ours - theirs, theirs - ours
    return [f"{top}/{bottom}" for top, bottom in missing if (bottom, top) in new]


def _date_parts(number: str) -> list[str]:
    """The parts of a number, in dates and alone without a zero in front; 1.05 is not 1.5."""
    parts = parts_of(number)
    return parts if len(parts) == 2 else [part.lstrip("0") or "0" for part in parts]


def is_well_formed(number: str) -> bool:
    """Whether a number has not one sign for groups and for decimals, as in 12,345,67, nor decimals
    twice, as in 1 250,50.50.

    number: the number as it stands in a text."""
    signs, groups = re.findall(r"\D", number), re.split(r"\D", number)[1:]
    if len(signs) < 2 or all(len(group) == 3 for group in groups):
        return True
    return len(set(signs)) > 1 and len(groups[-2]) == 3


def _take(digits: list[str], parts: Counter[str]) -> bool:
    """Whether all of these are among the parts; then they are taken out of them."""
    if Counter(digits) <= parts:
        parts.subtract(digits)
        return True
    return False


def digits_of(number: str) -> str:
    """The digits of a number, without signs between them.

    number: the number as it stands in a text."""
    return "".join(parts_of(number))


def parts_of(number: str) -> list[str]:
    """The digits between the signs of a number, in ASCII.

    number: the number as it stands in a text."""
    return [
        "".join(str(unicodedata.decimal(digit)) for digit in run)
        for run in re.findall(r"\d+", number)
    ]
