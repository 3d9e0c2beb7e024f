"""Words that are not translated, those whose capitals count, and words of several meanings."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_model import PAIRS, write_tiny_model

from tmnmt.checks import Check
from tmnmt.config.options import TermsMode, TranslationOptions
from tmnmt.errors import FormatError, UsageError
from tmnmt.records import checks_of
from tmnmt.terms.find import Finder
from tmnmt.terms.homonyms import in_domain, in_sense, term_at
from tmnmt.terms.reading import read_terms
from tmnmt.terms.term import Term
from tmnmt.translator import Translator

SOURCE = PAIRS[0][0]  # The Commission shall inform the Member States.
BANK = """source,target,context
bank,rive,the side of a river; water
bank,banque,money; a loan or an account
"""
TBX = """<martif type="TBX" xml:lang="en"><text><body>
<termEntry id="1"><descrip type="subjectField">finance</descrip>
 <langSet xml:lang="en"><tig><term>bank</term></tig></langSet>
 <langSet xml:lang="fr"><tig><term>banque</term></tig></langSet></termEntry>
<termEntry id="2"><descripGrp><descrip type="definition">side of a river</descrip></descripGrp>
 <langSet xml:lang="en"><tig><term>bank</term></tig></langSet>
 <langSet xml:lang="fr"><tig><term>rive</term></tig></langSet></termEntry>
<termEntry id="3"><langSet xml:lang="en"><tig><term>Acme</term>
 <termNote type="doNotTranslate">yes</termNote></tig></langSet></termEntry>
<termEntry id="4"><langSet xml:lang="en"><tig><term>Apple</term>
 <termNote type="caseSensitive">yes</termNote></tig></langSet>
 <langSet xml:lang="fr"><tig><term>Apple</term></tig></langSet></termEntry>
</body></text></martif>
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("terms") / "model")


def read(folder: Path, text: str, name: str = "t.csv") -> list[Term]:
    (folder / name).write_text(text, encoding="utf-8")
    return read_terms(folder / name, "en", "fr")


def loaded(model: Path, folder: Path, text: str, mode: TermsMode = "soft") -> Translator:
    read(folder, text)
    options = TranslationOptions(terms=folder / "t.csv", terms_mode=mode, beam=2)
    return Translator.load(model, options=options)


def test_meanings_and_flags_are_read_from_both_formats(tmp_path: Path) -> None:
    (bank,) = read(tmp_path, BANK)
    assert bank.targets == ("rive", "banque")
    assert dict(bank.senses)["banque"] == "money; a loan or an account"
    bank, acme, apple = read(tmp_path, TBX, "t.tbx")
    assert bank.senses == (("banque", "finance"), ("rive", "side of a river"))
    assert acme.verbatim and acme.targets == ("Acme",)
    assert apple.case and not apple.verbatim


def test_rows_without_notes_are_targets_of_one_meaning(tmp_path: Path) -> None:
    (term,) = read(tmp_path, "source,target,note\nbank,rive,river\nbank,berge,\n")
    assert term.senses == ()
    (term,) = read(tmp_path, "source,target,note\nbank,rive,river\nbank,berge,river\n")
    assert term.senses == ()


def test_what_is_not_translated_has_no_other_target(tmp_path: Path) -> None:
    (term,) = read(tmp_path, "source,target,dnt\nAcme,,yes\n")
    assert term.verbatim and term.targets == ("Acme",)
    with pytest.raises(FormatError, match="line 2: 'Acme' is not to be translated, and has"):
        read(tmp_path, "source,target,dnt\nAcme,Acmé,yes\n")
    with pytest.raises(FormatError, match="do_not_translate is 'perhaps'; allowed: yes, no"):
        read(tmp_path, "source,target,dnt\nAcme,,perhaps\n")


def test_a_term_with_its_capitals_is_found_before_the_word(tmp_path: Path) -> None:
    terms = read(tmp_path, "source,target,case\napple,pomme,\nApple,Apple,yes\n")
    targets = [place.term.targets[0] for place in Finder(terms).find("Apple eats an apple, apples")]
    assert targets == ["Apple", "pomme", "pomme"]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Acme tools", ("Acme",)),
        ("ACME TOOLS", ("ACME",)),
        ("Acme's tools", ("Acme",)),
        ("acmes", None),
        ("the acme tools", ("acme",)),
        ("the AcMe tools", ("AcMe",)),
        ("acme tools", ("acme", "Acme")),
    ],
)
def test_what_is_not_translated_keeps_its_letters_and_has_no_other_form(
    text: str, target: tuple[str, ...] | None
) -> None:
    places = Finder([Term("Acme", ("Acme",), verbatim=True)]).find(text)
    targets = [term_at(place, text, "en").targets for place in places]
    assert targets == ([target] if target else [])


def test_the_domain_of_a_document_decides_before_its_words(tmp_path: Path) -> None:
    (bank,) = in_domain(read(tmp_path, BANK), "money", "en")
    assert in_sense(bank, ["the bank of the river"], "en").targets == ("banque",)
    assert in_domain(read(tmp_path, BANK), "Water", "en")[0].targets == ("rive",)
    with pytest.raises(UsageError, match="domain 'mony': no term of several meanings"):
        in_domain(read(tmp_path, BANK), "mony", "en")


def test_a_translation_goes_by_the_domain(model: Path, tmp_path: Path) -> None:
    read(tmp_path, "source,target,domain\nCommission,directive,tariff\nCommission,Parlement,law\n")
    options = TranslationOptions(terms=tmp_path / "t.csv", terms_domain="law", beam=2)
    (found,) = Translator.load(model, options=options).translate([SOURCE])
    assert "Parlement" in found.tgt and not found.user_checks
    with pytest.raises(UsageError, match="--terms-domain is of --terms"):
        TranslationOptions(terms_domain="law")


@pytest.mark.parametrize("name", ["forbiden", "contex", "do not tranlate", "Case sensitiv"])
def test_a_misspelt_column_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=r"line 1: column .* is not known; is it"):
        read(tmp_path, f"source,target,{name}\na,b,\n")


def test_a_column_of_another_name_is_passed_over(tmp_path: Path) -> None:
    read(tmp_path, "source,target,id,status,part of speech,usage,notes\na,b,1,x,n,y,z\n")


def test_words_of_a_note_decide_and_the_text_counts_before_what_stands_around(
    tmp_path: Path,
) -> None:
    (bank,) = read(tmp_path, BANK)

    def targets(*texts: str) -> tuple[str, ...]:
        return in_sense(bank, texts, "en").targets

    assert targets("the bank of the rivers") == ("rive",)
    assert targets("the bank gives loans") == ("banque",)
    assert targets("the bank", "An account of the sea.") == ("banque",)
    assert targets("the bank of the river", "An account, money.") == ("rive",)
    assert targets("the bank has money in the river") == ("rive", "banque")
    assert targets("the bank or the side", "or of a") == ("rive",)


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_the_neighbour_of_a_segment_decides_or_a_person_is_asked(
    model: Path, tmp_path: Path, mode: TermsMode
) -> None:
    text = "source,target,context\nCommission,directive,tariff\nCommission,Parlement,session\n"
    translator = loaded(model, tmp_path, text, mode)
    question = Check("meaning", "Commission: directive (tariff) or Parlement (session)")
    (alone,) = translator.translate([SOURCE])
    assert question in checks_of(alone)
    first, *_ = translator.translate([SOURCE, "A session."])
    assert "Parlement" in first.tgt and question not in checks_of(first)
    first, *_ = translator.translate([SOURCE, "A tariff."])
    assert "directive" in first.tgt.lower() and question not in checks_of(first)
    session = translator.session()
    session.confirm("The Commission is here.", "Le Parlement est ici.")
    found = session.translate(SOURCE)
    assert "Parlement" in found.tgt and question not in checks_of(found)


def test_what_is_not_translated_comes_as_it_is_in_whatever_mode(
    model: Path, tmp_path: Path
) -> None:
    translator = loaded(model, tmp_path, "source,target,dnt\nCommission,,yes\n")
    for source in (SOURCE, "The Commission shall inform."):
        found = translator.translate([source])[0]
        assert "Commission" in found.tgt and not found.user_checks
    checks = translator.pipeline.extensions["terms"].check(SOURCE, "La commission informe.")
    assert checks == [Check("terms", "Commission for Commission")]
