"""Joey NMT's side of train_speed.py: runs in a virtual environment of its own, which has joeynmt
and not tmnmt.

    python joey_worker.py FOLDER '{"encoder": 512, "tied": false, "own_batches": true, ...}'

Reads FOLDER/train.src, train.tgt (subword ids as words), vocabulary.txt and batches.json. Prints
one line of JSON when ready; then for every line `SECONDS` on stdin it trains that long and prints
one line with what it did."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import joeynmt
import torch
from joeynmt.batch import Batch
from joeynmt.config import parse_global_args
from joeynmt.datasets import BaseDataset
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager
from torch.utils.data import DataLoader


def configuration(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Joey NMT's configuration: recurrent GRUs, Bahdanau attention, everything else as it ships."""
    side = {"level": "word", "max_length": 1000, "voc_file": str(folder / "vocabulary.txt")}
    layer = {
        "type": "recurrent",
        "rnn_type": "gru",
        "num_layers": 1,
        "dropout": options["dropout"],
        "embeddings": {"embedding_dim": options["embedding"], "dropout": options["dropout"]},
    }
    hidden = {"hidden_size": options["hidden"], "hidden_dropout": options["dropout"]}
    return {
        "name": "train_speed",
        "model_dir": str(folder),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": str(folder / "train"),
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
        },
        "testing": {},
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.001,
            "scheduling": "exponential",
            "clip_grad_norm": 1.0,
            "normalization": "tokens",
            "batch_size": options["batch_tokens"],
            "batch_type": "token",
        },
        "model": {
            "tied_embeddings": options["tied"],
            "encoder": {**layer, "hidden_size": options["encoder"], "bidirectional": True},
            "decoder": {
                **layer,
                **hidden,
                "attention": "bahdanau",
                "init_hidden": "bridge",
                "input_feeding": True,
            },
        },
    }


def batches(trainer: TrainManager, data: BaseDataset, folder: Path, own: bool) -> Iterator[Batch]:
    """Epoch after epoch: Joey's own batches (shuffled, of mixed lengths), or those that
    tmnmt gets."""
    special = {"eos_index": trainer.model.eos_index, "pad_index": trainer.model.pad_index}
    if own:
        size, kind = trainer.args.batch_size, trainer.args.batch_type
        loader = data.make_iter(batch_size=size, batch_type=kind, shuffle=True, seed=1, **special)
    else:
        given = json.loads((folder / "batches.json").read_text())
        loader = DataLoader(
            data, batch_sampler=given, collate_fn=partial(data.collate_fn, **special)
        )
    while True:
        yield from loader


def train(trainer: TrainManager, stream: Iterator[Batch], seconds: float) -> dict[str, float]:
    """What TrainManager.train_and_validate does with each batch, for so many seconds."""
    start, cpu, tokens, updates, loss = time.monotonic(), time.process_time(), 0, 0, 0.0
    while time.monotonic() - start < seconds:
        batch = next(stream)
        loss, _ = trainer._train_step(batch)
        trainer.clip_grad_fun(parameters=trainer.model.parameters())
        trainer.optimizer.step()
        trainer.model.zero_grad()
        tokens, updates = tokens + batch.ntokens, updates + 1
    return {
        "tokens": tokens,
        "cpu_seconds": time.process_time() - cpu,
        "updates": updates,
        "loss": loss,
    }


def main(folder: Path, options: dict[str, Any]) -> None:
    logging.disable(logging.INFO)
    torch.set_num_threads(options["threads"])
    with contextlib.redirect_stdout(sys.stderr):
        arguments = parse_global_args(configuration(folder, options), rank=0, mode="train")
        model, data, _, _ = prepare(arguments, rank=0, mode="train")
        trainer = TrainManager(
            rank=0,
            model=model,
            model_dir=arguments.model_dir,
            device=arguments.device,
            n_gpu=0,
            num_workers=0,
            autocast=arguments.autocast,
            seed=1,
            train_args=arguments.train,
            dev_args=arguments.test,
        )
        model.train()
        stream = batches(trainer, data, folder, options["own_batches"])
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    versions = {"joeynmt": joeynmt.__version__, "torch": torch.__version__}
    print(json.dumps({"parameters": parameters, "versions": versions}), flush=True)
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            result = train(trainer, stream, float(line))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
