"""What is compiled of a decoder's step gives what torch gives, of sizes that are multiples of a
vector's sixteen numbers and of others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tmnmt.compiled import steps
from tmnmt.engine.beam_search import _sorted_out, continuations
from tmnmt.layers.mixing import mix_copy
from tmnmt.layers.view import first_of
from tmnmt.models.transformer_state import SeenState

SIZES = [1, 2, 15, 16, 17, 64, 100, 256]


def address(x: Tensor) -> int:
    assert x.is_contiguous()
    return x.data_ptr()


@pytest.mark.parametrize("words", [*SIZES, 8000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0])
def test_log_softmax(words: int, spread: float) -> None:
    x = spread * torch.randn(7, words)
    x[1:3, words // 2 :] = -torch.inf
    x[1:3, 0] = -3.0
    made = x.clone()
    steps.log_softmax(address(made), 7, words)
    torch.testing.assert_close(made, x.log_softmax(-1), rtol=1e-6, atol=2e-5)


@pytest.mark.parametrize("words", [10, 64, 75, 200, 1000])
@pytest.mark.parametrize("beam", [1, 5])
def test_the_best_words(words: int, beam: int) -> None:
    n, width = 6, 2 * beam
    log_probs = torch.randn(n * beam, words).mul(3).log_softmax(-1)
    log_probs[:, :3] = -torch.inf
    scores = torch.randn(n, beam)
    scores[0, 1:] = -torch.inf  # as at the start
    best, other = continuations(scores, log_probs, width), _sorted_out(scores, log_probs, width)
    for name in ("scores", "parents", "columns"):
        assert torch.equal(getattr(best, name)[1:], getattr(other, name)[1:])
    known = min(width, words - 3)  # of the one row that is alive
    assert torch.equal(best.scores[0, :known], other.scores[0, :known])
    assert torch.equal(best.columns[0, :known], other.columns[0, :known])
    assert bool((best.scores[0, known:] == -torch.inf).all())


def test_of_equal_words_the_first_comes_first() -> None:
    best = continuations(torch.zeros(2, 2), torch.full((4, 300), -2.0), 4)
    assert best.columns.tolist() == [[0, 1, 2, 3]] * 2
    assert best.parents.tolist() == [[0] * 4, [2] * 4]


@pytest.mark.parametrize("d", SIZES)
def test_norms_and_embeddings(d: int) -> None:
    x, added = torch.randn(5, d), torch.randn(5, d)
    weight, bias = torch.randn(d), torch.randn(d)
    for by in (added, None):
        total, out = x.clone(), torch.empty(5, d)
        added_at = 0 if by is None else address(by)
        steps.norm_of_sum(
            address(total), added_at, address(weight), address(bias), 1e-5, 5, d, address(out)
        )
        assert torch.equal(total, x if by is None else x + by)
        torch.testing.assert_close(out, F.layer_norm(total, (d,), weight, bias, 1e-5))
    out = torch.empty(5, d)
    steps.level_of_sum(address(x), address(added), 1e-12, 5, d, address(out))
    level = (x + added) * (x + added).square().mean(-1, keepdim=True).rsqrt()
    torch.testing.assert_close(out, level)
    table, position, ids = torch.randn(9, d), torch.randn(d), torch.tensor([8, 0, 3, 3, 1])
    steps.embed(address(ids), address(table), address(position), 1.5, 5, d, address(out))
    torch.testing.assert_close(out, table[ids] * 1.5 + position)


def attended(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """q (R, H, 1, k), keys and values (R, H, S, k) -> (R, d)"""
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask).flatten(1)


@pytest.mark.parametrize(("heads", "k"), [(1, 1), (4, 8), (2, 16), (3, 20), (4, 64)])
def test_self_attention_follows_the_rows(heads: int, k: int) -> None:
    """Rows change places between steps, as in a beam, and some are left out."""
    d, layers, rows = heads * k, 2, 6
    state = SeenState.empty(rows, layers, d)
    keys = values = torch.empty(rows, heads, 0, k)
    for at in range(40):  # beyond the room that there is at first
        state = state.roomy()
        qkv = torch.randn(rows, 3 * d)
        q, key, value = (part.view(rows, heads, 1, k) for part in qkv.chunk(3, -1))
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        out, energy = torch.empty(rows, d), torch.empty(at + 1)
        places = torch.empty(at + 1, dtype=torch.int64)
        for layer in range(layers):
            steps.look_back(
                address(qkv),
                address(state.kv_cache),
                address(state.origin),
                at,
                layer,
                layers,
                state.kv_cache.shape[2],
                rows,
                heads,
                d,
                address(energy),
                address(places),
                address(out),
            )
            torch.testing.assert_close(out, attended(q, keys, values), atol=1e-5, rtol=1e-5)
        state = state.longer()
        size = {10: 4, 25: 9}.get(at, rows)  # fewer rows, then more than there ever were
        index = torch.randint(rows, (size,))
        state, keys, values, rows = state.rows(index), keys[index], values[index], size


@pytest.mark.parametrize(("heads", "k"), [(1, 3), (4, 16), (2, 64)])
def test_attention_over_the_source(heads: int, k: int) -> None:
    sentences, length, each = 3, 11, 5
    d, rows = heads * k, sentences * each
    q = torch.randn(rows, d)
    # as after `cut`: positions are left out behind
    keys, values = (torch.randn(sentences, heads, length + 4, k)[:, :, :length] for _ in range(2))
    lengths = torch.tensor([11, 1, 6])
    out, energy = torch.empty(rows, d), torch.empty(length)
    places = torch.empty(length, dtype=torch.int64)
    steps.look_at_source(
        address(q),
        keys.data_ptr(),
        values.data_ptr(),
        address(lengths),
        *keys.stride()[:3],
        sentences,
        rows,
        heads,
        d,
        address(energy),
        address(places),
        address(out),
    )
    each_row = torch.arange(sentences).repeat_interleave(each)
    mask = (torch.arange(length) < lengths[:, None])[each_row][:, None, None]
    wanted = attended(q.view(rows, heads, 1, k), keys[each_row], values[each_row], mask)
    torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-5)


def test_what_compiled_code_would_misread_is_an_error() -> None:
    """It is told addresses alone: of another type or size it would read and write elsewhere."""
    ids = torch.tensor([[3, 4, 3]])
    assert first_of(ids).tolist() == [[0, 1, 0]]
    for wrong in (ids.int(), ids.float()):
        with pytest.raises(ValueError, match="words"):
            first_of(wrong)
    log_probs = torch.full((4, 300), -2.0)
    for scores in (torch.zeros(2, 2).double(), torch.zeros(3, 2)):
        with pytest.raises(ValueError, match=r"scores|log probabilities"):
            continuations(scores, log_probs, 4)
    q, logit = torch.full((1, 3), 1 / 3), torch.zeros(1)
    log_gen = torch.full((1, 300), -2.0)
    given: dict[str, Any] = {"q": q, "ids": ids, "first": first_of(ids), "logit": logit}
    mix_copy(log_gen.clone(), **given)
    others = {"q": q.double(), "ids": ids.int(), "first": ids.int(), "logit": torch.zeros(2)}
    for name, other in others.items():
        with pytest.raises(ValueError, match="wanted"):
            mix_copy(log_gen.clone(), **{**given, name: other})
