"""Inline elements of TMX become codes and come back as they were, white space too."""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from pathlib import Path
from xml.etree.ElementTree import Element, canonicalize, fromstring, tostring
from xml.sax.saxutils import escape

import pytest
from coded_texts import TEXTS
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FORMATS

from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError
from tmnmt.formats import read_memory, write_tmx
from tmnmt.formats.clean import clean
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.segments import Segment

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def memory(folder: Path, *units: tuple[str, str]) -> Path:
    body = "".join(f"<tu>{tuv('en', src)}{tuv('fr', tgt)}</tu>" for src, tgt in units)
    path = folder / "m.tmx"
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{body}</body></tmx>')
    return path


def tuv(language: str, seg: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{seg}</seg></tuv>'


def source(folder: Path, seg: str) -> Text:
    (segment,) = read_memory(memory(folder, (seg, "x")), "en", "fr")
    return Text(segment.src, segment.src_codes)


BOLD = '<bpt i="1">&lt;b></bpt>'
BOLD_END = '<ept i="1">&lt;/b></ept>'


def test_a_span_a_standalone_code_and_half_a_span(tmp_path: Path) -> None:
    text = source(tmp_path, f'a {BOLD}b{BOLD_END} <ph x="1"/><it pos="end">&lt;/i></it>')
    assert text.plain == "a b"
    assert [(code.at, code.kind, code.pair, code.form) for code in text.codes] == [
        (2, "open", "1", "tmx"),
        (3, "close", "1", "tmx"),
        (3, "blank", "", ""),
        (3, "standalone", "", "tmx"),
        (3, "close", "", "tmx"),
    ]
    assert text.codes[0].markup == '<bpt i="1">&lt;b&gt;</bpt>'


def test_a_highlight_is_a_span_of_its_own_even_in_another(tmp_path: Path) -> None:
    text = source(tmp_path, 'see <hi type="term">this <hi>very</hi></hi> word')
    assert text.plain == "see this very word"
    assert [(code.at, code.kind, code.markup) for code in text.codes] == [
        (4, "open", '<hi type="term">'),
        (9, "open", "<hi>"),
        (13, "close", "</hi>"),
        (13, "close", "</hi>"),
    ]
    outer, inner, *closing = [code.pair for code in text.codes]
    assert closing == [inner, outer] and inner != outer


def test_a_line_break_covers_the_space_that_stands_for_it(tmp_path: Path) -> None:
    text = source(tmp_path, 'line<ph type="lb"/>break<sub>of</sub>')
    assert text.plain == "line breakof"
    assert (text.codes[0].at, text.codes[0].covers) == (4, 1)


def test_a_sub_flow_stays_in_the_markup(tmp_path: Path) -> None:
    text = source(tmp_path, "word<ph>&lt;fn><sub>A <bpt i='9'/>footnote<ept i='9'/>.</sub></ph>.")
    assert text.plain == "word."
    assert len(text.codes) == 1 and "footnote" in text.codes[0].markup


@pytest.mark.parametrize(
    ("raw", "plain", "codes"),
    [
        (" a ", "a", [(0, " ", 0), (1, " ", 0)]),
        ("a\n  b", "a b", [(1, "\n  ", 1)]),
        ("a\tb  c", "a b  c", [(1, "\t", 1)]),
        ("a\x0bb", "a b", []),
        ("a\x07b", "ab", []),
        ("\n", "", [(0, "\n", 0)]),
    ],
)
def test_white_space_that_cleaning_changes_is_a_blank(
    raw: str, plain: str, codes: list[tuple[int, str, int]]
) -> None:
    text, _ = clean_codes(Text(raw))
    assert text.plain == plain
    assert [(code.at, code.markup, code.covers) for code in text.codes] == codes
    assert {code.kind for code in text.codes} <= {"blank"}


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab \n\t\r\x0b\x01\x85\u2028\xa0"), max_size=12))
def test_cleaning_gives_the_same_text_as_without_codes_and_loses_no_white_space(raw: str) -> None:
    text, taken_out = clean_codes(Text(raw))
    assert (text.plain, taken_out) == clean(raw)
    if not set("\x0b\x01\x85") & set(raw):
        assert text.full_text() == raw


@given(TEXTS)
def test_cleaning_keeps_every_code_of_a_text_in_its_order(text: Text) -> None:
    cleaned, _ = clean_codes(text)
    assert not any(c in cleaned.plain for c in "\n\r\t\x00\x1f")
    kept = [c.markup for c in cleaned.codes if c.kind != "blank"]
    assert kept == [c.markup for c in text.codes if c.kind != "blank"]
    assert clean_codes(cleaned) == (cleaned, False) or cleaned.plain != clean(cleaned.plain)[0]


CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
INLINE: st.SearchStrategy[str] = st.recursive(
    st.text(CHARACTERS, max_size=5).map(escape)
    | st.sampled_from(["<ph/>", '<ph type="lb">&lt;br></ph>', "<ut>{\\b </ut>", " ", "\n  ", "\t"])
    | st.sampled_from(['<it pos="begin" x="4">&lt;i></it>', "<ph><sub>n <ph/> </sub></ph>"]),
    lambda inner: st.tuples(
        st.sampled_from([('<hi type="t">', "</hi>"), (BOLD, BOLD_END)]), st.lists(inner, max_size=3)
    ).map(lambda both: "".join(both[1]).join(both[0])),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.lists(INLINE, max_size=4).map("".join))
def test_any_segment_is_written_as_it_was_read(
    tmp_path_factory: pytest.TempPathFactory, seg: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = memory(folder, (f"{seg}w", f"w{seg}"))
    segments = list(read_memory(path, "en", "fr"))
    write_tmx(folder / "again.tmx", segments, "en", "fr")
    assert segs(folder / "again.tmx") == segs(path)
    again = list(read_memory(folder / "again.tmx", "en", "fr"))
    assert [(one.src, one.src_codes) for one in again] == [(s.src, s.src_codes) for s in segments]


def segs(path: Path) -> list[str]:
    """Every <seg> of a file in canonical XML, by a parser that is none of ours."""
    return [
        _canonical(seg)
        for tuv in fromstring(path.read_bytes()).iter("tuv")
        if _language(tuv) in ("en", "fr") and (seg := tuv.find("seg")) is not None
    ]


def _language(tuv: Element) -> str:
    return (tuv.get(XML_LANG) or tuv.get("lang") or "").lower().split("-")[0]


def _canonical(seg: Element) -> str:
    seg.tail = None
    return canonicalize(tostring(seg, encoding="unicode"))


def comes_back(path: Path, folder: Path) -> int:
    """Reads and writes a memory, compares it segment by segment, and counts its codes."""
    segments = list(read_memory(path, "en", "fr"))
    write_tmx(folder / "again.tmx", segments, "en", "fr")
    before, after = segs(path), segs(folder / "again.tmx")
    assert not Counter(after) - Counter(before) and len(after) == 2 * len(segments)
    return sum(code.form == "tmx" for one in segments for code in (*one.src_codes, *one.tgt_codes))


@pytest.mark.parametrize(
    ("name", "codes"),
    [("okapi-attributes.tmx", 12), ("okapi-trados.tmx", 30), ("okapi-utf16.tmx", 46)],
)
def test_a_real_file_is_the_same_to_an_xml_comparison(
    name: str, codes: int, tmp_path: Path
) -> None:
    assert comes_back(FORMATS / name, tmp_path) == codes


def test_codes_of_another_format_become_elements_with_their_markup(tmp_path: Path) -> None:
    codes = (
        Code(0, "open", '<g id="7">', "7", "xliff"),
        Code(1, "standalone", '<x id="8"/>', "", "xliff"),
        Code(1, "close", "</g>", "7", "xliff"),
        Code(2, "close", "</i>", "", "html"),
        Code(3, "placeholder", "%s", covers=2),
    )
    write_tmx(tmp_path / "m.tmx", [Segment("ab %s", "x", src_codes=codes)], "en", "fr")
    assert segs(tmp_path / "m.tmx")[0] == (
        '<seg><bpt i="1">&lt;g id="7"&gt;</bpt>a<ph type="xliff">&lt;x id="8"/&gt;</ph>'
        '<ept i="1">&lt;/g&gt;</ept>b<it pos="end">&lt;/i&gt;</it> %s</seg>'
    )


@pytest.mark.parametrize(
    "markup",
    ["</seg>", "<ph>", "</seg><seg>", "<ph>&nbsp;</ph>", "<ph>\x01</ph>", "<ph>\ud800</ph>"],
)
def test_a_code_that_is_no_xml_is_refused_with_its_place(tmp_path: Path, markup: str) -> None:
    broken = Segment("a", "b", "doc", 3, src_codes=(Code(0, "standalone", markup, form="tmx"),))
    with pytest.raises(FormatError, match="document 'doc', position 3: the markup of a code "):
        write_tmx(tmp_path / "m.tmx", [broken], "en", "fr")
    assert list(tmp_path.iterdir()) == []


def test_a_text_with_too_many_codes_is_too_long(tmp_path: Path) -> None:
    path = memory(tmp_path, ("a" + "<ph/>" * 1000, "b"), ("a" + "<ph/>" * 1001, "c"))
    reader = read_memory(path, "en", "fr")
    assert [segment.tgt for segment in reader] == ["b"]
    assert reader.report.skipped["too long"] == 1
    assert "more than 1,000 codes" in str(reader.report)


def test_an_entity_in_a_code_is_never_expanded(tmp_path: Path) -> None:
    path = memory(tmp_path, ("a<ph>&e;</ph>", "b"), ("c", "d"))
    doctype = '<!DOCTYPE tmx [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    path.write_text(doctype + path.read_text())
    assert [segment.src for segment in read_memory(path, "en", "fr")] == ["c"]


@pytest.mark.data
def test_every_real_file_is_the_same_to_an_xml_comparison(tmp_path: Path) -> None:
    assert "TMNMT_DATA" in os.environ, "set it to a folder with cat-files/okapi.zip"
    codes = {}
    with zipfile.ZipFile(Path(os.environ["TMNMT_DATA"]) / "cat-files/okapi.zip") as files:
        for name in files.namelist():
            path = tmp_path / "one.tmx"
            path.write_bytes(files.read(name))
            if name.endswith(".tmx") and {"en", "fr"} <= languages(path):
                codes[name] = comes_back(path, tmp_path)
    assert (len(codes), sum(codes.values())) == (33, 592)


def languages(path: Path) -> set[str]:
    return {_language(tuv) for tuv in fromstring(path.read_bytes()).iter("tuv")}
