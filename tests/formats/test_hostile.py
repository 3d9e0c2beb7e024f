"""Small files made to take minutes or gigabytes, and damage that ended in a traceback: read soon,
or refused."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import time
import unicodedata
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jrc_files import publish, small, tei

from tmnmt.errors import FormatError
from tmnmt.formats import Report, read_memory
from tmnmt.formats.clean import clean, too_long
from tmnmt.formats.elements import elements
from tmnmt.formats.encoding import root_element
from tmnmt.formats.tar import tar_files
from tmnmt.text import nfc

SECONDS = 9  # of processor time, coverage included; each of these files took 10 to 150 without it


def unit(src: str, tgt: str, inside: str = "") -> bytes:
    return (
        f'<tu>{inside}<tuv lang="en"><seg>{src}</seg></tuv><tuv '
        f'lang="fr"><seg>{tgt}</seg></tuv></tu>'
    ).encode()


def tmx(body: bytes, root: bytes = b"<tmx>", head: bytes = b"<header/>") -> bytes:
    return b'<?xml version="1.0"?>' + root + head + b"<body>" + body + b"</body></tmx>"


def outcome(path: Path) -> Report | str:
    """The report, or why the file is refused."""
    reader = read_memory(path, "en", "fr")
    try:
        for _ in reader:
            pass
    except FormatError as error:
        assert str(error).startswith(str(path.parent)) and "\n" not in str(error)
        return str(error)
    return reader.report


def soon(path: Path) -> Report | str:
    """The outcome, which must come in time: quadratic ways take minutes here, linear ones less than
    a second."""
    started = time.process_time()
    found = outcome(path)
    assert time.process_time() - started < SECONDS
    return found


# --- small files that took minutes


def test_marks_on_one_letter_are_sorted_in_linear_time(tmp_path: Path) -> None:
    (tmp_path / "m.tsv").write_text("en\tfr\ne" + "\u0301\u0316" * 80_000 + "\tb\n")
    report = soon(tmp_path / "m.tsv")
    assert isinstance(report, Report) and report.skipped["too long"] == 1


def test_a_head_of_open_comments_is_looked_through_once(tmp_path: Path) -> None:
    (tmp_path / "m.tmx.gz").write_bytes(gzip.compress(b"<!--" * (1 << 18)))
    assert "does not begin as XML" in str(soon(tmp_path / "m.tmx.gz"))


@pytest.mark.parametrize("opening", [b"<!--", b"<tu><!--", b"<tu><![CDATA[<!--<?", b"<tu><tuv a='"])
def test_what_is_opened_and_never_closed_is_looked_for_once(tmp_path: Path, opening: bytes) -> None:
    (tmp_path / "m.tmx").write_bytes(tmx(opening * ((3 << 19) // len(opening))))
    soon(tmp_path / "m.tmx")


@pytest.mark.parametrize(
    "root",
    [
        b"<tmx "
        + b" ".join(b'xmlns:n%d="http://example.org/%d"' % (n, n) for n in range(20_000))
        + b">",
        b'<tmx xmlns:x="' + b"h" * 500_000 + b'">',
    ],
)
def test_namespaces_of_the_root_are_not_read_again_with_every_unit(
    tmp_path: Path, root: bytes
) -> None:
    (tmp_path / "m.tmx").write_bytes(tmx(unit("a<x:y/>", "b") * 2000, root))
    report = soon(tmp_path / "m.tmx")
    assert isinstance(report, Report) and report.units == 2000


@pytest.mark.parametrize(
    "head",
    [
        b'<header><prop type="x-document">' + b"d" * 900_000 + b"</prop></header>",
        b'<header srclang="' + b"e" * 900_000 + b'"/>',
    ],
)
def test_a_long_name_in_the_header_is_cut(tmp_path: Path, head: bytes) -> None:
    again = b"".join(
        unit("a", "b", '<prop type="x-position">1</prop>').replace(b'"fr"', b'"fr-%d"' % n)
        for n in range(4000)
    )
    (tmp_path / "m.tmx").write_bytes(tmx(again, head=head))
    soon(tmp_path / "m.tmx")
    assert all(
        len(segment.document) <= 1000 for segment in read_memory(tmp_path / "m.tmx", "en", "fr")
    )


def test_blanks_without_a_line_end_are_looked_at_once() -> None:
    started = time.process_time()
    assert clean("x" + " " * 300_000 + "\x01y")[0] == "x" + " " * 300_000 + "y"
    assert time.process_time() - started < SECONDS


def test_thousands_of_pairs_in_an_archive_find_their_ids_at_once(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        for n in range(2500):
            archive.writestr(f"{n}.en", "x")
            archive.writestr(f"{n}.fr", "y")
    report = soon(tmp_path / "m.zip")
    assert isinstance(report, Report) and report.retained == 2500


# --- what unpacks to more than it should


def overlapping(members: int, data: bytes) -> bytes:
    """A zip archive whose members are all one and the same, packed once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    what = struct.pack("<LLLHH", zlib.crc32(data), len(packed), len(data), 5, 0)
    local = b"PK\3\4" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + what + b"m.tmx"
    entry = b"PK\1\2" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + what + bytes(14) + b"m.tmx"
    end = struct.pack(
        "<HHHHLLH", 0, 0, members, members, len(entry) * members, len(local) + len(packed), 0
    )
    return local + packed + entry * members + b"PK\5\6" + end


BIG = tmx(unit("a" * 2000, "b") * 4000)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("m.tmx.xz", lzma.compress(tmx(b"<tu/>" * 200_000)), "more than a unit for every 4 bytes"),
        (
            "m.tsv.gz",
            gzip.compress(b"en\tfr\n" + b"a\tb\n" * 200_000),
            "more than a unit for every 4 bytes",
        ),
        ("m.tmx.gz", gzip.compress(tmx(b"<!---->" * 2_600_000)), "more than 100 times its size"),
    ],
)
def test_a_bomb_is_refused_by_what_the_whole_file_unpacks_to(
    tmp_path: Path, name: str, data: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(data)
    assert f"{name}: unpacks to {why}" in str(soon(tmp_path / name))


def test_members_of_an_archive_that_share_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.zip").write_bytes(overlapping(2, tmx(unit("a", "b"))))
    assert "m.zip: a damaged zip archive: 'm.tmx' begins inside another member" in str(
        outcome(tmp_path / "m.zip")
    )


def test_packed_members_of_an_archive_count_against_the_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m.tmx.gz", gzip.compress(BIG * 2))
    assert "more than 100 times its size: refused as a decompression bomb" in str(
        soon(tmp_path / "m.zip")
    )


def test_an_xz_that_asks_for_4_gb_of_memory_is_refused(tmp_path: Path) -> None:
    packed = bytearray(lzma.compress(b"en\tfr\na\tb\n"))
    at = (
        packed.index(b"\x21\x01", 12) + 2
    )  # the filter LZMA2 and its one byte, by which the dictionary is 2^n or so
    packed[at] = 40
    header = packed[12 : 12 + 4 * (packed[12] + 1) - 4]
    packed[12 + len(header) : 16 + len(header)] = struct.pack("<L", zlib.crc32(header))
    (tmp_path / "m.tsv.xz").write_bytes(packed)
    assert "asks for more than 256 MB of memory to be unpacked" in str(
        outcome(tmp_path / "m.tsv.xz")
    )


def test_xz_streams_one_after_another_and_the_zeros_between_them_are_read(tmp_path: Path) -> None:
    packed = (
        lzma.compress(b"en\tfr\na\tb\n")
        + bytes(8)
        + lzma.compress(b"") * 3
        + lzma.compress(b"c\td\n")
        + bytes(4)
    )
    (tmp_path / "m.tsv.xz").write_bytes(packed)
    assert [segment.src for segment in read_memory(tmp_path / "m.tsv.xz", "en", "fr")] == ["a", "c"]
    (tmp_path / "m.tsv.xz").write_bytes(packed[:-30])
    assert "damaged, cannot be read on: the file ends before" in str(outcome(tmp_path / "m.tsv.xz"))


# --- damage in archives


def zipped(tmp_path: Path, old: bytes, new: bytes, method: int = zipfile.ZIP_DEFLATED) -> str:
    """What becomes of an archive of one memory after `old` is replaced in its directory."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo("mé.tmx"), tmx(unit("a", "b")), method)
    data = packed.getvalue()
    start = data.index(b"PK\1\2")
    changed = data[start:].replace(old, new)
    assert changed != data[start:]
    (tmp_path / "m.zip").write_bytes(data[:start] + changed)
    return str(outcome(tmp_path / "m.zip"))


NAME = "mé.tmx".encode()
ENTRY = b"PK\1\2\x14\3\x14\0"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"\0\0\0\0" + NAME, b"\xf0\xff\xff\xff" + NAME, "m.zip: mé.tmx: cannot be unpacked: "),
        (NAME, b"m\xc3\xff.tmx"[: len(NAME)], "m.zip: a damaged zip archive: "),
        (ENTRY, ENTRY[:-2] + b"\xff\0", "m.zip: a damaged zip archive: zip file version 25.5"),
    ],
)
def test_damage_in_the_directory_of_a_zip_is_one_line(
    tmp_path: Path, old: bytes, new: bytes, why: str
) -> None:
    assert why in zipped(tmp_path, old, new)


def test_a_member_without_a_name_is_passed_over(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        archive.writestr("m.tmx", tmx(unit("a", "b")))
        info = zipfile.ZipInfo("x")
        info.filename = ""
        archive.writestr(info, "x")
    report = outcome(tmp_path / "m.zip")
    assert isinstance(report, Report) and report.retained == 1
    assert "1 member passed over" in report.warnings[0]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_packed_in_ways_without_a_limit_on_memory_are_refused(
    tmp_path: Path, method: int
) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w", method) as archive:
        archive.writestr("m.tmx", tmx(unit("a", "b")))
    why = f"m.zip: m.tmx: cannot be unpacked: method {method}; allowed: stored or deflated"
    assert why in str(outcome(tmp_path / "m.zip"))


# --- XML declarations


@pytest.mark.parametrize(
    "encoding",
    ["hex", "base64", "zlib", "rot13", "bz2", "punycode", "idna", "utf-7", "U7", "\0", "x" * 900],
)
def test_an_encoding_that_is_no_character_set_is_one_line(tmp_path: Path, encoding: str) -> None:
    body = tmx(unit("a", "b")).replace(b'"1.0"?', f'"1.0" encoding="{encoding}"?'.encode())
    (tmp_path / "m.tmx").write_bytes(body)
    assert "unknown encoding " in str(outcome(tmp_path / "m.tmx"))


# --- alignments that point to archives


@pytest.mark.parametrize("select", ["", "en", "../../en fr", "en fr\0"])
def test_links_that_point_need_two_languages(tmp_path: Path, select: str) -> None:
    path = small(tmp_path)
    text = gzip.decompress(path.read_bytes()).replace(
        b'select="en fr"', f'select="{select}"'.encode()
    )
    path.write_bytes(gzip.compress(text))
    assert isinstance(outcome(path), str)


def test_a_region_of_one_language_is_no_second_language(tmp_path: Path) -> None:
    path = small(tmp_path)
    text = gzip.decompress(path.read_bytes()).replace(b'"en fr"', b'"en-gb"')
    path.write_bytes(gzip.compress(text))
    with pytest.raises(FormatError, match="select='en-gb' names no two languages"):
        list(read_memory(path, "en", "en-gb"))


def test_a_link_before_the_root_element_is_counted(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text("<TEI.2x/><link><s1>a</s1><s2>b</s2></link>")
    (tmp_path / "m.xml").write_text("<?x <TEI.2?><TEI.2/><link><s1>a</s1><s2>b</s2></link>")
    assert "no en; languages in the file: none" in str(outcome(tmp_path / "m.xml"))


def test_links_that_give_one_text_again_and_again_are_refused(tmp_path: Path) -> None:
    long = {"1": "word " * 20_000}
    again = [("1:1", "1 1 1 1 1 1 1 1;1")] * 100
    path = publish(
        tmp_path,
        {"31970L0001": again},
        {language: [tei("31970L0001", language, long)] for language in ("en", "fr")},
    )
    assert "jrc-en.tgz: unpacks to more than 100 times its size" in str(soon(path))


def test_a_number_of_a_character_that_is_far_too_long_is_left_out(tmp_path: Path) -> None:
    path = small(tmp_path)
    text = gzip.decompress(path.read_bytes()).replace(
        b'n="31970L0001"', b'n="31970L0001&#' + b"9" * 5000 + b';"'
    )
    path.write_bytes(gzip.compress(text))
    report = outcome(path)
    assert isinstance(report, Report) and report.retained == 2


# --- tar


def tar_of(form: int, members: list[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        folder = tarfile.TarInfo("folder.xml")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    return packed.getvalue()


def files_in(data: bytes) -> list[tuple[str, bytes]]:
    return list(tar_files(io.BytesIO(data), "a.tgz", lambda name: name.endswith(".xml")))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_archives_of_every_kind_give_what_was_put_in(form: int) -> None:
    members = [
        ("a/é.xml", b"x" * 700),
        (f"{'b' * 90}/{'c' * 60}.xml", b""),
        ("d.txt", b"no"),
        ("e.xml", bytes(512)),
    ]
    if form != tarfile.USTAR_FORMAT:
        members.append((f"{'l' * 300}.xml", b"long"))
    assert files_in(tar_of(form, members)) == [each for each in members if each[0] != "d.txt"]
    assert files_in(tar_of(form, members).rstrip(b"\0") + bytes(512)) == files_in(
        tar_of(form, members)
    )


def header(name: bytes, kind: bytes, size: int) -> bytes:
    fields = name.ljust(124, b"\0") + b"%011o\0" % size + bytes(12) + b" " * 8 + kind
    fields = fields.ljust(512, b"\0")
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (header(b"a.xml", b"S", 0), "a.tgz: a.xml: a sparse file"),
        (header(b"a.xml", b"0", 65 << 20), "a.tgz: a.xml: longer than 64 MB"),
        (header(b"a", b"L", 1 << 20), "a header of 1,048,576 bytes"),
        (header(b"a.xml", b"0", 5000) + b"x", "it ends inside a file"),
        (header(b"a.txt", b"0", 5000) + b"x", "it ends inside a file"),
        (header(b"a.xml", b"0", 0)[:300], "it ends inside a header"),
        (b"x" * 512, "a "),
    ],
)
def test_a_tar_archive_that_cannot_be_read_is_one_line(data: bytes, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        files_in(data)


@pytest.mark.parametrize(
    ("records", "name"),
    [
        (b"11 path=b.\n14 path=c.xml\n6 a=b\n", "c.xml"),
        (b"16 path=b\nc.xml\n", "b\nc.xml"),
        (b"23 comment=5 path=.xml\n", "a.xml"),
        (b"", "a.xml"),
    ],
)
def test_the_records_of_a_pax_header_are_as_long_as_they_say(records: bytes, name: str) -> None:
    pax = header(b"x", b"x", len(records)) + records.ljust(-(-len(records) // 512) * 512, b"\0")
    assert files_in(pax + header(b"a.xml", b"0", 0)) == [(name, b"")]


@pytest.mark.parametrize(
    "records", [b"1" * (1 << 16), b"9999999 path=b.xml\n", b"3 path=b\n", b"15 path=b.xml\n"]
)
def test_records_of_a_pax_header_that_cannot_be_told_apart_are_damage(records: bytes) -> None:
    pax = header(b"x", b"x", len(records)) + records.ljust(-(-len(records) // 512) * 512, b"\0")
    started = time.process_time()
    with pytest.raises(FormatError, match="a pax header whose records cannot be told apart"):
        files_in(pax + header(b"a.xml", b"0", 0))
    assert time.process_time() - started < 1  # 5 seconds, when every digit was tried as the first


def test_a_chain_of_long_names_is_followed_without_recursion() -> None:
    name = header(b"././@LongLink", b"L", 6) + b"b.xml\0".ljust(512, b"\0")
    assert files_in(name * 5000 + header(b"a.xml", b"0", 1) + b"x".ljust(512, b"\0")) == [
        ("b.xml", b"x")
    ]


# --- the quick ways give what the plain ones do

MARKS = st.text(
    st.sampled_from("ae\u0301\u0316\u0327\u0344\u0f71\u0f72\u0f73\u1100\u1161.\u212b "), max_size=60
)


@given(MARKS, MARKS, st.sampled_from([1, 30, 70]))
def test_nfc_is_what_the_standard_library_gives(before: str, text: str, times: int) -> None:
    assert nfc(before + text * times) == unicodedata.normalize("NFC", before + text * times)


@given(st.text(st.sampled_from(" \t\n\rab"), max_size=30))
def test_a_line_end_with_its_blanks_becomes_one_space(text: str) -> None:
    words, blank = "", ""
    for sign in text + "\0":
        if sign in " \t\n\r":
            blank += sign
        else:
            words += (" " if "\n" in blank or "\r" in blank else blank.replace("\t", " ")) + sign
            blank = ""
    assert clean(text)[0] == words[:-1].strip()


PIECES = (
    "<tu>|</tu>|</tu  >|<tu "
    "a='<'>|<tu/>|<header/>|<header>|</header>|<!--|-->|<![CDATA[|]]>|<?|?>|<tux>|a|\n|<|--"
)
PARTS = st.lists(st.sampled_from(PIECES.split("|")), max_size=25).map("".join).map(str.encode)


class Slowly:
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._stream, self._size = io.BytesIO(data), size

    def read(self, size: int, /) -> bytes:
        return self._stream.read(self._size)


@settings(max_examples=300)
@given(PARTS, st.integers(1, 9))
def test_elements_are_the_same_however_the_bytes_arrive(data: bytes, size: int) -> None:
    whole, tags = (b"tu", b"header"), (b"tmx",)
    assert list(elements(Slowly(data, size), whole, tags)) == list(
        elements(Slowly(data, len(data) + 1), whole, tags)
    )


@pytest.mark.parametrize(
    ("head", "root"),
    [
        ("<?xml?>\n<!-- <a> --><!DOCTYPE tmx [<!ENTITY e '>'>]>\n<tmx version='1'>", "tmx"),
        ("<!DOCTYPE tmx SYSTEM 'a.dtd'><tmx/>", "tmx"),
        ("<!-- <tmx>", ""),
        ("<!DOCTYPE x [ <tmx>", ""),
        ("text <tmx>", ""),
        ("", ""),
    ],
)
def test_the_root_element_is_behind_comments_and_the_doctype(head: str, root: str) -> None:
    assert root_element(head) == root


def test_too_long_is_told_of_marks_and_of_words() -> None:
    assert too_long("e" + "\u0301\u0316" * 516)
    assert not too_long("é " * 1000) and too_long("é " * 1001)
