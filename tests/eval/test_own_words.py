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

from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import load_model
from tmnmt.trained_layers.cache import CacheKind, SessionCache
from tmnmt.vocab import EOS

KIND = CacheKind(size=7, words=False)


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


def test_a_word_of_several_subwords_is_one_position(own_words: ModuleType, tmp_path: Path) -> None:
    vocab = load_model(write_tiny_model(tmp_path / "tiny")).vocab
    writer = own_words.Writing.__new__(own_words.Writing)
    writer.begin("whole", [])
    writer.vocab = vocab
    text = segments()[0].tgt
    ids = torch.tensor([*vocab.encode(text), EOS])
    assert len(text.split()) < len(ids) - 1  # or nothing is put together
    x = torch.randn(len(ids), 3)
    contexts, hiddens, words = writer._of_words(x, 2 * x, ids)
    assert len(words) == len(text.split()) and torch.equal(hiddens, 2 * contexts)
    assert len(set(words.tolist())) == len(set(text.split()))
    first = len(vocab.encode(text.split()[0]))
    torch.testing.assert_close(contexts[0], x[:first].mean(0))
    _, _, again = writer._of_words(x, x, ids)
    assert torch.equal(words, again)
    _, _, ended = writer._of_words(x[:0], x[:0], torch.tensor([EOS]))
    assert ended.tolist() == [EOS]  # which no cache keeps


def test_whole_words_are_refused_where_the_cache_reads_its_words(
    own_words: ModuleType, tmp_path: Path
) -> None:
    folder = write_tiny_model(tmp_path / "tiny")
    base = load_model(folder).backbone
    cache = SessionCache(base.context_size, base.hidden_size, base.word_size, CacheKind(size=7))
    MemoryLayers(None, cache).save(folder / "memory.safetensors")
    with pytest.raises(SystemExit, match="its cache reads words"):
        own_words.of_model(folder, ["whole"], [], 4, tmp_path)


def test_every_way_is_translated_once(
    own_words: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tiny_model(tmp_path / "tiny")
    base = load_model(folder).backbone
    torch.manual_seed(3)
    cache = SessionCache(base.context_size, base.hidden_size, base.word_size, KIND)
    with torch.no_grad():
        cache.U.bias.fill_(2.0)  # what is read shows
    MemoryLayers(None, cache).save(folder / "memory.safetensors")
    pairs = 4 * segments()
    rows = [f"D{i // 5}\t{i}\t{pair.src}\t{pair.tgt}\n" for i, pair in enumerate(pairs)]
    (tmp_path / "t.tsv").write_text("".join(rows))
    (tmp_path / "split.txt").write_text("D1\nD3\n")
    out = tmp_path / "out"
    arguments = [str(tmp_path / "t.tsv"), str(out), str(folder)]
    arguments += ["--split", str(tmp_path / "split.txt"), "--ways", *own_words.WAYS]
    monkeypatch.setattr(sys, "argv", ["own_words.py", *arguments])
    own_words.main()
    texts = {path.name: path.read_text() for path in out.iterdir()}
    ways = [f"tiny.{way}.txt" for way in own_words.WAYS]
    assert sorted(texts) == sorted(["base.txt", "reference.txt", "source.txt", *ways])
    assert all(text.count("\n") == 11 and not text.split("\n")[5] for text in texts.values())
    assert texts["tiny.own.txt"] != texts["base.txt"] == texts["tiny.nothing.txt"]
    made = {path: path.stat().st_mtime_ns for path in out.glob("*.*.txt")}
    own_words.main()
    assert {path: path.stat().st_mtime_ns for path in made} == made
