"""Answers of a server that are read up to a bound and until a deadline, whatever the server
sends."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any

from elastic_transport import NodeConfig, Urllib3HttpNode

# Of an answer, with its head. The largest that is asked for are 1,000 documents for each of 32
# queries, 19 MB where a document holds two pairs of 300 bytes. Of sources with very many pairs they
# grow, up to the 100 MB that a server takes as one document. This is fifty times the usual.
MOST_BYTES = 1 << 30


class BoundedNode(Urllib3HttpNode):
    """A host of a cluster. Of an answer no more than MOST_BYTES are read. The time of a request is
    that of its whole answer, where the HTTP client alone would count from each byte to the next."""

    def __init__(self, config: NodeConfig) -> None:
        """config: the host."""
        super().__init__(config)
        connection: Any = self.pool.ConnectionCls
        self.pool.ConnectionCls = type(
            connection.__name__, (connection,), {"response_class": _BoundedAnswer}
        )


class AnswerTooLargeError(Exception):
    """An answer has more than MOST_BYTES. The node raises it as the cause of a ConnectionError."""


class _BoundedAnswer(HTTPResponse):
    """An answer whose deadline counts from its beginning by the time limit of its socket. It was
    asked for as it is, so what is compressed all the same stays so: it might become any size."""

    def __init__(self, sock: socket.socket, *options: Any, **named: Any) -> None:
        super().__init__(sock, *options, **named)
        self.fp = _Reader(_Bytes(sock, self.fp.detach()))

    def begin(self) -> None:
        """Reads the head."""
        super().begin()
        del self.headers["Content-Encoding"]


class _Reader(io.BufferedReader):
    """Refuses to make room for more than may come."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes.

        size: how many there have to be; -1 and None for all."""
        if size is not None and size > MOST_BYTES:
            raise AnswerTooLargeError
        return super().read(size)


class _Bytes(io.RawIOBase):
    """The bytes of an answer."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._socket, self._raw, self._count = sock, raw, 0
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
        count = self._raw.readinto(buffer)
        self._count += count or 0
        if self._count > MOST_BYTES:
            raise AnswerTooLargeError
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
