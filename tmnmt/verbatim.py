"""A segment that the memory holds itself: its translation there as it stands, as translators expect of an exact match.

The model is not asked: probability 1, score 0 (the logarithm of it), every subword copied from that pair, and read from
where it stands there, with weight 1.
"""

from __future__ import annotations

from tmnmt.schedule import Piece
from tmnmt.segments import Match, MemorySource, Token, Translation
from tmnmt.text import normalise
from tmnmt.vocab import Vocabulary


def exact_match(piece: Piece) -> int | None:
    """The number of the first match whose source has the very match tokens of `piece`; None where there is none."""
    for number, match in enumerate(piece.matches or ()):
        # a part of a long segment carries the whole's matches, which are no translations of the part
        if match.edits == 0 and (piece.text == piece.whole or _same(match, piece.text)):
            return number
    return None


def as_it_stands(piece: Piece, number: int, vocab: Vocabulary, explain: bool) -> Translation:
    """The target of match `number`; with `explain` the origin of every subword."""
    matches = piece.matches or ()
    target = matches[number].segment.tgt
    ids = vocab.encode(target) if explain else []
    tokens = tuple(_copied(vocab.piece(word), MemorySource(number, at, 1.0)) for at, word in enumerate(ids))
    return Translation(piece.text, target, 0.0, matches, tokens)


def _copied(text: str, source: MemorySource) -> Token:
    return Token(text, "memory", 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, (source,), (source,))


def _same(match: Match, text: str) -> bool:
    return normalise(match.segment.src) == normalise(text)
