"""A training of memory layers that takes seconds: 60 sentences made of the same parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from stepping import step
from torch import Tensor

from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.models.base import shift
from tmnmt.models.rnnsearch import RNNsearch, RNNsearchConfig
from tmnmt.segments import Segment
from tmnmt.trained_layers.tm import TMKind, TranslationMemory
from tmnmt.training.config import (
    CorpusConfig,
    DataConfig,
    TrainConfig,
    TrainingConfig,
    VocabularyConfig,
)
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.parts import PartTrainer
from tmnmt.training.teacher_forcing import ForcedBatch
from tmnmt.vocab import BOS, PAD, Vocabulary

PLACES = [
    ("court", "tribunal"),
    ("minister", "ministre"),
    ("board", "conseil"),
    ("bank", "banque"),
    ("agent", "agent"),
]
ACTS = [("may refuse", "peut refuser"), ("shall grant", "accorde"), ("may cancel", "peut annuler")]
THINGS = [
    ("the licence", "la licence"),
    ("the permit", "le permis"),
    ("the appeal", "un appel"),
    ("a fee", "un droit"),
]


def sentences() -> list[Segment]:
    """60 sentences made of the same parts: every one has near matches among the others."""
    made = [
        Segment(f"The {p[0]} {a[0]} {t[0]} .", f"Le {p[1]} {a[1]} {t[1]} .")
        for p in PLACES
        for a in ACTS
        for t in THINGS
    ]
    return [Segment(s.src, s.tgt, f"d{i // 10}", i % 10) for i, s in enumerate(made)]


def learned(tm: TranslationMemory) -> TranslationMemory:
    """As after some training: nothing is at its starting value."""
    made = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in tm.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=made))
        if tm.coverage.weight is not None:
            tm.coverage.weight.fill_(1.5)
    return tm


def by_steps(
    memories: MemoryLayers, backbone: RNNsearch, batch: ForcedBatch, memory: Collated, mode: str
) -> dict[tuple[int, int], Tensor]:
    """log p of the references' words by the decoder's own step, one position after the other."""
    found = {}
    ready = memories.ready(memory, backbone, mode)
    for t, prev in enumerate(shift(batch.tgt, BOS).unbind(1)):
        hidden, context = batch.hiddens[:, t], batch.contexts[:, t]
        log_probs, ready, _ = step(memories, backbone, prev, hidden, context, ready, mode)
        for b, word in enumerate(batch.tgt[:, t].tolist()):
            if word != PAD:
                found[b, t] = log_probs[b, word]
    return found


PAPER = TMKind(fusion_gate="scalar", gate_signs=False, preferences=False, words=False)


CONFIG = MemoryConfig(
    max_pairs=40,
    cache_pairs=60,
    batch_tokens=200,
    dev_segments=20,
    tm_epochs=4,
    cache_epochs=4,
    cache_size=8,
    documents_together=4,
    validate_every=12,
    checkpoint_every=3,
    learning_rate=1e-2,
    cache_learning_rate=1e-2,
)


def documents() -> list[list[Segment]]:
    made = sentences()
    return [made[i : i + 10] for i in range(0, 60, 10)]


def log_of(folder: Path, part: str, key: str) -> list[float]:
    lines = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    return [line[key] for line in lines if line["part"] == part and key in line]


def interrupt_at(monkeypatch: pytest.MonkeyPatch, update: int) -> None:
    original = PartTrainer._after_unit

    def interrupt(self: PartTrainer, units: int) -> None:
        original(self, units)
        if self.standing.update >= update:
            raise KeyboardInterrupt

    monkeypatch.setattr(PartTrainer, "_after_unit", interrupt)


def base(vocab: Vocabulary, dropout: float = 0.0) -> RNNsearch:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return RNNsearch(len(vocab), embedding=8, hidden=16, attention=8, dropout=dropout)


def run_of(folder: Path, memory: MemoryConfig, updates: int = 2) -> TrainConfig:
    """A base of a few updates, then its memories."""
    folder.mkdir(exist_ok=True)
    rows = [(f"D{i // 10}", s.src, s.tgt) for i, s in enumerate(sentences())]
    (folder / "m.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    (folder / "dev.txt").write_text("D5\n")
    corpus = CorpusConfig(
        "a", (str(folder / "m.tsv"),), "doc=1,src=2,tgt=3", dev=str(folder / "dev.txt")
    )
    return TrainConfig(
        str(folder / "run"),
        DataConfig((corpus,)),
        vocabulary=VocabularyConfig(340),
        model=RNNsearchConfig(embedding=8, hidden=16, attention=8),
        training=TrainingConfig(updates, batch_tokens=200, decay=0.0),
        memory=memory,
    )
