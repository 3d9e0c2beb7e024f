"""XLIFF 1 and 2: units with states out of a file, and the same bytes with other targets."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from xml.etree.ElementTree import fromstring

import pytest
from file_units import units, untouched
from hypothesis import given, settings
from hypothesis import strategies as st
from places import TESTS
from translate.storage.xliff import xlifffile
from translate.storage.xliff2 import Xliff2File
from xliff_texts import CONTENTS1, CONTENTS2, Pair, file1, file2

from tmnmt.cli import run
from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Filling, TranslatableFile, Unit
from tmnmt.files.xliff1 import Xliff1
from tmnmt.files.xliff2 import Xliff2
from tmnmt.files.xliff_parts import Bytes, Start, Whole, parts
from tmnmt.segments import Match, Reason, Segment, Worth

REAL = sorted((TESTS / "data" / "files").glob("okapi-*.xlf"))
CORE2 = "urn:oasis:names:tc:xliff:document:2.0"
MATCHES = "urn:oasis:names:tc:xliff:matches:2.0"
X12 = 'xmlns="urn:oasis:names:tc:xliff:document:1.2"'


def units_of(file: TranslatableFile) -> list[Unit]:
    return [unit for document in file.documents() for unit in document.units]


def saved(folder: Path, text: str, encoding: str = "utf-8", name: str = "a.xlf") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def of_units(units: str, attributes: str = "", version: str = "1.2") -> str:
    return (
        f'<xliff version="{version}" {X12}><file original="a" source-language="en" '
        f'target-language="fr"{attributes}><body>{units}</body></file></xliff>'
    )


def of_units2(units: str, attributes: str = ' trgLang="fr"') -> str:
    return (
        '<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en"'
        f'{attributes}><file id="f">{units}</file></xliff>'
    )


def written(file: TranslatableFile, fillings: Sequence[Filling | None]) -> bytes:
    out = io.BytesIO()
    file.write(out, fillings)
    return out.getvalue()


def filled(folder: Path, text: str, *fillings: Filling | str | None) -> str:
    """What a file becomes; a text is one of the model's."""
    whole = [Filling(Text(one), "model") if isinstance(one, str) else one for one in fillings]
    return written(open_translatable(saved(folder, text)), whole).decode()


def match(src: str, tgt: str, score: float = 0.85, codes: tuple[Code, ...] = ()) -> Match:
    return Match(Segment(src, tgt, origin="law.tmx", tgt_codes=codes), score, 1)


# --- real files


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_real_file_comes_back_to_the_byte_and_takes_targets(path: Path, tmp_path: Path) -> None:
    assert comes_back(path, tmp_path)


@pytest.mark.data
def test_every_real_file_comes_back_and_takes_targets_or_is_refused(tmp_path: Path) -> None:
    assert "TMNMT_DATA" in os.environ, "set it to a folder with cat-files/okapi.zip"
    units, refused = list[Unit](), dict[str, str]()
    with zipfile.ZipFile(Path(os.environ["TMNMT_DATA"]) / "cat-files/okapi.zip") as files:
        for name in files.namelist():
            if name.endswith(".xlf"):
                path = tmp_path / "one.xlf"
                path.write_bytes(files.read(name))
                try:
                    units += comes_back(path, tmp_path)
                except FormatError as error:
                    refused[name] = str(error).removeprefix(f"{path}, ")
    assert sorted(refused.values()) == [
        "line 1: broken XML: mismatched tag",
        "line 25: broken XML: bytes that are not of the file's encoding",
        "line 8: broken XML: not well-formed (invalid token)",
        "line 8: broken XML: not well-formed (invalid token)",
    ]
    codes = [code for unit in units for code in unit.source.codes if code.kind != "blank"]
    as_text = [code for code in codes if not code.form]  # HTML that stands as text
    assert (len(units), len(codes) - len(as_text), len(as_text)) == (11_208, 12_273, 141)
    assert not [unit for unit in units if unit.problem]


def comes_back(path: Path, folder: Path) -> list[Unit]:
    """The units of a file that was written untouched, and filled with its sources, and read again
    here and by translate-toolkit."""
    file = open_translatable(path)
    units = units_of(file)
    assert written(file, [None] * len(units)) == path.read_bytes()
    fillings = [
        None if unit.state == "locked" else Filling(unit.source, "memory") for unit in units
    ]
    file.tgt_lang = file.tgt_lang or "fr"
    new = folder / "new.xlf"
    new.write_bytes(written(file, fillings))
    again = units_of(open_translatable(new))
    assert [unit.source for unit in again] == [unit.source for unit in units]
    for unit, before, filling in zip(again, units, fillings, strict=True):
        if filling is None:
            assert replace(unit, line=before.line) == before
        elif filling.target != Text(""):
            assert (unit.target, unit.state) == (filling.target, "translated")
    assert toolkit(file.kind, new) == toolkit(file.kind, path)
    return units


def toolkit(kind: str, path: Path) -> list[str]:
    """The sources as translate-toolkit has them."""
    store = cast(Any, Xliff2File if kind == "xliff2" else xlifffile)
    return [str(unit.source) for unit in store.parsestring(path.read_bytes()).units]


def test_the_toolkit_finds_the_targets_that_were_put_in(tmp_path: Path) -> None:
    text = file1([("one", None), ("two", "deux"), ("three", "")])
    new = filled(tmp_path, text, "un", None, "trois")
    units = cast(Any, xlifffile).parsestring(new.encode()).units
    assert [str(unit.target) for unit in units] == ["un", "deux", "trois"]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.xml", '<?xml version="1.0"?>\n<!-- x --><x:xliff a=">" version=\'1.2\' ', "xliff1"),
        ("a.xml", "<xliff version='2.1'>", "xliff2"),
        ("a.xlf", "no XML", "xliff1"),
        ("a.SDLXLIFF", "<html>", "xliff1"),
        ("a.md", "Write <xliff version='2.0'>", ""),
        ("a.xml", "<tmx version='1.4'><xliff version='2.0'>", ""),
    ],
)
def test_a_file_is_told_by_its_root_and_by_its_name(name: str, text: str, kind: str) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        data = text.encode(encoding)
        accepting = [one.kind for one in (Xliff2, Xliff1) if one.accepts(data, Path(name))]
        assert "".join(accepting[:1]) == kind


# --- any file

PAIRS1 = st.lists(st.tuples(CONTENTS1, st.none() | CONTENTS1), max_size=4)
PAIRS2 = st.lists(st.tuples(CONTENTS2, st.none() | CONTENTS2), max_size=4)
TEXTS = PAIRS1.map(file1) | PAIRS2.map(file2)


@given(TEXTS, st.data())
@settings(max_examples=120)
def test_only_targets_that_are_asked_for_change(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject
) -> None:
    path = saved(tmp_path_factory.mktemp("x"), text)
    file = open_translatable(path)
    units = units_of(file)
    assert written(file, [None] * len(units)) == path.read_bytes()
    chosen = data.draw(st.lists(st.booleans(), min_size=len(units), max_size=len(units)))
    fillings = [
        Filling(unit.source, "memory") if one else None
        for unit, one in zip(units, chosen, strict=True)
    ]
    path.write_bytes(written(file, fillings))
    again = units_of(open_translatable(path))
    for unit, before, filling in zip(again, units, fillings, strict=True):
        if filling is None:
            assert unit == before or unit.line != before.line
        elif filling.target.plain:
            assert (unit.target, unit.state) == (filling.target, "translated")
    assert [unit.source for unit in again] == [unit.source for unit in units]


@given(TEXTS, st.sampled_from([1, 2, 3, 7, 50]))
@settings(max_examples=40)
def test_parts_do_not_depend_on_how_the_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory, text: str, block: int
) -> None:
    path = saved(tmp_path_factory.mktemp("x"), text)
    unit = (open_translatable(path).kind == "xliff2" and "unit") or "trans-unit"
    once, again = list(parts(path, unit)), list(parts(path, unit, block))
    assert [one for one in once if isinstance(one, Start | Whole)] == [
        one for one in again if isinstance(one, Start | Whole)
    ]
    assert (
        b"".join(one.data or b"" for one in again if isinstance(one, Bytes | Start | Whole))
        == text.encode()
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "windows-1252"])
def test_every_encoding_comes_back_and_takes_targets(tmp_path: Path, encoding: str) -> None:
    declared = encoding.replace("-sig", "").replace("-le", "")
    head = f'<?xml version="1.0" encoding="{declared}"?>\r\n'
    path = saved(
        tmp_path, head + of_units('<trans-unit id="é"><source>ça</source></trans-unit>'), encoding
    )
    file = open_translatable(path)
    (unit,) = units_of(file)
    assert (unit.id, unit.source.plain) == ("é", "ça")
    assert written(file, [None]) == path.read_bytes()
    path.write_bytes(written(file, [Filling(Text("cœur 𝒳"), "model")]))
    (unit,) = units_of(open_translatable(path))
    assert unit.target == Text("cœur 𝒳")
    if encoding == "windows-1252":
        assert "cœur &#119987;".encode(encoding) in path.read_bytes()


def test_what_is_put_into_a_file_of_ascii_is_ascii(tmp_path: Path) -> None:
    head = '<?xml version="1.0" encoding="US-ASCII"?>'
    text = head + of_units("<trans-unit id='1'><source>One</source></trans-unit>")
    new = filled(tmp_path, text, "é𝒳")
    assert ">&#233;&#119987;</target>" in new and new.isascii()


def test_an_encoding_with_two_ways_to_write_a_character_is_refused_where_it_matters(
    tmp_path: Path,
) -> None:
    text = '<?xml version="1.0" encoding="cp932"?>' + of_units("<!-- X -->")
    path = saved(tmp_path, text.replace("X", "日本"), "cp932")
    assert written(open_translatable(path), []) == path.read_bytes()
    path.write_bytes(path.read_bytes().replace("日本".encode("cp932"), b"\x87\x90"))
    with pytest.raises(FormatError, match="cannot be written again as it is in cp932"):
        written(open_translatable(path), [])


# --- states


@pytest.mark.parametrize(
    ("unit", "target", "state"),
    [
        ("", None, "new"),
        ("", "<target/>", "new"),
        ("", "<target> <!-- x --></target>", "new"),
        ("", "<target>Un</target>", "translated"),
        ("", "<target>One</target>", "draft"),  # a copy, and nobody says that it is right
        ("", '<target state="final">One</target>', "translated"),
        ("", '<target state="needs-translation">One</target>', "new"),
        ("", '<target state="new">One</target>', "new"),
        ("", '<target state="needs-review-translation">Un</target>', "draft"),
        ("", '<target state-qualifier="mt-suggestion">Un</target>', "draft"),
        ("", '<target state-qualifier="exact-match">Un</target>', "translated"),
        (' approved="yes"', '<target state="needs-l10n">Un</target>', "translated"),
        (' translate="no"', "<target>Un</target>", "locked"),
        (' m:locked="true" xmlns:m="m"', "<target>Un</target>", "locked"),
        (' mq:locked="locked" xmlns:mq="MQXliff"', None, "locked"),
        (' m:locked="false" xmlns:m="m"', None, "new"),
    ],
)
def test_states_of_version_1(tmp_path: Path, unit: str, target: str | None, state: str) -> None:
    text = f'<trans-unit id="1"{unit}><source>One</source>{target or ""}</trans-unit>'
    (found,) = units_of(open_translatable(saved(tmp_path, of_units(text))))
    assert found.state == state
    if state in ("draft", "translated"):
        assert found.target is not None
    if state == "new":
        assert found.target is None


@pytest.mark.parametrize(
    ("segment", "target", "state"),
    [
        ("", "", "new"),
        ("", "<target></target>", "new"),
        ("", "<target>Un</target>", "translated"),
        ("", "<target>One</target>", "draft"),
        (' state="initial"', "<target>Un</target>", "draft"),
        (' state="reviewed"', "<target>One</target>", "translated"),
    ],
)
def test_states_of_version_2(tmp_path: Path, segment: str, target: str, state: str) -> None:
    text = f'<unit id="1"><segment{segment}><source>One</source>{target}</segment></unit>'
    (found,) = units_of(open_translatable(saved(tmp_path, of_units2(text))))
    assert found.state == state


def test_what_is_not_to_be_translated_is_inherited(tmp_path: Path) -> None:
    def unit(number: int, say: str = "") -> str:
        return f'<trans-unit id="{number}"{say}><source>a</source></trans-unit>'

    yes, no = ' translate="yes"', ' translate="no"'
    text = f"{unit(1)}<group{no}>{unit(2)}{unit(3, yes)}<group>{unit(4)}</group></group>{unit(5)}"
    states = [unit.state for unit in units_of(open_translatable(saved(tmp_path, of_units(text))))]
    assert states == ["new", "locked", "new", "locked", "new"]
    segment = "<segment><source>a</source></segment>"
    two = text.replace("trans-unit", "unit").replace("<source>a</source>", segment)
    two = re.sub("<group", '<group id="g"', two)
    assert [
        unit.state for unit in units_of(open_translatable(saved(tmp_path, of_units2(two))))
    ] == states


def test_what_a_unit_is_told_by(tmp_path: Path) -> None:
    text = of_units(
        '\n<trans-unit id="7" resname="menu.open"><source>One</source><note>a &amp; b</note>'
        "<note/><alt-trans><source>x</source><target>no</target><note>no</note></alt-trans>"
        "</trans-unit>"
    )
    (unit,) = units_of(open_translatable(saved(tmp_path, text)))
    assert unit == Unit(Text("One"), None, "new", "7", "menu.open", ("a & b",), 2)
    two = of_units2(
        '<unit id="u" name="menu"><notes><note>a</note></notes>\n'
        '<segment id="s"><source>One</source>'
        "</segment><ignorable><source> </source></ignorable>"
        "<segment><source>Two</source></segment></unit>"
    )
    assert units_of(open_translatable(saved(tmp_path, two))) == [
        Unit(Text("One"), None, "new", "u:s", "menu", ("a",), 2),
        Unit(Text("Two"), None, "new", "u", "menu", ("a",), 2),
    ]


def test_documents_are_the_files_inside_and_can_be_left_early(tmp_path: Path) -> None:
    one = '<file original="{}" source-language="en" target-language="fr"><body>{}</body></file>'
    unit = "<trans-unit id='{}'><source>a</source></trans-unit>"
    text = f"<xliff version='1.2' {X12}>" + "".join(
        one.format(name, "".join(unit.format(f"{name}{i}") for i in range(2))) for name in "ab"
    )
    file = open_translatable(saved(tmp_path, text + one.format("", "") + "</xliff>"))
    assert [
        (document.name, [unit.id for unit in document.units]) for document in file.documents()
    ] == [("a", ["a0", "a1"]), ("b", ["b0", "b1"]), ("a.xlf 3", [])]
    later = list(file.documents())
    assert [[unit.id for unit in document.units] for document in later] == [
        ["a0", "a1"],
        ["b0", "b1"],
        [],
    ]


# --- writing, version 1


def test_a_new_target_stands_behind_its_source_and_says_where_it_is_from(tmp_path: Path) -> None:
    text = of_units(
        '\n  <trans-unit id="1">\n    <source xml:lang="en" xml:space="preserve">One</source>\n'
        "    <note>n</note>\n  </trans-unit>"
    )
    by_model = filled(tmp_path, text, "Un <b> & c")
    assert by_model == text.replace(
        "</source>\n",
        '</source>\n    <target xml:lang="fr" xml:space="preserve" state="needs-review-translation"'
        ' state-qualifier="leveraged-mt">Un &lt;b&gt; &amp; c</target>\n',
    )
    exact = filled(tmp_path, text, Filling(Text("Un"), "memory"))
    assert ' state="translated" state-qualifier="exact-match">Un</target>' in exact


def test_a_target_that_is_there_keeps_its_attributes(tmp_path: Path) -> None:
    text = of_units(
        "<trans-unit id='1' approved='yes'><source>One</source>"
        "<target phase-name='p>' state='final' >Un<!-- x --></target></trans-unit>"
    )
    new = filled(tmp_path, text, "Une")
    assert "<trans-unit id='1' approved=\"no\">" in new
    assert (
        "<target phase-name='p>' state=\"needs-review-translation\" "
        'state-qualifier="leveraged-mt">Une</target></trans-unit>' in new
    )


def test_matches_become_alt_trans_once(tmp_path: Path) -> None:
    text = file1([("One file", None)])
    matches = (match("One <file", "Un"), match("One", "Deux", 0.999), match("One file", "X", 1.0))
    filling = Filling(Text("Un fichier"), "model", matches)
    new = filled(tmp_path, text, filling)
    assert re.findall("<alt-trans.*?</alt-trans>", new) == [
        '<alt-trans match-quality="85%" origin="law.tmx"><source>One &lt;file</source>'
        "<target>Un</target></alt-trans>",
        '<alt-trans match-quality="99%" origin="law.tmx"><source>One</source>'
        "<target>Deux</target></alt-trans>",
        '<alt-trans match-quality="100%" origin="law.tmx"><source>One file</source>'
        "<target>X</target></alt-trans>",
    ]
    assert filled(tmp_path, new, filling) == new


SUGGESTED = Filling(Text(""), "", (match("Ones", "Uns"),))
ALT_TRANS = (
    '<alt-trans{} match-quality="85%" origin="law.tmx"><source>Ones</source>'
    "<target>Uns</target></alt-trans>"
)


@pytest.mark.parametrize(
    "target", ["", '<target state="new"/>', '<target state="needs-translation">One</target>']
)
def test_matches_alone_leave_the_target_as_it_is(tmp_path: Path, target: str) -> None:
    text = of_units(
        f'<trans-unit id="1" approved="no"><source>One</source>{target}<note>n</note></trans-unit>'
    )
    new = filled(tmp_path, text, SUGGESTED)
    assert new == text.replace("<note>", ALT_TRANS.format("") + "<note>")
    assert filled(tmp_path, new, SUGGESTED) == new
    assert [unit.state for unit in units_of(open_translatable(saved(tmp_path, new)))] == ["new"]


def test_matches_alone_stand_beside_targets_of_other_segments(tmp_path: Path) -> None:
    text = segmented()
    first = ALT_TRANS.format(' mid="1"')
    assert filled(tmp_path, text, SUGGESTED, None, None) == text.replace(
        "</seg-source>", f"</seg-source>{first}"
    )
    new = filled(tmp_path, text, SUGGESTED, Filling(Text("Deux."), "memory"), None)
    assert f"</target>{first}" in new and "Uns</mrk>" not in new
    states = [unit.state for unit in units_of(open_translatable(saved(tmp_path, new)))]
    assert states[0] == states[2] == "new"


def test_matches_alone_of_version_2_leave_the_segment_as_it_is(tmp_path: Path) -> None:
    text = of_units2('<unit id="1"><segment state="initial"><source>One</source></segment></unit>')
    new = filled(tmp_path, text, SUGGESTED)
    assert '<segment state="initial" id="s1"><source>One</source></segment>' in new
    assert '<mtc:match ref="#s1" type="tm" matchQuality="85"' in new
    assert [unit.state for unit in units_of(open_translatable(saved(tmp_path, new)))] == ["new"]


def test_the_target_language_is_said_where_it_was_not(tmp_path: Path) -> None:
    text = file1([("One", None)]).replace(' target-language="fr"', "")
    file = open_translatable(saved(tmp_path, text))
    assert file.tgt_lang == ""
    file.tgt_lang = "fr"
    assert written(file, [None]).decode() == text
    assert ' target-language="fr">' in written(file, [Filling(Text("Un"), "model")]).decode()


# --- segments of version 1

SOURCE = (
    '<source>One. Two. <g id="1">Three.</g></source>'
    '<seg-source><mrk mtype="seg" mid="1">One.</mrk> '
    '<mrk mid="2" mtype="seg">Two.</mrk> '
    '<g id="1"><mrk mid="3" mtype="seg">Three.</mrk></g></seg-source>'
)


def segmented(target: str = "", extra: str = "") -> str:
    return of_units(f'<trans-unit id="u">{SOURCE}{target}{extra}</trans-unit>')


def target_in(text: str) -> str:
    found = re.search("<target.*</target>", text)
    return found[0] if found else ""


def test_segments_are_units(tmp_path: Path) -> None:
    target = '<target><mrk mid="2" mtype="seg">Deux.</mrk></target>'
    units = units_of(open_translatable(saved(tmp_path, segmented(target))))
    assert [(unit.id, unit.source.plain, unit.state) for unit in units] == [
        ("u:1", "One.", "new"),
        ("u:2", "Two.", "translated"),
        ("u:3", "Three.", "new"),
    ]


def test_a_new_target_is_divided_as_its_source(tmp_path: Path) -> None:
    assert target_in(filled(tmp_path, segmented(), "Un.", None, "Trois.")) == (
        '<target state="needs-review-translation" state-qualifier="leveraged-mt">'
        '<mrk mtype="seg" mid="1">Un.</mrk> <mrk mid="2" mtype="seg"></mrk> '
        '<g id="1"><mrk mid="3" mtype="seg">Trois.</mrk></g></target>'
    )


@pytest.mark.parametrize(
    ("there", "becomes"),
    [
        ('<mrk mid="2" mtype="seg"/>', "1 2 3"),
        ('<mrk mid="3" mtype="seg">x</mrk>', "1 2 3"),
        ('<mrk mid="1" mtype="seg">x</mrk>', "1 2 3"),
        ('<mrk mid="1" mtype="seg"></mrk> <mrk mid="3" mtype="seg">x</mrk>', "1 2 3"),
        ('<mrk mid="9" mtype="seg">x</mrk>', "9 1 2 3"),
    ],
)
def test_segments_that_the_target_lacks_are_put_in(
    tmp_path: Path, there: str, becomes: str
) -> None:
    path = saved(tmp_path, segmented(f"<target>{there}</target>"))
    new = written(
        open_translatable(path), [Filling(Text(word), "memory") for word in ("Un", "Deux", "Trois")]
    )
    path.write_bytes(new)
    units = units_of(open_translatable(path))
    assert [unit.target and unit.target.plain for unit in units] == ["Un", "Deux", "Trois"]
    assert re.findall('mid="(.)"', target_in(new.decode())) == becomes.split()


def test_a_target_that_is_not_divided_is_one_unit(tmp_path: Path) -> None:
    target = "<target>Un. Deux. Trois.</target>"
    (unit,) = units_of(open_translatable(saved(tmp_path, segmented(target))))
    assert (unit.id, unit.source.plain, unit.state) == ("u", "One. Two. Three.", "translated")


def test_matches_of_segments_say_which(tmp_path: Path) -> None:
    filling = Filling(Text("Deux."), "memory", (match("Two.", "Deux.", 1.0),))
    new = filled(tmp_path, segmented(), None, filling, None)
    assert '<alt-trans mid="2" match-quality="100%"' in new


def test_trados_locks_segments(tmp_path: Path) -> None:
    extra = (
        '<s:seg-defs xmlns:s="urn:sdl"><s:seg id="1"/><s:seg id="2" locked="true"/></s:seg-defs>'
    )
    units = units_of(open_translatable(saved(tmp_path, segmented(extra=extra))))
    assert [unit.state for unit in units] == ["new", "locked", "new"]


def by_tool(tool: str, said: str, target: str = "<target>Un</target>") -> str:
    """A unit of which a CAT tool says how far it is."""
    if tool == "sdl":
        mrk = '<mrk mtype="seg" mid="7">{}</mrk>'
        target = target.replace("Un", mrk.format("Un"))
        source = f"<source>One</source><seg-source>{mrk.format('One')}</seg-source>"
        definitions = f'<sdl:seg-defs xmlns:sdl="urn:sdl"><sdl:seg id="7"{said}/></sdl:seg-defs>'
        return of_units(f'<trans-unit id="1">{source}{target}{definitions}</trans-unit>')
    space = {"mq": "MQXliff", "m": "http://www.memsource.com/mxlf/2.0"}[tool]
    start = f'<trans-unit id="1" xmlns:{tool}="{space}"{said}>'
    return of_units(f"{start}<source>One</source>{target}</trans-unit>")


@pytest.mark.parametrize(
    ("tool", "said", "state"),
    [
        ("sdl", "", "draft"),
        ("sdl", ' conf="Draft" origin="mt"', "draft"),
        ("sdl", ' conf="RejectedSignOff"', "draft"),
        ("sdl", ' conf="Translated" origin="tm" percent="100"', "translated"),
        ("sdl", ' conf="ApprovedSignOff"', "translated"),
        ("sdl", ' conf="Draft" locked="true"', "locked"),
        ("mq", ' mq:status="PartiallyEdited"', "draft"),
        ("mq", ' mq:status="Pretranslated" mq:percent="85"', "draft"),
        ("mq", ' mq:status="Pretranslated" mq:percent="101"', "translated"),
        ("mq", ' mq:status="ManuallyConfirmed"', "translated"),
        ("mq", ' mq:status="Rejected"', "draft"),
        ("mq", ' mq:status="SomethingNew"', "translated"),
        ("m", ' m:confirmed="0" m:trans-origin="mt" m:score="0.0"', "draft"),
        ("m", ' m:confirmed="0" m:trans-origin="tm" m:score="1.01"', "translated"),
        ("m", ' m:confirmed="1" m:trans-origin="mt" m:score="0.0"', "translated"),
        ("m", ' m:confirmed="1" m:locked="true"', "locked"),
    ],
)
def test_what_cat_tools_say_of_a_segment_is_its_state(
    tmp_path: Path, tool: str, said: str, state: str
) -> None:
    (found,) = units_of(open_translatable(saved(tmp_path, by_tool(tool, said))))
    assert found.state == state


@pytest.mark.parametrize(
    ("tool", "before", "by_model", "by_memory"),
    [
        (
            "sdl",
            ' origin="not-translated"',
            ' origin="mt" conf="Draft" origin-system="tmnmt"',
            ' origin="tm" conf="Translated" origin-system="tmnmt" percent="100" '
            'text-match="SourceAndTarget"',
        ),
        (
            "mq",
            ' mq:status="NotStarted" mq:percent="0"',
            ' mq:status="PartiallyEdited"',
            ' mq:status="Pretranslated" mq:percent="101"',
        ),
        (
            "m",
            ' m:confirmed="0" m:score="0.5" m:trans-origin="null"',
            ' m:confirmed="0" m:score="0.0" m:trans-origin="mt"',
            ' m:confirmed="0" m:score="1.01" m:trans-origin="tm"',
        ),
    ],
)
def test_a_new_target_is_marked_as_the_tool_does(
    tmp_path: Path, tool: str, before: str, by_model: str, by_memory: str
) -> None:
    text = by_tool(tool, before, "")
    exact = replace(match("One", "Un", 1.0), worth=Worth(101, (Reason("next", 1),)))
    new = filled(tmp_path, text, "Un")
    assert by_model + ("/>" if tool == "sdl" else ">") in new and "state" not in new
    new = filled(tmp_path, text, Filling(Text("Un"), "memory", (exact,)))
    assert by_memory + ("/>" if tool == "sdl" else ">") in new and "state" not in new
    assert ("alt-trans" in new) == (tool != "sdl")  # Trados has no such element
    (unit,) = units_of(open_translatable(saved(tmp_path, new)))
    assert (unit.state, unit.target) == ("translated", Text("Un"))


def test_a_unit_approved_before_is_told_of_once(tmp_path: Path) -> None:
    text = by_tool("mq", ' approved="yes" mq:status="ManuallyConfirmed"')
    new = filled(tmp_path, text, "Deux")
    assert 'approved="no" mq:status="PartiallyEdited">' in new


def test_codes_of_phrase_stand_in_its_texts(tmp_path: Path) -> None:
    text = by_tool("m", ' m:confirmed="0"', "").replace(
        ">One<", ">{1}Click {2>{b>here&lt;b}&lt;2}, {x}.<"
    )
    (unit,) = units_of(open_translatable(saved(tmp_path, text)))
    assert unit.source.plain == "Click here, {x}."
    assert [(code.markup, code.kind) for code in unit.source.codes] == [
        *(("{1}", "standalone"), ("{2>", "open"), ("{b>", "open")),
        *(("<b}", "close"), ("<2}", "close")),
    ]
    new = filled(tmp_path, text, Filling(unit.source, "memory"))
    assert "<target>{1}Click {2&gt;{b&gt;here&lt;b}&lt;2}, {x}.</target>" in new


def test_an_adapted_match_is_of_the_memory_and_to_be_looked_at(tmp_path: Path) -> None:
    new = filled(tmp_path, file1([("Page 1", None)]), Filling(Text("Page 1"), "adapted"))
    assert 'state="needs-review-translation" state-qualifier="leveraged-tm"' in new


def test_one_segment_of_the_model_makes_a_target_one_to_look_at(tmp_path: Path) -> None:
    memory = Filling(Text("x"), "memory")
    assert 'state="translated"' in filled(tmp_path, segmented(), memory, memory, memory)
    assert 'state="needs-review' in filled(tmp_path, segmented(), memory, "y", memory)
    assert 'state="needs-review' in filled(tmp_path, segmented(), memory, None, memory)


# --- writing, version 2


def test_a_segment_of_version_2_says_where_its_target_is_from(tmp_path: Path) -> None:
    text = of_units2('<unit id="1">\n <segment>\n  <source>One</source>\n </segment>\n</unit>')
    assert filled(tmp_path, text, "Un") == text.replace(
        "<segment>", '<segment state="initial" subState="tmnmt:machine">'
    ).replace("</source>", "</source>\n  <target>Un</target>")
    exact = filled(tmp_path, text, Filling(Text("Un"), "memory"))
    assert '<segment state="translated" subState="tmnmt:exact-match">' in exact


def test_matches_of_version_2_go_into_the_matches_module(tmp_path: Path) -> None:
    text = of_units2(
        '<unit id="1"><originalData><data id="s1">x</data></originalData>'
        "<segment><source>One</source></segment></unit>"
    )
    filling = Filling(Text("Un"), "model", (match("Ones", "Uns"),))
    new = filled(tmp_path, text, filling)
    assert (
        '<unit id="1"><mtc:matches xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0">'
        '<mtc:match ref="#s2" type="tm" matchQuality="85" similarity="85" origin="law.tmx">'
        "<source>Ones</source><target>Uns</target></mtc:match></mtc:matches><originalData>" in new
    )
    assert 'subState="tmnmt:machine" id="s2"><source>One</source>' in new
    assert filled(tmp_path, new, filling) == new
    other = Filling(Text("Un"), "model", (match("Only", "Uns"),))
    assert filled(tmp_path, new, other).count("<mtc:match ") == 2


@pytest.mark.parametrize("blanks", ["", "\n  "])
def test_matches_stand_before_a_first_segment_with_or_without_blanks(
    tmp_path: Path, blanks: str
) -> None:
    text = of_units2(
        f'<unit id="1">{blanks}<segment><source>One</source></segment></unit>'
        f'<unit id="2">{blanks}<segment><source>Two</source></segment></unit>'
    )
    of_first = Filling(Text("Un"), "model", (match("Ones", "Uns"),))
    new = filled(tmp_path, text, of_first, "Deux")
    first, second = fromstring(new).iter(f"{{{CORE2}}}unit")
    assert [one.tag.partition("}")[2] for one in first] == ["matches", "segment"]
    assert [one.tag.partition("}")[2] for one in second] == ["segment"]
    assert f'<unit id="1">{blanks}<mtc:matches ' in new and f"</mtc:matches>{blanks}<seg" in new


def test_a_match_of_the_same_place_is_told_as_such(tmp_path: Path) -> None:
    same = replace(match("One", "Un", 1.0), worth=Worth(101, (Reason("next", 1),)))
    filling = Filling(Text("Un"), "memory", (same,))
    assert 'match-quality="101%"' in filled(tmp_path, file1([("One", None)]), filling)
    second = filled(tmp_path, file2([("One", None)]), filling)
    assert 'type="icm" matchQuality="100" similarity="100"' in second


@pytest.mark.parametrize("prefix", ["m:", ""])
def test_a_matches_element_that_is_there_is_used(tmp_path: Path, prefix: str) -> None:
    declares = f'xmlns{":" + prefix[:-1] if prefix else ""}="{MATCHES}"'
    text = of_units2(
        f'<unit id="1"><{prefix}matches {declares}><{prefix}x/></{prefix}matches>'
        '<segment id="a"><source>One</source></segment></unit>'
    )
    new = filled(tmp_path, text, Filling(Text("Un"), "model", (match("Ones", "Uns"),)))
    (unit,) = fromstring(new).iter(f"{{{CORE2}}}unit")
    assert [one.tag for one in unit.iter()] == [
        f"{{{CORE2}}}unit",
        f"{{{MATCHES}}}matches",
        f"{{{MATCHES}}}x",
        f"{{{MATCHES}}}match",
        *[f"{{{CORE2}}}{name}" for name in ("source", "target", "segment", "source", "target")],
    ]


def test_version_2_needs_a_target_language_for_targets(tmp_path: Path) -> None:
    text = of_units2('<unit id="1"><segment><source>One</source></segment></unit>', "")
    file = open_translatable(saved(tmp_path, text))
    assert written(file, [None]).decode() == text
    with pytest.raises(FormatError, match="no target language"):
        written(file, [Filling(Text("Un"), "model")])
    file.tgt_lang = "fr"
    new = written(file, [Filling(Text("Un"), "model")]).decode()
    assert f'<xliff version="2.1" xmlns="{CORE2}" srcLang="en" trgLang="fr">' in new


# --- fillings


def test_another_number_of_fillings_is_an_error(tmp_path: Path) -> None:
    file = open_translatable(saved(tmp_path, file1([("One", None), ("Two", None)])))
    for fillings in ([None], [None] * 3, [Filling(Text("x"), "model")] * 3):
        with pytest.raises(ValueError, match="filling"):
            written(file, fillings)


def test_codes_that_a_unit_has_not_are_refused(tmp_path: Path) -> None:
    pairs: list[Pair] = [('<g id="1">One</g>', None), ("Two", '<x id="9"/>Deux')]
    file = open_translatable(saved(tmp_path, file1(pairs)))
    first, second = units_of(file)
    own, other = first.source.codes[0], Code(0, "standalone", '<x id="9"/>', "", "xliff1")
    assert file.refused(first, first.source) == ""
    assert "is not in its source" in file.refused(first, Text("Un", (other,)))
    assert "not closed" in file.refused(first, Text("Un", (own,)))
    assert file.refused(second, Text("Deux", (other,))) == ""  # of its old target
    assert file.refused(second, Text("Deux")) == ""
    with pytest.raises(ValueError, match="line 3: the code <g> is not closed"):
        written(file, [Filling(Text("Un", (own,)), "model"), None])


def test_the_namespace_says_the_version_where_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en" '
        'target-language="fr"><body><trans-unit id="1"><source>A permit.</source></trans-unit>'
        "</body></file></xliff>",
        encoding="utf-8",
    )
    file = open_translatable(path)
    assert [unit.source.plain for unit in units(file)] == ["A permit."]
    assert untouched(file) == path.read_bytes()
    path.write_text(path.read_text().replace(":1.2", ":3.0"))
    with pytest.raises(FormatError, match=r"XLIFF version '3.0'"):
        open_translatable(path)


def test_characters_that_a_translation_may_have_are_read(tmp_path: Path) -> None:
    widths = ('maxwidth="12" size-unit="char"', 'maxwidth="12"', 'maxwidth="-1" size-unit="char"')
    written = "".join(
        f'<trans-unit id="{n}" {width}><source>One</source></trans-unit>'
        for n, width in enumerate(widths)
    )
    file = open_translatable(saved(tmp_path, of_units(written)))
    # the unit is otherwise the pixel
    assert [unit.max_length for unit in units_of(file)] == [12, None, None]


def test_a_target_that_is_longer_than_its_unit_allows_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = "<source>Press it</source><target>Appuyez <ph id='1'/>ici</target>"
    units = "".join(
        f'<trans-unit id="{n}" maxwidth="{n}" size-unit="char">{target}</trans-unit>'
        for n in (10, 11)
    )
    path = saved(tmp_path, of_units(units))
    assert run(["check", "--only", "limit", str(path)]) == 1
    found = capsys.readouterr().out.splitlines()
    assert found == [f"{path}:1: segment 10: limit: 11 characters of 10"]  # codes do not count
