"""One queue a model: its thread alone uses the Translator. Tenants have it in turn, by characters
times beam; of one tenant, what somebody waits for has more turns than long lists, and of those the
shorter one is next. Texts of all requests that wait are decoded together by length.

A request is a `Job`. It is opened a few texts at a time, so that a long one holds nothing up, and
its pieces wait with those of others for a batch. Other work for the thread of the model is a
`Call`, which has its turn as a job has."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, count, groupby
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

from tmnmt.allocator import INTERVAL, give_back
from tmnmt.codes.record import Source, plain_of, surroundings
from tmnmt.engine.piece import Piece, Preceding
from tmnmt.serve.http_error import Refused
from tmnmt.serve.turns import TurnPath, Turns

if TYPE_CHECKING:
    from tmnmt.engine.pipeline import Passage
    from tmnmt.segments import Translation
    from tmnmt.session import Session
    from tmnmt.translator import Translator

IDLE = 5.0  # seconds without work after which memory that was freed is given back
GATHER = 0.004  # seconds that a first request waits for others to be decoded with it
URGENT = 32  # texts: a longer request is a list that nobody watches
MOST_CALLS = 256  # of one tenant that wait for the thread of a model
INTERACTIVE, BULK = 0, 1  # lanes of a tenant
_WEIGHTS = {INTERACTIVE: 8.0, BULK: 1.0}  # of its turns
_PIECE = 300  # characters: about what is decoded at once of a longer text
# A batch takes pieces of other requests up to this length: they do not make it slower by much.
_LONGER, _EXTRA_SUBWORDS = 1.5, 4  # times as many subwords as the first piece has, and so many more
_SHARE = 2  # long lists take at most one part of so many of the room
_PATIENCE = 0.25  # part of a request's time that it may have to wait for those before it
_NEW = 0.2  # weight of the last batch in the seconds that one takes
# A batch is made no larger than takes about so many seconds: who comes now waits for it.
_BATCH_SECONDS, _MIN_PIECES = 1.0, 8  # but for so many pieces, which pay for reading the weights
_numbers = count()
Result = TypeVar("Result")


@dataclass
class Call:
    """Work for the thread of a model.

    work: the work.
    tenant: the tenant that has turns.
    cost: characters times beam.
    future: what the work gives."""

    work: Callable[[], Any]
    tenant: str = ""
    cost: float = 0.0
    future: Future[Any] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.path: TurnPath = (self.tenant, INTERACTIVE, next(_numbers))


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
        tenant: str = "",
    ) -> None:
        """session: a session, whose translator has the memories and settings, and whose confirmed
        pairs are read.
        sources: the texts.
        explain: whether every token comes with its origin.
        urgent: whether somebody waits for it; None where it counts by how short it is.
        seconds: after how many seconds it is given up.
        follow: is called before texts of it are decoded: the session then has what was confirmed by
        now.
        tenant: the tenant that has turns."""
        self.session, self.explain, self.follow = session, explain, follow
        self.view = session.pipeline
        sizes = [len(plain_of(source)) + 1 for source in sources]
        self.size = sum(sizes)  # of what waits
        self.urgent = len(sources) <= URGENT if urgent is None else urgent
        self.tenant = tenant
        self.path: TurnPath = (tenant, INTERACTIVE if self.urgent else BULK, next(_numbers))
        self._pieces = [ceil(size / _PIECE) for size in sizes]
        self.seconds, self.deadline = seconds, time.monotonic() + seconds
        self.future: Future[list[Translation]] = Future()
        self.waiting: list[Piece] = []
        self._remaining = iter(list(zip(sources, surroundings(sources), strict=True)))
        self._preceding: Preceding | None = None  # None: nothing is opened yet
        self._finished: list[Translation] = []

    @cached_property
    def _passage(self) -> Passage:
        return self.view.passage()

    @property
    def is_finished(self) -> bool:
        """Whether nobody waits for it any more, or it has failed."""
        return self.future.done()

    @property
    def left(self) -> int:
        """About how many pieces it has whose translation is not there yet."""
        return sum(self._pieces[len(self._finished) :])

    def cost(self, pieces: Sequence[Piece]) -> float:
        """What it costs to decode some of its pieces: characters times beam."""
        return self.view.settings.beam * sum(len(piece.text) + 1 for piece in pieces)

    @property
    def next_cost(self) -> float:
        """About what its part of the next batch costs."""
        settings = self.view.settings
        together = min(self.left, settings.batch)
        return settings.beam * self.size * together / sum(self._pieces)

    def read_on(self, count: int) -> None:
        """Opens texts until enough pieces wait, or none are left.

        count: how many pieces are enough."""
        while len(self.waiting) < count and (following := next(self._remaining, None)) is not None:
            source, neighbours = following
            if self._preceding is None:
                self._preceding = self.session.preceding
            pieces = self._passage.open(source, neighbours, self._preceding)
            ends = isinstance(source, str) and not source.strip()  # a document, as in `translate`
            following_this = self.view.preparation.following
            self._preceding = () if ends else following_this(self._preceding, pieces)
            self.waiting += pieces

    def put(self, piece: Piece, translation: Translation, length: int) -> None:
        """Takes the translation of a piece.

        piece: the piece.
        translation: its translation.
        length: how many subwords it has."""
        self._passage.put(piece, translation, length)

    def finish(self) -> None:
        """Gives the result if nothing waits any more."""
        if self.waiting or self.is_finished:
            return
        self.read_on(1)
        if self.waiting:
            return
        self._finished += self._passage.finish()
        if len(self._finished) == len(self._pieces):
            self.future.set_result(self._finished)

    def fail(self, error: BaseException) -> None:
        """Ends the job with an error, unless it is done, or nobody waits for it any more.

        error: the error."""
        with suppress(InvalidStateError):  # done, or nobody waits for it any more
            self.future.set_exception(error)


class Queue:
    """Requests for one model. Any thread may submit; `run` is the thread that decodes."""

    def __init__(self, translator: Translator, room: int) -> None:
        """translator: the translator that does the work.
        room: how many characters of one tenant may wait."""
        self.translator = translator
        self.room = room
        self.counts: Counter[str] = Counter()
        self._pace = 0.0  # seconds that a batch takes, of late
        self._spread = 0.0  # by which they differ from it (Jacobson 1988, of round trips)
        self._seconds, self._cost = 0.0, 0.0  # of the last batches, the older ones less and less
        self._together = float(translator.settings.batch)  # pieces of a batch, where more wait
        self._given_back = time.monotonic()
        self._keeps_freed = False  # memory of former work
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._calls: list[Call] = []
        self._turns = Turns(lambda path: _WEIGHTS[int(path[1])] if len(path) == 2 else 1.0)
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
        """The translations to come; one cancels them where nobody waits for them.

        job: the texts.

        Raises Refused where too much waits."""
        with self._changed:
            self._check_open()
            self._check_room(job)
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def _check_room(self, job: Job) -> None:
        """Raises Refused where a request is larger than the room of a tenant, where that is taken,
        or where so much of the tenant waits that its time could be over: then all would wait for
        what is given up in the end."""
        room = self.room if job.urgent else self.room // _SHARE
        if job.size > room:
            why = "the texts of one request may have {limit} characters"
            raise Refused(413, "too_large", why, values={"limit": room})
        rivals = [rival for rival in self._jobs if not rival.is_finished]
        tenant_size = sum(rival.size for rival in rivals if rival.tenant == job.tenant)
        if tenant_size + job.size > room:
            raise Refused(429, "busy", "too much of yours is waiting; try again later", 2)
        if tenant_size and (wait := self._seconds_before(job, rivals)) > _PATIENCE * job.seconds:
            raise Refused(429, "busy", "too much is waiting; try again later", ceil(wait / 2))

    def _seconds_before(self, job: Job, rivals: Sequence[Job]) -> float:
        """Until a request has had its first turn and is as far as it can be while `rivals` have
        theirs, as the slower of the last batches went: of the same lane, what a turn of each takes,
        or as much as its own; and as much again for every other tenant that waits."""
        batch = self._together
        turn = max(job.left, batch)
        remaining = defaultdict[str, float](float)
        for rival in rivals:
            if rival.tenant != job.tenant or rival.urgent or not job.urgent:
                remaining[rival.tenant] += min(rival.left, turn)
        tenant_pieces = remaining[job.tenant]
        turns = [
            min(n, tenant_pieces + batch) for tenant, n in remaining.items() if tenant != job.tenant
        ]
        return ((tenant_pieces + sum(turns)) / batch + 1) * (self._pace + self._spread)

    def call(
        self, work: Callable[[], Result], tenant: str = "", cost: float = 0.0
    ) -> Future[Result]:
        """What some work gives, done in the thread of the model.

        work: the work.
        tenant: the tenant that has turns.
        cost: characters times beam.

        Raises Refused where too many of the tenant wait."""
        call = Call(work, tenant, cost)
        with self._changed:
            self._check_open()
            if sum(queued_call.tenant == tenant for queued_call in self._calls) >= MOST_CALLS:
                raise Refused(429, "busy", "too much is waiting; try again later", 1)
            self._calls.append(call)
            self._changed.notify()
        return call.future

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
                self._jobs = [job for job in self._jobs if not job.is_finished]

    def _work(self) -> None:
        self._give_up()
        waiting = self._in_turn()
        self._keeps_freed = bool(waiting)
        if waiting and isinstance(waiting[0], Call):
            return self._do(waiting[0])
        start = time.monotonic()
        batch = self._batch([item for item in waiting if isinstance(item, Job)])
        if batch:
            self._decode(batch)
            for job in {id(job): job for job, _ in batch}.values():
                self._finish(job)
            if self.counts["batches"] > 1:  # in the first, much is compiled and read
                cost = sum(job.cost([piece]) for job, piece in batch)
                self._note_pace(time.monotonic() - start, cost)
        if not waiting or time.monotonic() - self._given_back > INTERVAL:
            give_back()
            self._given_back = time.monotonic()

    def _note_pace(self, seconds: float, cost: float = 0.0) -> None:
        self._seconds += seconds - self._seconds * _NEW
        self._cost += cost - self._cost * _NEW
        if self._pace:
            self._spread += (abs(seconds - self._pace) - self._spread) * _NEW
        self._pace += (seconds - self._pace) * (_NEW if self._pace else 1)

    def _wait(self) -> bool:
        """Waits for work, or for the moment in which the memory of former work is given back; False
        at the end."""
        with self._changed:
            idle = not self._jobs
            self._changed.wait_for(
                lambda: self._jobs or self._calls or self._stopping,
                IDLE if self._keeps_freed else None,
            )
            if idle and not self._calls and not self._stopping:
                self._changed.wait(GATHER)
            return bool(self._jobs or self._calls or not self._stopping)

    def _in_turn(self) -> list[Job | Call]:
        """All that waits, the next one first."""
        with self._changed:
            self._calls = [call for call in self._calls if not call.future.cancelled()]
            calls = {call.path: call for call in self._calls}
            jobs = {job.path: job for job in self._jobs if not job.is_finished}
        costs = {path: job.next_cost for path, job in jobs.items()}
        costs |= {path: call.cost for path, call in calls.items()}
        work_items: dict[TurnPath, Job | Call] = {**jobs, **calls}
        return [work_items[path] for path in self._turns.order(costs)]

    def _do(self, call: Call) -> None:
        with self._changed:
            self._calls.remove(call)
        if call.future.set_running_or_notify_cancel():
            self._turns.charge(call.path, call.cost)
            try:
                call.future.set_result(call.work())
            except Exception as error:  # told to who asked
                call.future.set_exception(error)

    def _give_up(self) -> None:
        """Fails the requests whose time is over."""
        now = time.monotonic()
        with self._changed:
            late = [job for job in self._jobs if not job.is_finished and job.deadline <= now]
        for job in late:
            self.counts["given_up"] += 1
            job.fail(Refused(503, "too_slow", "the time for a request is over", 2))

    def _batch(self, jobs: Sequence[Job]) -> list[tuple[Job, Piece]]:
        """What is decoded next, taken from their requests: pieces that are as long as the first one
        of the first request. Of others none is much longer: it would wait for that."""
        size = self.translator.settings.batch
        pool = list[tuple[Job, Piece]]()
        for job in jobs:
            if pool and not (job.urgent == pool[0][0].urgent and _go_together(job, pool[0][0])):
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
        fit = _alike(pool, size)
        batch = fit[: self._count_in_time(fit)]
        if len(batch) < len(pool):
            self._together += (len(batch) - self._together) * _NEW
        for job in dict.fromkeys(job for job, _ in batch):
            pieces = [piece for owner, piece in batch if owner is job]
            piece_ids = {id(piece) for piece in pieces}
            job.waiting = [piece for piece in job.waiting if id(piece) not in piece_ids]
            self._turns.charge(job.path, job.cost(pieces))
        return batch

    def _count_in_time(self, pieces: Sequence[tuple[Job, Piece]]) -> int:
        """How many of the pieces make a batch that does not take too long."""
        limit = _BATCH_SECONDS * self._cost / self._seconds if self._cost else float("inf")
        costs = accumulate(job.cost([piece]) for job, piece in pieces)
        return max(_MIN_PIECES, sum(cost <= limit for cost in costs))

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
            results = view.translate([piece for _, piece in ready], sessions, explain)
            for (job, piece), result in zip(ready, results, strict=True):
                job.put(piece, *result)
        except Exception as error:
            for job, _ in ready:
                job.fail(error)

    def _retrieved(self, batch: Sequence[tuple[Job, Piece]]) -> Iterator[tuple[Job, Piece]]:
        ordered = sorted(batch, key=lambda entry: id(entry[0].view))
        for _, run in groupby(ordered, key=lambda entry: id(entry[0].view)):
            group = list(run)
            try:
                pieces = group[0][0].view.retrieve(
                    [piece for _, piece in group], [job.session for job, _ in group]
                )
            except Exception as error:  # a memory of theirs cannot be searched
                for job, _ in group:
                    job.fail(error)
                continue
            yield from zip([job for job, _ in group], pieces, strict=True)


def _alike(pool: Sequence[tuple[Job, Piece]], size: int) -> list[tuple[Job, Piece]]:
    """`size` pieces of the pool at most, those that are nearest to the first in length."""
    if not pool:
        return []
    first, length = pool[0][0], len(pool[0][1].ids)
    limit = _LONGER * length + _EXTRA_SUBWORDS
    fit = [entry for entry in pool if entry[0] is first or len(entry[1].ids) <= limit]
    return sorted(fit, key=lambda entry: abs(len(entry[1].ids) - length))[:size]


def _go_together(job: Job, first_job: Job) -> bool:
    is_compatible = (
        job.explain == first_job.explain and job.view.settings == first_job.view.settings
    )
    return is_compatible and job.view.extensions == first_job.view.extensions
