"""End-to-end training: gradients reach the base through keys, resume is exact, base and memories
belong together."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_memory_training import CONFIG, base, documents, interrupt_at, log_of, run_of, sentences
from torch import Tensor

from tmnmt.errors import UsageError
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.end_to_end import EVERYWHERE, EndToEndPart
from tmnmt.segments import Segment
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.training.memory import TrainingOutcome, train_layers
from tmnmt.training.memory_config import History, MemoryConfig
from tmnmt.training.retrieve import RetrievedPair, Shares
from tmnmt.training.run import train
from tmnmt.training.tm import PairedSentences, fresh_keys
from tmnmt.vocab import EOS, Vocabulary


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train([text for s in sentences() for text in (s.src, s.tgt)], 340)


def part(vocab: Vocabulary, shares: Shares) -> EndToEndPart:
    """Four sentences with two pairs each."""
    segments, pairs = sentences()[:4], sentences()[20:28]
    found = [[RetrievedPair(p.src, p.tgt, 0.6) for p in pairs[2 * i : 2 * i + 2]] for i in range(4)]
    paired = PairedSentences(segments, found, range(4), pairs, 2, shares, 50, 1)
    torch.manual_seed(4)
    tm = TranslationMemory(16, 16, 8)
    with torch.no_grad():
        assert tm.word is not None
        tm.word.weight.normal_(std=0.3)
        for gate in (tm.copy, tm.fusion):
            assert gate is not None
            gate.out.bias.fill_(1.0)  # open: what is read matters
    return EndToEndPart(tm, base(vocab), vocab, paired, paired, 400, 1e-3)


def loss_of(part: EndToEndPart) -> Tensor:
    (unit,) = part.units(0)
    ((loss, _),) = part.losses(unit)
    return loss


def gradient_of(part: EndToEndPart) -> list[Tensor]:
    loss_of(part).backward()
    made = [p.grad.clone() for p in part.backbone.parameters() if p.grad is not None]
    assert len(made) == len(list(part.backbone.parameters()))
    part.module.zero_grad()
    return made


def test_gradients_reach_the_base_through_the_keys_and_are_those_of_finite_differences(
    vocab: Vocabulary,
) -> None:
    made = part(vocab, Shares(0.5, 0.0, 0.0))
    whole = gradient_of(made)
    made.keys = fresh_keys(
        made.backbone, vocab, 50, made.device
    )  # as with a fixed base: keys are given
    without_keys = gradient_of(made)
    made.keys = fresh_keys(made.backbone, vocab, 50, made.device, gradients=True)
    direction = [a - b for a, b in zip(whole, without_keys, strict=True)]
    length = torch.cat([d.flatten() for d in direction]).norm()
    assert length > 1
    direction = [d / length for d in direction]

    def moved(by: float) -> float:
        with torch.no_grad():
            for parameter, d in zip(made.backbone.parameters(), direction, strict=True):
                parameter.add_(by * d)
            return float(loss_of(made))

    step = 1e-2
    slope = (moved(step) - moved(-2 * step)) / (2 * step)
    expected, detached = (
        float(sum((g * d).sum() for g, d in zip(some, direction, strict=True)))
        for some in (whole, without_keys)
    )
    assert slope == pytest.approx(expected, rel=0.01) and abs(slope - detached) > 0.1 * abs(slope)


def test_sentences_without_a_pair_are_the_plain_models_and_teach_the_base_alone(
    vocab: Vocabulary,
) -> None:
    made = part(vocab, Shares(0.5, 0.0, 0.0, 0.0, no_pair=1.0))
    plain = 0.0
    with torch.no_grad():
        for s in sentences()[:4]:
            src, tgt = ([*vocab.encode(text), EOS] for text in (s.src, s.tgt))
            args = torch.tensor([src]), torch.tensor([len(src)]), torch.tensor([tgt])
            plain += float(made.backbone.loss(*args))  # type: ignore[operator]
    loss = loss_of(made)
    assert float(loss.detach()) == pytest.approx(2 * plain, rel=1e-5)  # of copy and of fusion
    loss.backward()
    assert all(p.grad is None for p in made.tm.parameters()) and all(
        p.grad is not None for p in made.backbone.parameters()
    )


E2E = replace(
    CONFIG, end_to_end=True, cache=False, base_learning_rate=5e-2, share_no_pair=0.2, tm_epochs=2
)


def resumed_run(
    folder: Path, vocab: Vocabulary, config: MemoryConfig, monkeypatch: pytest.MonkeyPatch
) -> tuple[RNNsearch, TrainingOutcome]:
    """The base and its layers of a run that was stopped after four updates and gone on with."""
    data = documents()[:5], documents()[5:]
    interrupt_at(monkeypatch, 4)
    with pytest.raises(KeyboardInterrupt):
        train_layers(base(vocab, dropout=0.2), vocab, *data, folder, config)
    monkeypatch.undo()
    again = base(vocab, dropout=0.2)
    return again, train_layers(again, vocab, *data, folder, config, resume=True)


def test_it_beats_the_plain_base_and_a_resumed_run_equals_an_unbroken_one(
    tmp_path: Path, vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = documents()[:5], documents()[5:]
    whole_base = base(vocab, dropout=0.2)
    before = {name: value.clone() for name, value in whole_base.state_dict().items()}
    whole, reached = train_layers(whole_base, vocab, *data, tmp_path / "whole", E2E)
    plain = log_of(tmp_path / "whole", "tm", "dev_plain")
    everywhere = log_of(tmp_path / "whole", "tm", f"dev_{EVERYWHERE}")
    assert (
        reached["copy"][1] < reached["copy"][0] < plain[0] - 0.2
        and min(everywhere) < everywhere[0] - 0.2
    )
    assert not whole_base.training and not any(p.requires_grad for p in whole_base.parameters())
    assert not torch.equal(whole_base.encoder_weight, before["encoder_weight"])
    again, (resumed, reached_again) = resumed_run(tmp_path / "broken", vocab, E2E, monkeypatch)
    assert reached_again == reached
    for one, other in ((whole, resumed), (whole_base, again)):
        for name, value in one.state_dict().items():
            assert torch.equal(value, other.state_dict()[name]), name


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(value, other[name]) for name, value in one.items()
    )


CACHE_ALONE = replace(
    E2E,
    copy=False,
    fusion=False,
    cache=True,
    cache_fusion="deep",
    cache_matching="dot",
    cache_epochs=2,
    base_learning_rate=1e-2,
)


@pytest.mark.parametrize("history", ["confirmed", "own"])
def test_the_base_learns_with_the_cache_where_no_tm_does(
    tmp_path: Path, vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch, history: History
) -> None:
    config, data = replace(CACHE_ALONE, cache_history=history), (documents()[:5], documents()[5:])
    whole_base = base(vocab, dropout=0.2)
    before = {name: value.clone() for name, value in whole_base.state_dict().items()}
    whole, reached = train_layers(whole_base, vocab, *data, tmp_path / "whole", config)
    plain = log_of(tmp_path / "whole", "cache", "dev_plain")
    assert reached["cache"][1] < plain[0] - 0.2 and min(plain) < plain[0] - 0.2
    assert not whole_base.training and not any(p.requires_grad for p in whole_base.parameters())
    assert not torch.equal(whole_base.encoder_weight, before["encoder_weight"])
    again, (resumed, _) = resumed_run(tmp_path / "broken", vocab, config, monkeypatch)
    for one, other in ((whole, resumed), (whole_base, again)):
        assert same(one.state_dict(), other.state_dict())


def test_with_a_tm_the_cache_learns_on_the_base_that_the_tm_has_made(
    tmp_path: Path, vocab: Vocabulary
) -> None:
    data = documents()[:5], documents()[5:]
    config = replace(E2E, tm_epochs=1, cache=True, cache_epochs=1)
    made = base(vocab)
    train_layers(made, vocab, *data, tmp_path, config)
    best = load_file(tmp_path / "memory-tm-best.safetensors")
    for name, value in made.state_dict().items():
        assert torch.equal(value, best[f"model.base.{name}"]), name
    assert not any(
        "base." in name for name in load_file(tmp_path / "memory-cache-best.safetensors")
    )


def test_the_model_folder_holds_the_changed_base_with_its_memories(tmp_path: Path) -> None:
    memory = replace(E2E, tm_epochs=1, cache=True, cache_epochs=1)
    folder = train(run_of(tmp_path, memory))
    base_then, held = load_file(folder / "best.safetensors"), load_file(folder / "base.safetensors")
    best = load_file(folder / "memory-tm-best.safetensors")
    assert not torch.equal(held["encoder_weight"], base_then["model.encoder_weight"].half())
    assert all(
        torch.equal(value, best[f"model.base.{name}"].half()) for name, value in held.items()
    )
    model = load_model(folder)
    memories = MemoryLayers.load(folder / "memory.safetensors", model.backbone)
    assert memories.tm is not None and torch.equal(memories.tm.log_eta, best["model.tm.log_eta"])
    files = {name: load_file(folder / name) for name in ("base.safetensors", "memory.safetensors")}
    train(run_of(tmp_path, memory), resume=True)
    for name, file in files.items():
        assert same(load_file(folder / name), file)


def test_memories_of_a_former_base_are_trained_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = replace(CONFIG, fusion=False, tm_epochs=1, cache_epochs=1)
    config = run_of(tmp_path / "longer", memory)
    train(config)
    with caplog.at_level(logging.INFO):
        folder = train(replace(config, training=replace(config.training, updates=4)), resume=True)
    assert "memory.safetensors: of another base; removed" in caplog.text
    for part in ("tm", "cache"):
        assert (
            f"memory-{part}-last.safetensors: began from another base, or is of another kind"
            in caplog.text
        )
    fresh = train(run_of(tmp_path / "fresh", memory, updates=4))
    for name in ("base.safetensors", "memory.safetensors"):
        assert same(load_file(folder / name), load_file(fresh / name))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (replace(E2E, copy=False, fusion=False), "copy, fusion and cache are all false"),
        (replace(E2E, share_no_pair=0.8), "share_no_pair are more than 1 together"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(
    tmp_path: Path, config: MemoryConfig, message: str
) -> None:
    vocab = Vocabulary.train([s.src for s in sentences()], 300)
    with pytest.raises(UsageError, match=message):
        train_layers(base(vocab), vocab, [[Segment("a", "b")]], [], tmp_path, config)
