"""The embedded index: the store, immutable postings over it, and a delta of what was added since."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tmnmt.errors import DataError, MemoryIndexError, UsageError
from tmnmt.index.delta import Delta
from tmnmt.index.inversion import MAX_TOKENS
from tmnmt.index.lock import writing
from tmnmt.index.manifest import Manifest, check_content, check_files, read_manifest
from tmnmt.index.postings import Postings, Wanted
from tmnmt.index.store import Store
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

SECONDS_TO_WAIT = 5.0  # for another process' addition; a build takes longer and is reported


class MemoryIndex:
    """An index folder, open for searches and additions; an `Index`. Use from any thread; close it, or use `with`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.src_lang, self.tgt_lang = manifest.src_lang, manifest.tgt_lang
        self._lock = threading.RLock()
        self._load(manifest)

    @classmethod
    def open(cls, path: Path, src_lang: str | None = None, tgt_lang: str | None = None) -> MemoryIndex:
        """The index at `path`; its parts are mapped, not read. Raises MemoryIndexError: no index, half of one, damaged,
        of another format, or (where languages are given) of other languages."""
        path = Path(path)
        manifest = read_manifest(path)
        for asked, held in ((src_lang, manifest.src_lang), (tgt_lang, manifest.tgt_lang)):
            if asked and _primary(asked) != _primary(held):
                pairs = f"{manifest.src_lang} to {manifest.tgt_lang}, not {src_lang or '?'} to {tgt_lang or '?'}"
                raise MemoryIndexError(f"{path}: this index is from {pairs}")
        try:
            return cls(path, manifest)
        except MemoryIndexError:
            latest = read_manifest(path)
            if latest.generation == manifest.generation:
                raise
            return cls(path, latest)  # replaced while it was being opened

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
        threads: int | None = None,
    ) -> list[list[Match]]:
        """As `Index.search` says; equal to scoring every segment, and includes what any process has added.

        threads: how many search a batch, with the same answers; None: one for every core this process may use."""
        _check_search(queries, k, threshold, exclude_documents, threads)
        documents = exclude_documents or [""] * len(queries)
        keys = [(tuple(match_tokens(text)), document) for text, document in zip(queries, documents, strict=True)]
        with self._lock:
            self._refresh()
            postings, store = self._postings, self._store
            added = {key: self._delta.search(key[0], threshold, exclude_sources, key[1]) for key in dict.fromkeys(keys)}
        wanted = [Wanted(*key) for key in added]
        hits = postings.search(wanted, k, threshold, without_equal=exclude_sources, threads=threads or _cores())
        held = dict(zip(added, hits, strict=True))
        segments = store.by_ids(hit.id for hits in held.values() for hit in hits)
        found = {key: [Match(segments[hit.id], hit.score, hit.edits) for hit in hits] for key, hits in held.items()}
        return [_best(found[key] + added[key], k) if added[key] else list(found[key]) for key in keys]

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Adds segments; their ids. On return they are on disk, and the next search by anyone finds them. Without
        `changed` (or `created`) they get the present time. Raises LockedError where another process is writing,
        DataError for a source of more than 65,535 tokens."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        dated = [replace(s, created=s.created or now, changed=s.changed or s.created or now) for s in segments]
        for segment in dated:
            if len(match_tokens(segment.src)) > MAX_TOKENS:
                raise DataError(f"{segment.src[:40]!r}...: more than {MAX_TOKENS:,} match tokens")
        with self._lock, writing(self.path, SECONDS_TO_WAIT):
            manifest = read_manifest(self.path)
            if manifest.generation != self.manifest.generation:
                self._load(manifest)  # the replaced store stays open for searches under way
            writer = Store.write(manifest.store_path(self.path))
            try:
                ids = writer.add(dated)
            finally:
                writer.close()
            self._refresh()
        return ids

    def __len__(self) -> int:
        """How many segments the index holds, additions included."""
        with self._lock:
            self._refresh()
            return self.manifest.segments + self._added

    def verify(self) -> None:
        """Reads everything. Raises MemoryIndexError at the first part that is not what was written."""
        check_content(self.manifest, self.path)
        for _ in self._store:
            pass

    def close(self) -> None:
        with self._lock:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _load(self, manifest: Manifest) -> None:
        check_files(manifest, self.path)
        self.manifest = manifest
        self._postings = Postings.open(manifest.postings_dir(self.path))
        self._store = Store.read(manifest.store_path(self.path))
        self._delta = Delta()
        self._added, self._last_id, self._version = 0, manifest.last_id, -1
        self._refresh()

    def _refresh(self) -> None:
        version = self._store.data_version()
        if version == self._version:
            return
        for segment in self._store.after(self._last_id):
            self._delta.add(segment)
            self._last_id = segment.id
            self._added += 1
        self._version = version


def _check_search(
    queries: Sequence[str], k: int, threshold: float, documents: Sequence[str] | None, threads: int | None
) -> None:
    if k < 1:
        raise UsageError(f"k is {k}; it must be at least 1")
    if not 0 <= threshold <= 1:
        raise UsageError(f"the threshold is {threshold}; it must be in [0, 1]")
    if threads is not None and threads < 1:
        raise UsageError(f"threads is {threads}; it must be at least 1")
    if documents is not None and len(documents) != len(queries):
        raise UsageError(f"{len(documents)} documents to leave out for {len(queries)} queries; give one for each")


def _best(matches: list[Match], k: int) -> list[Match]:
    matches = sorted(matches, key=lambda match: match.segment.id)
    matches.sort(key=lambda match: match.segment.changed, reverse=True)
    matches.sort(key=lambda match: match.score, reverse=True)
    return matches[:k]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _primary(language: str) -> str:
    return language.lower().replace("_", "-").split("-")[0]
