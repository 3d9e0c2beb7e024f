"""Workers of a Ray cluster. Ray starts them, gives each task to one that is free, and to another
where one is killed or its machine is gone, and starts new ones on machines that join.

What Ray carries is the name of one function of this package, which every machine must have, and
bytes of JSON."""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from tmnmt.batch import task
from tmnmt.batch.ray_address import Address
from tmnmt.batch.task import Setup
from tmnmt.errors import ServerError, UsageError
from tmnmt.quantities import quantity
from tmnmt.typed_json import dumps

SECONDS_BETWEEN_COUNTS = 5.0
CONNECTION_TRIES = 2  # of half a minute each: a head that is busy may answer late
RETRIES = 3  # of a task whose worker was killed: a text that kills every worker ends the run


class RayWorkers:
    """The workers of a cluster: one a processor, or one for each `threads` of them. Each opens the
    model and its memories with its first task, and keeps them."""

    def __init__(self, ray: Any, address: Address, setup: Setup, threads: int) -> None:
        """ray: the package, connected to the cluster.
        address: that of the cluster.
        setup: what the workers translate with.
        threads: how many threads each computes with."""
        self._ray, self._address, self._threads = ray, address, threads
        content = dumps(setup)
        self._name = hashlib.sha256(content).hexdigest()
        self._setup = ray.put(content)
        self._run = ray.remote(num_cpus=threads, max_retries=RETRIES)(task.run)
        self._count, self._count_time = 0, -SECONDS_BETWEEN_COUNTS

    def count(self) -> int:
        """How many workers there is room for, at least 1; machines may join and leave."""
        if time.monotonic() - self._count_time >= SECONDS_BETWEEN_COUNTS:
            with self._errors_told():
                nodes = self._ray.nodes()
            processors = (node["Resources"].get("CPU", 0) for node in nodes if node["Alive"])
            self._count = sum(int(number // self._threads) for number in processors)
            self._count_time = time.monotonic()
        return max(self._count, 1)

    def check(self) -> None:
        """Raises UsageError where no machine has room for a worker."""
        if self.count() and not self._count:
            raise UsageError(
                f"{self._address}: no machine of this cluster gives "
                f"{quantity(self._threads, 'processor')} to a task"
            )

    def submit(self, content: bytes) -> Future[bytes]:
        """As `tmnmt.batch.workers.Workers.submit`.

        content: the task."""
        answer = Future[bytes]()
        with self._errors_told():
            reference = self._run.remote(self._name, self._setup, content, self._threads)

        def arrived(source: Future[bytes]) -> None:
            error = source.exception()
            if error is not None:
                answer.set_exception(_in_one_line(error, self._address))
            else:
                answer.set_result(source.result())

        reference.future().add_done_callback(arrived)
        return answer

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise _in_one_line(error, self._address) from error


@contextmanager
def connected(address: Address, setup: Setup, threads: int) -> Iterator[RayWorkers]:
    """The workers of a cluster, for as long as the block lasts. Then what still runs there ends.

    address: that of the cluster.
    setup: what the workers translate with.
    threads: how many threads each computes with.

    Raises UsageError where the cluster has another version of Ray or of Python, or no room, and
    ServerError where it does not answer."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    with _signals_left_alone(), warnings.catch_warnings(action="ignore"):
        context = _context(ray, address, CONNECTION_TRIES)
    try:
        workers = RayWorkers(ray, address, setup, threads)
        workers.check()
        yield workers
    finally:
        with suppress(Exception):  # of a cluster that is gone
            context.disconnect()


def _context(ray: Any, address: Address, tries: int) -> Any:
    try:
        return ray.init(str(address), log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        if tries > 1:
            return _context(ray, address, tries - 1)
        raise ServerError(
            f"{address}: what listens there does not answer as a Ray cluster does, or it wants the "
            "cluster's token: RAY_AUTH_MODE, RAY_AUTH_TOKEN"
        ) from error
    except Exception as error:
        raise _in_one_line(error, address) from error


@contextmanager
def _signals_left_alone() -> Iterator[None]:
    """Ray puts a handler of its own in the place of ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _in_one_line(error: BaseException, address: Address) -> ServerError | UsageError:
    """What a user is told of an error of Ray, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines)
    if ("ersion" in text and "mismatch" in text.lower()) or "versions differ" in text.lower():
        return UsageError(f"{address}: another version of Ray or Python: {text:.300}")
    if "No module named 'tmnmt'" in text:
        return UsageError(f"{address}: tmnmt is not installed on a machine of this cluster")
    if type(error).__name__ in _KILLED:
        return ServerError(
            f"{address}: a task was given up, since its worker was killed {RETRIES + 1} times"
        )
    return ServerError(f"{address}: {type(error).__name__}: {lines[-1] if lines else ''!s:.300}")


_KILLED = ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError")
