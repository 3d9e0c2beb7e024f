"""Clients that go away, are slow, or come encrypted; and options as they reach the server."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from certificates import certificate
from elastic_server import Running
from serving import Server, serving, tiny_server
from tiny_model import PAIRS, segments

from tmnmt.cli import run
from tmnmt.errors import LockedError, MemoryIndexError, ServerError, TmnmtError
from tmnmt.index.elastic.build import build_elastic
from tmnmt.segments import Segment
from tmnmt.serve import bodies, protocol, running
from tmnmt.serve.app import CLIENT_CLOSED
from tmnmt.serve.keys import ANYBODY
from tmnmt.serve.service import Limits, Service


def connected(served: Server) -> socket.socket:
    where = urlsplit(served.url)
    return socket.create_connection((where.hostname or "", where.port or 0), timeout=20)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert holds()


def sent(to: socket.socket, path: str, body: bytes) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    to.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def test_nothing_more_is_decoded_for_a_client_that_is_gone(served: Server) -> None:
    queue = served.service.models[0].queue
    texts = [f"The Commission shall inform the State {n}." for n in range(900)]
    before = queue.counts["pieces"]
    with connected(served) as to:
        sent(to, "/v1/translate", json.dumps({"texts": texts}).encode())
        until(lambda: queue.counts["pieces"] > before)
    until(lambda: queue.waiting == 0)
    assert queue.counts["pieces"] < before + len(texts)
    assert served.get("/health")["status"] == "ok"


def test_what_was_begun_for_a_client_that_is_gone_is_done_whole(
    served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = served.service.memories.get("own", ANYBODY)
    began, go_on, add = threading.Event(), threading.Event(), memory.index.add

    def slowly(new: Sequence[Segment]) -> list[int]:
        began.set()
        assert go_on.wait(30)
        return list(add(new))

    monkeypatch.setattr(memory.index, "add", slowly)
    body = {"segments": [{"src": "The client went away.", "tgt": "Le client est parti."}]}
    closed = "requests", "POST /v1/memories/{memory}/segments", str(CLIENT_CLOSED)
    with connected(served) as to:
        sent(to, "/v1/memories/own/segments", json.dumps(body).encode())
        assert began.wait(30)
    until(lambda: served.service.counts[closed] == 1)
    path = "/tmserver/en/fr/unit/The%20client%20went%20away."
    assert served.get(path) == []
    go_on.set()
    until(lambda: bool(served.get(path)))


def test_slow_headers_are_given_up(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "SECONDS", 0.2)
    for begin in (b"", b"GET /health HTTP/1.1\r\nHost: loc"):
        with connected(served) as to:
            to.sendall(begin)
            assert to.recv(100) == b""
    with connected(served) as to:  # one request after another is no slow one
        for _ in range(3):
            to.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            reply = b""
            while not reply.endswith(b"}"):
                reply += to.recv(4096)
            assert reply.startswith(b"HTTP/1.1 200")
        to.sendall(b"GET /he")
        assert to.recv(100) == b""


def test_a_slow_body_is_given_up(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SECONDS", 0.2)
    with connected(served) as to:
        to.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        assert to.recv(4096).startswith(b"HTTP/1.1 408")


def test_a_long_wait_is_given_up(folder: Path) -> None:
    with tiny_server(folder, limits=Limits(seconds=0.05)) as server:
        texts = [f"The Commission shall inform the State {n}." for n in range(200)]
        reply = server.ask("POST", "/v1/translate", {"texts": texts})
        assert reply.status == 503 and int(reply.headers["retry-after"]) > 0
        until(lambda: server.service.models[0].queue.waiting == 0)


def test_too_much_at_once_is_refused_and_told_when_to_come_again(folder: Path) -> None:
    with tiny_server(folder, limits=Limits(waiting=400)) as server:
        texts = [f"The Commission shall inform {n}." for n in range(5)]
        replies: list[Any] = []

        def ask() -> None:
            replies.append(server.ask("POST", "/v1/translate", {"texts": texts}))

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = {reply.status for reply in replies}
        assert statuses == {200, 429}
        assert all(int(r.headers["retry-after"]) > 0 for r in replies if r.status == 429)


def started(
    monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], work: Callable[[int], None]
) -> Service:
    """The server as the command makes it; `work` is done with its port before it is stopped."""
    seen: list[Service] = []

    def serve(
        service: Service,
        sockets: Sequence[socket.socket],
        said: Callable[[], None],
        *tls: Any,
        drain: float,
    ) -> None:
        server = running.server_of(service, tls[0], tls[1], drain=drain)
        service.start()
        said()
        thread = threading.Thread(target=server.run, args=([*sockets],))
        thread.start()
        try:
            until(lambda: server.started)
            work(sockets[0].getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
            service.stop()
            seen.append(service)

    monkeypatch.setattr(running, "run", serve)
    assert run(["serve", "--port", "0", "--threads", "1", *arguments]) == 0
    return seen[0]


def test_options_reach_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ["--body-bytes", "1001", "--text-length", "1002", "--waiting", "1003"]
    arguments = ["--model", str(folder / "model"), "--memory", f"a={folder / 'law'}:penalty=7"]
    service = started(monkeypatch, [*arguments, *limits, "--seconds", "4"], lambda _: None)
    assert service.limits == Limits(body=1001, text=1002, waiting=1003, seconds=4)
    (memory,) = service.memories
    assert (memory.name, memory.trust.penalty, memory.writable) == ("a", 7, None)
    assert service.models[0].queue.room == 1003 and service.keys is None


def test_https(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, key = certificate(tmp_path, "IP:127.0.0.1")
    context = ssl.create_default_context(cafile=str(made))

    def work(port: int) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
        connection.request("GET", "/health")
        assert json.loads(connection.getresponse().read())["status"] == "ok"
        connection.close()

    arguments = ["--model", str(folder / "model"), "--certificate", str(made)]
    started(monkeypatch, [*arguments, "--private-key", str(key)], work)


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_what_is_no_certificate_is_told(
    tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chain.pem"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    files = ["--certificate", str(path), "--private-key", str(path)]
    assert run(["serve", "--model", "none", *files]) == 2
    assert "chain.pem" in capsys.readouterr().err


def test_without_its_packages_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert run(["serve", "--model", "none"]) == 2
    assert "pip install 'tmnmt[server]'" in capsys.readouterr().err


def test_a_memory_file_is_served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["src\ttgt", *("\t".join(pair) for pair in PAIRS)]
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    with tiny_server(folder, ("pairs=pairs.tsv",)) as server:
        assert server.get("/v1/memories")["memories"][0]["segments"] == 6
        assert server.get("/tmserver/en/fr/unit/Repealed") == []


@pytest.fixture
def far(folder: Path, server: Running) -> Iterator[Server]:
    """A server whose memories lie on Elasticsearch."""
    places = []
    for name in ("read", "own"):
        address = server.address(f"serve-{name}")
        build_elastic(address, segments(), "en", "fr", force=True)
        places.append(f"{name}={address}")
    service = running.service_of([folder / "model"], places[:1], places[1:], threads=1)
    with serving(service) as served:
        yield served


ALIKE = {"texts": ["The Commission shall inform the Council."], "k": 1}


def test_memories_on_elasticsearch_are_read_and_written(far: Server) -> None:
    (found,) = far.ask("POST", "/v1/memories/read/search", ALIKE).json["results"]
    assert found["matches"][0]["src"] == PAIRS[0][0]
    session = far.ask("POST", "/v1/sessions", {"write_to": "own"}).json["id"]
    pair = {"src": "Kept far away.", "tgt": "Gardé au loin."}
    assert far.ask("POST", f"/v1/sessions/{session}/confirm", pair).status == 200
    assert far.get("/tmserver/en/fr/unit/Kept%20far%20away.")[0]["target"] == pair["tgt"]


@pytest.mark.slow
def test_elasticsearch_may_go_and_come_back(far: Server, server: Running) -> None:
    session = far.ask("POST", "/v1/sessions", {"write_to": "own"}).json["id"]

    def confirmed(word: str) -> int:
        pair = {"src": f"Confirmed {word}.", "tgt": f"Confirmé {word}."}
        return far.ask("POST", f"/v1/sessions/{session}/confirm", pair).status

    assert confirmed("before") == 200
    server.kill()
    try:
        reply = far.ask("POST", "/v1/memories/read/search", ALIKE)
        assert reply.status == 503 and b"memory_away" in reply.body
        assert confirmed("meanwhile") == 503
        assert far.get("/health")["status"] == "ok"
    finally:
        server.start()
    assert far.ask("POST", "/v1/memories/read/search", ALIKE).status == 200
    assert confirmed("after") == 200
    for word in ("before", "after"):  # what was acknowledged is there
        found = far.get(f"/tmserver/en/fr/unit/Confirmed%20{word}.")
        assert found[0]["target"] == f"Confirmé {word}."


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ServerError("http://far:9200 is away"), "memory_away"),
        (LockedError("/x: process 7 is writing to it"), "locked"),
        (MemoryIndexError("/x: damaged"), "unavailable"),
    ],
)
def test_a_memory_that_fails_is_told_without_its_place(
    served: Server, monkeypatch: pytest.MonkeyPatch, error: TmnmtError, code: str
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise error

    index = served.service.memories.get("law", ANYBODY).index
    for name in ("search", "look_up"):
        monkeypatch.setattr(index, name, broken)
    for path, body in (
        ("/v1/memories/law/search", ALIKE),
        ("/v1/translate", {"texts": ["Not known by heart."]}),
    ):
        reply = served.ask("POST", path, body)
        assert (reply.status, reply.json["error"]["code"]) == (503, code)
        assert int(reply.headers["retry-after"]) > 0
        assert b"far" not in reply.body and b"/x" not in reply.body
