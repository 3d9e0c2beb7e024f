"""Reference networks learn in the paper's steps: what is fixed stays, and what is learned helps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_memory_training import base, documents, interrupt_at, log_of, run_of, sentences
from torch import Tensor

from tmnmt.config.options import Form
from tmnmt.errors import UsageError
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.network_config import ReferenceConfig
from tmnmt.papers.reading import Step
from tmnmt.papers.reference_network import Bilingual, Referring, network_of
from tmnmt.papers.reference_training import AnchorPart, ReferencePart, pooled, train_reference
from tmnmt.training.config import load_config
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.parts import Flat, PartTrainer
from tmnmt.training.run import train
from tmnmt.training.trainers import NetworkOutcome
from tmnmt.vocab import BOS, EOS, Vocabulary

SAVED = ("base.safetensors", "reference.safetensors", "memory.safetensors", "config.toml")

CONFIG = ReferenceConfig(
    anchors=5,
    anchor_size=6,
    hidden=8,
    anchor_epochs=4,
    anchor_batch=8,
    epochs=6,
    learning_rate=2e-2,
    base_learning_rate=5e-3,
    batch_tokens=200,
    validate_every=8,
    checkpoint_every=3,
)


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train((text for s in sentences() for text in (s.src, s.tgt)), 320)


def learn(
    folder: Path, vocab: Vocabulary, config: ReferenceConfig, resume: bool = False
) -> NetworkOutcome:
    made = documents()
    return train_reference(base(vocab), vocab, made[:5], made[5:], folder, config, resume)


def weights(backbone: RNNsearch) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in backbone.state_dict().items()}


@pytest.mark.parametrize(("form", "left"), [("monolingual", 0.97), ("bilingual", 0.995)])
def test_a_network_learns_and_what_the_paper_fixes_stays(
    form: Form, left: float, tmp_path: Path, vocab: Vocabulary
) -> None:
    before = weights(base(vocab))
    learned = learn(tmp_path, vocab, replace(CONFIG, form=form))
    after = weights(learned.backbone.base)  # type: ignore[arg-type]
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert learned.loss_after < left * learned.loss_before
    if form == "bilingual":
        assert moved == set()
        wrong = log_of(tmp_path, "reference", "dev_regression")
        assert wrong[-1] < wrong[0]
    else:
        assert moved == {name for name in before if not name.startswith(("embedding", "encoder_"))}


def test_a_bilingual_network_loses_what_the_equations_say(vocab: Vocabulary) -> None:
    """Eq. 23 to 25, a sentence at a time, a word at a time: log p, and lambda times the squared
    distance of f_s(q_t) from the word that comes, and what weights cost."""
    config = replace(CONFIG, form="bilingual", regression=0.7, decay=0.01)
    backbone, own = base(vocab).eval().requires_grad_(False), documents()[5]
    torch.manual_seed(2)
    network = network_of(config.kind(), backbone)
    for value in network.parameters():
        torch.nn.init.normal_(value, std=0.3)
    network.requires_grad_(False)
    assert isinstance(network, Bilingual)
    part = ReferencePart(network, backbone, vocab, own, own, config)
    together, tokens = part.loss(own[:3])
    expected, words = 0.0, 0
    for segment in own[:3]:
        src, tgt = ([*vocab.encode(text), EOS] for text in (segment.src, segment.tgt))
        encoded = backbone.encode(torch.tensor([src]), torch.tensor([len(src)]))
        state, prev = backbone.start(encoded), BOS
        for word in tgt:
            steps: list[Step] = []
            inject = network.injector(backbone.embed, steps.append)
            before = torch.tensor([prev])
            state, context, hidden = backbone.step(before, state, encoded, inject)
            log_p = backbone.readout(before, hidden, context).log_softmax(-1)[0, word]
            assert steps[0].word is not None
            wrong = (backbone.embed(torch.tensor([word])) - steps[0].word)[0].square().sum()
            expected += float(0.7 * wrong - log_p)
            prev, words = word, words + 1
        expected += 0.7 * 0.01 * float(network.weight.square().sum())
    assert tokens == words
    assert float(together) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_anchors_lose_the_same_whatever_unit_the_states_are_in(scale: float) -> None:
    """Eq. 13: distances count by the unit of the points, squares by its square."""
    points = torch.randn(60, 7, generator=torch.Generator().manual_seed(5))
    one, other = (AnchorPart(points * by, replace(CONFIG, far=0.5)) for by in (1.0, scale))
    other.module.load_state_dict(one.module.state_dict())
    with torch.no_grad():
        other.module.anchors.mul_(scale)
        other.module.of_anchor.weight.div_(scale)
        other.module.of_point.weight.div_(scale)
        other.module.of_both.weight.div_(scale**2)
        own, scaled = float(one._loss(points)), float(other._loss(points * scale))
        unit = float((points - points.mean(0)).norm(dim=-1).mean())
        alone = float(one.module.localisation(points, 0.5 / unit, CONFIG.near / unit**2))
    assert scaled == pytest.approx(own, rel=1e-4) and own == pytest.approx(alone, rel=1e-5)


def test_with_the_decoder_fixed_a_monolingual_network_leaves_the_base_as_it_is(
    tmp_path: Path, vocab: Vocabulary
) -> None:
    before = weights(base(vocab))
    learned = learn(tmp_path, vocab, replace(CONFIG, decoder=False))
    after = weights(learned.backbone.base)  # type: ignore[arg-type]
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert learned.loss_after < learned.loss_before


def test_before_the_first_update_dev_is_the_plain_model_s(
    tmp_path: Path, vocab: Vocabulary
) -> None:
    learned, made = learn(tmp_path, vocab, replace(CONFIG, form="bilingual")), documents()[5]
    plain, total, tokens = base(vocab).eval(), 0.0, 0
    for segment in made:
        src = torch.tensor([[*vocab.encode(segment.src), EOS]])
        tgt = torch.tensor([[*vocab.encode(segment.tgt), EOS]])
        with torch.no_grad():
            total += float(plain.loss(src, torch.tensor([src.shape[1]]), tgt))
        tokens += tgt.shape[1]
    assert learned.loss_before == pytest.approx(total / tokens, abs=1e-4)


@pytest.mark.parametrize("form", ["monolingual", "bilingual"])
def test_the_seed_says_all_and_a_broken_run_goes_on_as_if_it_had_not_been(
    form: Form, tmp_path: Path, vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, form=form, epochs=2)
    whole = learn(tmp_path / "whole", vocab, config).backbone.state_dict()
    with monkeypatch.context() as broken:
        interrupt_at(broken, 5)
        with pytest.raises(KeyboardInterrupt):
            learn(tmp_path / "broken", vocab, config)
    resumed = learn(tmp_path / "broken", vocab, config, resume=True).backbone.state_dict()
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())
    other = learn(tmp_path / "other", vocab, replace(config, seed=2)).backbone.state_dict()
    assert any(not torch.equal(value, other[name]) for name, value in whole.items())


def test_mean_states_are_those_of_each_sentence_alone(vocab: Vocabulary) -> None:
    backbone, segments = base(vocab).eval(), sentences()[:5]
    together = pooled(backbone, vocab, segments)
    for row, segment in zip(together, segments, strict=True):
        src = torch.tensor([[*vocab.encode(segment.src), EOS]])
        with torch.no_grad():
            states = backbone.encode(src, torch.tensor([src.shape[1]])).values[0]
        torch.testing.assert_close(row, states.mean(0))


def test_anchors_come_nearer_to_what_they_say_than_the_middle_is() -> None:
    """Points on a curve: the middle is 1 away by the unit; anchors say them within a third."""
    angle = torch.linspace(0, 3, 400)
    points = 5 * torch.stack([angle.cos(), angle.sin(), 0.3 * angle], 1)
    config = replace(CONFIG, anchors=8, hidden=16, anchor_learning_rate=1e-2)
    part = AnchorPart(points, config)
    optimiser = torch.optim.Adam(part.module.parameters(), lr=1e-2)
    begun = part.validate()
    for unit in part.units(0):
        optimiser.zero_grad()
        ((loss, _),) = part.losses(unit)
        loss.backward()
        optimiser.step()
    learned = part.validate()
    assert learned["criterion"] < begun["criterion"]
    assert learned["distance"] < 0.33


@pytest.mark.parametrize(("gain", "epochs"), [(0.9, 3), (0.0, 6)])
def test_anchors_are_found_until_they_are_flat(gain: float, epochs: int, tmp_path: Path) -> None:
    """Two epochs of too small a gain end it; where every gain counts, all epochs are used."""
    angle = torch.linspace(0, 3, 100)
    part = AnchorPart(torch.stack([angle.cos(), angle.sin()], 1), replace(CONFIG, hidden=16))
    trainer = PartTrainer(part, tmp_path, 6, 1e-3, 1000, 1000, flat=Flat(gain, 2))
    trainer.run()
    assert trainer.standing.done and trainer.standing.epoch == epochs


def test_train_makes_a_base_a_network_and_layers_on_top_of_both(tmp_path: Path) -> None:
    memory = MemoryConfig(
        copy=False, fusion=False, cache_pairs=20, dev_segments=10, documents_together=2
    )
    config = replace(
        run_of(tmp_path, memory), reference=replace(CONFIG, form="monolingual", epochs=1)
    )
    folder = train(config)
    model = load_model(folder)
    assert isinstance(model.backbone, Referring)
    layers = MemoryLayers.load(folder / "memory.safetensors", model.backbone)
    assert layers.cache is not None and layers.tm is None
    files = {name: (folder / name).read_bytes() for name in SAVED}
    assert train(config, resume=True) == folder
    assert {name: (folder / name).read_bytes() for name in SAVED} == files


def test_what_does_not_go_together_is_a_usage_error(tmp_path: Path) -> None:
    start = 'folder = "r"\n[data]\n[[data.corpus]]\nname = "a"\nfiles = ["a.tmx"]\n[reference]\n'
    for text, message in (
        ('[model]\nkind = "transformer"\n', "a transformer takes no reference network"),
        ("[memory]\nend_to_end = true\n", "leave out one or the other"),
    ):
        (tmp_path / "c.toml").write_text(start + text)
        with pytest.raises(UsageError, match=message):
            load_config(tmp_path / "c.toml")
    (tmp_path / "c.toml").write_text(start.replace("[reference]\n", "[reference]\nform = 'x'\n"))
    with pytest.raises(UsageError, match="form"):
        load_config(tmp_path / "c.toml")
