"""Words in a script that the vocabulary lacks come through as they are."""

from __future__ import annotations

import unicodedata

import pytest
import torch
from places import ROOT
from tiny_model import write_tiny_model

from tmnmt import Translator
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text
from tmnmt.config.options import TranslationOptions
from tmnmt.filters.foreign_script import Foreign
from tmnmt.vocab import FIRST, Vocabulary

CASES = {
    "The word закон is Russian.": ["закон"],
    "Русский закон о праве, глава вторая.": ["Русский закон о праве, глава вторая"],
    "Mr. 田中 may apply 😀 today.": ["田中", "😀"],
    "The \U0001f468\u200d\U0001f469\u200d\U0001f467 family": [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    ],
    "हिन्दी is a language": ["हिन्दी"],
    "Émile Zola – L'Été ÀÉ": [],
    unicodedata.normalize("NFD", "Émile à l'été"): [],
    "The office in Łódź, and Göteborg-Århus": ["Łódź", "Göteborg-Århus"],
    unicodedata.normalize("NFD", "Erdoğan Yılmaz left"): [
        unicodedata.normalize("NFD", "Erdoğan Yılmaz")
    ],
    "MR. MÜLLER": ["MÜLLER"],
    "Ø20": ["Ø20"],
    "a naïve œuvre": [],
    "5 m² for €5, or ΔT of the R&D": ["m²", "€5", "ΔT", "R&D"],
    "The vessel† is ≥5 m": ["†", "≥5"],
    "Plain words, 50 % of 3.": [],
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    torch.set_num_threads(1)
    folder = write_tiny_model(tmp_path_factory.mktemp("foreign"))
    return Translator.load(folder, options=TranslationOptions(cache=0))


def found(translator: Translator, lang: str, text: str) -> list[str]:
    return [text[one.start : one.end] for one in Foreign(translator.vocab, lang)(text)]


@pytest.mark.parametrize("text", CASES)
def test_what_is_foreign(translator: Translator, text: str) -> None:
    assert found(translator, "en", text) == CASES[text]


def test_rare_letters_of_a_language_and_languages_that_are_not_known(
    translator: Translator,
) -> None:
    text = "Škoda, cœur, mỹ"
    for lang, words in {"en-GB": ["Škoda", "mỹ"], "et": ["cœur, mỹ"], "vi": []}.items():
        assert found(translator, lang, text) == words


def test_it_comes_through_once(translator: Translator) -> None:
    texts = [*CASES]
    for text, made in zip(texts, translator.translate(texts), strict=True):
        assert made.src == text
        for word in CASES[text]:
            assert made.tgt.count(word) == 1, made.tgt


def test_it_is_no_code_of_a_text_whose_placeholders_its_reader_has_found(
    translator: Translator,
) -> None:
    source = with_placeholders(Text("The word закон of %s."))
    (made,) = translator.translate([source])
    assert made.tgt.count("закон") == made.tgt.count("%s") == 1
    assert [code.markup for code in made.tgt_codes] == ["%s"]


def test_a_script_that_the_vocabulary_has_is_left_to_the_model() -> None:
    class Cyrillic:
        """A vocabulary with all small letters, but the last, of one script."""

        letters = "абвгдежзийклмнопрстуфхцчшщъыьэ"

        def __len__(self) -> int:
            return len(self.letters)

        def piece(self, index: int) -> str:
            return f"▁{self.letters[index]}"

        def source_pieces(self, text: str) -> list[str]:
            return [text if text in self.letters else "<0xD1>"]

        def encode_source(self, text: str) -> list[int]:
            return [FIRST]

    foreign = Foreign(Cyrillic(), "ru")  # type: ignore[arg-type]
    assert [*foreign("закон ю")] == []
    assert [(one.start, one.end) for one in foreign("закон 日本")] == [(6, 8)]


def test_an_entity_of_html_is_no_part_of_a_word() -> None:
    vocab = Vocabulary.load(ROOT / "models" / "law-transformer.en-fr" / "spm.model")
    find = Foreign(vocab, "en")
    for text in ("The owner&#39;s permit is valid.", "Terms&nbsp;of permit&#x27;s owner"):
        assert [*find(text)] == []
    assert [text_ for text_ in find("The owner#39 is valid.")] != []
