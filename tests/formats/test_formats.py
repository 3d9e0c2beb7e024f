"""Pairs of plain files, JRC-Acquis alignments, packed files and archives, and plain text to
translate."""

from __future__ import annotations

import gzip
import io
import logging
import lzma
import os
import random
import re
import zipfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FORMATS

from tmnmt.errors import FormatError
from tmnmt.formats import Reader, read_memories, read_memory
from tmnmt.formats.dates import iso_utc
from tmnmt.formats.duplicates import PairHashes
from tmnmt.formats.text import documents, read_document_lines
from tmnmt.progress import Progress
from tmnmt.segments import Segment


def in_memory(content: bytes) -> io.BufferedReader:
    """A stream of these bytes, which is no pipe."""
    return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(content)))


def read(path: Path, src: str = "en", tgt: str = "fr") -> tuple[list[Segment], Reader]:
    reader = read_memory(path, src, tgt)
    return list(reader), reader


# --- pairs of plain files


def test_a_prefix_means_its_two_files_packed_or_not(tmp_path: Path) -> None:
    (tmp_path / "news.en").write_text("one\ntwo\u2028x\n\nfour")
    (tmp_path / "news.fr.gz").write_bytes(gzip.compress(b"un\r\ndeux\n\nquatre\n"))
    segments, reader = read(tmp_path / "news")
    assert [(s.src, s.tgt, s.document, s.position) for s in segments] == [
        ("one", "un", "news", 0),
        ("two\u2028x", "deux", "news", 1),
        ("four", "quatre", "news", 3),
    ]
    assert reader.report.skipped["empty"] == 1


def test_different_numbers_of_lines_are_an_error_that_says_both(tmp_path: Path) -> None:
    (tmp_path / "p.en").write_text("1\n2\n3\n")
    (tmp_path / "p.fr").write_text("1\n")
    with pytest.raises(FormatError, match=r"p\.en has 3 lines and .*p\.fr 1:"):
        read(tmp_path / "p")


def test_one_file_of_a_pair_and_none_at_all(tmp_path: Path) -> None:
    (tmp_path / "p.en").write_text("1\n")
    with pytest.raises(
        FormatError, match=r"p\.fr: no such file; a pair of plain files needs both languages"
    ):
        read(tmp_path / "p")
    with pytest.raises(FormatError, match=r"q: no such file"):
        read(tmp_path / "q")


OPUS_IDS = "en/1970/a-en.xml.gz\tfr/1970/a-fr.xml.gz\t1\t1\n" * 2 + "en/b.xml\tfr/b.xml\t1\t1 2\n"


def test_ids_beside_a_pair_name_the_documents(tmp_path: Path) -> None:
    (tmp_path / "p.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "p.fr").write_text("un\ndeux\ntrois\n")
    (tmp_path / "p.ids.gz").write_bytes(gzip.compress(OPUS_IDS.encode()))
    segments, _ = read(tmp_path / "p")
    assert [(s.src, s.document, s.position) for s in segments] == [
        ("one", "1970/a-en", 0),
        ("two", "1970/a-en", 1),
        ("three", "b", 0),
    ]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (OPUS_IDS.split("\n")[0], r"p\.ids has 1 line and .*p\.en 2"),
        (OPUS_IDS, r"p\.ids has 3 lines and .*p\.en 2"),
    ],
)
def test_ids_of_another_number_of_lines_are_an_error(
    tmp_path: Path, ids: str, message: str
) -> None:
    (tmp_path / "p.en").write_text("one\ntwo\n")
    (tmp_path / "p.fr").write_text("un\ndeux\n")
    (tmp_path / "p.ids").write_text(ids)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "p")


def test_ids_in_an_archive_are_read_with_their_pair(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        for name, text in (
            ("p.ids", OPUS_IDS),
            ("p.fr", "un\ndeux\ntrois\n"),
            ("p.en", "one\ntwo\nthree\n"),
        ):
            archive.writestr(name, text)
    segments, reader = read(tmp_path / "m.zip")
    assert [s.document for s in segments] == ["1970/a-en", "1970/a-en", "b"]
    assert reader.report.warnings == []


# --- JRC-Acquis


@pytest.mark.parametrize(("src", "tgt"), [("en", "fr"), ("fr", "en"), ("en-GB", "fr-FR")])
def test_jrc_acquis_is_read_in_either_direction(src: str, tgt: str) -> None:
    segments, reader = read(FORMATS / "jrc-acquis-excerpt.en-fr.xml.gz", src, tgt)
    assert (reader.report.units, reader.report.retained) == (194, 194)
    texts = {"en": "THE SWISS FEDERAL COUNCIL,", "fr": "LE CONSEIL FÉDÉRAL SUISSE,"}
    assert (segments[3].src, segments[3].tgt) == (texts[src[:2]], texts[tgt[:2]])
    assert [segments[at].document for at in (0, -1)] == ["21970A0720(01)", "21972A0722(03)"]
    assert segments[3].position == 3


def test_jrc_acquis_joins_paragraphs_and_resolves_its_escapes() -> None:
    segments, _ = read(FORMATS / "jrc-acquis-excerpt.en-fr.xml.gz")
    assert 'the description "Swiss" for watches' in segments[7].src
    assert any(
        s.tgt == "La commission mixte se saisit de ce rapport dès la réunion suivante."
        for s in segments
    )


def test_jrc_acquis_of_other_languages_is_an_error() -> None:
    with pytest.raises(FormatError, match=r"no de; languages in the file: en, fr"):
        read(FORMATS / "jrc-acquis-excerpt.en-fr.xml.gz", "en", "de")


def test_broken_links_and_links_without_text_are_skipped(tmp_path: Path) -> None:
    links = (
        b"<link><s1>a</s1><s2>b</s2></link><link><s1>a & b</s1></link>\n"
        b"<link/><link><s1>\xe9</s1></link><link><s1>c"
    )
    (tmp_path / "m.xml").write_bytes(b'<TEI.2 select="en fr"><div n="&quot;x">' + links)
    segments, reader = read(tmp_path / "m.xml")
    assert segments == [Segment("a", "b", '"x', 0, origin="m.xml")]
    assert (reader.report.units, reader.report.skipped["malformed"]) == (5, 4)
    assert reader.report.examples["malformed"][1].detail.startswith("a link without text")


# --- packed files and archives

TMX = (
    b'<tmx><body><tu><tuv lang="en"><seg>a</seg></tuv><tuv '
    b'lang="fr"><seg>b</seg></tuv></tu></body></tmx>'
)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packing_is_seen_in_the_bytes_not_in_the_name(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    (tmp_path / "m.tmx").write_bytes(pack(TMX))
    assert read(tmp_path / "m.tmx")[0] == [Segment("a", "b", "m", 0, origin="m.tmx")]


def test_an_archive_gives_each_memory_in_it_and_names_the_rest(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/one.tmx", TMX)
        archive.writestr("two.tsv.gz", gzip.compress(b"en\tfr\nc\td\n"))
        archive.writestr("three.fr", "f\n")
        archive.writestr("three.en", "e\n")
        archive.writestr("README", "hello")
        archive.writestr("config.xml", "<config/>")
        archive.writestr("page.tmx", "<html/>")
        archive.writestr("nothing.tmx", "")
        archive.writestr("german.tsv", "en\tde\nc\td\n")
    segments, reader = read(tmp_path / "m.zip")
    assert [(s.src, s.tgt, s.document) for s in segments] == [
        ("a", "b", "one"),
        ("c", "d", "two"),
        ("e", "f", "three"),
    ]
    assert reader.report.files == 3
    assert (
        "5 members passed over, no memories: README, config.xml (no memory that can be read: its "
        "root" in str(reader.report)
    )


def test_an_archive_without_a_memory_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        archive.writestr("README", "hello")
    with pytest.raises(
        FormatError,
        match=r"m\.zip: no memory among its 1 member \(README\); allowed: TSV, CSV, TMX",
    ):
        read(tmp_path / "m.zip")


def test_damaged_packing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.tmx.gz").write_bytes(gzip.compress(TMX * 100)[:-30])
    with pytest.raises(FormatError, match="damaged, cannot be read on"):
        read(tmp_path / "m.tmx.gz")
    (tmp_path / "m.zip").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(FormatError, match="a damaged zip archive"):
        read(tmp_path / "m.zip")


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_a_decompression_bomb_is_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.formats.stream.ALWAYS_ALLOWED", 1 << 20)
    bomb = b"src\ttgt\n" + (b"a" * 1000 + b"\tb\n") * 4000
    path = tmp_path / f"m.tsv.{kind}"
    if kind == "gz":
        path.write_bytes(gzip.compress(bomb))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("m.tsv", bomb)
    with pytest.raises(FormatError, match="refused as a decompression bomb"):
        read(path)


def test_files_of_no_format_are_errors(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("only words\n")
    with pytest.raises(FormatError, match="no memory that can be read"):
        read(tmp_path / "m.txt")
    with pytest.raises(FormatError, match="a folder, where a file is wanted"):
        read(tmp_path)


# --- small parts


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("20020523T091200Z", "2002-05-23T09:12:00Z"),
        ("2002-05-23", "2002-05-23T00:00:00Z"),
        ("2002-05-23 09:12:00.25+02:00", "2002-05-23T07:12:00Z"),
        ("20021323T091200Z", None),
        ("soon", None),
    ],
)
def test_dates(text: str, date: str | None) -> None:
    assert iso_utc(text) == date


def test_seen_knows_what_it_was_told_as_it_grows() -> None:
    seen = PairHashes()
    segments = [Segment(str(n), "x", "d", n) for n in range(10_000)]
    assert all(seen.add(segment) for segment in segments)
    assert not any(seen.add(segment) for segment in segments)
    assert len(seen) == 10_000


# --- plain text to translate


def test_lines_of_a_document_are_as_many_as_it_has() -> None:
    raw = in_memory(b"\xef\xbb\xbfone\r\ntwo\x0bx\x85\n\n\xc2\x85\nlast")
    assert list(read_document_lines(raw)) == ["one", "two\x0bx\ufffd", "", "\x85", "last"]


def test_lines_of_a_pipe_are_given_before_more_are_waited_for() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream:
        text = read_document_lines(stream)
        assert text.trickles
        come = text.as_they_come(100)
        os.write(write, "\ufeffone\r\ntwo\n\nth".encode())
        assert next(come) == ["one", "two", ""]
        os.write(write, "re\u00e9".encode()[:-1])
        os.write(write, b"\xa9\xff\n")
        assert next(come) == ["thre\u00e9\ufffd"]
        os.write(write, b"\0last")
        os.close(write)
        assert list(come) == [["last"]]
    assert (text.count, text.undecodable, text.control) == (5, 1, 1)


def test_what_has_come_of_a_pipe_is_given_together_but_no_more_than_wanted() -> None:
    read, write = os.pipe()
    os.write(write, b"line\n" * 5000)
    os.close(write)
    with open(read, "rb", 1 << 13) as stream:  # noqa: PTH123  a descriptor
        assert isinstance(stream, io.BufferedReader)
        bunches = list(read_document_lines(stream).as_they_come(1))
        assert [*chain(*bunches)] == ["line"] * 5000 and len(
            bunches
        ) == 2  # what is buffered first, then the pipe


def test_a_file_and_a_stream_in_memory_do_not_trickle() -> None:
    assert not read_document_lines(FORMATS / "jrc-acquis-excerpt.en-fr.xml.gz").trickles
    assert not read_document_lines(in_memory(b"a\n")).trickles
    with Path(__file__).open("rb") as stream:
        assert not read_document_lines(stream).trickles


def test_damage_in_a_document_is_replaced_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "d.txt").write_bytes(b"good\n\xff bad \xfe\nnul\x00nul\n\xfd\n")
    with caplog.at_level(logging.WARNING):
        lines = read_document_lines(tmp_path / "d.txt")
        assert list(lines) == ["good", "\ufffd bad \ufffd", "nulnul", "\ufffd"]
    assert (lines.undecodable, lines.control) == (2, 1)
    assert [record.message.split("d.txt: ")[1] for record in caplog.records] == [
        "2 lines had bytes that are not UTF-8, replaced by U+FFFD (first: line 2)",
        "1 line had NUL bytes or other control characters, taken out (first: line 3)",
    ]


def test_an_empty_file_has_no_lines_as_an_empty_stream_has_none(tmp_path: Path) -> None:
    (tmp_path / "d.txt").touch()
    assert list(read_document_lines(tmp_path / "d.txt")) == []
    assert list(read_document_lines(in_memory(b""))) == []


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("d.doc", b"\xd0\xcf\x11\xe0" + bytes(20), "an office document"),
        ("d.rtf", b"{\\rtf1 text}", "RTF"),
        ("d.pdf", b"%PDF-1.7", "PDF: `pdftotext` reads it"),
        ("d.txt", b'<TEI.2 select="en fr">', "a memory (JRC-Acquis)"),
        ("d.xlf", b'<xliff version="1.2">', "XML, <xliff>: a CAT tool"),
        ("d.html", b"<!DOCTYPE html>\n<html>", "XML, <html>"),
        ("d.tab.gz", gzip.compress(b"a\tb\n"), "a memory (TSV)"),
        ("d.txt", b"Source\tTarget\na\tb\n", "a memory (TSV)"),
        ("d.po", b"# Titel\n", "PO: `tmnmt translate` fills"),
        (
            "d.txt",
            b'# Titel\nmsgid ""\nmsgstr ""\n',
            "gettext messages, which a PO file has: `tmnmt translate` fills",
        ),
        ("d.json.gz", gzip.compress(b"[]"), "JSON: `tmnmt translate` fills"),
        ("d.txt", b'{"a": "b",\n', "JSON: `tmnmt translate` fills"),
        ("d.txt", b'[[\n  {"a\\"": "b",\n', "JSON: `tmnmt translate` fills"),
        ("d.txt", b'["a", "b"]\n', "JSON: `tmnmt translate` fills"),
        ("d.srt", b"1\n", "subtitles: `tmnmt translate` fills such a file"),
        (
            "d.txt",
            b"\xef\xbb\xbf1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\n",
            "subtitles with their times",
        ),
        ("d.txt", b"WEBVTT\n\n00:01.000 --> 00:02.000\n", "subtitles with their times"),
        ("d.HTM", b"<p>Hello</p>\n", "HTML: `tmnmt translate` fills"),
        ("d.properties", b"a = b\n", "Java properties: `tmnmt translate` fills"),
        (
            "d.txt",
            "UTF-16 without a mark".encode("utf-16-le"),
            "binary data (UTF-16 needs a byte-order mark)",
        ),
    ],
)
def test_what_is_no_plain_text_is_named_with_what_reads_it(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        FormatError, match=rf"{re.escape(name)}: no plain text, but {re.escape(why)}"
    ):
        list(read_document_lines(tmp_path / name))


@pytest.mark.parametrize(
    "text",
    [
        "<b>Bold</b> text\n",
        "<p>Text\n",
        "a\tb\n",
        "PK\n",
        "< 5 %\n",
        "%PDF\n",
        "{name}: hello\n",
        "[1] Smith\n",
        "[1]\n",
        '["Yes", he said]\n',
        '{"a", "b"} is a set\n',
        'The msgid "a"\n',
        "WEBVTT is a format\n",
        "From 00:00:01,000 --> on\n",
    ],
)
def test_text_that_looks_a_little_like_something_else_is_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.txt").write_text(text)
    assert len(list(read_document_lines(tmp_path / "d.txt"))) == 1


@given(st.lists(st.sampled_from(["a", "b", "", " "])))
def test_documents_one_after_another_are_the_input(lines: list[str]) -> None:
    split = list(documents(lines))
    assert list(chain(*split)) == lines
    assert all(line.strip() for document in split for line in document[:-1])


@pytest.mark.parametrize("packing", ["", ".gz", ".xz", ".zip", "pair"])
def test_progress_tells_the_share_of_the_bytes_read(tmp_path: Path, packing: str) -> None:
    draw = random.Random(1)
    lines = [
        " ".join(str(draw.random()) for _ in range(20)) for _ in range(3000)
    ]  # hardly to be compressed
    table = "en\tfr\n" + "".join(f"{line}\t{line}\n" for line in lines)
    pack: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
    }
    for name in ("a", "b"):
        if packing == "pair":
            for language in ("en", "fr"):
                (tmp_path / f"{name}.{language}").write_text("\n".join(lines))
        elif packing == ".zip":
            with zipfile.ZipFile(tmp_path / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("one.tsv", table[: len(table) // 2].rpartition("\n")[0] + "\n")
                archive.writestr(
                    "two.tsv", "en\tfr\n" + table[len(table) // 2 :].partition("\n")[2]
                )
        else:
            (tmp_path / f"{name}.tsv{packing}").write_bytes(pack[packing](table.encode()))
    suffix = {"pair": "", ".zip": ".zip"}.get(packing, f".tsv{packing}")
    told: list[tuple[int, float]] = []
    paths = [tmp_path / f"{name}{suffix}" for name in ("a", "b")]
    list(
        read_memories(paths, "en", "fr", progress=lambda units, share: told.append((units, share)))
    )
    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) == 12
    units = 0
    for more, share in told:
        units += more
        assert abs(share - units / 6000) < 0.35  # read in blocks of a megabyte


def test_an_estimated_total_gives_the_seconds_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 20.0, 20.0])
    # not the module's own function, which threads of other tests may call meanwhile
    monkeypatch.setattr("tmnmt.progress.time", SimpleNamespace(monotonic=lambda: next(now)))
    with Progress("indexing", "units") as progress:
        progress.advance(1000, 0.25)
    assert progress.line() == "indexing: 1,000 of 4,000 units, 50/s, 60 s left"
