"""The script that writes other things than a model's own words into its session cache."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from places import ROOT
from tiny_model import segments, write_tiny_model

from tmnmt.layers.cache import CacheKind, SessionCache
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model


@pytest.fixture
def own_words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_words", ROOT / "eval" / "own_words.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_words"] = module
    spec.loader.exec_module(module)
    return module


def test_what_is_written(own_words: ModuleType) -> None:
    """Noise and the constant direction are as long as what they stand for."""
    writer = own_words.Writing.__new__(own_words.Writing)
    writer.begin("own", [])
    x = torch.randn(5, 16)
    for directions in (5, 1):
        turned = writer._turned(x, directions)
        torch.testing.assert_close(turned.norm(dim=1), x.norm(dim=1))
        unit = turned / turned.norm(dim=1, keepdim=True)
        assert (torch.linalg.matrix_rank(unit) == 1) == (directions == 1)
    assert torch.equal(writer._turned(x, 1), writer._turned(x, 1))
    assert not torch.equal(writer._turned(x, 5), writer._turned(x, 5))


def test_every_way_is_translated_once(
    own_words: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tiny_model(tmp_path / "tiny")
    base = load_model(folder).backbone
    torch.manual_seed(3)
    cache = SessionCache(base.context_size, base.hidden_size, base.word_size, CacheKind(size=7))
    with torch.no_grad():
        cache.U.bias.fill_(2.0)  # what is read shows
    MemoryLayers(None, cache).save(folder / "memory.safetensors")
    pairs = 4 * segments()
    rows = [f"D{i // 5}\t{i}\t{pair.src}\t{pair.tgt}\n" for i, pair in enumerate(pairs)]
    (tmp_path / "t.tsv").write_text("".join(rows))
    (tmp_path / "split.txt").write_text("D1\nD3\n")
    out = tmp_path / "out"
    arguments = [str(tmp_path / "t.tsv"), str(out), str(folder)]
    arguments += ["--split", str(tmp_path / "split.txt")]
    monkeypatch.setattr(sys, "argv", ["own_words.py", *arguments])
    own_words.main()
    texts = {path.name: path.read_text() for path in out.iterdir()}
    ways = [f"tiny.{way}.txt" for way in own_words.WAYS]
    assert sorted(texts) == sorted(["base.txt", "reference.txt", "source.txt", *ways])
    assert all(text.count("\n") == 11 and not text.split("\n")[5] for text in texts.values())
    assert texts["tiny.own.txt"] != texts["base.txt"]
    made = {path: path.stat().st_mtime_ns for path in out.glob("*.*.txt")}
    own_words.main()
    assert {path: path.stat().st_mtime_ns for path in made} == made
