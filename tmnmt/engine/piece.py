"""What is on its way through the pipeline: segments, the pieces that the model translates at once,
and what the memories have for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tmnmt.layers.reach import STANDARD, Reaches

if TYPE_CHECKING:
    from tmnmt.codes.record import Beside, Source
    from tmnmt.engine.history import History
    from tmnmt.engine.retrieve import Answer
    from tmnmt.engine.source_segment import SourceSegment
    from tmnmt.keys.pair_keys import PairKeys
    from tmnmt.layers.contract import NearDraft
    from tmnmt.models.base import SurroundingText
    from tmnmt.segments import Match, SearchWork

Preceding = tuple[tuple[int, ...], ...]  # subwords of the segments before one, the oldest first

Role = Literal["cut", "merged", "part"]


@dataclass(frozen=True, eq=False)
class OpenSegment:
    """A segment that is being translated, with what all of its pieces share.

    source: its text on the way through the filters.
    number: its number in the input.
    document: the number of its document.
    size: into how many pieces it was cut.
    neighbours: the texts before and behind it, and its id.
    ends_document: whether nothing of its document follows.
    to_confirm: the pair that is confirmed once it is translated.
    reading_ids: the subwords of another way to read it, where a filter offers one.
    similar: what the memories have for the whole segment, once they were asked.
    message_matches: for a message, the same messages of pairs that are like its whole segment.
    history: the pairs of its document that were confirmed before; None where there are none.
    place: how many texts of its document that are translated stand before it."""

    source: SourceSegment
    number: int
    document: int
    size: int = 1
    neighbours: Beside = ("", "")
    ends_document: bool = False
    to_confirm: tuple[Source, Source] | None = None
    reading_ids: tuple[int, ...] = ()
    similar: list[Answer] = field(default_factory=list)
    message_matches: tuple[Match, ...] = ()
    history: History | None = None
    place: int = 0

    @property
    def text(self) -> str:
        """Its text without codes."""
        return self.source.source.plain


@dataclass(frozen=True)
class Retrieved:
    """What the memories have for a piece.

    matches: the matches.
    fragments: pairs that share phrases with the piece, where there are no matches.
    full_match: the match whose target is taken as it stands.
    keys: the keys of the matches and then of the fragments.
    neighbours: positions of all memories that are near to a draft of the translation; None where
    they were not looked for.
    reaches: how far positions of its pairs and of its session are read.
    work: what the searches have compared; None where it was not counted."""

    matches: tuple[Match, ...] = ()
    fragments: tuple[Match, ...] = ()
    full_match: Match | None = None
    keys: tuple[PairKeys, ...] = field(default=(), compare=False)
    neighbours: NearDraft | None = field(default=None, compare=False)
    reaches: Reaches = field(default=STANDARD, compare=False)
    work: SearchWork | None = field(default=None, compare=False)


NO_MATCHES = Retrieved()


@dataclass(frozen=True)
class Piece:
    """What is translated at once: a segment, or a part of one.

    segment: its segment.
    text: its source.
    model_text: its source as the model reads it.
    ids: the subwords of that, without </s>.
    number: its place in the segment, from 0.
    role: "cut" for a piece of its segment as the text was cut; "merged" for one that the first
    piece stands for, too; "part" for a message or a sentence that is translated by itself.
    context: what the model reads besides, where it reads something: the segments before it in its
    document, or all others.
    retrieved: what the memories have for it; None until they were asked."""

    segment: OpenSegment
    text: str
    model_text: str
    ids: tuple[int, ...]
    number: int = 0
    role: Role = "cut"
    context: Preceding | SurroundingText = field(default=(), compare=False)
    retrieved: Retrieved | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its segment."""
        return self.text == self.segment.text

    @property
    def ends_segment(self) -> bool:
        """Whether it is the last piece of its segment."""
        return self.number + 1 == self.segment.size

    @property
    def matches(self) -> tuple[Match, ...]:
        """The matches that the memories have for it. There are none where they were not asked
        yet."""
        return (self.retrieved or NO_MATCHES).matches

    @property
    def pairs(self) -> tuple[Match, ...]:
        """All pairs of the memories that are read for it."""
        retrieved = self.retrieved or NO_MATCHES
        return (*retrieved.matches, *retrieved.fragments)

    @property
    def is_unlike(self) -> bool:
        """Whether it is decoded, and the memories were asked and have nothing like it."""
        retrieved = self.retrieved
        if retrieved is None or self.role == "merged":
            return False
        return not (retrieved.matches or retrieved.full_match)

    @property
    def has_reading(self) -> bool:
        """Whether there is another way to read it, and the memories have nothing like it."""
        return self.role == "cut" and bool(self.segment.reading_ids) and not self.matches
