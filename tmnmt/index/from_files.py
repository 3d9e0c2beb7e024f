"""Indexes built at any place, and over memory files."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from tmnmt.errors import FormatError, UsageError
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import Columns, Reader, Report
from tmnmt.formats.clean import excerpt
from tmnmt.index.back_ends import BuildJob, BuiltCounts, back_end_of, check_build_options
from tmnmt.index.embedded.rows import OtherSegmentsError
from tmnmt.progress import ReadProgress
from tmnmt.quantities import quantity
from tmnmt.segments import Segment

_NAMES_TOLD = 10  # of properties, in an error
log = logging.getLogger(__name__)


class QualityFloor:
    """Leaves out pairs of which a property says that they are bad, as the scores do that filters of
    web crawls write.

    property: the name of the property, a number.
    minimum: the smallest number that is taken.
    excluded_count: how many pairs were left out.
    unscored_count: how many pairs were taken that have no such property, or nothing in it."""

    def __init__(self, text: str) -> None:
        """text: PROPERTY=NUMBER.

        Raises UsageError for anything else."""
        name, _, number = text.rpartition("=")
        self.property = name.strip()
        try:
            self.minimum = float(number)
        except ValueError:
            self.minimum = math.nan
        if not self.property or {"<", ">"} & {*name} or not math.isfinite(self.minimum):
            raise UsageError(
                f"{excerpt(text)!r} is no floor; write PROPERTY=NUMBER, such as score-bicleaner=0.7"
            )
        self.excluded_count = self.unscored_count = 0

    def select(
        self, located: Iterable[tuple[int, Segment]], place: Callable[[int], str]
    ) -> Iterator[Segment]:
        """The segments without those below the floor.

        located: the segments, each with the line where its unit starts.
        place: what messages call a line of the file that is read.

        Raises FormatError where no segment has a score, where none is left, and for a score that is
        no number."""
        count = 0
        names: dict[str, None] = {}  # of properties, as long as none is the score
        self.excluded_count = self.unscored_count = 0
        for line, segment in located:
            value = self._value(segment)
            score = self._score(value, place(line)) if value else None
            if score is not None and score < self.minimum:
                self.excluded_count += 1
                continue
            if score is None:
                self.unscored_count += 1
                if count + 1 == self.unscored_count and len(names) < _NAMES_TOLD:
                    names |= dict.fromkeys(name for name, _ in segment.properties)
            count += 1
            yield segment
        if not count:
            raise FormatError(
                f"nothing to index: {quantity(self.excluded_count, 'pair')}, all with a "
                f"{self.property} below {self.minimum:g}"
            )
        if count == self.unscored_count and not self.excluded_count:
            listed = ", ".join(map(excerpt, islice(names, _NAMES_TOLD))) or "none"
            raise FormatError(
                f"none of {quantity(count, 'pair')} has a number as its {excerpt(self.property)}; "
                f"properties that there are: {listed}"
            )

    def _value(self, segment: Segment) -> str:
        """What the property says; "" where the segment has none, or nothing in it."""
        values = (value.strip() for name, value in segment.properties if name == self.property)
        return next(filter(None, values), "")

    def _score(self, value: str, place: str) -> float:
        try:
            score = float(value)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise FormatError(
                f"{place}: the {self.property} {excerpt(value)!r} is no number; allowed: a number "
                "such as 0.7, or nothing"
            )
        return score

    def __str__(self) -> str:
        """What was left out, and what was taken unseen."""
        return (
            f"{quantity(self.excluded_count, 'pair')} with a {self.property} below "
            f"{self.minimum:g} left out; {self.unscored_count:,} without one taken"
        )


def build_at(
    place: str,
    segments: Iterable[Segment],
    src_lang: str,
    tgt_lang: str,
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> BuiltCounts:
    """Builds an index in a folder or at an address, and returns how much is in it.

    place: the folder or the address.
    segments: the segments.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    force: whether an index that is there is replaced.
    progress: is called with the number of segments that are done since the last call; None tells
    nobody.

    Raises what `BackEnd.build` raises."""
    listener = None if progress is None else lambda count, _: progress(count)
    return back_end_of(place).build(BuildJob(place, segments, src_lang, tgt_lang, force, listener))


def build_from_files(
    place: str | Path,
    paths: Sequence[Path],
    src_lang: str,
    tgt_lang: str,
    *,
    columns: Columns | None = None,
    floor: QualityFloor | None = None,
    force: bool = False,
    options: Mapping[str, int] | None = None,
    progress: ReadProgress | None = None,
    sending: ReadProgress | None = None,
    seconds_to_wait: float = 0.0,
) -> tuple[BuiltCounts, Report]:
    """Builds an index over the segments of memory files, and returns how much is in it and what
    became of the units of the files. After an error nothing has changed. In a folder, a build of
    the same files that was interrupted goes on behind the last part that was whole.

    place: the folder or the address.
    paths: the memory files.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    columns: which columns of tables are read; None finds them by their names.
    floor: leaves out pairs of a lower score; None takes all.
    force: whether an index that is there is replaced.
    options: options of the back end, by their names.
    progress: is told of units that are read.
    sending: is told of segments that a server has taken; a folder has no such step.
    seconds_to_wait: how long another writer to the folder is waited for.

    Raises what `BackEnd.build` raises. Raises UsageError for an option that the back end lacks.
    Raises FormatError where a file is unusable, no unit of all is kept, no pair has a score for the
    floor, or a score is no number."""
    back_end = back_end_of(place)
    check_build_options(place, options or {})
    listener = sending if back_end.sends else None
    reader = read_memories(paths, src_lang, tgt_lang, columns=columns, progress=progress)
    reader.check_files()  # a later one that is missing would end the build only when it is reached

    def build() -> tuple[BuiltCounts, Report]:
        located = _at_least_one(reader)
        segments = (
            (segment for _, segment in located)
            if floor is None
            else floor.select(located, lambda line: reader.report.place(line))
        )
        job = BuildJob(
            str(place),
            segments,
            src_lang,
            tgt_lang,
            force,
            listener,
            seconds_to_wait,
            options or {},
            resumes=True,
        )
        return back_end.build(job), reader.report

    try:
        return build()
    except OtherSegmentsError:
        log.info("%s: the build that was interrupted was of other segments; beginning anew", place)
        return build()


def _at_least_one(reader: Reader) -> Iterator[tuple[int, Segment]]:
    yield from reader.located()
    report = reader.report
    if not report.retained:
        reasons = (
            ", ".join(f"{reason} {count:,}" for reason, count in report.skipped.items() if count)
            or "no units"
        )
        names = ", ".join(map(str, reader.paths))
        first = "; ".join(str(example) for reason in report.examples.values() for example in reason)
        counts = f"0 of {quantity(report.units, 'unit')} kept ({reasons})" + (
            first and f": {first}"
        )
        raise FormatError(f"{names}: nothing to index: {counts}")
