"""Attention of all positions at once, and a student's cell along known words, give what torch
gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tmnmt.compiled.kernels import (
    Sources,
    Spans,
    attend_to_source,
    attend_within,
    run_cells_,
    update_cell_,
)

LENGTHS = [1, 4, 5, 16, 23, 33]


def split(x: Tensor, heads: int) -> Tensor:
    """(T, d) -> (H, T, k)."""
    return x.view(len(x), heads, -1).transpose(0, 1)


def attended(q: Tensor, keys: Tensor, values: Tensor, causal: bool = False) -> Tensor:
    """Of one sentence, (H, T, k) each: (T, d)."""
    read = F.scaled_dot_product_attention(q[None], keys[None], values[None], is_causal=causal)[0]
    return read.transpose(0, 1).flatten(1)


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("d", "heads"), [(32, 2), (64, 2), (48, 2), (20, 2), (256, 8)])
@pytest.mark.parametrize("is_padded", [False, True])
def test_positions_read_those_of_their_sentence(
    d: int, heads: int, causal: bool, is_padded: bool
) -> None:
    torch.manual_seed(d)
    lengths = torch.tensor(LENGTHS)
    if is_padded:
        spans = Spans.of_rows(len(LENGTHS), max(LENGTHS), lengths)
    else:
        spans = Spans.of_lengths(lengths, max(LENGTHS))
    qkv = 2 * torch.randn(int(spans.starts[-1]), 3 * d)
    out = attend_within(qkv, spans, heads, causal)
    for start, length in zip(spans.starts.tolist(), LENGTHS, strict=False):
        of_sentence = qkv[start : start + length].chunk(3, -1)
        q, keys, values = (split(part, heads) for part in of_sentence)
        expected = attended(q, keys, values, causal)
        torch.testing.assert_close(out[start : start + length], expected, atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_positions_read_the_source_of_their_sentence() -> None:
    torch.manual_seed(3)
    sentences, heads, d, longest, targets = 3, 4, 64, 19, 6
    lengths = torch.tensor([19, 1, 7])
    keys, values = torch.randn(2, sentences, heads, longest, d // heads)
    source = Sources([values, keys], [keys, values], lengths)
    q, spans = torch.randn(sentences * targets, d), Spans.of_rows(sentences, targets)
    out = attend_to_source(q, spans, source, 1, heads)
    for sentence, length in enumerate(lengths.tolist()):
        rows = slice(sentence * targets, (sentence + 1) * targets)
        read = keys[sentence, :, :length], values[sentence, :, :length]
        torch.testing.assert_close(
            out[rows], attended(split(q[rows], heads), *read), atol=2e-5, rtol=1e-4
        )
    with pytest.raises(ValueError, match="targets of 3 sources"):
        attend_to_source(q, Spans.of_rows(2, 9), source, 1, heads)


@torch.no_grad()
def test_spans_that_are_of_other_positions_are_refused() -> None:
    spans = Spans.of_rows(2, 5)
    with pytest.raises(ValueError, match="wanted: 10"):
        attend_within(torch.randn(9, 96), spans, 2)
    with pytest.raises(ValueError, match="queries, keys and values"):
        attend_within(torch.randn(10, 96).double(), spans, 2)


@torch.no_grad()
@pytest.mark.parametrize("d", [16, 10])
def test_cells_run_along_known_words(d: int) -> None:
    candidate_gate = 2 * torch.randn(3, 7, 2 * d)
    candidate, gate = candidate_gate.chunk(2, -1)
    cell, expected = torch.zeros(3, d), []
    for position in range(7):
        cell = torch.lerp(candidate[:, position], cell, gate[:, position].sigmoid())
        expected.append(cell.relu())
    read = run_cells_(candidate_gate.clone())
    torch.testing.assert_close(read, torch.stack(expected, 1), atol=1e-5, rtol=1e-5)
    first = torch.zeros(3, d)
    step = update_cell_(candidate_gate[:, 0].contiguous(), first)
    torch.testing.assert_close(step, expected[0], atol=1e-5, rtol=1e-5)
