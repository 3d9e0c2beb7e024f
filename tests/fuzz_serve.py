"""Requests to a server that are nearly right, over all routes of all dialects, by a seed:
`python fuzz_serve.py COUNT SEED`."""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from health_watch import HealthWatch, idle_server
from serving import Server, tiny_server
from tiny_model import segments, write_tiny_model

from tmnmt.index import build
from tmnmt.serve.api_v1 import API_V1
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.http_error import Refused
from tmnmt.serve.routes import Route

LONGEST = 5_000  # characters of a value in an address: a longer address is no request
SLOWEST = 0.2  # seconds that `/health` may take
ROUTES = [
    (dialect, prefix, route)
    for dialect in (API_V1, *DIALECTS.values())
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
    "en,fr\r\nState,Canton",
    "unidirectional",
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
    ["law"] * 30_000,
    "1," * 100_000,
    [{"source": "a", "target": "b"}] * 20_000,
    {"beam": 0},
    {"beam": 2},
    {"mode": "x"},
    {"x": {"y": []}},
    [{"src": "a", "tgt": "b"}],
    [{"source": "a", "target": "b"}],
    [{"src": 1}],
]
NAMES = sorted(
    {field.name for _, _, route in ROUTES for field in route.fields if field.name}
    | {"q", "source", "target", "format", "langpair", "min_similarity", "max_candidates", "text"}
    | {"api_key", "key", "alternatives", "markUnknown", "jsoncallback", "source_lang"}
    | {"target_lang", "tag_handling", "ignore_tags", "input", "srcLangCode", "trgLangCode"}
    | {"model_id", "translation_memory_id", "translation_memory_threshold", "mt", "numres"}
    | {"csv", "type", "name", "glossaries"}
)
PARTS = ["law", "own", "en", "fr", "x", "..", "%2e%2e", "%00", "%ff", "a%2Fb", "%F0%9F%98%80", "1"]


def path_of(draw: random.Random, prefix: str, route: Route) -> str:
    return prefix + re.sub(r"\{[^}]*\}", lambda _: draw.choice(PARTS), route.path)


def fields_of(draw: random.Random, route: Route) -> dict[str, Any]:
    """Mostly what the route reads."""
    own = [field.name for field in route.fields if field.name] or NAMES
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
        case 6:
            parts = [
                f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                for name, value in fields.items()
            ]
            ends = ["--b--", "--b--\r\n", "--b\r\n", "\xff", "--b\r\n\r\n--b--"]
            form = ("".join(parts) + draw.choice(ends)).encode(errors="replace")
            return form, draw.choice(["multipart/form-data; boundary=b", "multipart/form-data"])
    return json.dumps(fields).encode(), "application/json"


def is_answer(dialect_of: Any, reply: Any) -> None:
    assert 200 <= reply.status < 500, reply.body
    assert b"Traceback" not in reply.body and b"/tmp" not in reply.body
    if reply.status >= 400 and reply.body:
        kind = reply.headers["content-type"]
        assert kind == "application/json", kind
        shape = dialect_of.refusal(Refused(reply.status, "x", "x"))[1]
        assert set(reply.json) == set(shape)


def fuzz(server: Server, draw: random.Random, count: int, first: int = 0) -> Counter[int]:
    """So many requests that are nearly right, over all routes in turn; their statuses. Raises
    AssertionError at one that makes the server fail, or answer in another dialect's way."""
    statuses = Counter[int]()
    for number in range(first, first + count):
        dialect, prefix, route = ROUTES[number % len(ROUTES)]
        path, fields = path_of(draw, prefix, route), fields_of(draw, route)
        body, kind = body_of(draw, fields)
        others = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        method = route.method if draw.random() < 0.95 else draw.choice(others)
        if method == "GET" or route.is_file or draw.random() < 0.2:
            pairs = {name: str(value)[:LONGEST] for name, value in fields.items()}
            path += "?" + urlencode(pairs, errors="replace", quote_via=quote)
        if method == "GET" and draw.random() < 0.8:
            body, kind = b"", ""
        headers = {"Content-Type": kind} if kind else {}
        reply = server.ask(method, path, body or None, headers=headers)
        assert reply.status < 500, (method, path, body)
        if reply.status != 404:
            is_answer(dialect, reply)
        statuses[reply.status] += 1
    return statuses


def main(count: int, seed: int) -> None:
    """A tiny server, and so many requests. What is printed of `/health` is how long it took at
    most meanwhile, and how many of its answers took longer than `SLOWEST` seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tiny_model(folder / "model")
        build(folder / "law", segments(), "en", "fr")
        with tiny_server(folder, ("law=law",), ("own=own",)) as server:
            every = Counter[int]()
            for number in range(0, count, 1000):
                draw = random.Random(f"{seed} {number}")
                watch = HealthWatch(urlsplit(server.url).port or 0)
                with idle_server() as port, HealthWatch(port) as idle, watch:
                    every += fuzz(server, draw, min(1000, count - number), number)
                print(
                    f"{every.total():,} requests, {dict(sorted(every.items()))}; /health: "
                    f"{watch.longest:.3f} s, {watch.slow(SLOWEST)} of {len(watch.seconds)} slow; "
                    f"of an idle server {idle.longest:.3f} s, {idle.slow(SLOWEST)} of "
                    f"{len(idle.seconds)}",
                    flush=True,
                )
            assert server.get("/health")["status"] == "ok"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
