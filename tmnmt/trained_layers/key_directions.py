"""What keys are found by: context and hidden state of a position side by side, each of length 1,
seen along the directions that tell words apart best.

    v = [c / |c|; s / |s|] U    U (l + d, n): n = 64 at most, or l + d
    D = |v - v'|^2              of a query and a key

    INDEX/keys/<model hash>/directions.f32    U, and of how many keys it was learned

U is learned of the memory's own keys: along its columns they differ most, against how much keys of
the same word y' differ (linear discriminants, Rao 1948). So 64 numbers find the right word as often
as all l + d do (docs/results-neighbours.md). faiss.index holds keys seen along these directions, so
it goes before they do. Fewer than 2,048 keys teach
nothing, and are seen in full."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tmnmt.durable import write
from tmnmt.errors import MemoryIndexError
from tmnmt.index.embedded.manifest import KEYS_DIR
from tmnmt.keys.files import KeyFiles
from tmnmt.keys.layout import Array, Header

DIRECTIONS_FILE = "directions.f32"
FORMAT = 1
MAX_SIZE = 64  # numbers of a key as it is searched; chosen on dev
SAMPLE = 1 << 16  # keys that they are learned from, at most
SHRUNK = 0.1  # of the mean variance, added to that of the same word in every direction
BLOCK = 1 << 13  # keys read at a time
OUTGROWN = 4  # times as many keys as they were learned of: they are learned anew
MIN_KEYS = 2048  # keys: too few to learn from, seen in full
IN_FULL = 30.0  # times D in full is about what D is along directions
SMALLEST = 1e-6  # of a length that is divided by
# format, l + d, n, keys they were learned of; behind it the numbers, and the CRC-32 of all
_HEADER = np.dtype([("format", "<u4"), ("own", "<u4"), ("size", "<u4"), ("keys", "<u8")])
_CHECKSUM_BYTES = 4


@dataclass(frozen=True)
class Directions:
    """U (l + d, n) float32, of a memory that had so many `keys`."""

    matrix: Array
    keys: int

    @property
    def size(self) -> int:
        """Numbers of a key as it is searched."""
        return int(self.matrix.shape[1])

    def project(self, contexts: Array, hiddens: Array) -> Array:
        """v (n, size) float32 of c (n, l) and s (n, d)."""
        return np.ascontiguousarray(unit(contexts, hiddens) @ self.matrix)

    @classmethod
    def open(cls, files: KeyFiles) -> Directions:
        """Those of these keys. Raises MemoryIndexError where there are none, or they are
        damaged."""
        path = files.folder / DIRECTIONS_FILE
        if not path.exists():
            raise MemoryIndexError(f"{path}: is missing; run tmnmt keys again")
        directions = _read(path)
        if directions.matrix.shape[0] != files.header.context_size + files.header.hidden_size:
            raise _damaged(path)
        return directions


class ProjectedKeys:
    """The keys of `files` along directions, (N, size) float32; read when they are asked for."""

    def __init__(self, files: KeyFiles, directions: Directions) -> None:
        self._files, self._directions = files, directions
        self.shape = files.positions, directions.size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Array | slice) -> Array:
        return self._directions.project(self._files.contexts[index], self._files.hiddens[index])

    def tail(self, first: int) -> Array:
        """Those from position `first` on."""
        keys = np.empty((max(0, len(self) - first), self.shape[1]), np.float32)
        for start in range(first, len(self), BLOCK):
            block = self[start : start + BLOCK]
            keys[start - first : start - first + len(block)] = block
        return keys


def update_directions(files: KeyFiles, faiss: Path, seed: int = 0) -> Directions:
    """The directions of these keys: learned where there are none, they are damaged, or the keys
    have outgrown them. What was made with the old ones, the file `faiss`, is removed first.

    seed: of the sample."""
    path = files.folder / DIRECTIONS_FILE
    try:
        old_directions = Directions.open(files)
        if files.positions <= OUTGROWN * max(old_directions.keys, MIN_KEYS // OUTGROWN):
            return old_directions
    except MemoryIndexError:
        pass  # made anew
    faiss.unlink(missing_ok=True)
    new_directions = learn(files, seed)
    header = np.array([(FORMAT, *new_directions.matrix.shape, new_directions.keys)], _HEADER)
    content = header.tobytes() + new_directions.matrix.astype("<f4").tobytes()
    write(path, content + _checksum(content), alone=True)
    return new_directions


def searched_size(header: Header) -> int:
    """Numbers of a key as it is searched."""
    return min(MAX_SIZE, header.context_size + header.hidden_size)


def learn(files: KeyFiles, seed: int = 0) -> Directions:
    """The discriminants of a sample of the keys, which `seed` draws; of few keys all numbers."""
    count, size = files.positions, searched_size(files.header)
    key_size = files.header.context_size + files.header.hidden_size
    if count < MIN_KEYS:
        return Directions(np.eye(key_size, dtype=np.float32) * np.float32(IN_FULL**0.5), count)
    sample = np.random.default_rng(seed).choice(count, min(count, SAMPLE), replace=False)
    sample.sort()
    words, word = np.unique(files.ids[sample], return_inverse=True)
    moments, means = np.zeros((key_size, key_size)), np.zeros((len(words), key_size))
    for start in range(0, len(sample), BLOCK):
        rows = slice(start, start + BLOCK)
        keys = unit(files.contexts[sample[rows]], files.hiddens[sample[rows]])
        moments += keys.T @ keys
        np.add.at(means, word[rows], keys)
    counts = np.bincount(word, minlength=len(words))
    mean = means.sum(0) / max(1, len(sample))
    means /= np.sqrt(np.maximum(1, counts))[:, None]
    total = (moments - len(sample) * np.outer(mean, mean)) / max(1, len(sample))
    word_covariance = (moments - means.T @ means) / max(1, len(sample) - len(words))
    vectors = discriminants(total, word_covariance)[:, :size]
    return Directions(np.ascontiguousarray(vectors, np.float32), count)


def discriminants(total: Array, word_covariance: Array) -> Array:
    """The directions (o, o) of greatest variance by `total` (o, o) against `word_covariance` (o,
    o), which is shrunk; those of greatest ratio first. Along each the variance by `word_covariance`
    is 1."""
    shrunk = SHRUNK * np.trace(word_covariance) / len(word_covariance) + SMALLEST
    half = np.linalg.inv(
        np.linalg.cholesky(word_covariance + shrunk * np.eye(len(word_covariance)))
    )
    _, vectors = np.linalg.eigh(half @ total @ half.T)
    return np.asarray(half.T @ vectors[:, ::-1])


def unit(contexts: Array, hiddens: Array) -> Array:
    """(n, l + d) of c (n, l) and s (n, d): each of length 1."""
    lengths = (np.linalg.norm(x, axis=-1, keepdims=True) for x in (contexts, hiddens))
    parts = (x / np.maximum(y, SMALLEST) for x, y in zip((contexts, hiddens), lengths, strict=True))
    return np.concatenate([*parts], -1)


def check_directions(index_dir: Path) -> None:
    """Raises MemoryIndexError where the directions of any model are not as they were written."""
    for path in sorted((index_dir / KEYS_DIR).rglob(DIRECTIONS_FILE)):
        _read(path)


def _read(path: Path) -> Directions:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise _damaged(path)
        if path.stat().st_size > _HEADER.itemsize + (1 << 30):
            raise _damaged(path)
        content = path.read_bytes()
    except OSError as error:
        raise MemoryIndexError(f"{path}: cannot be read: {error.strerror}") from error
    content, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if len(content) < _HEADER.itemsize or checksum != _checksum(content):
        raise _damaged(path)
    version, key_size, size, keys = np.frombuffer(content, _HEADER, 1)[0].tolist()
    numbers = content[_HEADER.itemsize :]
    fits = 0 < size <= MAX_SIZE or size == key_size
    if version != FORMAT or not fits or len(numbers) != 4 * key_size * size:
        raise _damaged(path)
    matrix = np.frombuffer(numbers, "<f4").reshape(key_size, size)
    if not np.isfinite(matrix).all():
        raise _damaged(path)
    return Directions(matrix, keys)


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little")


def _damaged(path: Path) -> MemoryIndexError:
    return MemoryIndexError(f"{path}: damaged; delete it and run tmnmt keys again")
