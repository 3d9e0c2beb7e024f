"""Where every output token came from, said only as far as it can be said (docs/design.md,
*Provenance*).

    exact      p(y) = (1 - zeta) p_words(y) + sum over tau of zeta q_tau [y'_tau = y]
               p_words = (1 - lambda) p_gen + lambda p_recall where the session cache is shallow,
               else p_gen
    effects    p_gen = p_plain + (p_cache - p_plain) + (p_gen - p_cache)     in this order: another
    would differ

The origin is the largest mixture part; a generated token is from `cache` or `memory` only where
that effect is larger than all the plain model gave."""

from __future__ import annotations

import torch
from torch import Tensor

from tmnmt.engine.beam_search import Hypothesis, TokenTrace
from tmnmt.layers.base import CacheState, MemoryState
from tmnmt.layers.neighbours import Asked
from tmnmt.segments import CacheSource, Match, MemorySource, Token
from tmnmt.vocab import Vocabulary

SMALLEST_WEIGHT = 1e-8  # of a source that is told: what is left out of a sum stays far below 1e-5
SMALLEST_READ = 0.01  # of a position or a slot that is told whatever its word
TOLD_OF_FUSION = 3  # the heaviest positions, where all of them are blended and none is copied


class Neighbouring:
    """The pairs that neighbours were read from, numbered behind the sentence's own `matches` as
    they are met."""

    def __init__(self, asked: Asked | None, matches: int) -> None:
        self.asked, self.first = asked, matches
        self.pairs: dict[int, int] = {}  # number in the datastore -> index into Translation.matches

    def place(self, position: int) -> tuple[int, int]:
        """The index into Translation.matches of what stands there in the datastore, and its subword
        position."""
        assert self.asked is not None
        pair, at = self.asked.datastore.place(position)
        return self.pairs.setdefault(pair, self.first + len(self.pairs)), at

    def matches(self, sentence: int) -> tuple[Match, ...]:
        """Those pairs as matches of a sentence of the batch, in the order of their numbers."""
        return (
            tuple(self.asked.match(sentence, pair) for pair in self.pairs)
            if self.asked is not None
            else ()
        )


def tokens_of(
    hypothesis: Hypothesis,
    vocab: Vocabulary,
    memory: MemoryState,
    sentence: int,
    near: Neighbouring,
) -> tuple[Token, ...]:
    """One record a subword of an explained hypothesis; `sentence` is its row in `memory`, what it
    has read. Pairs of neighbours are noted in `near`."""
    traced = zip(hypothesis.ids, hypothesis.traces, strict=True)
    return tuple(_token(word, trace, vocab, memory, sentence, near) for word, trace in traced)


def _token(
    word: int,
    trace: TokenTrace,
    vocab: Vocabulary,
    memory: MemoryState,
    sentence: int,
    near: Neighbouring,
) -> Token:
    generated = (1 - trace.copy_gate) * (1 - trace.recall_gate) * trace.p_gen
    recalled = (1 - trace.copy_gate) * trace.recall_gate * trace.p_recall
    copied = trace.copy_gate * trace.p_copy
    cache_effect = trace.p_cache - trace.p_plain
    fusion_effect = trace.p_gen - trace.p_cache
    origin = origin_of(generated, recalled, copied, trace.p_plain, cache_effect, fusion_effect)
    sources: tuple[MemorySource, ...] = ()
    attention: tuple[MemorySource, ...] = ()
    slots: tuple[CacheSource, ...] = ()
    if trace.q is not None:
        sources = _sources(trace, memory, sentence, near, SMALLEST_WEIGHT, word)
        attention = _sources(trace, memory, sentence, near, SMALLEST_READ)
        if trace.fusion_gate > 0 and not trace.copy_gate:
            sources = _sources(trace, memory, sentence, near, SMALLEST_WEIGHT)[:TOLD_OF_FUSION]
    if memory.cache is not None and trace.slots is not None:
        slots = _slots(trace.slots, memory.cache, sentence, word, vocab)
    return Token(
        vocab.piece(word),
        origin,
        trace.probability,
        generated,
        recalled,
        copied,
        trace.copy_gate,
        trace.recall_gate,
        trace.fusion_gate,
        trace.cache_gate,
        trace.p_plain,
        cache_effect,
        fusion_effect,
        sources,
        attention,
        slots,
    )


def origin_of(
    generated: float,
    recalled: float,
    copied: float,
    plain: float,
    cache_effect: float,
    fusion_effect: float,
) -> str:
    """ "model", "memory" or "cache"."""
    if max(copied, recalled) > generated:
        return "memory" if copied >= recalled else "cache"
    effect, name = max((fusion_effect, "memory"), (cache_effect, "cache"))
    return name if effect > plain else "model"


def _sources(
    trace: TokenTrace,
    memory: MemoryState,
    sentence: int,
    near: Neighbouring,
    smallest: float,
    word: int | None = None,
) -> tuple[MemorySource, ...]:
    """The positions, of `word` alone where one is given, read with a weight of at least `smallest`,
    heaviest first."""
    assert trace.q is not None
    read = list[MemorySource]()
    found = trace.found if trace.found is not None else trace.q[:0].long()
    own = len(trace.q) - len(found)
    pairs, neighbours = trace.q[:own], trace.q[own:]
    if memory.tm is not None:
        tm = memory.tm
        for at in _read(pairs, tm.ids[sentence], smallest, word, tm.mask[sentence]):
            read.append(
                MemorySource(
                    int(tm.pair[sentence, at]), int(tm.position[sentence, at]), float(pairs[at])
                )
            )
    if near.asked is not None:
        for at in _read(neighbours, near.asked.ids(found), smallest, word, found >= 0):
            read.append(MemorySource(*near.place(int(found[at])), float(neighbours[at])))
    return tuple(sorted(read, key=lambda source: -source.weight))


def _read(
    weights: Tensor, ids: Tensor, smallest: float, word: int | None, mask: Tensor
) -> list[int]:
    """Which of the positions that `mask` lets pass are told."""
    wanted = (weights >= smallest) & mask.cpu()
    return (wanted if word is None else wanted & (ids.cpu() == word)).nonzero()[:, 0].tolist()


def _slots(
    weights: Tensor, cache: CacheState, sentence: int, word: int, vocab: Vocabulary
) -> tuple[CacheSource, ...]:
    """The slots read from, the heaviest first; of those that hold `word` light ones, too: their sum
    is exact."""
    ids = cache.ids[sentence].cpu()
    smallest = torch.where(ids == word, SMALLEST_WEIGHT, SMALLEST_READ)
    wanted = ((weights >= smallest) & cache.mask[sentence].cpu()).nonzero()[:, 0].tolist()
    found = [
        CacheSource(slot, vocab.piece(int(ids[slot])), float(weights[slot])) for slot in wanted
    ]
    return tuple(sorted(found, key=lambda source: -source.weight))
