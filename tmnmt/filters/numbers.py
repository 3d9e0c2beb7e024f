"""Numbers that the model wrote otherwise than the source has them: one that is wrong becomes that
of the source, in the form of the target."""

from __future__ import annotations

import re
from collections import Counter

from tmnmt.codes.record import Source
from tmnmt.filters.contract import Filter, Undo, Written
from tmnmt.numbers import BLANK, NUMBER, digits_of, is_well_formed, missing_numbers, parts_of

_GROUP_BEFORE = re.compile(r"(?<!\d)(\d{1,3})[ \u00a0\u2009\u202f]\Z")
_CLOCK = re.compile(r"\b[ap]\.?\s?m\b", re.IGNORECASE)  # 3 p.m. is 15 h
_TIME = re.compile(r"(?<![\d:])(\d{1,2}):(\d\d)(?![\d:])")
# Behind a number, what says how many zeros are left out.
_SCALE = re.compile(
    r"\s*-?(?:mil|mln|mio|mld|mrd|bil|bln|tril|thousand|tausend|[km]\b|тыс|мил|млн|млрд|[万億亿兆])",
    re.IGNORECASE,
)


class Numbers(Filter, Undo):
    """Puts a number of the source in the place of a wrong one."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        return source, self

    def restore_piece(self, written: Written) -> str:
        # a mask that is lost, or written twice, would pass for a wrong number
        return written.text if written.loses_masks else mended(written.read, written.text)


def mended(src: str, tgt: str) -> str:
    """`tgt` with the one number of `src` that it lacks in place of the one that it has instead, in
    the form of that: 1 200 of "1,200" in place of "1 400". The same where there are more of them,
    or where one may be another way to write the other, as 5 million of 5,000,000 is. A number with
    one sign for groups and for decimals, as 12,345,67, becomes as it is in `src`, and so does a
    time with a blank inside, as 10 :30."""
    tgt = _with_times(src, _well_formed(src, tgt))
    lacking, made = missing_numbers(src, tgt), _made(src, tgt)
    if len(lacking) != 1 or len(made) != 1:
        return tgt
    (right,), (wrong,) = lacking, made
    start, end = _cut_off(src, tgt, wrong), wrong.end()
    there = tgt[start:end]
    if _CLOCK.search(src) or _is_other_way(right, src, there, tgt[end:]):
        return tgt
    left = _more(tgt[:start] + " " + tgt[end:], src)
    if len(parts_of(right)) > 1 and not left.keys().isdisjoint(parts_of(right)):
        return tgt  # it is there in part
    return tgt[:start] + _in_form(right, there) + tgt[end:]


def _in_form(number: str, other: str) -> str:
    """A number with the signs of another one, where that is as long, or where each has but one sign
    for its groups; else as it is."""
    parts, signs = parts_of(number), re.findall(r"\D", other)
    if len(set(signs)) == len(set(re.findall(r"\D", number))) == 1:
        signs = signs[:1] * (len(parts) - 1)
    if len(signs) != len(parts) - 1:
        return number
    formed = "".join(sign + part for sign, part in zip(["", *signs], parts, strict=True))
    return formed if NUMBER.fullmatch(formed) and is_well_formed(formed) else number


def _well_formed(src: str, tgt: str) -> str:
    """`tgt` with the numbers of `src` in place of those that are not well formed, where their
    digits are the same; one with its decimals twice has them once."""
    numbers = filter(is_well_formed, NUMBER.findall(src))
    theirs: dict[str, str] = {digits_of(number): number for number in numbers}

    def mend(number: re.Match[str]) -> str:
        own: str = number[0]
        parts = parts_of(own)
        if is_well_formed(own):
            return own
        if parts[-2:-1] == parts[-1:] and "".join(parts[:-1]) in theirs:
            return own[: -len(parts[-1]) - 1]
        return theirs.get(digits_of(own), own)

    return NUMBER.sub(mend, tgt)


def _with_times(src: str, tgt: str) -> str:
    """`tgt` with the times of `src`, as 10:30, where it has these with a blank inside."""
    for time in _TIME.finditer(src):
        tgt = re.sub(rf"(?<!\d){time[1]}(?:\s:\s?|:\s){time[2]}(?!\d)", time[0], tgt)
    return tgt


def _is_other_way(right: str, src: str, there: str, behind: str) -> bool:
    """Whether a number `there` that has text `behind` it may be another way to write the number
    `right` of `src`: with a word for zeros, on one side."""
    if digits_of(right).rstrip("0") != digits_of(there).rstrip("0"):
        return False
    return bool(_SCALE.match(src.partition(right)[2]) or _SCALE.match(behind))


def _cut_off(src: str, tgt: str, number: re.Match[str]) -> int:
    """Where a number of `tgt` begins: with the 1 of 1 3850, which is no number of three digits a
    group, where `src` has no such 1."""
    before = _GROUP_BEFORE.search(tgt, 0, number.start())
    return before.start() if before and before[1] in _more(tgt, src) else number.start()


def _more(tgt: str, src: str) -> Counter[str]:
    """The numbers that `tgt` has more often than `src`, as their digits."""
    here, there = (Counter(map(digits_of, NUMBER.findall(text))) for text in (tgt, src))
    return here - there


def _made(src: str, tgt: str) -> list[re.Match[str]]:
    """The numbers of `tgt` that `src` has nowhere, whole or in parts."""
    theirs = NUMBER.findall(src)
    known = {digits_of(number) for number in theirs} | {p for one in theirs for p in parts_of(one)}
    return [
        number
        for number in NUMBER.finditer(tgt)
        if digits_of(number[0]) not in known
        # 31.12.1996 may be parts of a date, 1 400 is one number
        and (BLANK.search(number[0]) or not known.issuperset(parts_of(number[0])))
    ]
