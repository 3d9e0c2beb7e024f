"""The official JRC-Acquis: links that point into archives of TEI documents give what the same links
with text give."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from jrc_files import publish, small, tei, write_archive
from places import FORMATS

from tmnmt.errors import FormatError
from tmnmt.formats import Reader, read_memory
from tmnmt.segments import Segment

EXCERPT = FORMATS / "jrc-acquis-excerpt.en-fr.xml.gz"
LINK = re.compile(
    r'<link type="([^"]*)" '
    r'xtargets="([^";]*);([^"]*)">\s*<s1>(.*?)</s1>\s*<s2>(.*?)</s2>\s*</link>',
    re.S,
)


def read(path: Path, src: str = "en", tgt: str = "fr") -> tuple[list[Segment], Reader]:
    reader = read_memory(path, src, tgt)
    return list(reader), reader


def split_up(folder: Path) -> Path:
    """The excerpt taken apart into what was published: links without text, and the texts they point
    to."""
    text = gzip.decompress(EXCERPT.read_bytes()).decode()
    divs: dict[str, list[tuple[str, str]]] = {}
    sides: dict[str, list[tuple[str, bytes]]] = {"en": [], "fr": []}
    for div in re.findall(r'<div type="body" n="([^"]*)"(.*?)</div>', text, re.S):
        links = LINK.findall(div[1])
        divs[div[0]] = [(kind, f"{first};{second}") for kind, first, second, _, _ in links]
        for side, lang in enumerate(("en", "fr")):
            paragraphs: dict[str, str] = {}
            for link in links:
                numbers, content = link[1 + side].split(), link[3 + side]
                parts = re.findall(r"<p>(.*?)</p>", content, re.S) or [content]
                paragraphs |= dict(zip(numbers, parts, strict=True))
            sides[lang].append(tei(div[0], lang, paragraphs))
    return publish(folder, divs, sides)


@pytest.mark.parametrize(("src", "tgt"), [("en", "fr"), ("fr", "en")])
def test_links_that_point_give_what_links_with_text_give(
    tmp_path: Path, src: str, tgt: str
) -> None:
    with_text, known = read(EXCERPT, src, tgt)
    pointing, reader = read(split_up(tmp_path), src, tgt)
    assert [(s.src, s.tgt, s.document, s.position) for s in pointing] == [
        (s.src, s.tgt, s.document, s.position) for s in with_text
    ]
    assert reader.report.links == known.report.links
    assert (
        known.report.links["1-1"] + known.report.links["2-1"]
        <= known.report.units
        == len(with_text)
    )
    assert reader.report.related_files == [tmp_path / "jrc-en.tgz", tmp_path / "jrc-fr.tgz"]


def test_escapes_of_the_corpus_are_resolved(tmp_path: Path) -> None:
    segments, _ = read(small(tmp_path))
    assert [s.src for s in segments] == ["en title", 'en "two" café']


def test_a_side_without_paragraphs_is_empty_and_a_wrong_number_is_named(tmp_path: Path) -> None:
    path = small(tmp_path, [("1:0", "1;"), ("1:1", "2;9"), ("1:1", "3"), ("2:1", "1 3;2")])
    segments, reader = read(path)
    assert [(s.src, s.position) for s in segments] == [("en title x", 3)]
    assert (reader.report.skipped["empty"], reader.report.skipped["malformed"]) == (1, 2)
    assert [one.detail for one in reader.report.examples["malformed"]] == [
        "paragraph 9 of document 31970L0001 is not in jrc-fr.tgz",
        "xtargets '3' are no two lists of paragraphs, as in '1;1 2'",
    ]


def test_a_document_that_an_archive_lacks_costs_its_links(tmp_path: Path) -> None:
    path = small(tmp_path)
    write_archive(tmp_path / "jrc-fr.tgz", [tei("31999L0009", "fr", {"1": "autre"})])
    segments, reader = read(path)
    assert segments == [] and reader.report.skipped["malformed"] == 2
    assert (
        reader.report.examples["malformed"][0].detail == "document 31970L0001 is not in jrc-fr.tgz"
    )


def test_all_absent_archives_are_named_at_once(tmp_path: Path) -> None:
    path = small(tmp_path)
    (tmp_path / "jrc-en.tgz").unlink()
    (tmp_path / "jrc-fr.tgz").unlink()
    with pytest.raises(FormatError, match=r"absent: \S*jrc-en\.tgz, \S*jrc-fr\.tgz"):
        read(path)


def damaged_in_the_middle(archive: bytes) -> bytes:
    unpacked = bytearray(gzip.decompress(archive))
    unpacked[:100] = b"\xff" * 100
    return gzip.compress(bytes(unpacked))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: len(data) // 2], r"jrc-fr\.tgz: damaged, cannot be read on"),
        (
            lambda data: data[:-6] + b"\0" * 6,
            r"jrc-fr\.tgz: damaged, cannot be read on: (CRC|Incorrect)",
        ),
        (damaged_in_the_middle, r"jrc-fr\.tgz: no whole tar archive"),
        (lambda data: b"", r"jrc-fr\.tgz: the file is empty"),
        (lambda data: gzip.compress(bytes(10240)), r"jrc-fr\.tgz: no document in it"),
    ],
)
def test_a_corrupt_archive_is_one_clear_error(tmp_path: Path, change: object, message: str) -> None:
    assert callable(change)
    path = small(tmp_path)
    archive = tmp_path / "jrc-fr.tgz"
    archive.write_bytes(change(archive.read_bytes()))
    with pytest.raises(FormatError, match=message):
        read(path)


def test_two_documents_with_one_id_in_an_archive(tmp_path: Path) -> None:
    path = small(tmp_path)
    one = tei("31970L0001", "fr", {"1": "un"})
    write_archive(tmp_path / "jrc-fr.tgz", [one, ("fr/1971/again.xml", one[1])])
    with pytest.raises(FormatError, match=r"jrc-fr\.tgz: two documents with one id: 31970L0001"):
        read(path)
