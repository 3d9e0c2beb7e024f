"""Requests that cost a server much, one kind after another, and how long `/health` takes meanwhile:
`python flood_serve.py [KIND ...]`. The server is a process of its own, of the tiny model."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from health_watch import HealthWatch, idle_server
from tiny_model import segments, write_tiny_model

from tmnmt.index import build
from tmnmt.serve.keys import new_key


@dataclass(frozen=True)
class Target:
    """A server that runs, with a key of the role write."""

    process: subprocess.Popen[str]
    port: int
    key: str

    def memory(self, name: str = "VmRSS") -> float:
        """In MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(rf"^{name}:\s+(\d+) kB", status, re.M)
        return int(found[1]) / 1000 if found else 0.0

    def post(self, path: str, body: bytes, key: str = "", kind: str = "application/json") -> int:
        """The status; 0 where the connection ended without one."""
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {key}"} if key else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("POST", path, body, headers)
            reply = connection.getresponse()
            reply.read()
            return reply.status
        except OSError:
            return 0
        finally:
            connection.close()


@contextmanager
def target(folder: Path) -> Iterator[Target]:
    """Of model, law (read) and own (written), with a key."""
    keys = folder / "keys.toml"
    keys.unlink(missing_ok=True)
    key = new_key(keys, "one", "write", None, ["law", "own"])
    command = [sys.executable, "-m", "tmnmt", "serve", "--model", str(folder / "model")]
    command += ["--memory", str(folder / "law"), "--write-to", str(folder / "own")]
    command += ["--keys", str(keys), "--sessions", str(folder / "serve.db")]
    started = subprocess.Popen(
        [*command, "--port", "0", "--threads", "1"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert started.stderr is not None
        lines = (re.match(r"serving at http://127\.0\.0\.1:(\d+)$", one) for one in started.stderr)
        port = next(int(found[1]) for found in lines if found)
        threading.Thread(target=started.stderr.read, daemon=True).start()  # or its log fills a pipe
        yield Target(started, port, key)
    finally:
        started.kill()
        started.wait()


@dataclass
class Outcome:
    """What came of a kind. `memory`: MB that the server took beside what it had."""

    longest: float
    idle: float  # seconds of the slowest answer of a server that had nothing else to do
    memory: float
    statuses: list[int] = field(default_factory=list)


def _json_of(size: int, shape: str) -> bytes:
    """An object of JSON of some bytes: one long text, a text of escapes alone, or empty lists."""
    piece = {"text": "QUJD", "escapes": "\\n", "lists": "[],"}[shape]
    inside = piece * (size // len(piece))
    value = f"[{inside}[]]" if shape == "lists" else f'"{inside}"'
    return f'{{"name": "x.txt", "content": {value}}}'.encode()


def large_json(to: Target, shape: str, is_keyed: bool) -> list[int]:
    body = _json_of(18_000_000, shape)
    return [to.post("/v1/documents/segments", body, to.key if is_keyed else "") for _ in range(2)]


def uploads(to: Target, is_keyed: bool) -> list[int]:
    """Twenty of 49 MB, which stay open before their last byte."""
    size, part = 49_000_000, b"x" * 1_000_000
    open_sockets = list[socket.socket]()
    head = "POST /v1/memories/own/import?name=x.tmx HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Authorization: Bearer {to.key}\r\n" if is_keyed else ""
    for _ in range(20):
        one = socket.create_connection(("127.0.0.1", to.port), timeout=30)
        open_sockets.append(one)
        with suppress(OSError):
            one.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode())
            for _ in range(size // len(part) - 1):
                one.sendall(part)
    time.sleep(2)
    statuses = []
    for one in open_sockets:
        one.settimeout(0.05)
        try:
            statuses.append(int((one.recv(100).split() or [b"", b"0"])[1]))
        except OSError:
            statuses.append(0)
    memory.append(to.memory())
    for one in open_sockets:
        one.close()
    return statuses


memory: list[float] = []  # MB while uploads are open


def hints(to: Target) -> list[int]:
    body = json.dumps({"q": "No.", "source": "en", "target": "fr", "hints": "1," * 900_000 + "1"})
    return [to.post("/modernmt/translate", body.encode(), to.key)]


def memories(to: Target) -> list[int]:
    body = json.dumps({"texts": ["No."], "memories": ["law"] * 240_000})
    return [to.post("/v1/translate", body.encode(), to.key)]


def glossary(to: Target) -> list[int]:
    entries = [{"source": f"term{n}", "target": f"mot{n}"} for n in range(20_000)]
    body = {"name": "many", "source": "en", "target": "fr", "entries": entries}
    connection = http.client.HTTPConnection("127.0.0.1", to.port, timeout=120)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {to.key}"}
    connection.request("POST", "/v1/terms", json.dumps(body), headers)
    made = json.loads(connection.getresponse().read())
    connection.close()
    asks = json.dumps({"texts": ["No."], "terms": [made["id"]] * 500})
    return [to.post("/v1/translate", asks.encode(), to.key)]


KINDS: dict[str, Callable[[Target], list[int]]] = {
    **{
        f"18 MB of JSON, {shape}, {words} a key": partial(
            large_json, shape=shape, is_keyed=is_keyed
        )
        for words, is_keyed in (("without", False), ("with", True))
        for shape in ("text", "escapes", "lists")
    },
    "20 uploads of 49 MB, without a key": partial(uploads, is_keyed=False),
    "20 uploads of 49 MB, with a key": partial(uploads, is_keyed=True),
    "hints, 900,000": hints,
    "memories, 240,000": memories,
    "terms, 500 times 20,000": glossary,
}


def flood(to: Target, kind: Callable[[Target], list[int]]) -> Outcome:
    before = to.memory()
    memory.clear()
    with idle_server() as port, HealthWatch(port) as idle, HealthWatch(to.port) as watch:
        time.sleep(0.2)
        statuses = kind(to)
        time.sleep(0.2)
    top = max([to.memory("VmHWM"), *memory]) if not memory else max(memory)
    return Outcome(watch.longest, idle.longest, top - before, statuses)


def main(wanted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tiny_model(folder / "model")
        build(folder / "law", segments(), "en", "fr")
        for kind, work in KINDS.items():
            if wanted and not any(word in kind for word in wanted):
                continue
            with target(folder) as to:
                time.sleep(1)
                outcome = flood(to, work)
            record: dict[str, Any] = {"kind": kind, "health": round(outcome.longest, 3)}
            record |= {"idle": round(outcome.idle, 3)}
            record |= {"MB": round(outcome.memory), "statuses": outcome.statuses}
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
