"""The search over all keys of a memory: recall@8 against flat, milliseconds a query, bytes a key,
by kind.

    python benchmarks/keys_speed.py --keys 300000 --work FOLDER
    python benchmarks/keys_speed.py --keys 5000000 --work FOLDER \\
        --columns src=5,tgt=6,doc=1,idx=2 --memory acts.tsv.gz regs.tsv.gz \\
        --leave-out eval/splits/law.test.txt

Keys are c' of real pairs by the model that ships, as many as `--keys`, kept in `--work`: a run that
was stopped goes on, the next one computes nothing. Sizes are said first; it ends there where the
disk is too small. Queries are c M of positions of held-out pairs, whose documents `--leave-out`
names. Flat, the oracle, compares every fp16 key, blockwise. Times are of finding positions and
scores, without looking up the segments; "memory" is the most that building and searching took of
it, without the mapped keys, which the system may drop. FAISS works on the GPUs that it sees."""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from tmnmt import __version__
from tmnmt.errors import TmnmtError
from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import check_disk, compute, header_of, plan, queries_of
from tmnmt.keys.files import KeyFiles
from tmnmt.keys.layout import Array
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.trained_layers.faiss_index import (
    FAISS_FILE,
    KINDS,
    MIN_TRAINING,
    Kind,
    bytes_a_key,
    load_faiss,
    update_faiss,
)
from tmnmt.trained_layers.key_directions import Directions, ProjectedKeys, searched_size
from tmnmt.trained_layers.key_search import KeySearch, flat

K = 8
BATCH = 64
ROOT = Path(__file__).parent.parent

SECONDS = 20.0  # that queries are asked one by one


def main() -> None:
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
        load_faiss().omp_set_num_threads(options.threads)
    model = load_model(options.model, options.device)
    kinds = [KINDS[name] for name in options.kinds if options.keys >= MIN_TRAINING[KINDS[name]]]
    with tempfile.TemporaryDirectory() as folder:
        path = (options.work or Path(folder)) / f"keys-{options.keys}"
        path.mkdir(parents=True, exist_ok=True)
        say_sizes(path, model, kinds, options.keys)
        if not (path / "manifest.json").exists():
            build(path, up_to(segments(options), model, options.keys), "en", "fr")
        with MemoryIndex.open(path) as index:
            wanted = plan(index, header_of(model), model.vocab)
            with Progress("computing keys", "positions", wanted.positions) as progress:
                start = time.perf_counter()
                files = compute(
                    index, model, wanted, device=options.device, progress=progress.advance
                )
            seconds = time.perf_counter() - start
            queries = held_out(model, options)
            show_conditions(files, queries, wanted.positions / seconds)
            measure(index, files, queries, kinds)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--keys", type=int, default=300_000, help="keys, at least; whole pairs")
    parser.add_argument(
        "--memory", type=Path, nargs="+", default=[ROOT / "memories/canadian-law.en-fr.tmx.gz"]
    )
    parser.add_argument("--columns", help="of memories in TSV without a header")
    parser.add_argument(
        "--leave-out", type=Path, help="documents of the memory that give no keys, one a line"
    )
    parser.add_argument(
        "--held-out", type=Path, default=ROOT / "memories/held-out/law.test.en-fr.tsv.gz"
    )
    parser.add_argument("--model", type=Path, default=ROOT / "models/law.en-fr")
    parser.add_argument("--queries", type=int, default=512)
    parser.add_argument(
        "--kinds", nargs="+", choices=sorted(KINDS), default=["flat", "ivf", "ivfpq", "hnsw"]
    )
    parser.add_argument("--device", default="cpu", help="that computes the keys: cpu, cuda")
    parser.add_argument("--threads", type=int, help="of torch and FAISS")
    parser.add_argument("--work", type=Path, help="keeps index and keys for the next run")
    return parser.parse_args()


def say_sizes(path: Path, model: Model, kinds: list[Kind], keys: int) -> None:
    """Ends the program where the disk is too small for what is still to be written: a new
    faiss.index is written beside the one of the kind before."""
    header = header_of(model)
    rows = keys * header.position_bytes
    largest = keys * max(bytes_a_key(kind, searched_size(header)) for kind in kinds)
    held = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    needed = max(0, rows + 2 * largest - held)
    print(
        f"{path}: keys {rows / 1e9:.2f} GB, largest faiss.index {largest / 1e9:.2f} GB",
        file=sys.stderr,
    )
    try:
        free = check_disk(path, needed)
    except TmnmtError as error:
        sys.exit(str(error))
    print(
        f"{needed / 1e9:.2f} GB still to be written at most, {free / 1e9:.2f} GB free",
        file=sys.stderr,
    )


def segments(options: argparse.Namespace) -> Iterator[Segment]:
    """The memory without the documents to be left out."""
    left_out = (
        set(options.leave_out.read_text(encoding="utf-8").split("\n")) - {""}
        if options.leave_out
        else set()
    )
    columns = parse_columns(options.columns) if options.columns else None
    reader = read_memories(options.memory, "en", "fr", columns=columns)
    return (segment for segment in reader if segment.document not in left_out)


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
    """(n, l + d) c and s of positions drawn from held-out pairs."""
    pairs = list(read_memories([options.held_out], "en", "fr"))
    chosen = random.Random(0).sample(pairs, min(len(pairs), options.queries // 8))
    queries = np.concatenate([queries_of(model, s.src, s.tgt, options.device)[0] for s in chosen])
    return np.asarray(np.random.default_rng(0).permutation(queries)[: options.queries])


def measure(index: MemoryIndex, files: KeyFiles, queries: Array, kinds: list[Kind]) -> None:
    directions = Directions.open(files)
    queries = directions.project(*np.split(queries, [files.header.context_size], 1))
    exact = flat(ProjectedKeys(files, directions).tail(0), queries, K)[1]
    print(
        f"| kind | recall@{K} | ms a query, one by one | {BATCH} together | bytes a key | built "
        "in s | memory in MB |"
    )
    print("|---|---|---|---|---|---|---|")
    for kind in kinds:
        with most_memory() as memory:
            start = time.perf_counter()
            update_faiss(files, "flat")  # so that the time is of a new one
            with Progress(kind, "keys") as progress:
                update_faiss(files, kind, progress.advance)
            built = time.perf_counter() - start
            search = KeySearch(index, files)
            found, _ = batched(search, queries)  # reads what it needs of the index from the disk
            _, together = batched(search, queries)
            alone = one_by_one(search, queries)
            del search
        recall = np.mean(
            [len({*a} & {*b}) / K for a, b in zip(found.tolist(), exact.tolist(), strict=True)]
        )
        path = files.folder / FAISS_FILE
        size = path.stat().st_size / files.positions if path.exists() else 0.0
        row = (
            kind,
            f"{recall:.3f}",
            f"{alone:.2f}",
            f"{together:.2f}",
            f"{size:,.0f}",
            f"{built:,.0f}",
            f"{max(memory):,}",
        )
        print(f"| {' | '.join(row)} |", flush=True)


@contextmanager
def most_memory() -> Iterator[list[int]]:
    """What the process holds of memory in MB, mapped files not counted, ten times a second."""
    ended, found = threading.Event(), [anonymous_memory()]

    def watch() -> None:
        while not ended.wait(0.1):
            found.append(anonymous_memory())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def anonymous_memory() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1024


def batched(search: KeySearch, queries: Array) -> tuple[Array, float]:
    """The positions found (n, K), and milliseconds a query."""
    found = []
    start = time.perf_counter()
    for at in range(0, len(queries), BATCH):
        found.append(search.nearest(queries[at : at + BATCH], K)[1])
    return np.concatenate(found), (time.perf_counter() - start) / len(queries) * 1000


def one_by_one(search: KeySearch, queries: Array) -> float:
    """Milliseconds a query, of as many as are answered in `SECONDS`."""
    start, done = time.perf_counter(), 0
    while done < len(queries) and time.perf_counter() - start < SECONDS:
        search.nearest(queries[done : done + 1], K)
        done += 1
    return (time.perf_counter() - start) / done * 1000


def show_conditions(files: KeyFiles, queries: Array, rate: float) -> None:
    print(
        f"python {' '.join(sys.argv)}; {datetime.now(UTC):%Y-%m-%d}; tmnmt {__version__}; torch "
        f"{torch.__version__}"
    )
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"GPUs that FAISS sees: {load_faiss().get_num_gpus()}")
    if np.isfinite(rate) and rate > 0:
        print(f"keys computed: {rate:,.0f} positions/s")
    size = searched_size(files.header)
    print(
        f"{files.positions:,} keys of {size} numbers, {len(queries)} queries; "
        f"{files.header.position_bytes} bytes a key on disk"
    )


if __name__ == "__main__":
    main()
