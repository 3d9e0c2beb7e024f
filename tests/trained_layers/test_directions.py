"""What keys are searched along: directions that tell words apart, learned of the keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tmnmt.errors import MemoryIndexError
from tmnmt.keys.files import KeyFiles, KeyWriter
from tmnmt.keys.layout import Array, Header
from tmnmt.keys.pair import PairKeys
from tmnmt.trained_layers import key_directions as along
from tmnmt.trained_layers.key_directions import (
    DIRECTIONS_FILE,
    Directions,
    ProjectedKeys,
    learn,
    update_directions,
)

HEADER = Header("m", 64, 64, 9)  # l + d is twice as many as are kept
WORDS = 5


def keys_of(folder: Path, count: int, seed: int) -> KeyFiles:
    """Keys whose word shows in 8 numbers only; the others vary more, and mean nothing."""
    draw = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(WORDS, 8))
    ids = draw.integers(0, WORDS, count)
    contexts, hiddens = (draw.normal(size=(count, 64)).astype(np.float32) for _ in range(2))
    contexts[:, :8] = centres[ids] + 0.05 * draw.normal(size=(count, 8))
    with KeyWriter.open(folder, HEADER) as writer:
        start = writer.positions
        keys = PairKeys(*map(torch.from_numpy, (contexts, hiddens, ids)))
        writer.append([start], [(start, seed)], [HEADER.encoded(keys)])
    return KeyFiles(folder, HEADER)


def right(files: KeyFiles, keys: Array) -> float:
    """How often the nearest other key is of the same word, of the first 100."""
    apart = np.square(keys[:100, None] - keys[None]).sum(-1)
    np.fill_diagonal(apart, np.inf)
    return float((files.ids[apart.argmin(1)] == files.ids[:100]).mean())


def test_along_them_the_nearest_key_is_more_often_of_the_same_word(tmp_path: Path) -> None:
    files = keys_of(tmp_path / "keys", along.MIN_KEYS, 1)
    learned = learn(files)
    assert learned.size == along.MAX_SIZE
    full = along.unit(files.contexts[:], files.hiddens[:])
    found = right(files, full), right(files, ProjectedKeys(files, learned)[:])
    assert found[0] < 0.6 and found[1] > found[0] + 0.2


def test_few_keys_are_seen_in_full(tmp_path: Path) -> None:
    files = keys_of(tmp_path / "keys", along.MIN_KEYS - 1, 2)
    seen = ProjectedKeys(files, learn(files))
    full = along.unit(files.contexts[:], files.hiddens[:])
    np.testing.assert_allclose(seen[:], full * along.IN_FULL**0.5, rtol=1e-5)
    np.testing.assert_array_equal(seen.tail(40), seen[40:])


def test_they_are_learned_anew_once_outgrown_and_faiss_goes_first(tmp_path: Path) -> None:
    files, faiss = keys_of(tmp_path / "keys", along.MIN_KEYS, 3), tmp_path / "keys" / "faiss.index"
    first = update_directions(files, faiss)
    for count, anew in ((along.MIN_KEYS, False), (3 * along.MIN_KEYS, True)):
        faiss.write_bytes(b"made with the directions that are there")
        files = keys_of(tmp_path / "keys", count, 4)
        now = update_directions(files, faiss)
        assert (now.keys != first.keys, faiss.exists()) == (anew, not anew)
        np.testing.assert_array_equal(Directions.open(files).matrix, now.matrix)


def test_without_them_or_with_damaged_ones_the_error_names_the_command(tmp_path: Path) -> None:
    files = keys_of(tmp_path / "keys", 50, 5)
    with pytest.raises(MemoryIndexError, match=r"directions.f32: is missing; run tmnmt keys again"):
        Directions.open(files)
    update_directions(files, tmp_path / "faiss.index")
    path = files.folder / DIRECTIONS_FILE
    content = path.read_bytes()
    for damaged in (b"", content[:-1], content[:5] + b"\xff" + content[6:]):
        path.write_bytes(damaged)
        with pytest.raises(MemoryIndexError, match="damaged; delete it and run tmnmt keys again"):
            Directions.open(files)
    assert update_directions(files, tmp_path / "faiss.index").size == 128
    assert path.read_bytes() == content
