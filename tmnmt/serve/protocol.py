"""Connections that send their headers too slowly are closed: uvicorn alone waits for ever."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tmnmt.serve.site import HEADERS

SECONDS = 20.0  # for the headers of a request, from its first byte or the connection's beginning


class Protocol(H11Protocol):
    """HTTP/1.1 of uvicorn with a deadline for headers."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_deadline()
        elif self._late is None:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """As uvicorn does, with the headers that every answer has."""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        events = (
            h11.Response(status_code=400, headers=[*headers, *HEADERS], reason=b"Bad Request"),
            h11.Data(data=msg.encode("ascii")),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = self.loop.call_later(SECONDS, self._close)

    def _cancel_deadline(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
