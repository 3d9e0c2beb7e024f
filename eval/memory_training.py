"""Trains memories in several ways on one base, from the same sentences.

    TMNMT_DATA=DATA python eval/memory_training.py models/law.en-fr.toml models/law.en-fr OUT \\
        frozen end-to-end
    TMNMT_DATA=DATA TVSUB=READ python eval/memory_training.py models/tvsub.zh-en.toml BASE OUT \\
        deep --seeds 1 2 3

A configuration, the base, and the folder in which every way and seed gets a model folder,
OUT/WAY-SEED. The table has the dev losses in nats a subword. What was interrupted goes on, with the
same options alone. The translation memory:

frozen          as the configuration says, on 3,000 sentences, twice
end-to-end      the base learns, too (Gu et al. 2018)
papers          gates and energies as in the paper, without what is ours
noise           a tenth of the sentences have pairs with wrong words

The session cache, on 30,000 sentences (`--sentences`):

deep            as in Tu et al. 2018, 25 slots
deep-own        the same, filled with what the base itself says in place of references
deep-open       deep, its gate half open to begin with
deep-own-open   both
deep-29         deep with 29 slots: 25 words of TVsub's English are 29 subwords
deep-29-own     the same, filled with what the base itself says
deep-all        deep, and the base learns with it (footnote 8)
deep-own-all    the same, filled with what the base said to begin with
deep-words      with the slots' words beside their states
shallow         their section 4.4, 25 slots
shallow-learned with learned matching and 200 slots
shallow-signs   and with a gate that is shown how well they match
shallow-follows and that prefers words that follow
shallow-joint   the same, matching by contexts and states, with 1,000 slots and no overwriting
shallow-empty   the same with an empty slot, as ships
own-words       shallow-joint, filled with what the base itself says in place of references
"""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tmnmt.errors import TmnmtError
from tmnmt.models.folder import load_model, save_model
from tmnmt.training.answer_cache import same_settings
from tmnmt.training.config import load_config
from tmnmt.training.data import load_corpora
from tmnmt.training.memory import train_layers

SETTINGS = "settings.json"
TM = {"copy": True, "fusion": True, "cache": False, "max_pairs": 3000, "tm_epochs": 2}
CACHE = {
    "copy": False,
    "fusion": False,
    "cache": True,
    "cache_pairs": 30_000,
    "cache_epochs": 1,
    "cache_matching": "dot",
    "cache_size": 25,
    "stretch": 40,
    "cache_follows": False,
    "cache_overwrite": True,
    "cache_empty": False,
}
DEEP = CACHE | {"cache_fusion": "deep", "cache_learning_rate": 5e-4}
SHALLOW = CACHE | {"cache_fusion": "shallow", "cache_signs": False, "cache_learning_rate": 2e-3}
LEARNED = SHALLOW | {"cache_matching": "learned", "cache_size": 200, "stretch": 100}
FOLLOWS = LEARNED | {"cache_signs": True, "cache_follows": True}
JOINT = FOLLOWS | {"cache_matching": "joint", "cache_size": 1000, "cache_overwrite": False}
WAYS: dict[str, dict[str, Any]] = {
    "frozen": TM,
    "end-to-end": TM | {"end_to_end": True},
    "papers": TM
    | {"gate_signs": False, "preferences": False, "words": False, "fusion_gate": "scalar"},
    "noise": TM | {"share_noise": 0.1},
    "deep": DEEP | {"words": False},
    "deep-own": DEEP | {"words": False, "cache_history": "own"},
    "deep-open": DEEP | {"words": False, "cache_gate_start": 0.0},
    "deep-own-open": DEEP | {"words": False, "cache_history": "own", "cache_gate_start": 0.0},
    "deep-29": DEEP | {"words": False, "cache_size": 29},
    "deep-29-own": DEEP | {"words": False, "cache_size": 29, "cache_history": "own"},
    "deep-all": DEEP | {"words": False, "end_to_end": True},
    "deep-own-all": DEEP | {"words": False, "end_to_end": True, "cache_history": "own"},
    "deep-words": DEEP,
    "shallow": SHALLOW,
    "shallow-learned": LEARNED,
    "shallow-signs": LEARNED | {"cache_signs": True},
    "shallow-follows": FOLLOWS,
    "shallow-joint": JOINT,
    "shallow-empty": JOINT | {"cache_empty": True},
    "own-words": JOINT | {"cache_history": "own"},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("ways", nargs="+", choices=WAYS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--sentences", type=int, help="that a session cache learns from")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    config = load_config(options.config)
    if config.memory is None:
        parser.error(f"{options.config}: has no table [memory]")
    corpora = load_corpora(config.data)
    languages = config.data.src_lang, config.data.tgt_lang
    for way, seed in ((way, seed) for way in options.ways for seed in options.seeds):
        model = load_model(options.base)
        memory = replace(config.memory, seed=seed, **WAYS[way])
        if options.sentences is not None:
            memory = replace(memory, cache_pairs=options.sentences)
        folder = options.out / f"{way}-{seed}"
        same_settings(folder / SETTINGS, asdict(memory))
        memories, _ = train_layers(
            model.backbone, model.vocab, corpora.train, corpora.dev, folder, memory, True, languages
        )
        save_model(folder, model.backbone, model.vocab, model.config)
        memories.save(folder / "memory.safetensors")
        print(f"| {way} | {seed} | {reached(folder / 'train.jsonl')} |", flush=True)


def reached(log: Path) -> str:
    """The figures of the validation whose parameters were kept."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    best = min(
        (line for line in lines if "dev_criterion" in line), key=lambda line: line["dev_criterion"]
    )
    figures = {
        name.removeprefix("dev_"): value for name, value in best.items() if name.startswith("dev_")
    }
    return " | ".join(f"{name} {value:.4f}" for name, value in figures.items())


if __name__ == "__main__":
    try:
        main()
    except (TmnmtError, OSError) as error:
        raise SystemExit(f"memory_training: {error}") from error
