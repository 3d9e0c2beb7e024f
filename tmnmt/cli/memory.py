"""`tmnmt memory`: what lies in a memory, and keeping it whole. What changes its pairs is in
`memory_changes`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli import memory_changes
from tmnmt.cli.memory_changes import (
    INDEX,
    record,
)
from tmnmt.cli.options import no_stdout, with_options
from tmnmt.config.options import SegmentFilter
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.eval.faults import Fault
    from tmnmt.index.base import BuiltIndex
    from tmnmt.segments import Segment

FAULT = "x-fault"  # the property that says what is wrong with a pair

app = typer.Typer(
    name="memory", help="Look into a memory, correct it, move it.", no_args_is_help=True
)
app.command("add")(memory_changes.add)
app.command("edit")(memory_changes.edit)
app.command("delete")(with_options(memory_changes.delete))
app.command("dedupe")(with_options(memory_changes.dedupe))


@app.command("list")
@with_options
def list_segments(
    index: INDEX,
    segment_filter: SegmentFilter = SegmentFilter(),
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, max=sys.maxsize, help="At most so many.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One line of JSON a segment, with every field.")
    ] = False,
) -> None:
    """The segments, one a line in order of id: id, source, target, document, between tabs."""
    from json import dumps

    from tmnmt.index.back_ends import open_index
    from tmnmt.index.filter import filter_of

    with open_index(index) as memory:
        conditions = filter_of(segment_filter)
        for segment in islice(memory.segments(conditions), limit):
            if json:
                print(dumps(record(segment), ensure_ascii=False))
            else:
                print(
                    segment.id,
                    _flat(segment.src),
                    _flat(segment.tgt),
                    _flat(segment.document),
                    sep="\t",
                )


@app.command()
@with_options
def stats(
    index: INDEX,
    segment_filter: SegmentFilter = SegmentFilter(),
    json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """How many segments there are, of which documents, origins, users and dates. What is added and
    deleted again is no change, here and in compact."""
    from dataclasses import asdict
    from json import dumps

    from tmnmt.index.back_ends import open_index
    from tmnmt.index.filter import filter_of
    from tmnmt.index.stats import stats

    with open_index(index) as memory:
        statistics = asdict(stats(memory, filter_of(segment_filter)))
    if json:
        print(dumps(statistics, ensure_ascii=False))
        return
    for name, value in statistics.items():
        text = (
            ", ".join(f"{key or '-'} {count:,}" for key, count in value.items())
            if isinstance(value, dict)
            else value
        )
        print(f"{name.replace('_', ' ')}: {f'{text:,}' if isinstance(text, int) else text or '-'}")


@app.command()
@with_options
def export(
    index: INDEX,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help=".tmx or .tsv, also with .gz or .xz.", callback=no_stdout
        ),
    ],
    segment_filter: SegmentFilter = SegmentFilter(),
) -> None:
    """Write segments to a memory file that gives back all fields but the ids. An existing file is
    replaced."""
    from tmnmt.formats import check_writable, write_memory
    from tmnmt.index.back_ends import open_index
    from tmnmt.index.filter import filter_of
    from tmnmt.progress import Progress

    check_writable(output)
    with open_index(index) as memory, Progress("writing", "segments", len(memory)) as progress:
        losses = 0

        def convert() -> Iterator[Segment]:
            nonlocal losses
            for segment in memory.segments(filter_of(segment_filter)):
                losses += _lost_codes(segment)
                yield _to_the_second(segment)

        languages = memory.src_lang, memory.tgt_lang
        result = write_memory(output, convert(), *languages, progress=progress.advance)
    print(f"{output}: {quantity(result.segments, 'segment')}", file=sys.stderr)
    if result.cleaned:
        cleaned = quantity(result.cleaned, "text")
        print(
            f"{cleaned} cleaned: on one line, without characters that TMX cannot hold",
            file=sys.stderr,
        )
    if losses:
        had = f"{losses:,} of them had inline codes (tags, placeholders) in the file they came from"
        remedy = "they were read by a version that did not keep codes; read that file again"
        print(f"{had}; {remedy}", file=sys.stderr)


@app.command()
@with_options
def reverse(
    index: INDEX,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            help="Folder of the new index, or its address on a server.",
            callback=no_stdout,
        ),
    ],
    segment_filter: SegmentFilter = SegmentFilter(),
    force: Annotated[bool, typer.Option("--force", help="Replace an index that is there.")] = False,
) -> None:
    """Build an index for the other direction: source and target change places, all other fields
    stay."""
    from tmnmt.errors import UsageError
    from tmnmt.index.back_ends import open_index, same_place
    from tmnmt.index.filter import filter_of
    from tmnmt.index.from_files import build_at
    from tmnmt.progress import Progress

    if same_place(output, index):
        raise UsageError(f"{output}: the new index needs a place of its own")
    with open_index(index) as memory, Progress("indexing", "segments", len(memory)) as progress:
        languages = memory.tgt_lang, memory.src_lang
        segments = _reversed(memory.segments(filter_of(segment_filter)))
        manifest = build_at(output, segments, *languages, force=force, progress=progress.advance)
    print(
        f"{output}: {quantity(manifest.segments, 'segment')}, {' to '.join(languages)}",
        file=sys.stderr,
    )


@app.command()
def compact(index: INDEX) -> None:
    """Merge all changes into the index, so that searches are at their fastest. Searches go on
    meanwhile, in every process; additions wait, but on a server. Interrupted at any moment,
    everything is as it was before."""
    from tmnmt.index.back_ends import open_index
    from tmnmt.progress import Progress

    with open_index(index) as memory:
        added, corrected, deleted = memory.changes()
        event = memory.changes_since
        with Progress("compacting", "segments", len(memory)) as progress:
            memory.compact(progress.advance)
        segments = quantity(len(memory), "segment")
    summary = f"{added:,} added, {corrected:,} corrected, {deleted:,} deleted since {event}"
    print(f"{index}: {segments} ({summary})", file=sys.stderr)


@app.command()
def clean(
    index: INDEX,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Model folder that looks at every pair, too; takes longer."),
    ] = None,
    mark: Annotated[
        bool,
        typer.Option(
            "--mark", help=f"Give what is found the property {FAULT}; marks of before go."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON a fault.")] = False,
) -> None:
    """Find pairs that are wrong: targets left as their sources, letters read in a wrong encoding,
    other languages, targets of a neighbour, and sources with several targets. Nothing is deleted.

    Prints a line for every fault: kind, id, what, source, target, document, between tabs. With
    --mark the pairs can be listed, exported and deleted by their property:
    `tmnmt memory delete --property x-fault=shifted`."""
    from json import dumps

    from tmnmt.eval.faults import KINDS, PASSES, find_faults
    from tmnmt.index.back_ends import open_index
    from tmnmt.progress import Progress

    loaded = None
    if model is not None:
        from tmnmt.models.folder import load_model

        loaded = load_model(model)
    with open_index(index) as memory:
        total = (PASSES + (loaded is not None)) * len(memory)
        with Progress("looking through", "segments", total) as progress:
            faults = find_faults(memory, loaded, progress.advance)
        if mark:
            _mark(memory, faults)
        size = len(memory)
    for fault in faults:
        segment = fault.segment
        if json:
            print(
                dumps(
                    {"kind": fault.kind, "what": fault.detail, **record(segment)},
                    ensure_ascii=False,
                )
            )
        else:
            texts = (fault.detail, segment.src, segment.tgt, segment.document)
            print(fault.kind, segment.id, *map(_flat, texts), sep="\t")
    for kind, description in KINDS.items():
        if count := sum(fault.kind == kind for fault in faults):
            print(f"{kind}: {quantity(count, 'segment')}: {description}", file=sys.stderr)
    marked = len({fault.segment.id for fault in faults})
    outcome = (
        f"marked with the property {FAULT}" if mark else "nothing was changed; --mark marks them"
    )
    print(
        f"{index}: {quantity(marked, 'segment')} of {size:,} to look at; {outcome}", file=sys.stderr
    )


def _mark(index: BuiltIndex, faults: list[Fault]) -> None:
    """Gives every segment a property for each of its faults, and takes away those of before."""
    from dataclasses import replace

    kinds: dict[int, list[str]] = {}
    for fault in faults:
        kinds.setdefault(fault.segment.id, []).append(fault.kind)
    previous_ids = {
        s.id for s in index.segments() if any(name == FAULT for name, _ in s.properties)
    }

    def marked(segment: Segment) -> Segment:
        rest = tuple(pair for pair in segment.properties if pair[0] != FAULT)
        marks = tuple((FAULT, kind) for kind in kinds.get(segment.id, ()))
        return replace(segment, properties=rest + marks)

    if ids := sorted(previous_ids | kinds.keys()):
        index.edit(ids, marked)


@app.command()
def verify(index: INDEX) -> None:
    """Read everything and compare it with its checksums; on a server, with what it is found by. The
    first damage is an error, with exit code 1."""
    from tmnmt.index.back_ends import open_index
    from tmnmt.keys.derived import verify as verify_with_keys

    with open_index(index) as memory:
        segments = quantity(verify_with_keys(memory), "segment")
    print(f"{index}: {segments}, everything as it was written", file=sys.stderr)


def _flat(text: str) -> str:
    return " ".join(text.split()) if any(sign in text for sign in "\t\n\r") else text


def _lost_codes(segment: Segment) -> bool:
    from tmnmt.formats.tmx_writer import CODES_PROPERTY

    codes = segment.src_codes or segment.tgt_codes
    return not codes and any(name == CODES_PROPERTY for name, _ in segment.properties)


def _reversed(segments: Iterator[Segment]) -> Iterator[Segment]:
    from dataclasses import replace

    return (
        replace(
            segment,
            src=segment.tgt,
            tgt=segment.src,
            src_codes=segment.tgt_codes,
            tgt_codes=segment.src_codes,
        )
        for segment in segments
    )


def _to_the_second(segment: Segment) -> Segment:
    """With dates as the formats write them: a pair confirmed while translating has fractions of a
    second."""
    from dataclasses import replace

    from tmnmt.formats.dates import iso_utc

    created, changed = (
        (date and iso_utc(date)) or date for date in (segment.created, segment.changed)
    )
    return replace(segment, created=created, changed=changed)
