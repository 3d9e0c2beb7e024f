"""What takes longer than a request: files read into memories, memories written to files, documents
translated. How far a job is stands in the storage, where every process finds it; what one makes,
too.

Work is cut into slices. After each one, what waits is looked at anew: tenants have the threads in
turn, and so have the jobs of one tenant, by the time that each has taken."""

from __future__ import annotations

import logging
import secrets
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextvars import copy_context
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from tmnmt.errors import LockedError, ServerError, TmnmtError
from tmnmt.serve.clock import Clock
from tmnmt.serve.holdings import bound_holdings
from tmnmt.serve.http_error import Refused, unknown
from tmnmt.serve.keys import Caller
from tmnmt.serve.storage.base import JobStorage
from tmnmt.serve.storage.records import Job, State
from tmnmt.serve.turns import TurnPath, Turns

WORKERS = 16  # threads; most of the time they wait for a model
OF_TENANT = 4  # of them, at most, that do slices of one tenant
_SLICE = 1.0  # seconds: what the next slice of a job is taken to last
MAX_JOBS = 100  # of one tenant that are kept
RETENTION = 24 * 3600.0  # seconds
SILENT = 600.0  # seconds after which the process of a job is taken to have ended
NOTE_INTERVAL = 0.5  # seconds between two notes of how far it is
PATIENCE = 1.0, 10.0, 60.0  # seconds after which a job tries again to tell that it has ended

Advance = Callable[[int, int | None], None]  # done, and of how many where that is known
Result = tuple[Mapping[str, Any], bytes | None]
Steps = Generator[None, None, Result]  # each step is a slice; then what is told, and a file
Work = Callable[[Path, Advance], Steps]

log = logging.getLogger("tmnmt.serve")


class _Stopped(Exception):
    """The server ends."""


class Jobs:
    """For any thread."""

    def __init__(self, storage: JobStorage, clock: Clock) -> None:
        """storage: where jobs are kept.
        clock: says which jobs have not changed for long."""
        self._storage, self._clock = storage, clock
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._waiting: dict[TurnPath, Iterator[None]] = {}
        self._turns = Turns()
        self._numbers = count()
        self._active: Counter[str | int] = Counter()  # slices under way, by tenant
        self._threads = [
            threading.Thread(target=self._run, name="job", daemon=True) for _ in range(WORKERS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Jobs under way end where they are, and are told as failed."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def make(
        self, kind: str, parameters: Mapping[str, Any], caller: Caller, state: State = "waiting"
    ) -> str:
        """Makes a job and returns its id.

        kind: what it does.
        parameters: what it is about.
        caller: who asks for it.
        state: the state that it begins in.

        Raises Refused where there are too many."""
        id, now = secrets.token_urlsafe(24), time.time()
        job = Job(id, kind, parameters, state, 0, None, {}, False, now)
        if not self._storage.make(job, caller.tenant, self._clock.cutoff(RETENTION), MAX_JOBS):
            raise Refused(429, "busy", "there are too many jobs; delete some", 60)
        return id

    def get(self, id: str, caller: Caller | None) -> Job:
        """A job.

        id: its id.
        caller: who asks; None lets anybody who knows the id.

        Raises Refused for a job that is not there, or another tenant's."""
        job = self._storage.get(id, caller.tenant if caller is not None else None)
        if job is None:
            raise unknown("there is no such job")
        if job.state in ("waiting", "working") and time.time() - job.changed > SILENT:
            error = {"error": "the server that did it was stopped"}
            return replace(job, state="failed", result=error)
        return job

    def file(self, id: str, caller: Caller | None) -> bytes:
        """The file that a job has made.

        id: its id.
        caller: who asks; None lets anybody who knows the id.

        Raises Refused where it has made no file, or not yet."""
        job = self.get(id, caller)
        if not job.has_file:
            raise Refused(409, "no_file", "this job has no file, or not yet")
        content = self._storage.file(id)
        if content is None:
            raise unknown("there is no such job")  # any more
        return content

    def delete(self, id: str, caller: Caller) -> None:
        """Deletes a job. What it has done stays done.

        id: its id.
        caller: who asks.

        Raises Refused for a job that is not there, or another tenant's."""
        if not self._storage.delete(id, caller.tenant):
            raise unknown("there is no such job")

    def take(self, id: str) -> bool:
        """Whether a job that waited for its file is the caller's to start now; it is once.

        id: its id."""
        return self._storage.claim(id)

    def start(self, id: str, tenant: str, content: bytes, name: str, work: Work) -> None:
        """Does a job in threads, a slice at a time, when the tenant has its turn. While it waits,
        its content is on disk. What the work gives is told, and the file that it has made is kept.

        id: its id.
        tenant: the tenant that it belongs to.
        content: the content of a file for it.
        name: the name of this file, of which only the end is kept, which says of which kind it is.
        work: takes the path of the file, and a function that tells how far it is.

        Raises Refused where the server ends. Raises ServerError where the disk takes no file."""
        folder = tempfile.TemporaryDirectory(prefix="tmnmt-")
        try:
            path = Path(folder.name) / f"{id}{ending(name)}"
            path.write_bytes(content)
            with self._changed:
                if self._stopping.is_set():
                    raise Refused(503, "stopping", "the server is stopping", 5)
                slices = _InContext(self._slices(id, folder, path, work))
                self._waiting[tenant, next(self._numbers)] = slices
                self._changed.notify()
        except Refused:
            folder.cleanup()
            raise
        except OSError as error:
            folder.cleanup()
            raise ServerError(f"a file cannot be kept for a job: {error.strerror}") from error

    def _run(self) -> None:
        """A thread: slices in turn, until the server ends and all jobs have told so."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._free() or self._is_over())
                if not self._free():
                    return
                path = self._turns.order(dict.fromkeys(self._free(), _SLICE))[0]
                slices = self._waiting.pop(path)
                self._active[path[0]] += 1
            began = time.monotonic()
            goes_on = self._step(slices)
            with self._changed:
                self._turns.charge(path, time.monotonic() - began)
                self._active[path[0]] -= 1
                if goes_on:
                    self._waiting[path] = slices
                self._changed.notify_all()

    def _free(self) -> list[TurnPath]:
        """The jobs that may have a slice done now."""
        return [path for path in self._waiting if self._active[path[0]] < OF_TENANT]

    def _is_over(self) -> bool:
        return self._stopping.is_set() and not self._waiting and not self._active.total()

    def _step(self, slices: Iterator[None]) -> bool:
        """Does the next slice; False where there is none."""
        try:
            next(slices)
        except StopIteration:
            return False
        except Exception as error:  # a thread goes on for the jobs to come
            log.error("job: %s", type(error).__name__)
            return False
        return True

    def _slices(
        self, id: str, folder: tempfile.TemporaryDirectory[str], path: Path, work: Work
    ) -> Generator[None]:
        result, file = dict[str, Any](), None
        state: State = "failed"
        try:
            with folder:
                try:
                    self._advance(id, 0, None)
                    advance = _Often(lambda *progress: self._advance(id, *progress))
                    counts, file = yield from self._until_stopped(work(path, advance))
                    advance.finish()
                    result, state = dict(counts), "done"
                except TmnmtError as error:
                    result["error"] = _public_message(error, path)
        except Refused as refused:
            result["error"] = refused.message
        except _Stopped:
            result["error"] = "the server was stopped"
        except Exception as error:
            log.error("job: %s", type(error).__name__)
            result["error"] = "the server failed; its log says where"
        self._finish(id, state, result, file)

    def _until_stopped(self, steps: Steps) -> Steps:
        """Raises _Stopped where the server ends between two slices."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: Result = end.value
                return result
            yield
            if self._stopping.is_set():
                raise _Stopped

    def _finish(self, id: str, state: State, result: Mapping[str, Any], file: bytes | None) -> None:
        """A storage that is away is waited for a while: what took hours is not thrown away."""
        for seconds in (*PATIENCE, None):
            try:
                return self._storage.finish(id, state, result, file, time.time())
            except ServerError as error:
                log.error("job: %s", error)
                if seconds is None or self._stopping.wait(seconds):
                    return

    def _advance(self, id: str, completed: int, total: int | None) -> None:
        """Raises _Stopped where the server ends, or somebody has deleted the job."""
        if self._stopping.is_set() or not self._note_progress(id, completed, total):
            raise _Stopped

    def _note_progress(self, id: str, completed: int, total: int | None) -> bool:
        """Whether the job is still there. No job fails for want of a note."""
        try:
            return self._storage.advance(id, completed, total, time.time())
        except ServerError as error:
            log.error("job: %s", error)
            return True


class _InContext(Iterator[None]):
    """Slices that see what the request saw which began the job, until they end."""

    def __init__(self, slices: Iterator[None]) -> None:
        self._slices, self._context = slices, copy_context()
        holdings = bound_holdings()
        self._release = holdings.retain() if holdings is not None else lambda: None

    def __next__(self) -> None:
        try:
            self._context.run(next, self._slices)
        except BaseException:
            self._release()
            raise


class _Often:
    """Called as often as one likes; the note is made now and then."""

    def __init__(self, note: Advance) -> None:
        self._note, self._last = note, time.monotonic()
        self._call: tuple[int, int | None] | None = None  # the last one, if it is not noted yet

    def __call__(self, completed: int, total: int | None) -> None:
        self._call = completed, total
        if time.monotonic() - self._last >= NOTE_INTERVAL:
            self.finish()

    def finish(self) -> None:
        """Notes the last call."""
        if self._call is not None:
            call, self._call, self._last = self._call, None, time.monotonic()
            self._note(*call)


def ending(name: str) -> str:
    """The end of a file's name, as ".tmx.gz": letters and digits alone.

    name: the name."""
    ends = Path(name.replace("\\", "/")).suffixes[-2:]
    good = [
        suffix
        for suffix in ends
        if suffix[1:].isascii() and suffix[1:].isalnum() and len(suffix) <= 16
    ]
    return "".join(good) if len(good) == len(ends) else "".join(good[-1:])


def _public_message(error: TmnmtError, path: Path) -> str:
    """What is wrong with the file, without the server's name of it."""
    if isinstance(error, LockedError):
        return "another program writes to this memory; try again"
    if isinstance(error, ServerError):
        return "a memory cannot be reached; try again later"
    return str(error).replace(str(path), "the file").replace(path.name, "the file")
