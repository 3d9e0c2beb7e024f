"""Pre-translation from the memory alone: exact matches as they stand or adapted, and no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tmnmt.codes.record import Source, Text, beside, plain_of
from tmnmt.config.options import Untranslated
from tmnmt.engine.coded import Coded
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.verbatim import as_it_stands
from tmnmt.formats.clean import clean
from tmnmt.index.worth import FULL
from tmnmt.segments import Match, Translation

TOGETHER = 32  # texts that are looked up at once


class Pretranslator:
    """Gives a text that a memory holds its translation there, where that is worth `least`; another
    one stays empty, or as it is. `counts` says how many were which: "exact", "adapted",
    "untranslated"."""

    def __init__(
        self, retriever: Retriever, untranslated: Untranslated = "empty", least: int = FULL
    ) -> None:
        self.retriever, self.untranslated, self.least = retriever, untranslated, least
        self.counts = {"exact": 0, "adapted": 0, "untranslated": 0}

    def stream(self, texts: Iterable[Source]) -> Iterator[Translation]:
        """The translations in order, with the matches that the memories have. A blank text is
        translated as "". One with codes is taken where a pair says how they stand, or they stand
        around all words."""
        coming = iter(texts)
        while batch := list(islice(coming, TOGETHER)):
            coded = [Coded(text, len) if isinstance(text, Text) else None for text in batch]
            cleaned = [
                one.source.plain if one is not None else clean(plain_of(text))[0]
                for text, one in zip(batch, coded, strict=True)
            ]
            codes = [one.source.codes if one is not None else None for one in coded]
            matches = self.retriever.search(cleaned)
            exact = self.retriever.exact(cleaned, codes, beside=beside(batch), least=self.least)
            for row, match in enumerate(exact):
                plain = plain_of(batch[row])
                taken = match and _taken(plain, match, matches[row], coded[row])
                if taken:
                    self.counts["adapted" if taken.origin == "adapted" else "exact"] += 1
                else:
                    self.counts["untranslated"] += bool(cleaned[row])
                    kept = cleaned[row] if self.untranslated == "source" else ""
                    taken = Translation(plain, kept, 0.0, matches[row])
                yield taken


def _taken(
    text: str, match: Match, similar: tuple[Match, ...], coded: Coded | None
) -> Translation | None:
    """The match's target; None where only a model could say where codes stand in it."""
    taken = as_it_stands(text, match, similar)
    if coded is None:
        return taken
    coded.take(match)
    return None if coded.unlinked() else coded.finished(taken)
