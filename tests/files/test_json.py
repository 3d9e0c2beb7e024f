"""JSON catalogues: texts by their keys, everything else as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.errors import FormatError
from tmnmt.files.json import JsonFile
from tmnmt.files.json_syntax import strings
from tmnmt.files.opening import open_translatable


def catalogue(tmp_path: Path, content: str | bytes, name: str = "a.json") -> JsonFile:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    file = open_translatable(path)
    assert isinstance(file, JsonFile)
    return file


I18NEXT = """{
  "menu": {"save": "Save {{name}}", "n": 1, "x": null, "list": ["One", ["Two"], true]},
  "file_one": "{{count}} file, $t(more)", "empty": "", "dots": "...",
  "$schema": "https://example.org/schema"
}
"""


def test_keys_of_any_depth_have_texts(tmp_path: Path) -> None:
    file = catalogue(tmp_path, I18NEXT)
    assert [(unit.id, unit.source.plain, unit.line) for unit in units(file)] == [
        ("menu.save", "Save {{name}}", 2),
        ("menu.list.0", "One", 2),
        ("menu.list.1.0", "Two", 2),
        ("file_one", "{{count}} file, $t(more)", 3),
    ]
    codes = [[code.markup for code in unit.source.codes] for unit in units(file)]
    assert codes == [["{{name}}"], [], [], ["{{count}}", "$t(more)"]]
    assert untouched(file).decode() == I18NEXT
    data = filled(file, 'Enregistrer\n"é"', None, "Deux").decode()
    assert data == I18NEXT.replace('"Save {{name}}"', '"Enregistrer\\n\\"é\\""').replace(
        '"Two"', '"Deux"'
    )


def test_arb_has_its_language_and_descriptions(tmp_path: Path) -> None:
    content = (
        '{"@@locale": "en", "hi": "Hi {name}", "@hi": {"description": "A greeting",'
        ' "placeholders": {"name": {"example": "Bob"}}}, "bye": "Bye"}'
    )
    file = catalogue(tmp_path, content, "app.arb")
    assert file.src_lang == "en"
    assert [(unit.id, unit.notes) for unit in units(file)] == [("hi", ("A greeting",)), ("bye", ())]


def test_of_a_browser_extension_messages_alone_are_texts(tmp_path: Path) -> None:
    content = (
        '{"a": {"message": "Hello $NAME$", "description": "said", "placeholders": {"name":'
        ' {"content": "$1", "example": "Bob"}}}, "b": {"message": "Bye"}}'
    )
    file = catalogue(tmp_path, content)
    assert [(unit.id, unit.source.plain, unit.notes) for unit in units(file)] == [
        ("a", "Hello $NAME$", ("said",)),
        ("b", "Bye", ()),
    ]
    assert [code.markup for code in units(file)[0].source.codes] == ["$NAME$"]


def test_characters_are_written_as_in_the_file(tmp_path: Path) -> None:
    assert filled(catalogue(tmp_path, '["\\u00e9"]'), "ü😀") == b'["\\u00fc\\ud83d\\ude00"]'
    assert filled(catalogue(tmp_path, '["e"]'), "ü").decode() == '["ü"]'
    wide = catalogue(tmp_path, '\ufeff[1, "é"]'.encode("utf-16-le"))
    assert filled(wide, "ü") == '\ufeff[1, "ü"]'.encode("utf-16-le")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "the file is empty"),
        ('{"a": "b",\n "a": "c"}', "line 2: the key 'a' a second time"),
        ('{"a": "b"\n "c": 1}', "line 2: "),
        ('{"a": "b",}', "allowed: a key"),
        ("[1,]", "allowed: a value"),
        ('{"a" 1}', "allowed: a colon"),
        ('["a', "a text that is no JSON"),
        ('["a\nb"]', "a text that is no JSON"),
        ("[1", "the file ends too early"),
        ("[1] 2", "more behind the end"),
        ('[1, \ufeff"a"]', "a byte-order mark in the middle"),
        ("[" * 101 + "]" * 101, "more than 100 values inside one another"),
        ("[" * 1_000_000, "more than 100 values inside one another"),
        (b'["\xff"]', "bytes that are not UTF-8"),
        ("[NaN]", "allowed: a value"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, content: str | bytes, what: str) -> None:
    with pytest.raises(FormatError) as error:
        units(catalogue(tmp_path, content))
    assert what in str(error.value) and "\n" not in str(error.value)


def test_what_is_too_long_is_locked(tmp_path: Path) -> None:
    file = catalogue(tmp_path, json.dumps(["x" * 10_000_001, "a " * 1001, "b"]))
    assert [unit.problem for unit in units(file)] == [
        "longer than 10 MB",
        "more than 1,000 tokens",
        "",
    ]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def texts_of(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts_of(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts_of(inner)]
    return [value] if isinstance(value, str) else []


def wrong(at: int, what: str) -> FormatError:
    return FormatError(f"{at}: {what}")


@settings(max_examples=40)
@given(VALUES, st.none() | st.integers(0, 3), st.booleans())
def test_all_strings_are_found_and_come_back(
    tmp_path_factory: pytest.TempPathFactory, value: object, indent: int | None, ascii: bool
) -> None:
    content = json.dumps(value, indent=indent, ensure_ascii=ascii)
    assert [one.value for one in strings(content, wrong)] == texts_of(value)
    file = catalogue(tmp_path_factory.mktemp("json"), content)
    before = units(file)
    assert untouched(file).decode() == content
    again = units(catalogue(file.path.parent, echoed(file)))
    # control characters that are blanks, as \x1f, are not written
    assert [unit.source.plain.split() for unit in again] == [
        unit.source.plain.split() for unit in before
    ]
    changed = json.loads(filled(file, *["\U0001f600 é"] * len(before)))
    assert texts_of(changed).count("\U0001f600 é") >= len(before)


@given(st.text(st.sampled_from('{}[]",:\\1a nulltrue-.e\n'), max_size=12))
def test_what_is_refused_is_what_the_standard_library_refuses(content: str) -> None:
    try:
        expected = texts_of(json.loads(content, object_pairs_hook=_once))
    except ValueError:
        with pytest.raises(FormatError):
            list(strings(content, wrong))
    else:
        assert [one.value for one in strings(content, wrong)] == expected


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Found $1 of $2", ["$1", "$2"]),
        ("Pay $5 now", []),
        ("Pay $1.50 or $10 now", []),
        ("$1 of ${2}: ${HOME}", ["$1", "${2}", "${HOME}"]),
    ],
)
def test_numbered_parameters_of_a_catalogue_come_through(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"a": text}), encoding="utf-8")
    (tmp_path / "a.properties").write_text(f"a={text}\n", encoding="utf-8")
    (tmp_path / "a.php").write_text(f"<?php\nreturn ['a' => '{text}'];\n", encoding="utf-8")
    for name in ("a.json", "a.properties", "a.php"):
        (unit,) = units(open_translatable(tmp_path / name))
        source = unit.source
        assert [source.plain[c.at : c.at + c.covers] for c in source.codes] == names
