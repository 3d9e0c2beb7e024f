"""Many connections at once to `tmnmt serve`: translate, confirm, search. It starts the server,
and says how long each kind of request took, what was refused, what of what was confirmed is lost,
and how the server's memory grew.

    python benchmarks/serve_load.py models/law.en-fr --texts texts.txt --seconds 600

Every connection is somebody with a session: three of ten requests confirm, three search, two
translate a text in the session, two translate beside it. After a request it waits a moment."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

KINDS = ("confirm",) * 3 + ("search",) * 3 + ("in session",) * 2 + ("translate",) * 2
KEPT = 3.0  # seconds: uvicorn closes after 5
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A process of `tmnmt serve`, with a memory that is written to but where `written` is False."""

    def __init__(
        self, model: Path, folder: Path, options: Sequence[str], written: bool = True
    ) -> None:
        command = [sys.executable, "-m", "tmnmt", "serve", "--model", str(model), "--port", "0"]
        places = ["--sessions", str(folder / "sessions.db")]
        if written:
            places += ["--write-to", f"own={folder / 'own'}"]
        self.process = subprocess.Popen(
            [*command, *places, *options], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.match(r"serving at http://127\.0\.0\.1:(\d+)$", line):
                self.port = int(found[1])
                break
        else:
            raise SystemExit("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()  # its log

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def resident(self) -> float:
        """MB."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * PAGE / 1e6

    def cpu(self) -> float:
        """Seconds of all threads."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / TICKS


class Client:
    """One connection, kept as long as the server keeps it."""

    def __init__(self, port: int) -> None:
        self._port, self._used = port, 0.0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the answer. Raises OSError or EOFError where the connection is lost."""
        try:
            return await self._ask(method, path, body)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Ends the connection."""
        if self._streams is not None:
            self._streams[1].close()
            with suppress(OSError):
                await self._streams[1].wait_closed()
            self._streams = None

    async def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self._streams is not None and time.monotonic() - self._used > KEPT:
            await self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
        if not (first := await reader.readline()):
            raise EOFError("the server has closed the connection")
        status, length, close = int(first.split()[1]), 0, False
        while (line := await reader.readline()).strip():
            name, _, value = line.decode().lower().partition(":")
            length = int(value) if name == "content-length" else length
            close |= name == "connection" and value.strip() == "close"
        if not line:
            raise EOFError("the server has closed the connection")
        found = await reader.readexactly(length)
        self._used = time.monotonic()
        if close:
            await self.close()
        return status, json.loads(found) if found.startswith(b"{") else found.decode()


class Run:
    """What all connections did."""

    def __init__(self, texts: Sequence[str], pause: float, kinds: Sequence[str] = KINDS) -> None:
        self.texts, self.pause, self.kinds = texts, pause, kinds
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.confirmed: dict[str, str] = {}  # target by source, as acknowledged last

    async def work(self, number: int, port: int, until: float) -> None:
        draw, client = random.Random(number), Client(port)
        _, begun = await client.ask("POST", "/v1/sessions", {"write_to": "own"})
        session = f"/v1/sessions/{begun['id']}"
        count = 0
        while time.monotonic() < until:
            kind, text = draw.choice(self.kinds), draw.choice(self.texts)
            count += 1
            pair = {"src": f"{text} ({number}/{count})", "tgt": f"{text[::-1]} {number} {count}"}
            path, body = {
                "confirm": (f"{session}/confirm", pair),
                "search": ("/v1/memories/own/search", {"texts": [text]}),
                "in session": (f"{session}/translate", {"texts": [text]}),
                "translate": ("/v1/translate", {"texts": [text]}),
            }[kind]
            start = time.monotonic()
            status, _ = await client.ask("POST", path, body)
            self.statuses[kind, status] += 1
            if status == 200:
                self.seconds[kind].append(time.monotonic() - start)
                if kind == "confirm":
                    self.confirmed[pair["src"]] = pair["tgt"]
            pause = draw.expovariate(1 / self.pause)
            await asyncio.sleep(max(0, min(pause, until - time.monotonic())))


def lost(folder: Path, confirmed: dict[str, str]) -> int:
    """How many of what was acknowledged the memory does not hold."""
    from tmnmt.index import MemoryIndex

    with MemoryIndex.open(folder / "own") as index:
        kept = {segment.src: segment.tgt for segment in index.segments()}
    return sum(kept.get(src) != tgt for src, tgt in confirmed.items())


async def measured(run: Run, server: Server, connections: int, seconds: float) -> list[float]:
    """Runs them all; the server's memory every second, MB."""
    until, sizes = time.monotonic() + seconds, list[float]()

    async def watch() -> None:
        while time.monotonic() < until:
            await asyncio.sleep(1)
            sizes.append(server.resident())

    await asyncio.gather(watch(), *(run.work(n, server.port, until) for n in range(connections)))
    return sizes


def main() -> None:
    """Prints a table, and writes all of it as JSON where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=Path, required=True, help="one a line")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pause", type=float, default=10.0, help="mean seconds between requests")
    parser.add_argument("--only", choices=sorted(set(KINDS)), help="requests of this kind alone")
    parser.add_argument("--json", type=Path)
    given, options = parser.parse_known_args()  # others are options of tmnmt serve
    texts = [line for line in given.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as name:
        kinds = (given.only,) if given.only else KINDS
        folder, run = Path(name), Run(texts, given.pause, kinds)
        server = Server(given.model, folder, options)
        try:
            before, cpu = server.resident(), server.cpu()
            sizes = asyncio.run(measured(run, server, given.connections, given.seconds))
            cpu, client = server.cpu() - cpu, Client(server.port)
            _, metrics = asyncio.run(client.ask("GET", "/metrics"))
        finally:
            code = server.stop()
        missing = lost(folder, run.confirmed)
    report = {
        "connections": given.connections,
        "seconds": given.seconds,
        "load before and after": [load[0], os.getloadavg()[0]],
        "cpu seconds of the server": round(cpu, 1),
        "MB before": round(before),
        "MB by minute, middle and most": [
            (round(statistics.median(some)), round(max(some)))
            for some in (sizes[at : at + 60] for at in range(0, len(sizes), 60))
        ],
        "statuses": {f"{kind} {status}": n for (kind, status), n in sorted(run.statuses.items())},
        "confirmed": len(run.confirmed),
        "lost": missing,
        "exit code": code,
        "seconds of models": {
            found[1]: float(found[2])
            for found in re.finditer(r'seconds_total\{.*?part="(.*?)"\} (\S+)', metrics)
        },
    }
    print(f"{'':<12} {'n':>7} {'p50 ms':>9} {'p95':>9} {'p99':>9}")
    for kind, taken in sorted(run.seconds.items()):
        at = statistics.quantiles(taken, n=100) if len(taken) > 1 else taken * 99
        report[kind] = {f"p{p} ms": round(1000 * at[p - 1], 1) for p in (50, 95, 99)}
        print(f"{kind:<12} {len(taken):>7}", *(f"{1000 * at[p - 1]:>9,.0f}" for p in (50, 95, 99)))
    for what, value in report.items():
        print(f"{what}: {value}")
    if given.json is not None:
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
