"""`tmnmt adapt-context`: a network that reads the source segments before, for a finished base."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.adapt import DevShare, Epochs, OwnSeed, Sentences
from tmnmt.cli.options import MODEL, folder
from tmnmt.config.bounds import Help
from tmnmt.config.options import ContextForm, Device, Options, Threads


@dataclass(frozen=True)
class ContextNetwork(Options):
    """Which network is made."""

    title = "Network"
    form: Annotated[
        ContextForm,
        Help(
            "attended: LC-NMT, which attends to the segment before. auxiliary, gated: CS-NMT, a "
            "summary of the three before, as it is or through a gate.",
            metavar="FORM",
        ),
    ] = "attended"
    decoder: Annotated[bool, Help("The base's decoder learns with the network.")] = True


@dataclass(frozen=True)
class LearningContext(Options):
    """From how much it learns, and how long."""

    title = "Learning"
    sentences: Sentences = 20_000
    epochs: Epochs = 2
    dev_share: DevShare = 0.05
    seed: OwnSeed = 1


def adapt_context(
    pairs: Annotated[
        list[Path],
        typer.Argument(
            metavar="PAIRS", help="Memory files in document order, which name their documents."
        ),
    ],
    model: MODEL,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model folder to make; must not exist yet.", callback=folder
        ),
    ],
    network: ContextNetwork = ContextNetwork(),
    learning: LearningContext = LearningContext(),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run, exactly.")
    ] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Give a base a network that reads the document's previous source segments.

    These are systems that papers compare with: LC-NMT (Jean et al. 2017), CS-NMT (Wang et al.
    2017). The base must be recurrent. Documents are held out as by tmnmt adapt; these must get
    better, else nothing is saved and the exit code is 1. Memory layers of the model stay where the
    base does. translate --no-context reads the base alone. Prints the model folder."""
    import torch

    from tmnmt.engine.opened import load_on
    from tmnmt.formats import read_memories
    from tmnmt.training.adapt_injected import adapt_injected
    from tmnmt.training.context_config import ContextConfig

    if threads:
        torch.set_num_threads(threads)
    loaded = load_on(model, device or ("cuda" if torch.cuda.is_available() else "cpu"))
    config = ContextConfig(
        form=network.form,
        decoder=network.decoder,
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
    typer.echo(f"context: dev {before:.4f} without, {after:.4f} with, in nats a subword", err=True)
    print(output)
