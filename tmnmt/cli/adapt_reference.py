"""`tmnmt adapt-reference`: a reference network for a finished base."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.adapt import DevShare, Epochs, OwnSeed, Sentences
from tmnmt.cli.options import MODEL, folder
from tmnmt.config.bounds import Help, whole
from tmnmt.config.options import Device, Form, Options, Threads


@dataclass(frozen=True)
class Network(Options):
    """Which network is made."""

    title = "Network"
    form: Annotated[Form, Help("monolingual: M-RefNet; bilingual: B-RefNet.", metavar="FORM")] = (
        "monolingual"
    )
    anchors: Annotated[
        int | None,
        whole(2, 10_000),
        Help("Not given, 100 of a monolingual network, 30 of a bilingual one."),
    ] = None
    decoder: Annotated[
        bool, Help("Of a monolingual network: the base's decoder learns with it, as in the paper.")
    ] = True


@dataclass(frozen=True)
class LearningReference(Options):
    """From how much it learns, and how long."""

    title = "Learning"
    sentences: Sentences = 20_000
    epochs: Epochs = 2
    dev_share: DevShare = 0.05
    seed: OwnSeed = 1


def adapt_reference(
    pairs: Annotated[
        list[Path],
        typer.Argument(metavar="PAIRS", help="Memory files: what the base was trained on."),
    ],
    model: MODEL,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model folder to make; must not exist yet.", callback=folder
        ),
    ],
    network: Network = Network(),
    learning: LearningReference = LearningReference(),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run, exactly.")
    ] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Give a base a reference network (Fu et al. 2019), which its decoder reads at every word.

    The base must be recurrent. Documents are held out as by tmnmt adapt; these must get better,
    else nothing is saved and the exit code is 1. Memory layers of the model stay where the base
    does, and can be trained on with tmnmt adapt. Where the decoder learned, they are left out.
    translate --no-reference reads the base alone. Prints the model folder."""
    import torch

    from tmnmt.engine.opened import load_on
    from tmnmt.formats import read_memories
    from tmnmt.training.adapt_injected import adapt_injected
    from tmnmt.training.reference_config import ReferenceConfig

    if threads:
        torch.set_num_threads(threads)
    loaded = load_on(model, device or ("cuda" if torch.cuda.is_available() else "cpu"))
    config = ReferenceConfig(
        form=network.form,
        anchors=network.anchors,
        decoder=network.decoder,
        anchor_sentences=learning.sentences,
        sentences=learning.sentences,
        epochs=learning.epochs,
        seed=learning.seed,
    )
    reader = read_memories(pairs, loaded.config["src_lang"], loaded.config["tgt_lang"])
    try:
        before, after = adapt_injected(
            loaded, list(reader), output, config, learning.dev_share, resume
        )
    except KeyboardInterrupt as stop:
        stop.add_note(f"go on with --resume: {output}.partial has what is done")
        raise
    typer.echo(
        f"reference: dev {before:.4f} without, {after:.4f} with, in nats a subword", err=True
    )
    print(output)
