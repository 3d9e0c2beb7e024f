"""TSV: columns by name and by number, lines that end only where they should, and what was written
read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from any_segments import SEGMENTS
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.errors import FormatError, UsageError
from tmnmt.formats import Columns, Reader, parse_columns, read_memories, read_memory, write_tsv
from tmnmt.segments import Segment


def read(
    path: Path, columns: str = "", src: str = "en", tgt: str = "fr"
) -> tuple[list[Segment], Reader]:
    reader = read_memory(path, src, tgt, columns=parse_columns(columns) if columns else None)
    return list(reader), reader


def table(tmp_path: Path, text: str, name: str = "m.tsv") -> Path:
    (tmp_path / name).write_bytes(text.encode())
    return tmp_path / name


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("doc\tpos\tsrc\ttgt", ""),
        ("celex\tidx\ten\tfr", ""),
        ("Document\tPosition\tEN-GB\tfr_FR", ""),
        ("a\tb\tc\td", "src=c,tgt=d,doc=a,idx=b"),
        (None, "src=3,tgt=4,doc=1,pos=2"),
    ],
)
def test_columns_by_header_by_name_and_by_number(
    tmp_path: Path, header: str | None, columns: str
) -> None:
    head = "" if header is None else f"{header}\r\n"
    (segment,), _ = read(table(tmp_path, f"{head}d1\t7\tone\tun\r\n"), columns)
    assert segment == Segment("one", "un", "d1", 7, origin="m.tsv")


def test_without_a_document_the_file_is_one_and_lines_are_its_positions(tmp_path: Path) -> None:
    segments, _ = read(table(tmp_path, "a\tb\nc\td"), "src=2,tgt=1")
    assert [(s.src, s.document, s.position) for s in segments] == [("b", "m", 0), ("d", "m", 1)]


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    text = "src\ttgt\na\x0bb\tc\x85d\u2028e\rf\ng\th\r\n"
    segments, reader = read(table(tmp_path, text))
    assert [(s.src, s.tgt) for s in segments] == [("a b", "c d\u2028e f"), ("g", "h")]
    assert reader.report.cleaned == 2


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (
            "one\tun\n",
            "",
            r"the first line names no column for en \(one, un\); expected a header with src and "
            r"tgt",
        ),
        ("en\tde\n", "", "names no column for fr"),
        ("one\tun\n", "src=1,tgt=3", r"m\.tsv, line 1: 2 columns, but tgt=3 asked for"),
        ("en\tfr\n", "src=en,tgt=es", r"no column 'es' in the first line, which has: en, fr"),
        ("", "", "the file is empty"),
    ],
)
def test_a_wrong_column_is_one_clear_error(
    tmp_path: Path, text: str, columns: str, message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        read(table(tmp_path, text), columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("src=1,tgt=1", "the same column"),
        ("src=1", "src and tgt are both needed"),
        ("src=1,tgt=0", "needs a column counted from 1"),
        ("src=1,tgt", "needs a column counted from 1"),
        ("src=00,tgt=2", "'src=00' needs a column counted from 1, 1,000 at most"),
        ("src=\u0660,tgt=2", "needs a column counted from 1"),
        ("src=1001,tgt=2", "needs a column counted from 1"),
        ("src=" + "9" * 5000 + ",tgt=2", r"^.{1,400}$"),
        (
            "src=1,targett=2",
            r"unknown column 'targett'; did you mean target\? allowed: src, tgt, doc",
        ),
        ("foo", r"unknown column 'foo'; allowed: src, tgt, doc \(or document\), position"),
    ],
)
def test_columns_that_say_nothing_are_a_usage_error(columns: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_columns(columns)


def test_columns_are_counted_from_one() -> None:
    assert parse_columns("src=5, tgt=6, doc=1, idx=2") == Columns(
        src=5, tgt=6, document=1, position=2
    )
    assert parse_columns("src=01,tgt=1000") == Columns(src=1, tgt=1000)


def test_short_and_empty_lines_and_bad_numbers_are_skipped_with_their_reason(
    tmp_path: Path,
) -> None:
    _, reader = read(table(tmp_path, "src\ttgt\tpos\na\tb\t1\na\n\nc\td\tx\ne\tf\t2\n"))
    assert (reader.report.units, reader.report.retained) == (5, 2)
    assert str(reader.report.examples["malformed"][0]).endswith(
        "m.tsv, line 3: 1 column where 3 are needed"
    )
    assert reader.report.examples["malformed"][1].detail == "position 'x' is no whole number"
    assert reader.report.examples["empty"][0].line == 4


def test_one_undecodable_line_is_skipped_and_a_wrong_encoding_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.tsv"
    path.write_bytes(b"src\ttgt\na\tb\n\xe9\tc\nd\te\n")
    assert read(path)[1].report.examples["malformed"][0].line == 3
    path.write_bytes(b"src\ttgt\na\tb\n" + b"\xe9\tc\n" * 9)
    with pytest.raises(
        FormatError, match=r"not UTF-8 \(9 of its first 10 units cannot be decoded\)"
    ):
        read(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_says_the_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "m.tsv").write_text("src\ttgt\né\tü\n", encoding=encoding)
    assert read(tmp_path / "m.tsv")[0][0].src == "é"


@settings(max_examples=100)
@given(st.lists(SEGMENTS, max_size=4, unique=True))
def test_reading_what_was_written_gives_it_back(
    tmp_path_factory: pytest.TempPathFactory, segments: list[Segment]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.tsv"
    assert write_tsv(path, segments).segments == len(segments)
    assert list(read_memory(path, "en", "fr")) == segments


def test_a_tab_cannot_be_written_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"document 'd', position 3: its tgt has a tab or a line end"
    ):
        write_tsv(tmp_path / "m.tsv", [Segment("a", "b\tc", "d", 3)])
    assert list(tmp_path.iterdir()) == []


def test_columns_of_what_is_no_tsv_are_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "m.tmx").write_text('<tmx version="1.4"><header srclang="en"/><body/></tmx>')
    with pytest.raises(UsageError, match=r"m\.tmx: is no table"):
        read(tmp_path / "m.tmx", "src=1,tgt=2")
    both = [tmp_path / "m.tmx", table(tmp_path, "one\tun\n")]
    reader = read_memories(both, "en", "fr", columns=parse_columns("src=1,tgt=2"))
    assert len(list(reader)) == 1 and "m.tmx: is no table" in str(reader.report)


def test_a_document_is_known_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    name = "d" * 1000
    segments, _ = read(table(tmp_path, f"en\tfr\tdoc\na\tb\t{name}x\nc\td\t{name}y\n"))
    assert [(segment.document, segment.position) for segment in segments] == [(name, 0), (name, 1)]


def test_names_lose_control_characters(tmp_path: Path) -> None:
    (segment,), _ = read(table(tmp_path, "src\ttgt\tdoc\tuser\none\tun\td\x01\x0be\tm\u200be\n"))
    assert (segment.document, segment.user) == ("d e", "m\u200be")


@pytest.mark.parametrize(
    ("column", "cell", "why"),
    [
        ("properties", "[" * 100_000, "are no JSON list of pairs"),
        ("properties", '[["a", "\\ud800"]]', "are no JSON list of pairs: half of a surrogate pair"),
        ("pos", "9" * 5000, "has more than 18 digits"),
        ("pos", str(2**63), "has more than 18 digits"),
    ],
)
def test_what_an_index_cannot_hold_costs_its_line_alone(
    tmp_path: Path, column: str, cell: str, why: str
) -> None:
    segments, reader = read(
        table(tmp_path, f"src\ttgt\t{column}\none\tun\t{cell}\ntwo\tdeux\t\nthree\ttrois\t7\n")
    )
    first = reader.report.examples["malformed"][0]
    assert first.line == 2 and first.detail.endswith(why) and len(first.detail) < 100
    assert len(segments) == 1


QUOTED = [
    ('"two\nlines"\tdeux\nb\tc\n', 1),
    ('two\t"deux\n\nlignes"\nb\tc\n', 1),
    ('"say ""yes"""\toui\nb\tc\n', 1),
    ('"two\nlines"\t"deux\nlignes"\nb\tc\n', 2),
    ('"Come in.\t"Entrez.\nSit down."\tAsseyez-vous."\n', 0),  # a speech over two segments
    ('"Yes"\t"Oui"\n5" pipe\ttuyau de 5"\n', 0),
    ('a\t"b\nc\td\n', 0),
]


@pytest.mark.parametrize(("rows", "lines"), QUOTED)
def test_quoting_by_a_spreadsheet_is_warned_of(tmp_path: Path, rows: str, lines: int) -> None:
    _, reader = read(table(tmp_path, "src\ttgt\n" + rows))
    if not lines:
        assert reader.report.warnings == []
        return
    (warning,) = reader.report.warnings
    assert warning.partition(": ")[2].startswith(
        f"{lines} line{'s' * (lines > 1)} quoted as a spreadsheet quotes"
    )
    assert "(first: line 2)" in warning


def test_a_header_of_thousands_of_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"m\.tsv: 2,001 columns in the first line; at most 1,000 are read"
    ):
        read(table(tmp_path, "en\tfr" + "\t" * 1999 + "\n"))
