"""The commands of the papers' methods: `tmnmt adapt-knn`, what the neighbours of a word are worth,
learned for a finished model and memories; `tmnmt adapt-reference` and `tmnmt adapt-context`, a
network beside a finished base, which its decoder reads at every word."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.adapt import DevShare, Epochs, OwnSeed, Sentences
from tmnmt.cli.options import (
    MODEL,
    NEW_MODEL,
    RESUME,
    interruption_note,
    no_stdout,
    use_threads,
)
from tmnmt.config.bounds import AboveZero, Help, whole
from tmnmt.config.option import Options
from tmnmt.config.options import ContextForm, Device, Form, Threads
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from tmnmt.papers.network_config import Config


@dataclass(frozen=True)
class ReferenceNetwork(Options):
    """Which reference network is made."""

    title = "Network"
    form: Annotated[
        Form,
        Help(
            "monolingual: M-RefNet; bilingual: B-RefNet; regression: a control of B-RefNet's size "
            "without anchors.",
            metavar="FORM",
        ),
    ] = "monolingual"
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
    output: NEW_MODEL,
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
    output: NEW_MODEL,
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
    from tmnmt.engine.loading import load_on
    from tmnmt.files.as_memory import read_memories
    from tmnmt.papers.network_adaptation import adapt_injected, network_kind

    use_threads(threads)
    loaded = load_on(model, device)
    reader = read_memories(pairs, loaded.config["src_lang"], loaded.config["tgt_lang"])
    with interruption_note(f"go on with --resume: {output}.partial has what is done"):
        initial_loss, final_loss = adapt_injected(
            loaded, list(reader), output, config, dev_share, resume
        )
    gained = f"{initial_loss:.4f} without, {final_loss:.4f} with, in nats a subword"
    typer.echo(f"{network_kind(config)}: dev {gained}", err=True)
    print(output)


@dataclass(frozen=True)
class LearningKNN(Options):
    """What is learned of, from how much, and how long."""

    title = "Learning"
    neighbours: Annotated[int, whole(1, 1000), Help("The most that are read; a power of two.")] = 16
    knn_temperature: Annotated[AboveZero, Help("Of their squared distances.")] = 5.0
    sentences: Sentences = 2000
    epochs: Epochs = 5
    dev_share: DevShare = 0.2
    seed: OwnSeed = 1


def adapt_knn(
    pairs: Annotated[
        list[Path],
        typer.Argument(
            metavar="PAIRS", help="Memory files to learn from, like what is to be translated."
        ),
    ],
    model: MODEL,
    memory: Annotated[
        list[str], typer.Option("--memory", help="Built index with keys of tmnmt keys; or several.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to make; must not exist yet.", callback=no_stdout
        ),
    ],
    unlike: Annotated[
        list[str] | None,
        typer.Option(
            "--unlike",
            help="Index with keys of other text than PAIRS, which is to be worth nothing; or "
            "several.",
        ),
    ] = None,
    learning: LearningKNN = LearningKNN(),
    resume: RESUME = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Learn what the neighbours of a word are worth, for translate --knn-adaptive FILE.

    The model does not change. PAIRS may lie in the memory: what is looked up for a segment is what
    the memory would have without its document, and without every source of that. Best are some that
    the model has not been trained on. With --unlike the neighbours cost next to nothing where the
    memory is of other text; without, they do harm there. Held-out documents must get better, else
    nothing is saved and the exit code is 1. Prints the file."""
    if learning.neighbours.bit_count() != 1:
        raise UsageError(f"--neighbours {learning.neighbours} is no power of two, as in 4, 8, 16")
    from tmnmt.engine.loading import load_on
    from tmnmt.files.as_memory import read_memories
    from tmnmt.index.opening import open_memory
    from tmnmt.papers.knn_training import KNNConfig
    from tmnmt.papers.knn_training import adapt_knn as run

    use_threads(threads)
    loaded = load_on(model, device)
    languages = loaded.config["src_lang"], loaded.config["tgt_lang"]
    config = KNNConfig(
        k=learning.neighbours,
        temperature=learning.knn_temperature,
        sentences=learning.sentences,
        epochs=learning.epochs,
        dev_share=learning.dev_share,
        seed=learning.seed,
    )
    with ExitStack() as stack:
        indexes = [open_memory(path, *languages) for path in memory]
        unlike_memories = [open_memory(path, *languages) for path in unlike or []]
        for index in (*indexes, *unlike_memories):
            stack.enter_context(index)
        reader = read_memories(pairs, *languages)
        with interruption_note(f"go on with --resume: {output}.partial has what is done"):
            plain, reached = run(
                loaded, indexes, list(reader), output, config, resume, unlike_memories
            )
    typer.echo(f"knn: dev {plain:.4f} without, {reached:.4f} with, in nats a subword", err=True)
    print(output)
