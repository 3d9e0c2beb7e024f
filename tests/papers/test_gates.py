"""The gates of TM and cache tuned together: the forward is the decoder's own step, and nothing but
the gates moves."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import pytest
import torch
from tiny_memory_training import (
    CONFIG,
    PAPER,
    base,
    by_steps,
    documents,
    learned,
    log_of,
    sentences,
)
from torch import Tensor

from tmnmt.errors import UsageError
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.gate_tuning import GatesPart, PairedStretches
from tmnmt.trained_layers.cache import CacheKind, SessionCache, collate_caches
from tmnmt.trained_layers.tm import TMKind, TranslationMemory
from tmnmt.training.cache import SideBySide
from tmnmt.training.memory import train_layers
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.parts import PartTrainer
from tmnmt.training.retrieve import RetrievedPair, Shares
from tmnmt.training.teacher_forcing import force_references
from tmnmt.training.tm import PairedSentences, fresh_keys, pairs_of, tm_log_probs
from tmnmt.vocab import Vocabulary


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train([text for s in sentences() for text in (s.src, s.tgt)], 340)


@pytest.fixture(scope="module")
def backbone(vocab: Vocabulary) -> RNNsearch:
    return base(vocab).eval().requires_grad_(False)


@pytest.mark.parametrize(("mode", "fusion"), list(product(("copy", "fusion"), ("deep", "shallow"))))
def test_the_batched_forward_with_both_memories_equals_repeated_steps(
    backbone: RNNsearch, vocab: Vocabulary, mode: str, fusion: str
) -> None:
    torch.manual_seed(2)
    cache = SessionCache(16, 16, 8, CacheKind(fusion, size=7))  # type: ignore[arg-type]
    tm = learned(TranslationMemory(16, 16, 8, TMKind()))
    together = SideBySide(cache, backbone, vocab, 2)
    found = [RetrievedPair(s.src, s.tgt, 0.7) for s in sentences()[30:32]]
    pairs = [
        found,
        [],
        found[:1],
        [],
    ]  # every combination of pairs or none with a filled cache or an empty one
    contents = [together.empty() for _ in range(4)]
    with torch.no_grad():
        together.write(force_references(backbone, vocab, sentences()[:2], "cpu"), contents[:2])
        batch = force_references(backbone, vocab, sentences()[20:24], "cpu")
        read = pairs_of(fresh_keys(backbone, vocab, 50, together.device), pairs)
        log_p = tm_log_probs(tm, backbone, batch, read, together.remembered(batch, contents))[mode]
        state = Collated(read, {"cache": collate_caches(contents)})
        expected = by_steps(MemoryLayers(tm, cache), backbone, batch, state, mode)
        plain = tm_log_probs(tm, backbone, batch, None)
    positions = [tuple(p) for p in batch.real.nonzero().tolist()]
    torch.testing.assert_close(
        log_p, torch.stack([expected[b, t] for b, t in positions]), atol=1e-5, rtol=0
    )
    first, last = (torch.tensor([b == sentence for b, _ in positions]) for sentence in (0, 3))
    torch.testing.assert_close(log_p[last], plain["plain"][last], atol=1e-6, rtol=0)
    assert (log_p[first] - plain["plain"][first]).abs().mean() > 0.01


def test_every_unit_has_its_updates_and_all_together_what_was_asked_for(
    backbone: RNNsearch, vocab: Vocabulary
) -> None:
    stretches = [sentences()[:3], sentences()[10:15], sentences()[20:22]]
    flat = [segment for stretch in stretches for segment in stretch]
    pair = RetrievedPair("The board may refuse a fee .", "Le conseil peut refuser un droit .", 0.6)
    found = [[pair] if i % 2 else [] for i in range(len(flat))]
    shares = Shares(0.5, 0.5, 0.0)
    data = PairedStretches(
        stretches, PairedSentences(flat, found, range(10), flat, 2, shares, 50, 1)
    )
    memories = MemoryLayers(TranslationMemory(16, 16, 8), SessionCache(16, 16, 8))
    part = GatesPart(memories.tm, SideBySide(memories.cache, backbone, vocab, 2), data, data, 17, 1)
    units = part.units(0)
    assert units == part.units(0) and sum(unit[1] for unit in units) == 17
    for unit in units:  # at the first step nothing is cached: without a pair no gate is asked
        paired = any(data.drawn(unit[0])[i] for i in data.numbers(unit[2:], 0))
        assert len(list(part.losses(unit))) == unit[1] - (not paired)
    assert any(
        len(list(part.losses([time, 1, 0]))) == 0 for time in range(3)
    )  # sentence 0 has no pair
    assert {i for unit in units for i in unit[2:]} == {0, 1, 2} and {unit[0] for unit in units} == {
        0,
        1,
        2,
    }
    assert data.numbers([0, 1], 2) == [2, 5] and flat[5] == stretches[1][2]
    shown = [data.drawn(time) for time in range(20)]
    assert all(
        not pairs[i] for pairs in shown for i in range(0, 10, 2)
    )  # nothing was found, nothing is shown
    drawn = [pairs[i] == [pair] for pairs in shown for i in range(1, 10, 2)]
    assert 25 < sum(drawn) < 75


GATES = replace(
    CONFIG,
    max_pairs=12,
    cache_pairs=20,
    dev_segments=10,
    tm_epochs=1,
    cache_epochs=1,
    tune_gates=14,
    stretch=5,
    validate_every=10,
)
FIXED = {"tm.M", "tm.preferences", "tm.log_eta", "tm.coverage.weight", "tm.word.weight"}


def test_the_papers_gates_are_tuned_too(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary
) -> None:
    config = replace(GATES, tune_gates=2, **asdict(PAPER))
    train_layers(backbone, vocab, documents()[:5], documents()[5:], tmp_path / "run", config)
    both = log_of(tmp_path / "run", "gates", "dev_copy and cache")
    assert both[-1] != both[0]


@pytest.mark.parametrize(
    ("fusion", "fixed", "tuned"),
    [("deep", "cache.word.weight", set()), ("shallow", "cache.Q.weight", {"signs", "empty"})],
)
def test_only_the_gates_move_and_a_resumed_run_equals_an_unbroken_one(
    tmp_path: Path,
    backbone: RNNsearch,
    vocab: Vocabulary,
    monkeypatch: pytest.MonkeyPatch,
    fusion: str,
    fixed: str,
    tuned: set[str],
) -> None:
    matching = "dot" if fusion == "deep" else "joint"
    data, config = (
        (documents()[:4], documents()[4:]),
        replace(GATES, cache_fusion=fusion, cache_matching=matching),  # type: ignore[arg-type]
    )
    separate = train_layers(
        backbone, vocab, *data, tmp_path / "separate", replace(config, tune_gates=0)
    )
    whole = train_layers(backbone, vocab, *data, tmp_path / "whole", config)
    before, after = separate.layers.state_dict(), whole.layers.state_dict()
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert set(before) - moved >= FIXED | {fixed}
    assert {name.split(".")[1] for name in moved} == {"copy", "fusion", "U", "V", "W"} | tuned
    lines = [
        json.loads(line) for line in (tmp_path / "whole" / "train.jsonl").read_text().splitlines()
    ]
    assert [
        line["update"] for line in lines if line["part"] == "gates" and "dev_criterion" in line
    ][-1] == 14
    both = log_of(tmp_path / "whole", "gates", "dev_copy and cache")
    assert min(both) < both[0]
    _interrupt_in_gates(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train_layers(backbone, vocab, *data, tmp_path / "broken", config)
    monkeypatch.undo()
    resumed = train_layers(backbone, vocab, *data, tmp_path / "broken", config, resume=True)
    assert all(
        torch.equal(value, after[name]) for name, value in resumed.layers.state_dict().items()
    )


def _interrupt_in_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    original = PartTrainer._after_unit

    def interrupt(self: PartTrainer, units: int) -> None:
        original(self, units)
        if self.part.name == "gates":
            raise KeyboardInterrupt

    monkeypatch.setattr(PartTrainer, "_after_unit", interrupt)


def test_gates_that_make_dev_worse_are_not_kept(
    tmp_path: Path,
    backbone: RNNsearch,
    vocab: Vocabulary,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = documents()[:4], documents()[4:]
    separate = train_layers(
        backbone, vocab, *data, tmp_path / "separate", replace(GATES, tune_gates=0)
    )
    losses = GatesPart.losses

    def opposite(self: GatesPart, unit: list[int]) -> Iterator[tuple[Tensor, int]]:
        for loss, tokens in losses(self, unit):
            yield -loss, tokens

    monkeypatch.setattr(GatesPart, "losses", opposite)
    with caplog.at_level(logging.WARNING):
        tuned = train_layers(backbone, vocab, *data, tmp_path / "tuned", GATES)
    assert "gates: left as each memory had trained its own" in caplog.text
    before = separate.layers.state_dict()
    assert all(
        torch.equal(value, before[name]) for name, value in tuned.layers.state_dict().items()
    )


@pytest.mark.parametrize(
    "config", [replace(GATES, cache=False), replace(GATES, copy=False, fusion=False)]
)
def test_without_both_memories_there_is_nothing_to_tune(
    tmp_path: Path, backbone: RNNsearch, vocab: Vocabulary, config: MemoryConfig
) -> None:
    with pytest.raises(UsageError, match="tune_gates needs cache and one of copy and fusion"):
        train_layers(backbone, vocab, [], [], tmp_path, config)
