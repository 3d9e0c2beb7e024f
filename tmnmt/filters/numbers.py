"""Numbers that the model wrote otherwise than the source has them: one that is wrong becomes that
of the source, in the form of the target."""

from __future__ import annotations

import re
from collections import Counter

from tmnmt.codes.record import Source
from tmnmt.filters.contract import Filter, ModelOutput, Undo
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

    def restore_piece(self, output: ModelOutput) -> str:
        # a mask that is lost, or written twice, would pass for a wrong number
        return output.text if output.loses_masks else mended(output.model_text, output.text)


def mended(src: str, tgt: str) -> str:
    """A translation with the one number of its source that it lacks in place of the one that it has
    instead, in the form of that: 1 200 of "1,200" in place of "1 400". It stays the same where
    there are more of them, or where one may be another way to write the other, as 5 million of
    5,000,000 is. A number with one sign for groups and for decimals, as 12,345,67, becomes as it is
    in the source, and so does a time with a blank inside, as 10 :30.

    src: the source.
    tgt: the translation."""
    tgt = _with_times(src, _well_formed(src, tgt))
    lacking, spurious = missing_numbers(src, tgt), _spurious(src, tgt)
    if len(lacking) != 1 or len(spurious) != 1:
        return tgt
    (right,), (wrong,) = lacking, spurious
    start, end = _cut_off(src, tgt, wrong), wrong.end()
    wrong_text = tgt[start:end]
    if _CLOCK.search(src) or _is_other_way(right, src, wrong_text, tgt[end:]):
        return tgt
    excess = _excess(tgt[:start] + " " + tgt[end:], src)
    if len(parts_of(right)) > 1 and not excess.keys().isdisjoint(parts_of(right)):
        return tgt  # it is there in part
    return tgt[:start] + _in_form(right, wrong_text) + tgt[end:]


def _in_form(number: str, template: str) -> str:
    """A number with the signs of another one, where that is as long, or where each has but one sign
    for its groups; else as it is."""
    parts, signs = parts_of(number), re.findall(r"\D", template)
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
        text: str = number[0]
        parts = parts_of(text)
        if is_well_formed(text):
            return text
        if parts[-2:-1] == parts[-1:] and "".join(parts[:-1]) in theirs:
            return text[: -len(parts[-1]) - 1]
        return theirs.get(digits_of(text), text)

    return NUMBER.sub(mend, tgt)


def _with_times(src: str, tgt: str) -> str:
    """`tgt` with the times of `src`, as 10:30, where it has these with a blank inside."""
    for time in _TIME.finditer(src):
        tgt = re.sub(rf"(?<!\d){time[1]}(?:\s:\s?|:\s){time[2]}(?!\d)", time[0], tgt)
    return tgt


def _is_other_way(right: str, src: str, candidate: str, following: str) -> bool:
    """Whether a number `candidate` that has text `following` it may be another way to write the
    number `right` of `src`: with a word for zeros, on one side."""
    if digits_of(right).rstrip("0") != digits_of(candidate).rstrip("0"):
        return False
    return bool(_SCALE.match(src.partition(right)[2]) or _SCALE.match(following))


def _cut_off(src: str, tgt: str, number: re.Match[str]) -> int:
    """Where a number of `tgt` begins: with the 1 of 1 3850, which is no number of three digits a
    group, where `src` has no such 1."""
    group = _GROUP_BEFORE.search(tgt, 0, number.start())
    return group.start() if group and group[1] in _excess(tgt, src) else number.start()


def _excess(tgt: str, src: str) -> Counter[str]:
    """The numbers that `tgt` has more often than `src`, as their digits."""
    target_counts, source_counts = (
        Counter(map(digits_of, NUMBER.findall(text))) for text in (tgt, src)
    )
    return target_counts - source_counts


def _spurious(src: str, tgt: str) -> list[re.Match[str]]:
    """The numbers of `tgt` that `src` has nowhere, whole or in parts."""
    theirs = NUMBER.findall(src)
    source_digits = {digits_of(number) for number in theirs} | {
        p for number in theirs for p in parts_of(number)
    }
    return [
        number
        for number in NUMBER.finditer(tgt)
        if digits_of(number[0]) not in source_digits
        # 31.12.1996 may be parts of a date, 1 400 is one number
        and (BLANK.search(number[0]) or not source_digits.issuperset(parts_of(number[0])))
    ]
