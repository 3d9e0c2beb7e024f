"""`tmnmt memory add|edit|delete|dedupe`. On return a change is on disk and every process' next
search sees it."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tmnmt.cli.options import readable
from tmnmt.config.options import SegmentFilter
from tmnmt.errors import UsageError
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.index.base import BuiltIndex
    from tmnmt.segments import Segment

INDEX = Annotated[
    str, typer.Option("--index", help="Folder of the index, or its address on a server.")
]
MEMORIES = Annotated[
    list[Path] | None,
    typer.Argument(metavar="MEMORY", help="Memory files, as for build-index."),
]
IDS = Annotated[
    list[int] | None, typer.Argument(metavar="ID", help="Ids, as search and list show them.")
]
SRC = Annotated[str | None, typer.Option(help="The source text.", callback=readable)]
TGT = Annotated[str | None, typer.Option(help="Its translation.", callback=readable)]
FIELD = Annotated[str | None, typer.Option(help="What this field says from now on.")]
ADDED = Annotated[
    str | None, typer.Option(help="What this field says in every pair that is added.")
]
PROPERTIES = Annotated[
    list[str] | None, typer.Option("--property", help="NAME=VALUE; give it again for another.")
]


def pairs(properties: list[str]) -> tuple[tuple[str, str], ...]:
    """Properties from NAME=VALUE each. Raises UsageError."""
    for text in properties:
        if "=" not in text:
            raise UsageError(f"property {text!r} has no value; write NAME=VALUE")
        if text.startswith("="):
            raise UsageError(
                f"property {text!r} has no name; write NAME=VALUE, of which VALUE may be empty"
            )
    return tuple((name, value) for name, _, value in (text.partition("=") for text in properties))


def record(segment: Segment) -> dict[str, Any]:
    """Every field of a segment for JSON; properties as a list of pairs."""
    fields = asdict(segment)
    return {"id": fields.pop("id"), **fields}


def add(
    index: INDEX,
    memories: MEMORIES = None,
    src: SRC = None,
    tgt: TGT = None,
    document: ADDED = None,
    origin: ADDED = None,
    user: ADDED = None,
    property: PROPERTIES = None,
) -> None:
    """Add memory files, or one pair by --src and --tgt, whose id is printed. All of it is added, or
    nothing; where a server goes away meanwhile, as much as the error says."""
    from tmnmt.errors import UsageError
    from tmnmt.index.back_ends import open_index
    from tmnmt.segments import Segment

    if bool(memories) == (src is not None or tgt is not None) or (src is None) != (tgt is None):
        raise UsageError("give memory files, or one pair by --src and --tgt")
    fields = _present_fields(document=document, origin=origin, user=user)
    with open_index(index) as memory:
        if memories:
            _add_files(index, memory, memories, fields, property)
        else:
            (number,) = memory.add(
                [_changed(Segment("", ""), _present_fields(src=src, tgt=tgt) | fields, property)]
            )
            print(number)


def edit(
    index: INDEX,
    ids: Annotated[
        list[int], typer.Argument(metavar="ID", help="Ids, as search and list show them.")
    ],
    src: SRC = None,
    tgt: TGT = None,
    document: FIELD = None,
    origin: FIELD = None,
    user: FIELD = None,
    property: PROPERTIES = None,
    no_property: Annotated[
        list[str] | None,
        typer.Option(
            "--no-property",
            metavar="NAME",
            help="Remove properties of this name; can be given again.",
        ),
    ] = None,
) -> None:
    """Correct fields of segments; the others stay. --property replaces all properties. A text that
    is changed is shown as it was and as it is now."""
    from tmnmt.errors import UsageError
    from tmnmt.index.back_ends import open_index
    from tmnmt.visible import visible

    values = _present_fields(src=src, tgt=tgt, document=document, origin=origin, user=user)
    if property and no_property:
        raise UsageError(
            "--property replaces all properties, so --no-property has none to remove; give one "
            "of them"
        )
    if not values and not property and not no_property:
        fields = "--src, --tgt, --document, --origin, --user, --property or --no-property"
        raise UsageError(f"nothing to correct; give {fields}")
    former: dict[int, Segment] = {}

    def changed(segment: Segment) -> Segment:
        former[segment.id] = segment
        return _changed(_remove_properties(segment, no_property or []), values, property)

    with open_index(index) as memory:
        edited = memory.edit(ids, changed)
    for segment in edited:
        old = former[segment.id]
        for old_text, now in ((old.src, segment.src), (old.tgt, segment.tgt)):
            if old_text != now:
                print(f"#{segment.id}  - {visible(old_text)}\n#{segment.id}  + {visible(now)}")
    print(f"{index}: {quantity(len(edited), 'segment')} corrected", file=sys.stderr)


def delete(
    index: INDEX,
    ids: IDS = None,
    segment_filter: SegmentFilter = SegmentFilter(),
) -> None:
    """Delete segments by their ids, or all that the options choose. `list` with the same options
    shows them first."""
    from tmnmt.errors import UsageError
    from tmnmt.index.back_ends import open_index
    from tmnmt.index.filter import filter_of

    conditions = filter_of(segment_filter)
    if bool(ids) == bool(conditions):
        raise UsageError("give ids, or options that choose segments")
    with open_index(index) as memory:
        if ids:
            memory.delete(ids)
        else:
            ids = memory.delete_chosen(
                lambda segments: [s.id for s in segments if conditions.keeps(s)]
            )
    print(f"{index}: {quantity(len(set(ids)), 'segment')} deleted", file=sys.stderr)


def dedupe(
    index: INDEX,
    by: Annotated[
        Literal["pair", "source"],
        typer.Option(help="Equal are segments with the same source and target, or source."),
    ] = "pair",
    within_documents: Annotated[bool, typer.Option(help="Keep one in every document.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the ids, delete nothing.")
    ] = False,
    segment_filter: SegmentFilter = SegmentFilter(),
) -> None:
    """Delete all but the newest of equal segments, compared in words, numbers and punctuation;
    where options choose segments, only among those."""
    from tmnmt.index.back_ends import open_index
    from tmnmt.index.dedupe import duplicates
    from tmnmt.index.filter import filter_of

    conditions = filter_of(segment_filter)
    with open_index(index) as memory:
        if dry_run:
            for number in duplicates(memory.segments(conditions), by, within_documents):
                print(number)
            return
        ids = memory.delete_chosen(
            lambda segments: duplicates(filter(conditions.keeps, segments), by, within_documents)
        )
        print(
            f"{index}: {quantity(len(ids), 'duplicate')} deleted, "
            f"{quantity(len(memory), 'segment')} left",
            file=sys.stderr,
        )


def _add_files(
    place: str,
    index: BuiltIndex,
    memories: list[Path],
    fields: dict[str, Any],
    property: list[str] | None,
) -> None:
    from tmnmt.files.as_memory import read_memories
    from tmnmt.progress import Progress

    with Progress("reading", "units") as progress:
        reader = read_memories(memories, index.src_lang, index.tgt_lang, progress=progress.advance)
        segments = [_changed(segment, fields, property) for segment in reader]
    print(reader.report, file=sys.stderr)
    index.add(segments)
    print(
        f"{place}: {quantity(len(segments), 'segment')} added, {len(index):,} in all",
        file=sys.stderr,
    )


def _present_fields(**fields: str | None) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _remove_properties(segment: Segment, names: list[str]) -> Segment:

    return replace(
        segment, properties=tuple(pair for pair in segment.properties if pair[0] not in names)
    )


def _changed(segment: Segment, fields: dict[str, Any], property: list[str] | None) -> Segment:
    """The segment with the given fields, texts as every reader cleans them. Raises UsageError for
    what no reader would take: a blank side, one that is too long, a name with control
    characters."""

    from tmnmt.errors import UsageError
    from tmnmt.formats.clean import check_length, clean, is_name

    cleaned = {side: clean(fields[side])[0] for side in ("src", "tgt") if side in fields}
    if not all(cleaned.values()):
        raise UsageError("a pair needs a text on both sides")
    for name, value in fields.items():
        if name in cleaned:
            check_length(f"--{name}", cleaned[name])
        elif not is_name(value):
            raise UsageError(
                f"--{name} {value!r}: no tabs, line ends or other control characters are allowed"
            )
    changes: dict[str, Any] = fields | cleaned
    if property is not None:
        changes["properties"] = pairs(property)
    return replace(segment, **changes)
