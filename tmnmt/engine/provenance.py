"""Where every output token came from, said only as far as it can be said (docs/design.md,
*Provenance*).

    exact      p(y) = (1 - zeta) p_words(y) + sum over tau of zeta q_tau [y'_tau = y]
               p_words = (1 - lambda) p_gen + lambda p_recall
                         where the session cache is shallow, else p_gen
    effects    p_gen = p_plain + (p_cache - p_plain) + (p_gen - p_cache)
               in this order: another would differ

The origin is the largest mixture part; a generated token is from `cache` or `memory` only where
that effect is larger than all the plain model gave."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.piece import Piece
from tmnmt.filters.masked_pair import MaskedPair
from tmnmt.layers.collated import Pairs, Recent, Slots
from tmnmt.layers.contract import Collated
from tmnmt.layers.neighbours import Asked
from tmnmt.layers.trace import LayerTrace, Part, Trace
from tmnmt.segments import CacheSource, Match, MemorySource, Token
from tmnmt.spans import piece_spans
from tmnmt.vocab import Vocabulary

SMALLEST_WEIGHT = 1e-8  # of a source that is told: what is left out of a sum stays far below 1e-5
SMALLEST_READ = 0.01  # of a position or a slot that is told whatever its word
FUSION_SOURCES = 3  # the heaviest positions, where all of them are blended and none is copied


class Neighbouring:
    """The pairs that neighbours were read from, numbered behind the sentence's own `matches` as
    they are met."""

    def __init__(self, asked: Asked | None, matches: int) -> None:
        """asked: what was asked of the whole memory; None: nothing, and no neighbour is met."""
        self.asked, self.first = asked, matches
        self.pairs: dict[int, int] = {}  # number in the datastore -> index into Translation.matches

    def sources(
        self, weights: Tensor, positions: Tensor, smallest: float, word: int | None
    ) -> list[MemorySource]:
        """Where the neighbours at these `positions` (k,) were read, with these weights (k,)."""
        if self.asked is None:
            return []
        read = list[MemorySource]()
        for at in _read(weights, self.asked.ids(positions), smallest, word, positions >= 0):
            pair, position = self.asked.datastore.place(int(positions[at]))
            number = self.pairs.setdefault(pair, self.first + len(self.pairs))
            read.append(MemorySource(number, position, float(weights[at])))
        return read

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
    memory: Collated,
    sentence: int,
    near: Neighbouring,
    piece: Piece,
) -> tuple[Token, ...]:
    """One record a subword of an explained hypothesis of a piece; `sentence` is its row in
    `memory`, what it has read. Pairs of neighbours are noted in `near`."""
    traced = zip(hypothesis.ids, hypothesis.probabilities, hypothesis.traces, strict=True)
    memory = _in_pairs(memory, sentence, piece, vocab)
    return tuple(_token(*of_word, vocab, memory, sentence, near) for of_word in traced)


def _in_pairs(memory: Collated, sentence: int, piece: Piece, vocab: Vocabulary) -> Collated:
    """What was read with the positions of the pairs as they stand, not as the model has read them,
    with masks."""
    if memory.pairs is None:
        return memory
    position = memory.pairs.position.clone()
    for number, match in enumerate(piece.pairs):
        read = piece.segment.source.masked_pair(match.segment)
        if read.spans:
            own = torch.tensor(_places(read, match.segment.tgt, vocab), device=position.device)
            of_it = memory.pairs.mask[sentence] & (memory.pairs.pair[sentence] == number)
            position[sentence, of_it] = own[position[sentence, of_it]]
    return replace(memory, pairs=replace(memory.pairs, position=position))


def _places(pair: MaskedPair, own: str, vocab: Vocabulary) -> list[int]:
    """Of every subword of the target that was read, and of its end, the one that stands there in
    its own."""
    starts = [start for start, _ in piece_spans(vocab.pieces(own), own)]
    read = [start for start, _ in piece_spans(vocab.pieces(pair.tgt), pair.tgt)]
    within = [max(bisect_right(starts, pair.original(at)) - 1, 0) for at in read]
    return [*within, len(starts)]


def _token(
    word: int,
    probability: float,
    trace: Trace,
    vocab: Vocabulary,
    memory: Collated,
    sentence: int,
    near: Neighbouring,
) -> Token:
    cache, pairs, voters = (trace.layers.get(name) for name in ("cache", "tm", "knn"))
    slots_read = memory.slots
    if (nearest := trace.layers.get("nearest")) is not None:
        pairs, cache = _by_source(nearest, memory, sentence, word)
        slots_read = _as_slots(memory.recent)
    p_pairs, pairs_gate = _numbers(pairs.mixed if pairs is not None else None)
    p_voted, voted_gate = _numbers(voters.mixed if voters is not None else None)
    of_pairs = (1 - voted_gate) * pairs_gate  # what is mixed in later leaves less of the rest
    copy_gate, copied = of_pairs + voted_gate, of_pairs * p_pairs + voted_gate * p_voted
    p_recall, recall_gate = _numbers(cache.mixed if cache is not None else None)
    plain = float(trace.plain)
    p_cache, cache_gate = _numbers(cache.fused if cache is not None else None, plain)
    p_gen, fusion_gate = _numbers(pairs.fused if pairs is not None else None, p_cache)
    generated = (1 - copy_gate) * (1 - recall_gate) * p_gen
    recalled = (1 - copy_gate) * recall_gate * p_recall
    cache_effect = p_cache - plain
    fusion_effect = p_gen - p_cache
    sources: tuple[MemorySource, ...] = ()
    attention: tuple[MemorySource, ...] = ()
    slots: tuple[CacheSource, ...] = ()
    reading = [(part, gate) for part, gate in ((pairs, of_pairs), (voters, voted_gate)) if part]
    if reading:
        shares = [(part, gate / copy_gate if copy_gate else 1.0) for part, gate in reading]
        read = partial(_of_all, shares, memory, sentence, near)
        sources, attention = read(SMALLEST_WEIGHT, word), read(SMALLEST_READ)
        if fusion_gate > 0 and not copy_gate:
            sources = read(SMALLEST_WEIGHT)[:FUSION_SOURCES]
    if cache is not None and slots_read is not None:
        slots = _slots(cache.weights, slots_read, sentence, word, vocab)
    return Token(
        text=vocab.piece(word),
        origin=origin_of(generated, recalled, copied, plain, cache_effect, fusion_effect),
        probability=probability,
        generated=generated,
        recalled=recalled,
        copied=copied,
        copy_gate=copy_gate,
        recall_gate=recall_gate,
        fusion_gate=fusion_gate,
        cache_gate=cache_gate,
        plain=plain,
        cache_effect=cache_effect,
        fusion_effect=fusion_effect,
        sources=sources,
        attention=attention,
        slots=slots,
    )


def _by_source(
    nearest: LayerTrace, memory: Collated, sentence: int, word: int
) -> tuple[LayerTrace, LayerTrace]:
    """What was read of the pool at the positions of pairs, and at those of confirmed segments, each
    as a layer of its own: the second is mixed in before the first, with the share that is its."""
    share = nearest.mixed.gate if nearest.mixed is not None else nearest.weights.new_zeros(())
    count = memory.pairs.ids.shape[1] if memory.pairs is not None else 0
    every = count + (memory.recent.ids.shape[1] if memory.recent is not None else 0)
    weights = nearest.weights.new_zeros(every)
    if nearest.positions is not None:
        weights.scatter_add_(0, nearest.positions, nearest.weights)
    sources = [
        _source(weights[:count], memory.pairs, sentence, word),
        _source(weights[count:], memory.recent, sentence, word),
    ]
    of_pairs, of_recent = (share * mass for _, mass, _ in sources)
    gates = of_pairs, torch.where(of_recent > 0, of_recent / (1 - of_pairs), 0.0)
    traces = [
        LayerTrace(weights, None, Part(p, gate), None)
        for (weights, _, p), gate in zip(sources, gates, strict=True)
    ]
    return traces[0], traces[1]


def _source(
    weights: Tensor, positions: Pairs | Recent | None, sentence: int, word: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of one source's positions, made to sum to 1, their sum before, and that of those
    that hold the word."""
    mass = weights.sum()
    weights = weights / mass if mass > 0 else weights
    if positions is None:
        return weights, mass, weights.new_zeros(())
    ids = positions.ids[sentence].to(weights.device)
    return weights, mass, weights[ids == word].sum()


def _as_slots(recent: Recent | None) -> Slots | None:
    """Positions of confirmed segments as the slots that a token tells of."""
    if recent is None:
        return None
    nothing = recent.codes[..., :0]
    return Slots(nothing, nothing, recent.ids, recent.ids, recent.mask)


def _numbers(part: Part | None, absent: float = 0.0) -> tuple[float, float]:
    """Probability and gate of a part; without it `absent`, and a gate that is closed."""
    return (float(part.p), float(part.gate)) if part is not None else (absent, 0.0)


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


def _of_all(
    shares: Sequence[tuple[LayerTrace, float]],
    memory: Collated,
    sentence: int,
    near: Neighbouring,
    smallest: float,
    word: int | None = None,
) -> tuple[MemorySource, ...]:
    """What all layers that read the memory have read, each with its share of the weight."""
    read = [
        replace(source, weight=share * source.weight)
        for trace, share in shares
        for source in _sources(trace, memory, sentence, near, smallest, word)
    ]
    return tuple(sorted(read, key=lambda source: -source.weight))


def _sources(
    trace: LayerTrace,
    memory: Collated,
    sentence: int,
    near: Neighbouring,
    smallest: float,
    word: int | None = None,
) -> tuple[MemorySource, ...]:
    """The positions, of `word` alone where one is given, read with a weight of at least `smallest`,
    heaviest first."""
    read = list[MemorySource]()
    positions = trace.positions if trace.positions is not None else trace.weights[:0].long()
    own = len(trace.weights) - len(positions)
    if memory.pairs is not None and own:
        pairs, weights = memory.pairs, trace.weights[:own]
        for at in _read(weights, pairs.ids[sentence], smallest, word, pairs.mask[sentence]):
            pair, position = int(pairs.pair[sentence, at]), int(pairs.position[sentence, at])
            read.append(MemorySource(pair, position, float(weights[at])))
    read += near.sources(trace.weights[own:], positions, smallest, word)
    return tuple(sorted(read, key=lambda source: -source.weight))


def _read(
    weights: Tensor, ids: Tensor, smallest: float, word: int | None, mask: Tensor
) -> list[int]:
    """Which of the positions that `mask` lets pass are told."""
    chosen = (weights >= smallest) & mask.cpu()
    return (chosen if word is None else chosen & (ids.cpu() == word)).nonzero()[:, 0].tolist()


def _slots(
    weights: Tensor, cache: Slots, sentence: int, word: int, vocab: Vocabulary
) -> tuple[CacheSource, ...]:
    """The slots read from, the heaviest first; of those that hold `word` light ones, too: their sum
    is exact."""
    ids = cache.ids[sentence].cpu()
    smallest = torch.where(ids == word, SMALLEST_WEIGHT, SMALLEST_READ)
    slots = ((weights >= smallest) & cache.mask[sentence].cpu()).nonzero()[:, 0].tolist()
    sources = [
        CacheSource(slot, vocab.piece(int(ids[slot])), float(weights[slot])) for slot in slots
    ]
    return tuple(sorted(sources, key=lambda source: -source.weight))
