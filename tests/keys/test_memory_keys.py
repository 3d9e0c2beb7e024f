"""`tmnmt keys`: keys computed ahead are those computed at need, whatever is added, deleted, killed
or shared out."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from brute_force import real_segments
from other_system import of_unused
from places import TESTS
from tiny_model import PAIRS, segments, write_tiny_model

import tmnmt
import tmnmt.keys.compute
from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import DataError, LockedError, MemoryIndexError, UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import (
    compute,
    header_of,
    parts_of,
    plan,
    precomputed,
    queries_of,
    read_shard,
)
from tmnmt.keys.derived import verify
from tmnmt.keys.files import HEADER_FILE, KeyFiles, KeyWriter, keys_dir, verify_keys
from tmnmt.keys.layout import DIRECTIONS
from tmnmt.keys.layout import PAIRS as WHOLE_PAIRS
from tmnmt.keys.pair import CERTAIN
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore, encode_pair, force_all
from tmnmt.models.base import shift
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.trained_layers.faiss_index import update_faiss
from tmnmt.trained_layers.key_search import KeySearch
from tmnmt.vocab import BOS

KILLS = TESTS / "kill_keys.py"
MEMORY = [*segments(), *real_segments()[:60], replace(segments()[0], document="again")]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(tmnmt.keys.compute, "BLOCK_POSITIONS", 400)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load_model(folder)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[MemoryIndex]:
    build(tmp_path / "index", MEMORY, "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        yield index


def compute_all(index: MemoryIndex, model: Model, part: str | None = None) -> KeyFiles:
    shard = read_shard(part) if part else None
    wanted = plan(index, header_of(model), model.vocab, shard)
    return compute(index, model, wanted, shard)


def at_need(model: Model, pairs: list[tuple[str, str]]) -> list[PairKeys]:
    return PairKeyStore(model.backbone, model.vocab, header_of(model).max_subwords).keys_of(
        [pairs]
    )[0]


def assert_right(files: KeyFiles, index: MemoryIndex, model: Model) -> None:
    """Every segment of the index has the keys that are computed at need, up to the rounding to 8
    bits."""
    pairs = [(segment.src, segment.tgt) for segment in index.segments()]
    for pair, wanted in zip(pairs, at_need(model, pairs), strict=True):
        found = files.find(*pair)
        assert found is not None, pair
        assert found[-1].tolist() == wanted.ids.tolist()
        keys = files.header.decoded(found)
        for numbers, right in zip(
            (keys.contexts.numpy(), keys.hiddens.numpy()),
            (wanted.contexts, wanted.hiddens),
            strict=True,
        ):
            error = np.linalg.norm(numbers - right.numpy(), axis=1)
            assert (error <= 0.015 * np.linalg.norm(right.numpy(), axis=1)).all()


def test_keys_computed_ahead_are_those_computed_at_need(index: MemoryIndex, model: Model) -> None:
    wanted = plan(index, header_of(model), model.vocab)
    files = compute_all(index, model)
    assert_right(files, index, model)
    assert files.positions == wanted.positions == wanted.all_positions
    assert len(files.records) == len(MEMORY)
    assert (
        len(wanted.missing) == len({(s.src, s.tgt) for s in MEMORY}) < len(MEMORY)
    )  # equal pairs share their keys
    sizes = [(files.folder / name).stat().st_size for name in ("c.u8", "z.u8", "y.i32")]
    assert sum(sizes) == files.positions * files.header.position_bytes
    assert sizes[0] == files.positions * (2 + 32)
    assert verify(index) == len(MEMORY)


def test_translating_reads_them_and_computes_none(
    folder: Path, index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        "The Commission shall inform the Council.",
        "It shall apply from 1 June 1997.",
        PAIRS[4][0],
    ]
    before = Translator.load(folder, [index.path], TranslationOptions(mode="both")).translate(texts)
    compute_all(index, model)

    def force(*_: object) -> list[PairKeys]:
        raise AssertionError("computed what was there")

    monkeypatch.setattr("tmnmt.keys.pair_keys.force", force)
    after = Translator.load(folder, [index.path], TranslationOptions(mode="both")).translate(texts)
    assert any(translation.matches for translation in after)
    assert [t.tgt for t in after] == [t.tgt for t in before]
    assert [t.score for t in after] == pytest.approx([t.score for t in before], abs=0.02)


def test_the_mode_nearest_reads_the_same_directions_ahead_as_at_need(
    folder: Path, index: MemoryIndex, model: Model
) -> None:
    """Pairs whose contexts and states are kept in a few bits gave other directions once."""
    header = header_of(model, DIRECTIONS)
    pairs = {(segment.src, segment.tgt): segment for segment in index.segments()}
    wanted = compute(index, model, plan(index, header, model.vocab)), compute_all(index, model)
    assert [files.header.layout for files in wanted] == [DIRECTIONS, WHOLE_PAIRS]
    store = PairKeyStore(
        model.backbone, model.vocab, header.max_subwords, directions=True, model=header
    )
    at_need = store.keys_of([pairs])[0]
    files = precomputed(index.path, header)
    assert files is not None and files.header.position_bytes == 16 + 4
    coded = [encode_pair(pair, model.vocab, header.max_subwords) for pair in pairs]
    forced = force_all(model.decoding, coded, "cpu")
    for pair, keys, full in zip(pairs, at_need, forced, strict=True):
        previous = shift(full.ids[None], BOS)[0]
        log_probs = model.decoding.log_readout(previous, full.hiddens, full.contexts)
        probabilities = log_probs.gather(1, full.ids[:, None])[:, 0].exp()
        assert keys.codes is not None
        assert (keys.codes[:, -1] / CERTAIN - probabilities).abs().max() < 0.01
        found = files.find(*pair)
        assert found is not None
        ahead = files.header.decoded(found)
        assert ahead.codes is not None
        assert ahead.ids.tolist() == keys.ids.tolist()
        assert ahead.codes.tolist() == keys.codes.tolist()
        assert (len(ahead.contexts), len(ahead.hiddens)) == (0, 0)


def test_the_mode_nearest_writes_the_same_text_with_keys_ahead_as_at_need(
    folder: Path, index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = TranslationOptions(mode="nearest", verbatim=0)
    texts = [segment.src for segment in MEMORY[:30]]
    before = Translator.load(folder, [index.path], options).translate(texts)
    shutil.rmtree(index.path / "keys")
    command = ["keys", "--index", str(index.path), "--model", str(folder), "--device", "cpu"]
    assert run([*command, "--mode", "nearest"]) == 0

    def force(*_: object) -> list[PairKeys]:
        raise AssertionError("computed what was there")

    monkeypatch.setattr("tmnmt.keys.pair_keys.force", force)
    after = Translator.load(folder, [index.path], options).translate(texts)
    assert any(translation.matches for translation in after)
    assert [(t.tgt, t.score) for t in after] == [(t.tgt, t.score) for t in before]


def test_the_mode_nearest_says_which_command_computes_what_it_lacks(
    index: MemoryIndex, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    """Where only keys for other modes are there, as former versions computed them for all."""
    compute_all(index, model)
    assert precomputed(index.path, header_of(model, DIRECTIONS)) is None
    assert "Run tmnmt keys --mode nearest" in caplog.text


def test_a_killed_run_of_directions_is_joined_and_verified(
    index: MemoryIndex, model: Model
) -> None:
    header = header_of(model, DIRECTIONS)
    parts = [
        compute(index, model, plan(index, header, model.vocab, shard), shard)
        for shard in ((1, 2), (2, 2))
    ]
    files = compute(index, model, plan(index, header, model.vocab))
    assert files.positions == sum(part.positions for part in parts) == verify_keys(index.path)
    index.delete(range(1, 50))
    renewed = compute(index, model, plan(index, header, model.vocab))
    assert renewed.positions < files.positions / 2
    assert [path.name for path in renewed.folder.parent.iterdir()] == [f"{model.hash}.directions"]


def test_what_is_added_corrected_and_deleted_is_followed(index: MemoryIndex, model: Model) -> None:
    first = compute_all(index, model)
    assert plan(index, header_of(model), model.vocab).positions == 0
    index.add([Segment("A new sentence.", "Une phrase nouvelle.")])
    index.edit([3], lambda segment: replace(segment, tgt="Corrigé."))
    index.delete([1, 5])
    wanted = plan(index, header_of(model), model.vocab)
    assert wanted.missing["id"].tolist() == [3, len(MEMORY) + 1]
    second = compute_all(index, model)
    assert second.positions == first.positions + wanted.positions
    assert_right(second, index, model)


def test_compaction_and_a_new_build_keep_them(index: MemoryIndex, model: Model) -> None:
    compute_all(index, model)
    index.delete([2])
    index.compact()
    assert plan(index, header_of(model), model.vocab).positions == 0
    build(index.path, MEMORY[::-1], "en", "fr", force=True)
    assert plan(index, header_of(model), model.vocab).positions == 0
    assert_right(compute_all(index, model), index, model)


def test_what_is_mostly_deleted_is_written_again_without_it(
    index: MemoryIndex, model: Model
) -> None:
    before = compute_all(index, model)
    index.delete(range(1, 50))
    wanted = plan(index, header_of(model), model.vocab)
    assert (wanted.positions, wanted.rewritten) == (0, before.positions)
    after = compute_all(index, model)
    assert after.positions == wanted.all_positions < before.positions / 2
    assert_right(after, index, model)
    assert [path.name for path in after.folder.parent.iterdir()] == [model.hash]


def test_they_are_written_again_where_no_open_file_can_be_moved(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmnmt.keys.compute, "MOVES_OPEN_FILES", False)
    monkeypatch.setattr(os, "replace", of_unused(os.replace))
    positions = compute_all(index, model).positions
    index.delete(range(1, 50))
    after = compute_all(index, model)
    assert 0 < after.positions < positions / 2
    assert_right(after, index, model)
    index.delete(range(50, 50 + 3 * len(index) // 4))
    with pytest.raises(MemoryIndexError, match="another program has these keys open"):
        compute_all(index, model)  # here it is this one, by `after`


def test_shards_are_disjoint_and_join_to_the_whole(
    index: MemoryIndex, model: Model, tmp_path: Path
) -> None:
    header, positions = header_of(model), 0
    for i in (1, 2, 3):
        machine = tmp_path / f"machine-{i}"
        shutil.copytree(index.path, machine)
        with MemoryIndex.open(machine) as copy:
            part = compute_all(copy, model, f"{i}/3")
        positions += part.positions
        assert part.positions > 0
        if i < 3:  # the third machine was lost
            shutil.copytree(part.folder, keys_dir(index.path, model.hash) / part.folder.name)
    wanted = plan(index, header, model.vocab)
    assert positions == wanted.all_positions
    assert wanted.positions + wanted.part_positions == wanted.all_positions
    assert 0 < wanted.positions < wanted.all_positions
    files = compute_all(index, model)
    assert (files.positions, parts_of(files.folder)) == (wanted.all_positions, [])
    assert_right(files, index, model)


def test_an_interrupted_run_loses_one_block_at_most(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = plan(index, header_of(model), model.vocab)
    done: list[int] = []

    def stop(positions: int) -> None:
        done.append(positions)
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute(index, model, wanted, progress=stop)
    rest = plan(index, header_of(model), model.vocab)
    assert rest.positions == wanted.positions - sum(done) > 0
    assert_right(compute_all(index, model), index, model)


def test_a_killed_run_goes_on_where_it_was(index: MemoryIndex, model: Model, folder: Path) -> None:
    program = (
        "import sys, pathlib, tmnmt.keys.compute as m\n"
        "from tmnmt.index import MemoryIndex\n"
        "from tmnmt.models.folder import load_model\n"
        "m.BLOCK_POSITIONS = 200\n"
        "index, model = MemoryIndex.open(pathlib.Path(sys.argv[1])), "
        "load_model(pathlib.Path(sys.argv[2]))\n"
        "wanted = m.plan(index, m.header_of(model), model.vocab)\n"
        "m.compute(index, model, wanted, progress=lambda n: print(n, flush=True))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(index.path), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    done = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    rest = plan(index, header_of(model), model.vocab)
    assert rest.positions <= rest.all_positions - sum(done)
    assert_right(compute_all(index, model), index, model)


def test_a_writer_that_was_killed_at_its_very_start_leaves_nothing_damaged(
    index: MemoryIndex, model: Model
) -> None:
    """Its header is there, and no file of keys yet."""
    folder = keys_dir(index.path, model.hash)
    with KeyWriter.open(folder, header_of(model)):
        pass
    for path in folder.iterdir():
        if path.name != HEADER_FILE:
            path.unlink()
    assert verify_keys(index.path) == 0


def _kill(folder: Path, model: Path, kills: int, seed: int) -> dict[str, int]:
    command = [sys.executable, str(KILLS), str(folder), str(model), str(kills), str(seed)]
    environment = os.environ | {
        "PYTHONPATH": str(Path(tmnmt.__file__).parents[1])
    }  # what is tested here, and no other
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_killed_at_random_moments_keys_are_the_same_bytes_in_the_end(
    tmp_path: Path, folder: Path
) -> None:
    found = _kill(tmp_path, folder, 8, random.randrange(10**6))  # other moments every time
    assert (found["kills"], found["changes"]) == (8, 2) and found["grown"] > 0


@pytest.mark.slow
def test_killed_a_hundred_times_keys_are_the_same_bytes_in_the_end(
    tmp_path: Path, folder: Path
) -> None:
    found = _kill(tmp_path, folder, 100, 100)
    assert found["kills"] == 100 and found["unfinished"] > 25 and found["grown"] > 10


@pytest.mark.parametrize("name", ["c.u8", "z.u8", "y.i32", "offsets"])
def test_half_a_block_is_as_if_it_was_never_written(
    index: MemoryIndex, model: Model, name: str
) -> None:
    files = compute_all(index, model)
    with (files.folder / name).open("ab") as file:
        file.write(
            b"\0" * 7 if name != "offsets" else (files.folder / name).read_bytes()[:40] + b"\0" * 99
        )
    index.add([Segment("A new sentence.", "Une phrase nouvelle.")])
    assert_right(compute_all(index, model), index, model)


def test_verify_finds_a_flipped_byte_in_every_file_of_keys(
    index: MemoryIndex, model: Model
) -> None:
    files = compute_all(index, model)
    update_faiss(files, "hnsw")
    shutil.copytree(
        files.folder, files.folder / "part-1-of-2", ignore=shutil.ignore_patterns("faiss.index")
    )
    assert verify(index) == len(MEMORY)
    parts = [
        path for path in sorted(files.folder.rglob("*")) if path.is_file() and path.name != ".lock"
    ]
    assert [path.name for path in parts] == [
        "c.u8",
        "directions.f32",
        "faiss.index",
        "keys.json",
        "offsets",
        "c.u8",
        "directions.f32",
        "keys.json",
        "offsets",
        "y.i32",
        "z.u8",
        "y.i32",
        "z.u8",
    ]
    draw = random.Random(3)
    for path in parts:
        size = path.stat().st_size
        for at in (0, size - 1, *(draw.randrange(size) for _ in range(3))):
            flip(path, at)
            with pytest.raises(MemoryIndexError, match=r"damaged|cannot be read|keys of format"):
                verify(index)
            flip(path, at)
    assert verify(index) == len(MEMORY)


def test_the_end_of_a_frame_that_became_zero_is_damage_and_an_unwritten_sector_is_not(
    index: MemoryIndex, model: Model
) -> None:
    offsets = compute_all(index, model).folder / "offsets"
    content = offsets.read_bytes()
    assert len(content) % 512 > 1
    offsets.write_bytes(content[:-1] + b"\0")
    with pytest.raises(MemoryIndexError, match="offsets: damaged at byte"):
        verify(index)
    for end in (0, len(content) // 512 * 512):
        offsets.write_bytes(content[:end].ljust(len(content), b"\0"))
        assert verify(index) == len(MEMORY)


def test_verify_finds_keys_in_a_folder_of_another_name(index: MemoryIndex, model: Model) -> None:
    folder = compute_all(index, model).folder
    shutil.copytree(folder, folder / "part-1-of-2")
    renamed = folder.rename(
        folder.with_name(model.hash + ".old")
    )  # as while they are written again
    assert verify(index) == len(MEMORY)
    renamed = renamed.rename(folder.with_name("0123456789abcdef"))
    for left in (renamed, renamed / "part-1-of-2"):
        with pytest.raises(
            MemoryIndexError,
            match=f"{left}: these are keys of model {model.hash}, not of 0123456789a",
        ):
            verify(index)
        (renamed / "keys.json").unlink(missing_ok=True)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_damage_is_one_line(index: MemoryIndex, model: Model) -> None:
    files = compute_all(index, model)
    src, tgt = MEMORY[0].src, MEMORY[0].tgt
    flip(files.folder / "z.u8", 5)
    with pytest.raises(MemoryIndexError, match="segment 1 are damaged"):
        KeyFiles(files.folder, files.header).find(src, tgt)
    os.truncate(files.folder / "z.u8", 100)
    with pytest.raises(MemoryIndexError, match="shorter than"):
        precomputed(index.path, files.header)
    flip(files.folder / "offsets", 20)
    with pytest.raises(MemoryIndexError, match="damaged at byte 0"):
        precomputed(index.path, files.header)


def test_keys_of_another_model_are_an_error(
    index: MemoryIndex, model: Model, tmp_path: Path
) -> None:
    files = compute_all(index, model)
    other = replace(files.header, model="0123456789abcdef")
    with pytest.raises(
        MemoryIndexError, match=f"keys of model {model.hash} only, none of model 0123456789abcdef"
    ):
        KeySearch.open(index, other.model)
    assert precomputed(index.path, other) is None
    files.folder.rename(files.folder.with_name(other.model))  # somebody's mistake
    with pytest.raises(MemoryIndexError, match=f"these are keys of model {model.hash}"):
        precomputed(index.path, other)
    with pytest.raises(MemoryIndexError, match=f"these are keys of model {model.hash}"):
        KeySearch.open(index, other.model)


def test_keys_of_pairs_cut_elsewhere_are_an_error(index: MemoryIndex, model: Model) -> None:
    header = compute_all(index, model).header
    with pytest.raises(MemoryIndexError, match=r"cut at 160 subwords, not .* cut at 90"):
        precomputed(index.path, replace(header, max_subwords=90))


def test_two_cannot_compute_the_same(index: MemoryIndex, model: Model) -> None:
    header = header_of(model)
    with (
        KeyWriter.open(keys_dir(index.path, model.hash), header),
        pytest.raises(LockedError, match="is writing"),
    ):
        compute_all(index, model)


def test_a_number_too_great_for_16_bits_is_an_error(model: Model) -> None:
    keys = PairKeys(torch.full((1, 32), 1e5), torch.zeros(1, 32), torch.zeros(1, dtype=torch.int64))
    with pytest.raises(DataError, match="16 bits"):
        header_of(model).encoded(keys)


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "a/b", "1/2/3", "-1/2"])
def test_a_shard_that_is_none_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="i/n"):
        read_shard(text)


def test_an_empty_index_has_no_keys(tmp_path: Path, model: Model) -> None:
    build(tmp_path / "empty", [], "en", "fr")
    with MemoryIndex.open(tmp_path / "empty") as index:
        files = compute_all(index, model)
        scores, positions = KeySearch(index, files).search(np.ones((2, 64), np.float32), 3)
    assert files.find("a", "b") is None
    assert (positions == -1).all() and np.isneginf(scores).all()


def test_nothing_is_written_when_the_disk_is_full(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = compute_all(index, model)
    index.add([Segment("A new sentence.", "Une phrase nouvelle.")])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tmnmt.keys.files._put", full)
        with pytest.raises(MemoryIndexError, match="nothing was added: No space left"):
            compute_all(index, model)
    assert KeyFiles(files.folder, files.header).positions == files.positions
    assert_right(compute_all(index, model), index, model)


def test_the_command_says_the_size_and_finds_the_keys(
    index: MemoryIndex, folder: Path, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["keys", "--index", str(index.path), "--model", str(folder), "--device", "cpu"]
    assert run(options) == 0
    err = capsys.readouterr().err
    wanted = plan(index, header_of(model), model.vocab)
    pairs = len({(segment.src, segment.tgt) for segment in MEMORY})
    assert (
        f"{pairs} pairs, {wanted.all_positions:,} target positions to compute" in err
        and "72 bytes each" in err
    )
    assert f"keys of {wanted.all_positions:,} positions" in err
    assert run(options) == 0
    assert "0 pairs, 0 target positions to compute" in capsys.readouterr().err
    assert run([*options, "--src", PAIRS[2][0], "--tgt", PAIRS[2][1], "-k", "2"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    ids = at_need(model, [PAIRS[2]])[0].ids.tolist()
    assert [row[1] for row in rows[::2]] == [model.vocab.piece(i) for i in ids]
    assert len(rows) == 2 * len(ids)


def test_too_small_a_disk_is_refused_before_anything_is_written(
    index: MemoryIndex,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9 - 1000, 1000))
    assert run(["keys", "--index", str(index.path), "--model", str(folder), "--device", "cpu"]) == 1
    assert "0.00 GB are free; nothing was computed" in capsys.readouterr().err
    assert not (index.path / "keys").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--src", "a"], "both --src and --tgt"),
        (["--src", "", "--tgt", ""], "neither may be empty"),
        (["--src", " ", "--tgt", "a"], "neither may be empty"),
        (["--src", "a", "--tgt", "\n"], "neither may be empty"),
        (["--shard", "1/2", "--faiss", "ivf"], "without --shard"),
        (["--shard", "9/2"], "i/n"),
        (["--faiss", "ivfpq"], "too few for ivfpq"),
        (["--mode", "nearest", "--faiss", "flat"], "leave out --mode"),
        (["--mode", "off"], "--mode off reads no keys"),
        (["--mode", "near"], "near"),
        (
            ["--device", "cuda:99"],
            "device cuda:99 is not on this machine, or torch cannot use it; there: cpu",
        ),
    ],
)
def test_wrong_usage_is_one_line(
    index: MemoryIndex,
    folder: Path,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["keys", "--index", str(index.path), "--model", str(folder), *options]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_a_query_is_context_and_state(model: Model) -> None:
    queries, ids = queries_of(model, *PAIRS[0])
    (keys,) = at_need(model, [PAIRS[0]])
    np.testing.assert_allclose(queries, np.hstack([keys.contexts, keys.hiddens]), atol=1e-5)
    assert ids.tolist() == keys.ids.tolist()


def test_arrays_come_back_as_they_were_written(tmp_path: Path, model: Model) -> None:
    header, draw = header_of(model), np.random.default_rng(0)
    assert header.bits == 8
    pairs = [("a", "b"), ("ab", ""), ("", "ab"), ("é\udcff", "x" * 300)]
    written = [
        (
            draw.integers(0, 256, (n, 34)).astype("u1"),
            draw.integers(0, 256, (n, 34)).astype("u1"),
            draw.integers(0, 99, n).astype("<i4"),
        )
        for n in (1, 2, 7, 300)
    ]
    from tmnmt.keys.files import digest_of

    with KeyWriter.open(tmp_path / "keys", header) as writer:
        for number, (pair, keys) in enumerate(zip(pairs, written, strict=True), 1):
            writer.append([number], [digest_of(*pair)], [keys])
    files = KeyFiles(tmp_path / "keys", header)
    for pair, keys in zip(pairs, written, strict=True):
        found = files.find(*pair)
        assert found is not None
        for one, other in zip(found, keys, strict=True):
            np.testing.assert_array_equal(one, other)
    assert files.find("b", "a") is None and files.find("a", "") is None
