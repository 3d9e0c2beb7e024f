"""Sentences that a translation has lost: what has fewer of them than its source is translated
again, one sentence at a time."""

from __future__ import annotations

from dataclasses import replace

from tmnmt.engine.lookup import AT_ONCE
from tmnmt.engine.pieces import sentences
from tmnmt.engine.schedule import Piece
from tmnmt.vocab import Vocabulary


def one_by_one(piece: Piece, written: str, vocab: Vocabulary) -> list[Piece]:
    """The sentences of a whole segment as pieces of it, not looked up yet, where its translation
    has fewer; none where it has as many, or where a memory has the segment nearly as it is."""
    if piece.text != piece.whole or piece.part:
        return []
    matches = piece.matches or ()
    read = sentences(piece.read)
    if len(sentences(written)) >= len(read) or any(match.score >= AT_ONCE for match in matches):
        return []
    own = read if piece.coded is None else piece.coded.pieces(read)
    before = piece.ids[: len(piece.ids) - len(vocab.encode_source(piece.read))]  # a tag
    of_whole = [matches]
    return [
        replace(
            piece,
            text=own[number],
            masked=text,
            ids=(*before, *vocab.encode_source(text)),
            part=number,
            again=True,
            matches=None,
            keys=(),
            within=(),
            of_whole=of_whole,
        )
        for number, text in enumerate(read)
    ]
