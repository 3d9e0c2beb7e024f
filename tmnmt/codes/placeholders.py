"""Placeholders that stand in a text as such, found by how they are written: %s, {name}, a URL.

They stay in the plain text and become codes that cover them. What depends on its place, as the
second of two %s does, cannot be moved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tmnmt.codes.record import Code, Text, is_text
from tmnmt.errors import UsageError


class Placeholder(NamedTuple):
    """Where a placeholder stands, and whether it says itself what it stands for."""

    start: int
    end: int
    movable: bool


Finder = Callable[[str], Iterable[Placeholder]]

_CONVERSION = r"[-+#0']{0,5}(?:\*|\d{1,9})?(?:\.(?:\*|\d{1,9}))?"
_LENGTH = r"(?:hh|h|ll|l|L|q|j|z|t)?"
_LETTER = "[diouxXeEfFgGaAcspn@]"
# "50%discount": behind a number it is no placeholder where more letters follow
_PRINTF = (
    rf"(?:(?<!\d)%{_CONVERSION}{_LENGTH}{_LETTER}|%{_CONVERSION}{_LENGTH}{_LETTER}(?![A-Za-z]))"
)
_MOVING_PRINTF = rf"%\d{{1,9}}\${_CONVERSION}{_LENGTH}{_LETTER}|%%"
_PYTHON = rf"%\([^()\s%]{{1,100}}\){_CONVERSION}[diouxXeEfFgGcrsa]"
_TWO_BRACES = r"\{\{[^{}]{1,100}\}\}"
_BRACES = r"\$?\{\s{0,9}[\w$@][\w.$@\[\]-]{0,99}\s{0,9}(?:[!:,|][^{}]{0,100})?\}"
_ESCAPE = r"\\(?:[nrtbfav0\"'\\]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})"
_URL = r"(?:\b(?:https?|ftps?|file)://|\bwww\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]»]"
_WEBLATE = r"\[X\d{1,9}X\]"  # what it sends in place of its own placeholders
_EMAIL = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,9}"

_ICU = re.compile(
    r"\{\s{0,9}\w{1,100}\s{0,9},\s{0,9}(plural|selectordinal|select)\s{0,9},"
    r"\s{0,99}(?:offset:\s{0,9}\d{1,9}\s{0,99})?",
    re.IGNORECASE,
)
_BRANCH = re.compile(r"\s{0,99}(?:=\d{1,9}|\w{1,100})\s{0,99}\{")
_END = re.compile(r"\s{0,99}\}")
_QUOTED = r"''|'[{}#](?:[^']|'')*+'"  # an apostrophe, or syntax that is text
_INSIDE = re.compile(rf"[{{}}#]|{_QUOTED}")
_OUTSIDE = re.compile(_QUOTED)
_DEEPEST = 5  # arguments in the branches of others


def by_pattern(expression: str, movable: bool = True, signs: Sequence[str] = ()) -> Finder:
    """Finds what a regular expression matches. `signs`: all that it matches has one of these
    strings, so that a text without them need not be searched; none: nothing is known. Raises
    UsageError where it is no expression, or matches nothing at all, as x* does."""
    try:
        pattern = re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"placeholder {expression!r}: no regular expression: {error}") from error
    if pattern.match(""):
        raise UsageError(f"placeholder {expression!r}: it matches an empty text")

    def find(text: str) -> Iterable[Placeholder]:
        if signs and not any(sign in text for sign in signs):
            return ()
        return [Placeholder(*match.span(), movable) for match in pattern.finditer(text)]

    return find


def _icu(text: str) -> Iterator[Placeholder]:
    """The frames of arguments that choose among messages, as {n, plural, one {a file} other {#
    files}} does: all but the messages, which are text, and in these the #. With them what is
    quoted, as '{name}' is."""
    every = [frame for _, _, frames in _arguments(text) for frame in frames]
    yield from every
    if every:
        quoted = (one.span() for one in _OUTSIDE.finditer(text) if one[0] != "''")
        yield from (Placeholder(*span, True) for span in quoted)


def arguments(text: str) -> list[tuple[int, int]]:
    """Where the arguments stand that choose among messages, from the first brace to behind the
    last; those within others are part of these."""
    return [(start, end) for start, end, _ in _arguments(text)]


def _arguments(text: str) -> Iterator[tuple[int, int, list[Placeholder]]]:
    """Their places, and their frames."""
    at = 0
    while start := _ICU.search(text, at):
        frames = list[Placeholder]()
        end = _argument(text, start, frames, 0)
        if end:
            yield start.start(), end, frames
        at = end or start.end()


def _argument(text: str, start: re.Match[str], frames: list[Placeholder], depth: int) -> int:
    """Where the argument that starts there ends; 0 where it does not. Its frames are noted."""
    begin = start.start()
    at = start.end()
    counts = start[1].lower() != "select"
    while branch := _BRANCH.match(text, at):
        frames.append(Placeholder(begin, branch.end(), False))
        begin = at = _message(text, branch.end(), frames, depth, counts)
        if not at:
            return 0
        at += 1
    end = _END.match(text, at)
    if end is None or begin == start.start():
        return 0
    frames.append(Placeholder(begin, end.end(), False))
    return end.end()


def _message(text: str, at: int, frames: list[Placeholder], depth: int, counts: bool) -> int:
    """Where the } of a message stands; 0 where there is none."""
    while match := _INSIDE.search(text, at):
        at = match.end()
        if match[0] == "}":
            return match.start()
        if match[0] == "#":
            if counts:
                frames.append(Placeholder(*match.span(), False))
        elif match[0][0] == "'":
            if match[0] != "''":
                frames.append(Placeholder(*match.span(), True))
        elif inner := _ICU.match(text, match.start()):
            at = _argument(text, inner, frames, depth + 1) if depth < _DEEPEST else 0
        else:
            at = text.find("}", at) + 1
        if not at:
            return 0
    return 0


FINDERS: dict[str, Sequence[Finder]] = {
    "printf": (by_pattern(_MOVING_PRINTF, signs="%"), by_pattern(_PRINTF, False, "%")),
    "python": (by_pattern(_PYTHON, signs="%"),),
    # each for itself: the first brace of {{x}} may be the last of the frame of a message
    "braces": (
        by_pattern(_TWO_BRACES, signs=("{{",)),
        by_pattern(_BRACES, signs="{"),
        by_pattern(r"\$?\{\}", False, ("{}",)),
    ),
    "icu": (_icu,),
    "escape": (by_pattern(_ESCAPE, signs="\\"),),
    "url": (by_pattern(_URL, signs=("://", "www.")),),
    "email": (by_pattern(_EMAIL, signs="@"),),
    "weblate": (by_pattern(_WEBLATE, signs=("[X",)),),
}
ALL = tuple(finder for finders in FINDERS.values() for finder in finders)


def with_placeholders(
    text: Text, finders: Iterable[Finder] = ALL, first: Iterable[Finder] = ()
) -> Text:
    """`text` with a code for every placeholder that they find: the first, and of those the longest.
    What has a code inside already, or is part of one, stays as it is; but a blank inside becomes
    part of it, and so does a placeholder that is shorter. What `first` finds goes before all that
    overlaps it, but for what holds the whole of it."""
    places = _chosen([one for finder in first for one in finder(text.plain)])
    others = (one for finder in finders for one in finder(text.plain))
    places += [one for one in others if all(_agree(one, other) for other in places)]
    places.sort(key=lambda one: (one.start, -one.end))
    codes = list[Code]()
    end = 0
    within = set[int]()
    taken = _Taken(text.codes)
    for start, stop, movable in places:
        if start >= end and (inside := taken.inside(start, stop)) is not None:
            markup = _written(text.plain, start, stop, inside)
            within.update(map(id, inside))
            movable = movable and all(code.movable for code in inside)
            codes.append(Code(start, "placeholder", markup, covers=stop - start, movable=movable))
            end = stop
    # of codes at one place those that cover nothing come first: what is in front of a placeholder
    left = [code for code in text.codes if id(code) not in within]
    together = sorted([*left, *codes], key=lambda code: (code.at, code.covers > 0))
    return Text(text.plain, tuple(together))


def _chosen(places: Iterable[Placeholder]) -> list[Placeholder]:
    """The first, and of those the longest, that do not overlap."""
    chosen = list[Placeholder]()
    for one in sorted(places, key=lambda one: (one.start, -one.end)):
        if not chosen or one.start >= chosen[-1].end:
            chosen.append(one)
    return chosen


def _agree(one: Placeholder, first: Placeholder) -> bool:
    """Whether a place is apart from one that goes first, or holds the whole of it."""
    apart = one.end <= first.start or first.end <= one.start
    return apart or (one.start <= first.start and first.end <= one.end)


class _Taken:
    """Where codes stand, asked from left to right."""

    def __init__(self, codes: Sequence[Code]) -> None:
        self._codes = codes
        self._at = 0

    def inside(self, start: int, end: int) -> list[Code] | None:
        """The blanks, and the shorter placeholders, inside the text from `start` to `end`; None
        where another code is there."""
        while self._at < len(self._codes) and _end(self._codes[self._at]) <= start:
            self._at += 1
        inside = list[Code]()
        for number in range(self._at, len(self._codes)):
            code = self._codes[number]
            if code.at >= end:
                break
            is_part = code.kind == "blank" or (is_text(code) and code.covers < end - start)
            if not is_part or code.at < start or _end(code) > end:
                return None
            inside.append(code)
        return inside


def _written(plain: str, start: int, end: int, inside: Sequence[Code]) -> str:
    """A placeholder as it is written in the file."""
    parts, at = list[str](), start
    for code in inside:
        parts += plain[at : code.at], code.markup
        at = _end(code)
    return "".join([*parts, plain[at:end]])


def _end(code: Code) -> int:
    return code.at + code.covers
