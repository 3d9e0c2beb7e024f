"""What answers at an address of an index and is no search server: one line says so soon, and little
of the answer is read."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tmnmt.cli import run
from tmnmt.errors import ServerError
from tmnmt.index.elastic.address import ElasticAddress
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.index.elastic.layout import ElasticManifest
from tmnmt.segments import Segment

ROOT = {"name": "a", "version": {"number": "9.2.4"}, "tagline": "You Know, for Search"}
MAPPING = {"my-1": {"mappings": {"_meta": ElasticManifest("en", "fr", 1, 1, 1, "").meta()}}}
Handler = BaseHTTPRequestHandler


@contextmanager
def foreign(answer: Callable[[Handler], None]) -> Iterator[ElasticAddress]:
    """A server that has the header of Elasticsearch, and answers every request by a function."""

    class Answering(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer(self)

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that goes away is what some tests are about."""

    server = Quiet(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield ElasticAddress((f"http://127.0.0.1:{server.server_port}",), "my")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def begin(handler: Handler, status: int = 200, **headers: str) -> None:
    """The head of an answer, of JSON where the headers do not say otherwise."""
    handler.send_response(status)
    for name, value in {
        "X_elastic_product": "any",
        "Content_Type": "application/json",
        **headers,
    }.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def with_bytes(content: bytes, status: int = 200, **headers: str) -> Callable[[Handler], None]:
    def answer(handler: Handler) -> None:
        begin(handler, status, Content_Length=str(len(content)), **headers)
        handler.wfile.write(content)

    return answer


def with_json(content: Any) -> Callable[[Handler], None]:
    return with_bytes(json.dumps(content).encode())


def search(address: ElasticAddress) -> None:
    with ElasticIndex.open(address) as index:
        index.search(["a b"])


def build(address: ElasticAddress) -> None:
    build_elastic(address, [Segment("a", "b")], "en", "fr")


@pytest.mark.parametrize("content", [ROOT, {"a": ROOT}, {"a": {"mappings": 1}}, None, [], 7, "x"])
def test_json_of_something_else_is_one_line(content: Any) -> None:
    with foreign(with_json(content)) as address:
        for work, path in ((search, r"/my/_mapping"), (build, r"/my,my-\*/_alias")):
            with pytest.raises(
                ServerError, match=f"answers as no search server does to GET {path}(: |$)"
            ):
                work(address)


def test_what_an_answer_lacks_is_one_line() -> None:
    def answer(handler: Handler) -> None:
        with_json(MAPPING if handler.path.endswith("_mapping") else ROOT)(handler)

    with foreign(answer) as address, ElasticIndex.open(address) as index:
        for ask, path in (
            (lambda: index.search(["a b"]), "POST /_msearch"),
            (lambda: len(index), "POST /my/_search"),
            (lambda: list(index.segments()), "POST /my/_pit"),
            (lambda: index.add([Segment("a", "b")]), "GET /my-1-only/_doc/counter"),
            (lambda: index.last_id, "GET /my/_doc/counter"),
            (index.size, "GET /my/_stats/store"),
        ):
            with pytest.raises(ServerError, match=f"answers as no search server does to {path}"):
                ask()


@pytest.mark.parametrize("dripping", ["head", "body", "chunks"])
def test_an_answer_that_comes_byte_by_byte_has_to_end_in_time(dripping: str) -> None:
    def answer(handler: Handler) -> None:
        body = b" " * 200 + b"{}"
        if dripping == "head":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Elastic-Product: ")
            drip(handler, body.replace(b"{}", b"any\r\nContent-Length: 2\r\n\r\n{}"))
        elif dripping == "body":
            begin(handler, Content_Length=str(len(body)))
            drip(handler, body)
        else:
            begin(handler, Transfer_Encoding="chunked")
            drip(handler, body, b"1\r\n%b\r\n")
            handler.wfile.write(b"0\r\n\r\n")

    def drip(handler: Handler, content: bytes, form: bytes = b"%b") -> None:
        for byte in content:  # ten seconds in all, for who waits for all of it
            handler.wfile.write(form % bytes([byte]))
            time.sleep(0.05)

    with foreign(answer) as address, pytest.raises(ServerError, match=r"no answer within 0\.3 s"):
        ElasticIndex.open(address, seconds_to_answer=0.3)


def endless(handler: Handler, part: bytes) -> None:
    for _ in range(1000):  # for who reads all of it: 10 MB, and the connection is at its end
        handler.wfile.write(part)
    handler.close_connection = True


def in_chunks(handler: Handler) -> None:
    begin(handler, Transfer_Encoding="chunked")
    endless(handler, b"2710\r\n" + 10_000 * b" " + b"\r\n")


def to_its_end(handler: Handler) -> None:
    begin(handler, Connection="close")
    endless(handler, 10_000 * b" ")


def in_the_head(handler: Handler) -> None:
    endless(handler, b"HTTP/1.1 100 Continue\r\nA: " + 10_000 * b" " + b"\r\n\r\n")


def with_a_large_number(handler: Handler) -> None:
    begin(handler, Content_Length=str(1 << 60))


def with_a_large_chunk(handler: Handler) -> None:
    begin(handler, Transfer_Encoding="chunked")
    handler.wfile.write(b"%x\r\n" % (1 << 60))


@pytest.mark.parametrize(
    "answer", [in_chunks, to_its_end, in_the_head, with_a_large_number, with_a_large_chunk]
)
def test_an_answer_is_read_up_to_a_bound(
    answer: Callable[[Handler], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.elastic.bounded.MOST_BYTES", 100_000)
    told = "the answer to GET /my/_alias has more than 100,000 bytes, and was not read to its end$"
    with foreign(answer) as address, pytest.raises(ServerError, match=told):
        ElasticIndex.open(address, patience=0.0)


def test_what_is_compressed_unasked_is_not_unpacked() -> None:
    packed = gzip.compress(json.dumps(MAPPING).encode())
    with (
        foreign(with_bytes(packed, Content_Encoding="gzip")) as address,
        pytest.raises(ServerError, match="does to GET /my/_mapping: no JSON, but "),
    ):
        ElasticIndex.open(address, patience=0.0)


def test_a_redirect_is_told_with_where_it_leads() -> None:
    told = r"HTTP 302: a redirect to 'https://other\.example/my', which is not followed$"
    with (
        foreign(with_bytes(b"", 302, Location="https://other.example/my")) as address,
        pytest.raises(ServerError, match=told),
    ):
        ElasticIndex.open(address)


@pytest.mark.parametrize("kind", ["application/json", "text/html", "image/png", "of no kind"])
def test_broken_json_is_told_at_once_and_a_busy_server_by_its_status(kind: str) -> None:
    with (
        foreign(with_bytes(b'{"my-1": {"ma', Content_Type=kind)) as address,
        pytest.raises(
            ServerError, match=r"does to GET /my/_mapping: no JSON, but .*my-1"
        ) as raised,
    ):
        ElasticIndex.open(address)
    assert "tried for" not in str(raised.value)
    with (
        foreign(with_bytes(b"<p>Bad\nGateway", 502, Content_Type=kind)) as address,
        pytest.raises(ServerError, match=r"is too busy \(HTTP 502\): <p>Bad Gateway \(tried"),
    ):
        ElasticIndex.open(address, patience=0.0)


def test_what_a_server_says_is_told_in_a_short_line() -> None:
    def answer(handler: Handler) -> None:
        handler.wfile.write(b"\x1b[2J" * 10_000 + b"\r\n\r\n")
        handler.close_connection = True

    page = with_bytes(b"<p>\x1b[2J\n" * 10_000, 500, Content_Type="text/html")
    for way in (answer, page):
        with foreign(way) as address, pytest.raises(ServerError) as raised:
            ElasticIndex.open(address, patience=0.0)
        assert len(str(raised.value)) < 500 and str(raised.value).isprintable()


def test_a_host_that_stands_twice_in_an_address_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["search", "--index", "elasticsearch+http://one,two,ONE:9200/my", "a"]) == 2
    told = capsys.readouterr().err
    assert told.endswith("the host http://one:9200 stands there twice; name each once\n")
    assert told.count("\n") == 1
