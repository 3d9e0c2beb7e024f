"""`tmnmt adapt`: memory parameters for a finished base, from a translation memory alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tmnmt.cli.options import MODEL, NEW_MODEL, RESUME, use_threads
from tmnmt.config.bounds import Help, Seed, at_least, number, whole
from tmnmt.config.option import Options
from tmnmt.config.options import Device, Selection, Threads
from tmnmt.errors import UsageError

Sentences = Annotated[int, at_least(50), Help("At most so many are learned from.")]
Epochs = Annotated[int, at_least(1), Help("Times they are gone through.")]
DevShare = Annotated[
    float, number(0.001, 0.5), Help("Share of the documents, or stretches, held out.")
]
OwnSeed = Annotated[Seed, Help("Of every random choice.")]


@dataclass(frozen=True)
class Parts(Options):
    """Which memory layers are trained."""

    title = "Parts"
    copy: Annotated[bool, Help("Train TM copy.")] = True
    fusion: Annotated[bool, Help("Train TM fusion.")] = True
    cache: Annotated[
        bool, Help("Train the session cache; the memory needs documents in order.")
    ] = True


@dataclass(frozen=True)
class Learning(Options):
    """How much every part learns from, and how long."""

    title = "Learning"
    top_k: Annotated[int, whole(1, 1000), Help("Pairs a sentence is shown.")] = 4
    sentences: Sentences = 5000
    epochs: Epochs = 2
    dev_share: DevShare = 0.05
    seed: OwnSeed = 1


def adapt(
    model: MODEL,
    memory: Annotated[
        str,
        typer.Option("--memory", help="Built index, its address on a server, or memory file."),
    ],
    output: NEW_MODEL,
    parts: Parts = Parts(),
    learning: Learning = Learning(),
    selection: Selection = Selection(),
    resume: RESUME = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell how the training goes.")
    ] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Learn to use a memory: copy, fusion and session cache for a finished base model, which does
    not change.

    Pairs are learned from with the pairs that the memory finds for them when they are not in it. A
    part that the model has goes on from what it is, and stays so where it gains nothing on held-out
    documents. By a part that is new these must get better, and irrelevant pairs do no harm, else
    nothing is saved and the exit code is 1; the error says how the other parts are kept. A memory
    file that names no documents is split by stretches of 40 segments instead. A line for every part
    says what it gained; the log is train.jsonl in the folder. Prints the model folder."""
    if not (parts.copy or parts.fusion or parts.cache):
        raise UsageError("--no-copy, --no-fusion and --no-cache leave nothing to train")
    import logging

    from tmnmt.engine.loading import load_on
    from tmnmt.index.opening import open_memory
    from tmnmt.progress import Progress
    from tmnmt.training.adapt import adapt as run
    from tmnmt.training.memory_config import MemoryConfig

    use_threads(threads)
    loaded = load_on(model, device)
    config = MemoryConfig(
        parts.copy,
        parts.fusion,
        parts.cache,
        k=learning.top_k,
        select=selection.select,
        similarity=selection.similarity,
        alpha=selection.alpha,
        max_pairs=learning.sentences,
        tm_epochs=learning.epochs,
        cache_pairs=learning.sentences,
        cache_epochs=learning.epochs,
        dev_segments=min(600, learning.sentences // 10),
        learning_rate=2e-3,
        seed=learning.seed,
    )
    with Progress("indexing", "segments", lazy=True) as progress:
        index = open_memory(
            memory, loaded.config["src_lang"], loaded.config["tgt_lang"], progress.advance
        )
    if not verbose:
        logging.getLogger("tmnmt.training").setLevel(logging.WARNING)
    try:
        lines = run(loaded, index.segments(), output, config, learning.dev_share, resume)
    except KeyboardInterrupt as stop:
        stop.add_note(f"go on with --resume: {output}.partial has what is done")
        raise
    finally:
        logging.getLogger("tmnmt.training").setLevel(logging.NOTSET)
    for line in lines:
        typer.echo(line, err=True)
    print(output)
