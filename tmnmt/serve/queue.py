"""One queue a model: its thread alone uses the Translator. Texts of all requests that wait are
decoded together by length; those that somebody waits for come before long lists.

A request is a `Job`. It is opened a few texts at a time, so that a long one holds nothing up, and
its pieces wait with those of others for a batch."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from math import ceil
from typing import Any, TypeVar

from tmnmt.allocator import EVERY, give_back
from tmnmt.codes.record import Source, beside, plain_of
from tmnmt.engine.coded import Coded
from tmnmt.engine.preparation import Read
from tmnmt.engine.schedule import InOrder, Piece
from tmnmt.engine.session import Session
from tmnmt.engine.translator import Translator
from tmnmt.segments import Translation
from tmnmt.serve.refused import Refused

GATHER = 0.004  # seconds that a first request waits for others to be decoded with it
URGENT = 32  # texts: a longer request is a list that nobody watches
MOST_CALLS = 256  # that wait for the thread of a model
_SHARE = 2  # long lists take at most one part of so many of the room
_PATIENCE = 0.25  # part of a request's time that it may have to wait for those before it
_NEW = 0.2  # weight of the last batch in the seconds that one takes
Result = TypeVar("Result")


class Job:
    """The texts of one request on their way through the model; `future` has their translations."""

    def __init__(
        self,
        session: Session,
        sources: Sequence[Source],
        explain: bool = False,
        urgent: bool | None = None,
        seconds: float = 60.0,
        follow: Callable[[], None] = lambda: None,
    ) -> None:
        """session: whose translator has the memories and settings, and whose confirmed pairs are
        read. urgent: None: where it is short. seconds: after so many it is given up. follow: called
        before texts of it are decoded: the session then has what was confirmed by now."""
        self.session, self.explain, self.follow = session, explain, follow
        self.view: Translator = session.translator
        self.size = sum(len(plain_of(source)) + 1 for source in sources)  # of what waits
        self.urgent = len(sources) <= URGENT if urgent is None else urgent
        self.seconds, self.deadline = seconds, time.monotonic() + seconds
        self.future: Future[list[Translation]] = Future()
        self.waiting: list[Piece] = []
        self._left = iter(list(zip(sources, beside(sources), strict=True)))
        self._before: Read | None = None  # None: nothing is opened yet
        self._order = InOrder()
        self._open = dict[int, Coded]()  # by segment: those with codes whose places are not found
        self._done: list[Translation] = []
        self._count = len(sources)

    @property
    def gone(self) -> bool:
        """Whether nobody waits for it any more, or it has failed."""
        return self.future.done()

    @property
    def left(self) -> int:
        """Texts whose translation is not there yet."""
        return self._count - len(self._done)

    def read_on(self, count: int) -> None:
        """Opens texts until `count` pieces wait, or none are left."""
        while len(self.waiting) < count and (following := next(self._left, None)) is not None:
            source, near = following
            if self._before is None:
                self._before = self.session.before
            made = self.view.preparation.pieces(source, 0, self._order, before=self._before)
            ends = isinstance(source, str) and not source.strip()  # a document, as in `translate`
            self._before = () if ends else self.view.preparation.after(self._before, made)
            self.waiting += [replace(piece, beside=near) for piece in made]

    def put(self, piece: Piece, translation: Translation, length: int) -> None:
        self._order.put(piece, translation, length)
        if piece.coded is not None:
            self._open[piece.segment] = piece.coded

    def finish(self) -> None:
        """Gives the result if nothing waits any more."""
        if self.waiting or self.gone:
            return
        self.read_on(1)
        if self.waiting:
            return
        self.view.link([*self._open.values()])
        self._done += map(self.view.counted, self._order.ready())
        if len(self._done) == self._count:
            self.future.set_result(self._done)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):  # done, or nobody waits for it any more
            self.future.set_exception(error)


class Queue:
    """Requests for one model. Any thread may submit; `run` is the thread that decodes."""

    def __init__(self, translator: Translator, room: int) -> None:
        """room: characters that may wait."""
        self.translator = translator
        self.room = room
        self.counts: Counter[str] = Counter()
        self._pace = 0.0  # seconds that a batch takes, of late
        self._spread = 0.0  # by which they differ from it (Jacobson 1988, of round trips)
        self._given_back = time.monotonic()
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._calls: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Takes nothing new, finishes what it took, and ends."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Characters of requests that are not finished."""
        with self._changed:
            return sum(job.size for job in self._jobs)

    def submit(self, job: Job) -> Future[list[Translation]]:
        """The translations to come; cancel it where nobody waits for them. Raises Refused where
        `_check_room` does."""
        with self._changed:
            self._check_open()
            self._check_room(job)
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def _check_room(self, job: Job) -> None:
        """Raises Refused where a request is larger than the room for all, where the room is taken,
        or where it would wait so long for others that its time could be over: then all would wait
        for what is given up in the end."""
        room = self.room if job.urgent else self.room // _SHARE
        if job.size > room:
            raise Refused(
                413, "too_large", f"the texts of one request may have {room:,} characters"
            )
        if sum(other.size for other in self._jobs if not other.gone) + job.size > room:
            raise Refused(429, "busy", "too much is waiting; try again later", 2)
        before = [one for one in self._jobs if not one.gone and (one.urgent or not job.urgent)]
        if before and (wait := self._seconds_of(before)) > _PATIENCE * job.seconds:
            raise Refused(429, "busy", "too much is waiting; try again later", ceil(wait / 2))

    def _seconds_of(self, before: Sequence[Job]) -> float:
        """Until those that go before a request are done, and its own first batch, as the slower
        of the last batches went."""
        batches = sum(one.left for one in before) / self.translator.settings.batch
        return (batches + 1) * (self._pace + self._spread)

    def call(self, work: Callable[[], Result]) -> Future[Result]:
        """What `work` gives, done in the thread of the model before more is decoded. Raises Refused
        where too many wait."""
        future: Future[Result] = Future()
        with self._changed:
            self._check_open()
            if len(self._calls) >= MOST_CALLS:
                raise Refused(429, "busy", "too much is waiting; try again later", 1)
            self._calls.append((work, future))
            self._changed.notify()
        return future

    def _check_open(self) -> None:
        if self._stopping:
            raise Refused(503, "stopping", "the server is stopping", 5)

    def _run(self) -> None:
        while self._wait():
            try:
                self._work()
            except Exception as error:  # none is expected; the thread goes on for those to come
                with self._changed:
                    for job in self._jobs:
                        job.fail(error)
            with self._changed:
                self._jobs = [job for job in self._jobs if not job.gone]

    def _work(self) -> None:
        self._do_calls()
        start = time.monotonic()
        batch = self._batch()
        if batch:
            self._decode(batch)
            for job in {id(job): job for job, _ in batch}.values():
                self._finish(job)
            if self.counts["batches"] > 1:  # in the first, much is compiled and read
                self._note_pace(time.monotonic() - start)
        if time.monotonic() - self._given_back > EVERY:
            give_back()
            self._given_back = time.monotonic()

    def _note_pace(self, taken: float) -> None:
        if self._pace:
            self._spread += (abs(taken - self._pace) - self._spread) * _NEW
        self._pace += (taken - self._pace) * (_NEW if self._pace else 1)

    def _wait(self) -> bool:
        """Waits for work; False at the end."""
        with self._changed:
            idle = not self._jobs
            self._changed.wait_for(lambda: self._jobs or self._calls or self._stopping)
            if idle and not self._calls and not self._stopping:
                self._changed.wait(GATHER)
            return bool(self._jobs or self._calls or not self._stopping)

    def _do_calls(self) -> None:
        with self._changed:
            calls, self._calls = self._calls, []
        for work, future in calls:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except Exception as error:  # told to who asked
                    future.set_exception(error)

    def _batch(self) -> list[tuple[Job, Piece]]:
        """What is decoded next: pieces that are as long as the first one of the oldest request,
        taken from their requests."""
        now = time.monotonic()
        with self._changed:
            jobs = [job for job in self._jobs if not job.gone]
        for job in jobs:
            if job.deadline <= now:
                self.counts["given_up"] += 1
                job.fail(Refused(503, "too_slow", "the time for a request is over", 2))
        jobs = [job for job in jobs if not job.gone]
        urgent = any(job.urgent for job in jobs)
        jobs = [job for job in jobs if job.urgent == urgent]
        size = self.translator.settings.batch
        pool = list[tuple[Job, Piece]]()
        for job in jobs:
            if pool and not _go_together(job, pool[0][0]):
                continue
            try:
                job.follow()
                job.read_on(size)
            except Exception as error:
                job.fail(error)
                continue
            if not job.waiting:
                self._finish(job)
            pool += [(job, piece) for piece in job.waiting]
            if len(pool) >= 2 * size:
                break
        if pool:
            length = len(pool[0][1].ids)
            pool.sort(key=lambda each: abs(len(each[1].ids) - length))
        batch = pool[:size]
        for job, piece in batch:
            job.waiting = [other for other in job.waiting if other is not piece]
        return batch

    def _finish(self, job: Job) -> None:
        try:
            job.finish()
        except Exception as error:
            job.fail(error)

    def _decode(self, batch: Sequence[tuple[Job, Piece]]) -> None:
        """Every request's pieces with what it reads of its own memories; then all together."""
        ready = list(self._retrieved(batch))
        if not ready:
            return
        sessions = [job.session for job, _ in ready]
        view, explain = ready[0][0].view, ready[0][0].explain
        self.counts["batches"] += 1
        self.counts["pieces"] += len(ready)
        try:
            done = view.translate_batch([piece for _, piece in ready], sessions, explain)
            for (job, piece), result in zip(ready, done, strict=True):
                job.put(piece, *result)
        except Exception as error:
            for job, _ in ready:
                job.fail(error)

    def _retrieved(self, batch: Sequence[tuple[Job, Piece]]) -> Iterator[tuple[Job, Piece]]:
        ordered = sorted(batch, key=lambda each: id(each[0].view))
        for _, run in groupby(ordered, key=lambda each: id(each[0].view)):
            asked = list(run)
            try:
                pieces = asked[0][0].view.retrieve(
                    [piece for _, piece in asked], [job.session for job, _ in asked]
                )
            except Exception as error:  # a memory of theirs cannot be searched
                for job, _ in asked:
                    job.fail(error)
                continue
            yield from zip([job for job, _ in asked], pieces, strict=True)


def _go_together(job: Job, other: Job) -> bool:
    same = job.explain == other.explain and job.view.settings == other.view.settings
    return same and job.view.terms is other.view.terms
