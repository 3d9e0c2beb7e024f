"""Time of a search in the embedded index, from string to matches, beside rapidfuzz over every source, in one run.

    python benchmarks/search_speed.py MEMORY... --held-out eval/splits/law.test.txt [--columns src=5,tgt=6,doc=1,idx=2]

Documents of the list are left out of the index; their segments of 5 to 80 tokens are the queries. One thread, queries
one by one; "cpu ms" is the mean of the processor's time, which tells more where other work runs. What rapidfuzz finds
(on a part of the queries: it is slow) must be what the index finds, or it ends here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from tmnmt import __version__
from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import Manifest, MemoryIndex, build
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

LEAST_TOKENS, MOST_TOKENS = 5, 80


def main() -> None:
    options = arguments()
    held_out = set(options.held_out.read_text(encoding="utf-8").split("\n")) - {""}
    columns = parse_columns(options.columns) if options.columns else None
    reader = read_memories(options.memories, options.src_lang, options.tgt_lang, columns=columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        queries: list[str] = []
        start = time.perf_counter()
        with Progress("indexing", "segments") as progress:
            kept_in = without(reader, held_out, queries)
            manifest = build(path, kept_in, options.src_lang, options.tgt_lang, progress=progress.advance)
        built = time.perf_counter() - start
        size = sizes(manifest, path)  # now: the peak is that of the build
        queries = random.Random(0).sample(queries, min(options.queries, len(queries)))
        start = time.perf_counter()
        with MemoryIndex.open(path) as index:
            opened = time.perf_counter() - start
            rows = measure(index, queries, options)
        result = {**conditions(), **size, "build_s": built, "open_s": opened, "rows": rows}
    show(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("memories", nargs="+", type=Path, metavar="MEMORY")
    parser.add_argument("--held-out", type=Path, required=True, help="documents left out, one a line")
    parser.add_argument("--columns")
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--brute-force", type=int, default=20, help="queries that rapidfuzz answers too")
    parser.add_argument("-k", type=int, default=3)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.5, 0.7, 0.8])
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def without(segments: Iterator[Segment] | Any, held_out: set[str], queries: list[str]) -> Iterator[Segment]:
    """The segments of other documents; the sources of those held out go to `queries` where the length is right."""
    for segment in segments:
        if segment.document not in held_out:
            yield segment
        elif LEAST_TOKENS <= len(match_tokens(segment.src)) <= MOST_TOKENS:
            queries.append(segment.src)


def measure(index: MemoryIndex, queries: Sequence[str], options: argparse.Namespace) -> list[dict[str, float]]:
    index.search(queries[:20], options.k, min(options.thresholds))  # compiled, mapped and warm
    every = EverySource(index)
    rows = []
    for threshold in options.thresholds:
        times, matched = [], 0
        cpu = time.thread_time()
        for query in queries:
            start = time.perf_counter()
            (found,) = index.search([query], options.k, threshold, threads=1)
            times.append((time.perf_counter() - start) * 1000)
            matched += bool(found)
        cpu = (time.thread_time() - cpu) / len(queries) * 1000
        brute = every.compare(queries[: options.brute_force], options.k, threshold)
        times.sort()
        mean = statistics.fmean(times)
        rows.append(
            {
                "threshold": threshold, "mean_ms": mean, "p50_ms": times[len(times) // 2],
                "p95_ms": times[len(times) * 95 // 100], "cpu_ms": cpu, "matched": matched / len(queries),
                "rapidfuzz_ms": brute, "times_faster": brute / mean,
            }
        )  # fmt: skip
    return rows


class EverySource:
    """What one would do without an index: rapidfuzz, in C++, over every source, written one character a token."""

    def __init__(self, index: MemoryIndex) -> None:
        self.index = index
        self.characters: dict[str, str] = {}
        self.segments: list[tuple[int, str]] = []
        self.sources: list[str] = []
        for segment in index.segments():
            self.segments.append((segment.id, segment.changed))
            self.sources.append(self.write(segment.src))

    def write(self, text: str) -> str:
        return "".join(self.characters.setdefault(token, chr(1 + len(self.characters))) for token in match_tokens(text))

    def compare(self, queries: Sequence[str], k: int, threshold: float) -> float:
        """Milliseconds a query; ends the program where the index found anything else."""
        seconds = 0.0
        for query in queries:
            start = time.perf_counter()
            found = process.extract(
                self.write(query), self.sources, scorer=Levenshtein.normalized_similarity,
                score_cutoff=max(0.0, threshold - 1e-3), limit=None,
            )  # fmt: skip
            seconds += time.perf_counter() - start
            enough = [(i, score) for _, score, i in found if score >= threshold - 1e-9]  # its cutoff loses some
            hits = sorted((*self.segments[i], score) for i, score in enough)
            hits.sort(key=lambda hit: hit[1], reverse=True)
            hits.sort(key=lambda hit: round(hit[2], 9), reverse=True)
            wanted = [number for number, _, _ in hits[:k]]
            if wanted != [match.segment.id for match in self.index.search([query], k, threshold)[0]]:
                sys.exit(f"at {threshold} the index does not find what rapidfuzz finds for: {query}")
        return seconds / max(len(queries), 1) * 1000


def conditions() -> dict[str, Any]:
    return {
        "command": " ".join(sys.argv), "date": datetime.now(UTC).strftime("%Y-%m-%d"), "tmnmt": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores", "load": os.getloadavg()[0],
        "python": platform.python_version(),
    }  # fmt: skip


def sizes(manifest: Manifest, path: Path) -> dict[str, float]:
    return {
        "segments": manifest.segments, "sources": manifest.sources,
        "postings_MB": sum(size for size, _ in manifest.files.values()) / 1e6,
        "store_MB": manifest.store_path(path).stat().st_size / 1e6,
        "peak_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def show(result: dict[str, Any]) -> None:
    print(
        f"{result['segments']:,} segments, {result['sources']:,} distinct sources; read and built in "
        f"{result['build_s']:.0f} s; postings {result['postings_MB']:.0f} MB, store {result['store_MB']:.0f} MB, "
        f"peak memory {result['peak_MB']:.0f} MB; opened in {result['open_s']:.2f} s; load {result['load']:.1f}"
    )
    print("threshold   mean ms    p50    p95  cpu ms   matched   rapidfuzz over all, ms   times faster")
    for row in result["rows"]:
        print(
            f"{row['threshold']:9.2f} {row['mean_ms']:9.3f} {row['p50_ms']:6.3f} {row['p95_ms']:6.3f} "
            f"{row['cpu_ms']:7.3f} {row['matched']:8.1%} {row['rapidfuzz_ms']:24.1f} {row['times_faster']:14.0f}"
        )


if __name__ == "__main__":
    main()
