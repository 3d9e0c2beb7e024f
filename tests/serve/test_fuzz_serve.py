"""Hundreds of requests that are nearly right, over all routes: each is answered or refused, none
makes the server fail."""

from __future__ import annotations

import json
import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from serving import Server, tiny_server

from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.own import OWN
from tmnmt.serve.routes import Route

ROUTES = [
    (dialect, prefix, route)
    for dialect in (OWN, *DIALECTS)
    for prefix in dialect.prefixes
    for route in dialect.routes
]
WORDS: list[Any] = [
    "",
    "No.",
    "en",
    "fr",
    "eng",
    "en|fr",
    "auto",
    "xx",
    "../../etc/passwd",
    "\x00",
    "a\r\nb: c",
    "\u202e\ud83d\ude00",
    "<b>",
    "<b>No.</b>",
    "a < b",
    "%s %d {x}",
    "&amp;&#0;&bogus;",
    "x" * 3000,
    "http://127.0.0.1:1/",
    "file:///etc/passwd",
    "1e999",
    "-1",
    "0",
    "5",
    "70",
    "true",
    "html",
    "xml",
    "law",
    "own",
    "law,own",
    "'; drop table",
    "{{7*7}}",
    "copy",
    "interactive",
    None,
    True,
    False,
    0,
    1,
    -1,
    5,
    1.5,
    10**30,
    1e308,
    [],
    {},
    [[]],
    [None],
    ["No."],
    ["en", 1],
    ["a"] * 50,
    {"beam": 0},
    {"beam": 2},
    {"mode": "x"},
    {"x": {"y": []}},
    [{"src": "a", "tgt": "b"}],
    [{"source": "a", "target": "b"}],
    [{"src": 1}],
]
NAMES = sorted(
    {field.name for _, _, route in ROUTES for field in route.fields}
    | {"q", "source", "target", "format", "langpair", "min_similarity", "max_candidates", "text"}
    | {"api_key", "key", "alternatives", "markUnknown", "jsoncallback", "source_lang"}
    | {"target_lang", "tag_handling", "ignore_tags", "input", "srcLangCode", "trgLangCode"}
    | {"model_id", "translation_memory_id", "translation_memory_threshold", "mt", "numres"}
)
PARTS = ["law", "own", "en", "fr", "x", "..", "%2e%2e", "%00", "%ff", "a%2Fb", "%F0%9F%98%80", "1"]


def path_of(draw: random.Random, prefix: str, route: Route) -> str:
    return prefix + re.sub(r"\{[^}]*\}", lambda _: draw.choice(PARTS), route.path)


def fields_of(draw: random.Random, route: Route) -> dict[str, Any]:
    """Mostly what the route reads."""
    own = [field.name for field in route.fields] or NAMES
    names = [draw.choice(own if draw.random() < 0.8 else NAMES) for _ in range(draw.randint(0, 6))]
    fields = {name: draw.choice(WORDS) for name in names}
    usual = {"texts": ["No."], "q": "No.", "source": "en", "target": "fr", "langpair": "en|fr"}
    for name, value in usual.items():
        if name in own and draw.random() < 0.6:
            fields[name] = value
    return fields


def body_of(draw: random.Random, fields: dict[str, Any]) -> tuple[bytes, str]:
    match draw.randint(0, 9):
        case 0:
            return draw.randbytes(draw.randint(0, 200)), "application/json"
        case 1:
            return b"", draw.choice(["application/json", "", "text/plain"])
        case 2:
            return json.dumps(fields).encode("utf-16"), "application/json"
        case 3:
            return json.dumps(fields).encode()[: draw.randint(0, 60)], "application/json"
        case 4:
            return json.dumps([fields]).encode(), "application/json"
        case 5:
            pairs = {name: str(value) for name, value in fields.items()}
            form = urlencode(pairs, errors="replace").encode()
            return form + draw.choice(
                [b"", b"&q=%ff", b"&&=&"]
            ), "application/x-www-form-urlencoded"
    return json.dumps(fields).encode(), "application/json"


def is_answer(dialect_of: Any, reply: Any) -> None:
    assert 200 <= reply.status < 500, reply.body
    assert b"Traceback" not in reply.body and b"/tmp" not in reply.body
    if reply.status >= 400 and reply.body:
        kind = reply.headers["content-type"]
        assert kind == "application/json", kind
        from tmnmt.serve.refused import Refused

        shape = dialect_of.refusal(Refused(reply.status, "x", "x"))[1]
        assert set(reply.json) == set(shape)


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
    draw = random.Random(f"{random.random()} {part}")
    answered = 0
    for number in range(160):
        dialect, prefix, route = ROUTES[(number * 4 + part) % len(ROUTES)]
        path, fields = path_of(draw, prefix, route), fields_of(draw, route)
        body, kind = body_of(draw, fields)
        method = route.method if draw.random() < 0.95 else draw.choice(["GET", "POST", "PUT"])
        if method == "GET" or draw.random() < 0.2:
            pairs = {name: str(value) for name, value in fields.items()}
            path += "?" + urlencode(pairs, errors="replace", quote_via=quote)
        if method == "GET" and draw.random() < 0.8:
            body, kind = b"", ""
        reply = fuzzed.ask(
            method, path, body or None, headers={"Content-Type": kind} if kind else {}
        )
        if reply.status != 404:
            is_answer(dialect, reply)
        assert reply.status < 500, (method, path, body)
        answered += reply.status == 200
    assert answered > 10
    with pytest.raises(BlockingIOError):  # no address that a client sent was asked
        trap.accept()
    assert fuzzed.get("/health") == {"status": "ok"}


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
        to.sendall(request_)
        to.shutdown(socket.SHUT_WR)
        reply = b""
        while part := to.recv(65536):
            reply += part
    assert not reply or re.match(rb"HTTP/1\.1 (200|4\d\d) ", reply), reply[:200]
    assert b"Traceback" not in reply
    assert fuzzed.get("/health") == {"status": "ok"}
