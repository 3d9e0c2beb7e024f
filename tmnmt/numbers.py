"""Numbers of a source that its translation lacks, and one of them put in its place."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# Digits, with the signs that group them or stand before decimals; a blank only groups three.
NUMBER = re.compile(
    r"\d+(?:[.,'\u2019]\d+|(?:(?<=\b\d)|(?<=\b\d\d)|(?<=\d\d\d))[ \u00a0\u2009\u202f]\d{3}(?!\d))*"
)

_BLANK = re.compile(r"\s")
_GROUP_BEFORE = re.compile(r"(?<!\d)(\d{1,3})[ \u00a0\u2009\u202f]\Z")
_CLOCK = re.compile(r"\b[ap]\.?\s?m\b", re.IGNORECASE)  # 3 p.m. is 15 h
_NO_CENTS = re.compile(r"[.,]00?\Z")  # 25.00 is 25, 1.000 may be a thousand
# Behind a number, what says how many zeros are left out.
_SCALE = re.compile(
    r"\s*-?(?:mil|mln|mio|mld|mrd|bil|bln|tril|thousand|tausend|[km]\b|тыс|мил|млн|млрд|[万億亿兆])",
    re.IGNORECASE,
)


def missing_numbers(src: str, tgt: str) -> list[str]:
    """The numbers of `src`, as they stand there, whose digits `tgt` does not have, or not as often.

    How digits are grouped and decimals are marked does not count: 12,345.67 is 12 345,67, and 25.00
    is 25. Nor does it count whether parts stand together: 31.12.1996 is 31/12/1996. Numbers in
    words are not read."""
    theirs = NUMBER.findall(tgt)
    left = Counter(map(_digits, theirs))
    others = []
    for number in NUMBER.findall(src):
        forms = _digits(number), _digits(_NO_CENTS.sub("", number))
        form = next((form for form in forms if left[form]), None)
        if form is not None:
            left[form] -= 1
        else:
            others.append(number)
    parts = Counter[str]()
    for number in theirs:
        if left[_digits(number)]:
            left[_digits(number)] -= 1
            parts.update(_parts(number))
    return [number for number in others if not _taken(_parts(number), parts)]


def mended(src: str, tgt: str) -> str:
    """`tgt` with the one number of `src` that it lacks in place of the one that it has instead, in
    the form of that: 1 200 of "1,200" in place of "1 400". The same where there are more of them,
    or where one may be another way to write the other, as 5 million of 5,000,000 is. A number with
    one sign for groups and for decimals, as 12,345,67, becomes as it is in `src`."""
    tgt = _well_formed(src, tgt)
    lacking, made = missing_numbers(src, tgt), _made(src, tgt)
    if len(lacking) != 1 or len(made) != 1:
        return tgt
    (right,), (wrong,) = lacking, made
    start, end = _cut_off(src, tgt, wrong), wrong.end()
    there = tgt[start:end]
    if _CLOCK.search(src) or _is_other_way(right, src, there, tgt[end:]):
        return tgt
    left = _more(tgt[:start] + " " + tgt[end:], src)
    if len(_parts(right)) > 1 and not left.keys().isdisjoint(_parts(right)):
        return tgt  # it is there in part
    return tgt[:start] + _in_form(right, there) + tgt[end:]


def _in_form(number: str, other: str) -> str:
    """A number with the signs of another one, where that is as long, or where each has but one sign
    for its groups; else as it is."""
    parts, signs = _parts(number), re.findall(r"\D", other)
    if len(set(signs)) == len(set(re.findall(r"\D", number))) == 1:
        signs = signs[:1] * (len(parts) - 1)
    if len(signs) != len(parts) - 1:
        return number
    formed = "".join(sign + part for sign, part in zip(["", *signs], parts, strict=True))
    return formed if NUMBER.fullmatch(formed) and is_well_formed(formed) else number


def is_well_formed(number: str) -> bool:
    """Not with one sign for groups and for decimals, as in 12,345,67."""
    signs, groups = re.findall(r"\D", number), re.split(r"\D", number)[1:]
    grouped = all(len(group) == 3 for group in groups)
    return grouped or len(signs) < 2 or len(set(signs)) > 1


def _well_formed(src: str, tgt: str) -> str:
    """`tgt` with the numbers of `src` in place of those that are not well formed, where their
    digits are the same."""
    theirs = {_digits(number): number for number in NUMBER.findall(src) if is_well_formed(number)}

    def mend(number: re.Match[str]) -> str:
        own = number[0]
        return own if is_well_formed(own) else theirs.get(_digits(own), own)

    return NUMBER.sub(mend, tgt)


def _is_other_way(right: str, src: str, there: str, behind: str) -> bool:
    """Whether a number `there` that has text `behind` it may be another way to write the number
    `right` of `src`: with a word for zeros, on one side."""
    if _digits(right).rstrip("0") != _digits(there).rstrip("0"):
        return False
    return bool(_SCALE.match(src.partition(right)[2]) or _SCALE.match(behind))


def _cut_off(src: str, tgt: str, number: re.Match[str]) -> int:
    """Where a number of `tgt` begins: with the 1 of 1 3850, which is no number of three digits a
    group, where `src` has no such 1."""
    before = _GROUP_BEFORE.search(tgt, 0, number.start())
    return before.start() if before and before[1] in _more(tgt, src) else number.start()


def _more(tgt: str, src: str) -> Counter[str]:
    """The numbers that `tgt` has more often than `src`, as their digits."""
    here, there = (Counter(map(_digits, NUMBER.findall(text))) for text in (tgt, src))
    return here - there


def _made(src: str, tgt: str) -> list[re.Match[str]]:
    """The numbers of `tgt` that `src` has nowhere, whole or in parts."""
    theirs = NUMBER.findall(src)
    known = {_digits(number) for number in theirs} | {p for one in theirs for p in _parts(one)}
    return [
        number
        for number in NUMBER.finditer(tgt)
        if _digits(number[0]) not in known
        # 31.12.1996 may be parts of a date, 1 400 is one number
        and (_BLANK.search(number[0]) or not known.issuperset(_parts(number[0])))
    ]


def _taken(digits: list[str], parts: Counter[str]) -> bool:
    """Whether all of these are among the parts; then they are taken out of them."""
    if Counter(digits) <= parts:
        parts.subtract(digits)
        return True
    return False


def _digits(number: str) -> str:
    return "".join(_parts(number))


def _parts(number: str) -> list[str]:
    return [
        "".join(str(unicodedata.decimal(digit)) for digit in run)
        for run in re.findall(r"\d+", number)
    ]
