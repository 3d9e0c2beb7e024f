"""Segments that are translated in parts for the sake of their translation: the messages of an
argument, one at a time; and what has lost a sentence, again, one sentence at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tmnmt.codes.messages import Messages, messages
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text
from tmnmt.engine.coded import Coded
from tmnmt.engine.lookup import AT_ONCE
from tmnmt.engine.piece import Piece
from tmnmt.engine.pieces import pieces, sentences
from tmnmt.engine.retrieve import Answer
from tmnmt.index.fuzzy import edit_distance, score_of
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens
from tmnmt.vocab import Vocabulary


def by_message(piece: Piece, vocab: Vocabulary, longest: int) -> list[Piece]:
    """The messages of a segment as pieces of their own, not looked up yet; none where it has none.
    longest: subwords of a piece."""
    coded = piece.segment.coded
    if coded is None or coded.messages is None:
        return []
    offered = _by_message(coded.messages, piece.matches)
    return [
        part
        for message, matches in zip(coded.by_message(), offered, strict=True)
        for part in _of_message(piece, message, matches, vocab, longest)
    ]


def _by_message(own: Messages, matches: Sequence[Match]) -> list[tuple[Match, ...]]:
    """For every message the pairs of it in these matches of the whole: the messages with the same
    keys."""
    sides = [
        [messages(with_placeholders(side)) for side in _texts(match.segment)] for match in matches
    ]
    by_key = [
        (match.segment, src.by_key(), tgt.by_key())
        for match, (src, tgt) in zip(matches, sides, strict=True)
        if src is not None and tgt is not None
    ]
    return [
        tuple(
            _match(text.plain, segment, src[keys], tgt[keys])
            for segment, src, tgt in by_key
            if keys in src and keys in tgt
        )
        for keys, text in zip(own.keys, own.texts, strict=True)
    ]


def _texts(pair: Segment) -> tuple[Text, Text]:
    return Text(pair.src, pair.src_codes), Text(pair.tgt, pair.tgt_codes)


def _match(text: str, segment: Segment, src: Text, tgt: Text) -> Match:
    tokens, theirs = match_tokens(text), match_tokens(src.plain)
    edits, longest = edit_distance(tokens, theirs), max(len(tokens), len(theirs), 1)
    own = replace(segment, src=src.plain, tgt=tgt.plain, src_codes=src.codes, tgt_codes=tgt.codes)
    return Match(own, score_of(edits, longest), edits)


def _of_message(
    piece: Piece, message: Coded, matches: tuple[Match, ...], vocab: Vocabulary, longest: int
) -> list[Piece]:
    reads = pieces(message.read.strip(), vocab, longest)
    segment = replace(
        piece.segment,
        text=message.source.plain,
        coded=message,
        size=len(reads),
        lower_ids=(),
        similar=[],
        message_matches=matches,
    )
    parts = zip(message.pieces(reads), reads, strict=True)
    return [
        Piece(segment, text, read, _ids(read, piece, vocab), number, "part", piece.context)
        for number, (text, read) in enumerate(parts)
    ]


def one_by_one(piece: Piece, written: str, vocab: Vocabulary) -> list[Piece]:
    """The sentences of a whole segment as pieces of it, not looked up yet, where its translation
    has fewer; none where it has as many, or where a memory has the segment nearly as it is."""
    if not piece.is_whole or piece.number:
        return []
    read = sentences(piece.read)
    if len(sentences(written)) >= len(read) or _is_known(piece):
        return []
    coded = piece.segment.coded
    own = read if coded is None else coded.pieces(read)
    segment = replace(piece.segment, size=len(read), similar=[Answer(piece.matches, None)])
    return [
        Piece(segment, own[number], text, _ids(text, piece, vocab), number, "part", piece.context)
        for number, text in enumerate(read)
    ]


def _is_known(piece: Piece) -> bool:
    return any(match.score >= AT_ONCE for match in piece.matches)


def _ids(text: str, piece: Piece, vocab: Vocabulary) -> tuple[int, ...]:
    """The subwords of a part, which asks for the same language as its segment."""
    own, of_whole = vocab.encode_source(text), vocab.encode_source(piece.read)
    is_tagged = piece.ids[:1] != tuple(of_whole[:1])
    return (*piece.ids[:1], *own[1:]) if is_tagged else tuple(own)
