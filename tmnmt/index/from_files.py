"""Indexes built at any place, and over memory files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tmnmt.errors import FormatError
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import Columns, Reader, Report
from tmnmt.index.back_ends import BuildJob, BuiltCounts, back_end_of, check_build_options
from tmnmt.progress import ReadProgress
from tmnmt.quantities import quantity
from tmnmt.segments import Segment


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
    force: bool = False,
    options: Mapping[str, int] | None = None,
    progress: ReadProgress | None = None,
    sending: ReadProgress | None = None,
    seconds_to_wait: float = 0.0,
) -> tuple[BuiltCounts, Report]:
    """Builds an index over the segments of memory files, and returns how much is in it and what
    became of the units of the files. After an error nothing has changed.

    place: the folder or the address.
    paths: the memory files.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    columns: which columns of tables are read; None finds them by their names.
    force: whether an index that is there is replaced.
    options: options of the back end, by their names.
    progress: is told of units that are read.
    sending: is told of segments that a server has taken; a folder has no such step.
    seconds_to_wait: how long another writer to the folder is waited for.

    Raises what `BackEnd.build` raises. Raises UsageError for an option that the back end lacks.
    Raises FormatError where a file is unusable or no unit of all is kept."""
    back_end = back_end_of(place)
    check_build_options(place, options or {})
    reader = read_memories(paths, src_lang, tgt_lang, columns=columns, progress=progress)
    listener = sending if back_end.sends else None
    languages, options = (src_lang, tgt_lang), options or {}
    segments = _at_least_one(reader)
    job = BuildJob(str(place), segments, *languages, force, listener, seconds_to_wait, options)
    return back_end.build(job), reader.report


def _at_least_one(reader: Reader) -> Iterator[Segment]:
    yield from reader
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
