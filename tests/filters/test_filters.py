"""The list of filters: what each does stands on a page, none knows another, and a new one needs no
more than its class and its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from places import ROOT
from tiny_model import PAIRS, write_tiny_model

from tmnmt import Translator
from tmnmt.codes.record import Source, Text, plain_of
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.filters import FILTERS, Filters
from tmnmt.filters.contract import Filter, Reader, Undo
from tmnmt.filters.quotations import Quotations
from tmnmt.filters.typography import Typesetting
from tmnmt.filters.unknown_words import UnknownWords
from tmnmt.segments import Translation
from tmnmt.vocab import Vocabulary

FOLDER = ROOT / "tmnmt" / "filters"
SHARED = {
    "contract",
    "letters",
    "marking",
    "masks",
    "sentence_ends",
    "target_words",
}  # `masked_pair` finds masks; it is no filter

BY_ATTENTION = (Quotations, UnknownWords)  # which an example has not


class Example(NamedTuple):
    """A row of the page: a text, what is read, what is written, and what comes out."""

    source: str
    read: str
    written: str
    target: str


def table() -> Iterator[tuple[str, str, Example]]:
    """The names, descriptions and examples of the page, in its order."""
    for line in (ROOT / "docs" / "filters.md").read_text(encoding="utf-8").splitlines():
        if re.match(r"\| \d+ \|", line):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
            texts = [re.sub(r"\\[tnxu][0-9a-f]*", _sign, cell.strip("`")) for cell in cells[4:8]]
            yield cells[2].strip("`"), cells[3], Example(*texts)


def _sign(written: re.Match[str]) -> str:
    return written[0].encode().decode("unicode_escape")


def example_of(kind: type[Filter]) -> Example:
    return next(example for name, _, example in table() if name == kind.__name__)


def test_the_page_shows_the_list_in_its_order() -> None:
    listed = [(kind.__name__, (kind.__doc__ or "").splitlines()[0]) for kind in FILTERS.values()]
    assert [(name, what) for name, what, _ in table()] == listed


def through(example: Example, filters: Filters) -> tuple[str, str]:
    """What is read of an example, and what comes out."""
    segment = SourceSegment(example.source, filters)
    parts = segment.split_segments()
    reads = [part.read for part in parts] or [*segment.parts]
    written = example.written.split(" | ")
    if parts:
        for part, text in zip(parts, written, strict=True):
            part.add(0, part.read, Translation(part.read, text, 0.0), is_whole=True)
        whole = " ".join(written)
    else:
        other = segment.reading
        reading = other if other is not None and other.text == example.read else None
        reads = reads or [segment.read if reading is None else reading.text]
        whole = " ".join(
            segment.restore_piece(text, piece, reading=reading)
            for text, piece in zip(written, reads, strict=True)
        )
        whole = segment.read if segment.refuses(whole, segment.read) else whole
        segment.add(0, segment.read, Translation(segment.read, whole, 0.0), is_whole=True)
    return " | ".join(reads), segment.restore(Translation(example.source, whole, 0.0)).tgt


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(Vocabulary.load(ROOT / "models" / "law-transformer.en-fr" / "spm.model"), "en")


def set_in_french(kind: type[Filter], reader: Reader) -> Reader:
    """With blanks that the page shows for one filter alone."""
    return replace(reader, typography="fr") if kind is Typesetting else reader


@pytest.mark.parametrize("kind", [kind for kind in FILTERS.values() if kind not in BY_ATTENTION])
def test_its_example_goes_through_all_filters(kind: type[Filter], reader: Reader) -> None:
    example, reader = example_of(kind), set_in_french(kind, reader)
    assert through(example, Filters(reader)) == (example.read, example.target)


@pytest.mark.parametrize("kind", [kind for kind in FILTERS.values() if kind not in BY_ATTENTION])
def test_without_it_its_example_is_another_one(kind: type[Filter], reader: Reader) -> None:
    example, others = example_of(kind), [other for other in FILTERS.values() if other is not kind]
    try:
        result = through(example, Filters(set_in_french(kind, reader), others))
    except ValueError:  # it parts the text in another way
        return
    assert result != (example.read, example.target)


def test_no_filter_knows_another_or_the_engine() -> None:
    for path in FOLDER.glob("*.py"):
        if path.stem == "__init__":
            continue
        names = [
            node.module or ""
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        ]
        of_filters = {name.split(".")[-1] for name in names if name.startswith("tmnmt.filters")}
        allowed = SHARED if path.stem == "masked_pair" else SHARED - {"masks"}
        assert of_filters <= allowed, path.name
        assert not [name for name in names if name.startswith(("tmnmt.engine", "tmnmt.index"))]


class Tildes(Filter, Undo):
    """Takes a tilde from the beginning of a text, and puts it in front of the target."""

    level = "text"

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        if isinstance(source, Text) or not source.startswith("~"):
            return source, None
        return Text(source[1:]), self

    def restore(self, target: Text) -> Text:
        codes = tuple(replace(code, at=code.at + 1) for code in target.codes)
        return Text(f"~{target.plain}", codes)


WAYS: list[Callable[[Translator, str], Translation]] = [
    lambda translator, text: translator.translate([text])[0],
    lambda translator, text: translator.session().translate(text),
    lambda translator, text: next(translator.session().stream([text])),
    lambda translator, text: translator.complete(text, ""),
]


def test_a_new_filter_is_one_class_and_its_place_in_the_list(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    model, (src, tgt) = write_tiny_model(tmp_path / "model"), PAIRS[0]
    usual, other = (Translator.load(model, options=TranslationOptions(cache=0)) for _ in range(2))
    preparation = other.pipeline.preparation
    first, *others = FILTERS.values()
    preparation.filters = Filters(preparation.filters.reader, (first, Tildes, *others))
    for way in WAYS:
        assert way(usual, f"~{src}").tgt != f"~{tgt}"
        assert way(other, f"~{src}").tgt == f"~{tgt}"
        assert way(other, src).tgt == tgt


@pytest.mark.parametrize("kind", FILTERS.values())
def test_what_it_does_nothing_about_stays(kind: type[Filter]) -> None:
    one = kind(Reader())
    for source in ("the permit is void", Text("the permit is void")):
        prepared, undo = one.prepare(source)
        assert plain_of(prepared) == plain_of(source)
        if undo is not None:
            assert undo.restore(Text("le permis est nul")) == Text("le permis est nul")
