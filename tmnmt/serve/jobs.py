"""What takes longer than a request: files read into memories, memories written to files, documents
translated. How far a job is stands in the database, where every process finds it; what one makes,
too."""

from __future__ import annotations

import json
import logging
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tmnmt.errors import LockedError, ServerError, TmnmtError
from tmnmt.serve.database import Database
from tmnmt.serve.keys import Caller
from tmnmt.serve.refused import Refused, unknown

WORKERS = 2
MOST = 100  # of one tenant that are kept
KEPT = 24 * 3600.0  # seconds
SILENT = 600.0  # seconds after which the process of a job is taken to have ended
NOTED = 0.5  # seconds between two notes of how far it is

State = Literal["awaiting", "waiting", "working", "done", "failed"]
Advance = Callable[[int, int | None], None]  # done, and of how many where that is known
Work = Callable[[Path, Advance], tuple[Mapping[str, Any], bytes | None]]

log = logging.getLogger("tmnmt.serve")


class _Stopped(Exception):
    """The server ends."""


@dataclass(frozen=True)
class Job:
    """`given`: what it is about. `result`: what came of it; of a failed one "error". `done`,
    `total`: units, or bytes, that it is through with, and all."""

    id: str
    kind: str
    given: Mapping[str, Any]
    state: State
    done: int
    total: int | None
    result: Mapping[str, Any]
    has_file: bool
    changed: float

    @property
    def has_ended(self) -> bool:
        return self.state in ("done", "failed")

    @property
    def record(self) -> dict[str, Any]:
        """As the own interface writes it."""
        names = ("id", "kind", "state", "done", "total")
        return {name: getattr(self, name) for name in names} | {**self.given, **self.result}


class Jobs:
    """For any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadPoolExecutor(WORKERS, "job")
        self._stopping = False

    def stop(self) -> None:
        """Jobs under way end where they are, and are told as failed."""
        self._stopping = True
        self._threads.shutdown()

    def make(
        self, kind: str, given: Mapping[str, Any], caller: Caller, state: State = "waiting"
    ) -> str:
        """The id of a new job. Raises Refused where there are too many."""
        id, now = secrets.token_urlsafe(24), time.time()
        with self._database.writing() as to:
            to.execute("DELETE FROM job WHERE changed < ?", (now - KEPT,))
            count = to.execute("SELECT count(*) FROM job WHERE tenant = ?", (caller.tenant,))
            if count.fetchone()[0] >= MOST:
                raise Refused(429, "busy", "there are too many jobs; delete some", 60)
            row = id, caller.tenant, kind, json.dumps(given), state, 0, None, "{}", None, now
            to.execute("INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return id

    def get(self, id: str, caller: Caller | None) -> Job:
        """caller: None: who knows the id may. Raises Refused for one that is not there, or another
        tenant's."""
        query = (
            "SELECT id, kind, given, state, done, total, told, made IS NOT NULL, changed FROM job "
            "WHERE id = ? AND (? IS NULL OR tenant = ?)"
        )
        tenant = caller.tenant if caller is not None else None
        rows = self._database.rows(query, id, tenant, tenant)
        if not rows:
            raise unknown("there is no such job")
        id, kind, given, state, done, total, result, has_file, changed = rows[0]
        if state in ("waiting", "working") and time.time() - changed > SILENT:
            state, result = "failed", json.dumps({"error": "the server that did it was stopped"})
        return Job(
            id,
            kind,
            json.loads(given),
            state,
            done,
            total,
            json.loads(result),
            bool(has_file),
            changed,
        )

    def file(self, id: str, caller: Caller | None) -> bytes:
        """What it has made. Raises Refused where it has made no file, or not yet."""
        job = self.get(id, caller)
        if not job.has_file:
            raise Refused(409, "no_file", "this job has no file, or not yet")
        ((made,),) = self._database.rows("SELECT made FROM job WHERE id = ?", id)
        return bytes(made)

    def delete(self, id: str, caller: Caller) -> None:
        """What it has done stays done."""
        self.get(id, caller)
        self._database.write("DELETE FROM job WHERE id = ?", id)

    def take(self, id: str) -> bool:
        """Whether a job that waited for its file is the caller's to start now; it is once."""
        taken = "UPDATE job SET state = 'waiting' WHERE id = ? AND state = 'awaiting'"
        return bool(self._database.write(taken, id))

    def start(self, id: str, content: bytes, name: str, work: Work) -> None:
        """Does it in a thread. `content`: a file for it, under a name that has nothing but the end
        of `name`, which says of which kind it is. `work` is given its path, and how to tell how far
        it is; what it gives is told, and its file kept. Raises Refused where the server ends."""
        try:
            self._threads.submit(self._do, id, content, name, work)
        except RuntimeError as error:
            raise Refused(503, "stopping", "the server is stopping", 5) from error

    def _do(self, id: str, content: bytes, name: str, work: Work) -> None:
        result, made, state = dict[str, Any](), None, "failed"
        try:
            with tempfile.TemporaryDirectory(prefix="tmnmt-") as folder:
                path = Path(folder) / f"{id}{ending(name)}"
                path.write_bytes(content)
                try:
                    self._advance(id, 0, None)
                    counts, made = work(path, _Often(lambda *at: self._advance(id, *at)))
                    result, state = dict(counts), "done"
                except TmnmtError as error:
                    result["error"] = _said(error, path)
        except Refused as refused:
            result["error"] = refused.message
        except _Stopped:
            result["error"] = "the server was stopped"
        except Exception as error:
            log.error("job: %s", type(error).__name__)
            result["error"] = "the server failed; its log says where"
        self._database.write(
            "UPDATE job SET state = ?, told = ?, made = ?, changed = ? WHERE id = ?",
            state,
            json.dumps(result),
            made,
            time.time(),
            id,
        )

    def _advance(self, id: str, done: int, total: int | None) -> None:
        """Raises _Stopped where the server ends, or somebody has deleted the job."""
        set_ = "UPDATE job SET state = 'working', done = ?, total = ?, changed = ? WHERE id = ?"
        if self._stopping or not self._database.write(set_, done, total, time.time(), id):
            raise _Stopped


class _Often:
    """Called as often as one likes; the note is made now and then."""

    def __init__(self, note: Advance) -> None:
        self._note, self._last = note, time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        if time.monotonic() - self._last >= NOTED:
            self._last = time.monotonic()
            self._note(done, total)


def ending(name: str) -> str:
    """The end of a file's name, as ".tmx.gz": letters and digits alone."""
    ends = Path(name.replace("\\", "/")).suffixes[-2:]
    good = [one for one in ends if one[1:].isascii() and one[1:].isalnum() and len(one) <= 16]
    return "".join(good) if len(good) == len(ends) else "".join(good[-1:])


def _said(error: TmnmtError, path: Path) -> str:
    """What is wrong with the file, without the server's name of it."""
    if isinstance(error, LockedError):
        return "another program writes to this memory; try again"
    if isinstance(error, ServerError):
        return "a memory cannot be reached; try again later"
    return str(error).replace(str(path), "the file").replace(path.name, "the file")
