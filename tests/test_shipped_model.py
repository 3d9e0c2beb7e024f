"""The model that ships, with the memory that ships: what `make demo` shows holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import HELD_OUT, MEMORIES, MODEL

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.settings import Settings
from tmnmt.eval.measures.scores import score
from tmnmt.formats import read_memory
from tmnmt.formats.text import read_document_lines
from tmnmt.index import MemoryIndex, build
from tmnmt.segments import Segment

LINES = 16  # of the demonstration's document
DOCUMENT = HELD_OUT / "jrc32002L0085"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> MemoryIndex:
    path = tmp_path_factory.mktemp("shipped") / "index"
    build(path, read_memory(MEMORIES / "jrc-acquis.en-fr.tmx.gz", "en", "fr"), "en", "fr")
    return MemoryIndex.open(path, "en", "fr")


def lines(language: str) -> list[str]:
    return list(read_document_lines(DOCUMENT.with_name(f"{DOCUMENT.name}.{language}.txt")))[:LINES]


def bleu(translator: Translator) -> float:
    return score([t.tgt for t in translator.translate(lines("en"))], lines("fr")).bleu


def test_it_serves_every_mode_and_the_cache(index: MemoryIndex) -> None:
    translator = Translator.load(MODEL, [index])
    assert translator.layers is not None and translator.layers.modes == (
        "copy",
        "fusion",
        "both",
        "nearest",
        "knn",
        "off",
    )
    assert translator.settings == Settings(mode="copy", cache=1000)


def test_copying_from_the_memory_beats_the_plain_model_by_two_bleu(index: MemoryIndex) -> None:
    plain, with_memory = (
        Translator.load(MODEL, options=TranslationOptions(cache=0)),
        Translator.load(MODEL, [index], TranslationOptions(cache=0)),
    )
    assert bleu(plain) > 20
    assert bleu(with_memory) > bleu(plain) + 2


def test_an_empty_memory_changes_nothing(tmp_path: Path) -> None:
    build(tmp_path / "empty", [Segment("Nothing like it", "Rien de tel")], "en", "fr")
    empty = MemoryIndex.open(tmp_path / "empty", "en", "fr")
    plain, beside = (
        Translator.load(MODEL, options=TranslationOptions(cache=0)),
        Translator.load(MODEL, [empty], TranslationOptions(cache=0)),
    )
    assert beside.translate(lines("en")[:6]) == plain.translate(lines("en")[:6])


def test_a_confirmed_pair_is_copied_in_the_very_next_sentence() -> None:
    session = Translator.load(
        MODEL, options=TranslationOptions(cache=0, mode="copy", verbatim=0)
    ).session()
    text, told = "The Minister may revoke the permit.", "Le ministre peut annuler le permis."
    assert session.translate(text).tgt != told
    session.confirm(text, told)
    assert session.translate(text).tgt == told


@pytest.mark.parametrize(
    ("model", "source", "finished"),
    [
        (
            "law-transformer.en-fr",
            "No attachment as for contempt shall issue for the non-payment of money alone.",
            "Le défaut de paiement ne peut justifier seul la contrainte par corps.",
        ),
        (
            "law-transformer.en-fr",
            "in relation to which there are matters of national security;",
            "le projet soulève des questions de sécurité nationale;",
        ),
        (
            "law.en-fr",
            "in the case of a revocation, any prescribed circumstance exists.",
            "un autre cas prévu par règlement justifie la révocation.",
        ),
        (
            "law.en-fr",
            "After consultation of the Committee of the Regions,",
            "après consultation du Comité des régions,",
        ),
    ],
)
def test_nothing_is_suggested_behind_a_sentence_that_a_person_has_finished(
    model: str, source: str, finished: str
) -> None:
    translator = Translator.load(MODEL.with_name(model), options=TranslationOptions(threads=1))
    for typed in (finished, f"{finished} "):
        assert translator.session().complete(source, typed).tgt == typed
        assert translator.session().next_words(source, typed) == ""
    half = finished[: len(finished) // 2]
    assert len(translator.session().complete(source, half).tgt) > len(half)


def test_capitals_and_placeholders_come_through() -> None:
    texts = ["GENERAL PROVISIONS", "The Minister may revoke the permit of {name} at https://a.org."]
    heading, sentence = Translator.load(MODEL).translate(texts)
    assert heading.tgt == "DISPOSITIONS GÉNÉRALES"
    assert "{name}" in sentence.tgt and "https://a.org" in sentence.tgt
    assert not sentence.tgt_codes and sentence.src == texts[1]
