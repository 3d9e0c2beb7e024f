"""The search in all keys: flat equals numpy, the other kinds come near it, what is deleted is not
answered."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from brute_force import real_segments
from required import absent
from tiny_model import write_tiny_model

import tmnmt.trained_layers.faiss_index
import tmnmt.trained_layers.key_search
from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import compute, header_of, plan, queries_of
from tmnmt.keys.files import KeyFiles
from tmnmt.keys.layout import Array
from tmnmt.keys.pair import PairKeys
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.trained_layers.faiss_index import (
    FAISS_FILE,
    Kind,
    bytes_a_key,
    kind_for,
    lists_for,
    train,
    update_faiss,
)
from tmnmt.trained_layers.key_directions import Directions, ProjectedKeys
from tmnmt.trained_layers.key_search import KeyPlace, KeySearch, flat

HELD_OUT = 20  # of the real segments: queries are contexts of what is not in the memory


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    torch.set_num_threads(1)
    return load_model(write_tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Path:
    """An index with the keys of real text."""
    path = tmp_path_factory.mktemp("memory") / "index"
    build(path, real_segments()[HELD_OUT:420], "en", "fr")
    with MemoryIndex.open(path) as index:
        compute_all(index, model)
    return path


@pytest.fixture
def index(memory: Path) -> Iterator[MemoryIndex]:
    with MemoryIndex.open(memory) as index:
        yield index


@pytest.fixture(scope="module")
def queries(model: Model) -> Array:
    return np.concatenate([queries_of(model, s.src, s.tgt)[0] for s in real_segments()[:HELD_OUT]])[
        :200
    ]


@pytest.fixture
def changing(tmp_path: Path, model: Model) -> Iterator[MemoryIndex]:
    """A small index of its own, with keys."""
    build(tmp_path / "index", real_segments()[HELD_OUT:60], "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        compute_all(index, model)
        yield index


def compute_all(index: MemoryIndex, model: Model) -> KeyFiles:
    return compute(index, model, plan(index, header_of(model), model.vocab))


def vectors(keys: PairKeys) -> Array:
    """Context and state of every position side by side."""
    return torch.hstack([keys.contexts, keys.hiddens]).numpy()


def seen(files: KeyFiles) -> ProjectedKeys:
    return ProjectedKeys(files, Directions.open(files))


def every_score(files: KeyFiles, queries: Array) -> Array:
    """-D of every query and key."""
    asked, keys = Directions.open(files).project(*np.split(queries, 2, 1)), seen(files)[:]
    return np.asarray([-np.square(one - keys).sum(1) for one in asked])


@pytest.mark.parametrize(
    "block", [1024, 1 << 16]
)  # keys read from the disk, and all kept in memory
def test_flat_is_exact_whatever_the_blocks(
    index: MemoryIndex, model: Model, queries: Array, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmnmt.trained_layers.key_search, "BLOCK", block)
    search = KeySearch.open(index, model.hash)
    assert (search.kind, search.files.positions) > ("flat", 10_000)
    scores, positions = search.search(queries, 8)
    every = every_score(search.files, queries)
    np.testing.assert_allclose(scores, -np.sort(-every, axis=1)[:, :8], rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(
        np.take_along_axis(every, positions, 1), scores, rtol=1e-5, atol=1e-3
    )


def test_equal_scores_come_by_position() -> None:
    keys = np.zeros((40, 4), np.float32)
    keys[[7, 30]] = 1
    scores, positions = flat(keys, np.ones((1, 4), np.float32), 3)
    assert (scores[0].tolist(), positions[0, :2].tolist()) == ([0.0, 0.0, -4.0], [7, 30])


@pytest.mark.parametrize(("kind", "least"), [("ivf", 0.75), ("ivfpq", 0.6), ("hnsw", 0.8)])
def test_faiss_finds_nearly_what_flat_finds_and_measures_it_as_well(
    index: MemoryIndex, model: Model, queries: Array, kind: Kind, least: float
) -> None:
    exact_scores, exact = KeySearch.open(index, model.hash).search(queries, 8)
    files = KeyFiles.open(index.path, model.hash)
    try:
        update_faiss(files, kind)
        search = KeySearch.open(index, model.hash)
        assert search.kind == kind
        scores, positions = search.search(queries, 8)
        size = (files.folder / FAISS_FILE).stat().st_size
    finally:
        update_faiss(files, "flat")
    # of keys of a model that knows nothing, which lie closer than real ones
    assert least < shared(positions, exact) <= 1
    every = every_score(files, queries)
    np.testing.assert_allclose(
        np.take_along_axis(every, positions, 1), scores, rtol=1e-4, atol=0.05
    )
    assert (scores[:, 0] <= exact_scores[:, 0] + 0.05).all()
    overhead = 4 * 64 * lists_for(files.positions) + 4 * 256 * 64 + 4096  # centroids
    assert bytes_a_key(kind, 64) == pytest.approx(
        size / files.positions, abs=overhead / files.positions
    )
    assert not (files.folder / FAISS_FILE).exists()


def test_a_key_finds_itself_and_says_where_it_is(index: MemoryIndex, model: Model) -> None:
    search = KeySearch.open(index, model.hash)
    segment = index.get([33])[0]
    ids = model.vocab.encode(segment.tgt)
    keys = search.files.find(segment.src, segment.tgt)
    assert keys is not None
    record = search.files.records[search.files.records["id"] == 33][0]
    places = search.places(np.arange(record["start"], record["start"] + record["length"]))
    assert [place.position for place in places if place] == list(range(len(keys[-1])))
    assert [place.id for place in places if place][:-1] == ids[: search.files.header.max_subwords]
    assert {place.segment for place in places if place} == {33}
    best = search.search(vectors(search.files.header.decoded(keys))[:1], 1)
    assert best[0][0, 0] >= -1e-3


def test_what_was_deleted_or_corrected_is_not_answered(
    changing: MemoryIndex, model: Model, queries: Array
) -> None:
    search = KeySearch.open(changing, model.hash)
    answered = {
        place.segment for place in search.places(search.search(queries, 3)[1].ravel()) if place
    }
    gone, corrected, *_ = sorted(answered)
    changing.delete([gone])
    changing.edit([corrected], lambda segment: replace(segment, tgt=segment.tgt + " bis"))
    scores, positions = search.search(queries, 3)
    places = search.places(positions.ravel())
    assert None not in places
    assert not {place.segment for place in places if place} & {gone, corrected}
    alive = ~np.isin(search.files.records["id"], [gone, corrected])
    rows = [np.arange(r["start"], r["start"] + r["length"]) for r in search.files.records[alive]]
    every = every_score(search.files, queries)[:, np.unique(np.concatenate(rows))]
    np.testing.assert_allclose(scores, -np.sort(-every, axis=1)[:, :3], rtol=1e-5, atol=1e-3)
    compute_all(changing, model)
    again = KeySearch.open(changing, model.hash)
    assert corrected in {
        place.segment for place in again.places(np.arange(again.files.positions)) if place
    }


def test_of_equal_pairs_the_first_that_is_alive_answers(
    changing: MemoryIndex, model: Model
) -> None:
    pair = changing.get([4])[0]
    (later,) = changing.add([Segment(pair.src, pair.tgt)])
    before = KeySearch.open(changing, model.hash).files.positions
    compute_all(changing, model)
    search = KeySearch.open(changing, model.hash)
    assert search.files.positions == before
    start = int(search.files.records["start"][search.files.records["id"] == 4][0])
    first = int(model.vocab.encode(pair.tgt)[0])
    assert search.places(np.array([start, -1])) == [KeyPlace(4, 0, first), None]
    changing.delete([4])
    assert search.places(np.array([start])) == [KeyPlace(later, 0, first)]
    changing.delete([later])
    assert search.places(np.array([start])) == [None]


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_keys_added_later_are_found_before_and_after_faiss_has_them(
    changing: MemoryIndex, model: Model, kind: Kind
) -> None:
    update_faiss(KeyFiles.open(changing.path, model.hash), kind)
    (number,) = changing.add(
        [Segment("A wholly new sentence.", "Une phrase entièrement nouvelle.")]
    )
    files = compute_all(changing, model)
    keys = files.find("A wholly new sentence.", "Une phrase entièrement nouvelle.")
    assert keys is not None
    for update in (False, True):
        if update:
            update_faiss(files, kind)
        search = KeySearch.open(changing, model.hash)
        asked = vectors(files.header.decoded(keys))
        every = search.search(asked, 5)
        exact = every_score(files, asked)
        found = [{p.segment for p in search.places(row) if p} for row in every[1]]
        # rows whose best key is one of the new
        best = exact.argmax(1) >= files.positions - len(keys[-1])
        assert best.any()
        assert all(number in row for row, new in zip(found, best.tolist(), strict=True) if new)


def test_fewer_keys_than_asked_for(changing: MemoryIndex, model: Model, queries: Array) -> None:
    search = KeySearch.open(changing, model.hash)
    changing.delete(range(2, 41))
    scores, positions = search.search(queries[:2], 500)
    held = len(model.vocab.encode(changing.get([1])[0].tgt)) + 1
    assert (positions[:, :held] >= 0).all() and (positions[:, held:] == -1).all()
    assert np.isneginf(scores[:, held:]).all()


def test_a_faiss_file_that_names_other_files_is_refused_and_they_are_not_opened(
    changing: MemoryIndex, model: Model, tmp_path: Path
) -> None:
    files, faiss = (
        KeyFiles.open(changing.path, model.hash),
        tmnmt.trained_layers.faiss_index.load_faiss(),
    )
    index, elsewhere = train(seen(files), "ivf"), tmp_path / "lists"
    lists = faiss.OnDiskInvertedLists(index.nlist, index.code_size, str(elsewhere))
    index.replace_invlists(lists)
    index.add(seen(files)[:])
    tmnmt.trained_layers.faiss_index._write(index, files.folder / FAISS_FILE)
    assert elsewhere.stat().st_size > 0
    with pytest.raises(MemoryIndexError, match=r"faiss.index: cannot be read; delete it"):
        KeySearch.open(changing, model.hash)
    shutil.copyfile(elsewhere, files.folder / "lists")
    with pytest.raises(MemoryIndexError, match=r"faiss.index: has parts in other files; delete it"):
        KeySearch.open(changing, model.hash)


def test_a_damaged_or_foreign_faiss_file_is_one_line(changing: MemoryIndex, model: Model) -> None:
    files = KeyFiles.open(changing.path, model.hash)
    update_faiss(files, "ivf")
    path = files.folder / FAISS_FILE
    content = path.read_bytes()
    for damaged in (
        content[: len(content) // 2],
        content[:3],
        b"",
        content[:-30] + b"\xff" + content[-29:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(MemoryIndexError, match="damaged; delete it"):
            KeySearch.open(changing, model.hash)
    update_faiss(files, "ivf")
    assert path.read_bytes() == content
    faiss = tmnmt.trained_layers.faiss_index.load_faiss()
    for foreign, message in (
        ("HNSW32_SQfp16", "not of these keys"),
        ("Flat", "of an unknown kind"),
    ):
        tmnmt.trained_layers.faiss_index._write(
            faiss.index_factory(8, foreign, faiss.METRIC_INNER_PRODUCT), path
        )
        with pytest.raises(MemoryIndexError, match=message):
            KeySearch.open(changing, model.hash)


def test_the_sample_is_drawn_by_its_seed(index: MemoryIndex, model: Model) -> None:
    files = KeyFiles.open(index.path, model.hash)
    faiss = tmnmt.trained_layers.faiss_index.load_faiss()
    learnt = [
        faiss.serialize_index(train(seen(files), "ivf", seed)).tobytes() for seed in (1, 1, 2)
    ]
    assert learnt[0] == learnt[1] != learnt[2]


def test_progress_tells_how_many_keys_there_are_to_add(
    changing: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmnmt.trained_layers.faiss_index, "ADDED", 300)
    files, told = KeyFiles.open(changing.path, model.hash), list[tuple[int, float]]()
    update_faiss(files, "hnsw", lambda n, share: told.append((n, share)))
    assert sum(n for n, _ in told) == files.positions and len(told) == -(-files.positions // 300)
    assert [round(share * files.positions) for _, share in told][:2] == [300, 600] and told[-1][
        1
    ] == 1
    changing.add([Segment("A wholly new sentence.", "Une phrase entièrement nouvelle.")])
    later, told = compute_all(changing, model), []
    update_faiss(later, "hnsw", lambda n, share: told.append((n, share)))
    assert told == [(later.positions - files.positions, 1.0)]


class _GPU:
    """Stands for what faiss-gpu makes of an index, and counts what it is given."""

    def __init__(self, index: Any) -> None:
        self.index, self.added = index, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)

    def add(self, keys: Array) -> None:
        self.added += len(keys)
        self.index.add(keys)


@pytest.mark.parametrize(("kind", "made"), [("ivf", 2), ("hnsw", 0)])
def test_with_a_gpu_lists_are_filled_and_searched_there_and_written_as_the_cpus(
    changing: MemoryIndex,
    model: Model,
    queries: Array,
    kind: Kind,
    made: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faiss, on_gpu = tmnmt.trained_layers.faiss_index.load_faiss(), list[_GPU]()

    def to_gpus(index: Any, options: Any = None) -> Any:
        if isinstance(index, faiss.IndexFlatL2):
            return index  # finds the lists while they are learnt
        on_gpu.append(_GPU(index))
        return on_gpu[-1]

    files = KeyFiles.open(changing.path, model.hash)
    with monkeypatch.context() as patch:
        patch.setattr(faiss, "get_num_gpus", lambda: 1)
        patch.setattr(faiss, "GpuMultipleClonerOptions", type("Options", (), {}), raising=False)
        patch.setattr(faiss, "index_cpu_to_all_gpus", to_gpus)
        patch.setattr(faiss, "index_gpu_to_cpu", lambda gpu: gpu.index, raising=False)
        update_faiss(files, kind)
        there = KeySearch.open(changing, model.hash).search(queries, 8)
    assert [gpu.added for gpu in on_gpu] == [files.positions, 0][:made]
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)  # also where there is one
    here = KeySearch.open(changing, model.hash).search(queries, 8)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("kind", "least"), [("ivf", 0.75), ("ivfpq", 0.6)])
def test_a_gpu_finds_what_the_cpu_finds_in_the_lists_that_it_filled(
    index: MemoryIndex,
    model: Model,
    queries: Array,
    kind: Kind,
    least: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faiss = tmnmt.trained_layers.faiss_index.load_faiss()
    if not faiss.get_num_gpus():
        absent("faiss-gpu", "FAISS sees no GPU")
    exact = KeySearch.open(index, model.hash).search(queries, 8)[1]
    files = KeyFiles.open(index.path, model.hash)
    try:
        update_faiss(files, kind)
        scores, there = KeySearch.open(index, model.hash).search(queries, 8)
        monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
        here_scores, here = KeySearch.open(index, model.hash).search(queries, 8)
    finally:
        update_faiss(files, "flat")
    assert least < shared(there, exact) <= 1
    assert shared(there, here) > 0.97  # of keys nearly as far, either may be found
    np.testing.assert_allclose(scores, here_scores, rtol=1e-2, atol=0.1)


def shared(positions: Array, others: Array) -> float:
    """The share of the positions (n, k) of a query that are among the others of that query."""
    rows = zip(positions.tolist(), others.tolist(), strict=True)
    return float(np.mean([len({*one} & {*other}) / len(one) for one, other in rows]))


def test_queries_of_another_size_are_wrong_usage(index: MemoryIndex, model: Model) -> None:
    search = KeySearch.open(index, model.hash)
    for wrong in (np.ones((2, 32)), np.ones(64)):
        with pytest.raises(UsageError, match=r"wanted are \(n, 64\)"):
            search.search(wrong, 8)


def test_without_faiss_the_error_says_what_to_install(
    changing: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(UsageError, match="pip install faiss-cpu"):
        update_faiss(KeyFiles.open(changing.path, model.hash), "ivf")
    assert KeySearch.open(changing, model.hash).kind == "flat"


def test_faiss_gpu_without_its_libraries_is_wrong_usage(
    changing: MemoryIndex, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As faiss-gpu raises it while it is imported."""
    said = "faiss-gpu installed but nvidia-cublas-cu12 is missing"
    (tmp_path / "faiss.py").write_text(f"raise RuntimeError({said!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "faiss")
    with pytest.raises(UsageError, match=f"FAISS cannot be loaded: {said}"):
        update_faiss(KeyFiles.open(changing.path, model.hash), "ivf")


def test_the_kind_fits_the_number_of_keys() -> None:
    assert [kind_for(n) for n in (0, 49_999, 50_000, 300_000, 5_000_000)] == [
        "flat",
        "flat",
        "ivf",
        "ivf",
        "ivfpq",
    ]
    assert [lists_for(n) for n in (0, 38, 78, 300_000, 5_000_000)] == [1, 1, 2, 1024, 4096]
