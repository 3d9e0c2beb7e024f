"""A base that is trained for some minutes on what `tmnmt start` has split: where no published model
has the languages, and only when that is asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tmnmt.durable import rename, write
from tmnmt.eval.report.training import plot_training
from tmnmt.training.config import load_config
from tmnmt.training.log import LOG_FILE
from tmnmt.training.run import train

log = logging.getLogger(__name__)

CONFIG, RUN, PACE = "train.toml", "training", "pace"
PACE_UPDATES, PACE_DEV = 6, 8  # of the run by which the speed of this machine is known
FEWEST_UPDATES = 20
VALIDATIONS = 6
TEXT = """# Written by tmnmt start; `tmnmt train {place}/{name}` is the same.
folder = {folder}

[data]
src_lang = {src_lang}
tgt_lang = {tgt_lang}
dev_segments = {dev_segments}

[[data.corpus]]
name = "memory"
files = [{train}, {dev}]
dev = {dev_list}

[vocabulary]
size = 6000

[model]
kind = "transformer"
hidden = 256
feed_forward = 1024
heads = 4
encoder_layers = 3
decoder_layers = 1
dropout = 0.1

[training]
updates = {updates}
batch_tokens = 3000
optimiser = "muon"
learning_rate = 2e-3
warmup = {warmup}
decay = 0.7
validate_every = {validate_every}
"""


def train_first_base(
    place: Path, split: Path, languages: tuple[str, str], minutes: float, threads: int | None
) -> Path:
    """Trains for about so many minutes, as a first short run says that this machine needs for an
    update; the model's folder. Goes on where a former call was interrupted. Raises as
    `tmnmt.training.run.train` does."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    config = place / CONFIG
    if not config.exists():
        seconds = _seconds_of_update(place, split, languages)
        updates = max(FEWEST_UPDATES, round(60 * minutes / seconds))
        write(config, _text(place, split, languages, updates, place / RUN, 500).encode())
    run = train(load_config(config), resume=(place / RUN).exists())
    plot_training(run)
    rename(run, place / "base")
    return place / "base"


def _seconds_of_update(place: Path, split: Path, languages: tuple[str, str]) -> float:
    """How long an update takes, by some of them; what they make is thrown away."""
    import shutil

    folder = place / PACE
    shutil.rmtree(folder, ignore_errors=True)
    path = place / f"{PACE}.toml"
    write(path, _text(place, split, languages, PACE_UPDATES, folder, PACE_DEV).encode())
    log.info("trying how fast this machine is, by %d updates", PACE_UPDATES)
    with _said_once():
        train(load_config(path))
    lines = (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()
    last = json.loads(lines[-1])
    shutil.rmtree(folder)
    path.unlink()
    return max(float(last["seconds"]) / int(last["update"]), 1e-3)


@contextmanager
def _said_once() -> Iterator[None]:
    """What training says is left out: it will say it again."""
    training = logging.getLogger("tmnmt.training")
    training.setLevel(logging.ERROR)
    try:
        yield
    finally:
        training.setLevel(logging.NOTSET)


def _text(
    place: Path,
    split: Path,
    languages: tuple[str, str],
    updates: int,
    folder: Path,
    dev_segments: int,
) -> str:
    quoted = {
        "folder": folder,
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "train": split / "train.tsv.gz",
        "dev": split / "dev.tsv.gz",
        "dev_list": split / "dev.txt",
    }
    return TEXT.format(
        **{key: json.dumps(str(value), ensure_ascii=False) for key, value in quoted.items()},
        place=place,
        name=CONFIG,
        updates=updates,
        dev_segments=dev_segments,
        warmup=max(1, min(100, updates // 5)),
        validate_every=max(1, updates // VALIDATIONS),
    )
