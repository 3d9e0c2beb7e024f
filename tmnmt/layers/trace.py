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

from tmnmt.layers.contract import Read
from tmnmt.layers.traced import LayerTrace, Part


@dataclass(frozen=True)
class Trace:
    """What all layers did at a step, by name, in their order."""

    plain: Tensor  # (R, V), (C,) or (): the read-out of the raw state
    layers: Mapping[str, LayerTrace]

    def at(self, rows: Tensor, words: Tensor) -> Trace:
        """Of the candidates (C,): the rows that they extend, and their words; so that no step keeps
        anything of the vocabulary's size."""
        layers = {name: layer.at(rows, words) for name, layer in self.layers.items()}
        return Trace(self.plain[rows, words], layers)

    def chosen(self, row: int, candidate: int) -> Trace:
        """Of one candidate, which extends this row."""
        layers = {name: layer.chosen(row, candidate) for name, layer in self.layers.items()}
        return Trace(self.plain[candidate], layers)


def trace_of(
    read_out: Callable[[Tensor], Tensor],
    hiddens: Sequence[Tensor],
    reads: Mapping[str, Read[Any]],
    log_gen: Tensor,
) -> Trace:
    """Weights, gates and parts of a step: `hiddens` are the raw one and that after each layer,
    `log_gen` is the read-out of the last one."""
    p_gen = p = log_gen.exp()
    after: dict[str, Tensor] = {}
    for name, before, behind in reversed(list(zip(reads, hiddens, hiddens[1:], strict=False))):
        after[name] = p
        if before is not behind:
            p = read_out(before).exp()
    return Trace(p, {name: _layer(read, after[name], p_gen) for name, read in reads.items()})


def _layer(read: Read[Any], after: Tensor, p_gen: Tensor) -> LayerTrace:
    fused = Part(after, read.gate.mean(-1)) if read.gate is not None else None
    mixed = None
    if read.words is not None:
        p = torch.zeros_like(p_gen).scatter_add(1, read.words.ids, read.weights)
        mixed = Part(p, torch.sigmoid(read.words.logit))
    return LayerTrace(read.weights, fused, mixed, read.positions)
