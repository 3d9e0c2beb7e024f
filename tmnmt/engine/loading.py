"""Opens what a translator is made of: a model on a device, and its memory layers."""

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


def load_on(model_dir: Path, device: str | None, needs_states: bool = True) -> Model:
    """Opens a model on a device.

    model_dir: the model folder, or the address of a base.
    device: the name of the device, as `device_named` takes it.
    needs_states: whether its states are read, so that a base that shows none is refused.

    Raises ModelError for what is no model. Raises UsageError as `device_named` does, and for a base
    that shows no states where these are read."""
    model = load_model(model_dir, device_named(device))
    if needs_states and model.backbone.modes:
        raise UsageError(
            f"{model_dir}: this base writes whole texts and shows no states, which are read here; "
            "give a model folder"
        )
    return model


def device_named(device: str | None) -> str:
    """The device of a name.

    device: "cpu", "cuda" or another name of torch. None and "auto" take a GPU where there is one.

    Raises UsageError for a device that is not there."""
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
    """The names of all that torch can compute on, on this machine. The warning that torch gives
    of a GPU that it cannot use is not shown."""
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
    """Opens the memory layers of a model folder; None where it has none.

    model: the model.
    device: what torch computes on.

    Raises ModelError where the config.toml of the folder lists layers that are not there."""
    path = model.folder / "memory.safetensors"
    if not path.exists() and path.name not in model.config[CHECKSUMS]:
        return None
    return MemoryLayers.load(path, model.backbone, device)


def languages_of(model: Model, src_lang: str | None, tgt_lang: str | None) -> tuple[str, str]:
    """The languages of memory files: those that were named, or else those of the model.

    model: the model.
    src_lang: the source language that was named; None takes that of the model.
    tgt_lang: the target language that was named; None takes that of the model.

    Raises UsageError where the model has other languages. Regions do not count."""
    model_languages = model.config["src_lang"], model.config["tgt_lang"]
    if not all(model_languages):
        raise UsageError(
            f"{model.folder}: nothing says its languages: name them, --src-lang and --tgt-lang, or "
            "at the end of the address, as in @en-fr"
        )
    languages = src_lang or model_languages[0], tgt_lang or model_languages[1]
    if [*map(primary, languages)] != [*map(primary, model_languages)]:
        raise UsageError(
            f"{model.folder}: this model is from {' to '.join(model_languages)}, not "
            f"{' to '.join(languages)}"
        )
    return languages
