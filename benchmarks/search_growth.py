"""How build and search grow with the memory: a plot and a table from 0.1 M segments up, in one run.

    python benchmarks/search_growth.py MEMORY... --held-out eval/splits/law.test.txt [--sizes 0.1 1]
    [--folder FOLDER] [--plot growth.png]

Real segments come first; when they are used up, copies of them in which 15 % of the tokens are
replaced by others of the memory. Queries are segments of 5 to 80 tokens of the held-out documents;
one thread, one by one, top 3. Every size is built and searched in a process of its own, whose peak
memory is reported; what reading and making the segments takes is told apart from building."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from search_speed import conditions, sizes, without

from tmnmt.eval.report.svg import line_chart
from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import MemoryIndex, build
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

REPLACED = 0.15  # of the tokens of a copy
THRESHOLDS = (0.5, 0.8)
POOL = 100_000  # tokens that the copies draw from
AT_ONCE = 10_000  # segments that are copied


def main() -> None:
    options = arguments()
    rows, queries = [], asked(options)
    for size in options.sizes:
        with multiprocessing.get_context("spawn").Pool(1) as fresh:
            rows.append(fresh.apply(measure, (options, queries, round(size * 1e6))))
        show(rows[-1])
    if options.output:
        options.output.write_text(
            json.dumps({**conditions(), "rows": rows}, indent=1) + "\n", encoding="utf-8"
        )
    if options.plot:
        plot(rows, options.plot)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("memories", nargs="+", type=Path, metavar="MEMORY")
    parser.add_argument(
        "--held-out", type=Path, required=True, help="documents left out, one a line"
    )
    parser.add_argument("--columns")
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument(
        "--sizes", type=float, nargs="+", default=[0.1, 0.2, 0.5, 1], help="millions of segments"
    )
    parser.add_argument("--folder", type=Path, help="where indexes stay, one a size")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--output", type=Path, help="JSON")
    parser.add_argument("--plot", type=Path, help="a picture: .png, .svg, .pdf")
    return parser.parse_args()


def asked(options: argparse.Namespace) -> list[str]:
    """The queries, the same for every size."""
    found: list[str] = []
    deque(real(options, found), maxlen=0)
    return random.Random(0).sample(found, min(options.queries, len(found)))


def measure(options: argparse.Namespace, queries: list[str], size: int) -> dict[str, Any]:
    with nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / str(size)
        row: dict[str, Any] = {}
        if not path.exists():
            read, memory_of = Clocked(islice(memory(options), size)), AnonymousMemory()
            start = time.perf_counter()
            with memory_of:
                manifest = build(path, read, options.src_lang, options.tgt_lang)
            row["build_s"] = time.perf_counter() - start - read.seconds
            row |= {"read_s": read.seconds, "anonymous_MB": memory_of.peak, **sizes(manifest)}
        start = time.perf_counter()
        with MemoryIndex.open(path) as index:
            row |= {"open_s": time.perf_counter() - start, "segments": len(index)}
            for threads in (1, None):
                index.threads = threads
                index.search(queries, 3, min(THRESHOLDS))  # compiled, mapped and warm
                name = "_all_cores" if threads is None else ""
                for threshold in THRESHOLDS:
                    row[f"ms_at_{threshold}{name}"] = statistics.fmean(
                        milliseconds(index, queries, threshold)
                    )
    return row


class AnonymousMemory:
    """The most memory of this process that no file stands for, above what it has at the start."""

    def __init__(self) -> None:
        self.peak = 0.0
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._start = self._now()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stops.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stops.wait(0.05):
            self.peak = max(self.peak, self._now() - self._start)

    def _now(self) -> float:
        lines = Path("/proc/self/status").read_text(encoding="ascii").split("\n")
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


class Clocked:
    """Segments, and the seconds that it took to get them."""

    def __init__(self, segments: Iterator[Segment]) -> None:
        self._segments, self.seconds = segments, 0.0

    def __iter__(self) -> Iterator[Segment]:
        while True:
            start = time.perf_counter()
            segment = next(self._segments, None)
            self.seconds += time.perf_counter() - start
            if segment is None:
                return
            yield segment


def real(options: argparse.Namespace, queries: list[str]) -> Iterator[Segment]:
    """The segments of the documents that are not held out; what may be asked of the others goes to
    `queries`."""
    columns = parse_columns(options.columns) if options.columns else None
    reader = read_memories(options.memories, options.src_lang, options.tgt_lang, columns=columns)
    return without(
        reader, set(options.held_out.read_text(encoding="utf-8").split("\n")) - {""}, queries
    )


def memory(options: argparse.Namespace) -> Iterator[Segment]:
    """Real segments, then copies without end."""
    pool: list[str] = []
    for segment in real(options, []):
        if len(pool) < POOL:
            pool += match_tokens(segment.src)
        yield segment
    drawn_from, draw = np.array(pool, object), np.random.default_rng(1)
    while True:
        segments = real(options, [])
        while together := [*islice(segments, AT_ONCE)]:
            tokens = [match_tokens(segment.src) for segment in together]
            words = np.array([*chain.from_iterable(tokens)], object)
            places = np.flatnonzero(draw.random(len(words)) < REPLACED)
            words[places] = drawn_from[draw.integers(len(drawn_from), size=len(places))]
            ends = [*accumulate(map(len, tokens), initial=0)]
            for row, segment in enumerate(together):
                yield replace(segment, src=" ".join(words[ends[row] : ends[row + 1]]))


def milliseconds(index: MemoryIndex, queries: list[str], threshold: float) -> Iterator[float]:
    for query in queries:
        start = time.perf_counter()
        index.search([query], 3, threshold)
        yield (time.perf_counter() - start) * 1000


def show(row: dict[str, Any]) -> None:
    parts = [f"{row['segments']:>10,} segments"]
    if "build_s" in row:
        parts += [
            f"{row['sources']:,} distinct",
            f"read or made in {row['read_s']:.0f} s",
            f"built in {row['build_s']:.0f} s",
            f"peak {row['peak_MB']:.0f} MB, {row['anonymous_MB']:.0f} of them in no file",
            f"postings {row['postings_MB']:.0f} MB",
        ]
    parts.append(f"opened in {row['open_s']:.3f} s")
    for threshold in THRESHOLDS:
        alone, together = row[f"ms_at_{threshold}"], row[f"ms_at_{threshold}_all_cores"]
        parts.append(f"{alone:.3f} ms at {threshold} ({together:.3f} by all cores)")
    print(", ".join(parts), flush=True)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    labels = [f"{row['segments'] / 1e6:.1f} M" for row in rows]
    lines = {
        f"threshold {threshold}": [row[f"ms_at_{threshold}"] for row in rows]
        for threshold in THRESHOLDS
    }
    chart = line_chart(
        "Search as the memory grows",
        "segments",
        "mean ms a query, top 3, one thread",
        labels,
        lines,
    )
    path.write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
