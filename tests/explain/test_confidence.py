"""How likely words and segments are right: the regression, its file, and who tells it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator, client
from tmnmt.cli.explanation import lines_of
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ModelError
from tmnmt.explain.confidence import (
    SEGMENT,
    WORD,
    Confidence,
    by_words,
    of_agreement,
    word_signs,
)
from tmnmt.index import build
from tmnmt.models.folder import load_model, stamp
from tmnmt.records import translation_record
from tmnmt.segments import Agreement, Rival, Segment, Translation

SOURCE = "The Commission shall inform the Council."


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_tiny_model(tmp_path / "model")
    build(tmp_path / "index", segments(), "en", "fr")
    put(folder)
    return folder


def put(folder: Path, **other: Any) -> None:
    """A confidence.json by the log probability alone."""
    told: dict[str, Any] = {
        "format": 1,
        "model": load_model(folder).hash,
        "least": 0.5,
        "words": {"bias": 1.0} | dict.fromkeys(WORD, 0.0) | {"log_prob": 2.0},
        "segment": {"bias": 0.5} | dict.fromkeys(SEGMENT, 0.0) | {"logit_min": 1.0},
    }
    (folder / "confidence.json").write_text(json.dumps(told | other), encoding="utf-8")
    stamp(folder)


def explained(folder: Path, source: str, **decoding: Any) -> Translation:
    memory = [folder.parent / "index"]
    translator = Translator.load(folder, memory, TranslationOptions(**decoding, threads=1))
    return translator.translate([source], explain=True)[0]


def test_every_word_is_rated_by_what_the_decoder_did(folder: Path) -> None:
    found = explained(folder, SOURCE)
    assert [word.text for word in found.words] == found.tgt.split()
    logits = []
    for word, tokens in zip(found.words, by_words(found.tokens), strict=True):
        mean = sum(math.log(token.probability) for token in tokens) / len(tokens)
        logits.append(1 + 2 * mean)
        assert word.confidence == pytest.approx(1 / (1 + math.exp(-logits[-1])), abs=1e-6)
    assert found.confidence == pytest.approx(1 / (1 + math.exp(-0.5 - min(logits))), abs=1e-6)


def test_a_text_that_a_memory_holds_is_rated_as_such(folder: Path) -> None:
    found = explained(folder, PAIRS[0][0])
    signs = word_signs(found, by_words(found.tokens))
    assert found.origin == "memory" and {one["taken"] for one in signs} == {1.0}
    assert {one["in_matches"] for one in signs} == {0.25} and signs[0]["best"] == 1
    assert found.confidence is not None and len(found.words) == len(found.tgt.split())


def contradicted(folder: Path, targets: list[str]) -> Translation:
    """The translation of a source that the memory has with these targets."""
    pairs = [Segment(SOURCE, tgt, f"document {at}", at) for at, tgt in enumerate(targets)]
    build(folder.parent / "contradicts", pairs, "en", "fr")
    put(folder, segment={"bias": 5.0} | dict.fromkeys(SEGMENT, 0.0))
    translator = Translator.load(
        folder, [folder.parent / "contradicts"], TranslationOptions(threads=1)
    )
    return translator.translate([SOURCE], explain=True)[0]


def test_a_text_that_the_memory_contradicts_is_no_surer_than_the_memory(folder: Path) -> None:
    taken, other = "La Commission informe le Conseil.", "La Commission avise le Conseil."
    sure = contradicted(folder, [taken, taken, f" {taken}"])
    assert sure.confidence == of_agreement(Agreement(3, 3)) > 0.85
    assert sure.matches[0].agreement == Agreement(3, 3)
    shutil.rmtree(folder.parent / "contradicts")
    found = contradicted(folder, [taken, other, taken, "Claude Dupont", other, taken])
    assert found.tgt == taken and found.origin == "memory"
    agreement = Agreement(3, 6, (Rival(other, 2), Rival("Claude Dupont", 1)))
    assert found.matches[0].agreement == agreement
    assert found.confidence == of_agreement(agreement) < 0.8
    rated = {word.text: word.confidence for word in found.words}
    assert rated["informe"] <= found.confidence
    assert "contradicts itself: 3 of 6" in str(agreement)
    assert "'Claude Dupont' (1)" in str(agreement)


def test_words_that_all_translations_have_are_as_sure_as_before(folder: Path) -> None:
    put(folder, words={"bias": 5.0} | dict.fromkeys(WORD, 0.0))
    taken, other = "La Commission informe le Conseil.", "La Commission avise le Conseil."
    pairs = [Segment(SOURCE, tgt, tgt) for tgt in (taken, other)]
    build(folder.parent / "two", pairs, "en", "fr")
    translator = Translator.load(folder, [folder.parent / "two"], TranslationOptions(threads=1))
    (found,) = translator.translate([SOURCE], explain=True)
    differing = {word.text for word in found.words if word.confidence < 0.9}
    assert differing == {found.tgt.split()[2]}


def test_the_more_segments_agree_the_surer_it_is() -> None:
    chances = [of_agreement(Agreement(n, 10)) for n in range(1, 10)]
    assert chances == sorted(chances) and chances[0] < 0.4 and 0.8 < chances[-1] < 0.97


def test_what_one_segment_alone_has_is_not_certain(folder: Path) -> None:
    assert of_agreement(Agreement(1, 1)) < of_agreement(Agreement(2, 2)) < 0.95
    found = contradicted(folder, ["Claude Dupont"])
    assert found.confidence == of_agreement(Agreement(1, 1))
    lines = [str(line) for line in lines_of(found, colour=False)]
    assert not any("contradicts" in line for line in lines)


def test_json_and_a_client_tell_of_a_contradiction(folder: Path) -> None:
    found = contradicted(folder, ["Le Conseil est informé.", "Claude Dupont"])
    record = translation_record(found)["matches"][0]
    (rival,) = {"Le Conseil est informé.", "Claude Dupont"} - {found.tgt}
    rivals = [{"tgt": rival, "copies": 1}]
    assert record["agreement"] == {"copies": 1, "total": 2, "rivals": rivals}
    assert client._match(record).agreement == found.matches[0].agreement
    lines = [str(line) for line in lines_of(found, colour=False)]
    assert any("the memory contradicts itself: 1 of 2 segments" in line for line in lines)


def test_a_long_segment_is_as_sure_as_its_least_sure_piece(folder: Path) -> None:
    long = " ".join(src for src, _ in PAIRS)
    found = explained(folder, long, verbatim=0)
    assert [word.text for word in found.words] == found.tgt.split()
    least = min(word.confidence for word in found.words)
    logit = math.log(least / (1 - least)) + 0.5
    assert found.confidence == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)


def test_json_tells_it_where_tokens_are_told(folder: Path) -> None:
    found = explained(folder, SOURCE)
    record = translation_record(found)
    assert record["confidence"] == pytest.approx(found.confidence, abs=1e-8)
    assert [word["text"] for word in record["words"]] == found.tgt.split()
    (plain,) = Translator.load(folder, options=TranslationOptions(threads=1)).translate([SOURCE])
    assert plain.confidence is None and "confidence" not in translation_record(plain)


def test_a_translation_that_goes_on_from_what_is_typed_has_it(folder: Path) -> None:
    translator = Translator.load(folder, [folder.parent / "index"], TranslationOptions(threads=1))
    found = translator.complete(SOURCE, "Les É", explain=True)
    assert [word.text for word in found.words] == found.tgt.split()
    assert found.confidence is not None


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"format": 2}, "format 2"),
        ({"model": "0" * 16}, "'0000000000000000'"),
        ({"words": {"bias": 1.0}}, "other signs"),
        ({"segment": []}, "other signs"),
        ({"least": "1"}, "'1' is no number"),
        ({"words": {"bias": True} | dict.fromkeys(WORD, 0.0)}, "True is no number"),
    ],
)
def test_a_file_that_is_none_is_told_on_one_line(
    folder: Path, other: dict[str, Any], why: str
) -> None:
    put(folder, **other)
    with pytest.raises(ModelError) as raised:
        Confidence.load(load_model(folder))
    said = str(raised.value)
    assert said.startswith(f"{folder / 'confidence.json'}: ") and why in said and "\n" not in said


def test_a_file_that_was_changed_is_told(folder: Path) -> None:
    (folder / "confidence.json").write_text("{}")
    with pytest.raises(ModelError, match="damaged, or another file"):
        Translator.load(folder)


def test_the_model_that_ships_can_say() -> None:
    shipped = Path(__file__).parents[2] / "models" / "law.en-fr"
    found = Confidence.load(load_model(shipped))
    assert found is not None and 0 < found.min_confidence < 1
    assert found.words["fuzzy"] > 0 and found.segment["log_prob"] > 0
