"""Says who computes with a model, and with how many threads."""

from __future__ import annotations

import threading


class ComputeLock:
    """A lock that is held while something is computed. One caller holds it after another, and a
    caller may take it several times."""

    def __init__(self, threads: int | None = None) -> None:
        """threads: how many threads torch uses while the lock is held. Afterwards torch uses as
        many as before. None keeps the number of torch."""
        self._lock = threading.RLock()
        self._threads = threads
        self._depth = self._previous_threads = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1 and self._threads is not None:
            import torch

            self._previous_threads = torch.get_num_threads()
            torch.set_num_threads(self._threads)

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._threads is not None:
            import torch

            torch.set_num_threads(self._previous_threads)
        self._lock.release()
