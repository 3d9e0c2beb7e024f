"""Text unlike what a model knows is told: what scores lower than nearly all dev text."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from places import HELD_OUT, MODEL
from tiny_model import PAIRS, SIZES, trained, write_tiny_model

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ModelError
from tmnmt.formats.text import read_document_lines
from tmnmt.index import build
from tmnmt.models.folder import load_model, write_config
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.segments import Segment
from tmnmt.training.low_score import LOWEST, SHARE, low_score
from tmnmt.vocab import EOS

KNOWN = [PAIRS[i][0] for i in (0, 2, 5)]  # which the tiny model is surest of
UNLIKE = "Zwölf Boxkämpfer jagen Viktor"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, whose low_score lies between the pairs that it knows and what it does not"""
    folder = tmp_path_factory.mktemp("low")
    write_tiny_model(folder / "model")
    plain = Translator.load(folder / "model", options=TranslationOptions(cache=0, mode="off"))
    known, unlike = ([t.score for t in plain.translate(texts)] for texts in (KNOWN, [UNLIKE]))
    assert max(unlike) < min(known)
    _say(folder / "model", (max(unlike) + min(known)) / 2)
    return folder


def _say(model: Path, low: float) -> None:
    write_config(model, load_model(model).config | {"low_score": low})


def translate(folder: Path, tmp_path: Path, lines: list[str], *arguments: str) -> int:
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run(
        [
            "translate",
            "--model",
            str(folder / "model"),
            "--threads",
            "1",
            *arguments,
            str(tmp_path / "in.txt"),
        ]
    )


def test_what_scores_low_is_told_in_one_line_and_marked_in_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, tmp_path, [KNOWN[0], UNLIKE, "", KNOWN[1], UNLIKE], "--json") == 0
    said = capsys.readouterr()
    assert [json.loads(line)["low"] for line in said.out.splitlines()] == [
        False,
        True,
        False,
        False,
        True,
    ]
    [told] = [line for line in said.err.splitlines() if "scored lower" in line]
    assert told.startswith("tmnmt: warning: 2 of 4 segments scored lower than 99 %")
    assert told.endswith("may be nonsense: lines 2, 5")
    path = str(tmp_path / "in.txt")
    assert translate(folder, tmp_path, [UNLIKE, *[f"{UNLIKE} {n}" for n in range(5)]], path) == 0
    told = capsys.readouterr().err
    assert "may be nonsense: lines 1, 2, 3, 4, 5, ..., counted through all inputs\n" in told


def test_what_is_like_dev_text_and_what_is_taken_as_it_stands_is_not_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, tmp_path, KNOWN) == 0
    build(tmp_path / "unlike", [Segment(UNLIKE, "Douze boxeurs poursuivent Victor")], "en", "fr")
    taken = "--memory", str(tmp_path / "unlike")
    assert translate(folder, tmp_path, [KNOWN[0], UNLIKE], *taken) == 0
    assert "scored lower" not in capsys.readouterr().err
    assert translate(folder, tmp_path, [KNOWN[0], UNLIKE]) == 0
    assert "scored lower" in capsys.readouterr().err


def test_a_session_counts_too_and_one_low_piece_makes_a_long_segment_low(folder: Path) -> None:
    translator = Translator.load(folder / "model", options=TranslationOptions(cache=0, mode="off"))
    session = translator.session()
    assert [session.translate(text).low for text in (KNOWN[0], UNLIKE, "")] == [False, True, False]
    assert (translator.tally.low, translator.tally.total) == (1, 2)
    assert session.translate(" ".join([KNOWN[0]] * 6 + [UNLIKE])).low


def test_the_length_penalty_does_not_matter(folder: Path) -> None:
    translator = Translator.load(
        folder / "model", options=TranslationOptions(cache=0, mode="off", length_penalty=0.0)
    )
    assert [t.low for t in translator.translate([KNOWN[0], UNLIKE])] == [False, True]


def test_a_share_of_dev_text_scores_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmnmt.training.low_score.LOWEST", -math.inf)
    vocab, backbone = trained()
    texts = [" ".join(src.split()[: 1 + i % 7]) for i, (src, _) in enumerate(PAIRS * 20)]
    low = low_score(backbone, [np.array([*vocab.encode(text), EOS]) for text in texts])
    scores = [low_score(backbone, [np.array([*vocab.encode(text), EOS])]) for text in texts]
    below = sum(score < low - 1e-3 for score in scores)
    assert below <= SHARE * len(texts) < sum(score < low + 1e-3 for score in scores)


def test_the_low_score_of_a_bad_model_is_not_low() -> None:
    vocab, _ = trained()
    untrained = RNNsearch(len(vocab), **SIZES).eval()  # type: ignore[arg-type]
    sources = [np.array([*vocab.encode(text), EOS]) for text in KNOWN]
    assert low_score(untrained, sources) == LOWEST


@pytest.mark.parametrize("value", ['"low"', "0.5", "nan", "-inf", "true"])
def test_a_low_score_that_is_none_is_a_model_error(
    folder: Path, tmp_path: Path, value: str
) -> None:
    shutil.copytree(folder / "model", tmp_path / "model")
    path = tmp_path / "model" / "config.toml"
    path.write_text(
        f"low_score = {value}\n" + path.read_text().replace("low_score", "other"), encoding="utf-8"
    )
    with pytest.raises(ModelError, match=r"key `low_score` is .*wanted: a number of 0 or less"):
        load_model(tmp_path / "model")


STRINGS = [
    "Forgot your password?",
    "Remember me on this device",
    "Click here to unsubscribe from our newsletter",
    "Are you sure you want to delete this item?",
    "Drag and drop files here",
    "Enter your e-mail address",
    "Something went wrong. Please try again later.",
    "Upload a profile picture",
    "The actress stormed out of the party in tears, friends say.",
    "My neighbour's dog barks all night long.",
    "He was spotted at the airport with a mysterious blonde.",
    "Her ex showed up uninvited and ruined everything.",
]


def test_the_model_that_ships_tells_interface_strings_and_gossip_from_law() -> None:
    translator = Translator.load(MODEL, options=TranslationOptions(cache=0, mode="off", threads=1))
    found = translator.translate(STRINGS)
    assert found[0].low and sum(t.low for t in found) >= len(STRINGS) / 2
    document = HELD_OUT / "jrc32002L0085.en.txt"
    assert sum(t.low for t in translator.translate(list(read_document_lines(document))[:30])) <= 2
