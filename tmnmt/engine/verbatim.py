"""A segment that the memory holds itself: its translation there as it stands, as translators expect
of an exact match.

The model is not asked: probability 1, score 0 (the logarithm of it), every subword copied from that
pair, and read from where it stands there, with weight 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tmnmt.codes.record import Code, inline, same
from tmnmt.segments import Match, MemorySource, Token, Translation
from tmnmt.vocab import Vocabulary


def agreeing(matches: Sequence[Match], codes: Sequence[Code] | None) -> Sequence[Match]:
    """Those whose source has these codes, but for placeholders that are written in the text; where
    there are none, or no codes are given, all."""
    if codes is None:
        return matches
    own = inline(codes)
    return [m for m in matches if same(inline(m.segment.src_codes), own)] or matches


def commonest(matches: Sequence[Match]) -> Match | None:
    """Of exact matches, which may have several targets, the newest of the most frequent target; of
    targets that are as frequent the one with the newest match. None where there is none."""
    times = Counter(match.segment.tgt for match in matches)
    # of equal ones the first, which every index answers with the newest and then the smallest id
    # first
    return max(matches, key=lambda m: (times[m.segment.tgt], m.segment.changed), default=None)


def as_it_stands(
    text: str,
    match: Match,
    others: Sequence[Match],
    vocab: Vocabulary | None = None,
    explain: bool = False,
) -> Translation:
    """The target of `match`, which is among the matches that are told; with `explain` the origin of
    every subword."""
    matches = tuple(others) if match in others else (match, *others)
    number, target = matches.index(match), match.segment.tgt
    ids = vocab.encode(target) if vocab is not None and explain else []
    tokens = tuple(
        _copied(vocab.piece(word), MemorySource(number, at, 1.0))
        for at, word in enumerate(ids)
        if vocab
    )
    return Translation(text, target, 0.0, matches, tokens, "memory")


def _copied(text: str, source: MemorySource) -> Token:
    return Token(
        text=text,
        origin="memory",
        probability=1.0,
        generated=0.0,
        recalled=0.0,
        copied=1.0,
        copy_gate=1.0,
        recall_gate=0.0,
        fusion_gate=0.0,
        cache_gate=0.0,
        plain=0.0,
        cache_effect=0.0,
        fusion_effect=0.0,
        sources=(source,),
        attention=(source,),
    )
