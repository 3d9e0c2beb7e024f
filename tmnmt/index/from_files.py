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
    """An index over segments in a folder or at an address; errors as of `BackEnd.build`."""
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
    """An index over the segments of memory files, and what became of their units. `options`: of the
    back end. `progress` is told of units read, then `sending` of segments that a server has taken.
    Errors as of `BackEnd.build`; UsageError for an option that the back end has not, FormatError
    where a file is unusable or no unit of all is kept. Then nothing has changed."""
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
