"""How much faster several Ray workers on this machine translate than one, or than no worker.

    python benchmarks/ray_workers.py FILE... --model models/law-transformer.en-fr --memory INDEX

Every round runs the same command without workers, and with each number of workers, by a cluster
that has just been started. Each worker computes with one thread. Seconds are those of the whole
command by the clock: it loads the model itself where it has no workers, else each worker does."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ray_head import ROOT, Head
from search_speed import conditions

ALONE = 0  # workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--memory", required=True, help="an index")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON")
    options = parser.parse_args()
    seconds: dict[int, list[float]] = {count: [] for count in (ALONE, *options.workers)}
    digests = set[str]()
    for number in range(options.rounds):
        for count in seconds:
            duration, digest = translate(options, count)
            seconds[count].append(duration)
            digests.add(digest)
            print(f"round {number + 1}, {count} workers: {duration:.1f} s", flush=True)
    if len(digests) > 1:
        raise SystemExit("ray_workers: not all runs wrote the same files")
    first = statistics.median(seconds[options.workers[0]])
    for count, durations in seconds.items():
        median = statistics.median(durations)
        print(f"{count} workers: median {median:.1f} s, {first / median:.2f} times as fast")
    if options.output:
        rows = {"seconds": seconds, **conditions()}
        options.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def translate(options: argparse.Namespace, workers: int) -> tuple[float, str]:
    """Seconds of the command, and the digest of what it wrote."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # names of sockets have to be short
    command = [sys.executable, "-m", "tmnmt", "translate", "--threads", "1"]
    command += ["--model", str(options.model.resolve()), "--memory", options.memory]
    command += ["--output", str(folder / "out"), *map(str, options.files)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    head = Head(folder, workers) if workers else None
    try:
        if head:
            head.wait()
            command += ["--workers", head.address]
            environment = head.environment
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
        duration = time.perf_counter() - start
        if done.returncode:
            raise SystemExit(f"ray_workers: {done.stderr}")
        output = folder / "out"  # a folder, but of texts one file
        written = sorted(output.iterdir()) if output.is_dir() else [output]
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in written)).hexdigest()
        return duration, digest
    finally:
        if head:
            head.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
