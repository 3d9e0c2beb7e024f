"""Terms with a student, whose decoder has cells and whose vocabulary is its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from marian_student import Architecture, write_student
from tiny_training import WORDS, sentences

from tmnmt.config.options import TermsMode, TranslationOptions
from tmnmt.model_import.marian import import_marian
from tmnmt.records import checks_of
from tmnmt.terms.check import target_spans
from tmnmt.terms.term import Term
from tmnmt.translator import Translator

SMALL = Architecture(32, 48, 2, encoder_layers=2, heads=4)
SOURCE, TARGET = max(WORDS, key=len), " ".join(sorted(WORDS)[:2])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("student")
    write_student(folder / "mozilla", SMALL)
    import_marian(folder / "mozilla", folder / "model", "en", "pt")
    return folder / "model"


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_a_student_with_random_weights_has_the_terms_or_tells(
    model: Path, tmp_path: Path, mode: TermsMode
) -> None:
    path = tmp_path / "terms.txt"
    path.write_text(f"{SOURCE}\t{TARGET}\n", encoding="utf-8")
    options = TranslationOptions(beam=2, terms=path, terms_mode=mode)
    texts = [text for text in sentences(80, 5) if text.split().count(SOURCE) == 1][:12]
    free = Translator.load(model, options=TranslationOptions(beam=2)).translate(texts)
    found = Translator.load(model, options=options).translate(texts)
    assert len(texts) == 12 and all(TARGET not in one.tgt for one in free)
    term = Term(SOURCE, (TARGET,))
    has_term = [bool(target_spans(term, one.tgt, mode == "hard")) for one in found]
    assert [any(check.name == "terms" for check in checks_of(one)) for one in found] == [
        not one for one in has_term
    ]
    assert all(has_term) or mode == "soft"  # its attention says nothing, so soft ones have no place
