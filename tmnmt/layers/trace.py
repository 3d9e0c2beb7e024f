"""What a step can say of where each word comes from; kept only when an explanation is asked for.

One record at three sizes: of all rows and words of a step, of the candidates among them, and of the
one word that was chosen.

R: rows   V: vocabulary   C: candidates   P: positions or slots that a layer reads
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tmnmt.layers.contract import LayerOutput
from tmnmt.layers.traced import LayerTrace, Part
from tmnmt.models.base import Columns


@dataclass(frozen=True)
class Trace:
    """What all layers did at a step, by name, in their order."""

    plain: Tensor  # (R, V), (C,) or (): the read-out of the raw state
    layers: Mapping[str, LayerTrace]

    def select(self, rows: Tensor, words: Tensor) -> Trace:
        """What the layers did for the candidates alone, so that no step keeps anything of the
        vocabulary's size.

        rows: (C,) int64, the rows that the candidates extend.
        words: (C,) int64, their words."""
        layers = {name: layer.pick(rows, words) for name, layer in self.layers.items()}
        return Trace(self.plain[rows, words], layers)

    def pick(self, row: int, candidate: int) -> Trace:
        """What the layers did for one candidate.

        row: the row that it extends.
        candidate: its number."""
        layers = {name: layer.pick_candidate(row, candidate) for name, layer in self.layers.items()}
        return Trace(self.plain[candidate], layers)


def trace_of(
    read_out: Callable[[Tensor], Tensor],
    hiddens: Sequence[Tensor],
    reads: Mapping[str, LayerOutput[Any]],
    log_gen: Tensor,
    columns: Columns | None = None,
) -> Trace:
    """The weights, gates and parts of a step. In the trace words stand by the columns of the
    read-out.

    read_out: gives log p of hidden states.
    hiddens: the plain hidden state, and that after each layer.
    reads: what each layer has read, by the names of the layers.
    log_gen: (R, V), the read-out of the last hidden state.
    columns: the columns of the read-out; None where every word has a column."""
    p_gen = p = log_gen.exp()
    layer_probs: dict[str, Tensor] = {}
    for name, previous, current in reversed(list(zip(reads, hiddens, hiddens[1:], strict=False))):
        layer_probs[name] = p
        if previous is not current:
            p = read_out(previous).exp()
    layers = {
        name: _layer(reading, layer_probs[name], p_gen, columns) for name, reading in reads.items()
    }
    return Trace(p, layers)


def _layer(
    reading: LayerOutput[Any], probs: Tensor, p_gen: Tensor, columns: Columns | None
) -> LayerTrace:
    fused = Part(probs, reading.gate.mean(-1)) if reading.gate is not None else None
    mixed = None
    if reading.words is not None:
        ids = reading.words.ids if columns is None else columns.of_word[reading.words.ids]
        p = torch.zeros_like(p_gen).scatter_add(1, ids, reading.weights)
        mixed = Part(p, torch.sigmoid(reading.words.logit))
    return LayerTrace(reading.weights, fused, mixed, reading.positions)
