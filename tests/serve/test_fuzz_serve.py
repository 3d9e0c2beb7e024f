"""Hundreds of requests that are nearly right, over all routes: each is answered or refused, none
makes the server fail."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fuzz_serve import WORDS, fuzz
from serving import Server, tiny_server


@pytest.fixture(scope="module")
def fuzzed(folder: Path) -> Iterator[Server]:
    """One of its own: what is added to it would puzzle other tests."""
    with tiny_server(folder, ("law=law",), ("own=fuzzed",)) as server:
        yield server


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """A port of this machine that nobody has any business with; its address is among WORDS."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        WORDS.extend([address] * 4)
        yield listening
        del WORDS[-4:]


@pytest.mark.parametrize("part", range(4))
def test_nothing_makes_the_server_fail(fuzzed: Server, trap: socket.socket, part: int) -> None:
    statuses = fuzz(fuzzed, random.Random(f"{random.random()} {part}"), 160, 160 * part)
    assert statuses[200] > 10
    with pytest.raises(BlockingIOError):  # no address that a client sent was asked
        trap.accept()
    assert fuzzed.get("/health")["status"] == "ok"


RAW = [
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nContent-Length: x\r\n\r\n",
    b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET /%c3%28 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/models?%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: [\r\n\r\n",
]


@pytest.mark.parametrize("request_", RAW, ids=range(len(RAW)))
def test_bytes_that_are_no_request_are_refused(fuzzed: Server, request_: bytes) -> None:
    where = urlsplit(fuzzed.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=20) as to:
        reply = b""
        with suppress(ConnectionError):  # it need not read a request to its end
            to.sendall(request_)
            to.shutdown(socket.SHUT_WR)
            while part := to.recv(65536):
                reply += part
    assert not reply or re.match(rb"HTTP/1\.1 (200|4\d\d) ", reply), reply[:200]
    assert b"Traceback" not in reply
    assert fuzzed.get("/health")["status"] == "ok"
