"""Headings that a model is in doubt about are read as they would stand within a sentence, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from tmnmt.engine.loading import load_layers
from tmnmt.engine.settings import Settings
from tmnmt.index import MemoryIndex, build
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.translator import Translator

HEADINGS = ["Decision", "Proposal from the Commission", "Member States", "Force Today"]
OTHERS = [
    "the proposal from the Commission",
    "This Decision is addressed to the Member States.",
    "1 January 1996",
    "The Commission shall inform the Member States:",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """It doubts whatever it says."""
    loaded = load_model(write_tiny_model(tmp_path_factory.mktemp("headings") / "model"))
    return replace(loaded, config=loaded.config | {"low_score": -1e-9})


def said(model: Model, texts: list[str], headings: bool, **options: object) -> list[str]:
    translator = Translator(model, None, [], Settings(headings=headings, **options))  # type: ignore[arg-type]
    return [translation.tgt for translation in translator.translate(texts)]


def test_the_likelier_reading_stays(model: Model) -> None:
    plain, read = (
        Translator(model, None, [], Settings(headings=on)).translate(HEADINGS, explain=True)
        for on in (False, True)
    )
    assert [one.src for one in read] == HEADINGS
    assert all(other.score >= one.score for one, other in zip(plain, read, strict=True))
    anew = [other for one, other in zip(plain, read, strict=True) if other.score > one.score]
    assert anew
    for translation in anew:
        assert translation.tgt[:1] == translation.tgt[:1].upper()
        assert translation.tgt[-1:] not in (":", ";", ",")
        spelt = "".join(token.text for token in translation.tokens).replace("▁", " ")
        # a full stop that the heading does not have is taken out of the text alone
        assert spelt.strip().rstrip(".") == translation.tgt.rstrip(".")


def test_what_is_no_heading_is_as_before(model: Model) -> None:
    assert said(model, OTHERS, headings=True) == said(model, OTHERS, headings=False)


def test_a_model_without_doubt_reads_once(model: Model) -> None:
    certain = replace(model, config=model.config | {"low_score": -50.0})
    assert said(certain, HEADINGS, headings=True) == said(certain, HEADINGS, headings=False)


def test_where_the_memory_has_something_like_it_nothing_is_read_anew(
    model: Model, tmp_path: Path
) -> None:
    build(tmp_path / "index", [Segment("Member States", "États membres", "d", 0)], "en", "fr")
    layers = load_layers(model, "cpu")
    settings = Settings(mode="copy", threshold=0.3)
    with MemoryIndex.open(tmp_path / "index") as index:
        answers = [
            Translator(model, layers, [index], replace(settings, headings=on)).translate(
                ["Member States Today"]
            )
            for on in (False, True)
        ]
    assert answers[0][0].matches and answers[0] == answers[1]


def test_capitals_throughout_stay_so(model: Model) -> None:
    (translation,) = said(model, ["MEMBER STATES"], headings=True)
    assert translation == translation.upper()


def test_what_is_suggested_is_what_is_translated(model: Model) -> None:
    translator = Translator(model, None, [], Settings())
    for text in [*HEADINGS, "MEMBER STATES"]:
        (translation,) = translator.translate([text])
        suggested = translator.session().complete(text, "")
        assert suggested.tgt == translation.tgt
        begun = translation.tgt[:2]  # whatever was asked for before
        assert translator.session().complete(text, begun).tgt == translation.tgt
        session = translator.session()
        assert session.complete(text, begun).tgt == session.complete(text, "").tgt


def test_tags_hide_no_heading(model: Model) -> None:
    plain = said(model, HEADINGS, headings=True)
    tagged = said(model, [f"<b>{heading}</b>" for heading in HEADINGS], headings=True)
    assert tagged == [f"<b>{heading}</b>" for heading in plain]
