"""Memories by the names under which they are served, and what each caller sees of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tmnmt.errors import UsageError
from tmnmt.index.back_ends import is_absent, is_index, local_path, open_index, same_place
from tmnmt.index.base import UnknownIdError, WritableIndex, has_folder
from tmnmt.index.concordance import Occurrence, Phrase
from tmnmt.index.match_value import Query, Trust, most_worth
from tmnmt.index.named_memories import open_to_write, parse_memory
from tmnmt.index.opening import open_memory
from tmnmt.index.pairs import concordance_pairs, distinct, search_by_worth
from tmnmt.progress import ReadProgress
from tmnmt.segments import Match, Segment
from tmnmt.serve.http_error import Refused, unknown
from tmnmt.serve.keys import NAME, NAMES, Caller
from tmnmt.serve.languages import Language, distance, language

log = logging.getLogger("tmnmt.serve")


@dataclass(frozen=True)
class Place:
    """A memory as a command line names it: [NAME=]PLACE[:SETTINGS]."""

    name: str
    place: str
    trust: Trust
    readonly: bool


@dataclass(frozen=True)
class Memory:
    """A memory that is served. `writable`: the index itself where it is written to. `origin`: what
    it was opened from; an equal origin would give the same again."""

    name: str
    index: WritableIndex
    trust: Trust
    writable: WritableIndex | None = None
    origin: Hashable = None

    @property
    def languages(self) -> tuple[Language, Language]:
        return language(self.index.src_lang), language(self.index.tgt_lang)

    def serves(self, languages: tuple[Language, Language]) -> bool:
        """Whether the memory is of a pair of languages.

        languages: the pair."""
        pairs = zip(languages, self.languages, strict=True)
        return all(distance(requested, served) is not None for requested, served in pairs)


def place_of(argument: str) -> Place:
    """A memory as a command line names it; without a name, it is called by the last part of the
    path.

    argument: as in [NAME=]PLACE[:SETTINGS].

    Raises UsageError for what cannot be a name."""
    label, sign, location = argument.partition("=")
    is_named = bool(sign) and NAME.fullmatch(label) is not None and not Path(argument).exists()
    memory = parse_memory(location if is_named else argument)
    place = str(memory.place)
    name = label if is_named else place.rstrip("/").rpartition("/")[2]
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{argument}: {name!r} cannot be the name of a memory; write NAME={place}, with {NAMES}"
        )
    return Place(name, place, memory.trust, memory.readonly)


def open_memories(
    readable: Iterable[str],
    writable: Iterable[str],
    pairs: Sequence[tuple[str, str]],
    progress: ReadProgress | None = None,
    previous: Iterable[Memory] = (),
) -> list[Memory]:
    """Opens the memories of the options --memory and --write-to.

    readable: the values of --memory.
    writable: the values of --write-to.
    pairs: the languages of the models.
    progress: is told of units that are read; None tells nobody.
    previous: memories that are open already; what would be opened again is taken from there.

    Raises MemoryIndexError, FormatError and UsageError for what cannot be opened."""
    to_read, to_write = list(map(place_of, readable)), list(map(place_of, writable))
    _check_places([*to_read, *to_write], to_write)
    open_indexes = {memory.origin: memory.index for memory in previous}
    memories = list[Memory]()
    try:
        for place in [*to_read, *to_write]:
            is_written = place in to_write
            origin = _origin(place, is_written, pairs)
            index = open_indexes.get(origin)
            if index is None:
                log.info("opening the memory %s", place.name)
                index = (
                    _open_writable(place, pairs) if is_written else _read(place, pairs, progress)
                )
            writable_index = index if is_written else None
            memories.append(Memory(place.name, index, place.trust, writable_index, origin))
    except BaseException:
        for memory in memories:
            if memory.origin not in open_indexes:
                close(memory)
        raise
    return memories


def close(memory: Memory) -> None:
    """Closes the index of a memory, where it is one that can be closed.

    memory: the memory."""
    if (end := getattr(memory.index, "close", None)) is not None:
        end()


def _check_places(places: Sequence[Place], to_write: Sequence[Place]) -> None:
    """Raises UsageError for two of one name or of one place, and for one that is readonly and to be
    written to."""
    for place in to_write:
        if place.readonly:
            raise UsageError(f"{place.place} is readonly, and it is to be written to")
    for number, place in enumerate(places):
        for other in places[:number]:
            if other.name == place.name:
                raise UsageError(f"two memories are called {place.name}; write NAME=PLACE")
            if same_place(other.place, place.place):
                raise UsageError(f"{place.place} is served twice; name it once")


def _origin(place: Place, is_written: bool, pairs: Sequence[tuple[str, str]]) -> Hashable:
    """What a memory is opened from. An index follows what is written to it; a file is another one
    once it has changed."""
    folder = local_path(place.place)
    if is_index(place.place) or is_written or folder is None:
        return (str(folder.resolve()) if folder is not None else place.place), is_written
    status = folder.stat() if folder.exists() else None
    version = (status.st_ino, status.st_size, status.st_mtime_ns) if status is not None else None
    return str(folder.resolve()), tuple(pairs), version


def languages_of_indexes(arguments: Iterable[str]) -> list[tuple[str, str]]:
    """The pairs of languages of those memories that are built indexes.

    arguments: the memories as a command line names them.

    Raises MemoryIndexError for one that cannot be opened."""
    pairs = list[tuple[str, str]]()
    for place in (place_of(argument).place for argument in arguments):
        if is_index(place) and not is_absent(place):
            with open_index(place) as index:
                pairs.append((index.src_lang, index.tgt_lang))
    return list(dict.fromkeys(pairs))


def _read(
    place: Place, pairs: Sequence[tuple[str, str]], progress: ReadProgress | None
) -> WritableIndex:
    if is_index(place.place):
        return open_index(place.place)
    if len(pairs) != 1:
        raise UsageError(
            f"{place.place}: is no index, and which languages of the file are wanted is not clear; "
            "tmnmt build-index makes an index of it"
        )
    return open_memory(place.place, *pairs[0], progress)


def _open_writable(place: Place, pairs: Sequence[tuple[str, str]]) -> WritableIndex:
    is_present = not is_absent(place.place)
    if not is_present and len(pairs) != 1:
        raise UsageError(
            f"{place.place}: is not there, and in which languages it is to be made is not clear; "
            "tmnmt build-index makes an empty one of an empty file"
        )
    languages = pairs[0] if not is_present else ("", "")
    return open_to_write(place.place, [], [], *languages)


class Memories:
    """All that is served."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        """memories: the memories that are served."""
        self._memories = {memory.name: memory for memory in memories}

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories.values())

    @property
    def names(self) -> dict[str, str]:
        """The names of all memories, by the places where they lie."""
        return {memory.index.place: memory.name for memory in self}

    def visible(self, caller: Caller) -> list[Memory]:
        """The memories that a caller sees.

        caller: the caller."""
        return [memory for name, memory in self._memories.items() if caller.sees(name)]

    def get(self, name: str, caller: Caller) -> Memory:
        """A memory.

        name: its name.
        caller: who asks.

        Raises Refused for a memory that is not there, or not for this caller: which of both is not
        told."""
        memory = self._memories.get(name)
        if memory is None or not caller.sees(name):
            raise unknown("there is no such memory")
        return memory

    def select(
        self, names: Sequence[str] | None, languages: tuple[Language, Language], caller: Caller
    ) -> list[Memory]:
        """The memories of a pair of languages that a caller sees.

        names: the names of those that are wanted; None takes all.
        languages: the pair of languages.
        caller: who asks.

        Raises Refused for a name that is not there, or is of other languages."""
        if names is None:
            return [memory for memory in self.visible(caller) if memory.serves(languages)]
        memories = [self.get(name, caller) for name in names]
        if not all(memory.serves(languages) for memory in memories):
            raise Refused(400, "wrong_language", "a memory is of other languages")
        return memories

    def writable(
        self, name: str | None, languages: tuple[Language, Language], caller: Caller
    ) -> Memory:
        """The memory that is written to.

        name: its name; None takes the first of these languages that the caller sees.
        languages: the pair of languages.
        caller: who asks.

        Raises Refused where there is none."""
        caller.check("write")
        if name is None:
            memories = [m for m in self.select(None, languages, caller) if m.writable is not None]
        else:
            memories = self.select([name], languages, caller)
        if not memories or memories[0].writable is None:
            raise Refused(
                403,
                "read_only",
                "there is no memory of these languages to write to"
                if name is None
                else "this memory is not written to",
            )
        return memories[0]


def matches_of(
    memories: Sequence[Memory], texts: Sequence[str], k: int, threshold: float
) -> list[list[Match]]:
    """For every text its pairs that are worth most, of several memories.

    memories: the memories.
    texts: the texts.
    k: how many pairs are given for a text at most.
    threshold: the smallest fuzzy score, from 0 to 1."""
    queries = list(map(Query, texts))
    answers = [
        search_by_worth(memory.index, queries, k, threshold, trust=memory.trust)
        for memory in memories
    ]
    results = list[list[Match]]()
    for row in range(len(texts)):
        matches = [
            replace(match, memory=memory.index.place)
            for memory, answer in zip(memories, answers, strict=True)
            for match in answer[row]
        ]
        results.append(distinct(most_worth(matches, k * len(answers)))[:k])
    return results


def standing(memory: Memory, phrase: Phrase, k: int) -> list[Occurrence]:
    """The newest pairs of a memory that have a phrase.

    memory: the memory.
    phrase: the phrase.
    k: how many pairs are given at most."""
    return concordance_pairs(memory.index, phrase, k)


def added(memory: Memory, segments: Sequence[Segment]) -> list[int]:
    """Adds segments to a memory for good, and returns their ids there.

    memory: the memory.
    segments: the segments.

    Raises Refused where the memory is not written to."""
    return _writable(memory).add(segments)


def segment(memory: Memory, id: int) -> Segment:
    """A segment of a memory.

    memory: the memory.
    id: the id of the segment.

    Raises Refused where there is none of this id."""
    try:
        return memory.index.get([id])[0]
    except UnknownIdError as error:
        raise unknown("there is no such segment") from error


def edited(memory: Memory, id: int, change: Callable[[Segment], Segment]) -> Segment:
    """Changes a segment of a memory, and returns it as it is from now on.

    memory: the memory.
    id: the id of the segment.
    change: gives the new segment for the old one.

    Raises Refused where there is no such segment, or the memory is not written to."""
    try:
        return _writable(memory).edit([id], change)[0]
    except UnknownIdError as error:
        raise unknown("there is no such segment") from error


def deleted(memory: Memory, id: int) -> None:
    """Deletes a segment of a memory.

    memory: the memory.
    id: the id of the segment.

    Raises Refused where there is no such segment, or the memory is not written to."""
    try:
        _writable(memory).delete([id])
    except UnknownIdError as error:
        raise unknown("there is no such segment") from error


def _writable(memory: Memory) -> WritableIndex:
    if memory.writable is None:
        raise Refused(403, "read_only", "this memory is not written to")
    return memory.writable


def count(memory: Memory) -> int | None:
    """How many segments a memory holds; None where that is not known.

    memory: the memory."""
    index = memory.index
    return len(index) if has_folder(index) and local_path(index.place) else None
