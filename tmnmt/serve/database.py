"""What outlives the process and is shared by several: one file of SQLite, with sessions, jobs and
glossaries.

A change that was made is on disk: the log is written ahead (WAL) and synced at every commit.
Readers never wait for a writer, and writers of several processes come one after another."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tmnmt.durable import make_folder
from tmnmt.errors import DataError, ServerError, UsageError

FORMAT = 2  # 2: reviews
NAME = b"tmns"  # application_id: a file of another program is not taken
BUSY = 20.0  # seconds that a writer waits for those of other processes
_TABLES = """
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    model TEXT NOT NULL,
    given TEXT NOT NULL,     -- JSON: what it reads and writes
    used REAL NOT NULL       -- seconds since 1970, to an hour
) WITHOUT ROWID;
CREATE TABLE done (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    record TEXT NOT NULL     -- JSON: a pair as a saved session holds it
);
CREATE INDEX done_of_session ON done (session, number);
CREATE TABLE review (
    number INTEGER PRIMARY KEY REFERENCES done(number) ON DELETE CASCADE,
    record TEXT NOT NULL     -- JSON: what had been suggested, and keystrokes
);
CREATE TABLE job (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    given TEXT NOT NULL,     -- JSON: what it is about
    state TEXT NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER,
    told TEXT NOT NULL,      -- JSON: what came of it
    made BLOB,               -- the file that it has made
    changed REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE glossary (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    made TEXT NOT NULL       -- a time of ISO 8601
) WITHOUT ROWID;
CREATE TABLE dictionary (
    glossary TEXT NOT NULL REFERENCES glossary(id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    entries TEXT NOT NULL,   -- JSON: pairs of terms
    PRIMARY KEY (glossary, source, target)
) WITHOUT ROWID;
"""


def usual_place() -> Path:
    """$XDG_STATE_HOME/tmnmt/serve.db, else in ~/.local/state. Raises UsageError where there is no
    home folder."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        home = state if state.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise UsageError("there is no home folder for sessions: give --sessions FILE") from error
    return home / "tmnmt" / "serve.db"


class Database:
    """For any thread: one connection reads, one writes. Raises DataError where the file is none of
    these, and ServerError where it cannot be read or written later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            make_folder(path.parent)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._write, self._read = self._connection(), self._connection()
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise DataError(f"{path}: cannot hold sessions: {why}") from error
        self._writing, self._reading = threading.Lock(), threading.Lock()

    def _connection(self) -> sqlite3.Connection:
        made = sqlite3.connect(
            self._path, timeout=BUSY, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            made.execute(f"PRAGMA {pragma}").fetchall()
        made.execute("PRAGMA trusted_schema = OFF")
        return made

    def _prepare(self) -> None:
        """Makes the tables of a new file. Two processes may come at once."""
        number = int.from_bytes(NAME, "big")
        self._write.execute("BEGIN IMMEDIATE")
        try:
            ((name,),) = self._write.execute("PRAGMA application_id").fetchall()
            ((format_,),) = self._write.execute("PRAGMA user_version").fetchall()
            ((tables,),) = self._write.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            if (name, format_, tables) == (0, 0, 0):
                for statement in _TABLES.split(";"):
                    self._write.execute(statement)
                self._write.execute(f"PRAGMA application_id = {number}")
                self._write.execute(f"PRAGMA user_version = {FORMAT}")
            elif name != number:
                raise DataError(f"{self._path}: is another database, and holds no sessions")
            elif format_ != FORMAT:
                raise DataError(
                    f"{self._path}: sessions of format {format_}, this version reads {FORMAT}"
                )
            self._write.execute("COMMIT")
        finally:
            if self._write.in_transaction:
                self._write.execute("ROLLBACK")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds."""
        with self._reading, _as_server_error():
            return self._read.execute(query, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Queries that see one state."""
        with self._reading, _as_server_error():
            self._read.execute("BEGIN")
            try:
                yield self._read
            finally:
                self._read.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is changed in the block is on disk when it ends, or nothing is."""
        with self._writing, _as_server_error():
            self._write.execute("BEGIN IMMEDIATE")
            try:
                yield self._write
                self._write.execute("COMMIT")
            finally:
                if self._write.in_transaction:
                    self._write.execute("ROLLBACK")

    def write(self, statement: str, *values: Any) -> int:
        """One change; how many rows it is of."""
        with self.writing() as connection:
            return connection.execute(statement, values).rowcount

    def write_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self.writing() as connection:
            connection.executemany(statement, rows)

    def close(self) -> None:
        with self._writing, self._reading:
            self._read.close()
            self._write.close()


@contextmanager
def _as_server_error() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ServerError(f"sessions cannot be read or written: {error}") from error
