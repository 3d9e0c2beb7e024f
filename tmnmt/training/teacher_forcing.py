"""What the base and the session cache say along the references of a batch: where training of the
memory layers begins.

n: positions of the batch that are no padding, in order of (sentence, position)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tmnmt.keys.pair_keys import padded
from tmnmt.layers.mixing import mix_gold
from tmnmt.models.base import Backbone, shift
from tmnmt.segments import Segment
from tmnmt.vocab import BOS, EOS, PAD, Vocabulary

ROWS_READ_OUT = 1024  # positions read out at once: their logits stay in the processor's cache


@dataclass(frozen=True)
class ForcedBatch:
    """What the base says along the references of B sentences."""

    tgt: Tensor  # (B, T) int64, padded
    contexts: Tensor  # (B, T, l)
    hiddens: Tensor  # (B, T, d)

    @property
    def real(self) -> Tensor:
        """(B, T) bool"""
        return self.tgt != PAD

    def parted(self) -> list[ForcedBatch]:
        """Every sentence by itself, without padding."""
        lengths = self.real.sum(1).tolist()
        return [
            ForcedBatch(*(tensor[row : row + 1, :length] for tensor in self._tensors))
            for row, length in enumerate(lengths)
        ]

    @property
    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.tgt, self.contexts, self.hiddens


def merge_batches(sentences: Sequence[ForcedBatch]) -> ForcedBatch:
    """One batch of sentences that are there by themselves."""
    tensors = zip(*(sentence._tensors for sentence in sentences), strict=True)
    return ForcedBatch(
        *(pad_sequence([row[0] for row in rows], batch_first=True) for rows in tensors)
    )


@dataclass(frozen=True)
class Remembered:
    """What the session cache makes of the states before the read-out, and of the probabilities
    after it."""

    hiddens: Tensor  # (n, d) s~; s where there is no deep cache
    recalled: Tensor | None = None  # (n,) of a shallow cache: what it gives the reference's word
    logit: Tensor | None = None  # (n,) of its gate

    def mixed(self, log_gen: Tensor) -> Tensor:
        """log p (n,) of log p_gen (n,)."""
        if self.recalled is None or self.logit is None:
            return log_gen
        return mix_gold(log_gen, self.recalled, self.logit)


def force_references(
    backbone: Backbone,
    vocab: Vocabulary,
    segments: Sequence[Segment],
    device: torch.device | str,
    gradients: bool = False,
) -> ForcedBatch:
    """Contexts and hidden states along the references of `segments`; the base's graph is recorded
    with `gradients`."""
    src = [[*vocab.encode_source(segment.src), EOS] for segment in segments]
    target = padded([[*vocab.encode(segment.tgt), EOS] for segment in segments], device)
    with torch.set_grad_enabled(gradients and torch.is_grad_enabled()):
        encoded = backbone.encode(
            padded(src, device), torch.tensor([len(ids) for ids in src], device=device)
        )
        return ForcedBatch(target, *backbone.forced(encoded, target))


def gold_log_probs(backbone: Backbone, batch: ForcedBatch, hiddens: Tensor, mask: Tensor) -> Tensor:
    """log p_gen of the references' words at the positions `mask` (B, T) bool, read out from
    `hiddens` (n, d): (n,)."""
    prev, gold, contexts = shift(batch.tgt, BOS)[mask], batch.tgt[mask], batch.contexts[mask]
    log_probs = []
    for start in range(0, len(gold), ROWS_READ_OUT):
        part = slice(start, start + ROWS_READ_OUT)
        logits = backbone.readout(prev[part], hiddens[part], contexts[part])
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        log_probs.append(logits.gather(1, gold[part, None])[:, 0] - logits.logsumexp(1))
    return torch.cat(log_probs)
