"""A server in a process that is killed: what `serve_kill.py` and `desk_kill.py` share."""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tmnmt.serve.service import Service

READY = b"!"


class Forked:
    """A server in a process that is forked, so that it has all modules already."""

    def __init__(self, build: Callable[[], Service]) -> None:
        """build: makes what is served, in the new process."""
        from tmnmt.serve.running import listening, run

        socket = listening("127.0.0.1", 0)
        self.port = socket.getsockname()[1]
        reading, writing = os.pipe()

        def ready() -> None:
            os.write(writing, READY)

        self.pid = os.fork()
        if not self.pid:
            try:
                run(build(), [socket], ready)
            finally:
                os._exit(1)
        os.close(writing)
        socket.close()
        if os.read(reading, 1) != READY:
            raise SystemExit("the server did not start")
        os.close(reading)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def ask(port: int, method: str, path: str, body: Any = None, expected: Collection[str] = ()) -> Any:
    """What a server answers. Ends the program where it refuses the request, but for the codes of
    errors that are expected. Raises OSError, HTTPException or ValueError where it is killed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        answer = json.loads(reply.read())
    finally:
        connection.close()
    if reply.status != 200 and answer["error"]["code"] not in expected:
        raise SystemExit(f"refused: {method} {path} {reply.status} {answer}")
    return answer
