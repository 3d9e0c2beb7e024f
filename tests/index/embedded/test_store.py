"""What goes into the store comes out of it, or is reported as damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from any_segments import SEGMENTS
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.embedded.rows import record, segment_of
from tmnmt.index.embedded.store import NewStore, Store
from tmnmt.index.filter import Filter
from tmnmt.segments import Segment

FULL = Segment(
    "a\u0000b 'quoted' \U0001f600",
    "é",
    "doc/1",
    7,
    0,
    "origin",
    "2026-01-01T00:00:00Z",
    "2026-01-02T00:00:00Z",
    "me",
    (("note", 'x "y"\n'), ("note", "é")),
)


def sealed(folder: Path, segments: Iterable[Segment], keep_ids: bool = False) -> Path:
    with closing(NewStore(folder)) as store:
        store.add(segments, keep_ids=keep_ids)
        store.seal()
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return sealed(tmp_path, [FULL, Segment("", ""), Segment("x", "y")])


def test_every_field_comes_back(path: Path) -> None:
    store = Store(path)
    assert store.by_ids([1, 3]) == {1: replace(FULL, id=1), 3: Segment("x", "y", id=3)}
    assert [segment.id for segment in store] == [1, 2, 3]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=8, max_size=8),
    st.integers(0, 2**40),
)
def test_any_text_comes_back_and_any_flipped_bit_is_found(texts: list[str], number: int) -> None:
    src, tgt, document, origin, created, changed, user, value = texts
    pairs = ((src, "\x1e0\x1f1"), (document, value))
    segment = Segment(src, "\x1f" + tgt, document, 9, number, origin, created, changed, user, pairs)
    content = record(segment, number)
    assert segment_of(content, number) == segment
    assert segment_of(content, number + 1) is None
    for bit in {0, 8 * len(content) - 1, number % (8 * len(content))}:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert segment_of(bytes(damaged), number) is None


def test_many_ids_are_read_at_once(tmp_path: Path) -> None:
    store, ids = Store(sealed(tmp_path, (Segment(str(i), "") for i in range(1200)))), range(1, 1201)
    found = store.by_ids(reversed(ids))
    assert [found[i].src for i in ids] == [str(i) for i in range(1200)]
    assert [segment.src for segment in store] == [str(i) for i in range(1200)]


def test_ids_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    store = Store(
        sealed(tmp_path, [Segment("a", "b", id=4), Segment("c", "d", id=9)], keep_ids=True)
    )
    assert [(segment.id, segment.src) for segment in store] == [(4, "a"), (9, "c")]
    assert list(store.present([-1, 0, 1, 3, 4, 5, 8, 9, 10, 11, 1 << 70])) == [4, 9]


def test_ids_that_do_not_ascend_are_not_added(tmp_path: Path) -> None:
    with closing(NewStore(tmp_path)) as store, pytest.raises(ValueError, match="ids ascend"):
        store.add([Segment("a", "b", id=4), Segment("c", "d", id=4)], keep_ids=True)


def test_what_is_no_text_is_not_added(tmp_path: Path) -> None:
    with closing(NewStore(tmp_path)) as store, pytest.raises(DataError, match="no Unicode text"):
        store.add([Segment("fine", ""), Segment("lone \ud800", "")])


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
def test_a_filter_chooses_the_same_in_the_store_and_one_by_one(
    path: Path, wanted: Filter, ids: list[int]
) -> None:
    store = Store(path)
    assert [segment.id for segment in store.select(wanted)] == ids
    assert [segment.id for segment in store if wanted.keeps(segment)] == ids


def test_a_changed_row_is_reported(path: Path) -> None:
    rows = path / "segments.rows"
    rows.write_bytes(rows.read_bytes().replace(b"x\x1fy", b"x\x1fz"))
    store = Store(path)
    with pytest.raises(MemoryIndexError, match="segment 3 is damaged"):
        store.by_ids([3])
    with pytest.raises(MemoryIndexError, match="segment 3 is damaged"):
        list(store)


def test_what_sqlite_does_not_understand_is_told_on_one_line(path: Path) -> None:
    with closing(sqlite3.connect(path / "segments.db")) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_schema SET sql = 'CREATE TABLE segments (' || char(127) || char(10) "
            "|| ')'"
        )
        db.commit()
    with pytest.raises(
        MemoryIndexError, match=r"segments.db: the store cannot be opened: "
    ) as raised:
        Store(path)
    assert str(raised.value).isprintable()


def test_a_missing_row_is_reported(path: Path) -> None:
    with pytest.raises(MemoryIndexError, match="segment 9 is missing"):
        Store(path).by_ids([1, 9])


@pytest.mark.parametrize(
    ("name", "content"), [("db", b"no database" * 100), ("rows", b""), ("start", b"x" * 9)]
)
def test_a_file_that_is_no_part_of_a_store_is_one_error(
    path: Path, name: str, content: bytes
) -> None:
    (path / f"segments.{name}").write_bytes(content)
    with pytest.raises(MemoryIndexError, match="cannot be opened"):
        Store(path)


@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\x13"])
def test_offsets_that_lead_nowhere_are_reported(path: Path, fill: bytes) -> None:
    start = path / "segments.start"
    start.write_bytes(fill * start.stat().st_size)
    with pytest.raises(MemoryIndexError, match=r"segment . is (missing|damaged)"):
        Store(path).by_ids([1, 2, 3])


@settings(max_examples=60, deadline=None)
@given(st.lists(SEGMENTS, max_size=6), st.data())
def test_ids_are_those_of_the_segments_that_a_filter_keeps(
    tmp_path_factory: pytest.TempPathFactory, segments: list[Segment], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("ids")
    tricky = '", "a"], ["'
    segments = [*segments, Segment('["x", "a"]', "t", properties=(("y", tricky), ("x", "a")))]
    segments += [Segment("s", '["x", "a"]', properties=(("y", '["x", "a"]'), (tricky, "")))]
    store = Store(sealed(folder, segments))
    known = [("x", "a"), ("x", None), ("y", tricky), (tricky, None), ("absent", None)]
    known += [pair for segment in segments for pair in segment.properties]
    users = [None, *{segment.user for segment in segments}]
    meant = Filter(user=data.draw(st.sampled_from(users)))
    for pair in [None, *known]:
        conditions = replace(meant, property=pair)
        kept = [n for n, one in enumerate(segments, 1) if conditions.keeps(one)]
        assert store.ids(conditions) == kept
    store.close()
