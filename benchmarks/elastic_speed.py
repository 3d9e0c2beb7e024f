"""Time of indexing into and searching Elasticsearch or OpenSearch, beside the embedded index in one
run.

    python index/elasticsearch/server.py start     # prints the address
    python benchmarks/elastic_speed.py elasticsearch+http://127.0.0.1:PORT/bench MEMORY... \\
        --held-out eval/splits/law.test.txt [--columns src=5,tgt=6,doc=1,idx=2]

Documents of the list are left out of the memory; their segments of 5 to 80 tokens are the queries.
What the server answers must be what the embedded index answers, ties included, or it ends here. The
index at the address is replaced. Searches are timed as it is after the build, and after `tmnmt
memory compact`. """

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from search_speed import conditions, without

from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import MemoryIndex, build
from tmnmt.index.elastic.address import ElasticAddress, parse_address
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.progress import Progress
from tmnmt.segments import Match, Segment


def main() -> None:
    options = arguments()
    address = parse_address(options.address)
    held_out = set(options.held_out.read_text(encoding="utf-8").split("\n")) - {""}
    columns = parse_columns(options.columns) if options.columns else None
    reader = read_memories(options.memories, options.src_lang, options.tgt_lang, columns=columns)
    queries: list[str] = []
    segments = list(without(reader, held_out, queries))
    queries = random.Random(0).sample(queries, min(options.queries, len(queries)))
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "index", segments, options.src_lang, options.tgt_lang)
        result = {**conditions(), **index_all(address, segments, options)}
        with (
            MemoryIndex.open(Path(folder) / "index") as embedded,
            ElasticIndex.open(address) as elastic,
        ):
            result["rows"] = [
                measure(elastic, embedded, queries, t, options) for t in options.thresholds
            ]
            elastic.compact()
            result["compacted"] = [
                measure(elastic, embedded, queries, t, options) for t in options.thresholds
            ]
    show(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("address")
    parser.add_argument("memories", nargs="+", type=Path, metavar="MEMORY")
    parser.add_argument(
        "--held-out", type=Path, required=True, help="documents left out, one a line"
    )
    parser.add_argument("--columns")
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("-k", type=int, default=3)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.5, 0.7, 0.8])
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def index_all(
    address: ElasticAddress, segments: Sequence[Segment], options: argparse.Namespace
) -> dict[str, float]:
    """Seconds from the segments to an index that answers; of these, grouping them before anything
    is sent; and its size on the server."""
    grouped = 0.0

    def all_of_them() -> Iterator[Segment]:
        nonlocal grouped
        yield from segments
        grouped = time.perf_counter() - start

    start = time.perf_counter()
    with Progress("indexing", "segments") as progress:
        manifest = build_elastic(
            address,
            all_of_them(),
            options.src_lang,
            options.tgt_lang,
            force=True,
            shards=options.shards,
            progress=progress.advance,
        )
    seconds = time.perf_counter() - start
    with ElasticIndex.open(address) as index:
        stored = index.size()
    return {
        "segments": manifest.segments,
        "documents": manifest.sources,
        "build_s": seconds,
        "grouped_s": grouped,
        "documents_a_second": manifest.sources / seconds,
        "sent_a_second": manifest.sources / (seconds - grouped),
        "bytes_a_segment": stored / manifest.segments,
    }


def measure(
    elastic: ElasticIndex,
    embedded: MemoryIndex,
    queries: Sequence[str],
    threshold: float,
    options: argparse.Namespace,
) -> dict[str, float]:
    expected = embedded.search(queries, options.k, threshold)
    check(elastic.search(queries, options.k, threshold), expected, queries)  # warm after that
    start, requests = time.perf_counter(), elastic.requests
    elastic.search(queries, options.k, threshold)
    batched = (time.perf_counter() - start) * 1000 / len(queries)
    requests = elastic.requests - requests
    times, found = [], []
    for query in queries:
        start = time.perf_counter()
        found += elastic.search([query], options.k, threshold)
        times.append((time.perf_counter() - start) * 1000)
    check(found, expected, queries)
    start = time.perf_counter()
    for query in queries:
        embedded.search([query], options.k, threshold)
    here = (time.perf_counter() - start) * 1000 / len(queries)
    times.sort()
    return {
        "threshold": threshold,
        "mean_ms": statistics.fmean(times),
        "p50_ms": times[len(times) // 2],
        "p95_ms": times[len(times) * 95 // 100],
        "batched_ms": batched,
        "requests": requests / len(queries),
        "embedded_ms": here,
    }


def check(found: list[list[Match]], expected: list[list[Match]], queries: Sequence[str]) -> None:
    for query, one, other in zip(queries, found, expected, strict=True):
        if one != other:
            sys.exit(f"the server does not answer what the embedded index answers for: {query}")


def show(result: dict[str, Any]) -> None:
    print(
        f"{result['segments']:,} segments, {result['documents']:,} documents; grouped in "
        f"{result['grouped_s']:.0f} s, "
        f"then {result['sent_a_second']:,.0f} documents/s sent, "
        f"{result['documents_a_second']:,.0f} in all; "
        f"{result['bytes_a_segment']:.0f} bytes a segment; load {result['load']:.1f}"
    )
    print("           threshold   mean ms     p50     p95   batched   requests/query   embedded ms")
    for when, row in [("built", row) for row in result["rows"]] + [
        ("compacted", row) for row in result["compacted"]
    ]:
        print(
            f"{when:<10} {row['threshold']:9.2f} {row['mean_ms']:9.2f} {row['p50_ms']:7.2f} "
            f"{row['p95_ms']:7.2f} "
            f"{row['batched_ms']:9.2f} {row['requests']:16.3f} {row['embedded_ms']:13.3f}"
        )


if __name__ == "__main__":
    main()
