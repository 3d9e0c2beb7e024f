"""Time of building an index and of searching it on every engine that index/elasticsearch/server.py
knows, in one run, as ratios to the first.

    for name in elasticsearch-9 elasticsearch-8 opensearch-3 opensearch-2; do
        python index/elasticsearch/server.py fetch --engine $name; done
    python benchmarks/engines_speed.py MEMORY... --held-out eval/splits/law.test.txt \\
        [--columns src=5,tgt=6,doc=1,idx=2]

All servers run at once, with 0.5 GB of heap each, and only one has work at a time. They take turns:
with builds, and with every query. Beside the clock stands the time that the server's process had of
the processor, which tells more where other work runs; it is known on Linux alone. Documents of the
list are left out of the memory; their segments of 5 to 80 tokens are the queries. What a server
answers must be what the embedded index answers, ties included, or it ends here. A ratio is the
median of the ratios of each build or query, by the clock."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from search_speed import conditions, without

from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import MemoryIndex, build
from tmnmt.index.elastic.address import ElasticAddress, parse_address
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.segments import Segment

SCRIPT = Path(__file__).resolve().parents[1] / "index" / "elasticsearch" / "server.py"
K = 3


def _servers() -> ModuleType:
    """index/elasticsearch/server.py."""
    spec = importlib.util.spec_from_file_location("elasticsearch_server", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


servers = _servers()


def main() -> None:
    options = arguments()
    held_out = set(options.held_out.read_text(encoding="utf-8").split("\n")) - {""}
    columns = parse_columns(options.columns) if options.columns else None
    reader = read_memories(options.memories, options.src_lang, options.tgt_lang, columns=columns)
    texts: list[str] = []
    others = without(iter(reader), held_out, texts)
    segments = list(islice(others, options.segments))
    for _ in others:  # what is left has queries, too
        pass
    if not texts:
        sys.exit(f"none of the documents of {options.held_out} is in the memories: nothing to ask")
    queries = random.Random(0).sample(texts, min(options.queries, len(texts)))
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tmnmt-engines-")))
        root.chmod(0o755)  # the servers run as another user
        build(root / "embedded", segments, options.src_lang, options.tgt_lang)
        embedded = stack.enter_context(MemoryIndex.open(root / "embedded"))
        addresses = {name: _start(name, root / name, stack) for name in options.engines}
        result: dict[str, Any] = {**conditions(), "segments": len(segments)}
        result["builds"] = _builds(addresses, root, segments, options)
        result["queries"] = [
            _searches(addresses, root, embedded, queries, threshold)
            for threshold in options.thresholds
        ]
    _show(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("memories", nargs="+", type=Path, metavar="MEMORY")
    parser.add_argument(
        "--held-out", type=Path, required=True, help="documents left out, one a line"
    )
    parser.add_argument("--columns")
    parser.add_argument("--src-lang", default="en")
    parser.add_argument("--tgt-lang", default="fr")
    parser.add_argument(
        "--engines", nargs="+", choices=tuple(servers.ENGINES), default=tuple(servers.ENGINES)
    )
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=2, help="of builds")
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.5, 0.8])
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def _start(name: str, folder: Path, stack: ExitStack) -> ElasticAddress:
    folder.mkdir()
    url = servers.start(folder, name=name)
    stack.callback(servers.stop, folder)
    return parse_address(f"{servers.engine(name).kind}+{url}/bench")


def _processor_seconds(folder: Path) -> float:
    """Seconds that the server of a folder has had of the processor, since it was started."""
    fields = Path(f"/proc/{servers.process_id(folder)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _builds(
    addresses: dict[str, ElasticAddress],
    root: Path,
    segments: Sequence[Segment],
    options: argparse.Namespace,
) -> dict[str, dict[str, list[float]]]:
    """Seconds of every build, from the segments to an index that answers: by the clock, and of the
    processor on the server."""
    seconds: dict[str, dict[str, list[float]]] = {
        name: {"clock": [], "processor": []} for name in addresses
    }
    for i in range(options.rounds):
        for name, address in _in_turn(addresses, i):
            begun, had = time.perf_counter(), _processor_seconds(root / name)
            build_elastic(address, segments, options.src_lang, options.tgt_lang, force=True)
            seconds[name]["clock"].append(time.perf_counter() - begun)
            seconds[name]["processor"].append(_processor_seconds(root / name) - had)
            print(f"{name}: built in {seconds[name]['clock'][-1]:.1f} s", file=sys.stderr)
    return seconds


def _searches(
    addresses: dict[str, ElasticAddress],
    root: Path,
    embedded: MemoryIndex,
    queries: Sequence[str],
    threshold: float,
) -> dict[str, Any]:
    """Milliseconds of every query, one by one, and those of the processor on the server for one of
    them. All are asked once before, so that the servers are warm."""
    expected = embedded.search(queries, K, threshold)
    times: dict[str, list[float]] = {name: [] for name in addresses}
    with ExitStack() as stack:
        indexes = {
            name: stack.enter_context(ElasticIndex.open(address))
            for name, address in addresses.items()
        }
        for name, index in indexes.items():
            if index.search(queries, K, threshold) != expected:
                sys.exit(f"{name} does not answer what the embedded index answers")
        had = {name: _processor_seconds(root / name) for name in addresses}
        for i, query in enumerate(queries):
            for name, index in _in_turn(indexes, i):
                begun = time.perf_counter()
                found = index.search([query], K, threshold)
                times[name].append((time.perf_counter() - begun) * 1000)
                if found != [expected[i]]:
                    sys.exit(f"{name} does not answer what the embedded index answers: {query}")
        used = {
            name: (_processor_seconds(root / name) - had[name]) * 1000 / len(queries)
            for name in addresses
        }
    return {"threshold": threshold, "ms": times, "processor_ms": used}


def _in_turn(things: dict[str, Any], number: int) -> list[tuple[str, Any]]:
    """All of them, beginning with another one every time."""
    items = list(things.items())
    start = number % len(items)
    return items[start:] + items[:start]


def _show(result: dict[str, Any]) -> None:
    builds = result["builds"]
    first = next(iter(builds))
    print(f"{result['segments']:,} segments; load {result['load']:.1f}")
    print(
        f"{'':<16}{'build':<26}"
        + "".join(f"query at {row['threshold']:<17g}" for row in result["queries"])
    )
    columns = f"{'s':>7}{'ratio':>7}{'cpu s':>8}    "
    columns += f"{'ms':>7}{'ratio':>7}{'cpu ms':>8}    " * len(result["queries"])
    print(f"{'engine':<16}{columns}")
    for name, seconds in builds.items():
        clocks, firsts = seconds["clock"], builds[first]["clock"]
        line = f"{name:<16}" + _columns(clocks, firsts, statistics.median(seconds["processor"]))
        for row in result["queries"]:
            line += _columns(row["ms"][name], row["ms"][first], row["processor_ms"][name])
        print(line)


def _columns(times: Sequence[float], firsts: Sequence[float], processor: float) -> str:
    ratio = statistics.median(a / b for a, b in zip(times, firsts, strict=True))
    return f"{statistics.median(times):7.1f}{ratio:7.2f}{processor:8.1f}    "


if __name__ == "__main__":
    main()
