"""A base behind an address, for tests: it answers chat completions as a test tells it to, and keeps
what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen


@dataclass
class Response:
    """What is sent. `content` is sent as it is where it is not None; `drip` seconds pass between
    its bytes."""

    text: str = ""
    status: int = 200
    reason: str = "stop"
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    latency: float = 0.0
    drip: float = 0.0

    @property
    def body(self) -> bytes:
        if self.content is not None:
            return self.content
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self.text},
            "finish_reason": self.reason,
        }
        return json.dumps({"choices": [choice]}).encode()


Respond = Callable[[str, dict[str, Any]], Response]  # of the text, and of the whole request


@dataclass
class BaseServer:
    """`url`: with /v1. `asked`: the requests, in order. `headers`: those of each. `most`: how many
    were answered at a time at most."""

    url: str
    respond: Respond
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most: int = 0

    def address(self, languages: str = "@en-pt") -> str:
        return f"openai:{self.url}#small{languages}"

    @property
    def texts(self) -> list[str]:
        return [request["messages"][-1]["content"] for request in self.asked]

    @property
    def systems(self) -> list[str]:
        return [request["messages"][0]["content"] for request in self.asked]


@contextmanager
def base_server(respond: Respond, tls: tuple[Path, Path] | None = None) -> Iterator[BaseServer]:
    """`tls`: a certificate and its key, with which it speaks https on 127.0.0.1."""
    lock = threading.Lock()
    active = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            nonlocal active
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                active += 1
                server.most = max(server.most, active)
                server.asked.append(request)
                server.headers.append({**self.headers})
            try:
                response = server.respond(request["messages"][-1]["content"], request)
                time.sleep(response.latency)
                self._send(response)
            except OSError:  # who asked has gone
                self.close_connection = True
            finally:
                with lock:
                    active -= 1

        def _send(self, response: Response) -> None:
            body = response.body
            self.send_response(response.status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            for name, value in (headers | response.headers).items():
                self.send_header(name, value)
            self.end_headers()
            if not response.drip:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(response.drip)

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        # a handshake that fails is that of one thread, not of the one that accepts
        listening.socket = context.wrap_socket(
            listening.socket, server_side=True, do_handshake_on_connect=False
        )
    server = BaseServer(f"http{'s' if tls else ''}://127.0.0.1:{listening.server_port}/v1", respond)
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()


def forwarded(url: str) -> Respond:
    """Has another server answer, such as ours with a model behind it.

    url: its address, with /openai/v1."""

    def respond(text: str, request: dict[str, Any]) -> Response:
        body = json.dumps({**request, "model": "en-pt"}).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{url}/chat/completions", body, headers), timeout=60) as answer:
            return Response(content=answer.read())

    return respond
