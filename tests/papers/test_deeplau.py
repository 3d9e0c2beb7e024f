"""DeepLAU keeps the backbone's laws, its unit is that of the equations, and it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_training import CONFIG, pairs, sentences
from torch import Tensor
from torch.nn import functional as F

from tmnmt.models.base import shift
from tmnmt.models.decoding import for_decoding
from tmnmt.models.folder import load_model, save_model
from tmnmt.models.kinds import make
from tmnmt.papers.deeplau import DeepLAU, DeepLAUConfig, LinearAssociativeUnit, Normed
from tmnmt.papers.reference_network import ReferenceKind, Referring, network_of
from tmnmt.training.config import load_config
from tmnmt.training.trainer import Trainer
from tmnmt.vocab import BOS, Vocabulary

SIZES = {
    "kind": "deeplau",
    "embedding": 6,
    "hidden": 8,
    "attention": 5,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "dropout": 0.0,
}


def tiny(words: int = 20) -> DeepLAU:
    torch.manual_seed(0)
    model = make(words, SIZES)
    assert isinstance(model, DeepLAU)
    with torch.no_grad():  # gates that are not all a half
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    src = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [8, 9, 2, 0]])
    tgt = torch.tensor([[10, 11, 2, 0, 0], [12, 13, 14, 15, 2], [16, 2, 0, 0, 0]])
    return src, torch.tensor([4, 2, 3]), tgt


@pytest.mark.parametrize("referring", [False, True])
def test_step_repeated_equals_forced_together_and_alone(referring: bool) -> None:
    model, (src, src_len, tgt) = tiny(), batch()
    backbone: DeepLAU | Referring = model
    if referring:
        network = network_of(ReferenceKind("bilingual", anchors=3, hidden=4, size=3), model)
        with torch.no_grad():
            network.into.weight.normal_()  # type: ignore[union-attr, operator]
        backbone = Referring(model, network).eval()
    with torch.no_grad():
        encoded = backbone.encode(src, src_len)
        contexts, hiddens = backbone.forced(encoded, tgt)
        state = backbone.start(encoded)
        for t, prev in enumerate(shift(tgt, BOS).unbind(1)):
            state, context, hidden = for_decoding(backbone).step(prev, state, encoded)
            torch.testing.assert_close(context, contexts[:, t], atol=1e-5, rtol=0)
            torch.testing.assert_close(hidden, hiddens[:, t], atol=1e-5, rtol=0)
        for row, (s, t) in enumerate(zip(src_len.tolist(), (3, 5, 2), strict=True)):
            alone = backbone.encode(src[row : row + 1, :s], src_len[row : row + 1])
            _, own = backbone.forced(alone, tgt[row : row + 1, :t])
            torch.testing.assert_close(own[0], hiddens[row, :t], atol=1e-5, rtol=0)
        alphas = backbone.alphas(encoded, tgt)
        read = torch.bmm(alphas, encoded.values)
        torch.testing.assert_close(read, contexts, atol=1e-5, rtol=0)
        if referring:
            assert (model.forced(encoded, tgt)[1] - hiddens).abs().max() > 0.01


def test_a_unit_is_that_of_the_equations() -> None:
    torch.manual_seed(4)
    unit, x, h = LinearAssociativeUnit(3, 4), torch.randn(2, 3), torch.randn(2, 4)

    def products(normed: Normed, of: Tensor) -> list[Tensor]:
        return [F.layer_norm(of @ w.t(), (4,)) for w in normed.product.weight.split(4)]

    with torch.no_grad():
        *read, linear = products(unit.read, x)
        r, z, g = (
            torch.sigmoid(a + b) for a, b in zip(read[:3], products(unit.kept, h)[:3], strict=True)
        )
        candidate = torch.tanh((1 - r) * read[3] + r * products(unit.kept, h)[3])
        expected = (1 - g) * ((1 - z) * h + z * candidate) + g * linear
        torch.testing.assert_close(unit.step(unit.read(x), h), expected)


def test_layers_of_the_encoder_read_in_turn_from_both_sides() -> None:
    """The first word's state knows the last word, and the last word's the first."""
    model = tiny()
    src, length = torch.tensor([[4, 5, 6, 2]]), torch.tensor([4])
    with torch.no_grad():
        whole = model.encode(src, length).values[0]
        for changed, seen in ((0, 3), (3, 0)):
            other = src.clone()
            other[0, changed] = 9
            assert (model.encode(other, length).values[0, seen] - whole[seen]).abs().max() > 1e-4


def test_gradients_equal_numerical_ones_in_double() -> None:
    model, (src, src_len, tgt) = tiny().double(), batch()
    names = [name for name, _ in model.named_parameters()]
    values = tuple(p.detach().clone().requires_grad_() for p in model.parameters())

    def loss(*parameters: Tensor) -> Tensor:
        named = dict(zip(names, parameters, strict=True))
        out: Tensor = torch.func.functional_call(model, named, (src, src_len, tgt))
        return out

    model.forward = lambda *args: model.loss(*args)
    assert torch.autograd.gradcheck(loss, values, atol=1e-6, rtol=1e-4, fast_mode=True)


def test_gradients_with_products_in_bf16_are_those_of_fp32_rounded() -> None:
    exact, rounded = tiny(), tiny()
    rounded.dtype = torch.bfloat16
    losses = [model.loss(*batch()) for model in (exact, rounded)]
    torch.testing.assert_close(losses[1], losses[0], rtol=0.02, atol=0)
    for loss in losses:
        loss.backward()
    for (name, ours), theirs in zip(rounded.named_parameters(), exact.parameters(), strict=True):
        assert ours.grad is not None and theirs.grad is not None, name
        assert ours.grad.dtype == torch.float32
        off = (ours.grad - theirs.grad).norm() / theirs.grad.norm()
        assert off < 0.1, (name, off)


def test_it_learns_and_its_folder_loads(tmp_path: Path) -> None:
    vocab = Vocabulary.train(sentences(60), 290)
    model = make(len(vocab), SIZES | {"hidden": 16, "embedding": 16})
    trainer = Trainer(model, vocab, pairs(vocab, 80), pairs(vocab, 10, 1), CONFIG, tmp_path)
    progress = trainer.run()
    lines = (tmp_path / "train.jsonl").read_text()
    assert progress.update == CONFIG.updates and '"dev_loss"' in lines
    assert progress.best < 5.5 < float(torch.tensor(len(vocab)).log())
    config = {"src_lang": "en", "tgt_lang": "fr", "model": SIZES | {"hidden": 16, "embedding": 16}}
    save_model(tmp_path / "model", model, vocab, config)
    loaded = load_model(tmp_path / "model").backbone
    assert isinstance(loaded, DeepLAU)
    for name, value in loaded.state_dict().items():
        assert torch.equal(value, model.state_dict()[name])


def test_a_configuration_names_it(tmp_path: Path) -> None:
    text = 'folder = "r"\n[data]\n[[data.corpus]]\nname = "a"\nfiles = ["a.tmx"]\n[model]\n'
    (tmp_path / "c.toml").write_text(text + 'kind = "deeplau"\nencoder_layers = 2\n')
    model = load_config(tmp_path / "c.toml").model
    assert isinstance(model, DeepLAUConfig)
    assert (model.encoder_layers, model.decoder_layers) == (2, 4)


def test_only_some_words_are_compared_where_that_is_asked_for() -> None:
    model, words = tiny(), torch.tensor([2, 7, 11])
    prev, hidden, context = torch.tensor([5, 6]), torch.randn(2, 8), torch.randn(2, 8)
    with torch.no_grad():
        every = model.readout(prev, hidden, context)
        some = model.limited_to(words).readout(prev, hidden, context)
        assert torch.equal(model.readout(prev, hidden, context), every)
    torch.testing.assert_close(some[:, words], every[:, words])
    assert torch.isinf(some).sum() == 2 * (20 - 3)
