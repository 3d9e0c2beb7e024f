"""Translations that are those of a match with another source: they are named, and patched."""

from __future__ import annotations

import numpy as np
import pytest
from places import ROOT

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.patches import LinkedText, inserted, replaced
from tmnmt.engine.replays import replay_checks, replayed, source_edits
from tmnmt.index.embedded.in_memory import InMemoryIndex
from tmnmt.records import checks_of, join_subwords
from tmnmt.segments import Match, Segment, Translation
from tmnmt.text import token_spans
from tmnmt.translator import with_memory

PAIR = ("The Minister may revoke the permit.", "Le ministre peut annuler le permis.")
NEGATED = "The Minister may not revoke the permit."


@pytest.mark.parametrize(
    "other, edits",
    [
        ("the minister may revoke the permit", []),
        ("The Minister may revoke a permit!", []),
        (NEGATED, [(3, 3, 3, 4)]),
        ("The Governor may revoke the permit.", [(1, 2, 1, 2)]),
        ("The Minister may revoke the permit in 2 days.", [(6, 6, 6, 9)]),
        ("The Minister may revoke it.", [(4, 6, 4, 5)]),
    ],
)
def test_edits_are_words_and_neither_case_nor_marks_nor_articles(
    other: str, edits: list[tuple[int, ...]]
) -> None:
    assert source_edits(PAIR[0], other, "en") == edits


def test_numbers_alone_are_no_edit() -> None:
    assert source_edits("Page 3 of 10", "Page 4 of 12", "en") == []


def test_a_replay_is_the_target_of_a_pair_with_another_source() -> None:
    assert replayed([PAIR], NEGATED, PAIR[1], "en") == PAIR
    assert replayed([PAIR], NEGATED, "Le ministre ne peut annuler le permis.", "en") is None
    assert replayed([PAIR], PAIR[0].lower(), PAIR[1], "en") is None
    assert replayed([PAIR, (NEGATED, PAIR[1])], NEGATED, PAIR[1], "en") is None
    assert replayed([("One.", "…")], "Two.", "…", "en") is None  # nothing is said


def test_the_check_names_the_words_that_differ() -> None:
    source = "The Governor may revoke the permit in writing."
    translation = Translation(
        source, PAIR[1], -1.0, (Match(Segment(*PAIR), 0.8, 3),), origin="model"
    )
    [check] = replay_checks(translation, "en")
    assert check.name == "replay"
    assert check.what == "Minister (match) for Governor; nothing (match) for in writing"


@pytest.mark.parametrize(
    "place, text",
    [
        (0, "sans délai Il avise le ministre."),
        (2, "Il avise sans délai le ministre."),
        (4, "Il avise le ministre sans délai."),
        (5, "Il avise le ministre. sans délai"),
    ],
)
def test_a_phrase_is_put_in_with_the_blanks_that_it_needs(place: int, text: str) -> None:
    former = "Il avise le ministre."
    assert inserted(former, token_spans(former), place, "sans délai") == text


def test_a_language_without_blanks_gets_none() -> None:
    assert inserted("文件。", token_spans("文件。"), 2, "已") == "文件已。"


def test_a_stretch_is_taken_out_with_its_blank() -> None:
    text = "Le permis ou la licence est nul."
    assert replaced(text, (10, 23), "") == "Le permis est nul."
    assert replaced(text, (10, 12), "et") == "Le permis et la licence est nul."


def test_a_phrase_is_the_group_with_the_strongest_links() -> None:
    links = np.zeros((6, 3))
    links[range(6), [2, 0, 0, 0, 2, 2]] = [0.4, 1, 1, 1, 0.9, 0.8]
    text = LinkedText("par le ministre avisé par écrit", links)
    assert text.phrase(2, 3) == (4, 6)
    assert text.phrase(1, 2) is None
    assert [text.text[slice(*span)] for span in text.widened((5, 6))] == ["écrit", "par écrit"]


@pytest.fixture(scope="module")
def outputs() -> dict[bool, Translation]:
    """What a shipped model makes of a source beside a pair without its "not", with patches and
    without."""
    index = InMemoryIndex.build([Segment(*PAIR)])
    model = ROOT / "models" / "law-transformer.en-fr"
    translators = {
        patches: Translator.load(model, [], TranslationOptions(patches=patches))
        for patches in (False, True)
    }
    return {
        patches: with_memory(translator, index).translate([NEGATED], explain=True)[0]
        for patches, translator in translators.items()
    }


def test_a_replay_is_named_among_the_checks(outputs: dict[bool, Translation]) -> None:
    assert outputs[False].tgt == PAIR[1]
    named = {check.name: check.what for check in checks_of(outputs[False])}
    assert named["replay"] == "nothing (match) for not"


def test_a_replay_is_patched_and_stays_explained(outputs: dict[bool, Translation]) -> None:
    patched = outputs[True]
    assert patched.tgt == "Le ministre ne peut annuler le permis."
    assert not [check for check in checks_of(patched) if check.name == "replay"]
    words = join_subwords([(token.text, token.origin) for token in patched.tokens])
    assert " ".join(text for text, _ in words) == patched.tgt
    assert dict(words)["ne"] == "model" and dict(words)["annuler"] == "memory"
    assert patched.score < outputs[False].score  # the model would not have written it by itself
