"""The file of SQLite that a server keeps what it must not lose in: its tables, and how it is read
and changed.

A change that was made is on disk: the log is written ahead (WAL) and synced at every commit.
Readers never wait for a writer, and writers of several processes come one after another."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tmnmt.durable import create, make_folder
from tmnmt.errors import DataError, ServerError
from tmnmt.grouped import Grouped
from tmnmt.serve.storage.base import BUSY

FORMAT = 4  # 2: reviews; 3: intentions; 4: segments, and several pairs of one of a memory
NAME = b"tmns"  # application_id: a file of another program is not taken
_INTENTIONS = """
CREATE TABLE intention (
    token TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,   -- which may be gone
    record TEXT NOT NULL,    -- JSON: a pair as a saved session holds it
    review TEXT NOT NULL,    -- JSON: as of `review`
    cancelled REAL,          -- seconds since 1970
    held TEXT,               -- the segment of a memory that it holds
    removes TEXT             -- when the segment was written that is to be deleted, or ''
) WITHOUT ROWID
"""
_SEGMENTS = """
CREATE INDEX done_of_segment ON done (session, segment) WHERE segment IS NOT NULL;
CREATE INDEX done_by_held ON done (held) WHERE held IS NOT NULL;
CREATE TABLE inherited (     -- segments of memories whose first pair was taken back, or that stay
    held TEXT PRIMARY KEY,
    changed TEXT NOT NULL    -- when it was written, or '' where it stays
) WITHOUT ROWID
"""
_COLUMNS = "ALTER TABLE {0} ADD COLUMN held TEXT; ALTER TABLE {0} ADD COLUMN {1} TEXT"
_UPGRADES = {  # by the format that a file has
    2: "; ".join((_INTENTIONS, _COLUMNS.format("done", "segment"), _SEGMENTS)),
    3: "; ".join(
        (_COLUMNS.format("intention", "removes"), _COLUMNS.format("done", "segment"), _SEGMENTS)
    ),
}
_TABLES = f"""
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
    record TEXT NOT NULL,    -- JSON: a pair as a saved session holds it
    held TEXT,               -- the segment of a memory that it holds
    segment TEXT             -- the client's name of what it is the translation of
);
CREATE INDEX done_of_session ON done (session, number);
CREATE TABLE review (
    number INTEGER PRIMARY KEY REFERENCES done(number) ON DELETE CASCADE,
    record TEXT NOT NULL     -- JSON: what had been suggested, and keystrokes
);
{_INTENTIONS};
{_SEGMENTS};
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
_BACKGROUND = """
CREATE TABLE IF NOT EXISTS background (
    session TEXT PRIMARY KEY REFERENCES session(id) ON DELETE CASCADE,
    pairs TEXT NOT NULL      -- JSON: a list of pairs as a saved session holds them
) WITHOUT ROWID
"""
_DOCUMENTS = """
CREATE TABLE IF NOT EXISTS document (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    version INTEGER NOT NULL,
    size INTEGER NOT NULL,   -- bytes of all that is kept of it
    head TEXT NOT NULL       -- JSON: what is known of all of it
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS document_of_tenant ON document (tenant);
CREATE TABLE IF NOT EXISTS document_content (
    document TEXT PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    content BLOB NOT NULL    -- the file as it came
);
CREATE TABLE IF NOT EXISTS document_segment (
    document TEXT NOT NULL REFERENCES document(id) ON DELETE CASCADE,
    number INTEGER NOT NULL, -- from 1
    version INTEGER NOT NULL, -- that of the document when it changed last
    record TEXT NOT NULL,    -- JSON
    PRIMARY KEY (document, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS document_changes ON document_segment (document, version);
CREATE TABLE IF NOT EXISTS document_history (
    document TEXT NOT NULL REFERENCES document(id) ON DELETE CASCADE,
    number INTEGER NOT NULL, -- of the segment
    slot INTEGER NOT NULL,   -- what comes later may take the place of what was there
    record TEXT NOT NULL,    -- JSON
    PRIMARY KEY (document, number, slot)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS document_person (
    document TEXT NOT NULL REFERENCES document(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    tab TEXT NOT NULL,       -- a name that a page gives itself
    number INTEGER,          -- of the segment at work
    since REAL NOT NULL,     -- seconds since 1970
    seen REAL NOT NULL,
    PRIMARY KEY (document, name, tab)
) WITHOUT ROWID
"""
_USAGE = """
CREATE TABLE IF NOT EXISTS usage (
    day TEXT NOT NULL,       -- as 2026-11-27
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, kind)
) WITHOUT ROWID
"""
_CLOCK = "CREATE TABLE IF NOT EXISTS clock (record TEXT NOT NULL)"  # as of `tmnmt.serve.clock`


class File:
    """A file for any thread: one connection reads, one writes. Every method raises ServerError
    where the file cannot be read or written."""

    def __init__(self, path: Path) -> None:
        """path: the file, which is made where it is missing.

        Raises DataError where the file is of another program or a newer version, or cannot be
        made."""
        self._path = path
        try:
            make_folder(path.parent)
            create(path)
            self._write, self._reader = self._connection(), self._connection()
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise DataError(f"{path}: cannot hold sessions: {why}") from error
        self._reading = threading.Lock()
        self._changes = Grouped[sqlite3.Connection]()

    def _connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    def _prepare(self) -> None:
        """Makes the tables of a new file. Two processes may come at once."""
        number = int.from_bytes(NAME, "big")
        self._write.execute("BEGIN IMMEDIATE")
        try:
            ((name,),) = self._write.execute("PRAGMA application_id").fetchall()
            ((format_,),) = self._write.execute("PRAGMA user_version").fetchall()
            ((tables,),) = self._write.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            if (name, format_, tables) == (0, 0, 0):
                self._make(_TABLES)
                self._write.execute(f"PRAGMA application_id = {number}")
            elif name != number:
                raise DataError(f"{self._path}: is another database, and holds no sessions")
            elif format_ in _UPGRADES:
                self._make(_UPGRADES[format_])
            elif format_ != FORMAT:
                raise DataError(
                    f"{self._path}: sessions of format {format_}, this version reads {FORMAT}"
                )
            self._write.execute(_CLOCK)
            self._write.execute(_BACKGROUND)
            self._write.execute(_USAGE)
            for statement in _DOCUMENTS.split(";"):
                self._write.execute(statement)
            self._write.execute("COMMIT")
        finally:
            if self._write.in_transaction:
                self._write.execute("ROLLBACK")

    def _make(self, statements: str) -> None:
        """All tables of this format, from what there is."""
        for statement in statements.split(";"):
            self._write.execute(statement)
        self._write.execute(f"PRAGMA user_version = {FORMAT}")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a query finds.

        query: the query.
        values: the values of its parameters."""
        with self._reading, _as_server_error():
            return self._reader.execute(query, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Queries that see one state."""
        with self._reading, _as_server_error():
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._reader.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is changed in the block is on disk when it ends, or nothing is. What several
        threads change is put on disk together."""
        with _as_server_error(), self._changes.change(self._begin, self._commit) as connection:
            if not connection.in_transaction:
                raise sqlite3.OperationalError("the change before could not be made")
            connection.execute("SAVEPOINT change")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK TO change")
                raise
            finally:
                if connection.in_transaction:
                    connection.execute("RELEASE change")

    def _begin(self) -> sqlite3.Connection:
        self._write.execute("BEGIN IMMEDIATE")
        return self._write

    def _commit(self, connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:  # where the disk is full, SQLite takes all of it back
            raise sqlite3.OperationalError("the changes could not be made")
        try:
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def number(self, query: str, *values: Any) -> int:
        """The one number that a query finds.

        query: the query.
        values: the values of its parameters."""
        ((number,),) = self.rows(query, *values)
        return int(number)

    def write(self, statement: str, *values: Any) -> bool:
        """Makes one change, and returns whether there was something to be changed.

        statement: the statement.
        values: the values of its parameters."""
        with self.writing() as connection:
            return connection.execute(statement, values).rowcount > 0

    def close(self) -> None:
        with self._changes.paused(), self._reading:
            self._reader.close()
            self._write.close()


@contextmanager
def _as_server_error() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ServerError(f"sessions cannot be read or written: {error}") from error
