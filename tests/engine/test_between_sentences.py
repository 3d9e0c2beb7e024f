"""Files with line breaks, footnotes and spans between sentences, as a user has them: what stands
between two sentences stands there again, and no pair of codes stands on punctuation alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from places import ROOT, TESTS

from tmnmt.checks import checks
from tmnmt.codes.place import place
from tmnmt.codes.record import Code, Text, alike
from tmnmt.config.options import TranslationOptions
from tmnmt.files.opening import open_translatable
from tmnmt.files.texts import string_of, text_of
from tmnmt.files.unit import Unit
from tmnmt.segments import Translation
from tmnmt.text import token_spans
from tmnmt.translator import Translator

CASES = TESTS / "data" / "codes"
FILES = sorted(path for path in CASES.iterdir() if path.suffix != ".tmx")


@pytest.fixture(scope="module")
def translator() -> Translator:
    model = ROOT / "models" / "law-transformer.en-fr"
    return Translator.load(model, [], TranslationOptions(threads=1))


def units(path: Path) -> list[Unit]:
    file = open_translatable(path)
    assert file is not None
    return [unit for document in file.documents() for unit in document.units]


def both(path: Path, translator: Translator) -> Iterator[tuple[Unit, Translation]]:
    found = units(path)
    translations = translator.translate([unit.source for unit in found])
    return zip(found, translations, strict=True)


def whole(translation: Translation) -> str:
    return Text(translation.tgt, translation.tgt_codes).full_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_code_of_the_cases_comes_back(path: Path, translator: Translator) -> None:
    count = 0
    for unit, translation in both(path, translator):
        target = Text(translation.tgt, translation.tgt_codes)
        if unit.source.plain.strip():
            assert not checks(unit.source, target, ["codes"]), target.full_text()
            assert not re.search(r"<br/?>\s*\.|\n\s*\.", target.full_text())
            count += 1
    assert count >= 2


def test_what_stands_between_two_sentences_stands_there_again(translator: Translator) -> None:
    strings = json.loads((CASES / "sentence-ends.json").read_text(encoding="utf-8"))
    assert len(strings) == 30
    translations = translator.translate([text_of(string) for string in strings.values()])
    for string, translation in zip(strings.values(), translations, strict=True):
        between = re.search(r"(?<=\.)(<.*>\s*|\n+)(?=[A-Z])", string)
        assert between is not None
        target = string_of(Text(translation.tgt, translation.tgt_codes))
        assert target.count(between[0]) == 1
        first, second = target.split(between[0])
        assert first.endswith(".") or first.endswith("$."), target
        assert second.endswith(".") and second[0].isupper() and len(second) > 20, target


def test_a_footnote_stands_with_its_number_where_it_was(translator: Translator) -> None:
    targets = [whole(translation) for _, translation in both(CASES / "footnotes.xlf", translator)]
    assert '.<g id="1">1</g> ' in targets[1]
    assert targets[2].endswith('.<g id="1">12</g>')
    assert re.search(r'\w<g id="1">1</g> .*\w<g id="2">2</g>\.$', targets[3]), targets[3]


def test_white_space_that_is_to_stay_does(translator: Translator) -> None:
    first, second = (whole(translation) for _, translation in both(CASES / "b.xlf", translator))
    assert re.fullmatch(r"[^\n]+\n\n[^\n]+\n\t- [^\n]+;\n\t- [^\n]+\.\n", first), first
    assert second.count("\t") == 1


def test_lines_stay_where_a_group_says_so(tmp_path: Path) -> None:
    source = "The permit is valid.\nThe fee is due."
    for place_, count in (("file", 1), ("group", 1), ("source", 1), ("note", 0)):
        tags = {name: "" for name in ("file", "group", "source", "note")}
        tags[place_] = ' xml:space="preserve"'
        path = tmp_path / f"{place_}.xlf"
        path.write_text(
            f'<xliff version="1.2"><file original="a" source-language="en" datatype="x"'
            f"{tags['file']}><body><group{tags['group']}><trans-unit id='1'>"
            f"<source{tags['source']}>{source}</source><note{tags['note']}>n</note></trans-unit>"
            "</group></body></file></xliff>",
            encoding="utf-8",
        )
        (unit,) = units(path)
        assert [code.kind for code in unit.source.codes].count("standalone") == count, place_


def test_the_same_line_break_of_another_format_is_a_full_match() -> None:
    path = CASES / "n.po"
    translator = Translator.load(
        ROOT / "models" / "law-transformer.en-fr", [CASES / "n.tmx"], TranslationOptions(threads=1)
    )
    first, second, third = both(path, translator)
    assert first[1].origin == second[1].origin == "memory" and third[1].origin != "memory"
    assert first[1].tgt_codes[0].markup == "\n" and second[1].tgt_codes[0].markup == "\t"
    assert string_of(Text(first[1].tgt, first[1].tgt_codes)).startswith(
        "Le permis est valable.\nLes"
    )
    assert not checks(first[0].source, Text(first[1].tgt, first[1].tgt_codes))


def test_white_space_is_the_same_in_two_formats() -> None:
    fixed, blank = Code(1, "standalone", "\n", covers=1), Code(1, "blank", "\r\n ", covers=1)
    bold = Code(1, "standalone", "<b>")
    assert alike([fixed], [blank]) and alike([blank], [fixed]) and alike([blank], [])
    assert not alike([fixed], []) and not alike([], [fixed]) and not alike([fixed], [bold])
    assert not alike([fixed, fixed], [blank]) and not alike([fixed], [Code(1, "blank", "\t")])


def test_no_pair_stands_on_punctuation_alone() -> None:
    source = Text("Click here.", (Code(6, "open", "[", "1"), Code(10, "close", "]", "1")))
    links = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1]])  # the full stop comes from "here"
    words = token_spans(source.plain), token_spans("Cliquez.")
    assert place(source, "Cliquez.", *words, links).full_text() == "[Cliquez]."
    comma = Text("Here, now", (Code(4, "open", "[", "1"), Code(5, "close", "]", "1")))
    target = "Ici, vite"
    words = token_spans(comma.plain), token_spans(target)
    assert place(comma, target, *words, np.eye(3)).full_text() == "Ici[,] vite"
    none = place(source, "...", token_spans(source.plain), token_spans("..."), np.full((3, 3), 0.3))
    assert none.full_text().replace("[]", "") == "..."


def test_a_good_match_of_the_whole_is_read_at_once(tmp_path: Path) -> None:
    memory = tmp_path / "memory.tsv"
    source = "The holder of the permit must apply to the Minister.<br>The fee is due."
    memory.write_text(
        "src\ttgt\nThe holder of the permit must apply to the Minister. The fee is payable."
        "\tQuiconque détient le permis s’adresse au ministre et paie le droit.\n",
        encoding="utf-8",
    )
    model = ROOT / "models" / "law-transformer.en-fr"
    translator = Translator.load(model, [memory], TranslationOptions(threads=1))
    (translation,) = translator.translate([text_of(source)])
    assert translation.tgt.startswith("Quiconque détient le permis")
    assert translation.tgt_codes[0].markup == "<br>"
