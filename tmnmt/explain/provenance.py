"""Where every output token came from, as far as that can be said (docs/contracts/provenance.md).

    exact      p(y) = (1 - zeta) p_words(y) + sum over tau of zeta q_tau [y'_tau = y]
               p_words = (1 - lambda) p_gen + lambda p_recall
                         where the session cache is shallow, else p_gen
    effects    p_gen = p_plain + (p_cache - p_plain) + (p_gen - p_cache)
               in this order: another would differ

The origin is the largest mixture part; a generated token is from `cache` or `memory` only where
that effect is larger than all the plain model gave."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import torch
from torch import Tensor

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.extension import DecodedPiece, Extension
from tmnmt.engine.piece import NO_MATCHES, Piece
from tmnmt.filters.masked_pair import MaskedPair
from tmnmt.layers.combine import LAYERS
from tmnmt.layers.contract import Collated, MemorySearch, NearDraft
from tmnmt.layers.trace import Trace
from tmnmt.layers.traced import HeldWords, TracedSource
from tmnmt.models.folder import Model
from tmnmt.segments import (
    CacheSource,
    Match,
    MemorySource,
    Provenance,
    ReadSource,
    Token,
    Translation,
    Work,
    shares_of,
)
from tmnmt.spans import piece_spans
from tmnmt.vocab import Vocabulary

SMALLEST_WEIGHT = 1e-8  # of a source that is told: what is left out of a sum stays far below 1e-5
SMALLEST_READ = 0.01  # of a position or a slot that is told whatever its word
FUSION_SOURCES = 3  # the heaviest positions, where all of them are blended and none is copied


class Neighbouring:
    """The pairs that neighbours were read from. They are numbered behind the matches of the
    sentence, in the order in which they are met."""

    def __init__(self, queries: MemorySearch | None, sentence: int, piece: Piece) -> None:
        """queries: what was asked of the whole memory at every word; None where nothing was.
        sentence: the number of the sentence among those that asked.
        piece: the sentence. What was found near to its draft was read as one more pair behind its
        matches."""
        self.queries, self.sentence, self.first = queries, sentence, len(piece.pairs)
        self.near_draft: NearDraft | None = (piece.retrieved or NO_MATCHES).neighbours
        if self.near_draft is not None:
            self.queries, self.sentence = self.near_draft.search, self.near_draft.sentence
        self.pairs: dict[int, int] = {}  # number in the datastore -> index into Translation.matches

    def place(self, pair: int, position: int) -> tuple[int, int]:
        """The number of a pair that was read, and the position in it.

        pair: the number of the pair as it was read.
        position: the position as it was read."""
        if self.near_draft is None or pair != self.first:
            return pair, position
        return self._place(self.near_draft.search, int(self.near_draft.positions[position]))

    def _place(self, queries: MemorySearch, position: int) -> tuple[int, int]:
        """The same of a position in the whole memory."""
        pair, place = queries.place(position)
        return self.pairs.setdefault(pair, self.first + len(self.pairs)), place

    def sources(
        self, weights: Tensor, positions: Tensor, smallest: float, word: int | None
    ) -> list[MemorySource]:
        """Where neighbours were read.

        weights: (k,) the weights with which they were read.
        positions: (k,) their positions in the datastore.
        smallest: the smallest weight that is given.
        word: the subword that they must hold; None takes all."""
        if self.queries is None:
            return []
        sources = list[MemorySource]()
        for index in _read(weights, self.queries.ids(positions), smallest, word, positions >= 0):
            place = self._place(self.queries, int(positions[index]))
            sources.append(MemorySource(*place, float(weights[index])))
        return sources

    @property
    def matches(self) -> tuple[Match, ...]:
        """The pairs that were met, as matches, in the order of their numbers."""
        if self.queries is None:
            return ()
        return tuple(self.queries.match(self.sentence, pair) for pair in self.pairs)

    @property
    def counts(self) -> tuple[int, int]:
        """How many times neighbours were looked for, and how many were found."""
        return self.queries.counts(self.sentence) if self.queries is not None else (0, 0)


class TokenProvenance(Extension):
    """Adds the tokens of explained translations, each with its origin."""

    def __init__(self, vocab: Vocabulary) -> None:
        """vocab: the vocabulary of the model."""
        self._vocab = vocab

    def annotate(self, translation: Translation, decoded: DecodedPiece | None) -> Translation:
        """A translation with its tokens, and with all pairs that were read for it, where an
        explanation was asked for."""
        if decoded is None or not decoded.hypothesis.traces:
            return translation
        piece, row = decoded.piece, decoded.row
        neighbouring = Neighbouring(decoded.collated.search, row, piece)
        hypothesis, collated = decoded.hypothesis, decoded.collated
        tokens = tokens_of(hypothesis, self._vocab, collated, row, neighbouring, piece)
        if decoded.reading is not None:
            texts = decoded.reading.undo.restore_tokens([token.text for token in tokens])
            pairs = zip(tokens, texts, strict=True)
            tokens = tuple(replace(token, text=text) for token, text in pairs)
        matches = (*piece.pairs, *neighbouring.matches)
        work = _work_of(piece, neighbouring)
        return replace(translation, tokens=tokens, matches=matches, work=work)


def _work_of(piece: Piece, neighbouring: Neighbouring) -> Work:
    """How much every stage has done for a piece."""
    retrieved = piece.retrieved or NO_MATCHES
    positions = sum(len(keys.ids) for keys in retrieved.keys)
    return Work(retrieved.work, len(retrieved.keys), positions, *neighbouring.counts)


def make_provenance(model: Model, options: TranslationOptions) -> TokenProvenance:
    """What explains the translations of a model.

    model: the model.
    options: the options of its translations, which do not matter."""
    return TokenProvenance(model.vocab)


def tokens_of(
    hypothesis: Hypothesis,
    vocab: Vocabulary,
    memory: Collated,
    sentence: int,
    neighbouring: Neighbouring,
    piece: Piece,
) -> tuple[Token, ...]:
    """Makes one token of every subword of an explained hypothesis.

    hypothesis: the hypothesis.
    vocab: the vocabulary of the model.
    memory: what the layers have read for the batch.
    sentence: the row of the sentence in the batch.
    neighbouring: what takes note of the pairs of neighbours.
    piece: the piece that the hypothesis translates."""
    traced = zip(hypothesis.ids, hypothesis.probabilities, hypothesis.traces, strict=True)
    memory = _in_pairs(memory, sentence, piece, vocab)
    return tuple(_token(*of_word, vocab, memory, sentence, neighbouring) for of_word in traced)


def _in_pairs(memory: Collated, sentence: int, piece: Piece, vocab: Vocabulary) -> Collated:
    """What was read with the positions of the pairs as they stand, not as the model has read them,
    with masks."""
    if memory.pairs is None:
        return memory
    position = memory.pairs.position.clone()
    for number, match in enumerate(piece.pairs):
        masked = piece.segment.source.masked_pair(match.segment)
        if masked.spans:
            places = torch.tensor(_places(masked, match.segment.tgt, vocab), device=position.device)
            of_it = memory.pairs.mask[sentence] & (memory.pairs.pair[sentence] == number)
            position[sentence, of_it] = places[position[sentence, of_it]]
    return replace(memory, pairs=replace(memory.pairs, position=position))


def _places(pair: MaskedPair, target: str, vocab: Vocabulary) -> list[int]:
    """For every subword of the target that was read, and for its end, the subword that stands there
    in the target as it is."""
    starts = [start for start, _ in piece_spans(vocab.pieces(target), target)]
    masked_starts = [start for start, _ in piece_spans(vocab.pieces(pair.tgt), pair.tgt)]
    indices = [max(bisect_right(starts, pair.original(start)) - 1, 0) for start in masked_starts]
    return [*indices, len(starts)]


def _token(
    word: int,
    probability: float,
    trace: Trace,
    vocab: Vocabulary,
    memory: Collated,
    sentence: int,
    neighbouring: Neighbouring,
) -> Token:
    parts = [
        part
        for name, layer in trace.layers.items()
        for part in LAYERS[name].traced_sources(name, layer, memory, sentence, word)
    ]
    blended, p_gen = _blended(parts, float(trace.plain))
    mixed, rest = _mixed(parts)
    provenance, generated = (*blended, *mixed), rest * p_gen
    token = Token(
        vocab.piece(word),
        origin_of(generated, float(trace.plain), provenance),
        probability,
        generated,
        float(trace.plain),
        provenance,
        slots=tuple(
            slot
            for part in parts
            if part.source == "cache" and part.slots is not None
            for slot in _slots(part.trace.weights, part.slots, sentence, word, vocab)
        ),
    )
    reading = [part for part in parts if part.source == "memory"]
    if not reading:
        return token
    collect = partial(_of_all, _shares(parts), sentence, neighbouring)
    sources, attention = collect(SMALLEST_WEIGHT, word), collect(SMALLEST_READ)
    if token.fusion_gate > 0 and not token.copy_gate:
        sources = collect(SMALLEST_WEIGHT)[:FUSION_SOURCES]
    return replace(token, sources=sources, attention=attention)


def _blended(parts: Iterable[TracedSource], plain: float) -> tuple[list[Provenance], float]:
    """What was blended into the state, in order, and the generator's probability after it."""
    blended, p = list[Provenance](), plain
    for part in parts:
        if (fused := part.trace.fused) is not None:
            blend, gate = float(fused.p), float(fused.gate)
            blended.append(Provenance(part.blending, blend - p, gate, part.source, is_mixed=False))
            p = blend
    return blended, p


def _mixed(parts: Iterable[TracedSource]) -> tuple[list[Provenance], float]:
    """What was mixed into the probabilities, in order, and the share that is left of the rest."""
    mixed = [(part, traced) for part in parts if (traced := part.trace.mixed) is not None]
    shares = shares_of([float(traced.gate) for _, traced in mixed])
    return [
        Provenance(
            part.mixing, share * float(traced.p), float(traced.gate), part.source, is_mixed=True
        )
        for (part, traced), share in zip(mixed, shares, strict=True)
    ], 1 - sum(shares)


def _shares(parts: Sequence[TracedSource]) -> list[tuple[TracedSource, float]]:
    """The entries that read the memory, each with its share of what was mixed in from it; the share
    is 1 where nothing was mixed in."""
    gates = [
        float(part.trace.mixed.gate) if part.trace.mixed is not None else 0.0 for part in parts
    ]
    shares = zip(parts, shares_of(gates), strict=True)
    reading = [(part, share) for part, share in shares if part.source == "memory"]
    total = sum(share for _, share in reading)
    return [(part, share / total if total else 1.0) for part, share in reading]


def origin_of(generated: float, plain: float, provenance: Sequence[Provenance]) -> str:
    """The origin of a subword: "model", "memory" or "cache".

    generated: the part of its probability that the model generates.
    plain: the probability that the model gives it without any memory layer.
    provenance: what every memory layer did."""
    mixed: dict[str, float] = dict.fromkeys(get_args(ReadSource), 0.0)
    blended = dict(mixed)
    for entry in provenance:
        (mixed if entry.is_mixed else blended)[entry.source] += entry.weight
    source = max(mixed, key=lambda name: mixed[name])
    if mixed[source] > generated:
        return source
    source = max(blended, key=lambda name: blended[name])
    return source if blended[source] > plain else "model"


def _of_all(
    shares: Sequence[tuple[TracedSource, float]],
    sentence: int,
    neighbouring: Neighbouring,
    smallest: float,
    word: int | None = None,
) -> tuple[MemorySource, ...]:
    """What all layers that read the memory have read, each with its share of the weight."""
    sources = [
        replace(source, weight=share * source.weight)
        for part, share in shares
        for source in _sources(part, sentence, neighbouring, smallest, word)
    ]
    return tuple(sorted(sources, key=lambda source: -source.weight))


def _sources(
    part: TracedSource,
    sentence: int,
    neighbouring: Neighbouring,
    smallest: float,
    word: int | None = None,
) -> tuple[MemorySource, ...]:
    """The positions that were read with a weight of at least `smallest`, the heaviest first. Where
    a `word` is given, only those that hold it are taken."""
    sources, trace = list[MemorySource](), part.trace
    positions = trace.positions if trace.positions is not None else trace.weights[:0].long()
    pair_count = len(trace.weights) - len(positions)
    if part.pairs is not None and pair_count:
        pairs, weights = part.pairs, trace.weights[:pair_count]
        for index in _read(weights, pairs.ids[sentence], smallest, word, pairs.mask[sentence]):
            pair, position = int(pairs.pair[sentence, index]), int(pairs.position[sentence, index])
            place = neighbouring.place(pair, position)
            sources.append(MemorySource(*place, float(weights[index])))
    sources += neighbouring.sources(trace.weights[pair_count:], positions, smallest, word)
    return tuple(sorted(sources, key=lambda source: -source.weight))


def _read(
    weights: Tensor, ids: Tensor, smallest: float, word: int | None, mask: Tensor
) -> list[int]:
    """Which of the positions that `mask` lets pass are told."""
    selected = (weights >= smallest) & mask.cpu()
    return (selected if word is None else selected & (ids.cpu() == word)).nonzero()[:, 0].tolist()


def _slots(
    weights: Tensor, cache: HeldWords, sentence: int, word: int, vocab: Vocabulary
) -> tuple[CacheSource, ...]:
    """The slots that were read, the heaviest first. Light ones are also given where they hold
    `word`, so that their sum is exact."""
    ids = cache.ids[sentence].cpu()
    smallest = torch.where(ids == word, SMALLEST_WEIGHT, SMALLEST_READ)
    slots = ((weights >= smallest) & cache.mask[sentence].cpu()).nonzero()[:, 0].tolist()
    sources = [
        CacheSource(slot, vocab.piece(int(ids[slot])), float(weights[slot])) for slot in slots
    ]
    return tuple(sorted(sources, key=lambda source: -source.weight))
