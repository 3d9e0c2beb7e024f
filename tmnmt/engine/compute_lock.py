"""Who computes with a model, and with how many threads."""

from __future__ import annotations

import threading

import torch


class ComputeLock:
    """Held while something is computed: by one caller after another, and by one of them several
    times. `threads`: of torch while it is held, with as many as before afterwards; None: torch's
    own number."""

    def __init__(self, threads: int | None = None) -> None:
        self._lock = threading.RLock()
        self._threads = threads
        self._depth = self._previous_threads = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1 and self._threads is not None:
            self._previous_threads = torch.get_num_threads()
            torch.set_num_threads(self._threads)

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._threads is not None:
            torch.set_num_threads(self._previous_threads)
        self._lock.release()
