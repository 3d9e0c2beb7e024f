"""Some hundred rounds of `fuzz_folders.py`, which changes index and model folders on purpose;
thousands run by hand."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from fuzz_folders import CHANGES, ENDLESS, fuzz, reseal

from tmnmt.errors import MemoryIndexError
from tmnmt.index import MemoryIndex, build
from tmnmt.segments import Segment


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("files", '{"a":null}'),
        ("files", '{"../../x":[1,"a"]}'),
        ("generation", '"1/../generation-1"'),
        ("postings", "true"),
        ("src_lang", '"a\\nb"'),
        ("last_id", "9" * 4000),
        ("created", "[" * 100_000),
        ("settings", '{"a":"\\ud800"}'),
        ("settings", '{"\\ud800":1}'),
    ],
)
def test_a_manifest_with_a_right_checksum_and_a_wrong_value_is_one_line(
    tmp_path: Path, key: str, value: str
) -> None:
    build(tmp_path, [Segment("a", "b")], "en", "fr")
    content = json.loads((tmp_path / "manifest.json").read_text()) | {key: "<here>"}
    content.pop("checksum")
    reseal(tmp_path, json.dumps(content, indent=1).replace('"<here>"', value))
    with pytest.raises(MemoryIndexError, match=r"manifest.json: damaged \(") as raised:
        MemoryIndex.open(tmp_path)
    assert str(raised.value).isprintable() and len(str(raised.value)) < 500


@pytest.mark.parametrize("step", [0, 1])
def test_a_view_that_never_ends_is_not_asked(tmp_path: Path, step: int) -> None:
    build(tmp_path, [Segment("a", "b")], "en", "fr")
    with sqlite3.connect(tmp_path / "generation-1" / "segments.db") as db:
        db.execute("DROP TABLE segments")
        db.execute("CREATE VIEW segments AS " + ENDLESS.format(step))
    db.close()
    reseal(tmp_path)
    with pytest.raises(
        MemoryIndexError, match=r"segments.db: the store cannot be opened: it holds something else"
    ):
        MemoryIndex.open(tmp_path)


def test_a_changed_folder_works_or_is_refused_in_one_line() -> None:
    found = fuzz(300, 18)
    assert not found["failed"], json.dumps(found["failed"], indent=1)
    assert sum(found["counts"].values()) == 300
    for name in CHANGES:
        assert found["counts"].get(f"{name}: refused"), f"{name}: nothing was refused"
    assert sum(count for name, count in found["counts"].items() if name.endswith("fine")) > 10
