"""What the checks find in a translation, and what they leave alone."""

from __future__ import annotations

import csv
from time import process_time

import pytest
from places import TESTS

from tmnmt.checks import Check, checks
from tmnmt.codes.record import Code, Text

LONG = "The Commission shall inform the Member States of the measures that it has taken."


@pytest.mark.parametrize(
    ("src", "tgt", "found"),
    [
        ("Delete %s files", "Supprimer %s fichiers", []),
        ("Delete %s files", "Supprimer fichiers", [("placeholders", "lost: %s")]),
        ("{a} and {b}", "{a} et {c}", [("placeholders", "lost: {b}, made: {c}")]),
        ("{a} to {b}", "de {b} à {a}", []),
        ("50%% of it", "50 % de ça", []),
        ('It\'s \\"here\\"', "C\\'est ici", []),
        ("See a@b.org.", "Voir c@b.org.", [("placeholders", "lost: a@b.org, made: c@b.org")]),
        (LONG, "Non.", [("length", "4 characters for 80")]),
        ("No.", "Non, cela ne se fait pas du tout, jamais.", [("length", "41 characters for 3")]),
        ("好了", "Let's go then, all of us", []),
        (LONG, LONG, [("untranslated", LONG)]),
        (
            "The permit is void.",
            " The  permit is void.",
            [("untranslated", "The  permit is void."), ("spaces", " The  permit is ")],
        ),
        ("Transposition", "Transposition", []),
        ("Article 28", "Article 28", []),
        ("The permit is void.", "x", [("ends", "x"), ("length", "1 characters for 19")]),
        ("In this Part", "Ici", []),
        ("the owner of it", "le le propriétaire", [("repeated", "le le")]),
        ("The owner", "Le le propriétaire", [("repeated", "Le le")]),
        ("Yes. The owner", "Oui. Le le propriétaire", [("repeated", "Le le")]),
        ("in Bora Bora", "à Bora Bora", []),
        ("We meet", "Nous nous rencontrons", []),
        ("The the owner", "Le le propriétaire", []),
        ("Save file", "x", [("length", "1 characters for 9")]),
        ("Yes", "X", [("length", "1 characters for 3")]),
        ("Hours", "h", []),
        ("Option B", "B", []),
        ("and", "y", []),
        ("Save file", "y", [("length", "1 characters for 9")]),
        ("Yes", "是", []),
        ("No", "x", []),
        (
            "The permit is void.",
            "The permit is void",
            [("ends", "The permit is void"), ("untranslated", "The permit is void")],
        ),
        ("The permit is void.", "Le permis est nul", [("ends", "Le permis est nul")]),
        ("the permit", "le permis, selon le cas :", [("ends", "rmis, selon le cas :")]),
        ("The notice", "l’avis de l’avis", [("repeated", "l’avis de l’avis")]),
        ("notice of the notice", "l’avis de l’avis", []),
        ("The permit is void.", "Le permis est nul .", [("spaces", "is est nul .")]),
        ("The permit", "Le  permis", [("spaces", "Le  permis")]),
        ("The  permit", "Le  permis", []),
        ("The permit", "Le\u2063 permis\ue000", [("characters", "U+2063, U+E000")]),
        ("The \u2063permit", "Le\u2063 permis", []),
        ("The permit", "Le per\u00admis", []),
        ("The permit is void", "The permit is void !", [("untranslated", "The permit is void !")]),
        (
            "Click <b>here</b> now.",
            "Cliquez ici maintenant.",
            [("codes", "lost: <b> </b>")],
        ),
        ("Click <b>here</b> now.", "Cliquez <b>ici</b> maintenant.", []),
        ("Click here now.", "Cliquez <b>ici</b>.", [("codes", "made: <b> </b>")]),
        ("Give a <file> here.", "Donner un <fichier> ici.", []),
        ("Open it (or not).", "Ouvrez-le (ou non.", [("brackets", "(")]),
        ("Open it (or not).", "Ouvrez-le ou non).", [("brackets", ")")]),
        ("the [old] permit", "l’[ancien permis)", [("brackets", ")[")]),
        ("Say “yes” now", "Dites « oui maintenant", [("brackets", "«")]),
        ('Say "yes" now', 'Dites "oui maintenant', [("brackets", '"')]),
        ("(a) the permit, and paragraph 12(1)(b)", "a) le permis, et 12(1)b)", []),
        ("a permit :)", "un permis :)", []),
        ("a screen of 5 in", 'un écran de 5"', []),
        ("it is void.’", "il est nul. »", []),
        ("“It is void", "« Il est nul", []),
        ("Say “yes” now", "Sagen Sie jetzt „ja“", []),
        ("we meet", "nous nous rencontrons", []),
        ("those who see it", "die, die es sehen, die die sehen", []),
        ("the the owner", "le le propriétaire", []),
        (
            "This was said by the old man of the sea",
            "Cela fut dit par the old man of the sea",
            [("untranslated", "the old man of the sea")],
        ),
        ("the New York Stock Exchange", "la bourse New York Stock Exchange", []),
        ("EN ISO IEC UNI DIN", "EN ISO IEC UNI DIN", []),
        ("poor and rich", "de l'exclusion de l'exclusion", [("repeated", "de l'exclusion")]),
        ("very good", "très très très bon", [("repeated", "très")]),
        ("that of the one", "el de la de la otra", []),
        ("no, no, no", "non, non, non", []),
        ("on and on and on and on", "encore et encore et encore et encore", []),
        ("0 0 0", "0 0 0 0 0 0", []),
        (" ", "", []),
        (
            "{a} has {n, plural, one {# file} other {# files}}.",
            "{n, plural, one {{a} a # fichier.} other {{a} a # fichiers.}}",
            [],
        ),
        (
            "{a} has {n, plural, one {# file} other {# files}}.",
            "{n, plural, one {{a} a # fichier.} other {Il a # fichiers.}}",
            [("placeholders", "lost: {a}")],
        ),
        ("a \u2039b\u203a", "un \ufffd\ufffd> ici", [("unreadable", "\ufffd\ufffd>")]),
        ("a \ufffd", "un \ufffd", []),
        ("", "anything at all", []),
        ("anything at all", " ", [("empty", "anything at all")]),
    ],
)
def test_what_is_found(src: str, tgt: str, found: list[tuple[str, str]]) -> None:
    assert checks(Text(src), Text(tgt)) == [Check(*one) for one in found]


def test_codes_are_held_against_each_other() -> None:
    bold = Code(0, "open", "<b>", "1"), Code(1, "close", "</b>", "1")
    blank = Code(0, "blank", "\n")
    assert checks(Text("a", bold), Text("b", (blank, *bold))) == []
    assert checks(Text("a", bold), Text("b", bold[:1])) == [Check("codes", "lost: </b>")]
    covering = Text("a %s", (Code(2, "placeholder", "%s", covers=2),))
    assert checks(covering, Text("%s b")) == []
    assert checks(Text("a", bold), Text("<b>b</b>")) == []
    assert checks(covering, Text("b")) == [Check("placeholders", "lost: %s")]


def test_hardly_any_translation_of_a_person_is_flagged() -> None:
    with (TESTS / "data" / "jrc-acquis.en-fr.tsv").open(encoding="utf-8") as file:
        pairs = [(row[1], row[2]) for row in csv.reader(file, "excel-tab", quoting=csv.QUOTE_NONE)]
    flagged = [pair for pair in pairs if checks(Text(pair[0]), Text(pair[1]))]
    assert len(pairs) > 1000 and len(flagged) <= 2 * len(pairs) / 100


def test_a_long_text_takes_no_long_time() -> None:
    start = process_time()
    for text in ("ab " * 20_000, "ab cd " * 10_000, "{" * 20_000):
        checks(Text(text), Text(text + "x"))
    assert process_time() - start < 20


@pytest.mark.parametrize(
    ("src", "tgt"),
    [
        ("The :func:`base name <os.path.basename>`.", "O :func:`nome <os.path.basename>`."),
        ("``t1  * i`` is true.", "``t1 * i`` é verdade."),
        ("at a concentration >= 5 %", "à une concentration égale ou supérieure à 5 %"),
        ("some 3rd party software", "de algum software de terceiros"),
        ("The :opcode:`X` opcode was added.", "O opcode :opcode:`X` foi adicionado."),
    ],
)
def test_what_a_translation_may_have_otherwise_is_no_finding(src: str, tgt: str) -> None:
    assert checks(Text(src), Text(tgt), languages=("en", "pt")) == []


def test_the_target_of_a_role_must_stay() -> None:
    src, tgt = ":func:`name <os.path.basename>`", ":func:`nome <os.caminho>`"
    [check] = checks(Text(src), Text(tgt), ["placeholders"])
    assert check.what.startswith("lost: :func:`name")


@pytest.mark.parametrize(
    ("tgt", "lang", "found"),
    [
        ("It is void.  It ends.", "en", []),
        ("It is void.  It ends.", "fr", ["spaces"]),
        ("It is  void. It ends.", "en", ["spaces"]),
    ],
)
def test_two_blanks_may_stand_between_sentences_of_english(
    tgt: str, lang: str, found: list[str]
) -> None:
    told = checks(Text("É nulo. Termina."), Text(tgt), languages=("pt", lang))
    assert [check.name for check in told] == found
