"""Words mixed into the probabilities: of the positions of pairs, of slots, of neighbours."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tmnmt.compiled import kernels
from tmnmt.models.base import Columns

MIN_PROBABILITY = 1e-37  # a probability whose logarithm, -85, changes no sum that matters


def mix_copy(
    log_gen: Tensor,
    q: Tensor,
    ids: Tensor,
    first: Tensor,
    logit: Tensor,
    columns: Columns | None = None,
) -> Tensor:
    """log(zeta p_copy + (1 - zeta) p_gen), (R, V). A shallow cache is mixed in as well, with P_m
    and the words of its slots. A closed gate (logit -inf) gives log p_gen bit for bit. Only the
    words of the memory cost a logarithm. Without gradients the result is written in place of log
    p_gen.

    log_gen: (R, V), log p_gen.
    q: (R, P), the weights of the positions.
    ids: (R, P) int64, the words at the positions.
    first: (R, P) int64, where each word stands first.
    logit: (R,), the logit of the gate zeta.
    columns: the columns of log p_gen; None where every word has a column."""
    learns = log_gen.requires_grad or logit.requires_grad or q.requires_grad
    if not learns and log_gen.dtype == torch.float32 and log_gen.is_cpu and log_gen.is_contiguous():
        table = None if columns is None else columns.table
        kernels.mix_words_(log_gen, q, ids, first, logit, table)
        return log_gen
    ids = ids if columns is None else columns.of_word[ids]
    # (R, P) all occurrences of the word
    p_copy = torch.zeros_like(q).scatter_add_(1, first, q).gather(1, first)
    copied, log_rest = logsigmoid(logit)[:, None] + safe_log(p_copy), logsigmoid(-logit)[:, None]
    if not learns:
        log_gen += log_rest
        return log_gen.scatter_(1, ids, torch.logaddexp(log_gen.gather(1, ids), copied))
    scaled = log_gen + log_rest
    mixed = torch.logaddexp(scaled.gather(1, ids), copied)
    # a word that stands at several positions is written several times: its gradient once
    is_first = first == torch.arange(ids.shape[1], device=ids.device)
    return scaled.scatter(1, ids, torch.where(is_first, mixed, mixed.detach()))


def mix_gold(log_gen: Tensor, p_copy: Tensor, logit: Tensor) -> Tensor:
    """log p of one word of each row, where a layer is mixed in as with `mix_copy`. All three are of
    one shape.

    log_gen: log p_gen of the word.
    p_copy: p_copy of the word.
    logit: the logit of the gate."""
    return torch.logaddexp(log_gen + logsigmoid(-logit), logsigmoid(logit) + safe_log(p_copy))


def safe_log(p: Tensor) -> Tensor:
    """log p, with a gradient of 0 instead of NaN where p is 0. There it is -inf, or -85 without
    gradients, since a logarithm of 0 takes eight times as long.

    p: the probabilities."""
    if not p.requires_grad:
        return p.clamp_min(MIN_PROBABILITY).log()
    positive = p > 0
    return torch.where(positive, torch.where(positive, p, 1.0).log(), -torch.inf)
