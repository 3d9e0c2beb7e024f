"""What was read of a pool of positions, told apart by where the positions are from."""

from __future__ import annotations

import torch
from torch import Tensor

from tmnmt.layers.collated import Pairs, Recent
from tmnmt.layers.contract import Collated
from tmnmt.layers.traced import LayerTrace, Part, TracedSource


def sources_of_pool(
    trace: LayerTrace, collated: Collated, sentence: int, word: int
) -> list[TracedSource]:
    """What was read at the positions of confirmed segments, and at those of pairs, where there are
    any, each as if it were mixed in alone, the first before the second, with the share that is its.

    trace: what the layer did at the step.
    collated: what the sentences of the batch read.
    sentence: the number of the sentence in the batch.
    word: the subword that was written."""
    share = trace.mixed.gate if trace.mixed is not None else trace.weights.new_zeros(())
    pairs, recent = collated.pairs, collated.histories.get("nearest")
    count = pairs.ids.shape[1] if pairs is not None else 0
    total = count + (recent.ids.shape[1] if recent is not None else 0)
    weights = trace.weights.new_zeros(total)
    if trace.positions is not None:
        weights.scatter_add_(0, trace.positions, trace.weights)
    of_pairs, pairs_mass, p_pairs = _read(weights[:count], pairs, sentence, word)
    of_recent, recent_mass, p_recent = _read(weights[count:], recent, sentence, word)
    pairs_gate, recent_gate = share * pairs_mass, share * recent_mass
    recent_gate = torch.where(recent_gate > 0, recent_gate / (1 - pairs_gate), 0.0)
    session = LayerTrace(of_recent, None, Part(p_recent, recent_gate), None)
    memory = LayerTrace(of_pairs, None, Part(p_pairs, pairs_gate), None)
    of_session = TracedSource("session", "session", "cache", session, slots=recent)
    of_memory = TracedSource("nearest", "nearest", "memory", memory, pairs=pairs)
    return [*[of_session] * (recent is not None), *[of_memory] * (pairs is not None)]


def _read(
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
