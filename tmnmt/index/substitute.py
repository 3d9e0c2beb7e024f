"""A segment's translation as the translation of a text that differs from its source in numbers, in
case or in a full stop at the end alone: the numbers put into it, the case restored, the full stop
added or taken off, where that is sure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text
from tmnmt.index.skeleton import bone
from tmnmt.numbers import NUMBER
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, nfc

_DIGITS = re.compile(r"\d+")
ONE = "1"
STOP = "."


class Differences(NamedTuple):
    """What two texts of one skeleton differ in."""

    numbers: bool
    case: bool
    punctuation: bool


class Adapted(NamedTuple):
    """A target with the numbers, the case and the punctuation of a query, each as far as it is
    sure; the others stay as they were."""

    tgt: str
    numbers: bool  # whether its numbers are right
    case: bool
    punctuation: bool


def differences(query: str, src: str) -> Differences | None:
    """None where the texts have not the same skeleton, or none at all."""
    one, other = match_tokens(query), match_tokens(src)
    bones, others = [list(map(bone, tokens)) for tokens in (one, other)]
    if [part for part in bones if part] != [part for part in others if part] or not any(bones):
        return None
    kept, theirs = [
        [token for token, part in zip(tokens, parts, strict=True) if part]
        for tokens, parts in ((one, bones), (other, others))
    ]
    differing = [pair for pair in zip(kept, theirs, strict=True) if pair[0] != pair[1]]
    numbers = any(token[0].isdecimal() for token, _ in differing)
    case = any(not token[0].isdecimal() for token, _ in differing)
    marks, their_marks = [
        [part or token for token, part in zip(tokens, parts, strict=True)]
        for tokens, parts in ((one, bones), (other, others))
    ]
    return Differences(numbers, case, marks != their_marks)


def adapt(query: str, segment: Segment, differing: Differences) -> Adapted:
    """The target with what is sure put into it, of a segment with these differences."""
    src, tgt = segment.src, segment.tgt
    with_numbers = _with_numbers(query, src, tgt) if differing.numbers else tgt
    tgt = tgt if with_numbers is None else with_numbers
    with_case = _with_case(nfc(query), nfc(src), tgt) if differing.case else tgt
    tgt = tgt if with_case is None else with_case
    with_end = _with_end(query, src, tgt) if differing.punctuation else tgt
    tgt = tgt if with_end is None else with_end
    return Adapted(tgt, with_numbers is not None, with_case is not None, with_end is not None)


def _with_end(query: str, src: str, tgt: str) -> str | None:
    """`tgt` with the full stop at the end that `query` has and `src` has not, or without; None
    where that is not all, or where the target does not end as the source does."""
    one, other = ([bone(token) or token for token in match_tokens(t)] for t in (query, src))
    end = tgt.rstrip()
    ends = unicodedata.category(end[-1:] or " ").startswith("P")
    if one == [*other, STOP] and not ends:
        return end + STOP
    if [*one, STOP] == other and end.endswith(STOP) and not end.endswith(STOP + STOP):
        return end.removesuffix(STOP)
    return None


def _with_numbers(query: str, src: str, tgt: str) -> str | None:
    """`tgt` with the numbers of `query` for those of `src`. It is sure where every number that
    differs becomes one and the same everywhere, and stands in the target as often as in the
    source, in no word, such as 1er; where it is known how the target writes it; where the target
    has no number that the source has not; and where none becomes 1, by which words go: of numbers
    that became 1 every other one was wrong, of others every sixth, mostly for other words."""
    asked, known = NUMBER.findall(query), NUMBER.findall(src)
    if len(asked) != len(known):
        return None
    becomes: dict[str, set[str]] = {}
    forms = list[tuple[str, str]]()
    for new, old in zip(asked, known, strict=True):
        becomes.setdefault(_digits(old), set()).add(new)
        forms.append((new, old))
    places = list(NUMBER.finditer(tgt))
    if not {_digits(number[0]) for number in places} <= becomes.keys():
        return None
    written: dict[str, str] = {}
    for new, old in forms:
        value = _digits(old)
        if becomes[value] == {old}:
            continue
        if _digits(new) == ONE:
            return None
        theirs = [number for number in places if _digits(number[0]) == value]
        times = sum(_digits(other) == value for other in known)
        if len(becomes[value]) > 1 or len(theirs) != times:
            return None
        if len({number[0] for number in theirs}) > 1 or any(_in_word(tgt, f) for f in theirs):
            return None
        form = _form(new, old, theirs[0][0], _signs(known, places))
        if form is None:
            return None
        written[value] = form
    return _replaced(tgt, places, lambda number: written.get(_digits(number), number))


def _replaced(text: str, places: list[re.Match[str]], form: Callable[[str], str]) -> str:
    parts = list[str]()
    end = 0
    for number in places:
        parts += [text[end : number.start()], form(number[0])]
        end = number.end()
    return "".join([*parts, text[end:]])


def _in_word(text: str, number: re.Match[str]) -> bool:
    """Whether a letter stands at a number."""
    return text[: number.start()][-1:].isalpha() or text[number.end() :][:1].isalpha()


def _form(new: str, old: str, theirs: str, signs: dict[str, str]) -> str | None:
    """`new` as the target writes it, which writes `old` as `theirs`; None where that is not
    known."""
    runs, old_runs = _DIGITS.findall(new), _DIGITS.findall(old)
    alike = list(map(len, runs)) == list(map(len, old_runs))
    if alike and _DIGITS.split(new) == _DIGITS.split(old):  # digit for digit
        digits = iter("".join(runs))
        return "".join(_like(sign, next(digits)) if sign.isdecimal() else sign for sign in theirs)
    if len(_DIGITS.findall(theirs)) != len(old_runs):
        return None  # grouped on one side alone
    form = "".join(sign if sign.isdecimal() else signs.get(sign, "\0") for sign in new)
    if "\0" in form:
        return None
    return "".join(_like(theirs[0], sign) if sign.isdecimal() else sign for sign in form)


def _like(digit: str, new: str) -> str:
    """The digit `new` in the script of `digit`."""
    zero = ord(digit) - unicodedata.decimal(digit)
    return chr(zero + unicodedata.decimal(new))


def _signs(known: list[str], places: list[re.Match[str]]) -> dict[str, str]:
    """How the target writes the signs in numbers of the source, as far as the pair shows it."""
    signs: dict[str, str] = {}
    theirs = {_digits(number[0]): number[0] for number in places}
    for number in known:
        other = theirs.get(_digits(number), "")
        if _DIGITS.findall(number) == _DIGITS.findall(other):
            signs |= zip(_DIGITS.split(number)[1:-1], _DIGITS.split(other)[1:-1], strict=True)
    return signs


def _digits(number: str) -> str:
    return "".join(str(unicodedata.decimal(sign)) for sign in number if sign.isdecimal())


def _with_case(query: str, src: str, tgt: str) -> str | None:
    """`tgt` with the case of `query`: an initial capital, or capitals throughout, where the source
    has not; None where the case differs in another way."""
    letters, known = _letters(query), _letters(src)
    if letters[1:] == known[1:] and letters[:1].isupper() and not known[:1].isupper():
        return _initial(tgt)
    if letters.isupper() and not known.isupper():
        return "".join(
            part if covered else part.upper() for part, covered in _around_placeholders(tgt)
        )
    return None


def _letters(text: str) -> str:
    return "".join(
        sign
        for part, covered in _around_placeholders(text)
        for sign in part
        if sign.isalpha() and not covered
    )


def _initial(text: str) -> str | None:
    """The text with a capital for its first letter, which no placeholder may have."""
    shown, done = "", False
    for part, covered in _around_placeholders(text):
        at = next((i for i, sign in enumerate(part) if sign.isalpha()), None)
        if at is None or done:
            shown += part
        elif covered:
            return None
        else:
            shown = f"{shown}{part[:at]}{part[at].upper()}{part[at + 1 :]}"
            done = True
    return shown


def _around_placeholders(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, and whether each is a placeholder, such as %s or a URL."""
    for part in with_placeholders(Text(text)).parts():
        yield (part, False) if isinstance(part, str) else (part[1], True)
