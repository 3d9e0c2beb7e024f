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
    """A function that finds what a regular expression matches.

    expression: the expression.
    movable: whether what it finds may change places with other codes.
    signs: strings of which all that it matches has one, so that a text without them need not be
    searched; none where nothing is known.

    Raises UsageError where it is no expression, or matches nothing at all, as x* does."""
    try:
        pattern = re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"placeholder {expression!r}: no regular expression: {error}") from error
    if pattern.match(""):
        raise UsageError(f"placeholder {expression!r}: it matches an empty text")

    def find(text: str) -> Iterable[Placeholder]:
        for sign in signs:  # a loop: an expression of any() takes three times as long
            if sign in text:
                break
        else:
            if signs:
                return ()
        return [Placeholder(*match.span(), movable) for match in pattern.finditer(text)]

    return find


def _icu(text: str) -> Iterator[Placeholder]:
    """The frames of arguments that choose among messages, as {n, plural, one {a file} other {#
    files}} does: all but the messages, which are text, and in these the #. With them what is
    quoted, as '{name}' is."""
    result = [frame for _, _, frames in _arguments(text) for frame in frames]
    yield from result
    if result:
        quoted = (match.span() for match in _OUTSIDE.finditer(text) if match[0] != "''")
        yield from (Placeholder(*span, True) for span in quoted)


def arguments(text: str) -> list[tuple[int, int]]:
    """Where the arguments stand that choose among messages, from the first brace to behind the
    last, in characters. Arguments within others are part of these.

    text: the text."""
    return [(start, end) for start, end, _ in _arguments(text)]


def _arguments(text: str) -> Iterator[tuple[int, int, list[Placeholder]]]:
    """Their places, and their frames."""
    position = 0
    while start := _ICU.search(text, position):
        frames = list[Placeholder]()
        end = _argument(text, start, frames, 0)
        if end:
            yield start.start(), end, frames
        position = end or start.end()


def _argument(text: str, start: re.Match[str], frames: list[Placeholder], depth: int) -> int:
    """Where the argument that starts there ends; 0 where it does not. Its frames are noted."""
    begin = start.start()
    position = start.end()
    counts = start[1].lower() != "select"
    while branch := _BRANCH.match(text, position):
        frames.append(Placeholder(begin, branch.end(), False))
        begin = position = _message(text, branch.end(), frames, depth, counts)
        if not position:
            return 0
        position += 1
    end = _END.match(text, position)
    if end is None or begin == start.start():
        return 0
    frames.append(Placeholder(begin, end.end(), False))
    return end.end()


def _message(text: str, position: int, frames: list[Placeholder], depth: int, counts: bool) -> int:
    """Where the } of a message stands; 0 where there is none."""
    while match := _INSIDE.search(text, position):
        position = match.end()
        if match[0] == "}":
            return match.start()
        if match[0] == "#":
            if counts:
                frames.append(Placeholder(*match.span(), False))
        elif match[0][0] == "'":
            if match[0] != "''":
                frames.append(Placeholder(*match.span(), True))
        elif inner := _ICU.match(text, match.start()):
            position = _argument(text, inner, frames, depth + 1) if depth < _DEEPEST else 0
        else:
            position = text.find("}", position) + 1
        if not position:
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
ALL_FINDERS = tuple(finder for finders in FINDERS.values() for finder in finders)

_PARAMETER = re.compile(r"(?<![\w$\\])\$(?:\d(?!\w|[.,]\d)|\{\d\})")


def numbered_parameters(text: str) -> list[Placeholder]:
    """The parameters $1 to $9 of a text of a catalogue, as shells, MediaWiki and browser extensions
    write them. They are numbered from one on, so that a text without $1 has none: $5 is a price
    there, as it always is in running text.

    text: the text."""
    places = [*_PARAMETER.finditer(text)] if "$" in text else []
    if not any(place[0].strip("${}") == "1" for place in places):
        return []
    return [Placeholder(*place.span(), movable=True) for place in places]


_QUOTED_PARAMETER = re.compile(
    r"(?<=[\"'`=/])\$\d(?![\w,]|\.\d)|(?<![\w$\\])\$\d(?=[/\"'`]|\.[A-Za-z])"
)


def evident_parameters(text: str) -> list[Placeholder]:
    """Parameters such as $1 in a text that nobody says to have them: from $1 on without a gap and
    more than one, or in words of a shell, as in "$1" and /home/$1. $1 alone is a price there.

    text: the text."""
    places = numbered_parameters(text)
    numbers = {text[place.start : place.end].strip("${}") for place in places}
    if len(numbers) > 1 and numbers == {str(number + 1) for number in range(len(numbers))}:
        return places
    matches = _QUOTED_PARAMETER.finditer(text) if "$" in text else ()
    return [Placeholder(*match.span(), movable=True) for match in matches]


# what the texts of catalogues have besides
CATALOGUE_FINDERS = (*ALL_FINDERS, numbered_parameters)


def with_placeholders(
    text: Text, finders: Iterable[Finder] = ALL_FINDERS, first: Iterable[Finder] = ()
) -> Text:
    """A text with a code for every placeholder in it: the first, and of those the longest. What has
    a code inside already, or is part of one, stays as it is; but a blank inside becomes part of it,
    and so does a placeholder that is shorter.

    text: the text.
    finders: what finds placeholders.
    first: finds what goes before all that overlaps it, but for what holds the whole of it."""
    places = _drop_overlaps([placeholder for finder in first for placeholder in finder(text.plain)])
    candidates = (placeholder for finder in finders for placeholder in finder(text.plain))
    places += [
        placeholder
        for placeholder in candidates
        if all(_agree(placeholder, place) for place in places)
    ]
    places.sort(key=lambda placeholder: (placeholder.start, -placeholder.end))
    codes = list[Code]()
    end = 0
    absorbed = set[int]()
    occupied = _CodePlaces(text.codes)
    for start, stop, movable in places:
        if start >= end and (inside := occupied.inside(start, stop)) is not None:
            markup = _markup(text.plain, start, stop, inside)
            absorbed.update(map(id, inside))
            movable = movable and all(code.movable for code in inside)
            codes.append(Code(start, "placeholder", markup, covers=stop - start, movable=movable))
            end = stop
    # of codes at one place those that cover nothing come first: what is in front of a placeholder
    remaining = [code for code in text.codes if id(code) not in absorbed]
    together = sorted([*remaining, *codes], key=lambda code: (code.at, code.covers > 0))
    return Text(text.plain, tuple(together))


def _drop_overlaps(places: Iterable[Placeholder]) -> list[Placeholder]:
    """The first, and of those the longest, that do not overlap."""
    selection = list[Placeholder]()
    for placeholder in sorted(
        places, key=lambda placeholder: (placeholder.start, -placeholder.end)
    ):
        if not selection or placeholder.start >= selection[-1].end:
            selection.append(placeholder)
    return selection


def _agree(placeholder: Placeholder, first: Placeholder) -> bool:
    """Whether a place is apart from one that goes first, or holds the whole of it."""
    is_disjoint = placeholder.end <= first.start or first.end <= placeholder.start
    return is_disjoint or (placeholder.start <= first.start and first.end <= placeholder.end)


class _CodePlaces:
    """Where codes stand, asked from left to right."""

    def __init__(self, codes: Sequence[Code]) -> None:
        self._codes = codes
        self._index = 0

    def inside(self, start: int, end: int) -> list[Code] | None:
        """The blanks, and the shorter placeholders, inside the text from `start` to `end`; None
        where another code is there."""
        while self._index < len(self._codes) and _end(self._codes[self._index]) <= start:
            self._index += 1
        inside = list[Code]()
        for number in range(self._index, len(self._codes)):
            code = self._codes[number]
            if code.at >= end:
                break
            is_part = code.kind == "blank" or (is_text(code) and code.covers < end - start)
            if not is_part or code.at < start or _end(code) > end:
                return None
            inside.append(code)
        return inside


def _markup(plain: str, start: int, end: int, inside: Sequence[Code]) -> str:
    """A placeholder as it is written in the file."""
    parts, offset = list[str](), start
    for code in inside:
        parts += plain[offset : code.at], code.markup
        offset = _end(code)
    return "".join([*parts, plain[offset:end]])


def _end(code: Code) -> int:
    return code.at + code.covers
