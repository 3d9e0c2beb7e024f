"""What goes into the store comes out of it, or is reported as damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.filter import Filter
from tmnmt.index.store import Store
from tmnmt.segments import Segment

FULL = Segment(
    "a\u0000b 'quoted' \U0001f600", "é", "doc/1", 7, 0, "origin", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "me",
    (("note", 'x "y"\n'), ("note", "é")),
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "segments.db"
    store = Store.create(path)
    store.add([FULL, Segment("", ""), Segment("x", "y")])
    store.seal()
    return path


def test_every_field_comes_back(path: Path) -> None:
    store = Store.read(path)
    assert store.by_ids([1, 3]) == {1: replace(FULL, id=1), 3: Segment("x", "y", id=3)}
    assert [segment.id for segment in store] == [1, 2, 3]
    assert len(store) == 3


def test_many_ids_are_read_at_once(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "many.db")
    ids = store.add(Segment(str(i), "") for i in range(1200))
    found = store.by_ids(reversed(ids))
    assert [found[i].src for i in ids] == [str(i) for i in range(1200)]
    assert [segment.src for segment in store] == [str(i) for i in range(1200)]


def test_ids_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "kept.db")
    assert store.add([Segment("a", "b", id=4), Segment("c", "d", id=9)], keep_ids=True) == [4, 9]
    assert [(segment.id, segment.src) for segment in store] == [(4, "a"), (9, "c")]
    assert store.holds(9) and not store.holds(1)


def test_what_is_no_text_is_not_added(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no Unicode text"):
        Store.create(tmp_path / "bad.db").add([Segment("fine", ""), Segment("lone \ud800", "")])


FILTERS = [
    (Filter(), [1, 2, 3]),
    (Filter(document="doc/1"), [1]),
    (Filter(origin="", user=""), [2, 3]),
    (Filter(user="you"), []),
    (Filter(since="2026-01-02T00:00:00Z"), [1]),
    (Filter(since="2026-01-03"), []),
    (Filter(before="2026-01-02T00:00:00Z"), [2, 3]),
    (Filter(property=("note", None)), [1]),
    (Filter(property=("note", "é")), [1]),
    (Filter(property=("note", "other")), []),
]


@pytest.mark.parametrize(("wanted", "ids"), FILTERS)
def test_a_filter_chooses_the_same_in_the_store_and_one_by_one(path: Path, wanted: Filter, ids: list[int]) -> None:
    store = Store.read(path)
    assert [segment.id for segment in store.chosen(wanted)] == ids
    assert [segment.id for segment in store if wanted.keeps(segment)] == ids


def test_a_changed_row_is_reported(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE segments SET tgt = 'z' WHERE id = 3")
    store = Store.read(path)
    with pytest.raises(MemoryIndexError, match="segment 3 is damaged"):
        store.by_ids([3])
    with pytest.raises(MemoryIndexError, match="segment 3 is damaged"):
        list(store)


def test_a_missing_row_is_reported(path: Path) -> None:
    with pytest.raises(MemoryIndexError, match="segment 9 is missing"):
        Store.read(path).by_ids([1, 9])


def test_a_file_that_is_no_store_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "segments.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(MemoryIndexError, match="cannot be opened"):
        Store.read(tmp_path / "segments.db")
