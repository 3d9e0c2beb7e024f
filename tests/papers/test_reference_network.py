"""Reference networks: coding, injection and the laws of a backbone that reads one."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
import torch
from tiny_model import SIZES, trained, write_tiny_model
from torch import Tensor

from tmnmt.errors import ModelError
from tmnmt.models.base import shift
from tmnmt.models.decoding import for_decoding
from tmnmt.models.folder import load_model, save_model, stamp
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.local_coding import LocalCoding, spread
from tmnmt.papers.reading import Step
from tmnmt.papers.reference_network import (
    Bilingual,
    Form,
    Monolingual,
    ReferenceKind,
    Referring,
    network_of,
)
from tmnmt.vocab import BOS, EOS

FORMS: list[Form] = ["monolingual", "bilingual", "regression"]
CONFIG = {"src_lang": "en", "tgt_lang": "fr", "max_subwords": 40, "model": SIZES}


def tiny() -> RNNsearch:
    torch.manual_seed(0)
    return RNNsearch(20, embedding=4, hidden=6, attention=5, dropout=0.0).eval()


def referring(form: Form, learned: bool = True, base: RNNsearch | None = None) -> Referring:
    """With a network as after training: nothing is zero."""
    base = base or tiny()
    torch.manual_seed(3)
    network = network_of(ReferenceKind(form, anchors=4, hidden=5, size=3), base)
    if learned:
        with torch.no_grad():
            for value in network.state_dict().values():
                value.normal_(std=0.7)
    return Referring(base, network).eval()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    src = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [8, 9, 2, 0]])
    tgt = torch.tensor([[10, 11, 2, 0, 0], [12, 13, 14, 15, 2], [16, 2, 0, 0, 0]])
    return src, torch.tensor([4, 2, 3]), tgt


def by_steps(backbone: Referring, src: Tensor, src_len: Tensor, tgt: Tensor) -> list[Tensor]:
    """Contexts and hidden states by the decoder's own step."""
    encoded = backbone.encode(src, src_len)
    state, said = backbone.start(encoded), []
    for prev in shift(tgt, BOS).unbind(1):
        state, context, hidden = backbone.step(prev, state, encoded)
        said.append((context, hidden))
    return [torch.stack(part, 1) for part in zip(*said, strict=True)]


@pytest.mark.parametrize("form", FORMS)
def test_forced_and_steps_agree_and_the_network_changes_them(form: Form) -> None:
    backbone, (src, src_len, tgt) = referring(form), batch()
    with torch.no_grad():
        encoded = backbone.encode(src, src_len)
        forced = backbone.forced(encoded, tgt)
        for ours, theirs in zip(forced, by_steps(backbone, src, src_len, tgt), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
        plain = backbone.base.forced(encoded, tgt)
    assert (forced[1] - plain[1]).abs().max() > 0.01
    assert (forced[0][:, 1:] - plain[0][:, 1:]).abs().max() > 1e-4  # through the recurrence


@pytest.mark.parametrize("form", FORMS)
def test_together_and_one_by_one_are_the_same(form: Form) -> None:
    backbone, (src, src_len, tgt) = referring(form), batch()
    with torch.no_grad():
        _, together = backbone.forced(backbone.encode(src, src_len), tgt)
        for row, (s, t) in enumerate(zip(src_len.tolist(), (3, 5, 2), strict=True)):
            encoded = backbone.encode(src[row : row + 1, :s], src_len[row : row + 1])
            _, alone = backbone.forced(encoded, tgt[row : row + 1, :t])
            torch.testing.assert_close(together[row, :t], alone[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("form", FORMS)
def test_decoding_reads_the_network_too(form: Form) -> None:
    backbone, (src, src_len, tgt) = referring(form), batch()
    fast = for_decoding(backbone)
    assert isinstance(fast, Referring)
    with torch.no_grad():
        encoded = backbone.encode(src, src_len)
        real = tgt != 0
        for ours, theirs in zip(
            fast.forced(encoded, tgt), backbone.forced(encoded, tgt), strict=True
        ):
            torch.testing.assert_close(ours[real], theirs[real], atol=1e-5, rtol=0)
        stepped = by_steps(fast, src, src_len, tgt)[1]
        torch.testing.assert_close(
            stepped[real], backbone.forced(encoded, tgt)[1][real], atol=1e-5, rtol=0
        )
        alphas = fast.alphas(encoded, tgt)
        assert (alphas - fast.base.alphas(encoded, tgt))[real].abs().max() > 1e-4
        torch.testing.assert_close(alphas[real], backbone.alphas(encoded, tgt)[real])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decoding", [False, True])
def test_an_untrained_network_is_the_plain_model_bit_for_bit(form: Form, decoding: bool) -> None:
    backbone, (src, src_len, tgt) = referring(form, learned=False), batch()
    used = for_decoding(backbone) if decoding else backbone
    assert isinstance(used, Referring)
    with torch.no_grad():
        encoded = used.encode(src, src_len)
        state = plain = used.start(encoded)
        for prev in shift(tgt, BOS).unbind(1):
            state, context, _ = used.step(prev, state, encoded)
            plain, plain_context, _ = used.base.step(prev, plain, encoded)
            assert torch.equal(state, plain) and torch.equal(context, plain_context)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_flow_through_the_recurrence_and_equal_numerical_ones(form: Form) -> None:
    backbone, (src, src_len, tgt) = referring(form).double(), batch()
    network = backbone.network
    names = [name for name, _ in network.named_parameters()]
    values = tuple(p.detach().clone().requires_grad_() for p in network.parameters())
    encoded = backbone.base.encode(src, src_len)
    encoded = type(encoded)(*(x.detach() for x in vars(encoded).values()))

    def last(*parameters: Tensor) -> Tensor:
        """What the last position has of every position before it."""
        for name, value in zip(names, parameters, strict=True):
            owner, _, attribute = name.rpartition(".")
            module = network.get_submodule(owner)
            module._parameters.pop(attribute, None)
            object.__setattr__(module, attribute, value)
        return backbone.forced(encoded, tgt)[1][:, -1].sum()

    assert torch.autograd.gradcheck(last, values, atol=1e-6, rtol=1e-5)
    grads = torch.autograd.grad(last(*values), values)
    assert all(grad.abs().sum() > 0 for grad in grads)


def test_the_global_context_is_that_of_the_equations() -> None:
    """Eq. 14, 15 by loops over rows and anchors."""
    network, made = referring("monolingual").network, torch.Generator().manual_seed(1)
    assert isinstance(network, Monolingual)
    state, context = (torch.randn(2, 6, generator=made) for _ in range(2))
    steps: list[Step] = []
    with torch.no_grad():
        injected = network.injector(lambda ids: ids, steps.append)(
            torch.tensor([1, 2]), state, context
        )
        for row in range(2):
            energies = [
                network.vector
                @ torch.tanh(
                    network.of_state.weight @ state[row]
                    + network.of_context.weight @ context[row]
                    + network.of_anchor.weight @ v
                )
                for v in network.anchors
            ]
            alpha = torch.stack(energies).softmax(0)
            c_g = sum(a * v for a, v in zip(alpha, network.anchors, strict=True))
            assert steps[0].weights is not None
            torch.testing.assert_close(steps[0].weights[row], alpha)
            torch.testing.assert_close(injected[row], network.into.weight @ c_g)


def test_the_regression_is_that_of_the_equations() -> None:
    """Eq. 17 to 21 by loops over rows and anchors."""
    network, made = referring("bilingual").network, torch.Generator().manual_seed(1)
    assert isinstance(network, Bilingual)
    coding = network.coding
    words = torch.randn(2, 4, generator=made)
    state, context = (torch.randn(2, 6, generator=made) for _ in range(2))
    steps: list[Step] = []
    with torch.no_grad():
        network.injector(lambda ids: words, steps.append)(torch.tensor([1, 2]), state, context)
        for row in range(2):
            q = torch.cat([words[row], state[row], context[row]])
            g = torch.tanh(network.point.weight @ q + network.point.bias)
            scores = [
                coding.vector
                @ torch.tanh(
                    coding.of_anchor.weight @ v
                    + coding.of_point.weight @ q
                    + coding.of_both.weight @ (v * g)
                )
                for v in coding.anchors
            ]
            gamma = torch.stack(scores).softmax(0)
            f = sum(
                gamma[j] * (network.weight[j].t() @ g + network.bias[j]) for j in range(len(gamma))
            )
            assert steps[0].word is not None
            torch.testing.assert_close(steps[0].word[row], f)


def test_localisation_is_that_of_the_equation() -> None:
    """Eq. 13 by loops; 2.0 and 0.3 stand for l_alpha and l_beta."""
    torch.manual_seed(2)
    coding, points = LocalCoding(3, 4, 4, 5), torch.randn(2, 4)
    with torch.no_grad():
        expected = 0.0
        for h, gamma in zip(points, coding.coding()(points, points), strict=True):
            said = gamma @ coding.anchors
            expected += 2.0 * float((h - said).norm())
            expected += 0.3 * sum(
                float(gamma[j] * ((coding.anchors[j] - said) ** 2).sum()) for j in range(3)
            )
        assert float(coding.localisation(points, 2.0, 0.3)) == pytest.approx(expected, rel=1e-5)
        torch.testing.assert_close(coding.coding()(points, points).sum(-1), torch.ones(2))


def test_anchors_begin_at_the_middle_of_clusters_and_by_the_seed() -> None:
    made = torch.Generator().manual_seed(1)
    middles = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = (middles[:, None] + 0.1 * torch.randn(3, 20, 2, generator=made)).flatten(0, 1)
    found = spread(points, 3, seed=3)
    assert torch.equal(found, spread(points, 3, seed=3))
    assert not torch.equal(found, spread(points, 3, seed=4))
    means = points.view(3, 20, 2).mean(1)
    assert torch.cdist(means, found).amin(1).max() < 1e-5


@pytest.mark.parametrize("form", FORMS)
def test_saved_and_loaded_it_is_the_same(form: Form, tmp_path: Path) -> None:
    vocab, base = trained()
    backbone = referring(form, base=base.eval())
    save_model(tmp_path / "model", backbone, vocab, CONFIG)
    model = load_model(tmp_path / "model")
    assert isinstance(model.backbone, Referring) and model.backbone.network.kind.form == form
    src = torch.tensor([[*vocab.encode("It shall apply."), EOS]])
    encoded = backbone.encode(src, torch.tensor([src.shape[1]]))
    with torch.no_grad():
        for ours, theirs in zip(
            model.backbone.forced(encoded, src), backbone.forced(encoded, src), strict=True
        ):
            assert torch.equal(ours, theirs)


def test_the_hash_is_of_base_and_network_and_plain_has_neither_more(tmp_path: Path) -> None:
    vocab, base = trained()
    plain = load_model(write_tiny_model(tmp_path / "plain", memories=False))
    assert plain.plain() is plain and plain.hash == plain.base_hash
    save_model(tmp_path / "model", referring("bilingual", base=base), vocab, CONFIG)
    model = load_model(tmp_path / "model")
    assert model.hash != plain.hash == model.base_hash == model.plain().hash
    assert isinstance(model.plain().backbone, RNNsearch)


def test_a_network_of_another_base_or_damaged_is_refused(tmp_path: Path) -> None:
    vocab, base = trained()
    folder = tmp_path / "model"
    save_model(folder, referring("monolingual", base=base), vocab, CONFIG)
    other = copytree(folder, tmp_path / "other")
    with (other / "reference.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\1")
    with pytest.raises(ModelError, match=r"reference\.safetensors: damaged"):
        load_model(other)
    (other / "reference.safetensors").unlink()
    with pytest.raises(ModelError, match=r"reference\.safetensors: cannot be read"):
        load_model(other)
    torch.manual_seed(9)
    another = RNNsearch(len(vocab), **SIZES)  # type: ignore[arg-type]
    kept = (folder / "reference.safetensors").read_bytes()
    save_model(folder, another, vocab, CONFIG)
    (folder / "reference.safetensors").write_bytes(kept)
    stamp(folder)
    with pytest.raises(ModelError, match="it has learned with the base"):
        load_model(folder)


@pytest.mark.parametrize("form", FORMS)
def test_with_a_shortlist_the_network_is_read_as_without(form: Form) -> None:
    backbone, (src, src_len, _) = for_decoding(referring(form)), batch()
    some, words = backbone.limited_to(torch.tensor([2, 7, 11])), torch.tensor([BOS] * 3)
    with torch.no_grad():
        encoded = backbone.encode(src, src_len)
        steps = [each.step(words, each.start(encoded), encoded) for each in (backbone, some)]
        for one, other in zip(*steps, strict=True):
            assert torch.equal(one, other)
        logits = some.readout(words, steps[1][2], steps[1][1])
    assert torch.isinf(logits).sum() == 3 * (20 - 3)
