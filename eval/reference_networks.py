"""Trains reference networks (Fu et al. 2019) and context networks (LC-NMT, CS-NMT, DC-NMT) on one
base, and what they are compared with, from the same sentences for as many updates; `around` alone
learns from other sentences, as many, since they must stand together.

    TMNMT_DATA=DATA python eval/reference_networks.py models/law.en-fr.toml models/law.en-fr OUT \\
        monolingual bilingual continued [--corpus law] [--sentences 20000] [--epochs 2] [...]

A configuration, the base, and the folder in which every way and seed gets a model folder,
OUT/WAY-SEED. Memory layers of the base go along where it stays. What was interrupted goes on, with
the same options alone. A line of the table has the dev loss before and after in nats a subword, the
parameters added, and the seconds of training, anchors and network together. While it learns, the
log has what the network reads (`tmnmt.papers.reading`), and eval/reference_analysis.py says it of a
finished folder.

A network that needs longer than one sitting learns in stages: --start-from FILE begins with the
weights of the stage before, FILE being reference.safetensors or context.safetensors of its folder.
BASE is that folder, too, or the base that it has learned with; of a folder with a network the base
alone is taken. So `anchors`, then `fixed` from its file, then `monolingual` from that of `fixed`.

anchors         M-RefNet's anchors alone, until their distance is flat; its network has not learned
monolingual     M-RefNet: the decoder learns with it (eq. 24)
fixed           the same, with the whole base fixed
bilingual       B-RefNet (eq. 25)
regression      a control of B-RefNet's size, without anchors: the same loss, no local codes
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

import torch

from tmnmt.errors import TmnmtError
from tmnmt.models.base import Injectable
from tmnmt.models.folder import Model, load_model, parameters, save_model, stamp
from tmnmt.models.injected import Injected, Network
from tmnmt.papers.context_network import FORMS
from tmnmt.papers.network_adaptation import stored_network, train_network
from tmnmt.papers.network_config import Config, ContextConfig, ReferenceConfig
from tmnmt.papers.reference_network import Monolingual, Referring, network_of
from tmnmt.papers.reference_training import find_anchors, short_enough
from tmnmt.training.adapt import MEMORY_FILE
from tmnmt.training.answer_cache import same_settings
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.config import load_config
from tmnmt.training.data import Document, load_corpora
from tmnmt.training.log import training_costs
from tmnmt.training.trainers import NetworkOutcome

WAYS: dict[str, Config] = {
    "monolingual": ReferenceConfig(form="monolingual"),
    "fixed": ReferenceConfig(form="monolingual", decoder=False),
    "bilingual": ReferenceConfig(form="bilingual"),
    "regression": ReferenceConfig(form="regression"),
    "anchors": ReferenceConfig(form="monolingual", decoder=False),
    # the weights into the state stay zero, so that no network is there
    "continued": ReferenceConfig(form="monolingual", learning_rate=0.0, anchors=2, anchor_epochs=1),
}
WAYS |= {form: ContextConfig(form=form) for form in FORMS}
WAYS |= {f"{form}-fixed": ContextConfig(form=form, decoder=False) for form in FORMS}
ANCHORS, NUMBER_OF_ANCHORS = "anchors", "anchors-"
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
    parser.add_argument("--learning-rate", type=float, help="of the network; not given: 1e-3")
    parser.add_argument("--batch-tokens", type=int, default=2000, help="of an update")
    parser.add_argument("--dev", type=int, default=500, help="dev segments")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--start-from", type=Path, metavar="FILE", help="of one way alone")
    parser.add_argument("--anchor-sentences", type=int, help="not given: --sentences")
    parser.add_argument("--anchor-epochs", type=int, default=60, help="at most")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ways = dict[str, Config](options.ways)
    data = load_config(options.config).data
    known = [corpus.name for corpus in data.corpus]
    if unknown := sorted({*(options.corpus or ())} - {*known}):
        parser.error(f"--corpus {' '.join(unknown)}: {options.config} has {', '.join(known)}")
    if options.start_from and len(ways) > 1:
        parser.error("--start-from: one way alone begins with a file")
    # what is wrong with base or network is told before the data are read
    model = load_model(options.base).plain()
    if not isinstance(model.backbone, Injectable):
        parser.error(f"{options.base}: this base takes no network")
    for config in ways.values():
        beginning(options.start_from, model, config)
    corpora = load_corpora(
        replace(
            data,
            corpus=tuple(c for c in data.corpus if c.name in (options.corpus or [c.name])),
        )
    )
    for way, seed in ((way, seed) for way in ways for seed in options.seeds):
        model = load_model(options.base).plain()
        assert isinstance(model.backbone, Injectable)
        config = replace(
            ways[way],
            sentences=options.sentences,
            epochs=options.epochs,
            batch_tokens=options.batch_tokens,
            dev_segments=options.dev,
            seed=seed,
        )
        if options.learning_rate and config.learning_rate:  # that of `continued` stays 0
            config = replace(config, learning_rate=options.learning_rate)
        if isinstance(config, ReferenceConfig):
            config = replace(
                config,
                anchor_sentences=options.anchor_sentences or options.sentences,
                anchor_epochs=min(options.anchor_epochs, config.anchor_epochs),
            )
        folder = options.out / f"{way}-{seed}"
        start = beginning(options.start_from, model, config)
        given = {"corpus": options.corpus, "start_from": digest_of(start) if start else None}
        same_settings(folder / SETTINGS, asdict(config) | given)
        parts = model.backbone, model, corpora.train, corpora.dev, folder
        if way == ANCHORS and isinstance(config, ReferenceConfig):
            learned = only_anchors(*parts, config)
        else:
            learned = train_network(*parts, config, resume=True, start=start)
        made = learned.backbone if way != "continued" else learned.backbone.base
        if isinstance(made, Injected):
            made.network.half()  # as the base's, its weights are stored in fp16
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


def beginning(path: Path | None, model: Model, config: Config) -> Network | None:
    """The network of a file, where one is given."""
    return None if path is None else stored_network(path, model, config)


def only_anchors(
    backbone: Injectable,
    model: Model,
    train: list[Document],
    dev: list[Document],
    folder: Path,
    config: ReferenceConfig,
) -> NetworkOutcome:
    """A network that has anchors and has learned nothing, with their loss on held-out states before
    and after."""
    torch.manual_seed(config.seed)
    network = network_of(config.kind(), backbone)
    assert isinstance(network, Monolingual)
    segments = short_enough(train, model.vocab, config.max_subwords)
    standing = find_anchors(network, backbone, model.vocab, segments, folder, config, resume=True)
    return NetworkOutcome(
        Referring(backbone, network), standing.at_start["criterion"], standing.best
    )


def _way(name: str) -> tuple[str, Config]:
    number = name.removeprefix(NUMBER_OF_ANCHORS)
    if number != name and number.isdecimal() and int(number) > 1:
        return name, ReferenceConfig(form="monolingual", anchors=int(number))
    if name not in WAYS:
        allowed = ", ".join([*WAYS, f"{NUMBER_OF_ANCHORS}N"])
        raise argparse.ArgumentTypeError(f"no way {name!r}; allowed: {allowed}")
    return name, WAYS[name]


if __name__ == "__main__":
    try:
        main()
    except (TmnmtError, OSError) as error:
        raise SystemExit(f"reference_networks: {error}") from error
