r"""Subtitles of SubStation Alpha, .ass and .ssa (*ASS specification* of libass). Every line of
dialogue is a unit, and each speaker's part of it. Styles, times, comments and drawings stay.

    Dialogue: 0,0:00:01.00,0:00:03.50,Default,Anna,0,0,0,,{\i1}The permit is\Nvalid.

Line breaks (\N) are layout, as in other subtitles: a text is read without them, and a translation
of a text with breaks is broken anew. A text without breaks stays without them, unless the file has
its lines broken nowhere else (WrapStyle 2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from tmnmt.codes.record import Text
from tmnmt.codes.tags import override_tags
from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.cues import CueFile
from tmnmt.files.subtitles import broken, speeches
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import BOM, NO_BREAK, Edit
from tmnmt.formats.encoding import utf8_or

_LINE = re.compile(r"[^\r\n]+")
_FORMAT = "Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text"
_OVERRIDE = r"\{[^{}]*+\}"  # tags, or a comment
_FIRST, _LAST = re.compile(rf"(?:{_OVERRIDE})+"), re.compile(rf"(?:{_OVERRIDE})+\Z")
_ANY_OVERRIDE = re.compile(_OVERRIDE)
_DRAWING = re.compile(r"\\p\d*[1-9]")
_KARAOKE = re.compile(r"\\[kK][fot]?\d")
_BREAK = re.compile(r"[ \t]*\\[Nn][ \t]*")
_HARD_BLANK = r"\h"
_SUNG = "karaoke, whose syllables have times of their own"
_SMALLEST_FORMAT = ("start", "end")


class _Slot(NamedTuple):
    """A unit's place, with the times of its line and who speaks."""

    start: int
    end: int
    times: str
    speaker: str
    problem: str


class SubStationFile(CueFile[_Slot]):
    """Subtitles in UTF-8, as their byte-order mark says, or in Windows-1252."""

    kind = "substation"
    title = FILE_KINDS["substation"].title

    def _encoding(self, data: bytes) -> str:
        return utf8_or(data, "cp1252")

    # --- reading

    @cached_property
    def _slots(self) -> list[_Slot]:
        slots, section, columns = list[_Slot](), "", _columns(_FORMAT)
        has_events = False
        for line in _LINE.finditer(self.text.removeprefix(BOM)):
            text = line[0].strip()
            offset = line.start() + self._offset
            if text.startswith("[") and text.endswith("]"):
                section = text.lower()
                has_events = has_events or section == "[events]"
                continue
            name, _, value = line[0].partition(":")
            if section != "[events]" or name.strip() not in ("Format", "Dialogue"):
                continue
            if name.strip() == "Format":
                columns = self._format(value, offset)
            else:
                slots += self._dialogue(value, offset + len(name) + 1, columns)
        if not has_events:
            raise FormatError(f"{self.path}: no subtitles: no section [Events]")
        return slots

    @property
    def _offset(self) -> int:
        return len(BOM) if self.text.startswith(BOM) else 0

    def _format(self, value: str, offset: int) -> list[str]:
        """The names of the columns of a line."""
        columns = _columns(value)
        if columns[-1] != "text" or not {*_SMALLEST_FORMAT} <= {*columns}:
            problem = f"a Format without Start and End, or Text at its end; allowed: {_FORMAT}"
            raise self.wrong(offset, problem)
        return columns

    def _dialogue(self, value: str, offset: int, columns: Sequence[str]) -> Iterator[_Slot]:
        """The units of a line of dialogue."""
        cells = value.split(",", len(columns) - 1)
        if len(cells) < len(columns):
            problem = f"a line with {len(cells)} fields, where Format has {len(columns)}"
            raise self.wrong(offset, problem)
        row = dict(zip(columns, cells, strict=True))
        end = offset + len(value.rstrip())
        start = offset + len(value) - len(cells[-1])
        overrides = "".join(_ANY_OVERRIDE.findall(self.text, start, end))
        if _DRAWING.search(overrides):
            return
        problem = _SUNG if _KARAOKE.search(overrides) else ""
        start, end = self._inside(start, max(start, end))
        lines, begin = list[tuple[int, int]](), start
        for match in _BREAK.finditer(self.text, start, end):
            lines.append((begin, match.start()))
            begin = match.end()
        times = f"{row['start'].strip()} --> {row['end'].strip()}"
        speaker = row.get("name", row.get("actor", "")).strip()
        for first, last in speeches(self.text, [*lines, (begin, end)]):
            if any(map(str.isalnum, _ANY_OVERRIDE.sub("", self.text[first:last]))):
                yield _Slot(first, last, times, speaker, problem)

    def _inside(self, start: int, end: int) -> tuple[int, int]:
        """A text without the tags at its ends, where it has no others."""
        first = _FIRST.match(self.text, start, end)
        begin = first.end() if first else start
        last = _LAST.search(self.text[begin:end])
        stop = begin + last.start() if last else end
        return (start, end) if _ANY_OVERRIDE.search(self.text, begin, stop) else (begin, stop)

    def _unit(self, slot: _Slot) -> Unit:
        words = _BREAK.sub(" ", self.text[slot.start : slot.end]).replace(_HARD_BLANK, NO_BREAK)
        unit = unit_of(
            words,
            breaks=False,
            tags=override_tags,
            id=slot.times,
            notes=(slot.speaker,) if slot.speaker else (),
            line=self.line(slot.start),
        )
        return replace(unit, state="locked", problem=slot.problem) if slot.problem else unit

    # --- writing

    @cached_property
    def _is_unwrapped(self) -> bool:
        """Whether a player breaks no lines by itself."""
        return re.search(r"^WrapStyle:\s*2\b", self.text, re.MULTILINE) is not None

    def _times(self, slot: _Slot) -> str:
        return slot.times

    def _shown_lines(self, slot: _Slot, target: Text | None) -> list[str]:
        return [
            _ANY_OVERRIDE.sub("", line).replace(_HARD_BLANK, " ")
            for line in self._lines_of(slot, target)
        ]

    def _lines_of(self, slot: _Slot, target: Text | None) -> list[str]:
        lines = _BREAK.split(self.text[slot.start : slot.end])
        if target is None:
            return lines
        string = string_of(target).replace("\n", " ").strip(" ")
        is_broken = len(lines) > 1 or self._is_unwrapped
        return broken(string, len(lines)) if is_broken else [string]

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for slot, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                new = r"\N".join(self._lines_of(slot, filling.target))
                if _HARD_BLANK in self.text[slot.start : slot.end]:
                    new = new.replace(NO_BREAK, _HARD_BLANK)
                yield Edit(slot.start, slot.end, new)

    def refused(self, unit: Unit, target: Text) -> str:
        """Also a brace, which would begin a tag, and a backslash."""
        words = "".join(part for part in target.parts() if isinstance(part, str))
        if re.search(r"[{}]|\\[Nnh]", words):
            return "a brace or a break that would be read as a tag"
        return unit.problem


def _columns(value: str) -> list[str]:
    return [name.strip().lower() for name in value.split(",")]
