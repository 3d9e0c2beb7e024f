"""How translations of pieces are put together: first those of a segment, and then segments in the
order of the input."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tmnmt.segments import ORIGINS, Match, Other, Translation, work_total

if TYPE_CHECKING:
    from tmnmt.engine.piece import Piece
    from tmnmt.engine.source_segment import SourceSegment

Translated = tuple[Translation, int]  # of a piece, and its length in subwords


class Assembly:
    """Puts the translations of pieces together, and gives those of segments in the order in which
    the segments were announced."""

    def __init__(self, finished: Callable[[], None] = lambda: None) -> None:
        """finished: a function that is called as soon as a segment is complete, whatever stands
        before it."""
        self._finished = finished
        self._segments: deque[_Segment] = deque()
        self._by_number: dict[int, _Segment] = {}
        self._next = 0

    def announce(self, text: str, pieces: int, source: SourceSegment | None = None) -> int:
        """Announces a segment that is to come. Returns the number of the segment, which counts from
        0.

        text: the source of the segment.
        pieces: into how many pieces it is cut. A segment without pieces has an empty translation.
        source: the segment on its way through the filters; None where no filter is used."""
        number = self._next
        self._next += 1
        segment = _Segment(number, text, pieces, source)
        self._segments.append(segment)
        self._by_number[number] = segment
        self._tell(segment)
        return number

    def put(self, piece: Piece, translation: Translation, length: int) -> None:
        """Takes the translation of a piece. The pieces of a segment may come in any order.

        piece: the piece that was translated.
        translation: its translation.
        length: how many subwords the translation has, </s> included."""
        segment = self._by_number[piece.segment.number]
        segment.parts[piece.number] = translation, length
        self._tell(segment)

    def _tell(self, segment: _Segment) -> None:
        if segment.is_complete:
            self._finished()

    def ready(self) -> Iterator[Translation]:
        """The translations of segments that are complete and have nothing incomplete before
        them."""
        while self._segments and self._segments[0].is_complete:
            segment = self._segments.popleft()
            del self._by_number[segment.number]
            yield segment.translation()


@dataclass
class _Segment:
    number: int
    text: str
    pieces: int
    source: SourceSegment | None
    parts: dict[int, tuple[Translation, int]] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.parts) == self.pieces

    def translation(self) -> Translation:
        whole = self._whole()
        return whole if self.source is None else self.source.restore(whole)

    def _whole(self) -> Translation:
        if not self.parts:
            return Translation(self.text, "", 0.0)
        if len(self.parts) == 1:
            return replace(self.parts[0][0], src=self.text)
        return join(self.text, [self.parts[number] for number in range(self.pieces)])


def join_parts(text: str, parts: Sequence[Translated]) -> Translated:
    """Makes one translation of those of consecutive parts. Returns it with its length in subwords.

    text: the source of the whole.
    parts: the translation and the length in subwords of every part, in order."""
    if len(parts) == 1:
        return parts[0]
    return join(text, parts), sum(length for _, length in parts)


def join(text: str, parts: Sequence[Translated]) -> Translation:
    """Makes one translation of those of consecutive pieces. Its score is the mean of their scores,
    weighted by length. Of several origins, it has the one that leaves most to do, and several full
    matches together are no full match.

    text: the source of the whole.
    parts: the translation and the length in subwords of every piece, in order."""
    score = sum(part.score * length for part, length in parts) / sum(length for _, length in parts)
    matches: dict[Match, int] = {}
    tokens = []
    for part, _ in parts:
        numbers = [matches.setdefault(match, len(matches)) for match in part.matches]
        for token in part.tokens:
            sources, attention = (
                tuple(replace(source, match=numbers[source.match]) for source in positions)
                for positions in (token.sources, token.attention)
            )
            tokens.append(replace(token, sources=sources, attention=attention))
    origins = [part.origin for part, _ in parts if part.origin]
    origin = min(origins, key=ORIGINS.index, default="")
    if origin == "memory" and len(origins) > 1:
        origin = "adapted"
    tgt = " ".join(part.tgt for part, _ in parts if part.tgt)
    low, unknown = any(part.low for part, _ in parts), sum(part.unknown for part, _ in parts)
    rest = _alternatives([(part, length) for part, length in parts if length])
    return Translation(
        text,
        tgt,
        score,
        tuple(matches),
        tuple(tokens),
        origin,
        low,
        unknown,
        user_checks=tuple(dict.fromkeys(check for part, _ in parts for check in part.user_checks)),
        others=rest,
        words=tuple(word for part, _ in parts for word in part.words),
        confidence=min((p.confidence for p, _ in parts if p.confidence is not None), default=None),
        work=work_total(part.work for part, _ in parts),
    )


def _alternatives(parts: Sequence[Translated]) -> tuple[Other, ...]:
    """The next best translations of a segment in pieces. Each differs from the best one in a single
    piece."""
    total, size = sum(part.score * length for part, length in parts), sum(n for _, n in parts)
    wholes = []
    for index, (part, length) in enumerate(parts):
        for alternative in part.others:
            texts = [translation.tgt for translation, _ in parts]
            texts[index] = alternative.tgt
            changed = total - part.score * length + alternative.score * alternative.length
            new = size - length + alternative.length
            wholes.append(Other(" ".join(filter(None, texts)), changed / new, new))
    count = max((len(part.others) for part, _ in parts), default=0)
    return tuple(sorted(wholes, key=lambda alternative: -alternative.score)[:count])
