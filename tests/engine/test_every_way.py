"""One segment by every way that there is to a translation: the same text, checks and counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import ROOT
from ways import KINDS, WAYS, given, loaded

from tmnmt.translator import Translator

COMPARED = ("tgt", "codes", "origin", "low", "unknown", "checks", "counts")


@pytest.fixture(
    scope="module",
    params=[("copy", True), ("nearest", False)],
    ids=["copy, with terms", "nearest positions"],
)
def translator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Translator:
    mode: str
    mode, has_terms = request.param
    model: Path = ROOT / "models" / "law-transformer.en-fr"
    return loaded(model, tmp_path_factory.mktemp("ways"), mode, has_terms)


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_gives_the_same(translator: Translator, kind: str) -> None:
    results = {name: given(translator, way, KINDS[kind]) for name, way in WAYS.items()}
    compared = {
        name: {field: result[field] for field in COMPARED} for name, result in results.items()
    }
    assert compared == dict.fromkeys(WAYS, compared["translate"])


@pytest.mark.parametrize(
    "prefix", ["Le permis est nul. Il", "Le permis est nul.", "Le permis", "Un permis nul. "]
)
def test_a_sentence_is_not_lost_behind_what_is_typed(translator: Translator, prefix: str) -> None:
    """Typed in the first sentence, at its end, or in the second."""
    suggestion = translator.complete(KINDS["two sentences"], prefix)
    assert suggestion.tgt.startswith(prefix)
    assert suggestion.tgt.rstrip(".").count(".") == 1, suggestion.tgt


def test_a_suggestion_is_counted_once(translator: Translator) -> None:
    source = "The Minister shall publish the report every month."
    before = translator.tally.total
    session = translator.session()
    for prefix in ("", "Le", "Le ministre fait", ""):
        session.complete(source, prefix)
    assert translator.tally.total == before + 1
