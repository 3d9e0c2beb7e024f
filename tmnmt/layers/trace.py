"""What a step can say of where each word comes from; kept only when an explanation is asked for.

One record at three sizes: of all rows and words of a step, of the candidates among them, and of the
one word that was chosen.

R: rows   V: vocabulary   C: candidates   P: positions or slots that a layer reads
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tmnmt.layers.contract import Read


@dataclass(frozen=True)
class Part:
    """What a layer gave: `p` (R, V), (C,) or (), and the `gate` in [0, 1] that let it in, (R,),
    (C,) or ()."""

    p: Tensor
    gate: Tensor

    def at(self, rows: Tensor, words: Tensor) -> Part:
        return Part(self.p[rows, words], self.gate[rows])

    def chosen(self, candidate: int) -> Part:
        return Part(self.p[candidate], self.gate[candidate])


@dataclass(frozen=True)
class LayerTrace:
    """What one layer did at a step."""

    weights: Tensor  # (R, P), or (P,) of one word: what it read
    fused: Part | None  # into the state: p is the read-out after it; None: nothing
    mixed: Part | None  # into the probabilities: p is that of its words; None: nothing
    # (R, k), or (k,): where the last k of the weights stand: neighbours in the datastore, or the
    # positions of a pool
    positions: Tensor | None

    def at(self, rows: Tensor, words: Tensor) -> LayerTrace:
        fused = self.fused and self.fused.at(rows, words)
        return replace(self, fused=fused, mixed=self.mixed and self.mixed.at(rows, words))

    def chosen(self, row: int, candidate: int) -> LayerTrace:
        return LayerTrace(
            weights=self.weights[row].cpu(),
            fused=self.fused and self.fused.chosen(candidate),
            mixed=self.mixed and self.mixed.chosen(candidate),
            positions=self.positions[row].cpu() if self.positions is not None else None,
        )


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
