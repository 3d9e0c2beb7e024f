"""A segment's translation as the translation of a text that differs from its source in numbers, in
case or in the mark at the end alone: the numbers put into it, the case restored, the mark added,
taken off or changed, where that is sure. Or in placeholders alone: these renamed."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from tmnmt.codes.form import EXACT, Copied
from tmnmt.codes.placeholders import ALL_FINDERS, with_placeholders
from tmnmt.codes.record import Text
from tmnmt.index.skeleton import bone
from tmnmt.numbers import NUMBER
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, nfc

_DIGITS = re.compile(r"\d+")
COPIED = Copied((*ALL_FINDERS, *EXACT.finders))
DIGIT_ONE = "1"
MARKS = frozenset(".,;:!?…")  # that end a text
_END = re.compile(r"(\s*)([.,;:!?…]*)\Z")
_IDENTIFIER = re.compile(r"\w+")
# What an end becomes where the target ends as its source does. Others are not sure: a colon or
# semicolon that is added may want a space before it, where an English list has commas, a French one
# has semicolons, and an item of a list is no heading.
_ENDS = {"": ("", "."), ".": ("",), ";": (".",), ",": (".",), ":": ("", "::"), "::": ("", ":")}


class Differences(NamedTuple):
    """What two texts of one skeleton differ in.

    numbers: whether they have other numbers.
    case: whether they have other letters in capitals.
    punctuation: whether they have other marks."""

    numbers: bool
    case: bool
    punctuation: bool


class Adapted(NamedTuple):
    """A target with the numbers, the case and the punctuation of a query, each as far as it is
    sure; the others stay as they were.

    tgt: the target.
    numbers: whether its numbers are right.
    case: whether its case is right, also where it needs no change; never for capitals throughout,
    which go by language.
    punctuation: whether its marks are right."""

    tgt: str
    numbers: bool
    case: bool
    punctuation: bool


def differences(query: str, src: str) -> Differences | None:
    """What two texts differ in; None where they have not the same skeleton, or none at all.

    query: one text.
    src: the other text."""
    return differences_of(match_tokens(query), match_tokens(src))


def differences_of(first: Sequence[str], second: Sequence[str]) -> Differences | None:
    """What two texts differ in; None where they have not the same skeleton, or none at all.

    first: the match tokens of one text.
    second: the match tokens of the other text."""
    bones, second_bones = [list(map(bone, tokens)) for tokens in (first, second)]
    if [part for part in bones if part] != [part for part in second_bones if part] or not any(
        bones
    ):
        return None
    ours, theirs = [
        [token for token, part in zip(tokens, parts, strict=True) if part]
        for tokens, parts in ((first, bones), (second, second_bones))
    ]
    differing = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    numbers = any(token[0].isdecimal() for token, _ in differing)
    case = any(not token[0].isdecimal() for token, _ in differing)
    marks, their_marks = [
        [part or token for token, part in zip(tokens, parts, strict=True)]
        for tokens, parts in ((first, bones), (second, second_bones))
    ]
    return Differences(numbers, case, marks != their_marks)


def adapt(query: str, segment: Segment, differing: Differences) -> Adapted:
    """The target of a segment, with what is sure put into it.

    query: the text that it is to be the translation of.
    segment: the segment.
    differing: what the text and the segment's source differ in."""
    src, tgt = segment.src, segment.tgt
    with_numbers = _with_numbers(query, src, tgt) if differing.numbers else tgt
    tgt = tgt if with_numbers is None else with_numbers
    with_initial = _with_initial(nfc(query), nfc(src), tgt) if differing.case else tgt
    if with_initial is not None:
        tgt = with_initial
    elif _is_in_capitals(nfc(query), nfc(src)):
        tgt = _in_capitals(tgt)
    with_end = _with_end(query, src, tgt) if differing.punctuation else tgt
    tgt = tgt if with_end is None else with_end
    return Adapted(tgt, with_numbers is not None, with_initial is not None, with_end is not None)


def renamed(query: str, segment: Segment) -> str | None:
    """The target of a segment with the placeholders, code and the like of a text in place of those
    of its source. None where the text and the source differ in more than these, and where the
    target has one not as often as the source.

    query: the text.
    segment: the segment."""
    words, names = _around_names(query)
    if not names:
        return None
    their_words, their_names = _around_names(segment.src)
    if words != their_words or names == their_names:
        return None
    becomes = dict(zip(their_names, names, strict=True))
    if [becomes[name] for name in their_names] != [*names] or len({*becomes.values()}) < len(
        becomes
    ):
        return None
    tgt_names = _around_names(segment.tgt)[1]
    if Counter(tgt_names) != Counter(their_names):
        return None
    codes = with_placeholders(Text(segment.tgt), COPIED.finders).parts()
    return "".join(part if isinstance(part, str) else becomes[part[1]] for part in codes)


@lru_cache(4096)
def _around_names(text: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The match tokens around what is copied for its form, and all of that."""
    words, names = list[tuple[str, ...]]([()]), list[str]()
    for part in with_placeholders(Text(text), COPIED.finders).parts():
        if isinstance(part, str):
            words[-1] = tuple(match_tokens(part))
        else:
            names.append(part[1])
            words.append(())
    return tuple(words), tuple(names)


def _with_end(query: str, src: str, tgt: str) -> str | None:
    """`tgt` with the mark at the end that `query` has, where it differs from `src` in nothing else
    but numbers and case: as it is where it ends so already, else changed as _ENDS says. None where
    neither is so."""
    (query_body, asked_end), (src_body, known_end) = map(_without_end, (query, src))
    end = _END.search(tgt.rstrip())
    if query_body != src_body or end is None:
        return None
    if end[2] == asked_end:
        return tgt
    if end[2] != known_end or asked_end not in _ENDS.get(known_end, ()):
        return None
    blanks = end[1] if ":" in asked_end else ""
    return tgt[: end.start()] + blanks + asked_end


def _without_end(text: str) -> tuple[list[str], str]:
    """The match tokens of a text as a skeleton has them, but with punctuation; and the marks at its
    end."""
    tokens = match_tokens(text)
    count = len(tokens)
    while count and tokens[count - 1] in MARKS:
        count -= 1
    return [bone(token) or token for token in tokens[:count]], "".join(tokens[count:])


def _with_numbers(query: str, src: str, tgt: str) -> str | None:
    """`tgt` with the numbers of `query` for those of `src`. It is sure where every number that
    differs becomes one and the same everywhere, and stands in the target as often as in the
    source, in no word that the source has not, such as 1er; where it is known how the target
    writes it; where the target has no number that the source has not; and where none becomes 1, by
    which words go, but for (1) and for one that begins a text: of other numbers that became 1 every
    other one was wrong, of those that became none every sixth, mostly for other words."""
    query_numbers, src_numbers = NUMBER.findall(query), NUMBER.findall(src)
    if len(query_numbers) != len(src_numbers):
        return None
    becomes: dict[str, set[str]] = {}
    forms = list[tuple[str, str]]()
    for new, old in zip(query_numbers, src_numbers, strict=True):
        becomes.setdefault(_digits(old), set()).add(new)
        forms.append((new, old))
    places = list(NUMBER.finditer(tgt))
    if not {_digits(number[0]) for number in places} <= becomes.keys():
        return None
    new_forms: dict[str, str] = {}
    known_words = set(_IDENTIFIER.findall(src))
    signs = _signs(src_numbers, places)
    for new, old in forms:
        value = _digits(old)
        if becomes[value] == {old}:
            continue
        theirs = [number for number in places if _digits(number[0]) == value]
        if _digits(new) == DIGIT_ONE and not all(_is_numbering(tgt, number) for number in theirs):
            return None
        times = sum(_digits(number) == value for number in src_numbers)
        if len(becomes[value]) > 1 or len(theirs) != times:
            return None
        if len({number[0] for number in theirs}) > 1:
            return None
        if any(_in_other_word(tgt, number, known_words) for number in theirs):
            return None
        form = _form(new, old, theirs[0][0], signs)
        if form is None:
            return None
        new_forms[value] = form
    return _replaced(tgt, places, lambda number: new_forms.get(_digits(number), number))


def _replaced(text: str, places: list[re.Match[str]], form: Callable[[str], str]) -> str:
    parts = list[str]()
    end = 0
    for number in places:
        parts += [text[end : number.start()], form(number[0])]
        end = number.end()
    return "".join([*parts, text[end:]])


def _is_numbering(text: str, number: re.Match[str]) -> bool:
    """Whether a number stands in brackets, or counts an item at the beginning: no word goes by
    such a one."""
    prefix, suffix = text[: number.start()].rstrip(), text[number.end() :][:1]
    return (prefix[-1:] == "(" and suffix == ")") or (not prefix and suffix in (".", ")"))


def _in_other_word(text: str, number: re.Match[str], known_words: Container[str]) -> bool:
    """Whether a letter stands at a number, as in 1er: not where the source has the same word, as
    snmp3_walk, and not the letter of a subdivision, as in 46c)."""
    start, end = number.span()
    if not (text[:start][-1:].isalpha() or text[end:][:1].isalpha()):
        return False
    if not text[:start][-1:].isalpha() and text[end + 1 :][:1] == ")":
        return False
    word = next(
        match for match in _IDENTIFIER.finditer(text) if match.start() <= start < match.end()
    )
    return word[0] not in known_words


def _form(new: str, old: str, theirs: str, signs: dict[str, str]) -> str | None:
    """`new` as the target writes it, which writes `old` as `theirs`; None where that is not
    known."""
    runs, old_runs = _DIGITS.findall(new), _DIGITS.findall(old)
    alike = list(map(len, runs)) == list(map(len, old_runs))
    if alike and _DIGITS.split(new) == _DIGITS.split(old):  # digit for digit
        digits = iter("".join(runs))
        return "".join(
            _match_script(sign, next(digits)) if sign.isdecimal() else sign for sign in theirs
        )
    if len(_DIGITS.findall(theirs)) != len(old_runs):
        return None  # grouped on one side alone
    form = "".join(sign if sign.isdecimal() else signs.get(sign, "\0") for sign in new)
    if "\0" in form:
        return None
    return "".join(_match_script(theirs[0], sign) if sign.isdecimal() else sign for sign in form)


def _match_script(digit: str, new: str) -> str:
    """The digit `new` in the script of `digit`."""
    zero = ord(digit) - unicodedata.decimal(digit)
    return chr(zero + unicodedata.decimal(new))


def _signs(src_numbers: list[str], places: list[re.Match[str]]) -> dict[str, str]:
    """How the target writes the signs in numbers of the source, as far as the pair shows it."""
    signs: dict[str, str] = {}
    theirs = {_digits(number[0]): number[0] for number in places}
    for number in src_numbers:
        target_number = theirs.get(_digits(number), "")
        if _DIGITS.findall(number) == _DIGITS.findall(target_number):
            signs |= zip(
                _DIGITS.split(number)[1:-1], _DIGITS.split(target_number)[1:-1], strict=True
            )
    return signs


@lru_cache(4096)
def _digits(number: str) -> str:
    """Its digits, in the script of ASCII."""
    return "".join(str(unicodedata.decimal(sign)) for sign in number if sign.isdecimal())


def _with_initial(query: str, src: str, tgt: str) -> str | None:
    """`tgt` with an initial capital, where `query` differs from `src` in that alone; else None."""
    letters, src_letters = _letters(query), _letters(src)
    if letters[1:] == src_letters[1:] and letters[:1].isupper() and not src_letters[:1].isupper():
        return _initial(tgt)
    return None


def _is_in_capitals(query: str, src: str) -> bool:
    """Whether `query` has capitals throughout, and `src` has not."""
    return _letters(query).isupper() and not _letters(src).isupper()


def _in_capitals(tgt: str) -> str:
    return "".join(part if covered else part.upper() for part, covered in _around_placeholders(tgt))


def _letters(text: str) -> str:
    return "".join(
        sign
        for part, covered in _around_placeholders(text)
        for sign in part
        if sign.isalpha() and not covered
    )


def _initial(text: str) -> str | None:
    """The text with a capital for its first letter, which no placeholder may have."""
    result, has_capital = "", False
    for part, covered in _around_placeholders(text):
        index = next((i for i, sign in enumerate(part) if sign.isalpha()), None)
        if index is None or has_capital:
            result += part
        elif covered:
            return None
        else:
            result = f"{result}{part[:index]}{part[index].upper()}{part[index + 1 :]}"
            has_capital = True
    return result


def _around_placeholders(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, and whether each is a placeholder, such as %s or a URL."""
    for part in with_placeholders(Text(text)).parts():
        yield (part, False) if isinstance(part, str) else (part[1], True)
