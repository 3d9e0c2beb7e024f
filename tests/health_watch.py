"""How long a server takes for `/health` while it has other requests to answer."""

from __future__ import annotations

import http.client
import threading
import time
from contextlib import suppress


class HealthWatch:
    """Asks `/health` again and again while the block runs. `longest`: seconds of the slowest
    answer; one that does not come at all has the time until the block ended."""

    def __init__(self, port: int, pause: float = 0.02) -> None:
        self.longest, self.count = 0.0, 0
        self._port, self._pause = port, pause
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> HealthWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._ended.is_set():
            start = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            with suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/health")
                connection.getresponse().read()
            connection.close()
            self.longest = max(self.longest, time.monotonic() - start)
            self.count += 1
            self._ended.wait(self._pause)
