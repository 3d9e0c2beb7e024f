"""Trains reference networks (Fu et al. 2019) and context networks (LC-NMT, CS-NMT, DC-NMT) on one
base, and what they are compared with, from the same sentences for as many updates; `around` alone
learns from other sentences, as many, since they must stand together.

    TMNMT_DATA=DATA python eval/reference_networks.py models/law.en-fr.toml models/law.en-fr OUT \\
        monolingual bilingual continued [--corpus law] [--sentences 20000] [--epochs 2] [...]

A configuration, the base, and the folder in which every way and seed gets a model folder,
OUT/WAY-SEED. Memory layers of the base go along where it stays. What was interrupted goes on, with
the same options alone. A line of the table has the dev loss before and after in nats a subword, the
parameters added, and the seconds of training, anchors and network together.

monolingual     M-RefNet: the decoder learns with it (eq. 24)
fixed           the same, with the whole base fixed
bilingual       B-RefNet (eq. 25)
continued       no network: the decoder learns alone, as long as that of `monolingual`
anchors-N       M-RefNet with N anchors, as anchors-30
attended        LC-NMT (Jean et al. 2017): the decoder learns with it
auxiliary       CS-NMT (Wang et al. 2017) without a gate: the same
gated           CS-NMT, gated: the same
around          DC-NMT (Maruf and Haffari 2018), memory to context: the same
attended-fixed, auxiliary-fixed, gated-fixed, around-fixed    with the whole base fixed
"""

from __future__ import annotations

import argparse
import logging
import shutil
from dataclasses import asdict, replace
from pathlib import Path

from tmnmt.errors import TmnmtError
from tmnmt.models.base import Injectable
from tmnmt.models.folder import load_model, parameters, save_model, stamp
from tmnmt.papers.context_network import FORMS
from tmnmt.papers.network_adaptation import train_network
from tmnmt.papers.network_config import Config, ContextConfig, ReferenceConfig
from tmnmt.training.adapt import MEMORY_FILE
from tmnmt.training.answer_cache import same_settings
from tmnmt.training.config import load_config
from tmnmt.training.data import load_corpora
from tmnmt.training.log import training_costs

WAYS: dict[str, Config] = {
    "monolingual": ReferenceConfig(form="monolingual"),
    "fixed": ReferenceConfig(form="monolingual", decoder=False),
    "bilingual": ReferenceConfig(form="bilingual"),
    # the weights into the state stay zero, so that no network is there
    "continued": ReferenceConfig(form="monolingual", learning_rate=0.0, anchors=2, anchor_epochs=1),
}
WAYS |= {form: ContextConfig(form=form) for form in FORMS}
WAYS |= {f"{form}-fixed": ContextConfig(form=form, decoder=False) for form in FORMS}
ANCHORS = "anchors-"
SETTINGS = "settings.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("ways", nargs="+", type=_way, metavar="WAY")
    parser.add_argument("--corpus", nargs="+", help="only these corpora of the configuration")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=2000, help="of an update")
    parser.add_argument("--dev", type=int, default=500, help="dev segments")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ways = dict[str, Config](options.ways)
    data = load_config(options.config).data
    known = [corpus.name for corpus in data.corpus]
    if unknown := sorted({*(options.corpus or ())} - {*known}):
        parser.error(f"--corpus {' '.join(unknown)}: {options.config} has {', '.join(known)}")
    load_model(options.base)  # what is wrong with it is told before the data are read
    corpora = load_corpora(
        replace(
            data,
            corpus=tuple(c for c in data.corpus if c.name in (options.corpus or [c.name])),
        )
    )
    for way, seed in ((way, seed) for way in ways for seed in options.seeds):
        model = load_model(options.base)
        if not isinstance(model.backbone, Injectable):
            parser.error(f"{options.base}: this base takes no reference network")
        config = replace(
            ways[way],
            sentences=options.sentences,
            epochs=options.epochs,
            batch_tokens=options.batch_tokens,
            dev_segments=options.dev,
            seed=seed,
        )
        if isinstance(config, ReferenceConfig):
            config = replace(config, anchor_sentences=options.sentences)
        folder = options.out / f"{way}-{seed}"
        same_settings(folder / SETTINGS, asdict(config) | {"corpus": options.corpus})
        learned = train_network(
            model.backbone, model, corpora.train, corpora.dev, folder, config, resume=True
        )
        made = learned.backbone if way != "continued" else learned.backbone.base
        save_model(folder, made, model.vocab, model.config, half=True)
        if not config.tunes_decoder and (options.base / MEMORY_FILE).exists():
            shutil.copyfile(options.base / MEMORY_FILE, folder / MEMORY_FILE)
            stamp(folder)
        added = parameters(made) - parameters(learned.backbone.base)
        print(
            f"| {way} | {seed} | {learned.loss_before:.4f} | {learned.loss_after:.4f} | "
            f"{added:,} | {sum(cost.seconds for cost in training_costs(folder).values()):.0f} |",
            flush=True,
        )


def _way(name: str) -> tuple[str, Config]:
    number = name.removeprefix(ANCHORS)
    if number != name and number.isdecimal() and int(number) > 1:
        return name, ReferenceConfig(form="monolingual", anchors=int(number))
    if name not in WAYS:
        allowed = ", ".join([*WAYS, f"{ANCHORS}N"])
        raise argparse.ArgumentTypeError(f"no way {name!r}; allowed: {allowed}")
    return name, WAYS[name]


if __name__ == "__main__":
    try:
        main()
    except (TmnmtError, OSError) as error:
        raise SystemExit(f"reference_networks: {error}") from error
