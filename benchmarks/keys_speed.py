"""The search over all keys of a memory: recall@8 against flat, milliseconds a query, bytes a key, by kind.

    python benchmarks/keys_speed.py --keys 30000
    python benchmarks/keys_speed.py --keys 5000000 --memory WHOLE-LAW.tmx.gz --work FOLDER

Keys are c' of real pairs by the model that ships, as many as `--keys`, kept in `--work` for the next run. Queries are
c M of positions of held-out pairs, never keys. Flat compares every fp16 key, blockwise. Times are of finding positions
and scores, without looking up the segments. Memory: faiss.index, the sample it is trained on, one block, and the mapped
keys, which the system may drop.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from tmnmt import __version__
from tmnmt.engine import load_memories
from tmnmt.formats import read_memories
from tmnmt.index import MemoryIndex, build
from tmnmt.index.key_faiss import FAISS_FILE, KINDS, LEAST, bytes_a_key, update_faiss
from tmnmt.index.key_search import KeySearch
from tmnmt.index.keys import Array, KeyFiles
from tmnmt.memory_keys import compute, header_of, plan, queries_of
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import Progress
from tmnmt.segments import Segment

K = 8
BATCH = 64
ROOT = Path(__file__).parent.parent


def main() -> None:
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    model = load_model(options.model)
    with tempfile.TemporaryDirectory() as folder:
        path = (options.work or Path(folder)) / f"keys-{options.keys}"
        if not (path / "manifest.json").exists():
            reader = read_memories(options.memory, "en", "fr")
            build(path, up_to(reader, model, options.keys), "en", "fr", force=path.exists())
        with MemoryIndex.open(path) as index:
            wanted = plan(index, header_of(model), model.vocab)
            with Progress("computing keys", "positions", wanted.positions) as progress:
                start = time.perf_counter()
                files = compute(index, model, wanted, progress=progress.advance)
            seconds = time.perf_counter() - start
            queries = held_out(model, options)
            show_conditions(files, queries, wanted.positions / seconds)
            measure(index, files, queries, options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--keys", type=int, default=300_000, help="keys, at least; whole pairs")
    parser.add_argument("--memory", type=Path, nargs="+", default=[ROOT / "memories/canadian-law.en-fr.tmx.gz"])
    parser.add_argument("--held-out", type=Path, default=ROOT / "memories/held-out/law.test.en-fr.tsv.gz")
    parser.add_argument("--model", type=Path, default=ROOT / "models/law.en-fr")
    parser.add_argument("--queries", type=int, default=512)
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=["flat", "ivf", "ivfpq", "hnsw"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--work", type=Path, help="keeps index and keys for the next run")
    return parser.parse_args()


def up_to(segments: Iterator[Segment], model: Model, keys: int) -> Iterator[Segment]:
    """Distinct pairs of the memory until they make so many keys."""
    limit, seen = header_of(model).max_subwords, set[tuple[str, str]]()
    for segment in segments:
        if keys <= 0:
            return
        if (segment.src, segment.tgt) not in seen:
            seen.add((segment.src, segment.tgt))
            keys -= min(len(model.vocab.encode(segment.tgt)), limit) + 1
            yield segment


def held_out(model: Model, options: argparse.Namespace) -> Array:
    """(n, l) c M of positions drawn from held-out pairs."""
    segments = list(read_memories([options.held_out], "en", "fr"))
    memories = load_memories(model, "cpu")
    tm = memories.tm if memories is not None else None
    chosen = random.Random(0).sample(segments, min(len(segments), options.queries // 8))
    queries = np.concatenate([queries_of(model, tm, s.src, s.tgt)[0] for s in chosen])
    return np.asarray(np.random.default_rng(0).permutation(queries)[: options.queries])


def measure(index: MemoryIndex, files: KeyFiles, queries: Array, options: argparse.Namespace) -> None:
    update_faiss(files, "flat")
    exact = batched(KeySearch(index, files), queries)[0]
    print(f"| kind | recall@{K} | ms a query, one by one | ms a query, {BATCH} together | bytes a key | built in s |")
    print("|---|---|---|---|---|---|")
    for kind in (KINDS[name] for name in options.kinds):
        if files.positions < LEAST[kind]:
            print(f"{kind}: too few keys", file=sys.stderr)
            continue
        start = time.perf_counter()
        update_faiss(files, kind)
        built = time.perf_counter() - start
        search = KeySearch(index, files)
        found, together = batched(search, queries)
        alone = one_by_one(search, queries[:100])
        recall = np.mean([len({*a} & {*b}) / K for a, b in zip(found.tolist(), exact.tolist(), strict=True)])
        del search
        path = files.folder / FAISS_FILE
        size = path.stat().st_size / files.positions if path.exists() else 0.0
        assert size == 0 or abs(size - bytes_a_key(kind, files.header.context_size)) < 0.2 * size + 100
        print(f"| {kind} | {recall:.3f} | {alone:.2f} | {together:.2f} | {size:,.0f} | {built:,.0f} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"peak memory {peak:.1f} GB, mapped keys included")


def batched(search: KeySearch, queries: Array) -> tuple[Array, float]:
    """The positions found (n, K), and milliseconds a query."""
    found = []
    start = time.perf_counter()
    for at in range(0, len(queries), BATCH):
        found.append(search.nearest(queries[at : at + BATCH], K)[1])
    return np.concatenate(found), (time.perf_counter() - start) / len(queries) * 1000


def one_by_one(search: KeySearch, queries: Array) -> float:
    start = time.perf_counter()
    for query in queries:
        search.nearest(query[None], K)
    return (time.perf_counter() - start) / len(queries) * 1000


def show_conditions(files: KeyFiles, queries: Array, rate: float) -> None:
    print(f"python {' '.join(sys.argv)}; {datetime.now(UTC):%Y-%m-%d}; tmnmt {__version__}; torch {torch.__version__}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if np.isfinite(rate) and rate > 0:
        print(f"keys computed: {rate:,.0f} positions/s")
    size = files.header.context_size
    print(f"{files.positions:,} keys of l = {size}, {len(queries)} queries; c.f16 has {2 * size:,} bytes a key")


if __name__ == "__main__":
    main()
