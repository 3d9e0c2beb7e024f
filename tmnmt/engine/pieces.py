"""Cuts a segment into pieces where it is longer than the model has ever seen."""

from __future__ import annotations

import re

from tmnmt.vocab import Vocabulary

# Where a text may be cut, the best places first: after a sentence, after a clause, between words.
_BOUNDARIES = (
    re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])"),
    re.compile(r"(?<=[,;:)\]—–])\s+|(?<=[、，；：])"),
    re.compile(r"\s+"),
)


def pieces(text: str, vocab: Vocabulary, longest: int) -> list[str]:
    """Cuts a text into consecutive pieces. It is cut after sentences where that is enough, and
    otherwise after clauses, between words, or anywhere within a word that is longer itself. Only
    white space at the cuts is lost.

    text: the text.
    vocab: the vocabulary of the model.
    longest: how many subwords a piece has at most."""
    if fits(text, vocab, longest):
        return [text]
    parts = _cut(text, vocab, longest, 0)
    return [piece.strip() for piece in _join(parts, vocab, longest) if piece.strip()]


def fits(text: str, vocab: Vocabulary, longest: int) -> bool:
    """Whether a text has at most so many subwords. A text that is much too long is judged by its
    characters, because encoding it would take a thousand times its memory.

    text: the text.
    vocab: the vocabulary of the model.
    longest: how many subwords it may have."""
    if (
        len(text) > longest * vocab.longest
        and len(text) - text.count(" ") > longest * vocab.longest
    ):
        return False
    return len(vocab.encode_source(text)) <= longest


def _cut(text: str, vocab: Vocabulary, longest: int, boundary: int) -> list[str]:
    """Parts that fit; put together again they are `text`."""
    if fits(text, vocab, longest):
        return [text]
    if boundary == len(_BOUNDARIES):
        # A character is at most four bytes and a byte at most one subword; one more may mark the
        # start of a word.
        size = max(1, (longest - 1) // 4)
        return [text[start : start + size] for start in range(0, len(text), size)]
    ends = [match.end() for match in _BOUNDARIES[boundary].finditer(text)]
    spans = zip([0, *ends], [*ends, len(text)], strict=True)
    parts = [text[start:end] for start, end in spans if end > start]
    return [
        piece
        for part in parts
        for piece in _join(_cut(part, vocab, longest, boundary + 1), vocab, longest)
    ]


def _join(parts: list[str], vocab: Vocabulary, longest: int) -> list[str]:
    """Neighbours together as long as they fit."""
    merged = parts[:1]
    for part in parts[1:]:
        if fits(merged[-1] + part, vocab, longest):
            merged[-1] += part
        else:
            merged.append(part)
    return merged
