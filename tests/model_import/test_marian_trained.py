"""A Marian model that has learned something says what `transformers` says with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_ends import keep_model_ends
from tiny_training import sentences

pytest.importorskip("transformers")

from trained_marian import Trained, differences, read, theirs, trained

from tmnmt.model_import.marian import import_marian

SIZES = {"d_model": 32, "heads": 4, "layers": 1, "ffn": 64}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    folder = tmp_path_factory.mktemp("trained")
    pairs = [(line, " ".join(reversed(line.split()))) for line in sentences(300)]
    trained(folder / "hf", pairs, 120, words=340, **SIZES)
    import_marian(folder / "hf", folder / "model", "en", "fr")
    return read(folder / "hf"), folder / "model"


@pytest.fixture(autouse=True)
def model_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_model_ends(monkeypatch)


@pytest.mark.parametrize("beam", [1, 4])
def test_its_texts_are_those_of_transformers(made: tuple[Trained, Path], beam: int) -> None:
    lines = sentences(20, 9)
    assert len({theirs(made[0], line, beam).text for line in lines}) > 3  # it says something
    assert differences(*made, lines, beam) == []
