"""Answers of bases, kept on this machine by what was asked: in the user's cache folder, readable by
the user alone, and bounded. The answers that were used longest ago go first."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from tmnmt.durable import create
from tmnmt.hosted.address import Address
from tmnmt.hosted.connection import Message
from tmnmt.index.opening import cache_dir

MOST_ANSWERS = 100_000
MOST_CHARACTERS = 20_000  # of an answer that is kept
USE_SECONDS = 3600.0  # within which a use counts as the one before it
FORMAT = 1
SECONDS_TO_WAIT = 5.0  # for another process that writes
log = logging.getLogger(__name__)


def key_of(address: Address, messages: Sequence[Message], most_tokens: int) -> bytes:
    """Names all that an answer depends on.

    address: what is asked.
    messages: the chat.
    most_tokens: how long the answer may be."""
    question = [FORMAT, address.url, address.name, [dict(m) for m in messages], most_tokens]
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).digest()


class AnswerCache:
    """A file of answers. Any thread may use it, and several processes may share it. A file that
    cannot be used is told once in the log, and nothing is kept then."""

    def __init__(self, path: Path, most_answers: int = MOST_ANSWERS) -> None:
        """path: the file, which is made at need.
        most_answers: how many answers are kept."""
        self._path, self._limit = path, most_answers
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._is_usable = True
        self._added = 0

    def get(self, key: bytes) -> str | None:
        """An answer; None where there is none.

        key: what it depends on, as `key_of` gives it."""
        rows = self._run("SELECT text FROM answers WHERE key = ?", (key,))
        if not rows:
            return None
        now = time.time()
        update = "UPDATE answers SET used = ? WHERE key = ? AND used < ?"
        self._run(update, (now, key, now - USE_SECONDS))
        return str(rows[0][0])

    def put(self, key: bytes, text: str) -> None:
        """Keeps an answer.

        key: what it depends on.
        text: the answer."""
        if len(text) > MOST_CHARACTERS:
            return
        self._run("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, text, time.time()))
        self._added += 1
        if self._added % 100 == 1:
            oldest = "SELECT key FROM answers ORDER BY used DESC LIMIT -1 OFFSET ?"
            self._run(f"DELETE FROM answers WHERE key IN ({oldest})", (self._limit,))

    def _run(self, statement: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        with self._lock:
            if not self._is_usable:
                return []
            try:
                database = self._open_database()
                with database:
                    return database.execute(statement, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                self._is_usable = False
                log.warning("%s: no answers are kept: %s", self._path, error)
                return []

    def _open_database(self) -> sqlite3.Connection:
        if self._database is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._path.exists():
                create(self._path, 0o600)
            database = sqlite3.connect(self._path, timeout=SECONDS_TO_WAIT, check_same_thread=False)
            database.execute("PRAGMA synchronous = OFF")  # what is lost is asked for again
            database.execute(
                "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, text TEXT, used REAL)"
            )
            database.execute("CREATE INDEX IF NOT EXISTS by_use ON answers (used)")
            self._database = database
            weakref.finalize(self, database.close)
        return self._database


def answers_of(address: Address) -> AnswerCache:
    """The answers of a base that are kept on this machine.

    address: where the base is asked.

    Raises UsageError where there is no folder for them."""
    name = hashlib.sha256(f"{address.url}#{address.name}".encode()).hexdigest()[:16]
    return AnswerCache(cache_dir() / "answers" / f"{name}.db")
