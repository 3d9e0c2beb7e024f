"""TMX: real files read against independent parsers, every rule on a small unit, and what was
written read again."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from any_segments import SEGMENTS
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FORMATS

from tmnmt.errors import FormatError
from tmnmt.formats import Reader, read_memories, read_memory, write_tmx
from tmnmt.segments import Segment

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def memory(
    tmp_path: Path, body: str, head: str = '<header srclang="en"/>', name: str = "m.tmx"
) -> Path:
    path = tmp_path / name
    path.write_text(
        f'<?xml version="1.0"?>\n<tmx version="1.4">{head}<body>\n{body}\n</body></tmx>',
        encoding="utf-8",
    )
    return path


def unit(src: str, tgt: str, inside: str = "", attributes: str = "") -> str:
    return f"<tu{attributes}>{inside}{tuv('en', src)}{tuv('fr', tgt)}</tu>"


def tuv(code: str, text: str) -> str:
    return f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>'


def read(path: Path, src: str = "en", tgt: str = "fr") -> tuple[list[Segment], Reader]:
    reader = read_memory(path, src, tgt)
    return list(reader), reader


def one(tmp_path: Path, body: str, head: str = '<header srclang="en"/>') -> Segment:
    segments, reader = read(memory(tmp_path, body, head))
    assert reader.report.units == 1
    return segments[0]


# --- real files


def oracle(data: bytes, src: str, tgt: str) -> tuple[int, int, int]:
    """Units, units with both languages, and those of them with text on both sides, by expat and
    nothing of ours."""
    units = both = full = 0
    for tu in ET.fromstring(data).iter("tu"):
        units += 1
        text: dict[str, str] = {}
        for tuv in tu.iter("tuv"):
            code = (tuv.get(XML_LANG) or tuv.get("lang") or "").lower()
            seg = tuv.find("seg")
            for ours in (src, tgt):
                if seg is not None and code.split("-")[0] == ours:
                    text.setdefault(ours, "".join(seg.itertext()).strip())
        both += len(text) == 2
        full += len(text) == 2 and all(text.values())
    return units, both, full


def agrees(path: Path, data: bytes, src: str, tgt: str) -> int:
    """Reads `path`, compares the counts with the oracle's, and gives the number of units."""
    units, both, full = oracle(data, src, tgt)
    if not both:
        with pytest.raises(FormatError, match="languages in the file: "):
            read(path, src, tgt)
        return units
    segments, reader = read(path, src, tgt)
    report = reader.report
    assert (report.units, report.retained + report.total_skipped) == (units, units)
    assert report.skipped["wrong language"] == units - both
    assert len(segments) == report.retained == full
    assert report.skipped["malformed"] == report.skipped["duplicate"] == 0
    return units


@pytest.mark.parametrize("name", sorted(path.name for path in FORMATS.glob("*.tmx")))
@pytest.mark.parametrize("languages", [("en", "fr"), ("fr", "en"), ("en", "es")])
def test_units_of_real_files_are_those_an_independent_parser_finds(
    name: str, languages: tuple[str, str]
) -> None:
    agrees(FORMATS / name, (FORMATS / name).read_bytes(), *languages)


def real(archive: str) -> Path:
    """An archive that does not ship, in the folder that TMNMT_DATA names."""
    assert "TMNMT_DATA" in os.environ, (
        "set it to a folder with cat-files/okapi.zip and dgt-tm/dgt-tm.tmx.zip"
    )
    return Path(os.environ["TMNMT_DATA"]) / archive


@pytest.mark.data
@pytest.mark.parametrize("archive", ["cat-files/okapi.zip", "dgt-tm/dgt-tm.tmx.zip"])
@pytest.mark.parametrize("languages", [("en", "fr"), ("fr", "de"), ("mt", "bg")])
def test_every_real_file_agrees_with_an_independent_parser(
    archive: str, languages: tuple[str, str], tmp_path: Path
) -> None:
    units = 0
    with zipfile.ZipFile(real(archive)) as files:
        for name in files.namelist():
            if name.endswith(".tmx"):
                (tmp_path / "one.tmx").write_bytes(files.read(name))
                units += agrees(tmp_path / "one.tmx", files.read(name), *languages)
    assert units == {"cat-files/okapi.zip": 281, "dgt-tm/dgt-tm.tmx.zip": 1793}[archive]


@pytest.mark.data
@pytest.mark.parametrize(
    ("archive", "texts"), [("cat-files/okapi.zip", 56), ("dgt-tm/dgt-tm.tmx.zip", 0)]
)
def test_translate_toolkit_finds_the_same_units_and_texts(archive: str, texts: int) -> None:
    from translate.storage.tmx import tmxfile

    reader = read_memory(real(archive), "en", "fr")
    ours = {segment.src for segment in reader}
    count, compared = 0, 0
    with zipfile.ZipFile(real(archive)) as files:
        for name in files.namelist():
            if name.endswith(".tmx"):
                units = tmxfile.parsestring(files.read(name)).units
                count += len(units)
                if name.endswith(
                    ("mytm.tmx", "ImportTest1C.tmx")
                ):  # elsewhere it takes native code for text
                    assert {
                        re.sub(r"</?[a-z]\w*/?>", "", str(unit.source)).strip() for unit in units
                    } <= ours
                    compared += len(units)
    assert (count, compared) == (reader.report.units, texts)


def test_both_documents_of_a_zip_are_read_each_as_itself() -> None:
    segments, reader = read(FORMATS / "dgt-tm-two.zip")
    assert (reader.report.units, reader.report.files) == (44, 2)
    assert {segment.document for segment in segments} == {"22019D0391", "22019D0556"}
    assert segments[0].origin == "22019D0391.tmx"


def test_dates_user_notes_and_properties_of_a_real_unit() -> None:
    (segment,), _ = read(FORMATS / "okapi-attributes.tmx")
    assert (segment.created, segment.user) == ("2002-05-23T09:12:00Z", "ys")
    assert ("note", "Text of tu note 1") in segment.properties
    assert segment.properties[0] == ("tuid", "tu001")
    assert segment.src == "Click  to start."  # <ph> with a <sub> flow between the blanks


def test_properties_name_the_document() -> None:
    segments, _ = read(FORMATS / "okapi-windows-1252.tmx")
    assert segments[2].tgt == "Une entrée dans la MT (file1, no group)"
    assert [segment.document for segment in segments[4:8]] == [
        "file1",
        "file2",
        "file2",
        "okapi-windows-1252",
    ]
    assert [segment.position for segment in segments[:3]] == [0, 1, 2]


def test_languages_that_are_not_there_are_an_error_that_names_those_that_are() -> None:
    with pytest.raises(FormatError, match=r"both en and fr; languages in the file: en$"):
        read(FORMATS / "okapi-english-only.tmx")


# --- languages


@pytest.mark.parametrize(
    ("wanted", "codes", "found"),
    [
        ("fr", ["FR-01"], 0),
        ("fr", ["fr_CA"], 0),
        ("fr", ["fr-CA", "fr"], 1),
        ("fr-CA", ["fr", "fr-ca"], 1),
        ("fr-CA", ["fr"], 0),
        ("fr", ["fr-be", "fr-ca"], 0),
        ("fr", ["fr", "fr"], 0),
    ],
)
def test_the_exact_code_goes_before_a_region_and_the_first_before_the_rest(
    tmp_path: Path, wanted: str, codes: list[str], found: int
) -> None:
    targets = "".join(f'<tuv lang="{code}"><seg>{at}</seg></tuv>' for at, code in enumerate(codes))
    path = memory(tmp_path, f'<tu><tuv xml:lang="EN"><seg>a</seg></tuv>{targets}</tu>')
    assert read(path, "en", wanted)[0][0].tgt == str(found)


def test_the_source_language_of_the_file_goes_before_another_region(tmp_path: Path) -> None:
    languages = tuv("en-us", "color") + tuv("en-gb", "colour") + tuv("fr", "c")
    assert one(tmp_path, f"<tu>{languages}</tu>", '<header srclang="EN-GB"/>').src == "colour"


def test_another_region_than_the_one_asked_for_is_a_wrong_language(tmp_path: Path) -> None:
    path = memory(
        tmp_path,
        unit("a", "b")
        + '<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="fr-be"><seg>b</seg></tuv></tu>',
    )
    _, reader = read(path, "en", "fr-ca")
    assert reader.report.skipped["wrong language"] == 1
    assert "no fr-ca; the unit has: en, fr-be" in str(reader.report)


# --- inline elements


@pytest.mark.parametrize(
    ("seg", "text"),
    [
        ('un<bpt i="1">&lt;b></bpt>believ<ept i="1">&lt;/b></ept>able', "unbelievable"),
        ('a <it pos="begin">&lt;i></it>b', "a b"),
        ("see <hi>this <hi>very</hi> word</hi>.", "see this very word."),
        ('1.<ph x="1">\\t</ph>Confirm', "1.Confirm"),
        ("line<ph>&lt;br></ph>break", "line break"),
        ('end.<ph type="lb">&lt;br></ph>Next', "end. Next"),
        ("word<ph>&lt;fn><sub>A footnote.</sub></ph>.", "word."),
        ("a<!-- not text -->b<![CDATA[ </tu> & ]]>c", "ab </tu> & c"),
        ("<ut>{\\b </ut>bold<ut>}</ut> text", "bold text"),
        ("two\n    lines\tand a tab", "two lines and a tab"),
        ("a\x85b\u2028c\x0bd", "a b\u2028c d"),
        ("a&#x1F;b&#0;c", "a b c"),
    ],
)
def test_inline_content(tmp_path: Path, seg: str, text: str) -> None:
    assert one(tmp_path, unit(seg, "b")).src == text


# --- damage


def test_a_broken_unit_costs_only_itself(tmp_path: Path) -> None:
    units = [
        unit("one", "un"),
        unit("a & b", "x"),
        unit("two", "deux"),
        "<tu><tuv>",
        unit("three", "trois"),
        "<tu/>",
    ]
    segments, reader = read(memory(tmp_path, "\n".join(units)))
    assert [segment.src for segment in segments] == ["one", "two", "three"]
    assert (reader.report.units, reader.report.skipped["malformed"]) == (6, 2)
    assert [skipped.line for skipped in reader.report.examples["malformed"]] == [4, 6]
    assert "no end tag before the next one starts" in str(reader.report)


def test_illegal_characters_are_taken_out_and_counted(tmp_path: Path) -> None:
    segments, reader = read(memory(tmp_path, unit("a\x00b &#x8; c", "d") + unit("e", "f")))
    assert [segment.src for segment in segments] == ["a b   c", "e"]
    assert reader.report.cleaned == 1


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    doctype = '<!DOCTYPE tmx SYSTEM "http://127.0.0.1:1/tmx14.dtd" [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    path.write_text(f"{doctype}<tmx><body>{unit('a &e;', 'b')}{unit('c', 'd')}</body></tmx>")
    segments, reader = read(path)
    assert [segment.src for segment in segments] == ["c"]
    assert "Entity 'e' not defined" in str(reader.report)


def test_a_file_cut_off_keeps_its_whole_units_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text(f"<tmx><header/><body>{unit('a', 'b')}<tu><tuv")
    segments, reader = read(path)
    assert len(segments) == 1
    assert "the file ends inside it" in str(reader.report)
    assert "ends without </tmx>" in str(reader.report)


def test_prefixes_declared_on_the_root_are_known_in_units(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text(f'<tmx xmlns:mq="http://memoq"><body>{unit("a", "b", "<mq:x/>")}</body></tmx>')
    assert len(read(path)[0]) == 1


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    text = f'<?xml version="1.0" encoding="{declared}"?><tmx><body>{unit("é", "ü")}</body></tmx>'
    (tmp_path / "m.tmx").write_bytes(text.encode(encoding))
    assert read(tmp_path / "m.tmx")[0][0].tgt == "ü"


def test_a_few_undecodable_units_are_skipped_but_a_wrong_encoding_is_an_error(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.tmx"
    good, bad = unit("a", "b").encode(), unit("é", "ü").encode("latin-1")
    path.write_bytes(b"<tmx><body>" + good * 3 + bad + b"</body></tmx>")
    assert read(path)[1].report.skipped["malformed"] == 1
    path.write_bytes(b"<tmx><body>" + good * 3 + bad * 20 + b"</body></tmx>")
    with pytest.raises(FormatError, match=r"m\.tmx: not UTF-8 \(11 of its first 14 units"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"hello\n", "no TMX: it does not begin as XML"),
        (b"<html><body/></html>", "no TMX: its root element is <html>"),
        (b'<?xml version="1.0" encoding="klingon"?><tmx/>', "unknown encoding 'klingon'"),
    ],
)
def test_a_file_that_is_no_tmx_is_one_clear_error(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "m.tmx").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "m.tmx")


# --- skipping


def test_empty_long_and_duplicate_units_are_counted(tmp_path: Path) -> None:
    place = '<prop type="x-document">d</prop><prop type="x-position">7</prop>'
    units = [
        unit("a", "b", place),
        unit("a", "b", place),
        unit(" ", "b"),
        unit("w " * 1001, "b"),
        unit("w " * 1000, "b"),
    ]
    segments, reader = read(memory(tmp_path, "".join(units)))
    assert [segment.position for segment in segments] == [7, 2]
    skipped = {reason: n for reason, n in reader.report.skipped.items() if n}
    assert skipped == {"duplicate": 1, "empty": 1, "too long": 1}


def test_the_same_file_twice_is_all_duplicates(tmp_path: Path) -> None:
    path = memory(tmp_path, unit("a", "b") + unit("a", "b"))
    reader = read_memories([path, path], "en", "fr")
    assert len(list(reader)) == 2  # two positions
    assert reader.report.skipped["duplicate"] == 2


def test_progress_tells_every_unit_once(tmp_path: Path) -> None:
    told: list[int] = []
    path = memory(tmp_path, unit("a", "b") * 1234)
    reader = read_memory(path, "en", "fr", progress=lambda units, _: told.append(units))
    assert len(list(reader)) == sum(told) == 1234


# --- writing


@settings(max_examples=150)
@given(st.lists(SEGMENTS, max_size=4, unique=True))
def test_reading_what_was_written_gives_it_back(
    tmp_path_factory: pytest.TempPathFactory, segments: list[Segment]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.tmx"
    assert write_tmx(path, segments, "en", "fr").segments == len(segments)
    assert list(read_memory(path, "en", "fr")) == segments


@pytest.mark.parametrize("name", ["m.tmx", "m.tmx.gz", "m.tmx.xz"])
def test_packed_by_the_name_and_the_same_bytes_each_time(tmp_path: Path, name: str) -> None:
    segments = [Segment("a", "b", "d", 0, origin="o")]
    write_tmx(tmp_path / name, segments, "en", "fr")
    before = (tmp_path / name).read_bytes()
    write_tmx(tmp_path / name, segments, "en", "fr")
    assert (tmp_path / name).read_bytes() == before
    assert read(tmp_path / name)[0] == segments


def test_what_xml_cannot_hold_is_taken_out_and_counted(tmp_path: Path) -> None:
    written = write_tmx(tmp_path / "m.tmx", [Segment("a\x01b", "c\ud800")], "en", "fr")
    assert written.cleaned == 2
    assert [(s.src, s.tgt) for s in read(tmp_path / "m.tmx")[0]] == [("ab", "c")]


def test_a_failed_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text("old")
    with pytest.raises(FormatError, match="'yesterday' is no date"):
        write_tmx(path, [Segment("a", "b"), Segment("a", "b", created="yesterday")], "en", "fr")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_unit_that_never_ends_is_given_up_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.formats.elements.MAX_BYTES", 3_000_000)
    endless = "<tu>" + "<x>" * 1_100_000
    segments, reader = read(memory(tmp_path, unit("a", "b") + endless + unit("c", "d")))
    assert [segment.src for segment in segments] == ["a", "c"]
    assert "m.tmx, line 3: " in str(reader.report.examples["malformed"][0])


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "shift_jis"])
def test_utf_8_that_is_declared_as_another_encoding_is_warned_of(
    tmp_path: Path, encoding: str
) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><tmx><body>{unit("é", "ü")}</body></tmx>'
    (tmp_path / "m.tmx").write_bytes(text.encode())
    assert "m.tmx: declared as " in str(read(tmp_path / "m.tmx")[1].report)
    (tmp_path / "m.tmx").write_bytes(text.encode(encoding, "xmlcharrefreplace"))
    assert read(tmp_path / "m.tmx")[1].report.warnings == []


def test_a_position_that_no_index_can_hold_is_passed_over(tmp_path: Path) -> None:
    place = f'<prop type="x-position">{"9" * 5000}</prop>'
    assert one(tmp_path, unit("a", "b", place)).position == 0


def test_a_document_is_known_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    name = "d" * 1000
    body = "".join(unit(text, "b", f'<prop type="x-document">{name}{text}</prop>') for text in "xy")
    segments, _ = read(memory(tmp_path, body))
    assert [(segment.document, segment.position) for segment in segments] == [(name, 0), (name, 1)]


def test_messages_cut_what_a_file_makes_long_and_take_out_line_ends(tmp_path: Path) -> None:
    code = "x" * 5000 + "&#10;&#27;[31m"
    path = memory(
        tmp_path, f'<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="{code}"><seg>b</seg></tuv></tu>'
    )
    with pytest.raises(FormatError) as raised:
        read(path)
    assert len(str(raised.value)) < 400 and str(raised.value).isprintable()
