"""How fast a memory takes changes, and what they cost a search: `python
benchmarks/changing_memory.py MEMORY`.

Prints one line of JSON: durable additions a second, one and a hundred a call (one call is one
fsync); milliseconds of the search in another `MemoryIndex` that is the first to see an addition;
milliseconds a query, top-3 at 0.5, one thread, with 0, 1,000 and 100,000 additions since the index
was built, and after `compact`."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex, build
from tmnmt.segments import Segment

IN_DELTA = (0, 1_000, 100_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("memory", type=Path)
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument("--segments", type=int, default=200_000)
    asked = parser.parse_args()
    segments = list(
        islice(read_memory(asked.memory, asked.src_lang, asked.tgt_lang), asked.segments)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        build(path, segments, asked.src_lang, asked.tgt_lang)
        with MemoryIndex.open(path) as writer, MemoryIndex.open(path) as reader:
            print(json.dumps({"segments": len(segments), **measure(writer, reader, segments)}))


def measure(
    writer: MemoryIndex, reader: MemoryIndex, segments: Sequence[Segment]
) -> dict[str, float]:
    queries = [
        segment.src + " indeed" for segment in segments[:: max(1, len(segments) // 500)][:500]
    ]
    reader.search(queries[:1])
    found, added = {}, 0
    for wanted in IN_DELTA:
        more = [
            replace(segments[i % len(segments)], src=segments[i % len(segments)].src + f" {i}")
            for i in range(added, wanted)
        ]
        if wanted == 1_000:
            found["additions_s_1"] = 300 / seconds(lambda: add(writer, more[:300], 1))  # noqa: B023  # called at once
            found["additions_s_100"] = 700 / seconds(lambda: add(writer, more[300:], 100))  # noqa: B023
        elif more:
            writer.add(more)
        added = wanted
        reader.search(queries[:1])
        found[f"ms_query_{wanted}"] = (
            1000 * min(seconds(lambda: each(reader, queries)) for _ in range(3)) / len(queries)
        )
    writer.add([Segment("a wholly new sentence of the test", "x")])
    found["ms_visible"] = 1000 * seconds(
        lambda: reader.search(["a wholly new sentence of the test"], 1, 1.0)
    )
    found["s_compact"] = seconds(writer.compact)
    reader.search(queries[:1])
    found["ms_query_compacted"] = (
        1000 * min(seconds(lambda: each(reader, queries)) for _ in range(3)) / len(queries)
    )
    return {name: round(value, 3) for name, value in found.items()}


def add(index: MemoryIndex, segments: Sequence[Segment], at_once: int) -> None:
    for i in range(0, len(segments), at_once):
        index.add(segments[i : i + at_once])


def each(index: MemoryIndex, queries: Sequence[str]) -> None:
    index.threads = 1
    for query in queries:
        index.search([query], 3, 0.5)


def seconds(do: object) -> float:
    assert callable(do)
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
