"""Segments of a memory that are held out of it, in stretches of neighbouring segments, so that the
memory can be measured on them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tmnmt.index.base import FolderIndex, Index, accept_always
from tmnmt.segments import Match, Segment
from tmnmt.text import normalise

STRETCH = 20  # segments of one document, in order
MARGIN = 40  # neighbours on either side that are left out with a stretch of a large document
LARGE = 0.05  # of the memory: a document with more is no document, but a collection
SAMPLED = 2000  # segments that tell the size of documents
MOST_OF_MEMORY = 5  # a fifth of it is held out at most


@dataclass(frozen=True)
class Stretch:
    """Neighbouring segments of one document. The whole of `document` is left out with them; where
    it is "", only their neighbourhood is."""

    segments: tuple[Segment, ...]
    document: str

    @property
    def neighbourhood(self) -> range:
        """The ids of its segments; of a stretch without a document those around them, too."""
        margin = 0 if self.document else MARGIN
        return range(self.segments[0].id - margin, self.segments[-1].id + margin + 1)


class Rest(Index):
    """An index without one stretch and its surroundings. For every query it also lacks the segments
    of the very same source. A document that is still to come is in no memory, and a text that is in
    a memory word for word is taken as it stands."""

    def __init__(self, index: FolderIndex, stretch: Stretch) -> None:
        """index: the whole index.
        stretch: the segments that are held out."""
        self.index, self.stretch = index, stretch
        self.src_lang, self.tgt_lang = index.src_lang, index.tgt_lang
        self._excluded_ids = stretch.neighbourhood

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:
        """Searches the rest as `Index.search` does, always without the sources of the queries
        themselves.

        queries: the texts.
        k: how many segments are given for a text at most.
        threshold: the smallest fuzzy score, from 0 to 1.
        exclude_sources: makes no difference here, because these are always left out.
        exclude_documents: for every query, the document whose segments are left out."""
        if self.stretch.document:
            documents = [self.stretch.document] * len(queries)
            return self.index.search(
                queries, k, threshold, exclude_sources=True, exclude_documents=documents
            )
        excluded_ids = self._excluded_ids
        answers = self.index.search(queries, k + len(excluded_ids), threshold, exclude_sources=True)
        return [
            [match for match in answer if match.segment.id not in excluded_ids][:k]
            for answer in answers
        ]

    def covering(
        self, text: str, k: int, accepts: Callable[[int], bool] = accept_always
    ) -> list[Match]:
        """Finds segments of the rest as `Index.covering` does, without the text itself.

        text: the text whose phrases are to be covered.
        k: how many segments are given at most.
        accepts: says of the id of a segment whether the segment may be taken."""
        source = normalise(text)

        def is_left(number: int) -> bool:
            if not accepts(number) or number in self._excluded_ids:
                return False
            (segment,) = self.index.get([number])
            document = self.stretch.document
            return normalise(segment.src) != source and not (
                document and segment.document == document
            )

        return self.index.covering(text, k, is_left)


def stretches(index: FolderIndex, segments: int, seed: int) -> list[Stretch]:
    """Draws stretches of a memory. All of them together are a fifth of the memory at most. A
    document is not drawn twice, unless it is large.

    index: the index of the memory.
    segments: about how many segments all stretches have together.
    seed: what the choice follows from."""
    large = _large_documents(index, random.Random(f"{seed} sizes"))
    count = min(segments, len(index) // MOST_OF_MEMORY)
    sample = list[Stretch]()
    taken_ids: set[int] = set()
    documents: set[str] = set()
    for stretch in _random_stretches(index, large, random.Random(f"{seed} stretches")):
        numbers = {segment.id for segment in stretch.segments}
        if not taken_ids.isdisjoint(numbers) or stretch.document in documents:
            continue
        remaining = count - len(taken_ids)
        if remaining <= 0:
            break
        sample.append(Stretch(stretch.segments[:remaining], stretch.document))
        taken_ids |= numbers
        documents |= {stretch.document} - {""}
    return sample


def excluded_pairs(index: FolderIndex, sample: Sequence[Stretch]) -> set[tuple[str, str]]:
    """The source and target of all segments that the rest of one of some stretches lacks: those of
    their documents or neighbourhoods, and those that have a source of theirs.

    index: the index of the memory.
    sample: the stretches."""
    documents = {stretch.document for stretch in sample} - {""}
    numbers = {number for stretch in sample for number in stretch.neighbourhood}
    sources = {normalise(segment.src) for stretch in sample for segment in stretch.segments}
    return {
        (segment.src, segment.tgt)
        for segment in index.segments()
        if segment.document in documents
        or segment.id in numbers
        or normalise(segment.src) in sources
    }


def _random_stretches(
    index: FolderIndex, large: set[str], chance: random.Random
) -> Iterator[Stretch]:
    """Stretches that begin anywhere."""
    last = index.last_id
    for _ in range(50 + last // STRETCH):
        start = chance.randint(1, max(1, last))
        segments = index.find(range(start, start + STRETCH))
        run = [segments[number] for number in sorted(segments)]
        neighbours = [segment for segment in run if segment.document == run[0].document]
        if neighbours:
            document = neighbours[0].document
            yield Stretch(tuple(neighbours), "" if document in large else document)


def _large_documents(index: FolderIndex, chance: random.Random) -> set[str]:
    """The documents that are most of the memory, and "", that of segments without one."""
    last = index.last_id
    numbers = chance.sample(range(1, last + 1), min(SAMPLED, last))
    sample = index.find(numbers).values()
    counts = Counter(segment.document for segment in sample)
    return {""} | {name for name, count in counts.items() if count > LARGE * len(sample)}
