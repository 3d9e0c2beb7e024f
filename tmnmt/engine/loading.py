"""What a translator is made of, opened: a model on a device, its memory layers."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import torch

from tmnmt.errors import UsageError
from tmnmt.index.base import primary
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import CHECKSUMS, Model, load_model

DEVICES = re.compile(r"cpu|cuda(:\d{1,2})?|mps")


def load_on(model_dir: Path, device: str | None) -> Model:
    """The model on the device of that name, or on that of `device_named`. Raises as that does, and
    ModelError for what is no model."""
    return load_model(model_dir, device_named(device))


def device_named(device: str | None) -> str:
    """The device of that name; None and auto: a GPU where there is one. Raises UsageError for a
    device that is not there."""
    if device in (None, "auto"):
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not DEVICES.fullmatch(str(device)):
        raise UsageError(
            f"device {device} is unknown; allowed: auto, cpu, cuda, cuda:0, cuda:1, ..., mps"
        )
    available = devices()
    if str(device) not in available:
        raise UsageError(
            f"device {device} is not on this machine, or torch cannot use it; there: "
            f"{', '.join(available)}"
        )
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {device}: {str(error).splitlines()[0]}") from error
    return str(device)


def devices() -> list[str]:
    """What torch can compute on, on this machine; it warns of a GPU that it cannot use, which is
    not told."""
    with warnings.catch_warnings(action="ignore"):
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    numbered = [f"cuda:{number}" for number in range(gpus)]
    return [
        "cpu",
        *["cuda"][:gpus],
        *numbered,
        *(["mps"] if torch.backends.mps.is_available() else []),
    ]


def load_layers(model: Model, device: str) -> MemoryLayers | None:
    """The memory layers of a model folder, if it has any. Raises ModelError where its
    config.toml lists them and they are gone."""
    path = model.folder / "memory.safetensors"
    if not path.exists() and path.name not in model.config[CHECKSUMS]:
        return None
    return MemoryLayers.load(path, model.backbone, device)


def languages_of(model: Model, src_lang: str | None, tgt_lang: str | None) -> tuple[str, str]:
    """The languages asked for, else the model's. Raises UsageError where it is of others; regions
    do not count."""
    model_languages = model.config["src_lang"], model.config["tgt_lang"]
    languages = src_lang or model_languages[0], tgt_lang or model_languages[1]
    if [*map(primary, languages)] != [*map(primary, model_languages)]:
        raise UsageError(
            f"{model.folder}: this model is from {' to '.join(model_languages)}, not "
            f"{' to '.join(languages)}"
        )
    return languages
