"""One model for several users, each with memories of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.match_value import Trust
from tmnmt.keys.compute import compute, header_of, plan
from tmnmt.models.folder import load_model
from tmnmt.session import Session
from tmnmt.translator import restrict


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, index, other: an empty index"""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("narrowed")
    write_tiny_model(folder / "model")
    build(folder / "index", segments(), "en", "fr")
    build(folder / "other", [], "en", "fr")
    return folder


def test_it_reads_its_own_memories_alone(folder: Path) -> None:
    translator = Translator.load(
        folder / "model", [folder / "index"], TranslationOptions(threads=1)
    )
    none = restrict(translator, [], [], translator.settings)
    (with_memory,), (without,) = (t.translate([PAIRS[0][0]]) for t in (translator, none))
    assert with_memory.tgt == PAIRS[0][1] and with_memory.origin == "memory"
    assert without.matches == () and without.origin == "model"
    assert translator.translate([PAIRS[0][0]]) == [with_memory]
    less = restrict(
        translator, translator.pipeline.lookup.retriever.indexes, [Trust(9)], translator.settings
    )
    assert less.translate([PAIRS[0][0]])[0].origin == "model"
    assert none.tally is translator.tally and none.pipeline.backbone is translator.pipeline.backbone


def test_what_one_confirms_the_other_does_not_read(folder: Path) -> None:
    translator = Translator.load(folder / "model", options=TranslationOptions(threads=1))
    with MemoryIndex.open(folder / "other") as other:
        one = restrict(translator, [other], [], translator.settings, other)
        Session(one).confirm("All is void.", "Tout est nul.")
        assert one.translate(["All is void."])[0].tgt == "Tout est nul."
        assert translator.translate(["All is void."])[0].tgt != "Tout est nul."
        assert restrict(one, [], [], one.settings).translate(["All is void."])[0].matches == ()
        assert translator.writable is None


def test_neighbours_are_of_all_memories(folder: Path) -> None:
    model = load_model(folder / "model")
    with MemoryIndex.open(folder / "index") as index:
        compute(index, model, plan(index, header_of(model), model.vocab))
    translator = Translator.load(
        folder / "model", [folder / "index"], TranslationOptions(threads=1, neighbours=2)
    )
    with pytest.raises(UsageError, match="cannot be narrowed"):
        restrict(translator, [], [], translator.settings)
