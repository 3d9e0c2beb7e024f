"""Answers of a server that are read until a deadline, however the server sends them."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any

from elastic_transport import NodeConfig, Urllib3HttpNode


class BoundedNode(Urllib3HttpNode):
    """A host of a cluster. The time of a request is that of its whole answer, where the HTTP client
    alone would count from each byte to the next."""

    def __init__(self, config: NodeConfig) -> None:
        """config: the host."""
        super().__init__(config)
        connection: Any = self.pool.ConnectionCls
        self.pool.ConnectionCls = type(
            connection.__name__, (connection,), {"response_class": _BoundedAnswer}
        )


class _BoundedAnswer(HTTPResponse):
    """An answer whose deadline counts from its beginning by the time limit of its socket."""

    def __init__(self, sock: socket.socket, *options: Any, **named: Any) -> None:
        super().__init__(sock, *options, **named)
        self.fp = io.BufferedReader(_Bytes(sock, self.fp.detach()))


class _Bytes(io.RawIOBase):
    """The bytes of an answer."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._socket, self._raw = sock, raw
        seconds = sock.gettimeout()
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None:
            seconds = self._deadline - time.monotonic()
            if seconds <= 0:
                raise TimeoutError
            self._socket.settimeout(seconds)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
