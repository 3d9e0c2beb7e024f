"""Trains the translation memory of a model folder once more, from where it is; base and session
cache stay as they are.

    TMNMT_DATA=DATA python models/train_tm.py models/law.en-fr.toml models/law.en-fr RUN [--every N]
    [--resume] python models/train_tm.py --into models/law.en-fr RUN

The first trains: RUN gets checkpoints, the log and `tm.safetensors`, the memories with the TM
alone. What is trained on, and for how long, is the table [memory] of the configuration, but for
`AGAIN`; with --every only each Nth of its sentences. The second puts that TM beside the session
cache that the folder has now, whoever has trained it since, and adds the log's lines to the
folder's."""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.config import load_config
from tmnmt.training.data import load_corpora
from tmnmt.training.memory_data import MemoryData
from tmnmt.training.parts import PartTrainer
from tmnmt.training.tm import TMPart

POINTED = 6.0  # rho of a TM that had none: as much as nu and kappa, so that few updates are enough
AGAIN: dict[str, Any] = {
    "max_pairs": 24_000,
    "tm_epochs": 1,
    "share_exact": 0.2,
    "learning_rate": 1e-3,
    "validate_every": 1000,
    "checkpoint_every": 25,
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "config", type=Path, nargs="?", help="the configuration that the model was trained with"
    )
    options.add_argument("model", type=Path)
    options.add_argument("run", type=Path)
    options.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="train on each Nth sentence (default: all)",
    )
    options.add_argument("--resume", action="store_true")
    options.add_argument("--into", action="store_true", help="put what RUN has trained into MODEL")
    chosen = options.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if chosen.into:
        put(chosen.model, chosen.run)
    else:
        train(chosen.config, chosen.model, chosen.run, chosen.every, chosen.resume)


def train(config_file: Path, folder: Path, run: Path, every: int, resume: bool) -> None:
    """Trains the TM of `folder`."""
    config = load_config(config_file)
    assert config.memory is not None
    told = replace(config.memory, **AGAIN)
    model, corpora = load_model(folder), load_corpora(config.data)
    base = model.backbone.eval().requires_grad_(False)
    tm = begun(folder, model.backbone)
    run.mkdir(parents=True, exist_ok=True)
    languages = config.data.src_lang, config.data.tgt_lang
    data = MemoryData(corpora.train, corpora.dev, model.vocab, run, told, languages)
    learned, dev = data.sentences()
    data.close()
    learned = replace(learned, sentences=learned.sentences[::every])
    part = TMPart(tm, base, model.vocab, learned, dev, told.batch_tokens)
    trainer = PartTrainer(
        part,
        run,
        told.tm_epochs,
        told.learning_rate,
        told.validate_every,
        told.checkpoint_every,
        digest_of(base),
    )
    trainer.run_from(resume, "a trained TM")
    MemoryLayers(tm).save(run / "tm.safetensors")


def begun(folder: Path, base: torch.nn.Module) -> TranslationMemory:
    """The TM of the folder with a pointer."""
    held = MemoryLayers.load(folder / "memory.safetensors", base).train().tm  # type: ignore[arg-type]
    assert held is not None
    sizes = base.context_size, base.hidden_size, base.word_size
    torch.manual_seed(1)
    tm = TranslationMemory(*sizes, replace(held.kind, pointer=True))  # type: ignore[arg-type]
    assert tm.pointer is not None
    torch.nn.init.constant_(tm.pointer, POINTED)
    tm.load_state_dict(tm.state_dict() | held.state_dict())
    return tm


def put(folder: Path, run: Path) -> None:
    """The TM of `run` beside the session cache of `folder`, in fp16 as it ships."""
    base = load_model(folder).backbone
    memories = MemoryLayers.load(folder / "memory.safetensors", base)
    memories.tm = MemoryLayers.load(run / "tm.safetensors", base).tm
    memories.save(folder / "memory.safetensors", dtype=torch.float16)
    log = folder / "train.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines()
    last = max(json.loads(line).get("run", 1) for line in lines)
    new = [
        json.loads(line) | {"run": last + 1}
        for line in (run / "train.jsonl").read_text("utf-8").splitlines()
    ]
    log.write_text(
        "".join(f"{line}\n" for line in [*lines, *map(json.dumps, new)]), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
