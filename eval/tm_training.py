"""Trains the translation memory's parameters in several ways on one base, from the same sentences.

    TMNMT_DATA=DATA python eval/tm_training.py OUT

frozen: as `models/law.en-fr.toml` says. end-to-end: the base learns, too (Gu et al. 2017). papers: gates and energies
as in the paper, without what is ours. noise: a tenth of the sentences have pairs with wrong words. Every way makes
a model folder OUT/WAY from models/law.en-fr; the table has the dev losses in nats a subword. What was interrupted
goes on.
"""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from tmnmt.models.folder import load_model, save_model
from tmnmt.training.config import load_config
from tmnmt.training.data import load_corpora
from tmnmt.training.memory import train_memories

HERE = Path(__file__).parents[1]
WAYS: dict[str, dict[str, Any]] = {
    "frozen": {},
    "end-to-end": {"end_to_end": True},
    "papers": {"gate_signs": False, "preferences": False, "words": False, "fusion_gate": "scalar"},
    "noise": {"share_noise": 0.1},
}
SHOWN = ("plain", "copy", "fusion", "copy irrelevant", "fusion irrelevant", "plain everywhere")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    config = load_config(HERE / "models" / "law.en-fr.toml")
    assert config.memory is not None
    corpora = load_corpora(config.data)
    print(" | ".join(["| way", *SHOWN]), "|")
    for name in options.only:
        model = load_model(HERE / "models" / "law.en-fr")
        memory = replace(
            config.memory, cache=False, max_pairs=options.sentences, tm_epochs=options.epochs, **WAYS[name]
        )
        folder = options.out / name
        memories, _ = train_memories(
            model.backbone, model.vocab, corpora.train, corpora.dev, folder, memory, resume=True
        )
        save_model(folder, model.backbone, model.vocab, model.config)
        memories.save(folder / "memory.safetensors")
        print(" | ".join([f"| {name}", *_reached(folder / "train.jsonl")]), "|", flush=True)


def _reached(log: Path) -> list[str]:
    """The figures of the validation whose parameters were kept."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    best = min((line for line in lines if "dev_criterion" in line), key=lambda line: line["dev_criterion"])
    return [f"{best[f'dev_{name}']:.4f}" if f"dev_{name}" in best else "" for name in SHOWN]


if __name__ == "__main__":
    main()
