"""The model folder: config.toml, base.safetensors, spm.model, and memory.safetensors once memories are trained.

Nothing is unpickled. The model's hash covers base and vocabulary: keys and caches are bound to it.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from tmnmt.errors import ModelError
from tmnmt.models.base import Backbone
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.vocab import Vocabulary

FORMAT = 1


@dataclass(frozen=True)
class Model:
    """A loaded base with its vocabulary; `config` is config.toml as a dictionary, `hash` 16 hexadecimal digits."""

    backbone: Backbone
    vocab: Vocabulary
    config: dict[str, Any]
    hash: str
    folder: Path


def save_model(
    folder: Path, backbone: RNNsearch, vocab: Vocabulary, config: dict[str, Any], half: bool = False
) -> None:
    """Writes the folder; `half` stores fp16 weights. `config` needs src_lang, tgt_lang and the table [model]."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spm.model").write_bytes(vocab.model)
    weights = {k: (v.half() if half else v).contiguous() for k, v in backbone.state_dict().items()}
    partial = folder / "base.safetensors.partial"
    save_file(weights, partial)
    partial.replace(folder / "base.safetensors")
    (folder / "config.toml").write_text(_toml({"format": FORMAT, **config}), encoding="utf-8")


def load_model(folder: Path, device: str = "cpu") -> Model:
    """The model in `folder`, in fp32 and evaluation mode. Raises ModelError saying what is missing or wrong."""
    config = _read_config(folder)
    vocab = Vocabulary.load(folder / "spm.model")
    path = folder / "base.safetensors"
    try:
        weights = load_file(path)
        backbone = RNNsearch(len(vocab), **config["model"])
        backbone.load_state_dict({k: v.float() for k, v in weights.items()})
    except (OSError, SafetensorError, RuntimeError, TypeError) as error:
        raise ModelError(f"{path}: no weights of this model: {str(error).splitlines()[0]}") from error
    digest = hashlib.sha256(path.read_bytes() + vocab.model).hexdigest()[:16]
    return Model(backbone.to(device).eval(), vocab, config, digest, folder)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.toml"
    if not path.is_file():
        raise ModelError(f"{folder}: no model folder (it has no config.toml)")
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if config.get("format") != FORMAT:
        raise ModelError(f"{path}: model format {config.get('format')}, this version reads {FORMAT}")
    for key in ("src_lang", "tgt_lang", "model"):
        if key not in config:
            raise ModelError(f"{path}: key `{key}` is missing")
    return config


def _toml(table: dict[str, Any]) -> str:
    """Flat tables of strings, numbers and booleans as TOML."""

    def value(v: Any) -> str:
        if isinstance(v, bool):
            return str(v).lower()
        if isinstance(v, str):
            return '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return repr(v)

    lines = [f"{k} = {value(v)}" for k, v in table.items() if not isinstance(v, dict)]
    for name, inner in table.items():
        if isinstance(inner, dict):
            lines += ["", f"[{name}]", *(f"{k} = {value(v)}" for k, v in inner.items())]
    return "\n".join(lines) + "\n"


def parameters(backbone: torch.nn.Module) -> int:
    """Number of trained numbers."""
    return sum(p.numel() for p in backbone.parameters())
