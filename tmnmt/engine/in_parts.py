"""Segments that are translated in parts for the sake of their translation: the messages of an
argument, one at a time; and what has lost a sentence, again, one sentence at a time."""

from __future__ import annotations

from dataclasses import replace

from tmnmt.engine.coded import Coded
from tmnmt.engine.lookup import AT_ONCE
from tmnmt.engine.pieces import pieces, sentences
from tmnmt.engine.schedule import Piece
from tmnmt.vocab import Vocabulary


def by_message(piece: Piece, vocab: Vocabulary, longest: int) -> list[Piece]:
    """The messages of a segment as pieces of their own, not looked up yet; none where it has none,
    or where a memory has the segment nearly as it is. longest: subwords of a piece."""
    if piece.coded is None or piece.coded.messages is None or _is_known(piece):
        return []
    return [
        part
        for message in piece.coded.by_message()
        for part in _of_message(piece, message, vocab, longest)
    ]


def _of_message(piece: Piece, message: Coded, vocab: Vocabulary, longest: int) -> list[Piece]:
    reads = pieces(message.read.strip(), vocab, longest)
    own = replace(
        piece,
        whole=message.source.plain,
        coded=message,
        again=True,
        matches=None,
        exact=None,
        keys=(),
        within=(),
        of_whole=[],
    )
    return [
        replace(own, text=text, masked=read, ids=_ids(read, piece, vocab), part=part)
        for part, (text, read) in enumerate(zip(message.pieces(reads), reads, strict=True))
    ]


def one_by_one(piece: Piece, written: str, vocab: Vocabulary) -> list[Piece]:
    """The sentences of a whole segment as pieces of it, not looked up yet, where its translation
    has fewer; none where it has as many, or where a memory has the segment nearly as it is."""
    if piece.text != piece.whole or piece.part:
        return []
    read = sentences(piece.read)
    if len(sentences(written)) >= len(read) or _is_known(piece):
        return []
    own = read if piece.coded is None else piece.coded.pieces(read)
    of_whole = [piece.matches or ()]
    return [
        replace(
            piece,
            text=own[number],
            masked=text,
            ids=_ids(text, piece, vocab),
            part=number,
            again=True,
            matches=None,
            keys=(),
            within=(),
            of_whole=of_whole,
        )
        for number, text in enumerate(read)
    ]


def _is_known(piece: Piece) -> bool:
    return any(match.score >= AT_ONCE for match in piece.matches or ())


def _ids(text: str, piece: Piece, vocab: Vocabulary) -> tuple[int, ...]:
    """The subwords of a part, which asks for the same language as its segment."""
    own, of_whole = vocab.encode_source(text), vocab.encode_source(piece.read)
    is_tagged = piece.ids[:1] != tuple(of_whole[:1])
    return (*piece.ids[:1], *own[1:]) if is_tagged else tuple(own)
