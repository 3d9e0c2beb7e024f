"""Every bilingual file is a memory, and knows the places of its segments: in the next version of
the same file a segment in the same place is worth 102, another of its text 100."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tmnmt.batch.analyse import Analysis
from tmnmt.files.as_memory import read_memories
from tmnmt.index import MemoryIndex, build
from tmnmt.index.match_value import Query

PAIRS = [("Open", "Ouvrir"), ("Save", "Enregistrer"), ("Close", "Fermer"), ("Save", "Épargner")]
SPACES = (
    'xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" xmlns:mq="MQXliff" '
    'xmlns:m="http://www.memsource.com/mxlf/2.0"'
)
XLIFF = (
    f'<xliff version="1.2" {SPACES}><file original="a" source-language="en" '
    'target-language="fr" datatype="x"><body>{}</body></file></xliff>'
)
XLIFF2 = (
    '<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
    'trgLang="fr"><file id="f">{}</file></xliff>'
)


def unit(said: str) -> str:
    return (
        f'<trans-unit id="u{{0}}"{said}><source>{{1}}</source><target>{{2}}</target></trans-unit>'
    )


TRADOS = (
    '<trans-unit id="u{0}"><source>{1}</source><seg-source><mrk mtype="seg" mid="1">{1}</mrk>'
    '</seg-source><target><mrk mtype="seg" mid="1">{2}</mrk></target><sdl:seg-defs>'
    '<sdl:seg id="1" conf="Translated"/></sdl:seg-defs></trans-unit>'
)
FILES = {
    "a.xlf": (XLIFF, unit(' approved="yes"')),
    "2.xlf": (
        XLIFF2,
        '<unit id="u{0}"><segment state="final"><source>{1}</source><target>{2}</target>'
        "</segment></unit>",
    ),
    "a.sdlxliff": (XLIFF, TRADOS),
    "a.mqxliff": (XLIFF, unit(' mq:status="ManuallyConfirmed"')),
    "a.mxliff": (XLIFF, unit(' m:confirmed="1"')),
    "a.po": (
        'msgid ""\nmsgstr "Language: fr\\n"\n\n{}',
        'msgctxt "u{0}"\nmsgid "{1}"\nmsgstr "{2}"\n\n',
    ),
    "a.csv": ("id,en,fr\n{}", 'u{0},"{1}","{2}"\n'),
    "a.tsv": ("en\tfr\n{}", "{1}\t{2}\n"),
    "a.tmx": (
        '<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>',
        '<tu tuid="u{0}"><prop type="x-document">d</prop><tuv xml:lang="en"><seg>{1}</seg></tuv>'
        '<tuv xml:lang="fr"><seg>{2}</seg></tuv></tu>',
    ),
}


def memory(folder: Path, name: str, pairs: Sequence[tuple[str, str]] = PAIRS) -> Path:
    whole, entry = FILES[name]
    entries = [entry.format(number, *pair) for number, pair in enumerate(pairs)]
    path = folder / name
    path.write_text(whole.format("".join(entries)), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FILES)
def test_the_next_version_of_a_file_finds_its_places(tmp_path: Path, name: str) -> None:
    reader = read_memories([memory(tmp_path, name)], "en", "fr")
    build(tmp_path / "index", reader, "en", "fr")
    queries = [
        Query("Save", None, "Open", "Close"),  # in the same place
        Query("Save", None, "Quite", "Other"),  # the same text elsewhere
        Query("Save", None, "Close", "Other"),
    ]
    with MemoryIndex.open(tmp_path / "index") as index:
        assert [(s.src, s.tgt) for s in index.segments()] == PAIRS
        assert Analysis([index])._values(queries) == [102, 100, 101]


def test_sources_beside_a_pair_count_where_they_are_no_pairs(tmp_path: Path) -> None:
    pairs = [("Open", ""), ("Save", "Enregistrer"), ("Close", "")]
    path = memory(tmp_path, "a.po", pairs)
    build(tmp_path / "index", read_memories([path], "en", "fr"), "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        assert Analysis([index])._values([Query("Save", None, "Open", "Close")]) == [102]


@pytest.mark.parametrize("name", ["a.xlf", "a.po"])
def test_the_name_of_a_unit_counts_as_its_place(tmp_path: Path, name: str) -> None:
    build(tmp_path / "index", read_memories([memory(tmp_path, name)], "en", "fr"), "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        assert Analysis([index])._values([Query("Close", None, "", "", "u2")]) == [101]
