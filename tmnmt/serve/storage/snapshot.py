"""A file of sessions that is copied while others change it, or moved with its memories."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from tmnmt.errors import DataError
from tmnmt.serve.storage.base import BUSY
from tmnmt.serve.storage.sqlite_file import NAME


class Snapshot:
    """A file of sessions as it is at one moment, to be copied while others change it."""

    def __init__(self, path: Path) -> None:
        """path: the file, which must be there.

        Raises DataError where it holds no sessions, or cannot be read."""
        if not path.is_file():
            raise DataError(f"{path}: no such file of sessions")
        try:
            address = f"{path.resolve().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(
                address, uri=True, timeout=BUSY, isolation_level=None
            )
            ((name,),) = self._connection.execute("PRAGMA application_id").fetchall()
            if name != int.from_bytes(NAME, "big"):
                raise DataError(f"{path}: is another database, and holds no sessions")
            self._connection.execute("BEGIN")
            # a transaction begins with what it reads first
            self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except sqlite3.Error as error:
            raise DataError(f"{path}: cannot be read: {error}") from error

    def damage(self) -> str:
        """What is wrong with the file, in SQLite's words; "" where nothing is."""
        try:
            rows = self._connection.execute("PRAGMA quick_check(1)").fetchall()
        except sqlite3.Error as error:
            return str(error)
        return "" if rows == [("ok",)] else str(rows[0][0])

    def copy(self, path: Path) -> None:
        """Writes the file as it was when this was made.

        path: the new file.

        Raises DataError where it cannot be written."""
        try:
            target = sqlite3.connect(path)
            try:
                self._connection.backup(target)
                target.execute("PRAGMA journal_mode = DELETE").fetchall()
            finally:
                target.close()
        except sqlite3.Error as error:
            raise DataError(f"{path}: cannot be written: {error}") from error

    def close(self) -> None:
        self._connection.close()


def relocate(path: Path, places: Mapping[Path, Path]) -> None:
    """Has the pairs in a file of sessions name other folders of memories, because these were moved.

    path: the file, which nobody else uses.
    places: the new folder of each former one.

    Raises DataError where the file cannot be written."""
    query = (
        "SELECT DISTINCT json_extract(record, '$[4]') FROM {0}"
        " WHERE json_type(record, '$[4]') = 'text' AND json_extract(record, '$[4]') != ''"
    )
    try:
        connection = sqlite3.connect(path)
        try:
            with connection:
                for table in ("done", "intention"):
                    for (former,) in connection.execute(query.format(table)).fetchall():
                        place = places.get(Path(former).resolve())
                        if place is not None:
                            _rename_memory(connection, table, former, str(place))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise DataError(f"{path}: cannot be written: {error}") from error


def _rename_memory(connection: sqlite3.Connection, table: str, former: str, place: str) -> None:
    connection.execute(
        f"UPDATE {table} SET record = json_set(record, '$[4]', ?1),"
        " held = substr(held, 1, instr(held, ' ')) || ?1 WHERE json_extract(record, '$[4]') = ?2",
        (place, former),
    )
    connection.execute(
        "UPDATE inherited SET held = substr(held, 1, instr(held, ' ')) || ?1"
        " WHERE substr(held, instr(held, ' ') + 1) = ?2",
        (place, former),
    )
