"""Answers of workers on disk, by what was asked: whoever starts the same work again finds what was
finished. A file of SQLite, of which a kill tears nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType

from tmnmt.errors import DataError

GOES_ON = "the same command goes on where this one stopped"


class FinishedTasks:
    """The answers of one run: `with FinishedTasks(path) as finished: ...`. The file goes when the
    block ends well, and stays otherwise."""

    def __init__(self, path: Path) -> None:
        """path: the file, which is made where it is missing.

        Raises DataError for a file of another kind, and for one that cannot be written."""
        self.path = path
        try:
            self._database = sqlite3.connect(path)
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS finished (task BLOB PRIMARY KEY, answer BLOB NOT NULL)"
            )
            self._database.commit()
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> DataError:
        hint = "; delete it to do its work again" if _is_damage(error) else ""
        return DataError(f"{self.path}: cannot be used: {error}{hint}")

    def __contains__(self, task: bytes) -> bool:
        return self._row("SELECT 1 FROM finished WHERE task = ?", task) is not None

    def __len__(self) -> int:
        row = self._row("SELECT count(*) FROM finished")
        return 0 if row is None else int(row[0])

    def get(self, task: bytes) -> bytes:
        """The answer to a task that is there.

        task: what names the task."""
        row = self._row("SELECT answer FROM finished WHERE task = ?", task)
        if row is None:
            raise KeyError(task.hex())
        return bytes(row[0])

    def put(self, task: bytes, answer: bytes) -> None:
        """Keeps an answer. It is on disk on return.

        task: what names the task.
        answer: the answer.

        Raises DataError where it cannot be written."""
        try:
            with self._database:
                self._database.execute(
                    "INSERT OR REPLACE INTO finished VALUES (?, ?)", (task, answer)
                )
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _row(self, statement: str, *values: bytes) -> tuple[bytes | int] | None:
        try:
            row: tuple[bytes | int] | None = self._database.execute(statement, values).fetchone()
        except sqlite3.Error as error:
            raise self._error(error) from error
        return row

    def __enter__(self) -> FinishedTasks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_empty = kind is not None and not len(self)
        self._database.close()
        if kind is None or is_empty:
            self.path.unlink(missing_ok=True)
        elif error is not None:
            error.add_note(GOES_ON)


def _is_damage(error: sqlite3.Error) -> bool:
    return type(error) is sqlite3.DatabaseError
