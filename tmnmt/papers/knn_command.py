"""`tmnmt adapt-knn`: what the neighbours of a word are worth, learned for a finished model and
memories."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.adapt import DevShare, Epochs, OwnSeed, Sentences
from tmnmt.cli.options import MODEL, no_stdout
from tmnmt.config.bounds import AboveZero, Help, whole
from tmnmt.config.option import Options
from tmnmt.config.options import Device, Threads
from tmnmt.errors import UsageError


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
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run, exactly.")
    ] = False,
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
    import torch

    from tmnmt.engine.opened import load_on
    from tmnmt.formats import read_memories
    from tmnmt.index.cached import open_memory
    from tmnmt.papers.knn_training import KNNConfig
    from tmnmt.papers.knn_training import adapt_knn as run

    if threads:
        torch.set_num_threads(threads)
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
        others = [open_memory(path, *languages) for path in unlike or []]
        for index in (*indexes, *others):
            stack.enter_context(index)
        reader = read_memories(pairs, *languages)
        try:
            plain, reached = run(loaded, indexes, list(reader), output, config, resume, others)
        except KeyboardInterrupt as stop:
            stop.add_note(f"go on with --resume: {output}.partial has what is done")
            raise
    typer.echo(f"knn: dev {plain:.4f} without, {reached:.4f} with, in nats a subword", err=True)
    print(output)
