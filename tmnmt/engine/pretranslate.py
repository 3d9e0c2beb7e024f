"""Pre-translation from the memory alone: exact matches as they stand or adapted, and no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tmnmt.config.options import Untranslated
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.verbatim import as_it_stands
from tmnmt.formats.clean import clean
from tmnmt.index.worth import FULL
from tmnmt.segments import Translation

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

    def stream(self, texts: Iterable[str]) -> Iterator[Translation]:
        """The translations in order, with the matches that the memories have. A blank text is
        translated as ""."""
        coming = iter(texts)
        while batch := list(islice(coming, TOGETHER)):
            cleaned = [clean(text)[0] for text in batch]
            beside = list(zip(["", *cleaned], [*cleaned[1:], ""], strict=False))
            matches = self.retriever.search(cleaned)
            exact = self.retriever.exact(cleaned, beside=beside, least=self.least)
            for text, query, similar, match in zip(batch, cleaned, matches, exact, strict=True):
                if match is not None:
                    taken = as_it_stands(text, match, similar)
                    self.counts["adapted" if taken.origin == "adapted" else "exact"] += 1
                    yield taken
                    continue
                self.counts["untranslated"] += bool(query)
                yield Translation(
                    text, query if self.untranslated == "source" else "", 0.0, similar
                )
