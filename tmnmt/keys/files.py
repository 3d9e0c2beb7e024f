"""The keys of a memory's pairs on disk: c', z', y' of every target position, computed once with one
model.

    INDEX/keys/<model hash>/              layout `pairs`
        keys.json    what the keys belong to
        c.u8         (N, ...) contexts c' (N, l), raw: M is folded into the query; `quantised`
        z.u8         (N, ...) states z' (N, d)
        y.i32        (N,)   subword ids y', </s> too
        offsets      which rows are whose: frames of records, each frame with its checksums
    INDEX/keys/<model hash>.directions/   layout `directions`: s.u4 in place of c.u8 and z.u8
        s.u4         (N, ...) directions of the states z'; `nibbles`
        y.i32        (N,)   subword ids y' in 24 bits, and how likely the model found them

All but keys.json only grow. A block's rows are on disk before the frame that names them: what a
killed writer left behind the last whole frame was never there, readers stop before it and the next
writer cuts it off. A frame ends with a byte that is not zero, so that zeros, which a power cut may
leave from a sector on, are told from damage; only where that byte stands alone in its sector a flip
to zero passes for a power cut: the block is computed again. A record holds a digest of its pair's
two texts: keys are found by what they were computed from, and neither a compaction nor a new build
of the index can make them wrong. Equal pairs share their rows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np

from tmnmt.durable import make_folder, write
from tmnmt.errors import MemoryIndexError, short_repr
from tmnmt.index.embedded.journal import SECTOR
from tmnmt.index.embedded.lock import writing
from tmnmt.index.embedded.manifest import KEYS_DIR
from tmnmt.index.embedded.small_json import is_count, is_text, read_small
from tmnmt.keys.layout import FORMATS, LAYOUTS, PAIRS, Array, Header, Keys
from tmnmt.keys.quantised import Quantised
from tmnmt.system import flush, flush_folder

HEADER_FILE, OFFSETS_FILE = "keys.json", "offsets"
MOST_HEADER_BYTES = 1 << 13  # of keys.json
LONGEST_NAME = 100  # of a model
LARGEST = 1 << 20  # of l, d and where pairs are cut
MOST_ROWS = 1 << 40
# of a segment: its id, its first row and number of rows, their CRC-32, the digest of its texts
RECORD = np.dtype(
    [("id", "<i8"), ("start", "<i8"), ("length", "<i4"), ("content", "<u4"), ("digest", "<u8", 2)]
)
# CRC-32: of its records; of both
_FRAME = np.dtype([("records", "<u4"), ("checksum", "<u4"), ("own", "<u4")])
_END = b"\n"  # behind the records of a frame
_CHECKSUM = "checksum"  # in keys.json, of all else in it


def keys_dir(index_dir: Path, model: str, layout: str = PAIRS) -> Path:
    """Where an index has the keys of a model.

    index_dir: the folder of the index.
    model: the hash of the model.
    layout: the layout of the keys."""
    return index_dir / KEYS_DIR / (model if layout == PAIRS else f"{model}.{layout}")


def digest_of(src: str, tgt: str) -> tuple[int, int]:
    """128 bits that tell a pair from every other.

    src: the source.
    tgt: the target."""
    digest = blake2b(
        f"{len(src)}\n{src}{tgt}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


class KeyFiles:
    """The keys in a folder, mapped, as they were when it was opened; what is added later is not
    seen."""

    def __init__(self, folder: Path, header: Header) -> None:
        """folder: the folder of the keys.
        header: what they have to belong to.

        Raises MemoryIndexError where there are no keys, where they are damaged, or where they
        belong to something else."""
        self.folder, self.header = folder, header
        _check_header(folder, header)
        self.records, _ = _read_records(
            folder
        )  # (segments,) RECORD, in the order they were written
        self.positions = _rows(self.records)  # N
        self._rows = self._mapped()
        self.ids = self._rows[-1]  # (N,)
        self._by_digest = np.argsort(self.records["digest"][:, 0], kind="stable")
        self._digests = self.records["digest"][self._by_digest, 0]

    @cached_property
    def contexts(self) -> Quantised:
        """The contexts c' (N, l), in the layout `pairs`."""
        return Quantised(self._rows[0], self.header.context_size, self.header.bits)

    @cached_property
    def hiddens(self) -> Quantised:
        """The hidden states z' (N, d), in the layout `pairs`."""
        return Quantised(self._rows[1], self.header.hidden_size, self.header.bits)

    @classmethod
    def open(cls, index_dir: Path, model: str) -> KeyFiles:
        """The keys of the layout `pairs` that an index has of a model.

        index_dir: the folder of the index.
        model: the hash of the model.

        Raises MemoryIndexError where it has none; the error names the models that it has keys
        of."""
        folder = keys_dir(index_dir, model)
        if not (folder / HEADER_FILE).exists():
            model_names = ", ".join(models_of(index_dir))
            state = f"has keys of model {model_names} only, none" if model_names else "has no keys"
            raise MemoryIndexError(
                f"{index_dir}: {state} of model {model}; compute them with tmnmt keys --faiss auto"
            )
        header = _read_header(folder)
        return cls(folder, replace(header, model=model))

    def find(self, src: str, tgt: str) -> Keys | None:
        """The keys of a pair by its texts; None where there are none.

        src: the source.
        tgt: the target.

        Raises MemoryIndexError where they are damaged."""
        record = self.record_of(digest_of(src, tgt))
        return None if record is None else self.read(record)

    def record_of(self, digest: tuple[int, int]) -> int | None:
        """The number of a record with a digest; None where there is none.

        digest: the digest, as `digest_of` gives it."""
        index = int(np.searchsorted(self._digests, np.uint64(digest[0])))
        while index < len(self._digests) and int(self._digests[index]) == digest[0]:
            number = int(self._by_digest[index])
            if int(self.records["digest"][number, 1]) == digest[1]:
                return number
            index += 1
        return None

    def read(self, number: int) -> Keys:
        """The keys of a record, copied from the disk.

        number: the number of the record.

        Raises MemoryIndexError where they are not what was written."""
        record = self.records[number]
        rows = slice(int(record["start"]), int(record["start"]) + int(record["length"]))
        keys = tuple(np.array(column[rows]) for column in self._rows)
        if _content(keys) != int(record["content"]):
            problem = f"{self.folder}: the keys of segment {record['id']} are damaged"
            raise MemoryIndexError(f"{problem}; delete this folder and run tmnmt keys again")
        return keys

    def check_words(self, ids: Array, vocabulary: int) -> None:
        """Checks that subwords are in a vocabulary: whoever wrote them may have written a right
        checksum, too.

        ids: the subwords.
        vocabulary: how many subwords the vocabulary has.

        Raises MemoryIndexError where one of them is not."""
        if ids.size and not (ids.min() >= 0 and ids.max() < vocabulary):
            problem = f"{self.folder}: keys of subwords that the model does not have"
            raise MemoryIndexError(f"{problem}; delete this folder and run tmnmt keys again")

    def _mapped(self) -> tuple[Array, ...]:
        arrays = []
        for name, dtype, width in self.header.columns:
            path, shape = self.folder / name, (self.positions, width)
            size = self.positions * width * np.dtype(dtype).itemsize
            empty = not self.positions  # what is empty cannot be mapped, and may not be there yet
            if not empty and (not path.exists() or path.stat().st_size < size):
                raise _too_short(path, size)
            # plain arrays: a slice of a memmap takes several times as long
            arrays.append(
                np.empty(shape, dtype)
                if empty
                else np.asarray(np.memmap(path, dtype, "r", shape=shape)).view(np.ndarray)
            )
        return (*arrays[:-1], arrays[-1][:, 0])


class KeyWriter:
    """Adds keys to a folder. A block is there as a whole when `append` returns, or not at all."""

    def __init__(self, folder: Path, header: Header) -> None:
        """folder: the folder of the keys, of which the caller holds the right to write.
        header: what the keys belong to.

        Raises MemoryIndexError where what is there is damaged."""
        self.folder, self.header = folder, header
        records, self._offset = _read_records(folder)
        self.positions = _rows(records)
        self._files = [
            (folder / name, np.dtype(dtype), width) for name, dtype, width in header.columns
        ]
        for path, dtype, width in self._files:  # what a killed writer left
            _cut(path, self.positions * width * dtype.itemsize)
        _cut(folder / OFFSETS_FILE, self._offset)
        flush_folder(folder)

    @classmethod
    @contextmanager
    def open(cls, folder: Path, header: Header) -> Iterator[KeyWriter]:
        """Gives the one writer to a folder.

        folder: the folder, which is made where it is missing.
        header: what the keys belong to.

        Raises LockedError where another process writes to it. Raises MemoryIndexError where nobody
        can write to it, or its keys belong to something else."""
        try:
            make_folder(folder)
        except OSError as error:
            raise MemoryIndexError(f"{folder}: cannot be written to: {error.strerror}") from error
        with writing(folder, 0.0):
            if (folder / HEADER_FILE).exists():
                _check_header(folder, header)
            else:
                _write_header(folder, header)
            yield cls(folder, header)

    def append(
        self, ids: Sequence[int], digests: Sequence[tuple[int, int]], keys: Sequence[Keys]
    ) -> None:
        """Adds the keys of segments.

        ids: the ids of the segments.
        digests: the digest of every segment's texts.
        keys: the keys of every segment, as the disk has them.

        Raises MemoryIndexError where the disk is full; then nothing is added."""
        if not ids:
            return
        records = np.zeros(len(ids), RECORD)
        records["id"], records["digest"] = ids, digests
        records["length"] = [len(pair_keys[-1]) for pair_keys in keys]
        records["start"] = self.positions + np.cumsum(records["length"]) - records["length"]
        records["content"] = [_content(pair_keys) for pair_keys in keys]
        columns = [np.concatenate(column) for column in zip(*keys, strict=True)]
        self._write(records, columns)
        self.positions += len(columns[-1])

    def link(self, records: Array) -> None:
        """Adds records of rows that are there already: segments whose pair has its keys from
        another.

        records: (segments,) RECORD, the records."""
        if len(records):
            self._write(records.astype(RECORD), [])

    def _write(self, records: Array, columns: Sequence[Array]) -> None:
        body = records.tobytes()
        frame = _frame_of(len(records), zlib.crc32(body)) + body + _END
        try:
            for (path, dtype, width), column in zip(self._files, columns, strict=False):
                _put(
                    path,
                    column.astype(dtype, copy=False).tobytes(),
                    self.positions * width * dtype.itemsize,
                )
            _put(self.folder / OFFSETS_FILE, frame, self._offset)
        except OSError as error:
            raise MemoryIndexError(f"{self.folder}: nothing was added: {error.strerror}") from error
        self._offset += len(frame)


def models_of(index_dir: Path, layout: str = PAIRS) -> list[str]:
    """The hashes of the models that an index has keys of.

    index_dir: the folder of the index.
    layout: the layout of the keys."""
    suffix = keys_dir(index_dir, "", layout).name if layout != PAIRS else ""
    names = (path.parent.name for path in (index_dir / KEYS_DIR).glob(f"*/{HEADER_FILE}"))
    models = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(model for model in models if "." not in model)  # X.old: being written again


def verify_keys(index_dir: Path) -> int:
    """Reads all keys of all models, parts that wait to be joined too, and returns how many
    positions there are.

    index_dir: the folder of the index.

    Raises MemoryIndexError at the first damage, and for a folder that has the name of another
    model."""
    positions = 0
    keys = index_dir / KEYS_DIR
    for path in sorted(keys.rglob(HEADER_FILE)):
        model = path.relative_to(keys).parts[0].partition(".")[0]  # of X.old, too
        files = KeyFiles(path.parent, replace(_read_header(path.parent), model=model))
        for number in range(len(files.records)):
            files.read(number)
        positions += files.positions
    return positions


def _content(keys: Keys) -> int:
    checksum = 0
    for array in keys:
        checksum = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, checksum)
    return checksum


def _rows(records: Array) -> int:
    return int((records["start"] + records["length"]).max()) if len(records) else 0


def _read_records(folder: Path) -> tuple[Array, int]:
    """The records of all whole frames, and the bytes they take. Raises MemoryIndexError where one
    is damaged."""
    path = folder / OFFSETS_FILE
    if (
        path.exists() and not path.is_file()
    ):  # a pipe would be waited for, a device read without end
        raise MemoryIndexError(
            f"{path}: no regular file; delete its folder and run tmnmt keys again"
        )
    raw = path.read_bytes() if path.exists() else b""
    content = raw.rstrip(b"\0")
    blocks = [np.zeros(0, RECORD)]
    offset = 0
    while offset + _FRAME.itemsize <= len(content):
        start = offset + _FRAME.itemsize
        count, checksum, _ = np.frombuffer(content, _FRAME, 1, offset)[0].tolist()
        end = start + count * RECORD.itemsize
        whole = content[offset:start] == _frame_of(count, checksum)
        # the end, or its sector
        unwritten = end >= len(raw) or end // SECTOR * SECTOR >= len(content)
        if whole and end + len(_END) > len(content) and unwritten:
            break  # half a frame: never acknowledged
        if (
            not whole
            or zlib.crc32(content[start:end]) != checksum
            or content[end : end + len(_END)] != _END
        ):
            raise MemoryIndexError(
                f"{path}: damaged at byte {offset:,}; delete its folder and run tmnmt keys again"
            )
        blocks.append(np.frombuffer(content, RECORD, count, start))
        offset = end + len(_END)
    records = np.concatenate(blocks)
    if not (_are_valid(records["start"]) and _are_valid(records["length"])):
        raise MemoryIndexError(
            f"{path}: damaged (rows that cannot be); delete its folder and run tmnmt keys again"
        )
    return records, offset


def _are_valid(numbers: Array) -> bool:
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < MOST_ROWS)


def _frame_of(count: int, checksum: int) -> bytes:
    frame_checksum = zlib.crc32(np.array([count, checksum], "<u4").tobytes())
    return np.array([(count, checksum, frame_checksum)], _FRAME).tobytes()


def _read_header(folder: Path) -> Header:
    path = folder / HEADER_FILE
    try:
        _, content = read_small(path, MOST_HEADER_BYTES)
        layout = content.get("layout", PAIRS)
        if layout not in LAYOUTS:
            raise ValueError(f"layout {short_repr(layout)} is not known")
        if content.get("format") != FORMATS[layout]:
            message = (
                f"{path}: keys of format {short_repr(content.get('format'))}, this version "
                f"reads {FORMATS[layout]}"
            )
            raise MemoryIndexError(f"{message}; delete its folder and run tmnmt keys again")
        checksum = content.pop(_CHECKSUM, None)
        header = Header(**content)
        sizes = header.context_size, header.hidden_size, header.max_subwords
        has_name = (
            is_text(header.model)
            and header.model.isprintable()
            and len(header.model) <= LONGEST_NAME
        )
        if not has_name or not all(is_count(size, 1) and size <= LARGEST for size in sizes):
            raise ValueError("a size or a name is not what it should be")
        if checksum != _header_checksum(header):
            raise MemoryIndexError(
                f"{path}: damaged (checksum); delete its folder and run tmnmt keys again"
            )
        return header
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise MemoryIndexError(
            f"{path}: cannot be read ({error}); delete its folder, run tmnmt keys again"
        ) from error


def _check_header(folder: Path, expected: Header) -> None:
    header = _read_header(folder)
    if header.model != expected.model:
        raise MemoryIndexError(
            f"{folder}: these are keys of model {header.model}, not of {expected.model}"
        )
    if header != expected:
        difference = f"made with {_sizes(header)}, not {_sizes(expected)} as the model has now"
        raise MemoryIndexError(
            f"{folder}: {difference}; delete this folder and run tmnmt keys again"
        )


def _sizes(header: Header) -> str:
    return (
        f"l = {header.context_size}, d = {header.hidden_size}, pairs cut at "
        f"{header.max_subwords} subwords"
    )


def _write_header(folder: Path, header: Header) -> None:
    content = json.dumps(header.record() | {_CHECKSUM: _header_checksum(header)}) + "\n"
    write(folder / HEADER_FILE, content.encode(), alone=True)


def _header_checksum(header: Header) -> int:
    return zlib.crc32(json.dumps(header.record()).encode())


def _cut(path: Path, size: int) -> None:
    try:
        with path.open("ab") as file:
            if file.tell() < size:
                raise _too_short(path, size)
            file.truncate(size)
    except OSError as error:
        raise MemoryIndexError(f"{path}: cannot be written to: {error.strerror}") from error


def _too_short(path: Path, size: int) -> MemoryIndexError:
    return MemoryIndexError(
        f"{path}: shorter than {size:,} bytes; delete its folder and run tmnmt keys again"
    )


def _put(path: Path, content: bytes, offset: int) -> None:
    """On disk when it returns, so that no record names rows that a power cut could take."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)
        file.flush()
        flush(file.fileno())
