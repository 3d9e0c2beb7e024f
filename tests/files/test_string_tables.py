"""Texts of programs for phones and for .NET, as their own tools read them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched
from translate.storage import aresource, properties, resx

from tmnmt.errors import FormatError
from tmnmt.files.apple_strings import AppleStringsFile
from tmnmt.files.opening import open_translatable
from tmnmt.files.string_tables import AndroidStrings, ResourceFile
from tmnmt.files.texts import string_of
from tmnmt.files.unit import TranslatableFile

ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <!-- On the first screen -->
    <string name="title">The permit\\'s number is %1$d</string>
    <string name="bold">Read the <b>notice</b> &amp; sign</string>
    <string name="html"><![CDATA[Read the <b>notice</b>]]></string>
    <string name="tags">Read &lt;b&gt;this&lt;/b&gt;</string>
    <string name="link">See <a href="https://example.org/a?b=1">the guide</a></string>
    <string name="id" translatable="false">Permit</string>
    <string name="empty"/>
    <string-array name="days"><item>Monday</item><item>Tuesday</item></string-array>
    <plurals name="permits">
        <item quantity="one">%d permit</item>
        <item quantity="other">%d permits</item>
    </plurals>
</resources>
"""
RESX = """<?xml version="1.0" encoding="utf-8"?>
<root>
  <resheader name="version"><value>2.0</value></resheader>
  <data name="Title" xml:space="preserve">
    <value>The permit of {0} &amp; Sons</value>
    <comment>On the first screen</comment>
  </data>
  <data name="Icon" type="System.Drawing.Bitmap"><value>Icon data</value></data>
  <data name="&gt;&gt;label1.Name" xml:space="preserve"><value>label1</value></data>
  <data name="Bold" xml:space="preserve"><value>Read &lt;b&gt;this&lt;/b&gt;</value></data>
</root>
"""
STRINGS = """/* On the first screen */
"title" = "The permit \\"A\\" is valid";
// a line
plain.key = "Two\\nlines";

"empty" = "%@";
"""


def opened(tmp_path: Path, name: str, content: str, encoding: str = "utf-8") -> TranslatableFile:
    path = tmp_path / name
    path.write_bytes(content.encode(encoding))
    return open_translatable(path)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("strings.xml", ANDROID, AndroidStrings),
        ("a.resx", RESX, ResourceFile),
        ("a.strings", STRINGS, AppleStringsFile),
    ],
)
def test_what_is_not_filled_stays_and_an_echo_says_the_same(
    tmp_path: Path, name: str, content: str, kind: type[TranslatableFile]
) -> None:
    file = opened(tmp_path, name, content)
    assert isinstance(file, kind)
    assert untouched(file) == content.encode()
    texts = [(unit.id, unit.source) for unit in units(file)]
    (tmp_path / "again").mkdir()
    again = opened(tmp_path / "again", name, echoed(file).decode())
    assert [(unit.id, unit.source) for unit in units(again)] == texts


def test_android_texts_are_those_that_translate_toolkit_reads(tmp_path: Path) -> None:
    file = opened(tmp_path, "strings.xml", ANDROID)
    ids = [unit.id for unit in units(file)]
    assert ids == [
        *("title", "bold", "html", "tags", "link", "days[]", "days[]"),
        *("permits[one]", "permits[other]"),
    ]
    first = units(file)[0]
    assert first.source.plain.startswith("The permit's number is ")
    assert first.notes == ("On the first screen",) and first.line == 4
    store = aresource.AndroidResourceFile.parsefile(str(tmp_path / "strings.xml"))
    theirs = {unit.getid(): unit.source for unit in store.units}
    assert theirs["title"] == "The permit's number is %1$d"


def test_android_texts_are_escaped_as_the_format_wants(tmp_path: Path) -> None:
    file = opened(tmp_path, "strings.xml", ANDROID)
    bold = units(file)[1].source
    content = filled(
        file, 'L\'accord "A" <x> & co', bold, None, None, None, "@lundi", "Mardi\nsoir"
    ).decode()
    assert '"title">L\\\'accord \\"A\\" &lt;x&gt; &amp; co</string>' in content
    assert '"bold">Read the <b>notice</b> &amp; sign</string>' in content
    assert "<item>\\@lundi</item><item>Mardi\\nsoir</item>" in content
    (tmp_path / "new.xml").write_text(content, encoding="utf-8")
    store = aresource.AndroidResourceFile.parsefile(str(tmp_path / "new.xml"))
    assert 'L\'accord "A" <x> & co' in {unit.target for unit in store.units}


def test_resources_with_a_type_stay(tmp_path: Path) -> None:
    file = opened(tmp_path, "a.resx", RESX)
    assert [unit.id for unit in units(file)] == ["Title", "Bold"]
    assert units(file)[0].notes == ("On the first screen",)
    assert "& Sons" in units(file)[0].source.plain
    (tmp_path / "new.resx").write_bytes(
        filled(file, "Le permis <de> & fils", units(file)[1].source)
    )
    store = resx.RESXFile.parsefile(str(tmp_path / "new.resx"))
    theirs = {unit.getid(): unit.target for unit in store.units}
    assert theirs["Title"] == "Le permis <de> & fils" and theirs["Bold"] == "Read <b>this</b>"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_apple_strings_are_read_and_written(tmp_path: Path, encoding: str) -> None:
    file = opened(tmp_path, "a.strings", STRINGS, encoding)
    assert [unit.id for unit in units(file)] == ["title", "plain.key"]
    assert units(file)[0].notes == ("On the first screen",)
    assert units(file)[0].source.plain == 'The permit "A" is valid'
    assert untouched(file) == STRINGS.encode(encoding)
    content = filled(file, 'Le "permis"\n\\fin')
    (tmp_path / "new.strings").write_bytes(content)
    new = open_translatable(tmp_path / "new.strings")
    assert string_of(units(new)[0].source) == 'Le "permis"\n\\fin'
    theirs = properties.stringsfile() if encoding == "utf-16" else properties.stringsutf8file()
    theirs.parse(content)
    assert 'Le "permis"\n\\fin' in {unit.source for unit in theirs.units}


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("strings.xml", "<resources><string name='a'>x</resources>", "no XML"),
        ("a.strings", '"a" = "b"\n"c" = "d";\n', "line 1: no entry"),
        ("a.strings", '"a" = "b";\n"a" = "c";\n', "a second time"),
        ("a.resx", "<root><data>", "no XML"),
    ],
)
def test_what_is_broken_is_one_error(tmp_path: Path, name: str, content: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        units(opened(tmp_path, name, content))


def test_android_plurals_get_the_forms_that_the_language_needs(tmp_path: Path) -> None:
    file = opened(tmp_path, "strings.xml", ANDROID)
    file.tgt_lang = "pl"
    rows = [(unit.id, unit.source.plain, unit.plural) for unit in units(file)][-4:]
    assert rows == [
        ("permits[one]", "%d permit", "plural form one, for 1"),
        ("permits[few]", "%d permits", "plural form few, for 2, 3, 4, 22, 23, …"),
        ("permits[many]", "%d permits", "plural form many, for 0, 5, 6, 7, 8, …"),
        ("permits[other]", "%d permits", "plural form other"),
    ]
    assert untouched(file) == ANDROID.encode()
    content = filled(file, *[None] * 8, "%d zezwolenia", "%d zezwoleń").decode()
    assert content == ANDROID.replace(
        """<item quantity="other">""",
        """<item quantity="few">%d zezwolenia</item>
        <item quantity="many">%d zezwoleń</item>
        <item quantity="other">""",
    )


def table(inside: str) -> str:
    return f'<resources><string name="a">{inside}</string></resources>'


@pytest.mark.parametrize("inside", ["@string/app_name", "?attr/color", "@android:color/black"])
def test_references_to_other_resources_are_no_texts(tmp_path: Path, inside: str) -> None:
    assert units(opened(tmp_path, "strings.xml", table(inside))) == []


@pytest.mark.parametrize(
    ("inside", "target", "wanted"),
    [
        ('"The permit   is void. "', "Le permis", '"Le permis "'),
        ("\\u0020The permit\\u0020", "Le permis", "\\u0020Le permis\\u0020"),
        ("The permit", "@permis", "\\@permis"),
    ],
)
def test_blanks_around_a_text_stay(tmp_path: Path, inside: str, target: str, wanted: str) -> None:
    file = opened(tmp_path, "strings.xml", table(inside))
    assert filled(file, target).decode() == table(wanted)


def test_a_text_with_a_comment_inside_is_locked(tmp_path: Path) -> None:
    file = opened(tmp_path, "strings.xml", table("The <!-- old --> permit"))
    assert [unit.problem for unit in units(file)] == ["a comment inside the text"]


def test_what_the_character_set_lacks_is_written_as_a_number(tmp_path: Path) -> None:
    content = '<?xml version="1.0" encoding="iso-8859-1"?>' + table("A fee of 1,000")
    file = opened(tmp_path, "strings.xml", content)
    assert b"1&#8239;000" in filled(file, "1\u202f000")
    for name in ("foo-8", "undefined", "punycode", "idna", "hex"):
        with pytest.raises(FormatError, match=f"'{name}' is no character set"):
            units(opened(tmp_path, "strings.xml", content.replace("iso-8859-1", name)))


def test_declarations_of_entities_are_refused(tmp_path: Path) -> None:
    content = '<!DOCTYPE resources [<!ENTITY app "x">]>' + table("The &app; permit")
    with pytest.raises(FormatError, match="a DOCTYPE with declarations"):
        units(opened(tmp_path, "strings.xml", content))


def test_a_hostile_text_takes_no_time(tmp_path: Path) -> None:
    text = "The permit " + "<a" * 2 + "a" * 200_000
    file = opened(tmp_path, "strings.xml", table(f"<![CDATA[{text}]]>"))
    start = time.process_time()
    assert untouched(file) == file_bytes(tmp_path)
    assert time.process_time() - start < 5


def file_bytes(folder: Path) -> bytes:
    return (folder / "strings.xml").read_bytes()
