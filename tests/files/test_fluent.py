"""Fluent, as Mozilla's own parser and translate-toolkit read it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched
from fluent.syntax import FluentParser, ast
from translate.storage import fluent as toolkit

from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError
from tmnmt.files.fluent import FluentFile
from tmnmt.files.opening import open_translatable
from tmnmt.files.texts import string_of

FTL = """### A file
## First screen

# What opens it
open = Open the { -brand-name } permit
    .label = Permit of { $name }
    .accesskey = O
    .style = width: 30em
-brand-name = Acme Permits
    .gender = masculine
brand = { -brand-name }
long =
    The permit is void,
    and { $count } are not.

    A second paragraph.
permits = { $count ->
    [0] No permit
    [one] One permit
   *[other] { $count } permits
}
shared = Anna shared { $count ->
    [one] a permit
   *[other] { $count } permits
} with you.
system =
    { PLATFORM() ->
        [macos] Preferences
       *[other] Options
    }
place = You came in { NUMBER($n, type: "ordinal") ->
    [one] { $n }st
   *[other] { $n }th
}
url = See www.{ $host } and { "{" }
"""


def opened(tmp_path: Path, content: str = FTL, tgt_lang: str = "fr") -> FluentFile:
    path = tmp_path / "app.ftl"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, FluentFile)
    file.tgt_lang = tgt_lang
    return file


def entry(content: bytes, name: str) -> ast.Message:
    body = FluentParser().parse(content.decode()).body
    return next(each for each in body if isinstance(each, ast.Message) and each.id.name == name)


def test_texts_attributes_terms_and_variants_are_units(tmp_path: Path) -> None:
    rows = [(unit.id, string_of(unit.source)) for unit in units(opened(tmp_path))]
    assert rows == [
        ("open", "Open the { -brand-name } permit"),
        ("open.label", "Permit of { $name }"),
        ("-brand-name", "Acme Permits"),
        ("long", "The permit is void, and { $count } are not.\n\nA second paragraph."),
        ("permits[0]", "No permit"),
        ("permits[one]", "One permit"),
        ("permits[other]", "{ $count } permits"),
        ("shared[one]", "Anna shared a permit with you."),
        ("shared[other]", "Anna shared { $count } permits with you."),
        ("system[macos]", "Preferences"),
        ("system[other]", "Options"),
        ("place[one]", "You came in { $n }st"),
        ("place[other]", "You came in { $n }th"),
        ("url", 'See www.{ $host } and { "{" }'),
    ]
    first = units(opened(tmp_path))[0]
    assert first.notes == ("First screen", "What opens it") and first.line == 5
    assert [code.markup for code in first.source.codes] == ["{ -brand-name }"]


@pytest.mark.parametrize("content", [FTL, FTL.replace("\n", "\r\n"), "\ufeff" + FTL])
def test_what_is_not_filled_stays_to_the_byte(tmp_path: Path, content: str) -> None:
    for language in ("fr", "ar", ""):
        assert untouched(opened(tmp_path, content, language)) == content.encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_echo_has_the_same_texts(tmp_path: Path, newline: str) -> None:
    file = opened(tmp_path, FTL.replace("\n", newline), "")
    again = opened(tmp_path, echoed(file).decode(), "")
    assert [unit.source for unit in units(again)] == [unit.source for unit in units(file)]


def test_only_the_texts_change(tmp_path: Path) -> None:
    file = opened(tmp_path)
    sources = [unit.source for unit in units(file)]
    content = filled(file, "Ouvrir", None, None, sources[3], None, "Un permis").decode()
    assert content == (
        FTL.replace("open = Open the { -brand-name } permit", "open = Ouvrir")
        .replace("void,\n    and", "void, and")
        .replace("[one] One permit", "[one] Un permis")
    )


def test_a_text_around_a_selection_becomes_part_of_each(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), *[None] * 7, "Anna a partagé un permis.").decode()
    assert content == FTL.replace("shared = Anna shared {", "shared = {").replace(
        """[one] a permit
   *[other] { $count } permits
} with you.""",
        """[one] Anna a partagé un permis.
   *[other] Anna shared { $count } permits with you.
}""",
    )


def test_a_language_gets_the_plural_forms_that_it_needs(tmp_path: Path) -> None:
    file = opened(tmp_path, tgt_lang="pl")
    ids = [unit.id for unit in units(file)]
    start = ids.index("permits[0]")
    assert ids[start : start + 5] == [
        f"permits[{name}]" for name in ("0", "one", "few", "many", "other")
    ]
    assert "place[few]" not in ids and "system[few]" not in ids
    content = filled(file, *[None] * (start + 2), "kilka", "wiele")
    assert content.decode() == FTL.replace(
        "[one] One permit\n", "[one] One permit\n    [few] kilka\n    [many] wiele\n"
    )
    whole = entry(echoed(file), "shared").value
    assert whole is not None and len(whole.elements) == 1
    selection = whole.elements[0]
    assert isinstance(selection, ast.Placeable)
    assert isinstance(selection.expression, ast.SelectExpression)
    assert len(selection.expression.variants) == 4


def test_signs_of_fluent_in_a_translation_are_text(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), "a {b} c", None, None, "[un]\n\n*deux")
    value = entry(content, "open").value
    assert value is not None
    literals = [
        element.expression.value
        for element in value.elements
        if isinstance(element, ast.Placeable) and isinstance(element.expression, ast.StringLiteral)
    ]
    assert literals == ["{", "}"]
    assert 'long =\n    {"["}un]\n\n    {"*"}deux\npermits' in content.decode()


def test_translate_toolkit_reads_what_was_written(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), "Ouvrir le permis de { -brand-name }", "Permis de { $name }")
    store = toolkit.FluentFile()
    store.parse(content)
    theirs = {unit.getid(): str(unit.source) for unit in store.units}
    assert "Ouvrir le permis de { -brand-name }" in theirs["open"]


def test_a_placeable_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = opened(tmp_path)
    unit = units(file)[0]
    assert file.refused(unit, units(file)[1].source) == ""
    broken = Text("x", (Code(0, "placeholder", "{ $a b }"),))
    assert file.refused(unit, broken) == "a placeable that Fluent cannot read"


def test_selections_inside_one_another_are_locked(tmp_path: Path) -> None:
    content = """a = { $n ->
    [one] { $m ->
        [one] x
       *[other] y
    }
   *[other] z
}
b = { { $n } } words
"""
    problems = [unit.problem for unit in units(opened(tmp_path, content))]
    assert problems == [
        "a selection inside another one, or beside it",
        "placeables inside one another",
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a = b\n!!\n", "line 2: no Fluent: Expected an entry start"),
        ("a = b\nc = { $d\n", "line 3: no Fluent: "),
        ("a = " + "{ " * 5_000 + "\n", "too many placeables inside one another|no Fluent"),
    ],
)
def test_what_is_broken_is_one_error_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        units(opened(tmp_path, content))


def test_a_long_file_takes_little_time(tmp_path: Path) -> None:
    content = "".join(f"key{number} = The permit of {{ $name }}\n" for number in range(3_000))
    file = opened(tmp_path, content)
    start = time.process_time()
    assert echoed(file) == content.encode()
    assert time.process_time() - start < 30
