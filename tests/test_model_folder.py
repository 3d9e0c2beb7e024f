"""A damaged model folder is one line that names the file and what is wrong with it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_model import write_tiny_model

from tmnmt import Translator
from tmnmt.errors import ModelError

BASE, MEMORY = "base.safetensors", "memory.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def refusal(folder: Path) -> str:
    with pytest.raises(ModelError) as raised:
        Translator.load(folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ('src_lang = "en"', "src_lang = 5", "src_lang"),
        ('tgt_lang = "fr"', 'tgt_lang = ["fr"]', "tgt_lang"),
        ("max_subwords = 40", "max_subwords = 0", "max_subwords"),
        ("max_subwords = 40", "max_subwords = 4.5", "max_subwords"),
        ("hidden = 32", "hidden = 0", "hidden"),
        ("hidden = 32", "hidden = true", "hidden"),
        ("dropout = 0.0", "dropout = 2.0", "dropout"),
        ("dropout = 0.0", 'dropout = "a"', "dropout"),
        ("[model]", "model = 3\n[other]", "model"),
    ],
)
def test_a_wrong_key_is_named(folder: Path, before: str, after: str, key: str) -> None:
    config = (folder / "config.toml").read_text()
    assert before in config
    (folder / "config.toml").write_text(config.replace(before, after))
    assert f"config.toml: key `{key}` is " in refusal(folder)


@pytest.mark.parametrize("name", [BASE, MEMORY])
@pytest.mark.parametrize("damage", ["missing", "unknown", "of size", "not finite"])
def test_a_wrong_tensor_is_named(folder: Path, name: str, damage: str) -> None:
    tensors = load_file(folder / name)
    with safe_open(folder / name, "pt") as file:
        told = file.metadata()
    first = min(tensors)
    if damage == "missing":
        del tensors[first]
    elif damage == "unknown":
        tensors["zzz"] = torch.zeros(1)
    elif damage == "of size":
        tensors[first] = torch.zeros(2, 3, 5)
    else:
        tensors[first].flatten()[0] = torch.nan
    save_file(tensors, folder / name, told)
    message = refusal(folder)
    assert name in message and "tensor " in message and damage in message


@pytest.mark.parametrize("name", ["config.toml", "spm.model", BASE, MEMORY])
@pytest.mark.parametrize("damage", ["empty", "folder", "noise"])
def test_a_file_that_is_none_is_named(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(b"" if damage == "empty" else b"\xff\xfe no such thing" * 9)
    message = refusal(folder)
    assert name in message
    assert damage != "folder" or "Is a directory" in message


@pytest.mark.parametrize("name", ["config.toml", "spm.model", BASE, MEMORY])
def test_a_file_that_may_not_be_read_is_named(whole: Path, name: str) -> None:
    Translator.load(whole)  # all that is imported is imported by who may read it
    with tempfile.TemporaryDirectory() as open_to_all:  # pytest's folders are not
        Path(open_to_all).chmod(0o755)
        folder = Path(shutil.copytree(whole, Path(open_to_all) / "model"))
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0 if path.name == name else 0o644)
        with as_nobody():
            message = refusal(folder)
    assert name in message and "Permission denied" in message


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_what_is_no_memory_file_or_no_vocabulary_is_said_in_words_of_its_own(folder: Path) -> None:
    save_file({"weight": torch.zeros(2)}, folder / MEMORY)
    assert refusal(folder).startswith(f"{folder / MEMORY}: no memory file of tmnmt")
    for content, reason in ((b"", "the file is empty"), (b"\xff\xfe noise" * 9, "damaged, or another file")):
        (folder / "spm.model").write_bytes(content)
        assert refusal(folder) == f"{folder / 'spm.model'}: no sentencepiece vocabulary: {reason}"
