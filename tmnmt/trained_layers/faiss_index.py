"""FAISS over all keys of a memory as `key_directions.py` sees them, by distance: building,
extending and loading the file faiss.index. A key is n numbers, 128 at most.

    flat     no file: every key is compared, blockwise, in memory (see `search.py`);
             exact, for small memories
    ivf      inverted lists of fp16 keys, 2 n + 8 bytes a key: the keys of the
             nearest lists are compared
    ivfpq    the same with n / 2 bytes a key; what it finds is measured again from
             c.u8 and z.u8
    hnsw     a graph over fp16 keys, 2 n + 272 bytes a key

The kind stands in the file: it is the class of the index. Four bytes of our own end the file, the
CRC-32 of all before them, which FAISS does not read. Douze et al. 2024, "The Faiss library"."""

from __future__ import annotations

import logging
import math
import warnings
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tmnmt.durable import replacing
from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.index.embedded.manifest import KEYS_DIR
from tmnmt.keys.files import KeyFiles
from tmnmt.progress import ReadProgress
from tmnmt.trained_layers import gpu as key_gpu
from tmnmt.trained_layers.key_directions import Directions, ProjectedKeys

FAISS_FILE = "faiss.index"
Kind = Literal["flat", "ivf", "ivfpq", "hnsw"]
CLASSES: dict[str, Kind] = {
    "IndexIVFScalarQuantizer": "ivf",
    "IndexIVFPQ": "ivfpq",
    "IndexHNSWSQ": "hnsw",
}
KINDS: dict[str, Kind] = {"flat": "flat", "ivf": "ivf", "ivfpq": "ivfpq", "hnsw": "hnsw"}
MIN_TRAINING: dict[Kind, int] = {
    "flat": 0,
    "ivf": 39,
    "ivfpq": 39 * 256,
    "hnsw": 1,
}  # keys; FAISS wants 39 a centroid
SAMPLE_A_LIST = 64  # keys that a list's centroid is trained on
PROBES = 8  # lists searched for a query
EF_CONSTRUCTION = 80  # candidates kept while the graph is made
EF_SEARCH = 96  # and while it is searched
LINKS = 32  # of a key in the graph
ADDED = 1 << 13  # keys at a time, between two signs of progress
CHECKED = 1 << 24  # bytes at a time
CHECKSUM_BYTES = 4

log = logging.getLogger(__name__)


def kind_for(positions: int) -> Kind:
    """What fits a memory of so many keys: exact while that takes milliseconds, then fp16 lists
    while those fit a usual memory (0.5 GB at 2 M keys), then compressed ones."""
    return "flat" if positions < 50_000 else "ivf" if positions < 2_000_000 else "ivfpq"


def bytes_a_key(kind: Kind, size: int) -> int:
    """Bytes of one key of `size` numbers in faiss.index, and as much in memory when it
    is searched."""
    return {
        "flat": 0,
        "ivf": 2 * size + 8,
        "ivfpq": _codes(size) + 8,
        "hnsw": 2 * size + 8 * LINKS + 16,
    }[kind]


def check_kind(kind: Kind, positions: int) -> None:
    """Raises UsageError where FAISS is not installed, or there are too few keys to learn this kind
    from."""
    if positions < MIN_TRAINING[kind]:
        raise UsageError(
            f"{positions:,} keys are too few for {kind}, which needs {MIN_TRAINING[kind]:,}; "
            "use flat"
        )
    if kind != "flat":
        load_faiss()


def update_faiss(
    files: KeyFiles, kind: Kind, progress: ReadProgress | None = None, seed: int = 0
) -> None:
    """Brings faiss.index in step with the keys. It is extended where it is of this kind and its
    lists still fit their number, else made anew; "flat" removes it. Whole or not at all.

    seed: of the sample it is trained on. progress: called with keys added, and the share of those
    to add that are now there. Raises MemoryIndexError (disk full)."""
    path = files.folder / FAISS_FILE
    if kind == "flat":
        path.unlink(missing_ok=True)
        return
    check_kind(kind, files.positions)
    keys = ProjectedKeys(files, Directions.open(files))
    index = _load_fitting(files, kind, keys.shape[1])
    if index is None:
        index = train(keys, kind, seed)
    elif index.ntotal == files.positions:
        return
    index = key_gpu.on_gpus(index)
    add(index, keys, progress)
    _write(key_gpu.on_cpu(index), path)


def train(keys: ProjectedKeys, kind: Kind, seed: int = 0) -> Any:
    """An empty index of this kind, trained on a sample of the keys (N, n) drawn by `seed`."""
    faiss = load_faiss()
    count, size = keys.shape
    lists = lists_for(count)
    description = {
        "ivf": f"IVF{lists},SQfp16",
        "ivfpq": f"IVF{lists},PQ{_codes(size)}",
        "hnsw": f"HNSW{LINKS}_SQfp16",
    }[kind]
    index = faiss.index_factory(size, description, faiss.METRIC_L2)
    if kind == "hnsw":
        sample_size = 1  # it learns nothing
        index.hnsw.efConstruction = EF_CONSTRUCTION
    else:
        sample_size = min(count, max(SAMPLE_A_LIST * lists, MIN_TRAINING["ivfpq"]))
        log.info("%s: learning %s lists from %s keys", kind, f"{lists:,}", f"{sample_size:,}")
        if kind == "ivfpq":
            # It orders codes for a search by bits, which nobody makes, in some 50 s.
            index.do_polysemous_training = False
    sample = np.sort(np.random.default_rng(seed).choice(count, sample_size, replace=False))
    key_gpu.train(index, keys[sample])
    return index


def add(index: Any, keys: ProjectedKeys, progress: ReadProgress | None = None) -> None:
    """Adds those of the keys (N, n) that the index does not have yet; `progress` as for
    `update_faiss`."""
    initial_count = index.ntotal
    for start in range(initial_count, len(keys), ADDED):
        block = keys[start : start + ADDED]
        index.add(block)
        if progress:
            progress(len(block), (start + len(block) - initial_count) / (len(keys) - initial_count))


def open_faiss(files: KeyFiles, size: int) -> tuple[Kind, Any | None]:
    """The kind of the index over the keys of `size` numbers, and the index, ready to be searched,
    on all GPUs where there are any; None: there is none, search flat. Raises MemoryIndexError where
    it is damaged or not of these keys."""
    path = files.folder / FAISS_FILE
    if not path.exists():
        return "flat", None
    index = _read(path)
    if not _of_keys(index, size) or index.ntotal > files.positions:
        raise MemoryIndexError(f"{path}: not of these keys; delete it and run tmnmt keys again")
    kind = CLASSES[type(index).__name__]
    if kind == "hnsw":
        index.hnsw.efSearch = EF_SEARCH
    else:
        index.nprobe = PROBES
    return kind, key_gpu.on_gpus(index)


def lists_for(count: int) -> int:
    """How many lists: the power of two nearest to 2 sqrt(count), as long as each has 39 keys to
    learn from."""
    lists = 1 << max(0, round(math.log2(2 * math.sqrt(max(count, 1)))))
    while lists > 1 and 39 * lists > count:
        lists //= 2
    return lists


def load_faiss() -> Any:
    """The module. Raises UsageError where it is not installed, or lacks its libraries."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of SWIG's types
            import faiss
    except ImportError as error:
        message = (
            "FAISS is not installed: pip install faiss-cpu (or faiss-gpu), or use --faiss flat"
        )
        raise UsageError(message) from error
    except RuntimeError as error:  # faiss-gpu without CUDA's libraries
        raise UsageError(f"FAISS cannot be loaded: {error}") from error
    return faiss


def _codes(size: int) -> int:
    """Bytes of a compressed key: one for 2 numbers, or for as many as divide `size`."""
    return next(codes for codes in range(max(1, size // 2), 0, -1) if size % codes == 0)


def _load_fitting(files: KeyFiles, kind: Kind, size: int) -> Any | None:
    path = files.folder / FAISS_FILE
    try:
        index = _read(path) if path.exists() else None
    except MemoryIndexError:
        return None  # made anew
    if index is None or CLASSES[type(index).__name__] != kind or not _of_keys(index, size):
        return None
    outgrown = kind != "hnsw" and lists_for(files.positions) > 2 * index.nlist
    return None if outgrown or index.ntotal > files.positions else index


def _of_keys(index: Any, size: int) -> bool:
    """Whether an index is of keys of so many numbers, by distance."""
    return bool(index.d == size and index.metric_type == load_faiss().METRIC_L2)


def check_faiss(index_dir: Path) -> None:
    """Raises MemoryIndexError where a faiss.index of any model is not as it was written. Does
    without FAISS."""
    for path in sorted((index_dir / KEYS_DIR).rglob(FAISS_FILE)):
        _check(path)


def _check(path: Path) -> None:
    size = path.stat().st_size - CHECKSUM_BYTES
    checksum = 0
    with path.open("rb") as file:
        for offset in range(0, size, CHECKED):
            checksum = zlib.crc32(file.read(min(CHECKED, size - offset)), checksum)
        if file.read() != checksum.to_bytes(CHECKSUM_BYTES, "little"):
            raise MemoryIndexError(f"{path}: damaged; delete it and run tmnmt keys again")


def _read(path: Path) -> Any:
    faiss = load_faiss()
    _check(path)  # FAISS would believe a flipped byte, and answer with keys that there are not
    try:
        # without the flag an index could name any file of the disk as a part of itself, and FAISS
        # would open it
        index = faiss.read_index(str(path), faiss.IO_FLAG_ONDISK_SAME_DIR)
    except (RuntimeError, MemoryError) as error:
        raise MemoryIndexError(
            f"{path}: cannot be read; delete it and run tmnmt keys again"
        ) from error
    if type(index).__name__ not in CLASSES:
        raise MemoryIndexError(f"{path}: of an unknown kind; delete it and run tmnmt keys again")
    lists = faiss.downcast_InvertedLists(index.invlists) if hasattr(index, "invlists") else None
    if lists is not None and type(lists).__name__ != "ArrayInvertedLists":
        raise MemoryIndexError(
            f"{path}: has parts in other files; delete it and run tmnmt keys again"
        )
    return index


def _write(index: Any, path: Path) -> None:
    try:
        with replacing(path, alone=True) as new:
            load_faiss().write_index(index, str(new))
            _seal(new)
    except (OSError, RuntimeError) as error:
        raise MemoryIndexError(
            f"{path}: cannot be written: {str(error).splitlines()[-1]}"
        ) from error


def _seal(path: Path) -> None:
    """Puts the checksum behind the content."""
    checksum = 0
    with path.open("r+b") as file:
        while block := file.read(CHECKED):
            checksum = zlib.crc32(block, checksum)
        file.write(checksum.to_bytes(CHECKSUM_BYTES, "little"))
