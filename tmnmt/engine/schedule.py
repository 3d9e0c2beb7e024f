"""Decides which sentences are translated together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tmnmt.engine.piece import Piece

PREFETCH = 32  # sentences, at least, that are retrieved for together
SORTED_BATCHES = 2  # this many batches are read before sentences are sorted by length

Documents = Iterable[list[Piece]]


def side_by_side(
    documents: Documents, batch: int, retrieve: Callable[[Sequence[Piece]], list[Piece]]
) -> Iterator[list[Piece]]:
    """Gives the next sentences of several documents at a time. Where one document ends, the next
    one begins. Sentences are retrieved for ahead of time, so that the sentences of few documents
    are searched for in large groups, too.

    documents: the pieces of every document.
    batch: how many documents go side by side.
    retrieve: what looks pieces up."""
    coming = (_Reading(deque(pieces)) for pieces in documents if pieces)
    active = list(islice(coming, batch))
    while active:
        _read_on(active, max(1, max(batch, PREFETCH) // len(active)), retrieve)
        yield [document.ready.popleft() for document in active]
        active = [document for document in active if document.waiting or document.ready]
        active += islice(coming, batch - len(active))


@dataclass
class _Reading:
    waiting: deque[Piece]
    ready: deque[Piece] = field(default_factory=deque)  # retrieved for


def _read_on(
    active: list[_Reading], quota: int, retrieve: Callable[[Sequence[Piece]], list[Piece]]
) -> None:
    dry = [document for document in active if not document.ready]
    takes = [
        [document.waiting.popleft() for _ in range(min(quota, len(document.waiting)))]
        for document in dry
    ]
    matches = iter(retrieve([piece for take in takes for piece in take]))
    for document, take in zip(dry, takes, strict=True):
        document.ready.extend(next(matches) for _ in take)


def by_length(documents: Documents, batch: int) -> Iterator[list[Piece]]:
    """Gives sentences of similar length together, whatever document they are from.

    documents: the pieces of every document.
    batch: how many sentences are given together."""
    pending: list[Piece] = []
    for pieces in documents:
        pending += pieces
        while len(pending) >= batch * SORTED_BATCHES:
            yield from _sorted_batches(pending[: batch * SORTED_BATCHES], batch)
            pending = pending[batch * SORTED_BATCHES :]
    yield from _sorted_batches(pending, batch)


def join_batches(batches: Iterator[list[Piece]], count: int) -> Iterator[list[Piece]]:
    """Joins batches, as long as there are any.

    batches: the batches.
    count: how many of them become one."""
    while together := [piece for batch in islice(batches, count) for piece in batch]:
        yield together


def _sorted_batches(pieces: list[Piece], batch: int) -> Iterator[list[Piece]]:
    ordered = sorted(pieces, key=lambda piece: len(piece.ids))
    for start in range(0, len(ordered), batch):
        yield ordered[start : start + batch]
