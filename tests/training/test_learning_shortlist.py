"""A shortlist is learned from pairs: words that always stand together are each other's, and what
cannot be learned from is said."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import DataError
from tmnmt.index import build
from tmnmt.models.folder import load_model
from tmnmt.models.shortlist import Shortlist
from tmnmt.segments import Segment
from tmnmt.training.shortlist import Encoded, best, learn, model_1
from tmnmt.translator import Translator
from tmnmt.vocab import EOS, PAD


def test_words_that_go_together_are_found() -> None:
    # source word s becomes 10 + s; every pair has three of them, in another order
    pairs = [
        Encoded([*words, EOS], [10 + word for word in reversed(words)])
        for words in itertools.permutations(range(4, 9), 3)
    ]
    src, tgt, likely = model_1(pairs, 20)
    assert np.bincount(src, likely)[4:9] == pytest.approx(1)
    lists = best(src, tgt, likely, 9, 2)
    assert lists[4:, 0].tolist() == [14, 15, 16, 17, 18]
    assert (lists[3] == PAD).all()


def test_a_source_word_has_its_best_translations_alone() -> None:
    lists = best(
        np.array([5, 5, 5, 6]), np.array([7, 8, 9, 7]), np.array([0.2, 0.5, 0.3, 1.0]), 7, 2
    )
    assert lists[5:].tolist() == [[8, 9], [7, PAD]]


def test_every_list_has_the_end_single_bytes_and_what_is_frequent(tmp_path: Path) -> None:
    vocab = load_model(write_tiny_model(tmp_path / "model")).vocab
    made = learn(segments(), vocab, list_size=3, frequent=10)
    always = set(made.always.tolist())
    single = {i for i in range(len(vocab)) if vocab.piece(i).startswith("<0x")}
    assert len(single) == 256 and {EOS} | single <= always and len(always) <= 267
    assert made.of_source.shape == (len(vocab), 3) and made.shared
    with pytest.raises(DataError, match="nothing to learn from: no pair has 1 to 100 subwords"):
        learn([Segment("word " * 200, "mot")], vocab)


def test_the_command_puts_a_list_into_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, index = write_tiny_model(tmp_path / "model"), tmp_path / "index"
    build(index, segments(), "en", "fr")
    arguments = ["--model", str(folder), "--memory", str(index), "--each", "20"]
    assert run(["shortlist", *arguments]) == 0
    listed = Shortlist.load(load_model(folder))
    told = capsys.readouterr().out
    assert f"{int((listed.of_source > 0).sum()):,}" in told and told.count("\n") == 1
    translator = Translator.load(folder, options=TranslationOptions(shortlist=True))
    source, target = PAIRS[0]
    assert translator.translate([source])[0].tgt == target
