"""Pre-translation from the memory alone: exact matches as they stand, and no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tmnmt.config.options import Untranslated
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.verbatim import as_it_stands
from tmnmt.formats.clean import clean
from tmnmt.index.base import Index
from tmnmt.segments import Translation

TOGETHER = 32  # texts that are looked up at once


class Pretranslator:
    """Gives a text that a memory holds its translation there; another one stays empty, or as it is.
    `counts` says how many were which: "exact", "untranslated"."""

    def __init__(
        self,
        indexes: Sequence[Index],
        untranslated: Untranslated = "empty",
        top_k: int = 4,
        threshold: float = 0.5,
    ) -> None:
        self.retriever, self.untranslated = Retriever(indexes, top_k, threshold), untranslated
        self.counts = {"exact": 0, "untranslated": 0}

    def stream(self, texts: Iterable[str]) -> Iterator[Translation]:
        """The translations in order, with the matches that the memories have. A blank text is
        translated as ""."""
        coming = iter(texts)
        while batch := list(islice(coming, TOGETHER)):
            cleaned = [clean(text)[0] for text in batch]
            matches, exact = self.retriever.search(cleaned), self.retriever.exact(cleaned)
            for text, query, similar, match in zip(batch, cleaned, matches, exact, strict=True):
                if match is not None:
                    self.counts["exact"] += 1
                    yield as_it_stands(text, match, similar)
                    continue
                self.counts["untranslated"] += bool(query)
                yield Translation(
                    text, query if self.untranslated == "source" else "", 0.0, similar
                )
