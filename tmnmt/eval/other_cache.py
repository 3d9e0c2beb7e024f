"""Session caches that hold something else than what was translated: what a translator has confirmed, or another
document's past, which a document's own is compared with."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from tmnmt.engine import Translator
from tmnmt.memories.cache import CacheContents
from tmnmt.schedule import Piece
from tmnmt.segments import Translation

Pair = tuple[str, str]
WRITES = 2  # counts up when what is written, or when, gives another translation with the same settings


class OtherCache(Translator):
    """Remembers nothing of what it translates: before a document's next segment, its cache gets what `written` has for
    the one that was translated last, all pieces of it.

    written: for every segment of the stream, in order, a source and its translation; None: nothing. Their states are
    those of teacher forcing."""

    written: Sequence[Pair | None] = ()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._translated: dict[int, int] = {}  # document -> the segment of it that was translated last

    def translate_batch(
        self, batch: Sequence[Piece], caches: Sequence[CacheContents], explain: bool = False
    ) -> list[tuple[Translation, int]]:
        """As a translator's, but for what is remembered."""
        before = [self._translated.get(piece.document) if piece.part == 0 else None for piece in batch]
        pairs = [self.written[segment] if segment is not None else None for segment in before]
        found = self.keys.keys_of([pair] if pair is not None else [] for pair in pairs)
        for cache, some in zip(caches, found, strict=True):
            for keys in some:
                self.write(cache, keys.contexts, keys.hiddens, keys.ids)
        self._translated |= {piece.document: piece.segment for piece in batch}
        return super().translate_batch(batch, copy.deepcopy(list(caches)), explain)


def at_same_place(documents: Sequence[Sequence[Pair]]) -> list[list[Pair | None]]:
    """For every segment of every document the pair at its place in the next document, after the last the first."""
    following = [*documents[1:], *documents[:1]]
    return [
        [other[at] if at < len(other) else None for at in range(len(own))]
        for own, other in zip(documents, following, strict=True)
    ]
