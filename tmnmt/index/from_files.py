"""An index in a folder or at an Elasticsearch address, and one over memory files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.counted import counted
from tmnmt.errors import FormatError
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import Columns, Reader, Report
from tmnmt.index.elastic.address import ElasticAddress, is_address, parse_address
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.manifest import Manifest
from tmnmt.progress import ReadProgress
from tmnmt.segments import Segment

if TYPE_CHECKING:
    from tmnmt.index.elastic.layout import ElasticManifest


def build_at(
    where: str,
    segments: Iterable[Segment],
    src_lang: str,
    tgt_lang: str,
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Manifest | ElasticManifest:
    """`build` for a folder, `build_elastic` for an address."""
    if is_address(where):
        from tmnmt.index.elastic.build import build_elastic

        tell = None if progress is None else lambda n, _: progress(n)
        return build_elastic(
            parse_address(where), segments, src_lang, tgt_lang, force=force, progress=tell
        )
    return build(Path(where), segments, src_lang, tgt_lang, force=force, progress=progress)


def build_from_files(
    index_dir: Path,
    paths: Sequence[Path],
    src_lang: str,
    tgt_lang: str,
    *,
    columns: Columns | None = None,
    force: bool = False,
    progress: ReadProgress | None = None,
    seconds_to_wait: float = 0.0,
) -> tuple[Manifest, Report]:
    """`build` over the segments of memory files, and what became of their units. Raises FormatError
    where a file is unusable or no unit of all is kept; then nothing has changed."""
    reader = read_memories(paths, src_lang, tgt_lang, columns=columns, progress=progress)
    manifest = build(
        index_dir,
        _at_least_one(reader),
        src_lang,
        tgt_lang,
        force=force,
        seconds_to_wait=seconds_to_wait,
    )
    return manifest, reader.report


def build_elastic_from_files(
    address: ElasticAddress,
    paths: Sequence[Path],
    src_lang: str,
    tgt_lang: str,
    *,
    columns: Columns | None = None,
    force: bool = False,
    shards: int = 1,
    replicas: int = 0,
    progress: ReadProgress | None = None,
    sending: ReadProgress | None = None,
) -> tuple[ElasticManifest, Report]:
    """`build_elastic` over the segments of memory files, and what became of their units; errors as
    `build_from_files` and ServerError. `progress` is told of units read, then `sending` of segments
    that the server has taken."""
    from tmnmt.index.elastic.build import build_elastic

    reader = read_memories(paths, src_lang, tgt_lang, columns=columns, progress=progress)
    manifest = build_elastic(
        address,
        _at_least_one(reader),
        src_lang,
        tgt_lang,
        force=force,
        shards=shards,
        replicas=replicas,
        progress=sending,
    )
    return manifest, reader.report


def _at_least_one(reader: Reader) -> Iterator[Segment]:
    yield from reader
    report = reader.report
    if not report.kept:
        reasons = (
            ", ".join(f"{reason} {count:,}" for reason, count in report.skipped.items() if count)
            or "no units"
        )
        names = ", ".join(map(str, reader.paths))
        first = "; ".join(str(example) for reason in report.examples.values() for example in reason)
        counts = f"0 of {counted(report.read, 'unit')} kept ({reasons})" + (first and f": {first}")
        raise FormatError(f"{names}: nothing to index: {counts}")
