"""One step of the memories from a state that is given, not computed."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch import Tensor

from tmnmt.layers.combine import LayerInputs, MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.layers.trace import Trace
from tmnmt.layers.traced import Part
from tmnmt.models.base import Backbone
from tmnmt.trained_layers.tm import PairsReady


def step(
    memories: MemoryLayers,
    backbone: Backbone,
    prev: Tensor,
    hidden: Tensor,
    context: Tensor,
    memory: Collated | LayerInputs,
    mode: str,
    explain: bool = False,
) -> tuple[Tensor, LayerInputs, Trace | None]:
    """log p (R, V) after y_{t-1} (R,) at s (R, d) and c (R, l), what is ready for the next step,
    and the trace; of a `Collated` the first step, one row a sentence."""
    ready = memories.ready(memory, backbone, mode) if isinstance(memory, Collated) else memory
    stepped = memories.step(standing(backbone, hidden, context), prev, None, None, ready, explain)
    return stepped.log_probs, stepped.ready, stepped.trace


def standing(backbone: Backbone, hidden: Tensor, context: Tensor) -> Backbone:
    """The backbone, whose step comes to this state."""
    known = copy(backbone)

    def step(*given: Any) -> tuple[None, Tensor, Tensor]:
        return None, context, hidden

    known.step = step  # type: ignore[assignment]
    return known


def beams(ready: LayerInputs, sentences: int, width: int) -> LayerInputs:
    """So many rows of every sentence."""
    return ready.rows(torch.arange(sentences).repeat_interleave(width))


def pairs_in(ready: LayerInputs) -> PairsReady:
    """What the translation memory has ready."""
    pairs = ready.layers["tm"]
    assert isinstance(pairs, PairsReady)
    return pairs


def fused(trace: Trace | None, layer: str) -> Part:
    """What a layer fused into the state."""
    assert trace is not None
    part = trace.layers[layer].fused
    assert part is not None
    return part


def mixed(trace: Trace | None, layer: str) -> Part:
    """What a layer mixed into the probabilities."""
    assert trace is not None
    part = trace.layers[layer].mixed
    assert part is not None
    return part
