"""The measure of what brings a corrected word back, on the tiny model."""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from places import ROOT
from tiny_model import PAIRS, write_tiny_model

from tmnmt.engine.loading import load_layers
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.trained_layers.cache import CacheFusion, CacheKind

SCRIPT = ROOT / "eval" / "correction.py"
TEXTS = [
    (src, tgt.replace("États membres", "Conseil")) for src, tgt in PAIRS
]  # which the model does not expect
SEGMENTS = [Segment(*TEXTS[i % 6], f"doc{i // 8}") for i in range(16)]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("correction", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["correction"] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


def loaded(folder: Path, fusion: CacheFusion = "deep") -> tuple[Model, MemoryLayers]:
    torch.set_num_threads(1)
    model = load_model(write_tiny_model(folder, cache=CacheKind(fusion)))
    memories = load_layers(model, "cpu")
    assert memories is not None and memories.cache is not None and memories.tm is not None
    return model, memories


def test_a_corrected_word_is_one_that_the_model_did_not_expect_and_comes_again(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = loaded(tmp_path)
    monkeypatch.setattr(
        script, "telling", lambda subword, frequent: subword != "▁"
    )  # tiny words are in pieces
    found = list(script.events(model, SEGMENTS))
    assert found
    for event in found:
        held, later = event.confirmed.ids.tolist(), event.later.ids.tolist()
        assert any(
            w == event.word != p for w, p in zip(held, event.confirmed.preferred, strict=True)
        )
        assert later.index(event.word) == event.at
        assert event.later.log_p[event.at] < 0
    apart = [replace(segment, document=str(i)) for i, segment in enumerate(SEGMENTS)]
    assert list(script.events(model, apart)) == []
    monkeypatch.setattr(script, "telling", lambda subword, frequent: False)
    assert list(script.events(model, SEGMENTS)) == []


@pytest.mark.parametrize(
    ("subword", "counts"),
    [("▁conseil", True), ("conseil", False), ("▁le", False), ("▁1996", False), ("▁dans", False)],
)
def test_which_words_tell(script: ModuleType, subword: str, counts: bool) -> None:
    assert script.telling(subword, frozenset({"dans"})) == counts


def test_a_closed_gate_changes_nothing_and_the_slot_of_the_word_is_what_a_shallow_cache_gives(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "telling", lambda subword, frequent: subword != "</s>")
    for fusion in ("deep", "shallow"):
        model, memories = loaded(tmp_path / fusion, fusion)
        assert memories.cache is not None
        with torch.inference_mode():
            found = list(script.events(model, SEGMENTS))[:3]
        assert len(found) == 3
        plain = torch.tensor([event.later.log_p[event.at] for event in found])
        if fusion == "shallow":
            torch.nn.init.constant_(memories.cache.U.bias, 3.0)
            with_it, without = (
                script.log_probs(model, memories, found, None, left_out)
                for left_out in (False, True)
            )
            assert bool((with_it > without).all()) and bool((without < plain).all())
        torch.nn.init.constant_(memories.cache.U.bias, -1e4)
        closed = script.log_probs(model, memories, found, None, False)
        torch.testing.assert_close(closed, plain, atol=1e-4, rtol=0)


def test_a_fused_state_is_the_plain_one_where_the_gate_of_fusion_is_closed(
    script: ModuleType, tmp_path: Path
) -> None:
    model, memories = loaded(tmp_path)
    tm = memories.tm
    assert tm is not None and tm.fusion is not None
    with torch.inference_mode():
        one = script.force(model, SEGMENTS[0])
        assert not torch.allclose(script.fused(model, tm, one), one.hiddens, atol=1e-3)
        torch.nn.init.constant_(tm.fusion.out.bias, -1e4)
        torch.testing.assert_close(script.fused(model, tm, one), one.hiddens, atol=1e-5, rtol=0)


def test_the_words_of_the_slots_and_the_gate_are_taken_out_and_set(
    script: ModuleType, tmp_path: Path
) -> None:
    model, memories = loaded(tmp_path)
    assert memories.cache is not None and memories.cache.word is not None
    torch.nn.init.normal_(memories.cache.word.weight)
    bare = script.without_words(memories)
    assert bare.cache.word is None and memories.cache.word is not None
    assert torch.equal(bare.cache.U.weight, memories.cache.U.weight)
    with torch.inference_mode():
        one = script.force(model, SEGMENTS[0])
        event = script.Event(int(one.ids[0]), one, one, 0)
        held = script.log_probs(model, script.shallow(model, 0.25), [event], None, False)
        other = script.log_probs(model, script.shallow(model, 0.25), [event], None, True)
    # p = 3/4 p_gen + 1/4 P_m, and without its slot 3/4 p_gen
    assert float(other) == pytest.approx(math.log(0.75) + one.log_p[0], abs=1e-4)
    assert float(other) < float(held) <= math.log(0.75 * math.exp(one.log_p[0]) + 0.25) + 1e-4


def test_a_shallow_cache_is_read_as_it_was_learned(script: ModuleType, tmp_path: Path) -> None:
    deep, shallow = loaded(tmp_path / "deep")[1], loaded(tmp_path / "shallow", "shallow")[1]
    assert [name for name, *_ in script.kinds(deep)] == [
        "s_t",
        "s_t + E e(y)",
        "fused h_t",
        "fused h_t + E e(y)",
    ]
    ((name, memories, tm),) = script.kinds(shallow)
    assert (name, tm) == ("words, shallow as learned", None) and memories is shallow
