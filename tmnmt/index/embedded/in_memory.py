"""An index without a folder. It lasts as long as the process, and grows as an embedded index does
by additions: the few latest segments are compared one by one, the others have postings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tmnmt.index.base import (
    Index,
    IndexAnswer,
    IndexQuery,
    accept_always,
    check_queries,
    dated,
)
from tmnmt.index.embedded.answer import answers_of, answers_of_latest
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.delta_segments import LOOSE, Sealed, seal
from tmnmt.index.embedded.part import covering
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.filter import NO_FILTER
from tmnmt.index.same_skeleton import scored
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens


class InMemoryIndex(Index):
    """Segments that are searched as `tmnmt.index.base.Index` says, and nothing of which is on disk.
    Only one thread may use it at a time, until it is settled."""

    def __init__(self, src_lang: str = "", tgt_lang: str = "") -> None:
        """src_lang: the code of the source language; "" where nobody asks for it.
        tgt_lang: the code of the target language."""
        self.src_lang, self.tgt_lang = src_lang, tgt_lang
        self._delta = Delta()
        self._sealed = tuple[Sealed, ...]()
        self._segments = dict[int, Segment]()

    @classmethod
    def build(cls, segments: Iterable[Segment]) -> InMemoryIndex:
        """An index of segments that is settled.

        segments: the segments.

        Raises DataError for a source that is too long."""
        index = cls()
        for segment in dated(segments):
            index._number(segment)
        index.settle()
        return index

    def __len__(self) -> int:
        return len(self._segments)

    def add(self, segments: Iterable[Segment]) -> list[int]:
        """Adds segments, which the next search finds, and returns their ids.

        segments: the segments. Without `changed` (or `created`) they get the present time.

        Raises DataError for a source that is too long."""
        ids = list[int]()
        for segment in dated(segments):
            numbered = self._number(segment)
            self._delta.add(numbered)
            ids.append(numbered.id)
            if len(self._delta) > LOOSE:
                self._sealed, self._delta = seal(self._delta, self._sealed), Delta()
        return ids

    def _number(self, segment: Segment) -> Segment:
        """The segment with an id, under which it is held."""
        number = len(self._segments) + 1
        self._segments[number] = numbered = replace(segment, id=number)
        return numbered

    def settle(self) -> None:
        """Gives all segments postings in one part, so that `covering` finds all of them, and any
        thread may search while nothing is added."""
        if self._segments:
            self._sealed, self._delta = seal(self._segments.values(), ()), Delta()

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of these segments that are there, by their ids.

        ids: the ids that are looked for."""
        return {number: self._segments[number] for number in ids if number in self._segments}

    def look_up(
        self, queries: Sequence[IndexQuery], exclude_sources: bool = False
    ) -> list[IndexAnswer]:
        check_queries(queries)
        prepared = [*map(PreparedQuery, queries)]
        latest = answers_of_latest(self._delta, prepared, NO_FILTER.keeps, exclude_sources)
        parts = [sealed.part for sealed in self._sealed]
        return answers_of(parts, latest, prepared, exclude_sources, 1)

    def covering(
        self, text: str, k: int, accepts: Callable[[int], bool] = accept_always
    ) -> list[Match]:
        """Only the segments that have postings are looked at."""
        words = match_tokens(text)
        parts = [sealed.part for sealed in self._sealed]
        return [scored(words, segment) for segment in covering(parts, words, k, accepts)]
