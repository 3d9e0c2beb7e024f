"""Quotation marks that a model leaves out."""

from __future__ import annotations

import pytest
import torch
from places import ROOT

from tmnmt.config.options import TranslationOptions
from tmnmt.filters.contract import ModelOutput, Reader
from tmnmt.filters.quotations import Quotations
from tmnmt.translator import Translator
from tmnmt.vocab import Vocabulary


@pytest.fixture(scope="module")
def translator() -> Translator:
    model = ROOT / "models" / "law-transformer.en-fr"
    return Translator.load(model, [], TranslationOptions(beam=2, threads=1))


@pytest.mark.parametrize("quotes", ["“{}”", '"{}"'])
def test_a_defined_term_has_its_quotes(translator: Translator, quotes: str) -> None:
    terms = {"inspector": "inspecteur", "vessel": "navire", "employer": "employeur"}
    texts = [f"In this Act, {quotes.format(term)} means what the Minister says." for term in terms]
    targets = [translation.tgt for translation in translator.translate(texts)]
    for target, term in zip(targets, terms.values(), strict=True):
        assert f"«\u00a0{term}\u00a0»" in target and target.count("«") == 1, target


def written(vocab: Vocabulary, source: str, target: str, looks: dict[str, str]) -> str:
    """What becomes of a target whose words each look at one word of the source, the others at its
    end."""
    filters = Quotations(Reader(vocab))
    pieces = [vocab.piece(number) for number in vocab.encode(target)]
    columns = vocab.source_pieces(source)
    attention = torch.zeros(len(pieces) + 1, len(columns) + 1)
    for row, piece in enumerate(pieces):
        wanted = looks.get(piece.strip("▁"), "")
        found = [place for place, column in enumerate(columns) if column.strip("▁") == wanted]
        attention[row, found[0] if found else -1] = 1.0
    _, undo = filters.prepare(source)
    if undo is None:
        return target
    output = ModelOutput(target, source, subwords=pieces, attention=lambda: attention)
    return undo.restore_piece(output)


def test_quotes_go_where_the_attention_is_sure(translator: Translator) -> None:
    vocab, source = translator.vocab, "In this Act, “owner” means the Minister."
    looks = {"propriétaire": "owner"}
    target = "Dans la présente loi, le propriétaire est le ministre."
    quoted = "Dans la présente loi, le “propriétaire” est le ministre."
    assert written(vocab, source, target, looks) == quoted
    assert written(vocab, source, target, {}) == target  # nothing looks there
    assert written(vocab, source, "Le « propriétaire » est le ministre.", looks).count("«") == 1
    assert written(vocab, source.replace("“owner”", "owner"), target, looks) == target
    sentence = "He said “the owner shall give notice of that to the Minister”."
    assert written(vocab, sentence, target, looks) == target  # no term
