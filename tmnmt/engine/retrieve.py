"""The best pairs for a sentence out of several memories, and of what a session has confirmed."""

from __future__ import annotations

from collections.abc import Sequence

from tmnmt.codes.record import Code
from tmnmt.config.options import Selection
from tmnmt.engine.verbatim import agreeing, commonest
from tmnmt.index.base import Index, best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.pairs import OVERSAMPLED, copies, distinct
from tmnmt.index.select import candidates, selected
from tmnmt.segments import Match


class Retriever:
    """Searches `indexes`. Of pairs with equal source and target only the first is given; which of
    them, `selection` says."""

    def __init__(
        self,
        indexes: Sequence[Index],
        top_k: int,
        threshold: float,
        selection: Selection = Selection(),
    ) -> None:
        self.indexes, self.top_k, self.threshold = list(indexes), top_k, threshold
        self.selection = selection

    def search(
        self, texts: Sequence[str], confirmed: Sequence[Delta] = ()
    ) -> list[tuple[Match, ...]]:
        """For every text its at most `top_k` distinct pairs, chosen from the best; of equal score
        the newest is the better one, then the one with the smallest id.

        confirmed: for every text what its session has confirmed and no index keeps, which is
        searched, too."""
        if not texts:
            return []
        count = candidates(self.selection, self.top_k) * OVERSAMPLED
        answers = [index.search(texts, count, self.threshold) for index in self.indexes]
        if confirmed:
            pairs = zip(texts, confirmed, strict=True)
            answers.append([delta.search(text, self.threshold, False, "") for text, delta in pairs])
        every = [[match for answer in answers for match in answer[at]] for at in range(len(texts))]
        return [
            tuple(self._choose(text, matches)) for text, matches in zip(texts, every, strict=True)
        ]

    def exact(
        self, texts: Sequence[str], codes: Sequence[Sequence[Code] | None] = ()
    ) -> list[Match | None]:
        """For every text the match whose target is taken as it stands; None where no memory holds
        the text. Compared are match tokens.

        codes: of every text; where a pair has the same ones, others do not count. None: they are
        not looked at."""
        by_index = [copies(index, texts) for index in self.indexes]
        every = [[match for alike in by_index for match in alike[text]] for text in texts]
        wanted = codes or [None] * len(texts)
        return [commonest(agreeing(alike, own)) for alike, own in zip(every, wanted, strict=True)]

    def _choose(self, text: str, matches: list[Match]) -> list[Match]:
        pairs = distinct(best_of(matches, len(matches)))[: candidates(self.selection, self.top_k)]
        return selected(self.selection, text, pairs, self.top_k)
