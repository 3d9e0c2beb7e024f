"""`tmnmt serve` beside CTranslate2 behind the smallest HTTP server: lists of 20 strings, by one
client and by eight at once.

    python benchmarks/serve_peers.py models/law.en-fr --threads 1

CTranslate2 brings no server, and has no model like ours. So a loop of Python's own HTTP server
asks it, and it has the Transformer of decode_peers.py: as many parameters, random weights, every
output as long as the references are on average. It splits strings into the same subwords; it
neither joins its own again, nor looks anything up, nor waits for other requests to decode with.
Processor time is of the server."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decode_peers import AS_OUR_GRU, interpreter
from serve_load import Client, Server

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE, CLIENTS = 20, 8
PRECISIONS = {"fp32": "float32", "int8": "int8"}


class Peer(Server):
    """CTranslate2 in a process of its own."""

    def __init__(self, job: Path, precision: str, threads: int) -> None:
        python = interpreter("ctranslate2", own_torch=False)
        self.process = subprocess.Popen(
            [python, __file__, "--serve", job, precision],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(threads)},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the server of CTranslate2 did not start; see its messages above")
        self.port = int(line)


def serve(job: Path, precision: str) -> None:
    """Answers POST {"q": [...]}, one request at a time, until it is terminated; prints its port."""
    from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
    from threading import Lock

    from decode_worker import EOS, ctranslate2
    from sentencepiece import SentencePieceProcessor

    told = json.loads(job.read_text(encoding="utf-8"))
    _, decode = ctranslate2(told, {"precision": PRECISIONS[precision]})
    subwords, lock = SentencePieceProcessor(model_file=told["subwords"]), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rows = [[max(i, EOS + 1) for i in row] for row in subwords.encode(asked["q"])]
            with lock:
                content = json.dumps({"tokens": decode(rows)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """No log."""

    server: HTTPServer = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


async def asked(client: Client, path: str, texts: Sequence[str]) -> float:
    """Seconds. Raises SystemExit where the server refuses."""
    start = time.monotonic()
    status, said = await client.ask("POST", path, {"q": texts, "source": "en", "target": "fr"})
    if status != 200:
        raise SystemExit(f"{path}: {status} {said}")
    return time.monotonic() - start


async def by_one(server: Server, path: str, some: Sequence[Sequence[str]]) -> list[float]:
    client = Client(server.port)
    return [await asked(client, path, texts) for texts in some]


async def at_once(server: Server, path: str, some: Sequence[Sequence[str]]) -> list[float]:
    parts = [by_one(server, path, some[at::CLIENTS]) for at in range(CLIENTS)]
    return [second for part in await asyncio.gather(*parts) for second in part]


def row(name: str, server: Server, path: str, lists: Sequence[Sequence[str]]) -> str:
    """A first list warms up and does not count."""
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
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Prints a table."""
    from tmnmt.formats import read_memory
    from tmnmt.models.folder import load_model

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    strings = ROOT / "eval" / "interface-strings.en-fr.tsv"
    parser.add_argument("--texts", type=Path, default=strings, help="a memory file")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    vocab = load_model(given.model).vocab
    pairs = [(segment.src, segment.tgt) for segment in read_memory(given.texts, "en", "fr")]
    draw = random.Random(1)
    lists = [[src for src, _ in draw.sample(pairs, AT_ONCE)] for _ in range(given.rounds)]
    told = {
        "beam": 5,
        "steps": round(statistics.mean(len(vocab.encode(tgt)) + 1 for _, tgt in pairs)),
        "threads": given.threads,
        "transformer": AS_OUR_GRU,
        "vocabulary": len(vocab),
        "subwords": str((given.model / "spm.model").resolve()),
    }
    print(f"outputs of {told['steps']} subwords; load {os.getloadavg()[0]:.1f} before")
    heads = [f"{who} p50 ms | p99 | strings/s | CPU ms a string" for who in ("one:", f"{CLIENTS}:")]
    print(f"| | {' | '.join(heads)} |\n{'|---' * 9}|")
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.json"
        job.write_text(json.dumps(told), encoding="utf-8")
        server = Server(given.model, Path(folder), ["--threads", str(given.threads)])
        try:
            print(row("tmnmt", server, "/libretranslate/translate", lists), flush=True)
        finally:
            server.stop()
        for precision in PRECISIONS:
            peer = Peer(job, precision, given.threads)
            try:
                print(row(f"CTranslate2, {precision}", peer, "/", lists), flush=True)
            finally:
                peer.stop()
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
