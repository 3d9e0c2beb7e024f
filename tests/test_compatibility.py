"""Characters that a model reads as nothing or as plainer ones."""

from __future__ import annotations

import pytest
from places import ROOT

from tmnmt.codes.record import Text
from tmnmt.compatibility import is_plainer, plainer
from tmnmt.config.options import TranslationOptions
from tmnmt.formats.clean import clean
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.spans import piece_spans
from tmnmt.translator import Translator
from tmnmt.vocab import Vocabulary

MODEL = ROOT / "models" / "law-transformer.en-fr"
ODD = [
    ("The per\u00admit is valid.", "The permit is valid."),
    ("The per\u200bmit\u200e is valid.", "The permit is valid."),
    ("\ufeffThe\u2060 permit is valid.", "The permit is valid."),
    ("The non\u2011resident must pay.", "The non-resident must pay."),
    ("The o\ufb03cer must pay.", "The officer must pay."),
    ("The owner\u02bcs permit is valid.", "The owner’s permit is valid."),
]


@pytest.mark.parametrize(("odd", "plain"), ODD)
def test_a_model_reads_the_plain_text(odd: str, plain: str) -> None:
    assert plainer(odd) == plain and plainer(plain) == plain
    vocab = Vocabulary.load(MODEL / "spm.model")
    assert vocab.encode_source(odd) == vocab.encode_source(plain)
    pieces = vocab.source_pieces(odd)
    spans = piece_spans(pieces, odd)
    assert plainer(odd[spans[-2][0] : spans[-2][1]]) == pieces[-2].strip("▁")


def test_translations_are_those_of_the_plain_texts() -> None:
    translator = Translator.load(MODEL, [], TranslationOptions(threads=1))
    odd, plain = (translator.translate([pair[side] for pair in ODD]) for side in (0, 1))
    assert [one.tgt for one in odd] == [one.tgt for one in plain]
    assert [one.src for one in odd] == [pair[0] for pair in ODD]


def test_letters_of_a_script_stay() -> None:
    for sign in "аéの한\u200dﾊ٣":
        assert not is_plainer(sign) and plainer(sign) == sign


def test_an_optional_hyphen_of_word_leaves_no_blank() -> None:
    assert clean("per\x1fmit non\x1eresident a\x1db") == ("permit non\u2011resident a b", True)
    text, _ = clean_codes(Text("per\x1fmit non\x1eresident"))
    assert text.plain == "permit non\u2011resident"
