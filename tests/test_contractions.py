"""English contractions are spelt out for a model that knows none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from tmnmt.config.options import TranslationOptions
from tmnmt.contractions import knows_contractions, spelt_out
from tmnmt.translator import Translator
from tmnmt.vocab import Vocabulary

FORMS = {
    "It isn't valid.": "It is not valid.",
    "It isn’t, and WASN'T.": "It is not, and WAS NOT.",
    "You can't. Can't he? CAN'T!": "You cannot. Cannot he? CANNOT!",
    "Won't it? It won't, it shan't.": "Will not it? It will not, it shall not.",
    "I'm late, we're early.": "I am late, we are early.",
    "I'll go, THEY'LL stay.": "I will go, THEY WILL stay.",
    "They've said it's been signed.": "They have said it has been signed.",
    "That's void, and he's gone.": "That is void, and he is gone.",
}


@pytest.mark.parametrize("text", FORMS)
def test_contractions_are_spelt_out_in_their_case(text: str) -> None:
    assert spelt_out(text) == FORMS[text]


@pytest.mark.parametrize(
    "text",
    [
        "The owner's file",
        "Let's go",
        "They'd go",
        "In't veld",
        "l'acte n'est",
        "isn",
        "can",
        "It's2",
    ],
)
def test_what_is_none_or_may_be_either_of_two_stays(text: str) -> None:
    assert spelt_out(text) == text


@given(st.text("ainotwl s'’IT.", max_size=20))
def test_what_is_spelt_out_stays(text: str) -> None:
    once = spelt_out(text)
    assert spelt_out(once) == once and len(once) >= len(text) - text.count("'")


def test_a_vocabulary_that_has_learned_them_reads_them_as_they_are() -> None:
    texts = ["it isn't so", "he doesn't know", "we don't see", "she wasn't there"] * 50
    knows = Vocabulary.train(texts, 300)
    lacks = Vocabulary.train([spelt_out(text) for text in texts], 300)
    assert knows_contractions(map(knows.piece, range(len(knows))))
    assert knows.decode(knows.encode_source(texts[0])) == texts[0]
    assert lacks.decode(lacks.encode_source(texts[0])) == "it is not so"
    assert lacks.decode(lacks.encode(texts[0])) == texts[0]  # a target stays
    for vocab in knows, lacks:
        assert len(vocab.source_pieces(texts[0])) == len(vocab.encode_source(texts[0]))


@pytest.mark.parametrize("model", ["law.en-fr", "law-transformer.en-fr"])
def test_a_model_of_law_keeps_what_is_denied(model: str) -> None:
    translator = Translator.load(ROOT / "models" / model, [], TranslationOptions(threads=1))
    denied = ["The Minister isn't required to pay.", "The <b>file</b> isn't <i>saved</i>."]
    full = [text.replace("isn't", "is not") for text in denied]
    for one, other in zip(translator.translate(denied), translator.translate(full), strict=True):
        assert one.tgt == other.tgt and "pas " in one.tgt
