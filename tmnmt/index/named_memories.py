"""Translation memories as users name them: paths, addresses and open indexes, and the one that is
written to."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

from tmnmt.config.option import options_of
from tmnmt.config.options import SegmentFilter
from tmnmt.errors import UsageError
from tmnmt.index.back_ends import is_absent, is_index, local_path, open_index, same_place
from tmnmt.index.base import BuiltIndex, Index, WritableIndex, check_languages
from tmnmt.index.embedded.build import IndexExistsError, build
from tmnmt.index.filter import NO_FILTER, Filter, filter_of
from tmnmt.index.match_value import IN_FULL, Trust
from tmnmt.index.opening import open_memory
from tmnmt.index.watched import WatchedMemory, watch
from tmnmt.progress import ReadProgress

log = logging.getLogger(__name__)

Named = str | Path | Index  # the path or the address of a memory, or an open index
SETTINGS = (
    "penalty=POINTS, weight=0 to 1, readonly, watch, document=NAME, origin=NAME, user=NAME, "
    "since=DATE, before=DATE, property=NAME=VALUE"
)
SECONDS_TO_WAIT = 60.0  # for another process that makes the same memory
_FLAGS = ("readonly", "watch")
_CONDITIONS = [option.name for option in options_of(SegmentFilter)]


@dataclass(frozen=True)
class NamedMemory:
    """A memory as it is named, with the settings behind the name, as in
    "a.tmx:penalty=5,weight=0.9,readonly".

    place: the path or the address, or the open index.
    trust: how far matches are trusted. `penalty` is how many points are taken off them, and
    `weight` is what their worth is multiplied by.
    readonly: whether nothing is ever written to it.
    watch: whether a file that another program rewrites is read again (`tmnmt.index.watched`).
    segment_filter: which of its segments are found at all, by the names that `SegmentFilter` has,
    as in "a.tmx:user=jane"."""

    place: Named
    trust: Trust = IN_FULL
    readonly: bool = False
    watch: bool = False
    segment_filter: SegmentFilter = SegmentFilter()


def parse_memory(memory: Named) -> NamedMemory:
    """Reads the name of a memory. What is behind the last colon counts as settings if it looks like
    them, and if nothing has the whole as its name.

    memory: the name, or an open index.

    Raises UsageError for a setting that does not exist, or that has a wrong value."""
    if not isinstance(memory, str) or os.path.lexists(memory):
        return NamedMemory(memory)
    place, _, after_colon = memory.rpartition(":")
    settings = [part.strip().partition("=") for part in after_colon.split(",")]
    names = [name for name, _, _ in settings]
    looks_so = (
        "=" in after_colon or any(name in names for name in _FLAGS)
    ) and "/" not in after_colon
    if not place or not looks_so or not all(name.isalpha() for name in names if name):
        return NamedMemory(memory)
    penalty = 0
    weight = 1.0
    flags = set[str]()
    segment_filter = SegmentFilter()
    for name, sign, value in settings:
        label = f"{memory}: {name}{sign}{value}"
        if name == "penalty":
            penalty = int(_number(value, label, 100, int))
        elif name == "weight":
            weight = _number(value, label, 1, float)
        elif name in _FLAGS and not sign:
            flags.add(name)
        elif name in _CONDITIONS and sign:
            segment_filter = replace(segment_filter, **{name: value})
            filter_of(segment_filter)
        else:
            raise UsageError(f"{label} is no setting of a memory; allowed: {SETTINGS}")
    trust = Trust(penalty, weight)
    return NamedMemory(place, trust, "readonly" in flags, "watch" in flags, segment_filter)


def _number(value: str, label: str, maximum: int, kind: type[int] | type[float]) -> float:
    allowed = f"{'a whole number' if kind is int else 'a number'}, 0 to {maximum}"
    try:
        number = kind(value)
    except ValueError:
        number = -1
    if not 0 <= number <= maximum:
        raise UsageError(f"{label} is wrong; it must be {allowed}")
    return number


def check_memory(memory: object) -> None:
    """Raises UsageError for what is no list of memories.

    memory: what a caller gave. It should be a list of paths, addresses and open indexes."""
    if isinstance(memory, str | Path):
        raise UsageError(
            f"memory is {str(memory)!r}; a list of memories is wanted, as in [{str(memory)!r}]"
        )
    if not isinstance(memory, Sequence) or isinstance(memory, bytes):
        raise UsageError(
            f"a list of memories (paths, addresses, open indexes) is wanted, not {memory!r}"
        )
    for entry in memory:
        if not isinstance(entry, str | Path) and not hasattr(entry, "search"):
            raise UsageError(f"a memory is a path, an address or an open index, not {entry!r}")


def open_memories(
    memories: Iterable[Named],
    src_lang: str,
    tgt_lang: str,
    progress: ReadProgress | None = None,
    segment_filter: SegmentFilter = SegmentFilter(),
) -> list[Index]:
    """Opens memories. Memory files are indexed for this.

    memories: their names.
    src_lang: the source language.
    tgt_lang: the target language.
    progress: a function that is called while a memory file is indexed, with the number of units
    read since the last call and the share of all bytes read, from 0 to 1.
    segment_filter: which of their segments are found. What is set behind a name goes before it.

    Raises MemoryIndexError where an index has other languages."""
    indexes: list[Index] = []
    for named_memory in map(parse_memory, memories):
        if isinstance(named_memory.place, str | Path):
            open_it = watch if named_memory.watch else open_memory
            memory: Index = open_it(named_memory.place, src_lang, tgt_lang, progress)
        else:
            memory = named_memory.place
            if memory.src_lang and memory.tgt_lang:
                check_languages("a memory", (memory.src_lang, memory.tgt_lang), src_lang, tgt_lang)
        conditions = {
            name: value
            for name, value in asdict(named_memory.segment_filter).items()
            if value is not None
        }
        indexes.append(_restricted(memory, filter_of(replace(segment_filter, **conditions))))
    return indexes


def to_be_watched(memory: str) -> str:
    """The name with the setting `watch`. The name of a built index stays as it is.

    memory: the name."""
    named_memory = parse_memory(memory)
    place = str(named_memory.place)
    if named_memory.watch or is_index(place):
        return memory
    return f"{memory}{':' if place == memory else ','}watch"


def _restricted(index: Index, conditions: Filter) -> Index:
    """The index, of which only these segments are found. Raises UsageError for an index that cannot
    be restricted."""
    if not conditions:
        return index
    if not hasattr(index, "restricted_to"):
        raise UsageError("a memory that is no built index cannot be restricted to some segments")
    return cast(WritableIndex, index).restricted_to(conditions)


def open_to_write(
    destination: Named,
    memories: Sequence[Named],
    indexes: Sequence[Index],
    src_lang: str,
    tgt_lang: str,
) -> WritableIndex:
    """Opens the index that is written to. It is one of the open ones where it is the same. Where
    the folder is not there yet, or is empty, an empty index is made. Of several processes that do
    so at once, one makes it and the others open it.

    destination: the name of the index.
    memories: the names of the memories that are read.
    indexes: the open indexes of these.
    src_lang: the source language.
    tgt_lang: the target language.

    Raises UsageError for what cannot be written to."""
    for memory, index in zip(map(parse_memory, memories), indexes, strict=True):
        if _is_identical(destination, memory.place):
            if getattr(index, "conditions", NO_FILTER):
                raise UsageError(
                    f"{memory.place}: what is confirmed goes to it, so all of its segments are to "
                    "be found; leave out the filter, or write to another"
                )
            if isinstance(index, WatchedMemory):
                raise UsageError(f"{memory.place} is watched, so it cannot be written to")
            if memory.readonly:
                raise UsageError(f"{memory.place} is readonly, and what is confirmed goes to it")
            return _writable(index, destination)
    if not isinstance(destination, str | Path):
        return _writable(destination, destination)
    if (folder := local_path(destination)) is not None and folder.exists() and not folder.is_dir():
        raise UsageError(
            f"{destination}: is a file, and what is confirmed is written to a built index; name a "
            "folder"
        )
    if is_absent(destination):
        _make(Path(destination), src_lang, tgt_lang)
    return _writable(open_index(destination, src_lang, tgt_lang), destination)


def _make(folder: Path, src_lang: str, tgt_lang: str) -> None:
    """An empty index in the folder, made here or by another process in the meantime."""
    try:
        build(folder, [], src_lang, tgt_lang, seconds_to_wait=SECONDS_TO_WAIT)
        log.info("%s: a new memory", folder)
    except IndexExistsError:
        log.info("%s: another process has made it just now", folder)


def _is_identical(first: Named, second: Named) -> bool:
    if isinstance(first, str | Path) and isinstance(second, str | Path):
        return same_place(str(first), str(second))
    return first is second


def _writable(index: Index, name: Named) -> WritableIndex:
    """The index itself where it takes additions."""
    if not hasattr(index, "check_writable"):
        raise UsageError(f"{name}: takes no additions; name a built index")
    writable = cast(BuiltIndex, index)
    writable.check_writable()
    return writable
