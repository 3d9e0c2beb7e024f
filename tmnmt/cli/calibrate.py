"""`tmnmt calibrate`: how far and how sharply a model reads the positions of a memory and a
session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import MODEL, use_threads
from tmnmt.config.bounds import Help, Seed, whole
from tmnmt.config.options import Device, Precision, Threads
from tmnmt.errors import UsageError
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.layers.reach import Calibration

SegmentCount = Annotated[int, whole(50, 10_000), Help("At most so many are held out and scored.")]
Products = Annotated[
    Precision | None,
    Help(
        "Of products, as translate is given it: numbers chosen for int8 are not read with others, "
        "nor others with int8."
    ),
]
SampleSeed = Annotated[Seed, Help("Of what is held out.")]


def calibrate(
    model: MODEL,
    memory: Annotated[
        str, typer.Option("--memory", help="Folder or address of an index, or memory file.")
    ],
    segments: SegmentCount = 200,
    seed: SampleSeed = 1,
    precision: Products = None,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Choose how --mode nearest reads a memory and what was confirmed, for one model.

    Some stretches of the memory are held out, and translated with the rest of it as memory, while
    their translations are confirmed one after another: by the standard numbers, and by three others
    that make the held-out translations likely. The numbers are tau, the distance beyond which no
    word is copied, the temperature, a penalty of words that were copied already, and a doubt of
    words that the model finds less likely than it did in their own sentence. The standard ones stay
    unless others are better by more than chance: by chrF2++, in 19 of 20 paired resamples, or in 59
    of 60 where three are compared. The numbers are kept beside the index, or for an index on a
    server in the folder that has its keys on this machine. There translate, serve and evaluate find
    them.

    Where tmnmt keys has computed the keys of the memory, the numbers chosen are then tried with 8
    and with 16 neighbours of a draft, by the same rule. Where these pay, translate and evaluate
    read as many without being asked; --neighbours 0 reads none.

    It takes as long as translating four times the segments that are held out: with a student one to
    two minutes; with keys about twice as long. The model and the memory stay as they are.
    Run it again when the memory has grown much."""
    from dataclasses import replace
    from json import dumps

    from tmnmt.engine.loading import device_named, load_layers, load_on
    from tmnmt.eval.calibrate import calibrate as choose
    from tmnmt.index.base import check_languages, has_folder
    from tmnmt.index.opening import open_memory
    from tmnmt.layers.reach import save_calibration
    from tmnmt.progress import Progress

    use_threads(threads)
    name = device_named(device)
    loaded = replace(load_on(model, name), products=precision)
    languages = loaded.config["src_lang"], loaded.config["tgt_lang"]
    with Progress("indexing", "segments", lazy=True) as progress:
        index = open_memory(memory, *languages, progress.advance)
    with index:
        if not has_folder(index):
            raise UsageError(
                f"{memory}: there is no home folder to keep the numbers in; set TMNMT_KEYS to a "
                "folder"
            )
        check_languages(memory, (index.src_lang, index.tgt_lang), *languages)
        layers = load_layers(loaded, name)
        calibration = choose(loaded, layers, index, segments, seed, name)
        path = save_calibration(index.folder, calibration)
    if json:
        print(dumps({**calibration.record(), "file": str(path)}))
    else:
        _print(calibration)


def _print(calibration: Calibration) -> None:
    print("source\ttau\ttemperature\tpenalty\tdoubt")
    for source, numbers in calibration.reaches.by_source.items():
        print(source, *(f"{number:g}" for number in numbers), sep="\t")
    if calibration.neighbours:
        print("neighbours", calibration.neighbours, sep="\t")
    held_out = quantity(calibration.segments, "segment")
    subwords = quantity(calibration.subwords, "subword")
    lines = [
        f"{held_out} held out, {subwords}; {calibration.model_loss:.3f} nats a subword by the "
        "model alone. tau/temperature/doubt of pairs, session and fragments:"
    ]
    choice = calibration.reaches, calibration.neighbours
    for trial in calibration.trials:
        sources = trial.reaches.by_source.values()
        listed = ", ".join(f"{tau:g}/{t:g}/{doubt:g}" for tau, t, _, doubt in sources)
        listed += f", {trial.neighbours} neighbours" if trial.neighbours else ""
        first = "the same without" if trial.neighbours else "the standard numbers"
        marker = "  <- chosen" if (trial.reaches, trial.neighbours) == choice else ""
        lines.append(
            f"  {listed}: chrF2++ {trial.chrf:.2f}, BLEU {trial.bleu:.2f}, {trial.loss:.3f} nats; "
            f"above {first} in {trial.above:.1%}{marker}"
        )
    typer.echo("\n".join(lines), err=True)
