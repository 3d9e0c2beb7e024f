"""Subtitles: SubRip (.srt) and WebVTT (W3C, WebVTT: The Web Video Text Tracks Format). Every cue is
a unit, and each speaker's line of a dialogue. Times, settings, notes and styles stay.

Line breaks inside a cue are layout. A text is read without them, and a translation is broken anew:
into no more lines than the source has and at least two, of 42 characters where they suffice, as
broadcasters have it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from html import unescape
from itertools import zip_longest
from typing import NamedTuple

from tmnmt.codes.placeholders import ALL_FINDERS, by_pattern
from tmnmt.codes.record import Text, join_parts
from tmnmt.codes.tags import Tag, html_tags, override_tags
from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.cues import CueFile
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import BOM, Edit
from tmnmt.formats.encoding import utf8_or

WIDTH = 42  # characters of a line
FEWEST_LINES = 2
_HOURS = r"(?:\d{1,4}:)?\d\d:\d\d[,.]\d{3}"
_TIMES = re.compile(rf"^[ \t]*{_HOURS}[ \t]*-->[ \t]*{_HOURS}[^\r\n]*(?:\r?\n|\Z)", re.MULTILINE)
_NUMBER = re.compile(r"(?:\A|(?<=\n))[ \t]*\d+[ \t]*\r?\n\Z")  # of the next cue
# Tags of WebVTT with classes, voices and times.
_TAGS = by_pattern(r"</?[a-z]+(?:[.\s][^<>]*)?>|<\d[\d:.]*>")
_FINDERS = (*ALL_FINDERS, _TAGS)
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_WORD = re.compile(rf"(?:{_TAG.pattern}|[^ \t\r\n])+")
# Each blank and each sign is looked at once, whatever the file holds.
_LINE = re.compile(r"^[^\S\r\n]*+[^\s][^\r\n]*+", re.MULTILINE)
_CUE = re.compile(r"(?:[^\S\r\n]*+[^\s][^\r\n]*+(?:\r?\n|\Z))*+")
_SPEAKER = re.compile(r"[ \t]*[-–—][ \t]*(?=\S)")
_BREAK = re.compile(r"(?<![ \t])[ \t]*+\r?\n[ \t]*+")
_BLANKS = re.compile(r"[ \t\r\n]+")  # not those that keep a line together
_BARE_AND = re.compile(r"&(?![A-Za-z]+;|#\d+;)")


def _tags(text: str) -> Iterator[Tag]:
    """Tags of HTML and, as many .srt have them, of SubStation Alpha."""
    places = [tag for tag in override_tags(text) if text.startswith("{\\", tag.start)]
    yield from sorted([*html_tags(text), *places], key=lambda tag: tag.start)


class _Cue(NamedTuple):
    start: int  # of its text, or of a speaker's line without the dash
    end: int
    id: str


class SubtitleFile(CueFile[_Cue]):
    """Subtitles in UTF-8, as their byte-order mark says, or in Windows-1252."""

    kind = "subtitles"
    title = FILE_KINDS["subtitles"].title

    def _encoding(self, data: bytes) -> str:
        return utf8_or(data, "utf-8" if self._is_web else "cp1252")

    @property
    def _is_web(self) -> bool:
        return self.path.suffix.lower() == ".vtt"

    @cached_property
    def _slots(self) -> list[_Cue]:
        text = self.text
        if self._is_web and not text.removeprefix(BOM).startswith("WEBVTT"):
            raise self.wrong(0, "does not begin with WEBVTT")
        times = list(_TIMES.finditer(text))
        if not times:
            raise FormatError(
                "{file}: no subtitles: no line has times, 00:00:01,000 --> ...", file=str(self.path)
            )
        cues = list[_Cue]()
        for match, next_match in zip_longest(times, times[1:]):
            begin = match.end()
            limit = next_match.start() if next_match is not None else len(text)
            cue = _CUE.match(text, begin, limit)
            end = cue.end() if cue is not None else begin
            if end == limit and next_match is not None:  # no empty line parts the cues
                number = _NUMBER.search(text, begin, end)
                end = number.start() if number is not None else end
            cues += self._texts(begin, end, _times_of(match[0]))
        return cues

    def _texts(self, start: int, end: int, times: str) -> Iterator[_Cue]:
        """The text of a cue, or those of its speakers."""
        lines = [
            (line.start(), line.start() + len(line[0].rstrip()))
            for line in _LINE.finditer(self.text, start, end)
        ]
        for begin, stop in speeches(self.text, lines):
            yield _Cue(begin, stop, times)

    def _unit(self, slot: _Cue) -> Unit:
        words = _BREAK.sub(" ", self.text[slot.start : slot.end])
        return unit_of(
            words,
            finders=_FINDERS,
            breaks=False,
            tags=_tags,
            id=slot.id,
            line=self.line(slot.start),
        )

    def _times(self, slot: _Cue) -> str:
        return slot.id

    def _shown_lines(self, slot: _Cue, target: Text | None) -> list[str]:
        begin = self.text.rfind("\n", 0, slot.start) + 1  # where a speaker has a dash
        first, *rest = self._lines_of(slot, target)
        lines = [_TAG.sub("", line) for line in (self.text[begin : slot.start] + first, *rest)]
        return [unescape(line) for line in lines] if self._is_web else lines

    def _lines_of(self, slot: _Cue, target: Text | None) -> list[str]:
        lines = _BREAK.split(self.text[slot.start : slot.end])
        return lines if target is None else broken(self._string(target), len(lines))

    def _text_place(self, slot: _Cue) -> tuple[int, int] | None:
        return slot.start, slot.end

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for slot, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                lines = self._lines_of(slot, filling.target)
                yield Edit(slot.start, slot.end, self.newline.join(lines))

    def _string(self, target: Text) -> str:
        """A target on one line; in WebVTT with `&` and `<` as the format wants them."""
        parts = (
            _escaped(part) if isinstance(part, str) and self._is_web else _part(part)
            for part in target.parts()
        )
        return _BLANKS.sub(" ", "".join(parts)).strip(" ")


def _part(part: object) -> str:
    return part if isinstance(part, str) else string_of(join_parts([part]))  # type: ignore[list-item]


def _escaped(part: str) -> str:
    return _BARE_AND.sub("&amp;", part).replace("<", "&lt;")


def _times_of(line: str) -> str:
    return " ".join(line.split()[:3])


def speeches(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where the texts of a cue stand that have letters or digits: the whole of it, or what each
    speaker says, behind a dash.

    text: the text of the file.
    lines: where the lines of the cue begin and end."""
    dashes = [_SPEAKER.match(text, begin, stop) for begin, stop in lines]
    starts = sorted({0, *(number for number, dash in enumerate(dashes) if dash is not None)})
    for number, first in enumerate(starts):
        last = starts[number + 1] if number + 1 < len(starts) else len(lines)
        if not lines[first:last]:
            continue
        dash = dashes[first]
        begin = dash.end() if dash is not None else lines[first][0]
        stop = lines[last - 1][1]
        if any(map(str.isalnum, text[begin:stop])):
            yield begin, stop


def broken(text: str, lines: int) -> list[str]:
    """A text in lines of even length: in no more than `lines` and two, and in fewer where lines of
    WIDTH characters suffice. Words stay whole, and so do tags.

    text: the text, on one line.
    lines: how many lines the source has."""
    words = _WORD.findall(text)
    most = max(lines, FEWEST_LINES)
    count = min(most, len(words), -(-_width(text) // WIDTH) or 1)
    best = [text]
    while count > 1:
        best = _even(words, count)
        if max(map(_width, best)) <= WIDTH or count == most:
            break
        count += 1
        if count > min(most, len(words)):
            break
    return best


def _width(text: str) -> int:
    """How many characters of a text are shown: all but those of tags."""
    return len(_TAG.sub("", text))


def _even(words: Sequence[str], count: int) -> list[str]:
    """Words in `count` lines, each broken where it is nearest to its share of what is left."""
    lines, rest = list[str](), list(words)
    for remaining in range(count, 1, -1):
        share = _width(" ".join(rest)) / remaining
        length, taken = 0, 0
        for number, word in enumerate(rest[: len(rest) - remaining + 1], 1):
            longer = length + _width(word) + (number > 1)
            if number > 1 and abs(longer - share) > abs(length - share):
                break
            length, taken = longer, number
        lines.append(" ".join(rest[:taken]))
        rest = rest[taken:]
    return [*lines, " ".join(rest)]
