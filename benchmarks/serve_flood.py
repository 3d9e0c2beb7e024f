"""A short text of one tenant beside the flood of another: how long it takes, and how much of the
flood is translated meanwhile. It starts `tmnmt serve` with a key for each.

    python benchmarks/serve_flood.py models/law.en-fr --texts texts.txt --seconds 60

The loud tenant keeps some requests of 24 long texts and some documents under way; what is refused
comes again after what `Retry-After` says. The quiet one asks for a text of 8 characters every half
second, and now and then for a document of 10 bytes."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from serve_load import Server

SHORT, LIST, LONG = "Repealed", 24, 250  # a text; texts of a request, and characters of each
DOCUMENT = 120_000  # characters of one
PAUSE = 0.5


class Tenant:
    """A key, and what it asked for."""

    def __init__(self, port: int, key: str) -> None:
        self._url, self._key = f"http://127.0.0.1:{port}", key
        self.statuses: Counter[int] = Counter()

    def ask(self, method: str, path: str, body: Any = None, file: bytes | None = None) -> Any:
        """The answer; None where it was refused, after the pause that was asked for."""
        content = file if file is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, content, method=method)
        request.add_header("Authorization", f"Bearer {self._key}")
        if file is None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                self.statuses[answer.status] += 1
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            self.statuses[error.code] += 1
            time.sleep(float(error.headers.get("Retry-After", 1)))
            return None


class Flood:
    """What the loud tenant has under way."""

    def __init__(self, tenant: Tenant, texts: Sequence[str]) -> None:
        self._tenant, self._texts = tenant, texts
        self._numbers = itertools.count()
        self.characters = 0  # of texts that were translated

    def _long(self, draw: random.Random, size: int) -> str:
        """Text that no other request has had."""
        parts = [f"{next(self._numbers)}."]
        while sum(map(len, parts)) < size:
            parts.append(draw.choice(self._texts))
        return " ".join(parts)[:size]

    def lists(self, number: int, until: float) -> None:
        draw = random.Random(number)
        while time.monotonic() < until:
            texts = [self._long(draw, LONG) for _ in range(LIST)]
            if self._tenant.ask("POST", "/v1/translate", {"texts": texts}) is not None:
                self.characters += sum(map(len, texts))

    def documents(self, number: int, until: float) -> None:
        draw = random.Random(1000 + number)
        while time.monotonic() < until:
            lines = [self._long(draw, 200) for _ in range(DOCUMENT // 200)]
            document = json.dumps(dict(enumerate(lines))).encode()
            asked = self._tenant.ask("POST", "/v1/documents?name=a.json", file=document)
            done = 0
            while asked is not None and time.monotonic() < until:
                told = self._tenant.ask("GET", f"/v1/jobs/{asked['id']}")
                self.characters += 200 * (told["done"] - done)
                done = told["done"]
                if told["state"] in ("done", "failed"):
                    break
                time.sleep(PAUSE)


def quiet(tenant: Tenant, until: float, seconds: dict[str, list[float]]) -> None:
    for number in itertools.count():
        if time.monotonic() >= until:
            return
        start = time.monotonic()
        if tenant.ask("POST", "/v1/translate", {"texts": [SHORT]}) is not None:
            seconds["8 characters"].append(time.monotonic() - start)
        if number % 8 == 4:
            start = time.monotonic()
            asked = tenant.ask("POST", "/v1/documents?name=a.json", file=b'{"a": "b"}')
            while asked and tenant.ask("GET", f"/v1/jobs/{asked['id']}")["state"] != "done":
                time.sleep(0.05)
            if asked:
                seconds["10-byte document"].append(time.monotonic() - start)
        time.sleep(PAUSE)


def key_of(folder: Path, name: str) -> str:
    command = [sys.executable, "-m", "tmnmt", "serve-key", name, "--keys", str(folder / "keys")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def together(works: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Prints what it took, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=Path, required=True, help="one a line")
    parser.add_argument("--lists", type=int, default=2, help="requests at once")
    parser.add_argument("--documents", type=int, default=2, help="at once")
    parser.add_argument("--seconds", type=float, default=60)
    given, options = parser.parse_known_args()  # others are options of tmnmt serve
    texts = [line for line in given.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loud, other = (key_of(folder, one) for one in ("loud", "quiet"))
        server = Server(given.model, folder, [*options, "--keys", str(folder / "keys")], False)
        try:
            flood, little = Flood(Tenant(server.port, loud), texts), Tenant(server.port, other)
            cpu, until = server.cpu(), time.monotonic() + given.seconds
            seconds: dict[str, list[float]] = {"8 characters": [], "10-byte document": []}
            lists = [lambda n=n: flood.lists(n, until) for n in range(given.lists)]
            documents = [lambda n=n: flood.documents(n, until) for n in range(given.documents)]
            together([*lists, *documents, lambda: quiet(little, until, seconds)])
            cpu = server.cpu() - cpu
        finally:
            server.stop()
    report: dict[str, dict[str, Any]] = {
        what: {
            "n": len(some),
            "median": round(statistics.median(some), 2) if some else None,
            "p99": round(statistics.quantiles(some, n=100)[98], 2) if len(some) > 1 else some,
            "most": round(max(some, default=0), 2),
        }
        for what, some in seconds.items()
    }
    report["flood"] = {
        "characters": flood.characters,
        "characters a CPU second": round(flood.characters / cpu, 1),
        "CPU seconds": round(cpu, 1),
        "statuses": dict(flood._tenant.statuses),
    }
    report["quiet"] = {"statuses": dict(little.statuses)}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
