"""`tmnmt adapt-reference` and `tmnmt adapt-context`: a network beside a finished base, which its
decoder reads at every word."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.adapt import DevShare, Epochs, OwnSeed, Sentences
from tmnmt.cli.options import MODEL, folder
from tmnmt.config.bounds import Help, whole
from tmnmt.config.option import Options
from tmnmt.config.options import ContextForm, Device, Form, Threads

if TYPE_CHECKING:
    from tmnmt.papers.network_config import Config

OUTPUT = Annotated[
    Path,
    typer.Option(
        "--output", "-o", help="Model folder to make; must not exist yet.", callback=folder
    ),
]
RESUME = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run, exactly.")]


@dataclass(frozen=True)
class ReferenceNetwork(Options):
    """Which reference network is made."""

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
class ContextNetwork(Options):
    """Which context network is made."""

    title = "Network"
    form: Annotated[
        ContextForm,
        Help(
            "attended: LC-NMT, which attends to the segment before. auxiliary, gated: CS-NMT, a "
            "summary of the three before, as it is or through a gate. around: DC-NMT, memories of "
            "all other segments, which are translated once before.",
            metavar="FORM",
        ),
    ] = "attended"
    decoder: Annotated[bool, Help("The base's decoder learns with the network.")] = True


@dataclass(frozen=True)
class NetworkLearning(Options):
    """From how much it learns, and how long."""

    title = "Learning"
    sentences: Sentences = 20_000
    epochs: Epochs = 2
    dev_share: DevShare = 0.05
    seed: OwnSeed = 1

    @property
    def settings(self) -> dict[str, int]:
        """Of the training, by their names there."""
        return {"sentences": self.sentences, "epochs": self.epochs, "seed": self.seed}


def adapt_reference(
    pairs: Annotated[
        list[Path],
        typer.Argument(metavar="PAIRS", help="Memory files: what the base was trained on."),
    ],
    model: MODEL,
    output: OUTPUT,
    network: ReferenceNetwork = ReferenceNetwork(),
    learning: NetworkLearning = NetworkLearning(),
    resume: RESUME = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Give a base a reference network (Fu et al. 2019), which its decoder reads at every word.

    The base must be recurrent. Documents are held out as by tmnmt adapt; these must get better,
    else nothing is saved and the exit code is 1. Memory layers of the model stay where the base
    does, and can be trained on with tmnmt adapt. Where the decoder learned, they are left out.
    translate --no-reference reads the base alone. Prints the model folder."""
    from tmnmt.papers.network_config import ReferenceConfig

    config = ReferenceConfig(
        form=network.form,
        anchors=network.anchors,
        decoder=network.decoder,
        anchor_sentences=learning.sentences,
        **learning.settings,
    )
    _adapt(pairs, model, output, config, learning.dev_share, resume, device, threads)


def adapt_context(
    pairs: Annotated[
        list[Path],
        typer.Argument(
            metavar="PAIRS", help="Memory files in document order, which name their documents."
        ),
    ],
    model: MODEL,
    output: OUTPUT,
    network: ContextNetwork = ContextNetwork(),
    learning: NetworkLearning = NetworkLearning(),
    resume: RESUME = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Give a base a network that reads other segments of the document.

    These are systems that papers compare with: LC-NMT (Jean et al. 2017), CS-NMT (Wang et al.
    2017), DC-NMT (Maruf and Haffari 2018). The base must be recurrent. Documents are held out as by
    tmnmt adapt; these must get better, else nothing is saved and the exit code is 1. Memory layers
    of the model stay where the base does. translate --no-context reads the base alone. Prints the
    model folder."""
    from tmnmt.papers.network_config import ContextConfig

    config = ContextConfig(form=network.form, decoder=network.decoder, **learning.settings)
    _adapt(pairs, model, output, config, learning.dev_share, resume, device, threads)


def _adapt(
    pairs: list[Path],
    model: Path,
    output: Path,
    config: Config,
    dev_share: float,
    resume: bool,
    device: Device,
    threads: Threads,
) -> None:
    """Trains the network and tells what dev gained by it."""
    import torch

    from tmnmt.engine.opened import load_on
    from tmnmt.formats import read_memories
    from tmnmt.papers.network_adaptation import adapt_injected, named

    if threads:
        torch.set_num_threads(threads)
    loaded = load_on(model, device)
    reader = read_memories(pairs, loaded.config["src_lang"], loaded.config["tgt_lang"])
    try:
        before, after = adapt_injected(loaded, list(reader), output, config, dev_share, resume)
    except KeyboardInterrupt as stop:
        stop.add_note(f"go on with --resume: {output}.partial has what is done")
        raise
    gained = f"{before:.4f} without, {after:.4f} with, in nats a subword"
    typer.echo(f"{named(config)}: dev {gained}", err=True)
    print(output)
