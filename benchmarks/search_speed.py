"""Time of a search in the embedded index, from string to matches, beside what one would use
instead, in one run.

    python benchmarks/search_speed.py MEMORY... --held-out eval/splits/law.test.txt [--columns
    src=5,tgt=6,doc=1,idx=2]
        [--fuzzy-match BINARY] [--tantivy]

Documents of the list are left out of the index; their segments of 5 to 80 tokens are the queries.
One thread, queries one by one and, as "batch", all in one call; "cpu ms" is the mean of the
processor's time, which tells more where other work runs. What a scan of every source finds (on a
part of the queries: it is slow) must be what the index finds, or it ends here. The others are
`search_peers.py`: their times are without tokenising, and they miss some matches: "found" says how
many they find.

A machine that is lent changes its speed from minute to minute, so what stands beside others is
timed right before them, and all thresholds are gone through again for `--rounds` in the end:
"fastest" is the round of the least mean."""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from search_peers import SCANNED_TOGETHER, EverySource, FuzzyMatch, Tantivy

from tmnmt import __version__
from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import Manifest, MemoryIndex, build
from tmnmt.index.embedded.store import STORE_FILES
from tmnmt.index.fuzzy import SLACK, fuzzy_score
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

LEAST_TOKENS, MOST_TOKENS = 5, 80
Peer = FuzzyMatch | Tantivy


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
            manifest = build(
                path, kept_in, options.src_lang, options.tgt_lang, progress=progress.advance
            )
        built = time.perf_counter() - start
        size = sizes(manifest)  # now: the peak is that of the build
        if not queries:
            sys.exit(
                f"none of the documents of {options.held_out} is in the memories: nothing to ask"
            )
        queries = random.Random(0).sample(queries, min(options.queries, len(queries)))
        started = command_starts(path, queries[0])
        start = time.perf_counter()
        with MemoryIndex.open(path) as index:
            opened = time.perf_counter() - start
            rows = measure(index, queries, options)
        result = {
            **conditions(),
            **size,
            "build_s": built,
            "open_s": opened,
            "command_s": started,
            "rows": rows,
        }
    show(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("memories", nargs="+", type=Path, metavar="MEMORY")
    parser.add_argument(
        "--held-out", type=Path, required=True, help="documents left out, one a line"
    )
    parser.add_argument("--columns")
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument(
        "--brute-force", type=int, default=20, help="queries that a scan of all sources answers too"
    )
    parser.add_argument(
        "--fuzzy-match", type=Path, metavar="BINARY", help="SYSTRAN's FuzzyMatch-cli, beside"
    )
    parser.add_argument(
        "--tantivy",
        action="store_true",
        help="BM25 and edit distance, beside (pip install tantivy)",
    )
    parser.add_argument(
        "-k", type=int, nargs="+", default=[3], help="best matches wanted; one table each (3)"
    )
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.5, 0.7, 0.8])
    parser.add_argument("--rounds", type=int, default=5, help="of the index alone, in the end (5)")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def without(
    segments: Iterator[Segment] | Any, held_out: set[str], queries: list[str]
) -> Iterator[Segment]:
    """The segments of other documents; the sources of those held out go to `queries` where the
    length is right."""
    for segment in segments:
        if segment.document not in held_out:
            yield segment
        elif LEAST_TOKENS <= len(match_tokens(segment.src)) <= MOST_TOKENS:
            queries.append(segment.src)


def command_starts(index: Path, query: str) -> dict[str, float]:
    """Seconds of `tmnmt search` for one query: the first, which compiles; with the index in no
    memory; the next."""
    with tempfile.TemporaryDirectory() as compiled:

        def seconds() -> float:
            start = time.perf_counter()
            command = [sys.executable, "-m", "tmnmt", "search", "--index", str(index), query]
            environment = {**os.environ, "NUMBA_CACHE_DIR": compiled}
            subprocess.run(command, env=environment, check=True, capture_output=True)
            return time.perf_counter() - start

        first = seconds()
        for path in filter(Path.is_file, index.rglob("*")):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return {"first": first, "cold": seconds(), "warm": min(seconds() for _ in range(3))}


def measure(
    index: MemoryIndex, queries: Sequence[str], options: argparse.Namespace
) -> list[dict[str, Any]]:
    index.search(queries[:20], options.k[0], min(options.thresholds))  # compiled, mapped and warm
    segments = [segment for segment in index.segments() if match_tokens(segment.src)]
    sources = [match_tokens(segment.src) for segment in segments]
    every = EverySource(sources)
    gc.freeze()  # what only the comparison needs is not gone through while the index is timed
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peers = list(open_peers(options, Path(folder), sources))
        settings = list(itertools.product(options.k, options.thresholds))
        for k, threshold in settings:
            row = {"k": k, "threshold": threshold, **time_index(index, queries, k, threshold)}
            row["every_cpu_ms"] = compare(
                index, every, segments, queries[: options.brute_force], k, threshold
            )
            row["peers"] = [
                time_peer(peer, index, sources, queries, k, threshold) for peer in peers
            ]
            rows.append(row)
    again = [
        [time_index(index, queries, *setting) for setting in settings]
        for _ in range(options.rounds)
    ]
    for row, *rounds in zip(rows, *again, strict=True):
        row["fastest"] = min(rounds, key=itemgetter("mean_ms")) | {
            "batch_ms": min(r["batch_ms"] for r in rounds)
        }
    return rows


def open_peers(
    options: argparse.Namespace, folder: Path, sources: Sequence[Sequence[str]]
) -> Iterator[Peer]:
    if options.fuzzy_match:
        built = FuzzyMatch.build(options.fuzzy_match, folder, sources)
        yield from (FuzzyMatch(options.fuzzy_match, built, share) for share in (0.3, 0.0))
    if options.tantivy:
        yield Tantivy(sources)


def time_index(
    index: MemoryIndex, queries: Sequence[str], k: int, threshold: float
) -> dict[str, float]:
    index.threads = 1
    cpu, matched = time.thread_time(), 0
    times = []
    for query in queries:
        start = time.perf_counter()
        (found,) = index.search([query], k, threshold)
        times.append((time.perf_counter() - start) * 1000)
        matched += bool(found)
    cpu = (time.thread_time() - cpu) / len(queries) * 1000
    start = time.perf_counter()
    index.search(queries, k, threshold)
    batch = (time.perf_counter() - start) / len(queries) * 1000
    return {**spread(times), "cpu_ms": cpu, "batch_ms": batch, "matched": matched / len(queries)}


def time_peer(
    peer: Peer,
    index: MemoryIndex,
    sources: Sequence[Sequence[str]],
    queries: Sequence[str],
    k: int,
    threshold: float,
) -> dict[str, Any]:
    """Its times without tokenising, and the share of the exact search's matches that it finds: as
    many as have the same true score, since among equals it may choose others."""
    tokenised = [match_tokens(query) for query in queries]
    peer.search(tokenised[0], k, threshold)  # warm
    times, answers, cpu = [], [], peer.cpu_seconds()
    for tokens in tokenised:
        start = time.perf_counter()
        answers.append(peer.search(tokens, k, threshold))
        times.append((time.perf_counter() - start) * 1000)
    cpu = (peer.cpu_seconds() - cpu) / len(queries) * 1000
    found, wanted = 0, 0
    for tokens, numbers, matches in zip(
        tokenised, answers, index.search(queries, k, threshold), strict=True
    ):
        exact = Counter(match.score for match in matches)
        found += (
            exact & Counter(fuzzy_score(tokens, sources[number]) for number in numbers)
        ).total()
        wanted += exact.total()
    return {"name": peer.name, **spread(times), "cpu_ms": cpu, "found": found / max(wanted, 1)}


def spread(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {
        "mean_ms": statistics.fmean(times),
        "p50_ms": times[len(times) // 2],
        "p95_ms": times[len(times) * 95 // 100],
    }


def compare(
    index: MemoryIndex,
    every: EverySource,
    segments: list[Segment],
    queries: Sequence[str],
    k: int,
    threshold: float,
) -> float:
    """Milliseconds of the processor a query of a scan of every source; ends the program where the
    index found anything else."""
    seconds = 0.0
    for some in batched(queries, SCANNED_TOGETHER):
        start = time.thread_time()
        scores = every.scores([match_tokens(query) for query in some])
        seconds += time.thread_time() - start
        for query, of_query in zip(some, scores, strict=True):
            hits = [
                (segments[i], of_query[i]) for i in np.flatnonzero(of_query >= threshold - SLACK)
            ]
            hits.sort(key=lambda hit: hit[0].id)
            hits.sort(key=lambda hit: hit[0].changed, reverse=True)
            hits.sort(key=lambda hit: hit[1], reverse=True)
            if [segment for segment, _ in hits[:k]] != [
                m.segment for m in index.search([query], k, threshold)[0]
            ]:
                sys.exit(
                    f"at {threshold} the index does not find what rapidfuzz finds for: {query}"
                )
    return seconds / max(len(queries), 1) * 1000


def batched(queries: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (queries[i : i + size] for i in range(0, len(queries), size))


def conditions() -> dict[str, Any]:
    return {
        "command": " ".join(sys.argv),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "tmnmt": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def sizes(manifest: Manifest) -> dict[str, float]:
    store = sum(manifest.files[name][0] for name in STORE_FILES)
    return {
        "segments": manifest.segments,
        "sources": manifest.sources,
        "postings_MB": (sum(size for size, _ in manifest.files.values()) - store) / 1e6,
        "store_MB": store / 1e6,
        "peak_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def show(result: dict[str, Any]) -> None:
    print(
        f"{result['segments']:,} segments, {result['sources']:,} distinct sources; read and "
        "built in "
        f"{result['build_s']:.0f} s; postings {result['postings_MB']:.0f} MB, store "
        f"{result['store_MB']:.0f} MB, "
        f"peak memory {result['peak_MB']:.0f} MB; opened in {result['open_s']:.2f} s; load "
        f"{result['load']:.1f}"
    )
    print(
        "tmnmt search: first {first:.1f} s (it compiles), cold {cold:.2f} s, warm "
        "{warm:.2f} s".format(**result["command_s"])
    )
    line = "{:>3}{:>11.2f}  {:<15}{mean_ms:9.3f}{p50_ms:9.3f}{p95_ms:9.3f}{cpu_ms:9.3f}{:8.1%}"
    print("top  threshold                  mean ms      p50      p95   cpu ms   found")
    for row in result["rows"]:
        at = row["k"], row["threshold"]
        print(line.format(*at, "tmnmt", 1, **row) + f"  in one batch {row['batch_ms']:.3f} ms")
        fastest = row["fastest"]
        print(
            line.format(*at, "fastest round", 1, **fastest)
            + f"  in one batch {fastest['batch_ms']:.3f} ms"
        )
        for peer in row["peers"]:
            print(line.format(*at, peer["name"], peer["found"], **peer))
        print("{:>3}{:11.2f}  every source {:38.3f}{:8.1%}".format(*at, row["every_cpu_ms"], 1))


if __name__ == "__main__":
    main()
