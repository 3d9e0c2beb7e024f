"""How many bytes each tenant keeps on the server: memories that it writes to, sessions, jobs with
their files, and glossaries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tmnmt.serve.http_error import Refused

FRESH = 30.0  # seconds for which a measure stands; what is taken in meanwhile is added to it
COST = 50.0  # a measure stands for so many times as long as it took, too


@dataclass
class _Measure:
    size: int
    expiry: float


class Quota:
    """For any thread. What is taken in counts as large as its request, until it is measured."""

    def __init__(self, limit: Callable[[str], int], measure: Callable[[str], int]) -> None:
        """limit: gives how many bytes a tenant may keep. measure: what one keeps."""
        self._limit, self._measure = limit, measure
        self._measures: dict[str, _Measure] = {}
        self._lock = threading.Lock()

    def take(self, tenant: str, size: int) -> None:
        """Counts bytes that are kept.

        tenant: the tenant that they belong to.
        size: how many bytes there are.

        Raises Refused where the tenant has no room for them."""
        limit = self._limit(tenant)
        with self._lock:
            measure = self._current(tenant)
            if measure.size + size > limit:
                raise Refused(
                    413,
                    "quota",
                    "all that is kept for this tenant may have {limit} bytes "
                    "(--tenant-bytes); delete some of it",
                    values={"limit": limit},
                )
            measure.size += size

    def size(self, tenant: str) -> int:
        """How many bytes are kept for a tenant, more or less.

        tenant: the tenant."""
        with self._lock:
            return self._current(tenant).size

    def _current(self, tenant: str) -> _Measure:
        measure = self._measures.get(tenant)
        if measure is None or time.monotonic() > measure.expiry:
            self._measures[tenant] = measure = self._measured(tenant)
        return measure

    def _measured(self, tenant: str) -> _Measure:
        start = time.monotonic()
        size = self._measure(tenant)
        end = time.monotonic()
        return _Measure(size, end + max(FRESH, COST * (end - start)))


def size_of_folder(folder: Path) -> int:
    """The bytes of all files in a folder; of one that goes meanwhile, nothing.

    folder: the folder."""
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.lstat().st_size
        except FileNotFoundError:
            continue
    return size
