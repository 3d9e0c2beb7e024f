"""A training of seconds: random sentences of law words, and the same words upside down."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import torch

from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.segments import Segment
from tmnmt.training.config import TrainingConfig
from tmnmt.training.data import Pairs, encode_pairs
from tmnmt.training.trainer import Trainer
from tmnmt.vocab import Vocabulary

WORDS = [
    "the",
    "act",
    "of",
    "law",
    "and",
    "order",
    "council",
    "minister",
    "shall",
    "may",
    "person",
    "fee",
    "date",
    "port",
]


def sentences(n: int, seed: int = 0) -> list[str]:
    """Random sentences of law words; their "translation" is the same words upside down."""
    choice = random.Random(seed)
    return [" ".join(choice.choices(WORDS, k=choice.randint(2, 7))) for _ in range(n)]


def pairs(vocab: Vocabulary, n: int, seed: int = 0) -> Pairs:
    segments = [Segment(s, " ".join(reversed(s.split()))) for s in sentences(n, seed)]
    return encode_pairs(segments, vocab, None, Counter())


CONFIG = TrainingConfig(
    updates=12, batch_tokens=120, warmup=4, validate_every=6, checkpoint_every=4, precision="fp32"
)


def trainer(vocab: Vocabulary, folder: Path, config: TrainingConfig = CONFIG) -> Trainer:
    torch.manual_seed(0)
    model = RNNsearch(len(vocab), embedding=8, hidden=16, attention=8, dropout=0.2)
    return Trainer(model, vocab, pairs(vocab, 80), pairs(vocab, 10, 1), config, folder)
