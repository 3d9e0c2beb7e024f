"""The memories that ship hold nothing of what is kept out for tests and the demo."""

from __future__ import annotations

from functools import cache

import pytest
from places import ROOT

from tmnmt.formats import read_memory
from tmnmt.formats.text import read_document_lines
from tmnmt.segments import Segment
from tmnmt.text import normalise

HELD_OUT = ("jrc-acquis.test.en-fr.tsv.gz", "law.test.en-fr.tsv.gz")
HELD_OUT_DOCS = "python-docs.test.en-pt.tsv.gz"
MEMORIES = {
    "jrc-acquis.en-fr.tmx.gz": HELD_OUT,
    "canadian-law.en-fr.tmx.gz": HELD_OUT,
    "python-docs.en-pt.tmx.gz": (HELD_OUT_DOCS,),
}


@cache
def segments(name: str) -> list[Segment]:
    tgt_lang = name.removesuffix(".gz").removesuffix(".tmx").removesuffix(".tsv")[-2:]
    reader = read_memory(ROOT / "memories" / name, "en", tgt_lang)
    found = list(reader)
    assert reader.report.retained == reader.report.units > 1000
    return found


@pytest.mark.parametrize("memory", MEMORIES)
def test_no_source_and_no_document_of_a_test_set_is_in_a_memory(memory: str) -> None:
    held_out = [segment for name in MEMORIES[memory] for segment in segments(f"held-out/{name}")]
    in_memory = segments(memory)
    assert not {normalise(s.src) for s in held_out} & {normalise(s.src) for s in in_memory}
    assert not {s.document for s in held_out} & {s.document for s in in_memory}


@pytest.mark.parametrize(
    ("corpus", "file"),
    [("jrc-acquis", HELD_OUT[0]), ("law", HELD_OUT[1]), ("python-docs", HELD_OUT_DOCS)],
)
def test_the_test_sets_are_documents_of_the_split(corpus: str, file: str) -> None:
    split = (ROOT / "eval" / "splits" / f"{corpus}.test.txt").read_text(encoding="utf-8").split()
    assert {segment.document for segment in segments(f"held-out/{file}")} <= set(split)


def test_the_demo_document_is_one_of_the_test_documents_line_for_line() -> None:
    (source,) = (ROOT / "memories" / "held-out").glob("*.en.txt")
    document = source.name.removesuffix(".en.txt")
    pairs = [(s.src, s.tgt) for s in segments(f"held-out/{HELD_OUT[0]}") if s.document == document]
    target = source.with_name(f"{document}.fr.txt")
    assert list(zip(read_document_lines(source), read_document_lines(target), strict=True)) == pairs
