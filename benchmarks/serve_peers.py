"""`tmnmt serve` beside servers of other makers with the same model: lists of 20 strings, by one
client and by eight at once.

    python benchmarks/serve_peers.py models/law-transformer.en-fr --threads 1 \
        --memory memories/canadian-law.en-fr.tmx.gz

The Transformer that ships is converted to CTranslate2's format (ctranslate2_model.py). CTranslate2
brings no server, so it stands behind the smallest one (ctranslate2_server.py). LibreTranslate's own
server reads the same files as a package of Argos Translate (peer_servers.py). All have beam 5.
First each translates sentences that were held out of training, and those are counted that read as
those of `tmnmt serve`. Processor time is of the server."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from peer_servers import PINS, libretranslate, minimal, peers
from serve_load import Client, Server
from workers import HERE, processor

ROOT = HERE.parent
AT_ONCE, CLIENTS = 20, 8
PRECISIONS = {"fp32": "float32", "int8": "int8"}
Start = Callable[[], Server]


def contenders(
    model: Path, memory: Path | None, threads: int, folder: Path
) -> dict[str, tuple[str, Start]]:
    """By name: the path that is asked, and what starts the server."""
    own, path = ["--threads", str(threads)], "/libretranslate/translate"
    found: dict[str, tuple[str, Start]] = {
        "tmnmt": (path, partial(Server, model, folder, own, written=False))
    }
    if memory is not None:
        own = [*own, "--memory", str(memory)]
        start = partial(Server, model, folder, own, written=False)
        found["tmnmt with a memory"] = path, start
    for label, precision in PRECISIONS.items():
        start = partial(minimal, model, folder, precision, threads)
        found[f"CTranslate2, {label}"] = "/", start
    for label, precision in PRECISIONS.items():
        start = partial(libretranslate, model, folder, precision, threads)
        found[f"LibreTranslate, {label}"] = "/translate", start
    return found


async def translated(client: Client, path: str, texts: Sequence[str]) -> list[str]:
    """Raises SystemExit where the server refuses."""
    status, said = await client.ask("POST", path, {"q": texts, "source": "en", "target": "fr"})
    if status != 200:
        raise SystemExit(f"{path}: {status} {said}")
    found: list[str] = said["translatedText"]
    return found


async def by_one(server: Server, path: str, some: Sequence[Sequence[str]]) -> list[float]:
    """Seconds of each list."""
    client, seconds = Client(server.port), list[float]()
    for texts in some:
        start = time.monotonic()
        await translated(client, path, texts)
        seconds.append(time.monotonic() - start)
    return seconds


async def at_once(server: Server, path: str, some: Sequence[Sequence[str]]) -> list[float]:
    parts = [by_one(server, path, some[at::CLIENTS]) for at in range(CLIENTS)]
    return [second for part in await asyncio.gather(*parts) for second in part]


def measured(server: Server, path: str, lists: Sequence[Sequence[str]]) -> list[str]:
    """The cells of a row. A first list warms up and does not count."""
    asyncio.run(by_one(server, path, lists[:1]))
    cells = []
    for way in (by_one, at_once):
        cpu, start = server.cpu(), time.monotonic()
        seconds = asyncio.run(way(server, path, lists))
        lasted, cpu = time.monotonic() - start, server.cpu() - cpu
        cuts = statistics.quantiles(seconds, n=100, method="inclusive")
        strings = AT_ONCE * len(lists)
        cells += [
            f"{1000 * cuts[49]:,.0f}",
            f"{1000 * cuts[98]:,.0f}",
            f"{strings / lasted:,.0f}",
            f"{1000 * cpu / strings:.1f}",
        ]
    return cells


def held_out(model: Path, test: Path, count: int) -> list[str]:
    """Sources spread over the test set, of those that are translated in one piece."""
    from tmnmt.formats import read_memory
    from tmnmt.models.folder import load_model

    loaded = load_model(model)
    texts = [
        segment.src
        for segment in read_memory(test, "en", "fr")
        if 0 < len(loaded.vocab.encode(segment.src)) <= loaded.config["max_subwords"]
    ]
    return [texts[i * len(texts) // count] for i in range(count)]


def drawn(texts: Path, rounds: int) -> list[list[str]]:
    """Lists of sources, the same in every run."""
    from tmnmt.formats import read_memory

    sources = [segment.src for segment in read_memory(texts, "en", "fr")]
    draw = random.Random(1)
    return [draw.sample(sources, AT_ONCE) for _ in range(rounds)]


def table(
    rows: dict[str, tuple[str, Start]], lists: Sequence[Sequence[str]], checked: Sequence[str]
) -> None:
    """Prints it row by row; the first is what the others' texts are compared to."""
    heads = [f"{who} p50 ms | p99 | strings/s | CPU ms a string" for who in ("one:", f"{CLIENTS}:")]
    print(f"| | same text of {len(checked)} | {' | '.join(heads)} |\n{'|---' * 10}|")
    wanted: list[str] = []
    for name, (path, start) in rows.items():
        server = start()
        try:
            said = asyncio.run(translated(Client(server.port), path, checked))
            wanted = wanted or said
            same = sum(one == other for one, other in zip(said, wanted, strict=True))
            cells = [str(same), *measured(server, path, lists)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--memory", type=Path, help="for one more row: an index, or a file")
    strings = ROOT / "eval" / "interface-strings.en-fr.tsv"
    parser.add_argument("--texts", type=Path, default=strings, help="a memory file")
    test = ROOT / "memories" / "held-out" / "law.test.en-fr.tsv.gz"
    parser.add_argument("--test", type=Path, default=test, help="what texts are compared on")
    parser.add_argument("--compared", type=int, default=50, help="sentences of it")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    peers()  # installed before anything is timed
    lists = drawn(given.texts, given.rounds)
    checked = held_out(given.model, given.test, given.compared)
    print(f"{processor()}; {' '.join(PINS)}; load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory() as folder:
        rows = contenders(given.model.resolve(), given.memory, given.threads, Path(folder))
        table(rows, lists, checked)
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
