"""tmnmt's side of train_speed.py; the protocol of joey_worker.py."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tmnmt
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.training.config import TrainingConfig
from tmnmt.training.data import Pairs
from tmnmt.training.trainer import Trainer
from tmnmt.vocab import EOS, Vocabulary


def read_pairs(folder: Path) -> Pairs:
    sides = [(folder / f"train.{side}").read_text().splitlines() for side in ("src", "tgt")]
    src, tgt = ([_ids(line) for line in lines] for lines in sides)
    return Pairs(src, tgt)


def _ids(line: str) -> np.ndarray:
    return np.array([*(int(word[1:]) for word in line.split()), EOS], dtype=np.int32)


def train(trainer: Trainer, stream: Iterator[list[int]], seconds: float) -> dict[str, float]:
    """Updates for so many seconds."""
    start, cpu, tokens, updates, loss = time.monotonic(), time.process_time(), 0, 0, 0.0
    while time.monotonic() - start < seconds:
        loss, count = trainer.update([next(stream)])
        trainer.progress.update += 1
        tokens, updates = tokens + count, updates + 1
    return {
        "tokens": tokens,
        "cpu_seconds": time.process_time() - cpu,
        "updates": updates,
        "loss": loss,
    }


def main(folder: Path, options: dict[str, Any]) -> None:
    torch.set_num_threads(options["threads"])
    torch.manual_seed(1)
    vocab = Vocabulary.load(folder / "spm.model")
    model = RNNsearch(
        len(vocab), options["embedding"], options["hidden"], dropout=options["dropout"]
    )
    config = TrainingConfig(updates=1_000_000, warmup=1, precision=options["precision"], clip=1.0)
    trainer = Trainer(model, vocab, read_pairs(folder), Pairs([], []), config, folder)
    stream = itertools.cycle(json.loads((folder / "batches.json").read_text()))
    parameters = sum(p.numel() for p in model.parameters())
    versions = {"tmnmt": tmnmt.__version__, "torch": torch.__version__}
    print(json.dumps({"parameters": parameters, "versions": versions}), flush=True)
    for line in sys.stdin:
        print(json.dumps(train(trainer, stream, float(line))), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
