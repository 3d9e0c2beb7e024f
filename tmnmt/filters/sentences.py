"""Several sentences in one text: a model may lose one of them. Then they are translated one by
one."""

from __future__ import annotations

from collections.abc import Sequence

from tmnmt.codes.record import Source, plain_of
from tmnmt.filters.contract import Filter, Undo
from tmnmt.filters.sentence_ends import sentences


class LostSentences(Filter):
    """Translates sentences one by one where the translation of all has fewer."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        parts = sentences(plain_of(source))
        return source, OneByOne(parts) if len(parts) > 1 else None


class OneByOne(Undo):
    """Counts the sentences of what was written."""

    def __init__(self, parts: Sequence[str]) -> None:
        """parts: the sentences, which may be translated one by one."""
        self.parts = parts

    def retry(self, output: str) -> Sequence[str]:
        return self.parts if len(sentences(output)) < len(self.parts) else ()
