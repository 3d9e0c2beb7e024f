"""A damaged model folder is one line that names the file and what is wrong with it."""

from __future__ import annotations

import json
import os
import random
import re
import resource
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
from torch import nn

from tmnmt import Translator
from tmnmt.engine.session_file import load_session
from tmnmt.errors import DataError, MemoryIndexError, ModelError
from tmnmt.keys.files import _read_records
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.encoder_decoder import EncoderLayer
from tmnmt.models.folder import _most_weights, load_model, most_bytes, stamp
from tmnmt.models.kinds import make
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.weights import packed
from tmnmt.papers.knn import AdaptiveKNN
from tmnmt.trained_layers.cache import CacheKind, SessionCache
from tmnmt.trained_layers.tm import TMKind, TranslationMemory

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
        ("hidden = 32", "hidden = 0x" + "f" * 5000, "hidden"),
        ("hidden = 32", "hidden = -" + "9" * 4000, "hidden"),
        ("max_subwords = 40", 'max_subwords = "a\\nb"', "max_subwords"),
    ],
)
def test_a_wrong_key_is_named(folder: Path, before: str, after: str, key: str) -> None:
    config = (folder / "config.toml").read_text()
    assert before in config
    (folder / "config.toml").write_text(config.replace(before, after))
    message = refusal(folder)
    assert f"config.toml: key `{key}` is " in message and len(message) < 400


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("format = 1", "model format 1, this version reads 2; if it is as you want it"),
        ('format = "a\\nb"', r"model format 'a\nb', this version reads 2"),
        ("format = " + "9" * 5000, "cannot be read: Exceeds the limit"),
        ("format = " + "[" * 5000, "cannot be read: tables or lists too deep"),
        ("format = 2\nx = " + '"' + "x" * 8192 + '"', "larger than 8,192 bytes"),
        ("format = 2", "key `src_lang` is missing"),
    ],
)
def test_a_configuration_that_is_none_is_one_line(folder: Path, content: str, reason: str) -> None:
    (folder / "config.toml").write_text(content)
    assert refusal(folder).startswith(f"{folder / 'config.toml'}: {reason}")


def test_sizes_are_compared_with_the_file_before_memory_is_asked_for(folder: Path) -> None:
    config = (folder / "config.toml").read_text()
    for name in ("embedding", "hidden", "attention"):
        config = re.sub(f"{name} = .*", f"{name} = 16384", config)
    (folder / "config.toml").write_text(config)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert re.search(
        r"base.safetensors: .*tensor \S+ is of size .*, wanted: .*16384", refusal(folder)
    )
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18
    )  # KB; the sizes ask for 23 GB


def test_more_layers_than_the_file_has_tensors_are_never_made(folder: Path) -> None:
    config = re.sub("(embedding|attention) = .*\n", "", (folder / "config.toml").read_text())
    layers = 'kind = "transformer"\nencoder_layers = 16384'
    (folder / "config.toml").write_text(config.replace("[model]", f"[model]\n{layers}"))
    assert refusal(folder).endswith("it has fewer tensors than config.toml says layers")


@pytest.mark.parametrize("name", ["spm.model", BASE, MEMORY])
def test_a_flipped_bit_anywhere_is_found(folder: Path, name: str) -> None:
    path, draw = folder / name, random.Random(name)
    content = path.read_bytes()
    for at in [0, len(content) - 1, *(draw.randrange(len(content)) for _ in range(10))]:
        path.write_bytes(
            content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
        )
        assert refusal(folder).startswith(
            f"{path}: damaged, or another file (its sha256 is not that in config.toml)"
        )
    path.write_bytes(content)
    assert Translator.load(folder)


def test_a_file_that_was_replaced_is_read_once_its_checksum_is_written(folder: Path) -> None:
    tensors = load_file(folder / BASE)
    with safe_open(folder / MEMORY, "pt") as file:
        told = file.metadata()
    other = {name: tensor + 1 for name, tensor in load_file(folder / MEMORY).items()}
    (folder / MEMORY).write_bytes(packed(other, told))
    assert "damaged, or another file" in refusal(folder)
    stamp(folder)
    memories = Translator.load(folder).layers
    assert (
        memories is not None
        and memories.tm is not None
        and memories.tm.log_eta.item() == other["tm.log_eta"].item()
    )
    assert all(
        torch.equal(tensor, load_file(folder / BASE)[name]) for name, tensor in tensors.items()
    )
    old = (
        (folder / "config.toml")
        .read_text()
        .replace("format = 2", "format = 1")
        .partition("\n[sha256]")[0]
    )
    (folder / "config.toml").write_text(old)
    stamp(folder)
    assert Translator.load(folder)
    (folder / MEMORY).unlink()
    stamp(folder)
    assert (
        MEMORY not in (folder / "config.toml").read_text()
        and Translator.load(folder).settings.mode == "nearest"
    )


def test_equal_weights_are_equal_bytes_and_all_files_have_one_mode(
    folder: Path, tmp_path: Path
) -> None:
    memories = Translator.load(folder).layers
    assert memories is not None
    contents = set()
    for number in range(8):  # safetensors alone writes the notes in any order
        memories.save(tmp_path / f"{number}.safetensors")
        contents.add((tmp_path / f"{number}.safetensors").read_bytes())
    assert contents == {(folder / MEMORY).read_bytes()}
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1


KINDS = [
    MemoryLayers(TranslationMemory(8, 8, 4), SessionCache(8, 8, 4)),
    MemoryLayers(
        TranslationMemory(8, 8, 4, TMKind(matching="full", coverage="gru", fusion_gate="scalar"))
    ),
    MemoryLayers(
        None,
        SessionCache(
            8, 8, 4, CacheKind("shallow", matching="joint", signs=True, follows=True, rank=3)
        ),
    ),
    MemoryLayers(
        None, SessionCache(8, 8, 4, CacheKind(matching="learned", combining="add", gate="scalar"))
    ),
]


@pytest.mark.parametrize("memories", KINDS)
def test_what_is_loaded_is_what_was_saved_and_nothing_is_left_without_numbers(
    tmp_path: Path, memories: MemoryLayers
) -> None:
    base = RNNsearch(20, 4, 8, 4)
    memories.save(tmp_path / MEMORY)
    loaded = MemoryLayers.load(tmp_path / MEMORY, base)
    assert_same(loaded, memories)


def test_a_base_is_loaded_as_it_was_saved_without_drawing_numbers_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = load_model(folder).backbone
    torch.manual_seed(1)
    state = torch.get_rng_state()
    monkeypatch.setattr(RNNsearch, "reset_parameters", None)
    loaded = load_model(folder).backbone
    assert torch.equal(torch.get_rng_state(), state)
    assert_same(loaded, saved)
    assert {
        name: tensor.float() for name, tensor in load_file(folder / BASE).items()
    }.keys() == dict(loaded.named_parameters()).keys()


def assert_same(one: nn.Module, other: nn.Module) -> None:
    """The same parameters, bit by bit, all trainable, and no tensor beside them."""
    ours, theirs = dict(one.named_parameters()), dict(other.named_parameters())
    assert ours.keys() == theirs.keys() and not list(one.buffers())
    for name, parameter in ours.items():
        assert (
            parameter.device.type == "cpu"
            and parameter.requires_grad
            and torch.equal(parameter, theirs[name])
        )
    for module in one.modules():
        assert not any(isinstance(value, torch.Tensor) for value in vars(module).values())


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
    stamp(folder)
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
def test_what_is_no_regular_file_is_not_read(folder: Path, name: str) -> None:
    path = folder / name
    path.unlink()
    os.mkfifo(path)
    assert (
        refusal(folder) == f"{path}: cannot be read: no regular file"
    )  # and nobody writes into the pipe
    path.unlink()
    path.symlink_to("/dev/zero")
    assert refusal(folder) == f"{path}: cannot be read: no regular file"
    path.unlink()
    path.symlink_to(name)
    assert refusal(folder).startswith(
        f"{folder}: no model folder"
        if name == "config.toml"
        else f"{path}: cannot be read: Too many levels of"
    )


def test_a_pipe_is_not_waited_for_where_a_session_or_keys_are_to_be(tmp_path: Path) -> None:
    for name in ("a.session", "knn.safetensors", "offsets"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=r"a.session: no saved session: no regular file"):
        load_session(tmp_path / "a.session", "m", {}, 9)
    with pytest.raises(ModelError, match=r"knn.safetensors: no adaptive kNN: no regular file"):
        AdaptiveKNN.load(tmp_path / "knn.safetensors", "m")
    with pytest.raises(MemoryIndexError, match=r"offsets: no regular file; delete its folder"):
        _read_records(tmp_path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("spm.model", "no vocabulary is"),
        (BASE, "no weights of the sizes in config.toml are"),
        (MEMORY, "no memory layers of this base are"),
    ],
)
def test_a_file_that_is_larger_than_its_sizes_can_need_is_not_read(
    folder: Path, name: str, reason: str
) -> None:
    os.truncate(folder / name, 4 << 30)  # takes no room
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert re.fullmatch(rf".*/{name}: larger than [0-9,]+ bytes; {reason}", refusal(folder))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18  # KB


def test_layers_are_allowed_for_and_not_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"kind": "transformer", "hidden": 8, "heads": 2, "feed_forward": 16}
    small = {**sizes, "encoder_layers": 1, "decoder_layers": 3}
    assert _most_weights(50, small) >= most_bytes(make(50, small))
    made: list[object] = []
    monkeypatch.setattr(
        "tmnmt.models.encoder_decoder.EncoderLayer",
        lambda *given: made.append(given) or EncoderLayer(*given),
    )
    assert (
        _most_weights(50, {**sizes, "encoder_layers": 16384}) > 16384 * 4 * 16 * 8
        and len(made) == 1
    )


@pytest.mark.parametrize("now", ["gone", "a link to itself", "a link to nothing"])
def test_memories_that_the_folder_lists_are_missed(folder: Path, now: str) -> None:
    path = folder / MEMORY
    path.unlink()
    if now != "gone":
        path.symlink_to(MEMORY if now == "a link to itself" else "nothing")
    reason = (
        "Too many levels of symbolic links"
        if now == "a link to itself"
        else "No such file or directory"
    )
    assert refusal(folder) == f"{path}: cannot be read: {reason}"
    if now == "gone":
        stamp(folder)
        assert Translator.load(folder).settings.mode == "nearest"  # nothing is learned of memories


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


def test_a_memory_file_from_before_the_empty_slot_loads_without_one_and_another_format_is_refused(
    folder: Path,
) -> None:
    tensors = load_file(folder / MEMORY)
    with safe_open(folder / MEMORY, "pt") as file:
        told = file.metadata()
    kinds = json.loads(told["kinds"])
    del kinds["cache"]["empty"]
    save_file(tensors, folder / MEMORY, {"format": "5", "kinds": json.dumps(kinds)})
    stamp(folder)
    memories = Translator.load(folder).layers
    assert memories is not None and memories.cache is not None and memories.cache.empty is None
    kinds["cache"] |= {"empty": True, "fusion": "shallow"}
    save_file(tensors, folder / MEMORY, {"format": "6", "kinds": json.dumps(kinds)})
    stamp(folder)
    assert "tensor cache.empty is missing" in refusal(folder)
    save_file(tensors, folder / MEMORY, told | {"format": "4"})
    stamp(folder)
    assert refusal(folder).endswith("format '4', this version reads 5 and 6")


def test_what_is_no_memory_file_or_no_vocabulary_is_said_in_words_of_its_own(folder: Path) -> None:
    save_file({"weight": torch.zeros(2)}, folder / MEMORY)
    stamp(folder)
    assert refusal(folder).startswith(f"{folder / MEMORY}: no memory file of tmnmt")
    for content, reason in (
        (b"", "the file is empty"),
        (b"\xff\xfe noise" * 9, "damaged, or another file"),
    ):
        (folder / "spm.model").write_bytes(content)
        stamp(folder)
        assert refusal(folder) == f"{folder / 'spm.model'}: no sentencepiece vocabulary: {reason}"
