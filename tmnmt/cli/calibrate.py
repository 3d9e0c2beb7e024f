"""`tmnmt calibrate`: how far and how sharply a model reads the positions of a memory and a
session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import MODEL
from tmnmt.config.bounds import Help, Seed, whole
from tmnmt.config.options import Device, Threads
from tmnmt.counted import counted
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from tmnmt.layers.reach import Calibration

SegmentCount = Annotated[int, whole(50, 10_000), Help("At most so many are held out and scored.")]
SampleSeed = Annotated[Seed, Help("Of what is held out.")]


def calibrate(
    model: MODEL,
    memory: Annotated[str, typer.Option("--memory", help="Built index, or memory file.")],
    segments: SegmentCount = 200,
    seed: SampleSeed = 1,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Choose how --mode nearest reads a memory and what was confirmed, for one model, in seconds.

    Some stretches of the memory are held out, and their translations are read with the rest of it
    as memory. The numbers are chosen by which these translations are likeliest: tau, the distance
    beyond which no word is copied, the temperature, and a penalty of words that were copied
    already. They are kept beside the index, where translate, serve and evaluate find them; without
    them standard numbers hold. The model and the memory stay as they are. Run it again when the
    memory has grown much."""
    from json import dumps

    import torch

    from tmnmt.engine.calibration import calibrate as choose
    from tmnmt.engine.opened import device_named, load_on
    from tmnmt.index import MemoryIndex
    from tmnmt.index.base import check_languages
    from tmnmt.index.cached import open_memory
    from tmnmt.index.elastic.address import is_address
    from tmnmt.layers.reach import save_calibration
    from tmnmt.progress import Progress

    if is_address(memory):
        raise UsageError(
            f"{memory}: the numbers are kept beside an index in a folder; an index on a server is "
            "read by the standard ones"
        )
    if threads:
        torch.set_num_threads(threads)
    name = device_named(device)
    loaded = load_on(model, name)
    languages = loaded.config["src_lang"], loaded.config["tgt_lang"]
    with Progress("indexing", "segments", lazy=True) as progress:
        opened = open_memory(memory, *languages, progress.advance)
    with opened:
        if not isinstance(opened, MemoryIndex):
            raise UsageError(f"{memory}: no index in a folder, and no memory file")
        check_languages(memory, (opened.src_lang, opened.tgt_lang), *languages)
        with Progress("calibrating", "segments", segments) as progress:
            calibration = choose(loaded, opened, segments, seed, name, progress.advance)
        path = save_calibration(opened.path, calibration)
    if json:
        print(dumps({**calibration.record(), "file": str(path)}))
    else:
        _print(calibration)


def _print(calibration: Calibration) -> None:
    print("source\ttau\ttemperature\tpenalty")
    for source, numbers in calibration.reaches.by_source.items():
        print(source, *(f"{number:g}" for number in numbers), sep="\t")
    losses = calibration.losses
    typer.echo(
        f"{counted(calibration.segments, 'segment')} held out, "
        f"{counted(calibration.subwords, 'subword')}; nats a subword: {losses['model']:.3f} by the "
        f"model alone, {losses['standard']:.3f} by the standard numbers, {losses['chosen']:.3f} by "
        "these",
        err=True,
    )
