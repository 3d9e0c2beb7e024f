"""The embedded index: immutable postings and store, what was changed since, and one writer at a
time."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self, TypeVar

from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.grouped import Grouped
from tmnmt.index.base import (
    FolderIndex,
    IndexAnswer,
    IndexQuery,
    accept_always,
    check_languages,
    check_queries,
    check_sources,
    corrected,
    dated,
)
from tmnmt.index.concordance import Occurrence, Phrase, check_concordance, occurrences
from tmnmt.index.embedded.answer import LatestAnswer, answers_of, answers_of_latest
from tmnmt.index.embedded.build import in_runs, remove_leftovers, unfinished, write_generation
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.generation import Generation
from tmnmt.index.embedded.journal import Change, encoded
from tmnmt.index.embedded.lock import writing
from tmnmt.index.embedded.manifest import (
    FORMAT,
    MANIFEST_FILE,
    Manifest,
    manifest_version,
    read_manifest,
)
from tmnmt.index.embedded.part import Part, covering
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.embedded.verify import verify
from tmnmt.index.filter import NO_FILTER, Filter
from tmnmt.index.same_skeleton import scored
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

SECONDS_TO_WAIT = 5.0  # for another process' change; a build takes longer and is reported

S = TypeVar("S")
T = TypeVar("T")


class _Changes:
    """Changes that are put on disk together, by `put_on_disk`. `writing`: holds the right to write
    until it is closed."""

    def __init__(
        self, generation: Generation, writing: ExitStack, put_on_disk: Callable[[bytes], None]
    ) -> None:
        self.generation, self.writing, self._put_on_disk = generation, writing, put_on_disk
        self._bodies = list[bytes]()
        self._last_id = generation.last_id

    def make(self, changes: Sequence[Change]) -> None:
        """Raises DataError for what is no Unicode text; then nothing is changed."""
        if changes:
            self._bodies.append(encoded(changes))

    def flush(self) -> None:
        """All that was changed is on disk, and in the generation. Raises what `put_on_disk`
        raises."""
        self._put_on_disk(b"".join(self._bodies))
        self._bodies.clear()

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Their ids. Raises DataError for what is no Unicode text; then nothing is added."""
        numbers = range(self._last_id + 1, self._last_id + 1 + len(segments))
        self.make(
            [
                (number, replace(segment, id=number))
                for number, segment in zip(numbers, segments, strict=True)
            ]
        )
        self._last_id += len(segments)
        return list(numbers)


class MemoryIndex(FolderIndex):
    """An index folder, open for searches and changes. Any thread may use it. Close it, or use
    `with`.

    Every call sees what any process had changed, compacted or built anew by the time it began.
    `threads` says how many threads share the queries of a batch, or the parts of a large index for
    a single one, with the same answers; None takes one for every core that this process may
    use."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        """path: the folder of the index.
        manifest: the manifest that it has now."""
        self.path = path
        self.src_lang, self.tgt_lang = manifest.src_lang, manifest.tgt_lang
        self._lock = threading.RLock()
        self._manifest_path = str(path / MANIFEST_FILE)
        self._version = (0, 0, 0)
        self.conditions = NO_FILTER
        self.threads: int | None = None
        self._now = Generation(manifest, path)
        self._changes = Grouped[_Changes]()

    @classmethod
    def open(
        cls, path: Path, src_lang: str | None = None, tgt_lang: str | None = None
    ) -> MemoryIndex:
        """Opens the index in a folder. Its parts are mapped, not read.

        path: the folder.
        src_lang: the source language that it must have; None takes any.
        tgt_lang: the target language that it must have; None takes any.

        Raises MemoryIndexError where there is no index, or half of one, or where it is damaged, of
        another format or of other languages."""
        path = Path(path)
        manifest = read_manifest(path)
        check_languages(str(path), (manifest.src_lang, manifest.tgt_lang), src_lang, tgt_lang)
        try:
            return cls(path, manifest)
        except (MemoryIndexError, OSError):
            latest = read_manifest(path)
            if latest.generation == manifest.generation:
                raise
            return cls(path, latest)  # replaced while it was being opened

    changes_since = "the last time"

    def check_writable(self) -> None:
        """Raises UsageError where the folder takes no files."""
        if not os.access(self.path, os.W_OK):
            raise UsageError(f"{self.path}: cannot be written to")

    @property
    def folder(self) -> Path:
        return self.path

    @property
    def place(self) -> str:
        """The folder from the root, links followed."""
        return str(self.path.resolve())

    @property
    def manifest(self) -> Manifest:
        """What is known of the generation that answers."""
        return self._now.manifest

    def restricted_to(self, conditions: Filter) -> Self:
        view = copy.copy(self)
        view.conditions = conditions
        return view

    def look_up(
        self, queries: Sequence[IndexQuery], exclude_sources: bool = False
    ) -> list[IndexAnswer]:
        """The answer equals that of scoring every segment, and includes what any process has
        added."""
        check_queries(queries)
        prepared = [*dict.fromkeys(map(PreparedQuery, queries))]

        def of_latest(delta: Delta) -> list[LatestAnswer]:
            return answers_of_latest(delta, prepared, self.conditions.keeps, exclude_sources)

        def of_all(parts: list[Part], latest: list[LatestAnswer]) -> list[IndexAnswer]:
            return answers_of(parts, latest, prepared, exclude_sources, self.threads or _cores())

        answers = self._of_one_moment(of_latest, of_all)
        if len(prepared) == len(queries):
            return answers
        by_query = {query.query: answer for query, answer in zip(prepared, answers, strict=True)}
        return [
            IndexAnswer([*answer.similar], [*answer.same_source], [*answer.same_skeleton])
            for answer in map(by_query.__getitem__, queries)
        ]

    def covering(
        self, text: str, k: int, accepts: Callable[[int], bool] = accept_always
    ) -> list[Match]:
        """What was added since the index was built is looked at once there is much of it, or after
        a compaction (`embedded.fragments`)."""
        words = match_tokens(text)

        def of_parts(parts: list[Part], _: None) -> list[Segment]:
            return covering(parts, words, k, accepts)

        segments = self._of_one_moment(lambda _: None, of_parts)
        return [scored(words, segment) for segment in segments]

    def concordance(self, phrase: Phrase, k: int = 20) -> list[Occurrence]:
        """The answer includes what any process has changed."""
        check_concordance(k)

        def of_latest(delta: Delta) -> list[Segment]:
            return list(filter(self.conditions.keeps, delta))

        def of_all(parts: list[Part], latest: list[Segment]) -> list[Segment]:
            return [*latest, *chain.from_iterable(part.with_phrase(phrase, k) for part in parts)]

        return occurrences(phrase, self._of_one_moment(of_latest, of_all), k)

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """All segments are added, or none.

        Raises LockedError where another process is writing. Raises DataError for a source of more
        than 65,535 tokens. Raises MemoryIndexError where the disk is full."""
        new = dated(segments)
        with self._changes.change(self._begin, self._end) as changes:
            return changes.add(new)

    def edit(self, ids: Iterable[int], change: Callable[[Segment], Segment]) -> list[Segment]:
        """All segments are replaced, or none. Their ids stay; `changed` becomes the present time
        unless the new segment has another one.

        Raises UnknownIdError where a segment is not there, and what `add` raises."""
        with self._changes.change(self._begin, self._end) as changes:
            changes.flush()
            old = changes.generation.by_ids(ids)
            edited = [corrected(segment, change(segment)) for segment in old.values()]
            check_sources(edited)
            changes.make([(segment.id, segment) for segment in edited])
        return edited

    def delete(self, ids: Iterable[int]) -> None:
        """All segments are deleted, or none. Their ids are never given again.

        Raises UnknownIdError where a segment is not there. Raises LockedError where another process
        is writing. Raises MemoryIndexError where the disk is full."""
        with self._changes.change(self._begin, self._end) as changes:
            changes.flush()
            changes.make([(number, None) for number in changes.generation.by_ids(ids)])

    def delete_chosen(self, choose: Callable[[Iterator[Segment]], Iterable[int]]) -> list[int]:
        with self._writing() as generation:
            ids = list(dict.fromkeys(choose(generation.segments())))
            self._put_on_disk(generation, encoded((number, None) for number in ids))
        return ids

    def get(self, ids: Iterable[int]) -> list[Segment]:
        numbers = list(ids)
        with self._lock:
            segments = self._refreshed().by_ids(numbers)
        return [segments[number] for number in numbers]

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        with self._lock:
            return self._refreshed().present(ids)

    def segments(self, conditions: Filter = NO_FILTER) -> Iterator[Segment]:
        """The segments are those of this moment, whatever changes later."""
        with self._lock:
            return self._refreshed().segments(conditions)

    def changes(self) -> tuple[int, int, int]:
        """How many segments were added, corrected and deleted since the index was built or
        compacted."""
        with self._lock:
            return self._refreshed().changes()

    @property
    def last_id(self) -> int:
        """The greatest id that a segment was ever given; ids begin at 1."""
        with self._lock:
            return self._refreshed().last_id

    def __len__(self) -> int:
        """How many segments the index holds now."""
        with self._lock:
            return len(self._refreshed())

    def compact(self, progress: Callable[[int], None] | None = None) -> Manifest:
        """The changes go into a new generation. Searches go on meanwhile, and writers wait. Where
        the process is killed or the disk is full, everything is as before. Nothing happens where
        nothing was changed, unless the index is of a former format.

        Raises MemoryIndexError where the disk is full."""
        with self._writing() as generation:
            if generation.journal.offset or generation.manifest.format < FORMAT:
                languages = generation.manifest.src_lang, generation.manifest.tgt_lang
                runs = in_runs(generation.segments())
                write_generation(self.path, runs, languages, progress, generation.last_id)
        with self._lock:
            return self._refreshed().manifest

    def verify(self) -> int:
        """Reads everything; how many segments there are. Raises MemoryIndexError at the first part
        that is not what was written."""
        return verify(self.path)

    def generation(self) -> int:
        """How many times the index was built or compacted."""
        return self.manifest.generation

    def size(self) -> int:
        """Bytes on disk."""
        folder = self.manifest.generation_dir(self.path)
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    def close(self) -> None:
        with self._lock:
            self._now.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _of_one_moment(
        self,
        of_latest: Callable[[Delta], S],
        of_all: Callable[[list[Part], S], T],
    ) -> T:
        """What `of_all` makes of the parts and of what `of_latest` has of the latest additions, as
        both are now; once more where the generation was replaced before it was read."""
        with self._lock:
            now = self._refreshed()
            parts = now.parts(self.conditions)
            latest = of_latest(now.delta)
        try:
            return of_all(parts, latest)
        except MemoryIndexError:
            with self._lock:
                if self._refreshed() is now:
                    raise
        return self._of_one_moment(of_latest, of_all)

    @contextmanager
    def _writing(self) -> Iterator[Generation]:
        """The generation as it is now, which nobody else can change meanwhile. Searches go on."""
        with writing(self.path, SECONDS_TO_WAIT):
            with self._lock:
                generation = self._refreshed()
            number = generation.manifest.generation
            remove_leftovers(self.path, number, *unfinished(self.path))
            yield generation

    def _put_on_disk(self, generation: Generation, body: bytes) -> None:
        """Appends changes to the journal, where there are any. Searches go on meanwhile, and do not
        see them yet."""
        if not body:
            return
        with generation.journal.appending(self._lock):
            generation.journal.append(body)
        with self._lock:
            generation.refresh()

    def _begin(self) -> _Changes:
        with ExitStack() as stack:
            generation = stack.enter_context(self._writing())
            return _Changes(generation, stack.pop_all(), partial(self._put_on_disk, generation))

    @staticmethod
    def _end(changes: _Changes) -> None:
        with changes.writing:
            changes.flush()

    def _refreshed(self) -> Generation:
        """The valid generation with all changes acknowledged so far. One that was replaced stays
        open for the searches under way."""
        while True:
            version = manifest_version(self._manifest_path)
            if version != self._version:
                self._follow(read_manifest(self.path))
            try:
                self._now.refresh()
            except MemoryIndexError:
                if version == manifest_version(self._manifest_path):
                    raise  # else replaced before its journal was read
            else:
                self._version = version
                return self._now

    def _follow(self, manifest: Manifest) -> None:
        if manifest == self._now.manifest:
            return
        languages = manifest.src_lang, manifest.tgt_lang
        if languages != (self.src_lang, self.tgt_lang):
            raise MemoryIndexError(
                f"{self.path}: was replaced by an index from {' to '.join(languages)}; open it "
                "again"
            )
        try:
            self._now = Generation(manifest, self.path)
        except (MemoryIndexError, OSError):
            if read_manifest(self.path) == manifest:
                raise  # else replaced once more: the caller comes again


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
