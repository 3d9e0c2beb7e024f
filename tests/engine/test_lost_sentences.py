"""A segment of several sentences whose translation has fewer: its sentences are translated one by
one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from places import ROOT

from tmnmt.codes.record import Source
from tmnmt.engine.loading import load_layers
from tmnmt.engine.settings import Settings
from tmnmt.files.texts import text_of
from tmnmt.filters.sentence_ends import sentences
from tmnmt.index import MemoryIndex, build
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.translator import Translator

LOST = "The permit is void. It must be returned."


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The permit is void.", 1),
        ("The permit is void. It must be returned.", 2),
        ("Is it valid? “Yes, it is.” He said so!", 3),
        ("Le permis est nul. Élever la voix.", 2),
        ("Dr. Smith sent it to Mr. Jones of St. John.", 1),
        ("He lives in the U.S. The permit is void.", 1),
        ("See section 5. The Minister decides.", 1),
        ("1. The Minister decides. 2. The Clerk writes.", 1),
        ("See sub. 3. (a) Not so.", 1),
        ("Yes. No.", 1),
        ("for example, e.g. Apples and pears.", 1),
        ("de l’acte. il est écrit.", 1),
        ("这是一个许可证。必须归还。", 1),
        ("", 1),
    ],
)
def test_where_a_sentence_ends(text: str, count: int) -> None:
    made = sentences(text)
    assert len(made) == count
    assert " ".join(made) == text


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(ROOT / "models" / "law-transformer.en-fr")


def test_a_lost_sentence_comes_back(model: Model) -> None:
    """Both sentences are there, in one translation that says where its words are from."""
    with_it, without = (
        Translator(model, None, [], Settings(lost_sentences=on)).translate([LOST], explain=True)[0]
        for on in (True, False)
    )
    assert len(sentences(without.tgt)) == 1  # the model alone leaves one out
    assert len(sentences(with_it.tgt)) == 2
    assert with_it.tgt.startswith(without.tgt)
    assert with_it.src == LOST
    spelled = "".join(token.text for token in with_it.tokens).replace("▁", " ").strip()
    assert spelled == with_it.tgt


def test_what_is_complete_stays_as_it_is(model: Model) -> None:
    texts: list[Source] = [
        "The Minister may revoke a licence. The holder must be informed in writing.",
        "The permit is void.",
        "Mr. Smith must return the permit.",
    ]
    made = [
        [one.tgt for one in Translator(model, None, [], settings).translate(texts)]
        for settings in (Settings(), Settings(lost_sentences=False))
    ]
    assert made[0] == made[1]


def test_codes_of_both_sentences_come_back(model: Model) -> None:
    """Of a file's segment and of tags in a text."""
    texts: list[Source] = [
        "The permit is void. It must be <b>returned</b>.",
        text_of("<i>The permit is void.</i> It must be returned.", breaks=False),
    ]
    for text in texts:
        (made,) = Translator(model, None, [], Settings()).translate([text])
        assert len(sentences(made.tgt.replace("<b>", "").replace("</b>", ""))) == 2
    assert [code.markup for code in made.tgt_codes] == [code.markup for code in made.src_codes]


def test_each_sentence_asks_the_memory(model: Model, tmp_path: Path) -> None:
    """What was lost is read beside the pair that it is like; a memory that has the whole segment is
    read for the whole."""
    layers = load_layers(model, "cpu")
    pair = Segment("It must be returned.", "Il doit être rendu au greffier.")
    build(tmp_path / "one", [pair], "en", "fr")
    with MemoryIndex.open(tmp_path / "one") as index:
        translator = Translator(model, layers, [index], Settings(mode="copy"))
        (made,) = translator.translate([LOST])
    assert made.tgt.endswith("Il doit être rendu au greffier.")
    assert {match.segment.src for match in made.matches} == {pair.src}
    whole = replace(pair, src=LOST + " Now.", tgt="Le permis est nul.")
    build(tmp_path / "whole", [whole], "en", "fr")
    with MemoryIndex.open(tmp_path / "whole") as index:
        (made,) = Translator(model, layers, [index], Settings(mode="copy")).translate([LOST])
    assert made.tgt == "Le permis est nul."
