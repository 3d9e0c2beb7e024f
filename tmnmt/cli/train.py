"""`tmnmt train`: a model from a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.options import RESUME, use_threads
from tmnmt.config.options import Device


def train(
    config: Annotated[
        Path, typer.Argument(help="The configuration, a commented TOML as models/law.en-fr.toml.")
    ],
    resume: RESUME = False,
    device: Device = None,
    threads: Annotated[
        int, typer.Option(min=0, help="CPU threads of this process; 0: one a core.")
    ] = 0,
) -> None:
    """Train a base model and its memory layers; prints the model folder.

    What is the best on dev so far lies in the folder as a model after every validation. How long
    all takes at most is said after a few updates. In the end three translations are shown, and
    train.svg in the folder is a plot of the losses.

    Several processes: torchrun --nproc-per-node N -m tmnmt train CONFIG.toml. On a CPU, processes
    of one thread each are nearly twice as fast as one process of as many threads."""
    import logging
    import os
    import sys

    first = int(os.environ.get("RANK", 0)) == 0  # of the processes; the others would say the same
    if not first:
        logging.getLogger("tmnmt").setLevel(logging.ERROR)
    # one compiled product for every shape of batch
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")
    from tmnmt.eval.report.training import plot_training
    from tmnmt.training.config import load_config
    from tmnmt.training.run import train as run

    loaded = load_config(config)
    use_threads(threads)
    try:
        folder = run(loaded, resume, device)
        if first:
            print(folder)
            if (plot := plot_training(folder)) is not None:
                print(f"how it went: {plot}", file=sys.stderr)
            print(
                f"next: tmnmt translate --model {folder} document.txt; "
                f"tmnmt calibrate --model {folder} --memory MEMORY",
                file=sys.stderr,
            )
    except KeyboardInterrupt as stop:
        has_checkpoint = (Path(loaded.folder) / "last.safetensors").exists()
        reached = f"the checkpoint is in {loaded.folder}; go on with --resume"
        stop.add_note(reached if has_checkpoint else "before the first checkpoint; nothing is kept")
        raise
