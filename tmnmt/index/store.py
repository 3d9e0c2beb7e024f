"""The segments of a generation in SQLite: written once, then only read. What changes later stands in the journal."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.filter import EVERYTHING, Filter
from tmnmt.segments import Segment

_SCHEMA = """
CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    src TEXT NOT NULL, tgt TEXT NOT NULL,
    document TEXT NOT NULL, position INTEGER NOT NULL,
    origin TEXT NOT NULL, created TEXT NOT NULL, changed TEXT NOT NULL, user TEXT NOT NULL,
    properties TEXT NOT NULL,
    checksum INTEGER NOT NULL
)
"""
_COLUMNS = "id, src, tgt, document, position, origin, created, changed, user, properties, checksum"
_INSERT = f"INSERT INTO segments ({_COLUMNS}) VALUES ({', '.join('?' * 11)})"
_CHECKED = "\x1f".join(["%s"] * 10)
_ONE = f"SELECT {_COLUMNS} FROM segments WHERE id = ?"


class Store:
    """Segments by id. Made by `Store.create` (a build), then opened by `Store.read` (many, from any thread)."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._db = connection
        self._rows = connection.cursor()  # of `found`: a new one for every row would take longer
        self._lock = threading.Lock()
        self._last_id = 0

    @classmethod
    def create(cls, path: Path) -> Store:
        """A new, empty store for one bulk load. Not safe against a kill before `seal`: a build has its own folder."""
        db = _connect(path, "mode=rwc")
        try:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_SCHEMA)
        except sqlite3.Error as error:
            db.close()
            raise MemoryIndexError(f"{path}: the store cannot be written: {error}") from error
        return cls(db, path)

    @classmethod
    def read(cls, path: Path) -> Store:
        """The sealed store at `path`. SQLite neither locks it nor writes a file beside it, so the folder may be
        read-only."""
        db = _connect(path, "mode=ro&immutable=1")
        db.execute(f"PRAGMA mmap_size = {1 << 40}")  # as much as SQLite maps: it copies no page to read a row
        return cls(db, path)

    def add(self, segments: Iterable[Segment], *, keep_ids: bool = False) -> list[int]:
        """Adds segments with their own ids, or else numbered on from 1; the ids. Raises MemoryIndexError where they
        cannot be written (disk full), DataError where a text is no Unicode."""
        rows = [
            _row(segment.id if keep_ids else number, segment)
            for number, segment in enumerate(segments, self._last_id + 1)
        ]
        try:
            with self._lock, self._db:
                self._db.execute("BEGIN")
                self._db.executemany(_INSERT, rows)
        except UnicodeEncodeError as error:
            raise DataError(f"a segment has a character that is no Unicode text: {error}") from error
        except sqlite3.Error as error:
            raise MemoryIndexError(f"{self.path}: the store cannot be written: {error}") from error
        self._last_id = rows[-1][0] if rows else self._last_id
        return [row[0] for row in rows]

    def by_ids(self, ids: Iterable[int]) -> dict[int, Segment]:
        """The segments with these ids. Raises MemoryIndexError where one is missing or damaged."""
        wanted = list(dict.fromkeys(ids))
        found = self.found(wanted)
        missing = next((number for number in wanted if number not in found), None)
        if missing is not None:
            raise MemoryIndexError(f"{self.path}: segment {missing} is missing; build the index again")
        return found

    def found(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of the segments with these ids that there are. Raises MemoryIndexError where one is damaged."""
        rows: dict[int, Any] = {}
        try:
            with self._lock:
                for number in ids:  # one by one: SQLite takes as long for each of a list
                    rows[number] = self._rows.execute(_ONE, (number,)).fetchone()
        except (sqlite3.DatabaseError, OverflowError) as error:  # an id that is no 64-bit number
            raise MemoryIndexError(f"{self.path}: the store cannot be read: {error}") from error
        return {number: self._segment(row) for number, row in rows.items() if row is not None}

    def __iter__(self) -> Iterator[Segment]:
        """Every segment in order of id, a thousand in memory at a time."""
        return self.chosen(EVERYTHING)

    def chosen(self, wanted: Filter) -> Iterator[Segment]:
        """The segments that are meant, in order of id, a thousand in memory at a time."""
        where, values = wanted.sql()
        last = 0
        while some := self._select(f"WHERE id > ? AND {where} ORDER BY id LIMIT 1000", (last, *values)):
            yield from filter(wanted.keeps, some)
            last = some[-1].id

    def holds(self, number: int) -> bool:
        """Whether there is a segment with this id."""
        return bool(self._scalar("SELECT count(*) FROM segments WHERE id = ?", (number,)))

    def __len__(self) -> int:
        return int(self._scalar("SELECT count(*) FROM segments"))

    def seal(self) -> None:
        """Ends a bulk load: everything is on disk, and the connection is closed."""
        self.close()
        with self.path.open("rb") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __del__(self) -> None:
        self._db.close()  # a store that was replaced ends with the last search that reads it

    def _select(self, where: str, values: Sequence[Any]) -> list[Segment]:
        with self._lock:
            try:
                rows = self._db.execute(f"SELECT {_COLUMNS} FROM segments {where}", values).fetchall()
            except sqlite3.DatabaseError as error:
                raise MemoryIndexError(f"{self.path}: the store cannot be read: {error}") from error
        return [self._segment(row) for row in rows]

    def _scalar(self, query: str, values: Sequence[Any] = ()) -> Any:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchone()[0]
            except sqlite3.DatabaseError as error:
                raise MemoryIndexError(f"{self.path}: the store cannot be read: {error}") from error

    def _segment(self, row: tuple[Any, ...]) -> Segment:
        if _checksum(row[:-1]) != row[-1]:
            raise MemoryIndexError(f"{self.path}: segment {row[0]} is damaged (checksum); build the index again")
        number, src, tgt, document, position, origin, created, changed, user, properties, _ = row
        pairs = tuple((name, value) for name, value in json.loads(properties)) if properties else ()
        return Segment(src, tgt, document, position, number, origin, created, changed, user, pairs)


def _connect(path: Path, options: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{options}"
    try:
        db = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
        db.execute("PRAGMA schema_version").fetchone()  # connecting is lazy: this opens the file
    except sqlite3.Error as error:
        raise MemoryIndexError(f"{path}: the store cannot be opened: {error}") from error
    return db


def _row(number: int, segment: Segment) -> tuple[Any, ...]:
    properties = json.dumps(segment.properties, ensure_ascii=False) if segment.properties else ""
    row = (
        number, segment.src, segment.tgt, segment.document, segment.position, segment.origin,
        segment.created, segment.changed, segment.user, properties,
    )  # fmt: skip
    return (*row, _checksum(row))


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32((_CHECKED % values).encode("utf-8", "surrogatepass"))
