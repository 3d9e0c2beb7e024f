"""Tables as spreadsheets write them are memories: quoted cells, commas or semicolons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmnmt.errors import FormatError, UsageError
from tmnmt.formats import Columns, read_memory
from tmnmt.formats.report import EMPTY, MALFORMED
from tmnmt.segments import Segment


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("en,fr\nOne,Un\nTwo,Deux\n", "utf-8"),
        ("en;fr\r\nOne;Un\r\nTwo;Deux\r\n", "utf-8-sig"),
        ("de;fr;en\nEins;Un;One\nZwei;Deux;Two", "utf-16"),
        ('"en-GB","fr-CA"\n"One","Un"\n"Two","Deux"\n', "utf-8"),
        ("source\ttarget\nOne\tUn\nTwo\tDeux\n", "utf-8"),
    ],
)
def test_the_header_says_the_languages(tmp_path: Path, text: str, encoding: str) -> None:
    path = written(tmp_path / "terms.csv", text, encoding)
    segments = list(read_memory(path, "en", "fr"))
    assert [(s.src, s.tgt, s.document, s.position) for s in segments] == [
        ("One", "Un", "terms", 0),
        ("Two", "Deux", "terms", 1),
    ]


def test_quoted_cells_have_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    text = (
        'id,en,fr\na,"One, two","Un, ""deux"""\nb,"Three\nlines","Trois\nlignes"\nc,Four,Quatre\n'
    )
    reader = read_memory(written(tmp_path / "m.csv", text), "en", "fr")
    segments = list(reader)
    assert [(s.src, s.tgt) for s in segments] == [
        ("One, two", 'Un, "deux"'),
        ("Three lines", "Trois lignes"),
        ("Four", "Quatre"),
    ]
    assert [s.properties for s in segments] == [(("x-context", name),) for name in "abc"]


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    reader = read_memory(written(tmp_path / "m.csv", "en,fr\nOne\n,\nTwo,Deux\n,Un\n"), "en", "fr")
    assert [s.src for s in reader] == ["Two"]
    assert (reader.report.skipped[MALFORMED], reader.report.skipped[EMPTY]) == (1, 2)
    assert "m.csv, line 2" in str(reader.report)
    with pytest.raises(FormatError, match=r"m\.csv, line 2: the row that begins here"):
        list(read_memory(written(tmp_path / "m.csv", 'en,fr\n"One,Un\nTwo,Deux'), "en", "fr"))
    with pytest.raises(FormatError, match="names no column for en"):
        list(read_memory(written(tmp_path / "m.csv", "a,b\nOne,Un\n"), "en", "fr"))


def test_columns_can_be_told(tmp_path: Path) -> None:
    path = written(tmp_path / "m.csv", "x;One;Un\ny;Two;Deux\n")
    segments = list(read_memory(path, "en", "fr", columns=Columns(2, 3, 1)))
    assert [(s.src, s.document) for s in segments] == [("One", "x"), ("Two", "y")]
    with pytest.raises(UsageError, match="is no table"):
        tmx = '<tmx version="1.4"><header srclang="en"/><body/></tmx>'
        list(read_memory(written(tmp_path / "m.tmx", tmx), "en", "fr", columns=Columns(1, 2)))


def test_a_column_of_names_is_read_from_tsv_too(tmp_path: Path) -> None:
    (segment,) = read_memory(written(tmp_path / "m.tsv", "key\ten\tfr\nk\tOne\tUn\n"), "en", "fr")
    assert segment == Segment("One", "Un", "m", 0, 0, "m.tsv", properties=(("x-context", "k"),))


def test_a_list_of_terms_is_told_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a list of terms .*--terms"):
        list(read_memory(written(tmp_path / "m.tbx", "<martif/>"), "en", "fr"))
