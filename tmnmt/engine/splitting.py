"""Segments that are translated in parts for the sake of their translation. Some are translated as
several texts, such as the messages of an argument. Others are translated again, one sentence at a
time, because their translation has lost a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tmnmt.codes.record import Text
from tmnmt.engine.lookup import AT_ONCE
from tmnmt.engine.piece import Piece
from tmnmt.engine.pieces import pieces
from tmnmt.engine.retrieve import Answer
from tmnmt.index.fuzzy import edit_distance, score_of
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

if TYPE_CHECKING:
    from tmnmt.engine.source_segment import SourceSegment
    from tmnmt.filters.contract import Split
    from tmnmt.vocab import Vocabulary


def split_texts(piece: Piece, vocab: Vocabulary, longest: int) -> list[Piece]:
    """The texts as which a segment is translated, as separate pieces that are not looked up yet;
    none where it is translated as it is.

    piece: a piece of the segment.
    vocab: the vocabulary of the model.
    longest: how many subwords a piece has at most."""
    source = piece.segment.source
    if source.split is None:
        return []
    offered = _offered(source.split, piece.matches)
    if source.split.is_optional and not any(offered) and _is_alike(piece):
        return []
    return [
        part
        for text, matches in zip(source.split_segments(), offered, strict=True)
        for part in _of_text(piece, text, matches, vocab, longest)
    ]


def _is_alike(piece: Piece) -> bool:
    """Whether a memory has a pair that is like all of a piece, which can be translated at once."""
    return any(match.score >= AT_ONCE for match in piece.matches)


def _offered(split: Split, matches: Sequence[Match]) -> list[tuple[Match, ...]]:
    """The pairs that these matches of the whole have for every text."""
    rows = [(match.segment, split.pairs(*_sides(match.segment))) for match in matches]
    return [
        tuple(
            _match(text.plain, segment, *pair)
            for segment, of_match in rows
            if (pair := of_match[number]) is not None
        )
        for number, text in enumerate(split.texts)
    ]


def _sides(pair: Segment) -> tuple[Text, Text]:
    return Text(pair.src, pair.src_codes), Text(pair.tgt, pair.tgt_codes)


def _match(text: str, segment: Segment, src: Text, tgt: Text) -> Match:
    tokens, theirs = match_tokens(text), match_tokens(src.plain)
    edits, longest = edit_distance(tokens, theirs), max(len(tokens), len(theirs), 1)
    part = replace(segment, src=src.plain, tgt=tgt.plain, src_codes=src.codes, tgt_codes=tgt.codes)
    return Match(part, score_of(edits, longest), edits)


def _of_text(
    piece: Piece,
    source: SourceSegment,
    matches: tuple[Match, ...],
    vocab: Vocabulary,
    longest: int,
) -> list[Piece]:
    reads = pieces(source.read.strip(), vocab, longest)
    segment = replace(
        piece.segment,
        source=source,
        size=len(reads),
        reading_ids=(),
        similar=[],
        message_matches=matches,
    )
    parts = zip(source.pieces(reads), reads, strict=True)
    return [
        Piece(
            segment, text, model_text, _ids(model_text, piece, vocab), number, "part", piece.context
        )
        for number, (text, model_text) in enumerate(parts)
    ]


def retried_parts(piece: Piece, output: str, vocab: Vocabulary) -> list[Piece]:
    """The sentences of a whole segment, as pieces of it that are not looked up yet, where its
    translation has fewer sentences. There are none where the translation has as many, or where a
    memory has the segment nearly as it is.

    piece: the piece.
    output: what the model wrote for it.
    vocab: the vocabulary of the model."""
    source = piece.segment.source
    if not piece.is_whole or piece.number:
        return []
    sentences = source.retry(output)
    if not sentences or _is_alike(piece):
        return []
    segment = replace(piece.segment, size=len(sentences), similar=[Answer(piece.matches, None)])
    parts = zip(source.pieces(sentences), sentences, strict=True)
    return [
        Piece(segment, source_text, text, _ids(text, piece, vocab), number, "part", piece.context)
        for number, (source_text, text) in enumerate(parts)
    ]


def _ids(text: str, piece: Piece, vocab: Vocabulary) -> tuple[int, ...]:
    """The subwords of a part, which asks for the same language as its segment."""
    ids, of_whole = vocab.encode_source(text), vocab.encode_source(piece.model_text)
    is_tagged = piece.ids[:1] != tuple(of_whole[:1])
    return (*piece.ids[:1], *ids[1:]) if is_tagged else tuple(ids)
