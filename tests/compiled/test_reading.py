"""What is compiled of the memory layers gives what the layers calculate by torch, which they do
where gradients are asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from random_layers import PAIRS, SCORES, D, V, cached, learned, pair, random_base
from stepping import beams, step
from torch import Tensor

from tmnmt.layers.cache import CacheKind
from tmnmt.layers.collated import collate
from tmnmt.layers.combine import MemoryLayers, Mode
from tmnmt.layers.contract import Collated
from tmnmt.layers.mixing import mix_copy
from tmnmt.layers.tm import TMKind

JOINT = CacheKind(fusion="shallow", matching="joint", rank=6, signs=True, follows=True, empty=True)
KINDS = {
    "as it ships": (TMKind(), JOINT),
    "as in the papers": (
        TMKind(
            matching="full",
            coverage="plain",
            fusion_gate="scalar",
            gate_signs=False,
            preferences=False,
            pointer=False,
            words=False,
        ),
        CacheKind(fusion="shallow", matching="learned"),
    ),
    "identity": (
        TMKind(matching="identity", coverage="off", pointer=False),
        CacheKind(fusion="shallow", signs=True, empty=True),
    ),
    "signs alone": (TMKind(), replace(JOINT, empty=False, follows=False)),
}


def walked(memories: MemoryLayers, memory: Collated, mode: Mode) -> list[Tensor]:
    """log p of six steps of three rows a sentence, which change places."""
    made = torch.Generator().manual_seed(7)
    backbone = random_base(V, D)
    ready = beams(memories.ready(memory, backbone, mode), 3, 3)
    rows, log_probs = torch.arange(3).repeat_interleave(3), []
    for _ in range(6):
        prev = torch.randint(4, V, (9,), generator=made)
        hidden, context = (torch.randn(9, D, generator=made) for _ in range(2))
        log_p, ready, _ = step(memories, backbone, prev, hidden, context, ready, mode)
        log_probs.append(log_p.detach())
        chosen = 3 * rows + torch.randint(3, (9,), generator=made)
        ready = ready.reordered(chosen)
    return log_probs


@pytest.mark.parametrize("mode", ["copy", "fusion", "both"])
@pytest.mark.parametrize("name", KINDS)
def test_compiled_layers_are_those_of_torch(name: str, mode: Mode) -> None:
    """The second sentence has no pairs, the second document nothing behind it."""
    memories = learned(*KINDS[name])
    pairs = collate([PAIRS, [], [pair(9, 8)]], [SCORES, [], [0.6]])
    memory = Collated(pairs=pairs, slots=cached(3))
    with torch.inference_mode():
        compiled = walked(memories, memory, mode)
    with torch.enable_grad():
        by_torch = walked(memories, memory, mode)
    for one, other in zip(compiled, by_torch, strict=True):
        # what gets less than 1e-9 of the attention gets nothing
        torch.testing.assert_close(one.exp(), other.exp(), atol=2e-8, rtol=5e-5)


def test_words_mixed_in() -> None:
    rows, words, positions = 5, 300, 37
    log_gen = torch.randn(rows, words).mul(5).log_softmax(-1)
    q = torch.rand(rows, positions).pow(9)
    q[:, 5] = 0.0
    q /= q.sum(1, keepdim=True)
    ids = torch.randint(4, 30, (rows, positions))
    first = (ids[:, :, None] == ids[:, None]).long().argmax(-1)
    logit = torch.tensor([0.0, 30.0, -30.0, -torch.inf, 2.0])
    compiled = mix_copy(log_gen.clone(), q, ids, first, logit)
    by_torch = mix_copy(log_gen.clone().requires_grad_(), q, ids, first, logit).detach()
    assert torch.equal(compiled[3], log_gen[3])
    torch.testing.assert_close(compiled.exp(), by_torch.exp(), atol=1e-6, rtol=1e-5)
    likely = by_torch > -60
    torch.testing.assert_close(compiled[likely], by_torch[likely], atol=2e-5, rtol=1e-5)
