"""Checkpoint averaging: the mean of a run's parameters at its last validations (Vaswani et al.
2017, section 6.1) often does better than the parameters at any one of them."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tmnmt.durable import make_folder, replacing
from tmnmt.errors import DataError

FOLDER = "validated"  # of a run: its parameters at the last validations, UPDATE.safetensors


def keep(run: Path, module: nn.Module, update: int, last: int) -> None:
    """Keeps the parameters of this update, and of the last ones before it: `last` in all."""
    folder = run / FOLDER
    make_folder(folder)
    with replacing(folder / f"{update:09d}.safetensors", alone=True) as new:
        save_file({name: value.contiguous() for name, value in module.state_dict().items()}, new)
    for path in _find_checkpoints(run, update)[:-last]:
        path.unlink()


def average(run: Path, update: int) -> tuple[dict[str, Tensor], int]:
    """The mean of the parameters that were kept up to this update, in fp32, and of how many.

    Raises DataError where a file is damaged."""
    sums: dict[str, Tensor] = {}
    paths = _find_checkpoints(run, update)
    for path in paths:
        try:
            parameters = load_file(path)
        except (OSError, SafetensorError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error
        for name, value in parameters.items():
            sums[name] = sums[name] + value if name in sums else value.to(torch.float32)
    return {name: value / len(paths) for name, value in sums.items()}, len(paths)


def _find_checkpoints(run: Path, update: int) -> list[Path]:
    """What was kept, oldest first; a run that was killed may have left later ones."""
    paths = sorted((run / FOLDER).glob("*.safetensors"))
    return [path for path in paths if path.stem.isdigit() and int(path.stem) <= update]
