"""Which optimiser moves which parameters, and how far."""

from __future__ import annotations

import math

import torch

from tmnmt.models.transformer import Transformer
from tmnmt.training.muon import Muon, shared
from tmnmt.training.optimiser import Optimiser


def model() -> Transformer:
    torch.manual_seed(0)
    made = Transformer(
        30, hidden=8, feed_forward=16, heads=2, encoder_layers=1, decoder_layers=1, dropout=0.0
    )
    src = torch.randint(4, 30, (8, 6))
    made.loss(src, torch.full((8,), 6), src.flip(1)).backward()
    return made


def steps(kind: str, share: float = 1.0) -> dict[str, torch.Tensor]:
    """How one step has moved every parameter."""
    made = model()
    before = {name: p.detach().clone() for name, p in made.named_parameters()}
    Optimiser(made, kind, 1e-3, 0.02).step(share)  # type: ignore[arg-type]
    return {name: p.detach() - before[name] for name, p in made.named_parameters()}


def test_muon_moves_a_matrix_alike_in_all_directions() -> None:
    moved = steps("muon")
    for name in ("encoder.0.attention.qkv.weight", "decoder.0.feed_forward.inner.weight"):
        rows, columns = moved[name].shape
        sizes = torch.linalg.svdvals(moved[name]) / (0.02 * math.sqrt(max(1, rows / columns)))
        assert float(sizes.median()) > 0.5, name
        assert float(sizes.max()) < 1.3, name


def test_adam_moves_tables_norms_and_biases_as_ever() -> None:
    adam, muon = steps("adam"), steps("muon")
    matrices = {
        name
        for name, step in adam.items()
        if step.dim() == 2 and not name.startswith(("embedding", "output"))
    }
    assert len(matrices) == 11
    for name, step in adam.items():
        assert torch.equal(step, muon[name]) == (name not in matrices), name


def test_a_share_of_the_rates_moves_everything_by_that_share() -> None:
    whole, half = steps("muon"), steps("muon", 0.5)
    for name, step in whole.items():
        torch.testing.assert_close(half[name], step / 2, atol=1e-6, rtol=1e-4, msg=name)


def test_muon_is_torchs_own_where_products_are_bf16() -> None:
    torch.manual_seed(1)
    ours, theirs = (
        [torch.nn.Parameter(torch.ones(24, 8)), torch.nn.Parameter(torch.ones(8, 40))]
        for _ in range(2)
    )
    muon = Muon(ours, 0.02, torch.bfloat16)
    other = torch.optim.Muon(theirs, lr=0.02, weight_decay=0.0)
    for _ in range(3):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn_like(a)
            b.grad = a.grad.clone()
        muon.step()
        other.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=0)
        assert float((a.detach() - 1).abs().max()) > 0.01


def test_processes_share_matrices_so_that_each_does_as_much() -> None:
    sizes = [(512, 1536), (512, 512), (512, 512), (256, 256), (2, 3)]
    shares = shared([torch.empty(size) for size in sizes], 2)
    assert shares == [[0], [1, 2, 3, 4]]
