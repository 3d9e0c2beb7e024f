"""Which sentences are translated together, and how the results come back in the order
of the input."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from tmnmt.codes.record import Beside, Source
from tmnmt.engine.coded import Coded
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.reach import STANDARD, Reaches
from tmnmt.models.base import Around
from tmnmt.segments import ORIGINS, Match, Other, Translation
from tmnmt.terms.term import Term

AHEAD = 32  # sentences, at least, that are retrieved for together
SORTED_BATCHES = 2  # this many batches are read before sentences are sorted by length


@dataclass(frozen=True)
class Piece:
    """What is translated at once: a segment, or a part of one that is too long."""

    text: str
    ids: tuple[int, ...]  # subwords, without </s>
    whole: str  # the segment's text
    segment: int  # its number in the input
    document: int
    part: int = 0  # its place in the segment
    last: bool = False  # of its document
    matches: tuple[Match, ...] | None = None  # None: not retrieved yet
    keys: tuple[PairKeys, ...] = field(default=(), compare=False)  # of the pairs
    # pairs that share phrases with it, where there are no matches
    fragments: tuple[Match, ...] = ()
    # how the positions of its pairs and its session are read
    reaches: Reaches = field(default=STANDARD, compare=False)
    silent: bool = False  # the first piece of its segment stands for all
    again: bool = False  # a message or a sentence of a segment, which is translated by itself
    exact: Match | None = None  # of a memory, where its target is taken as it stands
    # of a message: the same messages of pairs that its whole segment is like
    offered: tuple[Match, ...] = ()
    beside: Beside = ("", "")  # of its segment
    # subwords of the segments before it in the document, the oldest first; as many as the model
    # reads
    before: tuple[tuple[int, ...], ...] = ()
    # all other pieces of its document, with what a first pass made of them, where the model reads
    # these
    around: Around | None = field(default=None, compare=False)
    # the pair that is confirmed once this is translated
    confirmed: tuple[Source, Source] | None = None
    # what the whole segment is like, once it was asked; all pieces of a segment share the list
    of_whole: list[tuple[Match, ...]] = field(default_factory=list, compare=False)
    # where its text may have codes: the segment, which its pieces share, and what the model reads
    coded: Coded | None = field(default=None, compare=False)
    masked: str = ""
    # of a heading: its subwords in the letters that it would have within a sentence; else none
    within: tuple[int, ...] = ()
    # the targets that its document has confirmed for terms of several
    chosen: Mapping[Term, str] = field(default_factory=dict, compare=False)

    @property
    def read(self) -> str:
        """The text that `ids` are of."""
        return self.text if self.coded is None else self.masked

    @property
    def pairs(self) -> tuple[Match, ...]:
        """All that is read of the memories."""
        return (*(self.matches or ()), *self.fragments)

    @property
    def is_heading(self) -> bool:
        """A heading that the memories have nothing like."""
        return bool(self.within) and not self.matches


Documents = Iterable[list[Piece]]


def side_by_side(
    documents: Documents, batch: int, retrieve: Callable[[Sequence[Piece]], list[Piece]]
) -> Iterator[list[Piece]]:
    """The next sentence of up to `batch` documents at a time; where one ends the next one starts.

    Sentences are retrieved for ahead of time, so that few documents too are searched for in large
    groups."""
    coming = (_Reading(deque(pieces)) for pieces in documents if pieces)
    active = list(islice(coming, batch))
    while active:
        _read_on(active, max(1, max(batch, AHEAD) // len(active)), retrieve)
        yield [document.ready.popleft() for document in active]
        active = [document for document in active if document.waiting or document.ready]
        active += islice(coming, batch - len(active))


@dataclass
class _Reading:
    waiting: deque[Piece]
    ready: deque[Piece] = field(default_factory=deque)  # retrieved for


def _read_on(
    active: list[_Reading], each: int, retrieve: Callable[[Sequence[Piece]], list[Piece]]
) -> None:
    dry = [document for document in active if not document.ready]
    takes = [
        [document.waiting.popleft() for _ in range(min(each, len(document.waiting)))]
        for document in dry
    ]
    matches = iter(retrieve([piece for take in takes for piece in take]))
    for document, take in zip(dry, takes, strict=True):
        document.ready.extend(next(matches) for _ in take)


def by_length(documents: Documents, batch: int) -> Iterator[list[Piece]]:
    """Sentences of similar length together, whatever document they are from."""
    read: list[Piece] = []
    for pieces in documents:
        read += pieces
        while len(read) >= batch * SORTED_BATCHES:
            yield from _sorted_batches(read[: batch * SORTED_BATCHES], batch)
            read = read[batch * SORTED_BATCHES :]
    yield from _sorted_batches(read, batch)


def joined(batches: Iterator[list[Piece]], count: int) -> Iterator[list[Piece]]:
    """So many batches as one, as long as there are."""
    while together := [piece for batch in islice(batches, count) for piece in batch]:
        yield together


def _sorted_batches(read: list[Piece], batch: int) -> Iterator[list[Piece]]:
    ordered = sorted(read, key=lambda piece: len(piece.ids))
    for at in range(0, len(ordered), batch):
        yield ordered[at : at + batch]


class InOrder:
    """Gives back translations in the order in which their segments were announced."""

    def __init__(self, finished: Callable[[], None] = lambda: None) -> None:
        """finished: called as soon as a segment is complete, whatever stands before it."""
        self._finished = finished
        self._segments: deque[_Segment] = deque()
        self._by_number: dict[int, _Segment] = {}
        self._next = 0

    def announce(self, text: str, pieces: int, coded: Coded | None = None) -> int:
        """A segment to come in so many pieces; its number. Without pieces its
        translation is empty."""
        number = self._next
        self._next += 1
        segment = _Segment(number, text, pieces, coded)
        self._segments.append(segment)
        self._by_number[number] = segment
        self._tell(segment)
        return number

    def put(self, piece: Piece, translation: Translation, length: int) -> None:
        """The translation of a piece, `length` subwords with </s>; a segment's pieces may come in
        any order."""
        segment = self._by_number[piece.segment]
        segment.parts[piece.part] = translation, length
        self._tell(segment)

    def _tell(self, segment: _Segment) -> None:
        if segment.is_complete:
            self._finished()

    def ready(self) -> Iterator[Translation]:
        """Those that are complete and have nothing incomplete before them."""
        while self._segments and self._segments[0].is_complete:
            segment = self._segments.popleft()
            del self._by_number[segment.number]
            yield segment.translation()


@dataclass
class _Segment:
    number: int
    text: str
    pieces: int
    coded: Coded | None
    parts: dict[int, tuple[Translation, int]] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.parts) == self.pieces

    def translation(self) -> Translation:
        whole = self._whole()
        return whole if self.coded is None else self.coded.finished(whole)

    def _whole(self) -> Translation:
        if not self.parts:
            return Translation(self.text, "", 0.0)
        if len(self.parts) == 1:
            return replace(self.parts[0][0], src=self.text)
        return join(self.text, [self.parts[number] for number in range(self.pieces)])


def join(text: str, parts: Sequence[tuple[Translation, int]]) -> Translation:
    """One translation of `text` from those of its consecutive pieces and their lengths; the score
    is the mean, weighted by length. Of several origins it is the one with most left to do, and
    full matches put together are no full match."""
    score = sum(part.score * length for part, length in parts) / sum(length for _, length in parts)
    matches: dict[Match, int] = {}
    tokens = []
    for part, _ in parts:
        numbers = [matches.setdefault(match, len(matches)) for match in part.matches]
        for token in part.tokens:
            sources, attention = (
                tuple(replace(source, match=numbers[source.match]) for source in read)
                for read in (token.sources, token.attention)
            )
            tokens.append(replace(token, sources=sources, attention=attention))
    origins = [part.origin for part, _ in parts if part.origin]
    origin = min(origins, key=ORIGINS.index, default="")
    if origin == "memory" and len(origins) > 1:
        origin = "adapted"
    tgt = " ".join(part.tgt for part, _ in parts if part.tgt)
    low, unknown = any(part.low for part, _ in parts), sum(part.unknown for part, _ in parts)
    rest = _others([(part, length) for part, length in parts if length])
    return Translation(
        text,
        tgt,
        score,
        tuple(matches),
        tuple(tokens),
        origin,
        low,
        unknown,
        others=rest,
        words=tuple(word for part, _ in parts for word in part.words),
        confidence=min((p.confidence for p, _ in parts if p.confidence is not None), default=None),
    )


def _others(parts: Sequence[tuple[Translation, int]]) -> tuple[Other, ...]:
    """The next best of a segment in pieces: each has one other piece than the best."""
    total, size = sum(part.score * length for part, length in parts), sum(n for _, n in parts)
    wholes = []
    for at, (part, length) in enumerate(parts):
        for other in part.others:
            texts = [one.tgt for one, _ in parts]
            texts[at] = other.tgt
            changed = total - part.score * length + other.score * other.length
            new = size - length + other.length
            wholes.append(Other(" ".join(filter(None, texts)), changed / new, new))
    most = max((len(part.others) for part, _ in parts), default=0)
    return tuple(sorted(wholes, key=lambda other: -other.score)[:most])
