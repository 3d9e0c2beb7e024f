"""The segments of a generation: written once, then only read. What changes later stands in the
journal.

What a segment says is in `rows`; SQLite has what a filter asks of them.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from operator import lt
from pathlib import Path
from typing import Any

from tmnmt.errors import DataError, MemoryIndexError, short_repr
from tmnmt.index.embedded.rows import NewRows, Rows, record
from tmnmt.index.filter import NO_FILTER, Filter
from tmnmt.segments import Segment
from tmnmt.system import flush_file

DATABASE, ROWS, START = STORE_FILES = "segments.db", "segments.rows", "segments.start"
_SCHEMA = """CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    document TEXT NOT NULL, origin TEXT NOT NULL, changed TEXT NOT NULL, user TEXT NOT NULL
)"""
STEPS = 100_000  # of SQLite's machine between two looks at how long a query takes
# a query needs some 20 of them; one that needs more reads what no build wrote
STEPS_A_SEGMENT = 1000
_INSERT = "INSERT INTO segments (id, document, origin, changed, user) VALUES (?, ?, ?, ?, ?)"


class NewStore:
    """An empty store in a folder, for one bulk load. Not safe against a kill before `seal`: a build
    has its own."""

    def __init__(self, folder: Path, size: int = 0) -> None:
        """folder: the folder of the store.
        size: how many bytes of rows are there already (`NewRows`).

        Raises MemoryIndexError where nothing can be written there."""
        self._path = folder / DATABASE
        self._path.unlink(missing_ok=True)  # a kill may have left half a transaction in it
        self._db = _connect(self._path, "mode=rwc")
        self._last_id = 0
        try:
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.execute(_SCHEMA)
            self._rows = NewRows(folder / ROWS, folder / START, size)
        except (sqlite3.Error, OSError) as error:
            self._db.close()
            raise self._unwritten(error) from error
        except MemoryIndexError:
            self._db.close()
            raise

    def flush(self) -> int:
        """The rows that were added are on disk then; how many bytes they take.

        Raises MemoryIndexError where they cannot be written."""
        try:
            return self._rows.flush()
        except OSError as error:
            raise self._unwritten(error) from error

    def add(self, segments: Iterable[Segment], *, keep_ids: bool = False) -> list[int]:
        """Adds segments and returns their ids.

        segments: the segments.
        keep_ids: whether they keep their own ids, which ascend; otherwise they are numbered on from
        1.

        Raises MemoryIndexError where they cannot be written (disk full). Raises DataError where a
        text is no Unicode."""
        numbered = [
            (segment.id if keep_ids else number, segment)
            for number, segment in enumerate(segments, self._last_id + 1)
        ]
        try:
            for number, segment in numbered:
                self._rows.add(number, record(segment, number))
            with self._db:
                self._db.execute("BEGIN")
                self._db.executemany(
                    _INSERT, ((n, s.document, s.origin, s.changed, s.user) for n, s in numbered)
                )
        except UnicodeEncodeError as error:
            raise DataError(
                f"a segment has a character that is no Unicode text: {error}"
            ) from error
        except (sqlite3.Error, OSError) as error:
            raise self._unwritten(error) from error
        self._last_id = numbered[-1][0] if numbered else self._last_id
        return [number for number, _ in numbered]

    def seal(self) -> None:
        """Ends the bulk load: everything is on disk, and closed. Raises MemoryIndexError where it
        cannot be written."""
        try:
            self._rows.seal()
            self._db.close()
            flush_file(self._path)
        except (sqlite3.Error, OSError) as error:
            raise self._unwritten(error) from error

    def close(self) -> None:
        self._rows.close()
        self._db.close()

    def _unwritten(self, error: Exception) -> MemoryIndexError:
        return MemoryIndexError(f"{self._path}: the store cannot be written: {error}")


class Store:
    """The segments that a `NewStore` sealed in `folder`, by id, from any thread."""

    def __init__(self, folder: Path) -> None:
        """SQLite neither locks the database nor writes a file beside it, so the folder may be
        read-only.

        folder: the folder of the store.

        Raises MemoryIndexError where it cannot be opened."""
        self.path = folder / DATABASE
        self._rows = Rows(folder / ROWS, folder / START)
        self._limit = _Limit(len(self._rows))
        self._db = _connect(self.path, "mode=ro&immutable=1", self._limit)
        self._lock = threading.Lock()
        self.present = self._rows.present

    def by_ids(self, ids: Iterable[int]) -> dict[int, Segment]:
        """The segments with these ids, by their ids.

        ids: the ids.

        Raises MemoryIndexError where one is missing or damaged."""
        numbers = list(ids)
        segments = self._rows.present(numbers)
        missing = next((number for number in numbers if number not in segments), None)
        if missing is not None:
            raise MemoryIndexError(
                f"{self.path}: segment {missing} is missing; build the index again"
            )
        return segments

    def __iter__(self) -> Iterator[Segment]:
        """Every segment in order of id, a thousand in memory at a time."""
        return self.select(NO_FILTER)

    def select(self, conditions: Filter) -> Iterator[Segment]:
        """The segments that meet some conditions, in the order of their ids. A thousand are in
        memory at a time.

        conditions: the conditions."""
        clause, values = conditions.sql()
        last = 0
        while numbers := self._ids(
            f"WHERE id > ? AND {clause} ORDER BY id LIMIT 1000", (last, *values)
        ):
            if not all(map(lt, [last, *numbers], numbers)):
                raise MemoryIndexError(
                    f"{self.path}: damaged (ids out of order); build the index again with --force"
                )
            yield from filter(conditions.keeps, self.by_ids(numbers).values())
            last = numbers[-1]

    def ids(self, conditions: Filter) -> list[int]:
        """The ids of the segments that meet some conditions, ascending. The segments are not read.

        conditions: the conditions."""
        clause, values = conditions.sql()
        numbers = self._ids(f"WHERE {clause} ORDER BY id", values)
        if conditions.property is None:
            return numbers
        return self._rows.with_property(numbers, *conditions.property)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __del__(self) -> None:
        if hasattr(self, "_db"):
            self._db.close()  # a store that was replaced ends with the last search that reads it

    def _ids(self, clause: str, values: Sequence[Any]) -> list[int]:
        with self._lock:
            self._limit.looks = 0
            try:
                return [
                    number
                    for (number,) in self._db.execute(f"SELECT id FROM segments {clause}", values)
                ]
            except sqlite3.DatabaseError as error:
                raise MemoryIndexError(
                    f"{self.path}: the store cannot be read: {_message(error)}"
                ) from error


class _Limit:
    """Ends a query that takes more steps than any of so many segments needs: what SQLite reads may
    have been made so that it never ends."""

    def __init__(self, segments: int) -> None:
        self.limit = 2 + segments * STEPS_A_SEGMENT // STEPS
        self.looks = 0

    def __call__(self) -> bool:
        self.looks += 1
        return self.looks > self.limit


def _message(error: Exception) -> str:
    """What SQLite says, on one line: it tells what it does not understand as it stands
    in the file."""
    text = str(error)
    return text if text.isprintable() else short_repr(text)


def _connect(path: Path, options: str, limit: _Limit | None = None) -> sqlite3.Connection:
    """A new database; with `limit` one that is there, which must have the one table that a build
    makes."""
    address = f"{path.absolute().as_uri()}?{options}"
    try:
        db = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
        db.execute("PRAGMA trusted_schema = OFF")
        db.set_progress_handler(limit, STEPS)
        db.execute("PRAGMA schema_version").fetchone()  # connecting is lazy: this opens the file
        if limit is None:
            return db
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(path.stat().st_size, 1000))  # bytes of a value
        objects = db.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 2").fetchall()
    except (sqlite3.Error, OSError) as error:
        raise MemoryIndexError(f"{path}: the store cannot be opened: {_message(error)}") from error
    if objects != [("table", "segments", _SCHEMA)]:
        db.close()
        raise MemoryIndexError(
            f"{path}: the store cannot be opened: it holds something else than a build makes"
        )
    return db
