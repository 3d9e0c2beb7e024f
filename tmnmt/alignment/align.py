"""Aligns the sentences of two documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tmnmt.alignment.lexicon import glosses
from tmnmt.alignment.paths import (
    CROSSED,
    MOVES,
    SOURCE_ALONE,
    TARGET_ALONE,
    Documents,
    backward,
    best_path,
    forward,
)
from tmnmt.alignment.vectors import products, squares, vectors_of, with_previous
from tmnmt.compiled.compiling import announced
from tmnmt.errors import DataError

MOST_PLACES = 25_000_000  # of both documents that are looked at whole
MIN_WIDTH = 1000  # targets beside a source that are looked at in longer documents
MOST_SENTENCES = 100_000  # of a document
SECONDS_TO_WAIT = 0.2  # for the result, before signals are heard
DOUBTFUL = 0.9  # a probability below which a person should look at a link
LONE = {SOURCE_ALONE: (1, 0), TARGET_ALONE: (0, 1)}  # sentences of each side in such a step


Decision = Literal["", "accepted", "dropped"]  # of a person; "": nobody has looked at it


@dataclass(frozen=True, slots=True)
class Link:
    """Sentences that belong together; of a sentence that stands alone, that one.

    sources: the numbers of the source sentences, in order.
    targets: the numbers of the target sentences.
    probability: how sure it is that exactly these belong together, from 0 to 1.
    decision: what a person said of it: a dropped one is no pair of the memory."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    probability: float
    decision: Decision = ""

    @property
    def is_pair(self) -> bool:
        """Whether it has sentences of both sides."""
        return bool(self.sources and self.targets)

    @property
    def is_doubtful(self) -> bool:
        """Whether a person should look at it."""
        return not self.decision and self.probability < DOUBTFUL


@dataclass(frozen=True)
class Alignment:
    """What became of the sentences of two documents.

    links: what belongs together, and what stands alone, in the order of the documents."""

    links: list[Link]

    @property
    def pairs(self) -> list[Link]:
        """Those that belong together, in the order of the sources."""
        return [link for link in self.links if link.is_pair]

    @property
    def lone_sources(self) -> list[int]:
        """The numbers of source sentences without a translation."""
        return [number for link in self.links if not link.targets for number in link.sources]

    @property
    def lone_targets(self) -> list[int]:
        """The numbers of target sentences that translate nothing."""
        return [number for link in self.links if not link.sources for number in link.targets]


def align(
    sources: Sequence[str], targets: Sequence[str], translations: Sequence[str] | None = None
) -> Alignment:
    """Finds which sentences of two documents are translations of each other.

    sources: the sentences of the source document, in order.
    targets: the sentences of the target document, in order.
    translations: what a model makes of every source (Sennrich and Volk 2010). Without it lengths,
    names, numbers and other words that both languages share give a first alignment, and the words
    that stand together in it a second one.

    Raises DataError where a document has more than 100,000 sentences."""
    for sentences in (sources, targets):
        if len(sentences) > MOST_SENTENCES:
            raise DataError(
                f"a document has {len(sentences):,} sentences; at most {MOST_SENTENCES:,} can be "
                "aligned at once: cut it at a chapter"
            )
    if not sources or not targets:
        lone_sources = (Link((number,), (), 1.0) for number in range(len(sources)))
        lone_targets = (Link((), (number,), 1.0) for number in range(len(targets)))
        return Alignment([*lone_sources, *lone_targets])
    if translations is not None:
        return _aligned(_documents(sources, targets, translations))
    first = _aligned(_documents(sources, targets, sources))
    pairs = ((pair.sources, pair.targets, pair.probability) for pair in first.pairs)
    return _aligned(_documents(sources, targets, glosses(sources, targets, pairs)))


def _aligned(documents: Documents) -> Alignment:
    """The alignment, computed beside the main thread: a signal that comes while compiled code hands
    its arrays over would end the process."""
    results: list[Alignment | BaseException] = []

    def run() -> None:
        try:
            results.append(_best(documents))
        except BaseException as error:  # raised below, where somebody waits for it
            results.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(SECONDS_TO_WAIT)
    (result,) = results
    if isinstance(result, BaseException):
        raise result
    return result


def _best(documents: Documents) -> Alignment:
    targets = len(documents.target_lengths)
    with announced("alignment"):
        _, steps, sums_to = forward(documents, targets)
        sums_from = backward(documents, targets)
        path = best_path(documents, targets, steps, sums_to, sums_from)
    return _alignment(path)


def _alignment(path: Sequence[tuple[int, int, int, float]]) -> Alignment:
    links = list[Link]()
    for i, j, step, probability in reversed(path):
        if step == CROSSED:
            links.append(Link((i - 2,), (j - 1,), probability))
            links.append(Link((i - 1,), (j - 2,), probability))
        else:
            count, target_count = LONE.get(step) or MOVES[step].tolist()
            numbers, target_numbers = range(i - count, i), range(j - target_count, j)
            links.append(Link(tuple(numbers), tuple(target_numbers), probability))
    return Alignment(links)


def _documents(
    sources: Sequence[str], targets: Sequence[str], translations: Sequence[str]
) -> Documents:
    source_vectors, target_vectors = vectors_of(translations, targets)
    starts, width = _band(len(sources), len(targets))
    lengths, target_lengths = (
        np.array([*map(len, texts)], np.float64) for texts in (sources, targets)
    )
    return Documents(
        products(source_vectors, target_vectors, starts, width),
        starts,
        squares(source_vectors),
        squares(target_vectors),
        with_previous(source_vectors),
        with_previous(target_vectors),
        lengths,
        target_lengths,
        float(target_lengths.sum() / max(lengths.sum(), 1)),
    )


def _band(sources: int, targets: int) -> tuple[NDArray[np.int64], int]:
    """Where the targets begin (N,) that are looked at beside every source, and how many they are:
    all, or those about the diagonal of long documents."""
    width = targets
    if sources * targets > MOST_PLACES:
        width = min(targets, max(MIN_WIDTH, MOST_PLACES // sources))
    middles = np.arange(sources) * targets // max(sources, 1)
    return np.clip(middles - width // 2, 0, targets - width).astype(np.int64), width
