"""The segments of a memory in SQLite: the truth from which everything else in an index is derived."""

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
from tmnmt.segments import Segment

_SCHEMA = """
CREATE TABLE segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    src TEXT NOT NULL, tgt TEXT NOT NULL,
    document TEXT NOT NULL, position INTEGER NOT NULL,
    origin TEXT NOT NULL, created TEXT NOT NULL, changed TEXT NOT NULL, user TEXT NOT NULL,
    properties TEXT NOT NULL,
    checksum INTEGER NOT NULL
)
"""
_COLUMNS = "id, src, tgt, document, position, origin, created, changed, user, properties, checksum"
_INSERT = f"INSERT INTO segments ({_COLUMNS}) VALUES ({', '.join('?' * 11)})"
_IDS_A_QUERY = 500


class Store:
    """Segments by id. Made by `Store.create` (a build), `Store.read` (many) or `Store.write` (one at a time)."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._db = connection
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path) -> Store:
        """A new, empty store for one bulk load. Not safe against a kill before `seal`: a build has its own folder."""
        db = _connect(path, "rwc")
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(_SCHEMA)
        return cls(db, path)

    @classmethod
    def read(cls, path: Path) -> Store:
        """The store at `path` for reading, from any thread; sees what others commit."""
        # WAL needs a shared-memory file beside the store; where none can be made, nobody can be writing either.
        options = "ro" if os.access(path.parent, os.W_OK) else "ro&immutable=1"
        return cls(_connect(path, options), path)

    @classmethod
    def write(cls, path: Path) -> Store:
        """The store at `path` for additions that are on disk when they are acknowledged."""
        db = _connect(path, "rw")
        db.execute("PRAGMA synchronous = FULL")
        return cls(db, path)

    def add(self, segments: Iterable[Segment]) -> list[int]:
        """Adds segments (their own ids are ignored) in one transaction; their new ids, ascending."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            (last,) = self._db.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()
            rows = [_row(number, segment) for number, segment in enumerate(segments, last + 1)]
            try:
                self._db.executemany(_INSERT, rows)
            except UnicodeEncodeError as error:
                raise DataError(f"a segment has a character that is no Unicode text: {error}") from error
        return [row[0] for row in rows]

    def by_ids(self, ids: Iterable[int]) -> dict[int, Segment]:
        """The segments with these ids. Raises MemoryIndexError where one is missing or damaged."""
        wanted = list(dict.fromkeys(ids))
        found: dict[int, Segment] = {}
        for some in _runs(wanted):
            marks = ", ".join("?" * len(some))
            for segment in self._select(f"WHERE id IN ({marks})", some):
                found[segment.id] = segment
        if len(found) < len(wanted):
            missing = next(i for i in wanted if i not in found)
            raise MemoryIndexError(f"{self.path}: segment {missing} is missing; build the index again")
        return found

    def after(self, last_id: int) -> list[Segment]:
        """The segments with ids greater than `last_id`, in order of id."""
        return self._select("WHERE id > ? ORDER BY id", (last_id,))

    def __iter__(self) -> Iterator[Segment]:
        """Every segment in order of id, a thousand in memory at a time."""
        last = 0
        while some := self._select("WHERE id > ? ORDER BY id LIMIT 1000", (last,)):
            yield from some
            last = some[-1].id

    def __len__(self) -> int:
        return int(self._scalar("SELECT count(*) FROM segments"))

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        return int(self._scalar("PRAGMA data_version"))

    def seal(self) -> None:
        """Ends a bulk load: everything is on disk, the store is in WAL mode, the connection is closed."""
        self._db.execute("PRAGMA journal_mode = WAL")
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

    def _scalar(self, query: str) -> Any:
        with self._lock:
            try:
                return self._db.execute(query).fetchone()[0]
            except sqlite3.DatabaseError as error:
                raise MemoryIndexError(f"{self.path}: the store cannot be read: {error}") from error

    def _segment(self, row: tuple[Any, ...]) -> Segment:
        if _checksum(row[:-1]) != row[-1]:
            raise MemoryIndexError(f"{self.path}: segment {row[0]} is damaged (checksum); build the index again")
        number, src, tgt, document, position, origin, created, changed, user, properties, _ = row
        pairs = tuple((name, value) for name, value in json.loads(properties)) if properties else ()
        return Segment(src, tgt, document, position, number, origin, created, changed, user, pairs)


def _runs(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Runs of ids that fit into one SQL statement."""
    return (ids[i : i + _IDS_A_QUERY] for i in range(0, len(ids), _IDS_A_QUERY))


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
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


def _checksum(values: Sequence[Any]) -> int:
    return zlib.crc32("\x1f".join(map(str, values)).encode("utf-8", "surrogatepass"))
