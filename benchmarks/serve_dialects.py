"""How long 20 strings take over every dialect of `tmnmt serve`, as its clients send them: in one
request where the dialect has lists, else one behind the other.

    python benchmarks/serve_dialects.py models/law.en-fr --memory INDEX --threads 1

It starts the server, and asks all dialects in turn, one client at a time. tmserver asks no
model."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from serve_load import Client, Server

from tmnmt.formats import read_memory

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 20
Request = tuple[str, str, Any]  # method, address, body
Dialect = Callable[[Sequence[str]], Iterator[Request]]


def each(path: str, text: str, **fields: str) -> Dialect:
    """A dialect that takes one text by GET, in the field `text`."""

    def asked(texts: Sequence[str]) -> Iterator[Request]:
        for one in texts:
            yield "GET", f"{path}?{urlencode({text: one, **fields})}", None

    return asked


def listed(path: str, text: str, **fields: str) -> Dialect:
    """A dialect that takes a list of texts by POST, in the field `text`."""

    def asked(texts: Sequence[str]) -> Iterator[Request]:
        yield "POST", path, {text: list(texts), **fields}

    return asked


def looked_up(texts: Sequence[str]) -> Iterator[Request]:
    for one in texts:
        yield "GET", f"/tmserver/en/fr/unit/{quote(one, safe='')}", None


CODES = {"source": "en", "target": "fr"}
DIALECTS: dict[str, Dialect] = {
    "LibreTranslate": listed("/libretranslate/translate", "q", **CODES),
    "Apertium APy": each("/apertium/translate", "q", langpair="en|fr"),
    "tmserver": looked_up,
    "ModernMT": listed("/modernmt/translate", "q", **CODES),
    "DeepL": listed("/deepl/v2/translate", "text", source_lang="EN", target_lang="FR"),
    "MyMemory": each("/mymemory/get", "q", langpair="en|fr"),
    "OPUS-CAT": each("/MTRestService/TranslateJson", "input", srcLangCode="en", trgLangCode="fr"),
    "plain GET": each("/get/translate", "text", **CODES),
    "IBM Watson": listed("/watson/v3/translate", "text", **CODES),
    "its own": listed("/v1/translate", "texts", **CODES),
}


async def taken(client: Client, requests: Iterator[Request]) -> float:
    """Seconds. Raises SystemExit where the server refuses."""
    start = time.monotonic()
    for method, path, body in requests:
        status, said = await client.ask(method, path, body)
        if status != 200:
            raise SystemExit(f"{method} {path}: {status} {said}")
    return time.monotonic() - start


async def measured(port: int, texts: Sequence[str], rounds: int) -> dict[str, list[float]]:
    draw, client = random.Random(1), Client(port)
    seconds: dict[str, list[float]] = {name: [] for name in DIALECTS}
    for _ in range(rounds):
        for name, dialect in DIALECTS.items():
            some = draw.sample(texts, AT_ONCE)
            seconds[name].append(await taken(client, dialect(some)))
    return seconds


def main() -> None:
    """Prints a table, and writes it as JSON where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    strings = ROOT / "eval" / "interface-strings.en-fr.tsv"
    parser.add_argument("--texts", type=Path, default=strings, help="a memory file's sources")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", type=Path)
    given, options = parser.parse_known_args()  # others are options of tmnmt serve
    texts = [segment.src for segment in read_memory(given.texts, "en", "fr")]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(given.model, Path(folder), options)
        try:
            seconds = asyncio.run(measured(server.port, texts, given.rounds))
        finally:
            server.stop()
    words = statistics.mean(len(text.split()) for text in texts)
    print(f"{words:.1f} words a string; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    print(f"{'':<15} {'p50 ms':>8} {'p99':>8} {'most':>8}")
    found = {}
    for name, some in seconds.items():
        cuts = statistics.quantiles(some, n=100, method="inclusive")
        found[name] = [round(1000 * value) for value in (cuts[49], cuts[98], max(some))]
        print(f"{name:<15}", *(f"{value:>8,}" for value in found[name]))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
