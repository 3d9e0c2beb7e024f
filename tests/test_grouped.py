"""Changes of many threads are put on disk together, and each hears what came of its own."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from itertools import chain
from pathlib import Path

import pytest

from tmnmt.errors import DataError, LockedError, ServerError
from tmnmt.grouped import MAX_GROUP, Grouped
from tmnmt.index import MemoryIndex, build
from tmnmt.index.embedded.lock import writing
from tmnmt.segments import Segment
from tmnmt.serve.storage.records import StoredSession
from tmnmt.serve.storage.sqlite import SqliteStorage

THREADS = 16


class Disk:
    """A disk that waits until it may write."""

    def __init__(self) -> None:
        self.is_writing, self.may_write = threading.Event(), threading.Event()
        self.writes = list[list[int]]()
        self.error: Exception | None = None

    def begin(self) -> list[int]:
        return []

    def end(self, changes: list[int]) -> None:
        self.is_writing.set()
        assert self.may_write.wait(60)
        if self.error is not None:
            raise self.error
        self.writes.append(changes)


def change(grouped: Grouped[list[int]], disk: Disk, number: int) -> None:
    with grouped.change(disk.begin, disk.end) as changes:
        if number < 0:
            raise ValueError(number)
        changes.append(number)


def wait_until(grouped: Grouped[list[int]], waiting: int) -> None:
    for _ in range(6000):
        if grouped._waiting == waiting:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{grouped._waiting} wait")


def test_those_that_wait_for_the_disk_are_written_together() -> None:
    grouped, disk = Grouped[list[int]](), Disk()
    with ThreadPoolExecutor(MAX_GROUP + 9) as threads:
        made = [threads.submit(change, grouped, disk, 0)]
        assert disk.is_writing.wait(60)
        for number in range(1, MAX_GROUP + 9):
            made.append(threads.submit(change, grouped, disk, number))
        wait_until(grouped, MAX_GROUP + 8)
        disk.may_write.set()
        for each in made:
            each.result(60)
    assert sorted(chain.from_iterable(disk.writes)) == list(range(MAX_GROUP + 9))
    assert [len(write) for write in disk.writes] == [1, MAX_GROUP, 8]


def test_a_block_that_raises_is_alone_in_it() -> None:
    grouped, disk = Grouped[list[int]](), Disk()
    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(change, grouped, disk, number) for number in (0, 1, -1, 2)]
        wait_until(grouped, 3)
        disk.may_write.set()
        for each in (made[0], made[1], made[3]):
            each.result(60)
        with pytest.raises(ValueError, match="-1"):
            made[2].result(60)
    assert sorted(chain.from_iterable(disk.writes)) == [0, 1, 2]


def test_where_the_disk_fails_nobody_is_told_otherwise() -> None:
    grouped, disk = Grouped[list[int]](), Disk()
    disk.error = OSError("full")
    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(change, grouped, disk, number) for number in range(4)]
        wait_until(grouped, 3)
        disk.may_write.set()
        for each in made:
            with pytest.raises(OSError, match="full"):
                each.result(60)
    disk.error = None
    change(grouped, disk, 5)
    assert disk.writes == [[5]]


def test_a_group_whose_last_does_not_come_is_written_all_the_same() -> None:
    grouped, disk = Grouped[list[int]](), Disk()
    disk.may_write.set()
    grouped._waiting = 1  # as though somebody came
    change(grouped, disk, 1)
    assert disk.writes == [[1]]


def test_additions_to_an_index_share_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", [Segment("It was there.", "Il y était.")], "en", "fr")
    syncs, sync = list[int](), os.fsync

    def slow(handle: int) -> None:
        syncs.append(handle)
        threading.Event().wait(0.05)
        sync(handle)

    monkeypatch.setattr(os, "fsync", slow)
    with MemoryIndex.open(tmp_path / "index") as index:

        def add(number: int) -> int | None:
            text = "\ud800" if number % 10 == 3 else f"Notice {number}."
            try:
                (id,) = index.add([Segment(text, f"Avis {number}.")])
            except DataError:
                return None
            assert index.get([id])[0].src == text
            assert index.search([text], 1, 1.0)[0][0].segment.id == id
            return id

        with ThreadPoolExecutor(THREADS) as threads:
            ids = list(threads.map(add, range(160)))
        assert len(syncs) < 80  # one each would be 144
        with ThreadPoolExecutor(THREADS) as threads:  # some delete what others are adding beside it
            list(threads.map(lambda id: (index.delete([id]), add(id)), range(2, 22)))
        assert len(index) == 145 - sum(number % 10 == 3 for number in range(2, 22))
        added = [id for id in ids if id is not None]
        assert sorted(added) == list(range(2, 146))
        assert all(id is None for id in ids[3::10])


def test_a_lock_of_another_is_waited_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another, the last would wait sixteen times as long."""
    build(tmp_path / "index", [Segment("It was there.", "Il y était.")], "en", "fr")
    waits = list[float]()

    def noted(folder: Path, seconds: float) -> AbstractContextManager[None]:
        waits.append(seconds)
        return writing(folder, seconds)

    monkeypatch.setattr("tmnmt.index.embedded.index.SECONDS_TO_WAIT", 0.5)
    monkeypatch.setattr("tmnmt.index.embedded.index.writing", noted)
    with MemoryIndex.open(tmp_path / "index") as index:

        def add(number: int) -> bool:
            try:
                index.add([Segment(f"Notice {number}.", f"Avis {number}.")])
            except LockedError:
                return False
            return True

        with ThreadPoolExecutor(THREADS) as threads:
            with writing(tmp_path / "index", 1.0):
                assert not any(threads.map(add, range(THREADS)))
            assert 0 < len(waits) < THREADS / 2
            assert all(threads.map(add, range(THREADS)))


def test_a_search_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", [Segment("It was there.", "Il y était.")], "en", "fr")
    may_write, is_writing, sync = threading.Event(), threading.Event(), os.fsync

    def slow(handle: int) -> None:
        is_writing.set()
        assert may_write.wait(60)
        sync(handle)

    monkeypatch.setattr(os, "fsync", slow)
    with MemoryIndex.open(tmp_path / "index") as index, ThreadPoolExecutor(2) as threads:
        added = threads.submit(index.add, [Segment("It is here.", "C'est ici.")])
        assert is_writing.wait(60)
        found = threads.submit(index.search, ["It was there.", "It is here."], 1, 0.9)
        try:
            assert [len(matches) for matches in found.result(30)] == [1, 0]
        finally:
            may_write.set()
        assert added.result(60) == [2]
        assert [len(matches) for matches in index.search(["It is here."], 1, 0.9)] == [1]


def test_changes_of_sessions_share_the_disk(tmp_path: Path) -> None:
    with closing(SqliteStorage(tmp_path / "sessions.db")) as storage:
        sessions = storage.sessions
        statements = list[str]()
        storage._file._write.set_trace_callback(statements.append)

        def make(number: int) -> bool:
            session = StoredSession(str(number), "a", "model", {}, 1e12)
            if number % 10:
                return sessions.make(session, 0.0, 1000)
            with pytest.raises(ServerError), storage._file.writing() as to:
                to.execute("DELETE FROM session")
                to.execute("INSERT INTO session VALUES (1)")
            return False

        with ThreadPoolExecutor(THREADS) as threads:
            made = list(threads.map(make, range(200)))
        assert made == [number % 10 > 0 for number in range(200)]
        assert sessions.count() == 180
        assert statements.count("COMMIT") < 200
    with closing(SqliteStorage(tmp_path / "sessions.db")) as storage:
        assert storage.sessions.count() == 180
