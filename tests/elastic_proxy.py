"""A proxy in front of a real server that misbehaves as it is told, and that may want TLS and
a password."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from elastic_server import Running

from tmnmt.index.elastic.address import ElasticAddress

# What becomes of a request: an HTTP status instead of an answer; seconds before it is answered; the
# connection is cut before it reaches the server ("cut") or after ("lost": it was carried out); half
# of its parts are refused ("some"); it is answered as by a node that has just started ("unknown":
# no such index). What can be called is called when the request was carried out, and the connection
# is cut.
Fault = int | float | str | Callable[[], object]
TOO_BUSY = {"type": "es_rejected_execution_exception", "reason": "queue full"}


class Proxy:
    """`fail("_bulk", 429, "cut")`: the next request with "_bulk" in its path is refused, the one
    after it cut."""

    def __init__(self, target: Running, tls: ssl.SSLContext | None, authorization: str) -> None:
        self.target, self.authorization = urlsplit(target.url).netloc, authorization
        self.engine = target.address("any").engine
        self.faults: dict[str, deque[Fault]] = {}
        self.requests = 0
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.proxy = self
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_port}"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)

    def address(self, name: str, *more_urls: str) -> ElasticAddress:
        return ElasticAddress((self.url, *more_urls), name, self.engine)

    def fail(self, path: str, *faults: Fault) -> None:
        self.faults[path] = deque(faults)

    def fault(self, path: str) -> Fault | None:
        self.requests += 1
        planned = next(
            (faults for part, faults in self.faults.items() if part in path and faults), None
        )
        return planned.popleft() if planned else None


@contextmanager
def proxy(
    target: Running, tls: ssl.SSLContext | None = None, authorization: str = ""
) -> Iterator[Proxy]:
    """A proxy in front of a server, which answers only who sends `authorization`, if
    any."""
    made = Proxy(target, tls, authorization)
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()


class _Server(ThreadingHTTPServer):
    proxy: Proxy
    daemon_threads = True  # a connection that is kept alive would be waited for

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if proxy.authorization and self.headers.get("Authorization") != proxy.authorization:
            return self._answer(401, _error("security_exception", "who are you?"))
        fault = proxy.fault(self.path)
        if isinstance(fault, float):
            time.sleep(fault)
        elif isinstance(fault, int):
            return self._answer(fault, _error("es_rejected_execution_exception", "queue full"))
        if fault == "cut":
            return self._cut()
        if fault == "unknown":
            return self._answer(404, _error("index_not_found_exception", "no such index"))
        status, kind, content = self._ask(body)
        if callable(fault):
            fault()
        if fault == "lost" or callable(fault):
            return self._cut()
        self._answer(status, _half_refused(content) if fault == "some" else content, kind)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def _ask(self, body: bytes) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection(self.server.proxy.target)
        names = ("Content-Type", "Accept")
        sent = {name: self.headers[name] for name in names if name in self.headers}
        connection.request(self.command, self.path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers["Content-Type"], content

    def _answer(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        if header := self.server.proxy.engine.header:
            self.send_header(header, "any")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the tests say what matters."""


def _error(kind: str, reason: str) -> bytes:
    return json.dumps({"error": {"type": kind, "reason": reason}}).encode()


def _half_refused(content: bytes) -> bytes:
    """Every second part of the answer to a bulk request or to several searches, refused."""
    answer = json.loads(content)
    for item in answer.get("items", [])[::2]:
        (result,) = item.values()
        result.update(status=429, error=TOO_BUSY)
    if "responses" in answer:
        answer["responses"][::2] = [
            {"status": 429, "error": TOO_BUSY} for _ in answer["responses"][::2]
        ]
    return json.dumps(answer).encode()
