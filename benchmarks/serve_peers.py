"""`tmnmt serve` beside servers of other makers with the same model: lists of 20 strings, by one
client and by eight at once.

    python benchmarks/serve_peers.py models/law-transformer.en-fr --threads 1 \
        --memory memories/canadian-law.en-fr.tmx.gz

The Transformer that ships is converted to CTranslate2's format (ctranslate2_model.py). CTranslate2
brings no server, so it stands behind the smallest one (ctranslate2_server.py). LibreTranslate's own
server reads the same files as a package of Argos Translate. Both are put into .cache/ on the first
run; afterwards nothing is downloaded. All have beam 5. First each translates sentences that were
held out of training, and those are counted that read as those of `tmnmt serve`. Processor time is
of the server."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from serve_load import Client, Server
from workers import HERE, environment, processor

ROOT = HERE.parent
AT_ONCE, CLIENTS, BEAM = 20, 8, 5
PRECISIONS = {"fp32": "float32", "int8": "int8"}
PEERS = [["libretranslate==1.9.6", "ctranslate2==4.8.5", "spacy==3.8.18", "safetensors==0.8.0"]]
NEEDS = "ctranslate2, flask_babel, minisbd, safetensors, spacy"  # LibreTranslate makes folders
READY = 180.0  # seconds a server has to start
Start = Callable[[], Server]


class Minimal(Server):
    """CTranslate2 behind the smallest server."""

    def __init__(self, model: Path, converted: Path, threads: int) -> None:
        script = HERE / "ctranslate2_server.py"
        self.process = subprocess.Popen(
            [peers(), script, converted, model / "spm.model", str(BEAM), str(threads)],
            stdout=subprocess.PIPE,
            text=True,
            env=surroundings(threads),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the server of CTranslate2 did not start; see its messages above")
        self.port = int(line)


class LibreTranslate(Server):
    """LibreTranslate's own server, as its command starts it, without its web page; `home` holds
    its packages and all that it writes, its log, too."""

    def __init__(self, home: Path, precision: str, threads: int) -> None:
        self.port = free_port()
        options = ["--port", str(self.port), "--load-only", "en,fr", "--disable-web-ui"]
        with (home / "log").open("w") as log:
            self.process = subprocess.Popen(
                [peers(), "-c", "import libretranslate; libretranslate.main()", *options],
                stdout=log,
                stderr=log,
                text=True,
                cwd=home,
                env=surroundings(threads) | self._settings(home, precision, threads),
            )
        self._wait(home / "log")

    @staticmethod
    def _settings(home: Path, precision: str, threads: int) -> dict[str, str]:
        """Of Argos Translate."""
        return {
            **{f"XDG_{kind}_HOME": str(home / kind) for kind in ("DATA", "CACHE", "CONFIG")},
            "ARGOS_PACKAGES_DIR": str(home / "packages"),
            "ARGOS_PACKAGE_INDEX": f"{home.as_uri()}/",
            "ARGOS_CHUNK_TYPE": "SPACY",
            "ARGOS_BEAM_SIZE": str(BEAM),
            "ARGOS_COMPUTE_TYPE": precision,
            "ARGOS_INTRA_THREADS": str(threads),
        }

    def _wait(self, log: Path) -> None:
        """Until it takes connections."""
        until = time.monotonic() + READY
        while time.monotonic() < until and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.2)
        self.process.kill()
        raise SystemExit(f"LibreTranslate did not start:\n{log.read_text()[-2000:]}")


def peers() -> Path:
    """The interpreter that has them."""
    return environment("libretranslate", PEERS, NEEDS)


def surroundings(threads: int) -> dict[str, str]:
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(threads)}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def convert(model: Path, output: Path, precision: str) -> Path:
    """The model in CTranslate2's format."""
    script = HERE / "ctranslate2_model.py"
    subprocess.run([peers(), "-W", "ignore", script, model, output, precision], check=True)
    return output


def argos_home(model: Path, home: Path, precision: str) -> Path:
    """A home of LibreTranslate with the model as its only package, and an empty list of packages to
    download.

    Its splitter of sentences downloads a network. It may be one of spaCy in the package instead:
    here the one of rules, which needs none. The empty file says that spaCy's own is there."""
    package = home / "packages" / "translate-en_fr"
    package.mkdir(parents=True)
    told = {"from_code": "en", "from_name": "English", "to_code": "fr", "to_name": "French"}
    version = {"package_version": "1.0", "argos_version": "1.0"}
    (package / "metadata.json").write_text(json.dumps(told | version), encoding="utf-8")
    (home / "index.json").write_text("[]", encoding="utf-8")
    convert(model, package / "model", precision)
    shutil.copy(model / "spm.model", package / "sentencepiece.model")
    blank = "import sys, spacy; spacy.blank('en').to_disk(sys.argv[1])"
    subprocess.run([peers(), "-c", blank, package / "spacy"], check=True)
    cached = home / "CACHE" / "argos-translate" / "spacy" / "senter" / "model"
    cached.parent.mkdir(parents=True)
    cached.touch()
    return home


def started_minimal(model: Path, folder: Path, precision: str, threads: int) -> Server:
    return Minimal(model, convert(model, folder / f"ct2-{precision}", precision), threads)


def started_libretranslate(model: Path, folder: Path, precision: str, threads: int) -> Server:
    home = argos_home(model, folder / f"libretranslate-{precision}", precision)
    return LibreTranslate(home, precision, threads)


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
        start = partial(started_minimal, model, folder, precision, threads)
        found[f"CTranslate2, {label}"] = "/", start
    for label, precision in PRECISIONS.items():
        start = partial(started_libretranslate, model, folder, precision, threads)
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
    lists = drawn(given.texts, given.rounds)
    checked = held_out(given.model, given.test, given.compared)
    print(f"{processor()}; {' '.join(PEERS[0])}; load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory() as folder:
        rows = contenders(given.model.resolve(), given.memory, given.threads, Path(folder))
        table(rows, lists, checked)
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
