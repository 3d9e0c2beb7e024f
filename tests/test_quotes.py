"""Quotation marks of a source, as a model reads them."""

from __future__ import annotations

import pytest
from places import ROOT

from tmnmt.config.options import TranslationOptions
from tmnmt.quotes import apart, paired
from tmnmt.translator import Translator
from tmnmt.vocab import Vocabulary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('The "permit" is void.', "The “permit” is void."),
        ('"permit" and ("licence")', "“permit” and (“licence”)"),
        ('a "b c", "d"', "a “b c”, “d”"),
        ('a 5" pipe and a 6" pipe', 'a 5" pipe and a 6" pipe'),
        ('a 5" "pipe"', 'a 5" “pipe”'),
        ('the "permit', 'the "permit'),
        ('" " and ""', '" " and ""'),
        ("the “permit”", "the “permit”"),
    ],
)
def test_straight_quotes_are_paired(text: str, expected: str) -> None:
    assert paired(text) == expected and len(paired(text)) == len(text)


def test_a_word_behind_a_quote_stands_apart() -> None:
    assert apart("the “permit” and «loi» of “a b”") == "the “ permit” and « loi» of “ a b”"
    assert apart("owner“s, « loi », 5”") == "owner“s, « loi », 5”"


def test_the_vocabulary_reads_both_alike() -> None:
    vocab = Vocabulary.load(ROOT / "models" / "law-transformer.en-fr" / "spm.model")
    curly, straight = (vocab.source_pieces(f"The {q[0]}permit{q[1]} is") for q in ("“”", '""'))
    assert curly == straight == ["▁The", "▁“", "▁permit", "”", "▁is"]
    assert vocab.encode_source('5" pipe') == vocab.encode('5" pipe')


@pytest.mark.parametrize("quotes", ["“{}”", '"{}"'])
def test_terms_between_quotes_are_translated_as_alone(quotes: str) -> None:
    model = ROOT / "models" / "law-transformer.en-fr"
    translator = Translator.load(model, [], TranslationOptions(threads=1))
    terms = {
        "permit": "permis",
        "inspector": "inspecteur",
        "court": "tribunal",
        "pension": "pension",
    }
    sources = [f"The word {quotes.format(term)} in section 3 is replaced." for term in terms]
    for term, translation in zip(terms.values(), translator.translate(sources), strict=True):
        assert f"« {term} »" in translation.tgt.replace("\u00a0", " ").replace("\u202f", " ")
