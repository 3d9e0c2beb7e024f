"""Session caches that hold something else than what was translated: what a translator has confirmed, or another
document's past, which a document's own is compared with."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from tmnmt.engine import Translator
from tmnmt.memories.cache import CacheContents
from tmnmt.schedule import Piece
from tmnmt.segments import Translation

Pair = tuple[str, str]


class OtherCache(Translator):
    """Remembers nothing of what it translates: after a segment, its document's cache gets what `written` has for it.

    written: for every segment of the stream, in order, a source and its translation; None: nothing. Their states are
    those of teacher forcing."""

    written: Sequence[Pair | None] = ()

    def translate_batch(
        self, batch: Sequence[Piece], caches: Sequence[CacheContents], explain: bool = False
    ) -> list[tuple[Translation, int]]:
        """As a translator's, but for what is remembered."""
        done = super().translate_batch(batch, copy.deepcopy(list(caches)), explain)
        pairs = [self.written[piece.segment] if piece.part == 0 else None for piece in batch]
        found = self.keys.keys_of([pair] if pair is not None else [] for pair in pairs)
        for cache, some in zip(caches, found, strict=True):
            for keys in some:
                cache.write(keys.contexts, keys.hiddens, keys.ids)
        return done


def at_same_place(documents: Sequence[Sequence[Pair]]) -> list[list[Pair | None]]:
    """For every segment of every document the pair at its place in the next document, after the last the first."""
    following = [*documents[1:], *documents[:1]]
    return [
        [other[at] if at < len(other) else None for at in range(len(own))]
        for own, other in zip(documents, following, strict=True)
    ]
