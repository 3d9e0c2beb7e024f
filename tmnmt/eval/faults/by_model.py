"""What a base says of a pair: how much likelier it finds the target with its source than with
another source. Where that is hardly anything, the two are no translations of each other, or the
base does not know such texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from tmnmt.keys.pair_keys import padded
from tmnmt.models.base import Backbone, shift
from tmnmt.models.folder import Model
from tmnmt.segments import Segment
from tmnmt.vocab import BOS, EOS, PAD

TOGETHER = 32  # pairs scored at a time
POOL = 1024  # pairs that are sorted by length, and lend each other their sources
LONGEST = 160  # subwords of a side; what is longer is not scored
FEWEST = 4  # subwords of a target that say anything
LEAST_GAIN = 0.75  # nats a subword

Ids = list[int]


def unrelated(
    segments: Iterable[Segment], model: Model, advance: Callable[[int], None]
) -> Iterator[tuple[Segment, float]]:
    """The segments whose target the base finds hardly likelier with its source than with another,
    each with by how much, in nats a subword."""
    pool: list[Segment] = []
    for segment in segments:
        pool.append(segment)
        if len(pool) == POOL:
            yield from _of_pool(pool, model)
            advance(len(pool))
            pool = []
    yield from _of_pool(pool, model)
    advance(len(pool))


def _of_pool(pool: Sequence[Segment], model: Model) -> Iterator[tuple[Segment, float]]:
    vocab = model.vocab
    coded = [
        (segment, [*vocab.encode_source(segment.src), EOS], [*vocab.encode(segment.tgt), EOS])
        for segment in pool
    ]
    coded = [
        (segment, src, tgt)
        for segment, src, tgt in coded
        if len(src) <= LONGEST and FEWEST <= len(tgt) <= LONGEST
    ]
    coded.sort(key=lambda row: (len(row[2]), len(row[1])))
    if len(coded) < 2:
        return
    sources = [src for _, src, _ in coded]
    rotated = [*sources[len(sources) // 2 :], *sources[: len(sources) // 2]]
    paired_losses = losses(model.decoding, [(src, tgt) for _, src, tgt in coded])
    rotated_losses = losses(
        model.decoding, [(src, tgt) for src, (_, _, tgt) in zip(rotated, coded, strict=True)]
    )
    for (segment, _, tgt), with_own, with_other in zip(
        coded, paired_losses, rotated_losses, strict=True
    ):
        gain = (with_other - with_own) / len(tgt)
        if gain < LEAST_GAIN:
            yield segment, gain


@torch.inference_mode()
def losses(backbone: Backbone, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
    """The cross-entropy of every target, in nats, of pairs of ids with </s>."""
    device = next(backbone.parameters()).device
    values: list[float] = []
    for start in range(0, len(pairs), TOGETHER):
        rows = pairs[start : start + TOGETHER]
        src, tgt = (padded([row[side] for row in rows], device) for side in (0, 1))
        lengths = torch.tensor([len(row[0]) for row in rows], device=device)
        contexts, hiddens = backbone.forced(backbone.encode(src, lengths), tgt)
        values += _cross_entropy(backbone, contexts, hiddens, tgt).tolist()
    return values


def _cross_entropy(backbone: Backbone, contexts: Tensor, hiddens: Tensor, tgt: Tensor) -> Tensor:
    """(B,) of contexts and hidden states (B, T, .) and the target (B, T)."""
    real = tgt != PAD
    total = torch.zeros(tgt.shape, device=tgt.device)
    logits = backbone.readout(shift(tgt, BOS)[real], hiddens[real], contexts[real])
    total[real] = torch.nn.functional.cross_entropy(logits.float(), tgt[real], reduction="none")
    return total.sum(1)
