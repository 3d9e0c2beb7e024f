"""What formats of subtitles have in common: cues with times, whose lines viewers must have the time
to read."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Generic, TypeVar

from tmnmt.checks import Check, SubtitleLimits, subtitle_checks, subtitle_limits
from tmnmt.codes.record import Text
from tmnmt.files.unit import Unit
from tmnmt.files.whole import WholeFile

_TIME = re.compile(r"(?:(\d+):)?(\d+):(\d+)[.,](\d+)")
Slot = TypeVar("Slot")


class CueFile(WholeFile[Slot], Generic[Slot]):
    """A file of subtitles."""

    limits = SubtitleLimits(0, 0, 0)  # 0 stands for what is usual in the language

    @abstractmethod
    def _times(self, slot: Slot) -> str:
        """When the cue of a unit begins and ends."""

    @abstractmethod
    def _shown_lines(self, slot: Slot, target: Text | None) -> Sequence[str]:
        """The lines of a unit as a viewer sees them: those of a target, or of the file."""

    def layout_checks(self, unit: Unit, number: int, target: Text | None = None) -> list[Check]:
        lines = self._shown_lines(self._slots[number], target)
        speed, width, maximum = self.limits
        usual = subtitle_limits(self.tgt_lang)
        limits = SubtitleLimits(speed or usual.speed, width or usual.width, maximum or usual.lines)
        return subtitle_checks(lines, self._seconds[number], limits)

    @cached_property
    def _seconds(self) -> list[float]:
        """How long every unit is shown. Those who speak in one cue share its time by the lengths of
        their texts."""
        times = [self._times(slot) for slot in self._slots]
        lengths = [sum(map(len, self._shown_lines(slot, None))) for slot in self._slots]
        totals = dict[str, int]()
        for cue, length in zip(times, lengths, strict=True):
            totals[cue] = totals.get(cue, 0) + length
        return [
            seconds(cue) * length / max(1, totals[cue])
            for cue, length in zip(times, lengths, strict=True)
        ]


def seconds(times: str) -> float:
    """How long a cue is shown, in seconds; 0 where it does not say.

    times: when it begins and ends, as "00:00:01,000 --> 00:00:02,500"."""
    places = [_TIME.search(time) for time in times.split("-->")]
    if len(places) != 2 or places[0] is None or places[1] is None:
        return 0
    begin, end = (
        int(place[1] or 0) * 3600 + int(place[2]) * 60 + int(place[3]) + float(f"0.{place[4]}")
        for place in places
        if place is not None
    )
    return max(0.0, end - begin)
