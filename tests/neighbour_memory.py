"""A model, a memory with its keys, and three keys worked by hand: read by neighbours and kNN."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_model import segments, write_tiny_model
from tiny_neighbours import with_keys

from tmnmt.index import MemoryIndex, build
from tmnmt.keys.files import KeyFiles, KeyWriter, digest_of, keys_dir
from tmnmt.keys.layout import Header
from tmnmt.keys.pair import PairKeys
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model
from tmnmt.segments import Segment
from tmnmt.trained_layers.datastore import Datastore
from tmnmt.trained_layers.faiss_index import FAISS_FILE
from tmnmt.trained_layers.key_directions import Directions, update_directions


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its memories as after training: coverage, preferences and temperature count."""
    folder = write_tiny_model(tmp_path_factory.mktemp("model"))
    loaded = load_model(folder)
    memories = MemoryLayers.load(folder / "memory.safetensors", loaded.backbone)
    assert (
        memories.tm is not None
        and memories.tm.coverage.weight is not None
        and memories.tm.preferences is not None
    )
    with torch.no_grad():
        memories.tm.coverage.weight.fill_(1.5)
        memories.tm.preferences.copy_(torch.tensor([2.0, 0.5, 0.7]))
        memories.tm.log_eta.fill_(0.4)
        assert len(memories.tm.trusts) == 2
        for trust in memories.tm.trusts:
            trust.copy_(torch.tensor([0.1, 5.0]))
    memories.save(folder / "memory.safetensors")
    return folder


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    """All pairs, with their keys."""
    return with_keys(tmp_path_factory.mktemp("memory") / "index", segments(), model)


@pytest.fixture
def three(tmp_path: Path) -> Datastore:
    """c', z' and word: (0, 2), (log 3, 0), 1; (1, 0), (log 3, 0), 0; (-3, 0), (1, 3 ** 0.5), 1"""
    build(tmp_path / "index", [Segment("x", "y")], "en", "fr")
    header = Header("m", 2, 2, 9)
    with KeyWriter.open(keys_dir(tmp_path / "index", "m"), header) as writer:
        contexts = np.array([[0, 2], [1, 0], [-3, 0]], np.float32)
        hiddens = np.array([[math.log(3), 0], [math.log(3), 0], [1, 3**0.5]], np.float32)
        words = np.array([1, 0, 1])
        keys = header.encoded(PairKeys(*map(torch.from_numpy, (contexts, hiddens, words))))
        writer.append([1], [digest_of("x", "y")], [keys])
    files = KeyFiles.open(tmp_path / "index", "m")
    update_directions(files, files.folder / FAISS_FILE)
    datastore = Datastore.open([MemoryIndex.open(tmp_path / "index")], "m")
    (search,) = datastore.searches  # of numbers that are not rounded
    search.files.contexts, search.files.hiddens = contexts, hiddens  # type: ignore[assignment]
    search.directions = Directions(np.eye(4, dtype=np.float32), 3)
    search._compared = search.directions.project(contexts, hiddens)
    return datastore
