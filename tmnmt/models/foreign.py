"""What was brought in place of a Marian model, told by its beginning or its files, and what would
work instead. A message is for a person who has the wrong file and needs to know which is right."""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path

from tmnmt.errors import ModelError

ALLOWED = (
    "wanted: the folder of a Marian model, of Hugging Face (config.json), of OPUS-MT (decoder.yml) "
    "or of Mozilla (model.*.bin)"
)
_REMEDY = "download it again"
_HEAD = 512  # bytes that are looked at
_UNFINISHED = (".part", ".partial", ".crdownload", ".download", ".incomplete", ".aria2", ".tmp")
_PARTS = (".json", ".yml", ".spm", ".safetensors", ".bin", ".npz")
# what a file begins with, in lower case, that is in the place of a model or of a part of one
_POINTER = b"version https://git-lfs.github.com/spec/"
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<?xml")
# what a single file is by its suffix, and what would work
_BY_SUFFIX = {
    ".argosmodel": "a package of Argos Translate, which holds a CTranslate2 model and no weights "
    "of Marian; bring a model of OPUS-MT for these languages",
    ".pt": "a checkpoint of PyTorch, as OpenNMT-py and fairseq write it, and not of Marian; "
    f"{ALLOWED}",
    ".pth": f"a checkpoint of PyTorch, and not of Marian; {ALLOWED}",
    ".ckpt": f"a checkpoint of a training program, and not of Marian; {ALLOWED}",
    ".onnx": f"an ONNX graph, which has no named weights; {ALLOWED}",
    ".npz": "the weights of a Marian model alone; name the folder that has them with decoder.yml, "
    "vocabulary and source.spm, target.spm",
    ".safetensors": "the weights of a model alone; name the folder that has them with config.json, "
    "vocab.json and source.spm, target.spm",
    ".bin": "weights alone; name the folder that has them with config.json, vocab.json and "
    "source.spm, target.spm",
    ".zip": "a packed archive; unpack it, and name the folder",
    ".gz": "a packed archive; unpack it, and name the folder",
    ".tgz": "a packed archive; unpack it, and name the folder",
    ".tar": "a packed archive; unpack it, and name the folder",
}
# files that only a folder of another kind has, and what it is
_CTRANSLATE2 = (
    "a CTranslate2 model, whose weights are made for that program; bring the Marian model that it "
    "was converted from"
)
_OF_CTRANSLATE2 = frozenset(
    f"{side}vocabulary.{kind}"
    for side in ("shared_", "source_", "target_", "")
    for kind in ("txt", "json")
)
_FOLDERS = {
    "saved_model.pb": f"a model of TensorFlow; {ALLOWED}",
    "spiece.model": f"a model of T5 or of its kind, which is no Marian model; {ALLOWED}",
    "quantize_config.json": f"a quantised language model, and no Marian model; {ALLOWED}",
    "dict.txt": f"a model of fairseq; {ALLOWED}",
    "model.onnx": f"a model in ONNX, which has no named weights; {ALLOWED}",
    "adapter_config.json": f"an adapter, which is no model by itself; {ALLOWED}",
    "base.safetensors": "a model folder of tmnmt already; translate with it as it is",
}


_OF_FAIRSEQ = re.compile(r"dict\.[\w-]+\.txt")
# what config.json of Hugging Face calls a model, and what people call it
_FAMILIES = {
    "m2m_100": "M2M-100 or NLLB",
    "nllb-moe": "NLLB",
    "t5": "T5 or MADLAD",
    "mt5": "mT5",
    "umt5": "umT5",
    "mbart": "mBART",
    "bart": "BART",
    "fsmt": "fairseq, as WMT19",
    "seamless_m4t": "SeamlessM4T",
    "seamless_m4t_v2": "SeamlessM4T",
    "llama": "a language model",
    "gemma": "a language model",
    "mistral": "a language model",
    "qwen2": "a language model",
}
# files by which other folders of tmnmt are known, and what they are given to
_OWN_FOLDERS = {
    "start.json": "the folder of a start; its model, if it has one, is in `base`",
    "manifest.json": "an index, or what an index is made of; an index is a --memory",
}


def family_of(model_type: object) -> str:
    """What a `model_type` of Hugging Face stands for, in words; "" where it is not known.

    model_type: the `model_type`."""
    return _FAMILIES.get(model_type, "") if isinstance(model_type, str) else ""


def in_place_of_model(path: Path) -> str:
    """What is there where a model folder is wanted, and what would work; "" where that is not
    known.

    path: what is there."""
    if not path.is_dir():
        return f"it is {_what_file(path)}" if path.exists() else "there is no such folder"
    names = {entry.name for entry in path.iterdir()}
    for name, description in _OWN_FOLDERS.items():
        if name in names:
            return f"it is {description}"
    try:
        check_path(path)
    except ModelError as error:
        return str(error).removeprefix(f"{path}: ")
    is_marian = any(name.endswith((".spm", ".npz", "decoder.yml")) for name in names)
    if is_marian or "config.json" in names:
        return f"`tmnmt import-model {path} -o NAME` makes one of what is there"
    return ""


def is_model_folder(path: Path) -> bool:
    """Whether a folder is a model folder of tmnmt, by its files.

    path: the folder."""
    return (path / "config.toml").is_file()


def check_path(path: Path) -> None:
    """Checks that a folder may hold a Marian model.

    path: the folder.

    Raises ModelError where it is no folder, or one of another program's models."""
    if not path.exists():
        raise ModelError(f"{path}: there is no such file or folder; {ALLOWED}")
    if not path.is_dir():
        raise ModelError(f"{path}: is {_what_file(path)}")
    names = {entry.name for entry in path.iterdir()}
    for name, description in _FOLDERS.items():
        if name in names:
            raise ModelError(f"{path}: is {description}")
    if any(map(_OF_FAIRSEQ.fullmatch, names)):
        raise ModelError(f"{path}: is a model of fairseq; {ALLOWED}")
    if "model.bin" in names and names.intersection(_OF_CTRANSLATE2):
        raise ModelError(f"{path}: is {_CTRANSLATE2}")
    if "model" in names and (path / "model" / "model.bin").is_file():
        raise ModelError(f"{path}: holds {_CTRANSLATE2}")
    if unfinished := sorted(name for name in names if name.endswith(_UNFINISHED)):
        raise ModelError(f"{path / unfinished[0]}: is half of a download; {_REMEDY}")


def check_file(path: Path) -> None:
    """Checks that a file of a model is what its name says. One that is not there is right.

    path: the file.

    Raises ModelError for a Git LFS pointer, a web page, a file that is empty or ends too soon."""
    if path.is_file() and (problem := _in_its_place(path) or _what_is_missing(path)):
        raise ModelError(f"{path}: {problem}")


def check_parts(folder: Path) -> None:
    """Checks every file that a model may be read from.

    folder: the folder of the model.

    Raises ModelError as `check_file` does."""
    whole = (folder / "model.safetensors").exists()
    for path in sorted(folder.iterdir()):
        is_read = path.name.removesuffix(".gz").endswith(_PARTS)
        if is_read and not (whole and path.name == "pytorch_model.bin"):
            check_file(path)


def _what_file(path: Path) -> str:
    problem = _in_its_place(path) if path.is_file() else "no regular file"
    if problem:
        return f"{problem}; {ALLOWED}"
    if path.name.endswith(_UNFINISHED):
        return f"half of a download; {_REMEDY}; {ALLOWED}"
    return _BY_SUFFIX.get(path.suffix.lower(), f"a file, and no folder; {ALLOWED}")


def _in_its_place(path: Path) -> str:
    """What a file holds that can be no part of any model."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if not head:
        return f"an empty file; {_REMEDY}"
    if head.startswith(_POINTER):
        return "a pointer of Git LFS and not the file itself; `git lfs pull` fetches that"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGES):
        return f"a web page and not the file itself; {_REMEDY}, by the link of the file"
    return ""


def _what_is_missing(path: Path) -> str:
    """Where a file says how long it is: by how much it is shorter."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
    if path.suffix == ".safetensors":
        expected = _safetensors_size(path, head, size)
        if expected > size:
            return f"half of a download: {size:,} of its {expected:,} bytes are there; {_REMEDY}"
    elif head.startswith(b"PK\x03\x04") and not zipfile.is_zipfile(path):
        return f"half of a download: its end is missing after {size:,} bytes; {_REMEDY}"
    return ""


def _safetensors_size(path: Path, head: bytes, size: int) -> int:
    """The bytes that a file of safetensors should have; 0 where its header does not say."""
    import json

    if len(head) < 8:
        return 8
    (length,) = struct.unpack("<Q", head)
    if length > 100_000_000:  # as its library has it
        return 0
    if 8 + length > size:
        return int(8 + length)
    with path.open("rb") as file:
        file.seek(8)
        try:
            table = json.loads(file.read(length))
            ends = [entry["data_offsets"][1] for name, entry in table.items() if name[:2] != "__"]
            return int(8 + length + max(ends, default=0))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return 0
