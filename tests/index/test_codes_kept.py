"""Codes lie beside the pairs of an index, wherever it keeps them; it is searched by the text
alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from coded_texts import TEXTS
from hypothesis import given

from tmnmt.codes.record import Code, Text
from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index import MemoryIndex
from tmnmt.index.elastic import layout
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.manifest import FORMAT, read_manifest, write_manifest
from tmnmt.index.embedded.rows import record, segment_of
from tmnmt.segments import Segment

BOLD = (Code(0, "open", "<b>", "1", "html"), Code(4, "close", "</b>", "1", "html"))
FILES = (Code(5, "placeholder", "%s", covers=2, movable=False, droppable=True),)
PAIR = Segment("Save %s", "Enregistrer", src_codes=(*BOLD, *FILES))
OTHER = Segment("Open", "Ouvrir", tgt_codes=BOLD)
PLAIN = Segment("Close", "Fermer")
STRANGE = Segment("a", "b", src_codes=(Code(2, "standalone", "<x/>"),))


@pytest.fixture
def index(tmp_path: Path) -> MemoryIndex:
    build(tmp_path / "m", [PAIR, PLAIN], "en", "fr")
    return MemoryIndex.open(tmp_path / "m")


def held(index: MemoryIndex) -> list[Segment]:
    return [replace(segment, id=0, created="", changed="") for segment in index.segments()]


def test_codes_come_back_from_the_build_from_additions_and_from_compaction(
    index: MemoryIndex,
) -> None:
    index.add([OTHER])
    for opened in (index, MemoryIndex.open(index.path)):
        assert held(opened) == [PAIR, PLAIN, OTHER]
    index.compact()
    for opened in (index, MemoryIndex.open(index.path)):
        assert held(opened) == [PAIR, PLAIN, OTHER]


def test_a_search_compares_texts_without_codes_and_gives_them_back(index: MemoryIndex) -> None:
    index.add([replace(OTHER, src="Save %s")])
    built, added = sorted(index.search(["Save %s"], 4)[0], key=lambda match: match.segment.id)
    assert (built.score, added.score) == (1.0, 1.0)
    assert (built.segment.src_codes, added.segment.tgt_codes) == (PAIR.src_codes, BOLD)


def test_codes_of_a_text_that_is_corrected_go_and_those_of_the_other_stay(
    index: MemoryIndex,
) -> None:
    (number,) = index.add([replace(PAIR, tgt="Garder", tgt_codes=BOLD)])
    (edited,) = index.edit([number], lambda segment: replace(segment, src="Keep %s"))
    assert (edited.src_codes, edited.tgt_codes) == ((), BOLD)
    (edited,) = index.edit([number], lambda segment: replace(segment, user="me"))
    assert edited.tgt_codes == BOLD
    (edited,) = index.edit([number], lambda s: replace(s, tgt="Gardé", tgt_codes=BOLD[:1]))
    assert edited.tgt_codes == BOLD[:1]


def test_codes_that_no_text_can_have_are_written_nowhere(
    index: MemoryIndex, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="'a' cannot have these codes"):
        index.add([PLAIN, STRANGE])
    assert held(MemoryIndex.open(index.path)) == [PAIR, PLAIN]
    with pytest.raises(DataError, match="'a' cannot have these codes"):
        build(tmp_path / "other", [PLAIN, STRANGE], "en", "fr")
    with pytest.raises(DataError, match="'a' cannot have these codes"):
        layout.encode_segment(STRANGE, 1)


@given(TEXTS, TEXTS)
def test_any_codes_come_back_from_a_row_and_from_a_server(src: Text, tgt: Text) -> None:
    segment = Segment(src.plain, tgt.plain, id=7, src_codes=src.codes, tgt_codes=tgt.codes)
    assert segment_of(record(segment, 7), 7) == segment
    assert layout.read(orjson.loads(layout.encode_segment(segment, 7))) == segment


def test_a_segment_without_codes_is_the_same_bytes_as_before_there_were_any() -> None:
    content = record(PLAIN, 1)[:-4]
    assert content == "\x1f".join(["Close", "Fermer", "", "0", "", "", "", "", ""]).encode()
    assert orjson.loads(layout.encode_segment(PLAIN, 1)) == {
        "id": 1,
        "src": "Close",
        "tgt": "Fermer",
    }


def former(index: Path, number: int) -> None:
    write_manifest(replace(read_manifest(index), format=number), index)


def test_an_index_of_the_former_format_is_read_and_compacted_to_this_one(tmp_path: Path) -> None:
    build(tmp_path / "m", [PLAIN], "en", "fr")
    former(tmp_path / "m", 4)
    index = MemoryIndex.open(tmp_path / "m")
    index.add([OTHER])
    assert held(MemoryIndex.open(tmp_path / "m")) == [PLAIN, OTHER]
    assert read_manifest(tmp_path / "m").format == 4
    index.compact()
    assert held(index) == [PLAIN, OTHER]
    assert read_manifest(tmp_path / "m").format == FORMAT


@pytest.mark.parametrize("number", [3, FORMAT + 1])
def test_an_index_of_another_format_is_refused(tmp_path: Path, number: int) -> None:
    build(tmp_path / "m", [PLAIN], "en", "fr")
    former(tmp_path / "m", number)
    said = f"format {number}, .* this version reads format {FORMAT}"
    with pytest.raises(MemoryIndexError, match=said):
        MemoryIndex.open(tmp_path / "m")


@pytest.mark.parametrize("number", [5, 6])
def test_a_server_s_index_of_the_former_format_is_read(number: int) -> None:
    manifest = layout.ElasticManifest("en", "fr", 1, 1, 1, "", format=number)
    assert layout.read_meta(manifest.meta(), "x") == manifest


@pytest.mark.parametrize("number", [4, layout.FORMAT + 1])
def test_a_server_s_index_of_another_format_is_refused(number: int) -> None:
    manifest = layout.ElasticManifest("en", "fr", 1, 1, 1, "", format=number)
    with pytest.raises(MemoryIndexError, match=f"format {number}"):
        layout.read_meta(manifest.meta(), "x")


@pytest.mark.parametrize(
    "codes",
    [["[]"], ["[[],[],[]]"], ["[1,2]"], ["{}"], ['[[],[[9,"s","x"]]]'], ["[[],[]]", ""]],
)
def test_a_row_with_no_such_codes_is_damaged(codes: Sequence[str]) -> None:
    content = "\x1f".join(["a", "b", "", "0", "", "", "", "", "", *codes]).encode()
    assert segment_of(content + zlib.crc32(content, 1).to_bytes(4, "little"), 1) is None
