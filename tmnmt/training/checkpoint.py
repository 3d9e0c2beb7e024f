"""Checkpoints: parameters, the optimiser's moments and where the training stands, in one file that
is replaced atomically."""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from tmnmt.durable import replacing
from tmnmt.errors import DataError

MOMENTS = "step", "exp_avg", "exp_avg_sq", "momentum_buffer"  # of Adam, and the last one of Muon


class OptimiserState(Protocol):
    """An optimiser, by what it keeps of every parameter."""

    @property
    def state(self) -> MutableMapping[Tensor, Any]: ...


def save(path: Path, module: nn.Module, optimiser: OptimiserState, notes: dict[str, str]) -> None:
    """`notes`: where the training stands; `load` returns them."""
    tensors = {f"model.{name}": value.contiguous() for name, value in module.state_dict().items()}
    for name, parameter in module.named_parameters():
        for moment, value in optimiser.state[parameter].items():
            tensors[f"adam.{moment}.{name}"] = value
    with replacing(path, alone=True) as new:
        save_file(tensors, new, notes)


def load(path: Path, module: nn.Module, optimiser: OptimiserState) -> dict[str, str]:
    """Takes up parameters and moments; returns the notes.

    Raises DataError where the file is missing, damaged, or not of a module like this."""
    try:
        return _load(path, module, optimiser)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    except RuntimeError as error:  # what torch says of other names or sizes takes many lines
        raise DataError(
            f"{path}: not of this configuration; it was made with other sizes or parts"
        ) from error


def read_notes(path: Path) -> dict[str, str]:
    """The notes alone. Raises DataError where the file cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def read_names(path: Path) -> set[str]:
    """The names of the module's parameters. Raises DataError where the file cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            return {
                name.removeprefix("model.") for name in file.keys() if name.startswith("model.")
            }
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def digest_of(*modules: nn.Module) -> str:
    """16 hexadecimal digits of all parameters, bit by bit."""
    hasher = hashlib.sha256()
    for module in modules:
        for name, value in module.state_dict().items():
            hasher.update(name.encode())
            hasher.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return hasher.hexdigest()[:16]


def _load(path: Path, module: nn.Module, optimiser: OptimiserState) -> dict[str, str]:
    device = next(module.parameters()).device
    with safe_open(path, "pt") as file:
        names = set(file.keys())
        module.load_state_dict(
            {name[6:]: file.get_tensor(name) for name in names if name.startswith("model.")}
        )
        for key, parameter in module.named_parameters():
            optimiser.state[parameter] = {
                moment: file.get_tensor(f"adam.{moment}.{key}").to(
                    "cpu" if moment == "step" else device
                )
                for moment in MOMENTS
                if f"adam.{moment}.{key}" in names
            }
        return dict(file.metadata() or {})
