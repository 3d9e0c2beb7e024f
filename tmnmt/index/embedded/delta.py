"""What was added or corrected after the postings were built: a list in memory, searched whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from tmnmt.errors import MemoryIndexError
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.fuzzy import SLACK, score_of
from tmnmt.index.skeleton import skeleton, skeleton_hash
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

# with 1e-9 its cutoff loses half of the scores that equal it, such as 0.6 of 5 tokens
RAPIDFUZZ_SLACK = 1e-3
_UNKNOWN = "\0"
_MOST_TOKENS = 0x10FFFF


class Delta:
    """Segments as strings of one character a token, which rapidfuzz compares fastest."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._encoded: list[str] = []  # of each of them
        self._place: dict[int, int] = {}  # of an id in both
        self._without_tokens: dict[int, Segment] = {}
        self._character: dict[str, str] = {}
        # ids by hash, once they are asked for
        self._skeletons: defaultdict[int, set[int]] | None = None

    def __len__(self) -> int:
        return len(self._segments) + len(self._without_tokens)

    def __iter__(self) -> Iterator[Segment]:
        yield from self._segments
        yield from self._without_tokens.values()

    def add(self, segment: Segment) -> None:
        """Adds a segment, which the next search finds. One without tokens in its source matches
        nothing.

        segment: the segment, with its id.

        Raises MemoryIndexError where the segments have too many distinct tokens together."""
        tokens = match_tokens(segment.src)
        if not tokens:
            self._without_tokens[segment.id] = segment
            return
        if len(self._character) + len(tokens) > _MOST_TOKENS:
            raise MemoryIndexError(
                "too many distinct tokens in the changes of one index; run tmnmt memory compact"
            )
        self._place[segment.id] = len(self._segments)
        self._encoded.append(
            "".join(
                self._character.setdefault(token, chr(len(self._character) + 1)) for token in tokens
            )
        )
        self._segments.append(segment)
        if self._skeletons is not None:
            self._skeletons[_skeleton_of(segment)].add(segment.id)

    def remove(self, number: int) -> None:
        """Removes a segment. Nothing happens where there is none of this id.

        number: the id of the segment."""
        self._without_tokens.pop(number, None)
        place = self._place.pop(number, None)
        if place is None:
            return
        if self._skeletons is not None:
            self._skeletons[_skeleton_of(self._segments[place])].discard(number)
        last, encoded = self._segments.pop(), self._encoded.pop()
        if place < len(self._segments):
            self._segments[place], self._encoded[place] = last, encoded
            self._place[last.id] = place

    def same_skeleton(self, query: PreparedQuery) -> list[Segment]:
        """The segments of the query's skeleton, where it wants some, and perhaps of another, in no
        order.

        query: the query."""
        if not query.skeleton or not self._segments:
            return []
        if self._skeletons is None:
            self._skeletons = defaultdict(set)
            for segment in self._segments:
                self._skeletons[_skeleton_of(segment)].add(segment.id)
        ids = self._skeletons.get(query.skeleton_hash, ())
        return [self._segments[self._place[number]] for number in ids]

    def search(
        self, query: PreparedQuery, threshold: float, without_equal: bool = False
    ) -> list[Match]:
        """Every match of a query, in no order.

        query: the query.
        threshold: the smallest fuzzy score, from 0 to 1.
        without_equal: whether every segment is left out whose source equals the query in match
        tokens."""
        if not self._encoded or not query.tokens:
            return []
        text = "".join([self._character.get(token, _UNKNOWN) for token in query.tokens])
        document = query.query.without_document
        cutoff = max(0.0, threshold - RAPIDFUZZ_SLACK)
        hits = process.extract(
            text,
            self._encoded,
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=cutoff,
            limit=None,
        )
        matches = []
        for encoded, similarity, i in hits:
            longer = max(len(text), len(encoded))
            edits = round((1.0 - similarity) * longer)
            segment = self._segments[i]
            if (
                score_of(edits, longer) < threshold - SLACK
                or (without_equal and edits == 0)
                or (document and segment.document == document)
            ):
                continue
            matches.append(Match(segment, score_of(edits, longer), edits))
        return matches


def _skeleton_of(segment: Segment) -> int:
    return skeleton_hash(skeleton(segment.src))
