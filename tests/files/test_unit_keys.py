"""By what the segments of each kind of file are found again when another version of its reader
reads the file: documents on the server live longer than one version. Where a reader changes these
keys on purpose, former documents lose the segments in question, so it has to be worth that."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tmnmt.file_kinds import FILE_KINDS
from tmnmt.serve.documents import NewTarget, Upload, filled_with, key_of, unit_record, units_of
from tmnmt.serve.http_error import Refused

ARCHIVES = {"office", "epub", "idml"}  # which Okapi makes XLIFF of
KEYS = "document", "id", "context", "source"
FILES = json.loads((Path(__file__).parents[1] / "data" / "unit_keys.json").read_text("utf-8"))


def upload(name: str, content: str) -> Upload:
    coded = base64.b64encode(content.encode()).decode()
    return Upload(name, coded, source="en", target="fr")


def keys(name: str, content: str) -> list[list[str]]:
    records = [unit_record(*entry) for entry in units_of(upload(name, content)).units]
    return [[record[field] for field in KEYS] for record in records]


@pytest.mark.parametrize("kind", FILES)
def test_segments_have_the_keys_that_they_had(kind: str) -> None:
    name, content = FILES[kind]["name"], FILES[kind]["content"]
    assert keys(name, content) == FILES[kind]["keys"]
    assert units_of(upload(name, content)).kind == kind


def test_every_kind_is_held_to_its_keys() -> None:
    assert {*FILES} == {*FILE_KINDS} - ARCHIVES


def test_targets_go_to_the_segments_that_a_reader_still_finds() -> None:
    content = "Title\n=====\n\n== ==\na  b\n== ==\n\nLast words.\n"

    def fill(former: Sequence[tuple[str, str]], leaves: bool = False) -> str:
        stored = [key_of("document.rst", "", "", source) for source, _ in former]
        targets = [NewTarget(target, "confirmed") for _, target in former]
        return filled_with(upload("a.rst", content), targets, leaves, stored).decode()

    # a former version left tables alone, and one cut the last text otherwise
    assert fill([("Title", "Titre"), ("Last words.", "Fin.")]) == (
        content.replace("Title", "Titre").replace("Last words.", "Fin.")
    )
    cut = [("Title", "Titre"), ("Last", ""), ("words.", "mots.")]
    with pytest.raises(Refused, match=re.escape("segment 3: the file is read otherwise")):
        fill(cut)
    assert fill(cut, leaves=True) == content.replace("Title", "Titre")
