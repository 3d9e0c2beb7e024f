"""What a backbone looks at along a target is what its contexts were read with."""

from __future__ import annotations

import pytest
import torch

from tmnmt.models.base import Backbone, noted_along
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.models.transformer import Transformer

SRC = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
SRC_LEN = torch.tensor([4, 2])
TGT = torch.tensor([[9, 4, 2], [5, 2, 0]])


def rnnsearch() -> RNNsearch:
    torch.manual_seed(3)
    return RNNsearch(12, embedding=8, hidden=16, attention=8, dropout=0.0).eval()


@pytest.mark.parametrize("make", [rnnsearch, lambda: FastRNNsearch(rnnsearch())])
def test_the_contexts_of_rnnsearch_are_the_annotations_by_its_attention(make: type) -> None:
    backbone: Backbone = make()
    with torch.inference_mode():
        encoded = backbone.encode(SRC, SRC_LEN)
        contexts, _ = backbone.forced(encoded, TGT)
        alphas = backbone.alphas(encoded, TGT)
        read = torch.bmm(alphas, encoded.values)
    real = TGT != 0
    assert torch.allclose(read[real], contexts[real], atol=1e-5)


def test_what_is_noted_of_steps_is_what_a_target_is_read_by() -> None:
    """Of the second source alone, in a row of its own at every step."""
    backbone = FastRNNsearch(rnnsearch())
    with torch.inference_mode():
        encoded = backbone.encode(SRC, SRC_LEN)
        _, hiddens = backbone.forced(encoded, TGT)
        alphas = backbone.alphas(encoded, TGT)
        noting, notes = backbone.noting()
        state = noting.start(encoded)
        for prev in ([1, 1], [9, 5]):
            state, _, _ = noting.step(torch.tensor(prev), state, encoded)
        along = noted_along(notes, [1, 1], 2)
        assert backbone.notes is None and len(notes) == 2
        backbone.step(torch.tensor([1, 1]), state, encoded)
    assert len(notes) == 2 and along is not None
    assert torch.allclose(along.state, hiddens[1, :2], atol=1e-5)
    assert torch.allclose(along.attention, alphas[1, :2, :2], atol=1e-5)
    assert noted_along([], [1], 2) is None and noted_along(notes, [], 2) is None


def transformer() -> Transformer:
    torch.manual_seed(3)
    return Transformer(12, 16, 32, 2, 2, 2, dropout=0.0).eval()


@pytest.mark.parametrize("make", [rnnsearch, transformer])
def test_sources_encoded_apart_stand_beside_one_another(make: type) -> None:
    backbone: Backbone = make()
    with torch.inference_mode():
        both = backbone.encode(SRC, SRC_LEN)
        long, short = (both.rows(torch.tensor([row])).cut(4 - 2 * row) for row in range(2))
        together = long.concat([short])
        assert torch.equal(together.mask, both.mask)
        contexts = [backbone.forced(one, TGT)[0] for one in (together, both)]
        other_way = backbone.forced(short.concat([long]), TGT.flip(0))[0].flip(0)
    real = TGT != 0
    assert torch.allclose(contexts[0][real], contexts[1][real], atol=1e-6)
    assert torch.allclose(other_way[real], contexts[1][real], atol=1e-6)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_attention_of_a_transformer_is_that_of_its_last_layer_but_one_or_of_two_the_last(
    layers: int,
) -> None:
    torch.manual_seed(3)
    model = Transformer(12, 16, 32, 2, 2, layers, dropout=0.0).eval()
    asked: list[torch.Tensor] = []
    attend = model._attend

    def noted(q: torch.Tensor, keys: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        if q.shape[2] == TGT.shape[1] and keys.shape[2] == SRC.shape[1]:
            identity = torch.eye(keys.shape[2]).expand(*keys.shape[:2], -1, -1)
            weights = attend(q, keys, identity, *rest[1:])
            asked.append(weights.view(*weights.shape[:2], keys.shape[1], -1).mean(2))
        return attend(q, keys, *rest)

    with torch.inference_mode():
        encoded = model.encode(SRC, SRC_LEN)
        weights = model.alphas(encoded, TGT)
        model._attend = noted  # type: ignore[method-assign, assignment]
        model.forced(encoded, TGT)
    assert torch.allclose(weights, asked[{1: 0, 2: 1, 3: 1}[layers]], atol=1e-6)
    assert torch.allclose(weights.sum(2), torch.ones(2, 3))
    assert weights[1, :, 2:].abs().max() == 0
