"""Documents translated by workers, which are other processes, here or on other machines: tasks go
out ahead, and translations come back in order.

documents ─► tasks ─► Workers.submit ─► FinishedTasks ─► translations"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Protocol

from tmnmt.batch.finished_tasks import FinishedTasks
from tmnmt.batch.task import Setup, Way, answer_of, checked_answer, task_text
from tmnmt.codes.record import Source
from tmnmt.engine.run_statistics import Tally
from tmnmt.progress import Progress
from tmnmt.segments import Translation
from tmnmt.typed_json import dumps

SEGMENTS_OF_TASK = 128  # at least, where the documents of an input have as many
TASKS_OF_WORKER = 2  # that it does and that wait for it, so that it never waits itself
SEGMENTS_AHEAD = 100_000  # that are read before those before them are finished


class Workers(Protocol):
    """Processes that do tasks, as `tmnmt.batch.task.run` does them."""

    def count(self) -> int:
        """How many there are now."""
        ...

    def submit(self, task: bytes) -> Future[bytes]:
        """Has a task done. The future gives its answer; where there is none, it raises a TmnmtError
        that says why.

        task: what `task_text` wrote."""
        ...


@dataclass
class _Input:
    """The documents of one input on their way. `tasks`: the name and the segments of every task
    that was made of them, and whose translations were not given yet."""

    documents: Iterator[Sequence[Source]]
    way: Way
    tasks: deque[tuple[bytes, int]] = field(default_factory=deque)
    is_read: bool = False


class WorkerPool:
    """Has the documents of several inputs translated by workers, each input as `Translator.stream`
    translates it. Inputs are read in the order in which they were given, later ones while earlier
    ones are translated."""

    def __init__(
        self,
        workers: Workers,
        setup: Setup,
        finished: FinishedTasks,
        tally: Tally,
        progress: Progress,
    ) -> None:
        """workers: the workers, who have the setup.
        setup: what they translate with.
        finished: where answers are kept. What it has already is not asked for again.
        tally: what the counts of the workers are added to.
        progress: is told of every segment that is translated."""
        self._workers, self._finished = workers, finished
        self._tally, self._progress = tally, progress
        self._name = hashlib.sha256(dumps(setup)).digest()
        self._inputs = deque[_Input]()  # that are not read to their ends
        self._running = dict[bytes, tuple[Future[bytes], int]]()
        self._segments_ahead = (
            0  # segments that were read, and whose translations were not given yet
        )
        self.restored = 0  # segments that an earlier run had finished

    def translations(
        self, documents: Iterable[Sequence[Source]], way: Way
    ) -> Iterator[Translation]:
        """The translations of an input, in order. Its documents are read once there is room for
        them, which may be before the first translation is asked for.

        documents: the texts of every document.
        way: how they are translated.

        What is given raises the errors of the workers."""
        entry = _Input(iter(documents), way)
        self._inputs.append(entry)
        return self._translations(entry)

    def _translations(self, entry: _Input) -> Iterator[Translation]:
        while True:
            self._send()
            if entry.tasks:
                name, segments = entry.tasks.popleft()
                while name not in self._finished:
                    self._collect()
                    self._send()
                answer = answer_of(self._finished.get(name))
                self._segments_ahead -= segments
                self._tally.add(answer.counts)
                yield from answer.translations
            elif entry.is_read:
                return
            else:
                self._collect()

    def _send(self) -> None:
        """Sends tasks as long as workers have room for them."""
        room = TASKS_OF_WORKER * self._workers.count()
        while self._inputs and len(self._running) < room and self._segments_ahead < SEGMENTS_AHEAD:
            entry = self._inputs[0]
            together = _together(entry.documents)
            if not together:
                entry.is_read = True
                self._inputs.popleft()
                continue
            task, segments = task_text(together, entry.way), sum(map(len, together))
            name = hashlib.sha256(self._name + task).digest()
            entry.tasks.append((name, segments))
            self._segments_ahead += segments
            if name in self._running:
                continue
            if name in self._finished:
                self.restored += segments
                self._progress.leave_out(segments)
                continue
            self._running[name] = self._workers.submit(task), segments

    def _collect(self) -> None:
        """Waits for an answer, and keeps all that have come."""
        wait([future for future, _ in self._running.values()], return_when=FIRST_COMPLETED)
        for name, (future, segments) in [*self._running.items()]:
            if future.done():
                self._finished.put(name, checked_answer(future.result()))
                del self._running[name]
                self._progress.advance(segments)


def _together(documents: Iterator[Sequence[Source]]) -> list[Sequence[Source]]:
    """The next documents that make a task; none where there are no more."""
    together = list[Sequence[Source]]()
    segments = 0
    while segments < SEGMENTS_OF_TASK and (document := next(documents, None)) is not None:
        if document:
            together.append(document)
            segments += len(document)
    return together
