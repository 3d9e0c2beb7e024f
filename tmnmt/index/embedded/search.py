"""One search of the compiled code over all parts of an embedded index."""

from __future__ import annotations

import os
import struct
import threading
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from tmnmt.index.embedded.part import Part
from tmnmt.index.embedded.postings import Mapped
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.fuzzy import SLACK
from tmnmt.index.kernels.arrays import (
    COLUMNS,
    HITS,
    QUERY,
    REQUIRED,
    ROOM,
    ROOM_SIZE,
    Job,
    address_of,
    best_of_each,
)
from tmnmt.segments import SearchWork

QUERIES_A_CALL = 64  # of the compiled search; fewer would not be worth a thread
MOST_HITS_A_CALL = 1 << 20  # 40 bytes each are set aside, found or not
# sources that are worth a thread: it costs a query 0.2 ms where other programs use the cores, too
LEAST_SHARE = 1 << 22
_FLOAT = struct.Struct("d")


class Hit(NamedTuple):
    """A segment that a search has found.

    part: the number of the part that has it.
    id: its id.
    edits: how many match tokens have to be edited.
    score: the fuzzy score, from 0 to 1."""

    part: int
    id: int
    edits: int
    score: float


class SearchResult(NamedTuple):
    """What a search has found for a query.

    hits: of every part its best ones, best first, the parts in their order.
    work: what was compared with the query; more where several threads share the parts."""

    hits: list[Hit]
    work: SearchWork


class _Room(threading.local):
    """Where compiled code writes, kept from search to search: new memory costs more than a search.
    Each thread has its own."""

    def __init__(self) -> None:
        self.words = np.empty(0, np.uint64)
        self.grow(1, 0)

    def grow(self, size: int, count: int) -> None:
        """So many words of 64 bits; the first ones that are held stay."""
        words = np.empty(size, np.uint64)
        words[:count] = self.words[:count]
        self.words = words
        self.address = address_of("room", words, np.uint64, size, writable=True)


_room = _Room()


def search(
    parts: Sequence[Part],
    queries: Sequence[PreparedQuery],
    k: int,
    thresholds: Sequence[float],
    *,
    without_equal: bool = False,
    threads: int = 1,
) -> list[SearchResult]:
    """For every query the segments of at least its score that are not dead: of every part the best
    `k`, ties by newest. Of those worse than the best `k` of the parts before, a part may give
    fewer. The answers do not depend on the number of threads.

    parts: the parts.
    queries: the queries.
    k: how many segments of a part are given for a query at most.
    thresholds: for every query the smallest fuzzy score, from 0 to 1.
    without_equal: whether every segment is left out whose source equals the query in match tokens.
    threads: how many threads search.

    Raises MemoryIndexError where a part is damaged."""
    k = min(k, sum(len(part.postings) for part in parts))
    if k == 0:
        return [SearchResult([], SearchWork(0, 0)) for _ in queries]
    mapped_parts = [
        part.postings.mapped for part in parts
    ]  # its arrays must live until all is done
    rows = [_row(part, mapped) for part, mapped in zip(parts, mapped_parts, strict=True)]
    size = max(1, min(QUERIES_A_CALL, MOST_HITS_A_CALL // (k * len(parts))))
    runs = [slice(i, i + size) for i in range(0, len(queries), size)]

    def search_run(run: slice, numbers: Sequence[int] = range(len(parts))) -> list[SearchResult]:
        searched = array("q", chain.from_iterable(rows[number] for number in numbers))
        numbered = [(number, parts[number]) for number in numbers]
        return _search(numbered, searched, queries[run], k, thresholds[run], without_equal)

    if len(runs) == 1:
        shares = _shares([part.postings.sources for part in parts], threads)
        if len(shares) > 1:
            futures = [_threads().submit(search_run, runs[0], share) for share in shares[1:]]
            found_by_share = [search_run(runs[0], shares[0]), *(f.result() for f in futures)]
            return [_together(results) for results in zip(*found_by_share, strict=True)]
    if threads == 1 or len(runs) < 2:
        return [result for run in runs for result in search_run(run)]
    search_run(slice(1))  # what is read or compiled once, before threads wait for it
    with ThreadPoolExecutor(min(threads, len(runs))) as pool:
        return [result for results in pool.map(search_run, runs) for result in results]


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that wait for shares of a search, with the rooms that they have."""
    return ThreadPoolExecutor(os.cpu_count() or 1, "search")


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has none of the threads


def _shares(sizes: Sequence[int], threads: int) -> list[list[int]]:
    """The numbers of the parts that each thread searches, ascending: the largest part first, to the
    thread that has least so far. Each thread has at least `LEAST_SHARE` sources.

    sizes: (parts,), the sources of each.
    threads: how many threads there are at most."""
    shares = min(threads, len(sizes), max(1, sum(sizes) // LEAST_SHARE))
    while True:
        numbers, loads = [list[int]() for _ in range(shares)], [0] * shares
        for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
            least = loads.index(min(loads))
            numbers[least].append(number)
            loads[least] += sizes[number]
        if shares == 1 or min(loads) >= LEAST_SHARE:
            return [sorted(share) for share in numbers]
        shares -= 1


def _together(results: Sequence[SearchResult]) -> SearchResult:
    """What several threads have found for one query."""
    hits = sorted(chain.from_iterable(result.hits for result in results), key=lambda hit: hit.part)
    candidates, distances = map(sum, zip(*(result.work for result in results), strict=True))
    return SearchResult(hits, SearchWork(candidates, distances))


def _row(part: Part, mapped: Mapped) -> tuple[int, int, int, int]:
    """A part as `Job` has it."""
    size, keeps, dead = len(part.postings), 0, 0
    if part.subset is not None:
        keeps = address_of("allowed", part.subset.by_rank, np.uint8, size)
    if part.dead:
        dead = address_of("dead", part.dead.ascending, np.uint32, len(part.dead))
    return mapped.table, keeps, dead, len(part.dead)


def _search(
    parts: Sequence[tuple[int, Part]],
    searched: array[int],
    queries: Sequence[PreparedQuery],
    k: int,
    thresholds: Sequence[float],
    without_equal: bool,
) -> list[SearchResult]:
    text, query_rows = _encode(queries, thresholds)
    names = [query.query.without_document for query in queries]
    documents = array("q", [part.postings.document(name) for _, part in parts for name in names])
    room = _room
    job = array(
        "q",
        Job(
            query_rows.buffer_info()[0],
            len(queries),
            k,
            without_equal,
            room.address,
            len(room.words),
            searched.buffer_info()[0],
            len(parts),
            documents.buffer_info()[0],
        ),
    )
    best_of_each(job.buffer_info()[0], text)
    while job[REQUIRED]:
        room.grow(job[REQUIRED], COLUMNS * job[HITS])
        job[ROOM], job[ROOM_SIZE] = room.address, len(room.words)
        best_of_each(job.buffer_info()[0], text)
    rows = room.words[: COLUMNS * job[HITS]].view(np.float64).reshape(-1, COLUMNS)
    results = [
        SearchResult([], SearchWork(*query_rows[start + QUERY - 2 : start + QUERY]))
        for start in range(0, len(query_rows), QUERY)
    ]
    for place, (number, part) in enumerate(parts):
        of_part = rows[rows[:, 1] == place] if len(parts) > 1 else rows
        ids = part.postings.ids_of(of_part[:, 2].astype(np.int64))
        for segment, (query, _, _, edits, score) in zip(ids, of_part.tolist(), strict=True):
            results[int(query)].hits.append(Hit(number, segment, int(edits), score))
    return results


def _encode(
    queries: Sequence[PreparedQuery], thresholds: Sequence[float]
) -> tuple[bytes, array[int]]:
    """The queries as `best_of_each` reads them: ASCII as it is, of other text the tokens."""
    texts = []
    rows = array("q")
    end = 0
    for query, threshold in zip(queries, thresholds, strict=True):
        content, one_a_line = query.encoded
        texts.append(content)
        end += len(content)
        rows.extend((end, one_a_line))
        rows.frombytes(_FLOAT.pack(threshold - SLACK))
        rows.extend((0, 0))
    return b"".join(texts), rows
