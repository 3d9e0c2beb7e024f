"""How long a server takes for `/health` while it has other requests to answer, and how long one
that has none takes, which says what of it other programs of the machine have done."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_IDLE = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def idle_server() -> Iterator[int]:
    """The port of a process that answers at once and has nothing else to do."""
    command = [sys.executable, "-c", _IDLE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            yield int(started.stdout.readline())
        finally:
            started.kill()


class HealthWatch:
    """Asks `/health` again and again while the block runs. `longest`: seconds of the slowest
    answer; one that does not come at all has the time until the block ended."""

    def __init__(self, port: int, pause: float = 0.02) -> None:
        self.seconds = list[float]()
        self._port, self._pause = port, pause
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    @property
    def longest(self) -> float:
        return max(self.seconds, default=0.0)

    def slow(self, limit: float) -> int:
        """How many answers took longer than `limit` seconds."""
        return sum(one > limit for one in self.seconds)

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
            self.seconds.append(time.monotonic() - start)
            self._ended.wait(self._pause)
