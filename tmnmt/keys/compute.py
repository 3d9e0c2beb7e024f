"""The keys of all pairs of a memory, computed ahead with one model: what is missing is computed,
the rest is kept.

`plan` says which pairs have no keys yet and how many positions and bytes that makes; `compute`
joins what other machines computed, then computes the rest, block by block."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from tmnmt.durable import rename
from tmnmt.errors import DataError, MemoryIndexError, UsageError
from tmnmt.index.base import FolderIndex
from tmnmt.keys.derived import DERIVED
from tmnmt.keys.files import (
    HEADER_FILE,
    RECORD,
    KeyFiles,
    KeyWriter,
    digest_of,
    keys_dir,
    models_of,
)
from tmnmt.keys.layout import DIRECTIONS, PAIRS, Array, Header
from tmnmt.keys.pair_keys import encode_pair, force_all, force_codes
from tmnmt.models.folder import Model
from tmnmt.models.shortlist import Shortlist
from tmnmt.segments import Segment
from tmnmt.system import MOVES_OPEN_FILES
from tmnmt.vocab import Vocabulary

# computed between two writes: what a kill can lose, some seconds on a CPU
BLOCK_POSITIONS = 1 << 14
SEGMENTS_READ = 500
MAX_SUBWORDS = 80  # of a piece, where the model's config.toml does not say what it was trained on
MAX_WHOLE = 240  # of a segment beside a good match, there
PART = "part-{}-of-{}"
OLD = ".old"  # behind the name of a folder of keys that is written again

log = logging.getLogger(__name__)

Shard = tuple[int, int]  # i of n, counted from 1


@dataclass(frozen=True)
class Plan:
    """What has to be done so that every pair of the index has its keys.

    alive: (segments,) RECORD without rows, of the segments of the index, or of the shard: id,
    digest, length in target positions.
    outdated: how many pairs have keys and are in the index no more, because they were deleted or
    corrected; their keys are never read. 0 for a shard.
    missing: (pairs,) RECORD of the pairs whose keys have to be computed, each pair once.
    part_positions: how many positions parts of other machines hold.
    rewritten: how many positions are written again, without those of deleted pairs.
    header: what the keys belong to."""

    alive: Array
    outdated: int
    missing: Array
    part_positions: int
    rewritten: int
    header: Header

    @property
    def positions(self) -> int:
        """Target positions to compute."""
        return int(self.missing["length"].sum())

    @property
    def all_positions(self) -> int:
        """Positions of all distinct pairs, those that have their keys too."""
        _, first = np.unique(_digests(self.alive), return_index=True)
        return int(self.alive["length"][first].sum())

    @property
    def bytes(self) -> int:
        """Bytes on disk that the work needs, records and what is copied included; FAISS not."""
        rows = self.positions + self.part_positions + self.rewritten
        return rows * self.header.position_bytes + len(self.alive) * RECORD.itemsize


def longest(model: Model) -> int:
    """How many subwords the longest piece has that the model translates at once.

    model: the model."""
    return int(model.config.get("max_subwords", MAX_SUBWORDS))


def longest_whole(model: Model) -> int:
    """How many subwords the longest segment has that is translated at once beside a good match.

    model: the model."""
    if "max_subwords" not in model.config:
        return MAX_WHOLE
    return model.backbone.reach * longest(model)


def header_of(model: Model, layout: str = PAIRS) -> Header:
    """What keys of a model are bound to. A side of a pair is cut where it is a third longer than
    any segment that is translated at once.

    model: the model.
    layout: the layout of the keys."""
    return Header(
        model=model.states_hash,
        context_size=model.backbone.context_size,
        hidden_size=model.backbone.hidden_size,
        max_subwords=4 * longest_whole(model) // 3,
        layout=layout,
    )


def precomputed(index_dir: Path, header: Header) -> KeyFiles | None:
    """The keys that an index has; None where it has none. A logged warning says where it has keys
    of other models, or in another layout, only.

    index_dir: the folder of the index.
    header: what the keys have to belong to.

    Raises MemoryIndexError where they are damaged, or not what they say."""
    layout = header.layout
    folder = keys_dir(index_dir, header.model, layout)
    if (folder / HEADER_FILE).exists():
        return KeyFiles(folder, header)
    other_models = models_of(index_dir, layout)
    if other_models:
        log.warning(
            "%s: has keys of model %s, none of %s; they are computed at need",
            index_dir,
            other_models[0],
            header.model,
        )
    elif layout == DIRECTIONS and header.model in models_of(index_dir):
        log.warning(
            "%s: has keys of model %s for other modes than nearest; those of nearest are computed "
            "at need. Run tmnmt keys --mode nearest to compute them ahead",
            index_dir,
            header.model,
        )
    return None


def plan(index: FolderIndex, header: Header, vocab: Vocabulary, shard: Shard | None = None) -> Plan:
    """What is missing of an index's keys, or of one shard of them. Reads all segments and encodes
    their targets. Pairs are dealt to shards by their digest, equal ones to the same, whatever else
    the index holds.

    index: the index.
    header: what the keys belong to.
    vocab: the vocabulary of the model.
    shard: the number of the shard, from 1, and how many there are; None plans all keys."""
    alive = _alive(index, header, vocab, shard)
    folder = keys_dir(index.folder, header.model, header.layout)
    main = _open(folder, header)
    shard_files = _open(folder / PART.format(*shard), header) if shard is not None else None
    parts = [KeyFiles(path, header) for path in parts_of(folder)] if shard is None else []
    present = _digests(
        *(files.records for files in [shard_files, *parts, main] if files is not None)
    )
    rewritten = main.positions if main and shard is None and mostly_dead(main, alive) else 0
    part_positions = sum(part.positions for part in parts)
    outdated = 0 if shard is not None else len(np.setdiff1d(present, _digests(alive)))
    missing = _missing(alive, present)
    return Plan(alive, outdated, missing, part_positions, rewritten, header)


def compute(
    index: FolderIndex,
    model: Model,
    work: Plan,
    shard: Shard | None = None,
    device: str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> KeyFiles:
    """Computes what a plan says is missing, in the order of the segments, and returns the keys.

    Ended at any moment, all but the last block is kept, and the next call goes on from there.
    Without a shard the parts that other machines computed are taken in first. Searches,
    translations and changes of the index go on meanwhile; a segment that was changed since the plan
    was made is left for the next call.

    index: the index.
    model: the model.
    work: the plan.
    shard: the number of the shard, from 1, and how many there are; None computes all keys.
    device: what torch computes on.
    progress: is called with the number of target positions that are done since the last call; None
    tells nobody.

    Raises LockedError where another process computes the same. Raises MemoryIndexError where the
    disk is full."""
    header = work.header
    folder = keys_dir(index.folder, header.model, header.layout)
    if shard is not None:
        folder = folder / PART.format(*shard)
    else:
        _set_aside(folder, work)
    backbone = model.for_directions if header.layout == DIRECTIONS else model.decoding
    shortlist = Shortlist.by_default(model)
    with KeyWriter.open(folder, header) as writer:
        if shard is None:
            for path in parts_of(folder):
                _join(writer, path, work)
        for block in _blocks(work.missing):
            segments = _unchanged(block, index)
            pairs = [
                encode_pair((s.src, s.tgt), model.vocab, header.max_subwords) for s, _ in segments
            ]
            if header.layout == DIRECTIONS:
                forced = force_codes(backbone, pairs, device, shortlist)
            else:
                forced = force_all(backbone, pairs, device)
            keys = [header.encoded(of_pair) for of_pair in forced]
            writer.append(
                [segment.id for segment, _ in segments], [digest for _, digest in segments], keys
            )
            if progress:
                progress(int(block["length"].sum()))
        _link(writer, work.alive)
    files = KeyFiles(folder, header)
    if shard is None and header.layout == PAIRS:
        for derived in DERIVED.values():
            derived.update(files)
    return files


def queries_of(model: Model, src: str, tgt: str, device: str = "cpu") -> tuple[Array, Array]:
    """What a `KeySearch` takes: c and s of every target position of a pair (T, l + d) float32, and
    the subwords (T,).

    model: the model.
    src: the source.
    tgt: its translation.
    device: what torch computes on."""
    coded = encode_pair((src, tgt), model.vocab, header_of(model).max_subwords)
    (keys,) = force_all(model.decoding, [coded], device)
    return torch.cat([keys.contexts, keys.hiddens], 1).cpu().numpy(), keys.ids.cpu().numpy()


def check_disk(index_dir: Path, required_bytes: int) -> int:
    """The free bytes of the disk with an index.

    index_dir: the folder of the index, which may not be there yet.
    required_bytes: how many bytes are needed.

    Raises DataError where fewer are free."""
    folders = (index_dir, *index_dir.absolute().parents)
    free = shutil.disk_usage(next(folder for folder in folders if folder.exists())).free
    if required_bytes > free:
        message = f"the keys need {required_bytes / 1e9:,.2f} GB, and {free / 1e9:,.2f} GB are free"
        raise DataError(f"{index_dir}: {message}; nothing was computed")
    return free


def read_shard(text: str) -> Shard:
    """The number of a shard, from 1, and how many there are.

    text: both, as in "2/4".

    Raises UsageError where that is no part of a whole."""
    i, _, n = text.partition("/")
    if not (i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n)):
        raise UsageError(
            f"--shard {text} is no part of a whole; write i/n with 1 <= i <= n, such as 2/4"
        )
    return int(i), int(n)


def parts_of(folder: Path) -> list[Path]:
    """The folders whose keys have to be joined to those in a folder: parts of other machines, and
    an old version.

    folder: the folder."""
    old = folder.with_name(folder.name + OLD)
    headers = [
        *folder.glob(f"part-*/{HEADER_FILE}"),
        *old.glob(f"part-*/{HEADER_FILE}"),
        *old.glob(HEADER_FILE),
    ]
    return [path.parent for path in headers]


def mostly_dead(files: KeyFiles, alive: Array) -> bool:
    """Whether most positions belong to pairs that the index has no more.

    files: the keys.
    alive: (segments,) RECORD, the records of the pairs that the index has."""
    living = files.records[np.isin(_digests(files.records), _digests(alive))]
    _, first = np.unique(living["start"], return_index=True)
    return int(living["length"][first].sum()) * 2 < files.positions


def _alive(index: FolderIndex, header: Header, vocab: Vocabulary, shard: Shard | None) -> Array:
    blocks = [np.zeros(0, RECORD)]
    segments = index.segments()
    while block_segments := list(islice(segments, SEGMENTS_READ)):
        digests = [digest_of(segment.src, segment.tgt) for segment in block_segments]
        block = np.zeros(len(block_segments), RECORD)
        block["id"], block["digest"] = [segment.id for segment in block_segments], digests
        block["length"] = [
            min(len(vocab.encode(segment.tgt)), header.max_subwords) + 1
            for segment in block_segments
        ]
        if shard is not None:
            block = block[block["digest"][:, 1] % np.uint64(shard[1]) == shard[0] - 1]
        blocks.append(block)
    return np.concatenate(blocks)


def _missing(alive: Array, present: Array) -> Array:
    """The first of every pair that is not held, in the order of ids."""
    digests, first = np.unique(_digests(alive), return_index=True)
    return alive[np.sort(first[~np.isin(digests, present)])]


def _unchanged(records: Array, index: FolderIndex) -> list[tuple[Segment, tuple[int, int]]]:
    """The segments of the records that are as they were, with their digests."""
    now = index.find(records["id"].tolist())
    return [
        (segment, digest)
        for number, digest in zip(records["id"].tolist(), _tuples(records), strict=True)
        if (segment := now.get(number)) and digest_of(segment.src, segment.tgt) == digest
    ]


def _join(writer: KeyWriter, path: Path, work: Plan) -> None:
    """Takes over the keys of a part that are wanted and not there, and removes the part."""
    _take_over(writer, KeyFiles(path, work.header), work)  # mapped until here: Windows deletes none
    (path / HEADER_FILE).unlink()  # first: without it what a kill leaves is no part any more
    shutil.rmtree(path)


def _take_over(writer: KeyWriter, part: KeyFiles, work: Plan) -> None:
    main = KeyFiles(writer.folder, writer.header)
    living = part.records[np.isin(_digests(part.records), _digests(work.alive))]
    for block in _blocks(_missing(living, _digests(main.records))):
        digests = _tuples(block)
        keys = [
            part.read(number)
            for digest in digests
            if (number := part.record_of(digest)) is not None
        ]
        writer.append(block["id"].tolist(), digests, keys)


def _link(writer: KeyWriter, alive: Array) -> None:
    """Gives every segment that is alive a record, where its pair has rows."""
    records = KeyFiles(writer.folder, writer.header).records
    digests, first = np.unique(_digests(records), return_index=True)
    has_rows = np.isin(_digests(alive), digests) & ~np.isin(
        _record_keys(alive), _record_keys(records)
    )
    links = records[first[np.searchsorted(digests, _digests(alive[has_rows]))]]
    links["id"] = alive["id"][has_rows]
    writer.link(links)


def _set_aside(folder: Path, work: Plan) -> None:
    """Where the keys are to be written again, makes a part of what is there, to be joined without
    what is dead. Raises MemoryIndexError where another program has them open, on Windows."""
    old = folder.with_name(folder.name + OLD)
    with KeyWriter.open(folder, work.header):
        if old.exists() and not parts_of(folder):
            shutil.rmtree(old)  # what a killed run left of it
        is_due = work.rewritten and not old.exists()
        if is_due and MOVES_OPEN_FILES:
            rename(folder, old)  # the lock goes with the folder: who waits for it is told so
    if is_due and not MOVES_OPEN_FILES:
        try:
            rename(folder, old)  # who has taken the lock meanwhile keeps it from being moved
        except PermissionError as error:
            raise MemoryIndexError(
                f"{folder}: another program has these keys open, which has to end first"
            ) from error


def _blocks(records: Array) -> Iterator[Array]:
    """The records in runs of about BLOCK_POSITIONS."""
    ends = np.cumsum(records["length"])
    start = 0
    while start < len(records):
        offset = int(ends[start]) - int(records["length"][start])
        end = max(start + 1, int(np.searchsorted(ends, offset + BLOCK_POSITIONS, "right")))
        yield records[start:end]
        start = end


def _open(folder: Path, header: Header) -> KeyFiles | None:
    return KeyFiles(folder, header) if (folder / HEADER_FILE).exists() else None


def _digests(*records: Array) -> Array:
    """The digests of all records as one array of 16 bytes each, which sorts and compares."""
    digests = np.concatenate([np.zeros((0, 2), "<u8"), *(block["digest"] for block in records)])
    return digests.view("V16")[:, 0]


def _record_keys(records: Array) -> Array:
    """Digest and id of every record as 24 bytes."""
    names = np.hstack([records["digest"], records["id"].astype("<u8")[:, None]])
    return np.ascontiguousarray(names).view("V24")[:, 0]


def _tuples(records: Array) -> list[tuple[int, int]]:
    return list(map(tuple, records["digest"].tolist()))
