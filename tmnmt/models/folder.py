"""The model folder: config.toml, base.safetensors, spm.model, and memory.safetensors once memories are trained.

Nothing is unpickled. The model's hash covers base and vocabulary: keys and caches are bound to it.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, nn

from tmnmt.durable import make_folder, replacing, write
from tmnmt.errors import ModelError
from tmnmt.models.base import Backbone
from tmnmt.models.kinds import make
from tmnmt.vocab import Vocabulary

FORMAT = 1
LARGEST = 1 << 14  # of every size in config.toml


@dataclass(frozen=True)
class Model:
    """A loaded base with its vocabulary; `config` is config.toml as a dictionary, `hash` 16 hexadecimal digits."""

    backbone: Backbone
    vocab: Vocabulary
    config: dict[str, Any]
    hash: str
    folder: Path


def save_model(folder: Path, backbone: Backbone, vocab: Vocabulary, config: dict[str, Any], half: bool = False) -> None:
    """Writes the folder; `half` stores fp16 weights. `config` needs src_lang, tgt_lang and the table [model]."""
    make_folder(folder)
    write(folder / "spm.model", vocab.model)
    weights = {k: (v.half() if half else v).contiguous() for k, v in backbone.state_dict().items()}
    with replacing(folder / "base.safetensors") as new:
        save_file(weights, new)
    write(folder / "config.toml", _toml({"format": FORMAT, **config}).encode())


def load_model(folder: Path, device: str = "cpu") -> Model:
    """The model in `folder`, in fp32 and evaluation mode. Raises ModelError saying what is missing or wrong."""
    config = _read_config(folder)
    vocab = Vocabulary.load(folder / "spm.model")
    path = folder / "base.safetensors"
    try:
        content = path.read_bytes()
        weights = {name: tensor.float() for name, tensor in load(content).items()}
        backbone = make(len(vocab), config["model"])
        fill(backbone, weights)
    except (OSError, SafetensorError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: no weights of this model: {reason_of(error)}") from error
    digest = hashlib.sha256(content + vocab.model).hexdigest()[:16]
    return Model(backbone.to(device).eval(), vocab, config, digest, folder)


def fill(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Gives the module its weights. Raises ValueError naming a tensor that is missing, unknown, of another size or not
    finite."""
    wanted = module.state_dict()
    for name in sorted(wanted.keys() ^ weights.keys()):
        raise ValueError(f"tensor {name} is {'missing' if name in wanted else 'unknown'}")
    for name, tensor in weights.items():
        if tensor.shape != wanted[name].shape:
            raise ValueError(f"tensor {name} is of size {list(tensor.shape)}, wanted: {list(wanted[name].shape)}")
        if not tensor.isfinite().all():
            raise ValueError(f"tensor {name} holds numbers that are not finite")
    module.load_state_dict(weights)


def reason_of(error: Exception) -> str:
    """What an error says, on one line; of a file only why it cannot be read."""
    return error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.toml"
    if not path.exists():
        raise ModelError(f"{folder}: no model folder (it has no config.toml)")
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{path}: cannot be read: {reason_of(error)}") from error
    if config.get("format") != FORMAT:
        raise ModelError(f"{path}: model format {config.get('format')}, this version reads {FORMAT}")
    for key in ("src_lang", "tgt_lang", "model"):
        if key not in config:
            raise ModelError(f"{path}: key `{key}` is missing")
    _check_config(path, config)
    return config


def _check_config(path: Path, config: dict[str, Any]) -> None:
    def check(key: str, value: object, right: bool, wanted: str) -> None:
        if not right:
            raise ModelError(f"{path}: key `{key}` is {value!r}, wanted: {wanted}")

    for key in ("src_lang", "tgt_lang"):
        check(key, config[key], isinstance(config[key], str) and bool(config[key]), "the code of a language")
    sizes = config["model"]
    check("model", sizes, isinstance(sizes, dict), "a table")
    counts = {
        "max_subwords": config.get("max_subwords", 1),
        **{k: v for k, v in sizes.items() if k not in ("kind", "dropout")},
    }
    for key, value in counts.items():
        check(key, value, type(value) is int and 0 < value <= LARGEST, f"a whole number, 1 to {LARGEST:,}")
    dropout = sizes.get("dropout", 0.0)
    check("dropout", dropout, type(dropout) in (int, float) and 0 <= dropout < 1, "a number in [0, 1)")


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


def parameters(backbone: nn.Module) -> int:
    """Number of trained numbers."""
    return sum(p.numel() for p in backbone.parameters())
