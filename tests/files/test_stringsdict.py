"""Apple's .stringsdict, as Python's own reader of property lists has it."""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched

from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.stringsdict import StringsDict

TABLE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <!-- Under the list -->
    <key>%d files</key>
    <dict>
        <key>NSStringLocalizedFormatKey</key>
        <string>%#@files@ in %@</string>
        <key>files</key>
        <dict>
            <key>NSStringFormatSpecTypeKey</key>
            <string>NSStringPluralRuleType</string>
            <key>NSStringFormatValueTypeKey</key>
            <string>d</string>
            <key>zero</key>
            <string>No file</string>
            <key>one</key>
            <string>%d file</string>
            <key>other</key>
            <string>%d files &amp; more</string>
        </dict>
    </dict>
    <key>greeting</key>
    <string>Hello</string>
</dict>
</plist>
"""


def opened(tmp_path: Path, content: str = TABLE, tgt_lang: str = "fr") -> StringsDict:
    path = tmp_path / "Localizable.stringsdict"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, StringsDict)
    file.tgt_lang = tgt_lang
    return file


def test_texts_and_plural_forms_are_units(tmp_path: Path) -> None:
    rows = [(unit.id, unit.source.plain, unit.line) for unit in units(opened(tmp_path))]
    assert rows == [
        ("%d files", "%#@files@ in %@", 9),
        ("%d files.files[zero]", "No file", 17),
        ("%d files.files[one]", "%d file", 19),
        ("%d files.files[other]", "%d files & more", 21),
        ("greeting", "Hello", 25),
    ]
    first, zero, *_ = units(opened(tmp_path))
    assert [code.markup for code in first.source.codes] == ["%#@files@", "%@"]
    assert zero.plural == "plural form zero"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_is_not_filled_stays_to_the_byte(tmp_path: Path, newline: str) -> None:
    content = TABLE.replace("\n", newline)
    for language in ("fr", "ar"):
        assert untouched(opened(tmp_path, content, language)) == content.encode()


def test_a_translation_stands_in_place_of_its_source(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), "%#@files@ <dans> %@").decode()
    assert content == TABLE.replace("%#@files@ in %@", "%#@files@ &lt;dans&gt; %@")


def test_a_language_gets_the_forms_that_it_needs(tmp_path: Path) -> None:
    file = opened(tmp_path, tgt_lang="ru")
    assert [unit.source.plain for unit in units(file)][2:6] == [
        "%d file",
        *["%d files & more"] * 3,
    ]
    new = plistlib.loads(filled(file, *[None] * 2, "%d a", "%d b", "%d c", "%d d"))
    forms = new["%d files"]["files"]
    assert [*forms][2:] == ["zero", "one", "few", "many", "other"]
    assert [*forms.values()][3:] == ["%d a", "%d b", "%d c", "%d d"]
    again = opened(tmp_path, echoed(file).decode(), "ru")
    assert [unit.source for unit in units(again)] == [unit.source for unit in units(file)]


def test_tags_inside_a_doctype_are_none(tmp_path: Path) -> None:
    content = TABLE.replace("http://www.apple.com", "<plist><dict></a>")
    assert len(units(opened(tmp_path, content))) == 5


def test_the_names_of_rules_alone_are_no_text(tmp_path: Path) -> None:
    file = opened(tmp_path, TABLE.replace("%#@files@ in %@", "%1$#@files@"))
    assert next(iter(units(file))).id == "%d files.files[zero]"


def test_what_is_broken_is_one_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 26: no XML: mismatched tag"):
        units(opened(tmp_path, TABLE.replace("</dict>\n</plist>", "</plist>") + "\n"))
    with pytest.raises(FormatError, match="a DOCTYPE with declarations"):
        units(opened(tmp_path, '<!DOCTYPE plist [<!ENTITY a "b">]><plist/>'))
