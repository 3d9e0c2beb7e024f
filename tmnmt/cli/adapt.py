"""`tmnmt adapt`: memory parameters for a finished base, from a translation memory alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.options import MODEL, folder
from tmnmt.config.options import Device, Selection, Threads
from tmnmt.errors import UsageError


def adapt(
    model: MODEL,
    memory: Annotated[
        str,
        typer.Option("--memory", help="Built index, its Elasticsearch address, or memory file."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model folder to make; must not exist yet.", callback=folder
        ),
    ],
    copy: Annotated[bool, typer.Option(help="Train TM copy.")] = True,
    fusion: Annotated[bool, typer.Option(help="Train TM fusion.")] = True,
    cache: Annotated[
        bool, typer.Option(help="Train the session cache; the memory needs documents in order.")
    ] = True,
    sentences: Annotated[
        int, typer.Option(min=50, help="At most so many are learned from, for each.")
    ] = 5000,
    epochs: Annotated[int, typer.Option(min=1, help="Times they are gone through.")] = 2,
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="Pairs a sentence is shown.")] = 4,
    selection: Selection = Selection(),
    dev_share: Annotated[
        float,
        typer.Option(min=0.001, max=0.5, help="Share of the documents, or stretches, held out."),
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run, exactly.")
    ] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Learn to use a memory: copy, fusion and session cache for a finished base model, which does
    not change.

    Pairs are learned from with the pairs that the memory finds for them when they are not in it.
    Held-out documents must get better by every part, and irrelevant pairs do no harm, else nothing
    is saved and the exit code is 1; the error says how the other parts are kept. A memory file that
    names no documents is split by stretches of 40 segments instead. Prints the model folder."""
    if not (copy or fusion or cache):
        raise UsageError("--no-copy, --no-fusion and --no-cache leave nothing to train")
    import torch

    from tmnmt.engine.opened import load_on
    from tmnmt.index.cached import open_memory
    from tmnmt.progress import Progress
    from tmnmt.training.adapt import adapt as run
    from tmnmt.training.memory_config import MemoryConfig

    if threads:
        torch.set_num_threads(threads)
    loaded = load_on(model, device or ("cuda" if torch.cuda.is_available() else "cpu"))
    config = MemoryConfig(
        copy,
        fusion,
        cache,
        k=top_k,
        select=selection.select,
        similarity=selection.similarity,
        alpha=selection.alpha,
        max_pairs=sentences,
        tm_epochs=epochs,
        cache_pairs=sentences,
        cache_epochs=epochs,
        dev_segments=min(600, sentences // 10),
        learning_rate=2e-3,
        seed=seed,
    )
    with Progress("indexing", "segments", lazy=True) as progress:
        opened = open_memory(
            memory, loaded.config["src_lang"], loaded.config["tgt_lang"], progress.advance
        )
    try:
        reached = run(loaded, opened.segments(), output, config, dev_share, resume)
    except KeyboardInterrupt as stop:
        stop.add_note(f"go on with --resume: {output}.partial has what is done")
        raise
    for name, (plain, with_it) in reached.items():
        typer.echo(
            f"{name}: dev {plain:.4f} without, {with_it:.4f} with, in nats a subword", err=True
        )
    print(output)
