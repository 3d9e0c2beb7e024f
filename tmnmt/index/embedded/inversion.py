"""Making postings: from token sequences to the arrays of `kernels.Arrays`, with bounded memory."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tmnmt.errors import DataError
from tmnmt.index.base import MAX_TOKENS
from tmnmt.index.embedded.packed import NAMES, block_starts, width_of, words_for
from tmnmt.index.embedded.positions import POSITION, TARGET, order_of
from tmnmt.index.embedded.postings import DOCUMENTS, IDS, POSTING, SKELETONS, VOCABULARY
from tmnmt.index.skeleton import sorted_hashes
from tmnmt.segments import Segment
from tmnmt.system import reserve

if TYPE_CHECKING:
    from tmnmt.index.kernels.inversion import Int32, Int64, UInt64

# so many of the most frequent features are columns: 32 bytes a group, whatever the memory; twice as
# many take as long to search
MOST_COLUMNS = 256
_BLOCK = 512  # groups; columns are whole blocks, as `kernels.BLOCK`
MOST_POSITIONS = (1 << 31) - 1  # of a side
_TOKENS_AT_ONCE = 1 << 20  # that are numbered anew


class _Numbers(dict[str, int]):
    """Numbers new strings from 0 in order of appearance."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


class Inversion:
    """Collects segments, then writes the postings of all their sources, or where words stand in
    their targets. Tokens wait in a file without a name, 4 bytes each."""

    def __init__(self, waiting: Path | None = None, side: Literal["src", "tgt"] = "src") -> None:
        """waiting: the folder where tokens wait; None takes the system's folder of temporary files.
        side: the texts that are read, "src" or "tgt"."""
        from tmnmt.index.kernels.inversion import compile_all
        from tmnmt.index.kernels.tokens import NewWords

        compile_all()
        self._side, self.tokens = side, 0  # of all texts so far
        self._file = tempfile.TemporaryFile(dir=waiting)  # noqa: SIM115  # lives as long as this
        self._lengths, self._ids, self.without_tokens = array("i"), array("q"), array("q")
        self._changed_of, self._document_of = array("i"), array("i")
        self._vocabulary, self._changed, self._documents = NewWords(), _Numbers(), _Numbers()

    def add(self, numbers: Iterable[int], segments: Sequence[Segment]) -> None:
        """Takes segments. Those without tokens match nothing: they are left out, and stand in
        `without_tokens`.

        numbers: the ids of the segments.
        segments: the segments.

        Raises DataError for a source of more than 65,535 tokens."""
        tokens, lengths = self._vocabulary.encode(
            [getattr(segment, self._side) for segment in segments]
        )
        for number, length, segment in zip(numbers, lengths.tolist(), segments, strict=True):
            if length > MAX_TOKENS and self._side == "src":
                raise DataError(
                    f"segment {number}: {length:,} match tokens; at most {MAX_TOKENS:,} are allowed"
                )
            if not length:
                self.without_tokens.append(number)
                continue
            self._lengths.append(length)
            self._ids.append(number)
            self._changed_of.append(self._changed[segment.changed])
            self._document_of.append(self._documents[segment.document])
        self._file.write(tokens.data)
        self.tokens += len(tokens)

    def write(self, folder: Path, *, positions: bool = True) -> tuple[int, int]:
        """Writes the postings, and returns how many distinct sources and distinct tokens they hold.

        folder: the folder of the postings, which is made.
        positions: whether it is also written where every word stands."""
        folder.mkdir()
        by_rank = self._newest_first()
        tokens, words = self._numbered(positions)
        with tempfile.TemporaryFile(dir=folder) as laid_out:
            group_ids, lengths, group_tokens = lay_out_groups(
                laid_out, tokens, _numpy(self._lengths)
            )
            self._file.close()
            write_tokens(folder, group_tokens, len(words))
            write_features(folder, group_tokens, lengths, len(words))
            if positions:
                write_positions(folder, "", group_tokens, len(words))
            hashes = sorted_hashes(words, group_tokens, lengths)
        arrays = self._of_groups(group_ids, lengths, by_rank) | {VOCABULARY: _text(words)}
        arrays["document_of"] = _numpy(self._document_of)[by_rank]
        arrays[SKELETONS] = hashes
        arrays[DOCUMENTS] = np.frombuffer(json.dumps(list(self._documents)).encode(), np.uint8)
        for name, values in arrays.items():
            np.save(folder / f"{name}.npy", values)
        return len(lengths), len(words)

    def write_targets(self, folder: Path) -> None:
        """Writes where every word of the targets stands. The sequences themselves are not kept.

        folder: the folder of the postings."""
        by_rank = self._newest_first()
        tokens, words = self._numbered(True)
        with tempfile.TemporaryFile(dir=folder) as laid_out:
            group_ids, lengths, group_tokens = lay_out_groups(
                laid_out, tokens, _numpy(self._lengths)
            )
            self._file.close()
            write_positions(folder, TARGET, group_tokens, len(words))
        arrays = self._of_groups(group_ids, lengths, by_rank) | {VOCABULARY: _text(words)}
        for name, values in arrays.items():
            np.save(folder / f"{TARGET}{name}.npy", values)

    def _of_groups(
        self, group_ids: Int32, lengths: Int32, by_rank: NDArray[Any]
    ) -> dict[str, NDArray[Any]]:
        """Groups of these lengths, by what group every segment is `group_ids`, and their
        segments."""
        ids = _numpy(self._ids)[by_rank]
        return {
            **_lengths(lengths),
            **_members(group_ids, len(lengths), by_rank),
            IDS: ids.astype(np.min_scalar_type(ids.max(initial=0))),
        }

    def close(self) -> None:
        """Lets go of the tokens that wait. What cannot be written any more (disk full) is not
        needed any more."""
        with suppress(OSError):
            self._file.close()

    def _numbered(self, in_order: bool) -> tuple[Int32, list[str]]:
        """The tokens of all texts, end to end, as numbers of words; `in_order`: of words in the
        order that `order_of` says."""
        self._file.flush()
        mapped = np.memmap(self._file, np.int32, "r+") if self._lengths else np.empty(0, np.int32)
        tokens, text = np.asarray(mapped), self._vocabulary.text().tobytes().decode()
        words = text.split("\n") if text else []
        if in_order:
            order = sorted(range(len(words)), key=lambda number: order_of(words[number]))
            words = [words[number] for number in order]
            numbers = np.empty(len(words), np.int32)
            numbers[order] = np.arange(len(words), dtype=np.int32)
            for start in range(0, len(tokens), _TOKENS_AT_ONCE):
                stretch = slice(start, start + _TOKENS_AT_ONCE)
                tokens[stretch] = numbers[tokens[stretch]]
        return tokens, words

    def _newest_first(self) -> NDArray[np.signedinteger[Any]]:
        order = (
            np.argsort(np.argsort(np.array(list(self._changed), dtype=object)))
            if self._changed
            else np.empty(0)
        )
        changed = order.astype(np.int32)[_numpy(self._changed_of)]
        return np.lexsort((_numpy(self._ids), -changed))


class BothSides:
    """Collects segments, then writes all that an index needs to search them."""

    def __init__(self, waiting: Path) -> None:
        """waiting: the folder where tokens wait."""
        self._sides = Inversion(waiting), Inversion(waiting, "tgt")

    def add(self, numbers: Sequence[int], segments: Sequence[Segment]) -> None:
        """Takes segments.

        numbers: the ids of the segments.
        segments: the segments.

        Raises DataError for a source of more than 65,535 tokens."""
        for side in self._sides:
            side.add(numbers, segments)

    @property
    def tokens(self) -> int:
        """How many match tokens the side with more of them has."""
        return max(side.tokens for side in self._sides)

    def write(self, folder: Path) -> tuple[int, int]:
        """Writes the postings, and returns how many distinct sources and distinct tokens of
        sources they hold.

        folder: the folder of the postings, which is made."""
        sources, targets = self._sides
        counts = sources.write(folder)
        targets.write_targets(folder)
        return counts

    def close(self) -> None:
        """Lets go of what waits."""
        for side in self._sides:
            side.close()


def lay_out_groups(file: IO[bytes], tokens: Int32, lengths: Int32) -> tuple[Int32, Int32, Int32]:
    """The distinct sequences among many, sorted by length. Returns the group of every sequence, the
    length of every group, and the tokens of the groups, end to end, which are in the file.

    file: an empty file for them.
    tokens: (tokens,), all sequences end to end.
    lengths: (sequences,), how many tokens each sequence has."""
    from tmnmt.index.kernels.inversion import hashes, lay_out, number_groups

    starts = _sums(lengths)
    order = np.lexsort((hashes(tokens, starts), lengths))
    group_ids, count = number_groups(tokens, starts, order)
    lengths_of = np.empty(count, np.int32)
    lengths_of[group_ids] = lengths
    group_tokens = _of_file(file, int(lengths_of.sum(dtype=np.int64)))
    lay_out(tokens, starts, order, group_ids, group_tokens)
    return group_ids, lengths_of, group_tokens


def write_tokens(folder: Path, tokens: Int32, vocabulary: int) -> None:
    """Writes the tokens of groups.

    folder: the folder of the postings.
    tokens: (tokens,), the groups end to end.
    vocabulary: how many distinct tokens there are."""
    from tmnmt.index.kernels.packed import pack

    width = width_of(vocabulary)
    pack(tokens, width, _new(folder / "tokens.npy", np.uint64, (words_for(len(tokens) * width),)))


def write_features(folder: Path, tokens: Int32, lengths: Int32, vocabulary: int) -> None:
    """Writes the columns and postings of groups.

    folder: the folder of the postings.
    tokens: (tokens,), the groups end to end.
    lengths: (groups,), how many tokens each group has.
    vocabulary: how many distinct tokens there are."""
    from tmnmt.index.kernels.inversion import count_features, fill, most_occurrences

    feature_start = _sums(most_occurrences(tokens, lengths, vocabulary)).astype(np.int32)
    counts = count_features(tokens, lengths, feature_start)
    frequent = np.argsort(-counts, kind="stable")[:MOST_COLUMNS]
    column_of = np.full(len(counts), -1, np.int16)
    column_of[frequent] = np.arange(len(frequent))
    posting_start = _sums(np.where(column_of < 0, counts, 0))
    words = -(-len(lengths) // _BLOCK) * _BLOCK // 64
    columns = _new(folder / "columns.npy", np.uint64, (len(frequent) + 1, words))
    with tempfile.TemporaryFile(dir=folder) as file:
        postings = _of_file(file, int(posting_start[-1]))
        fill(tokens, lengths, feature_start, column_of, posting_start, columns, postings)
        write_lists(folder, POSTING, postings, posting_start)
    arrays: dict[str, NDArray[Any]] = {
        "feature_start": feature_start,
        "column_of": column_of,
        "column_blocks": column_blocks(columns),
    }
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)


def column_blocks(columns: UInt64) -> UInt64:
    """(columns, tiles), a bit for every block of a column: whether any group of it has the feature.

    columns: (columns, 8 words a block), the columns."""
    rows = []
    for column in columns:
        is_any = column.reshape(-1, _BLOCK // 64).any(axis=1)
        padded = np.zeros(-(-len(is_any) // 64) * 64, np.uint8)
        padded[: len(is_any)] = is_any
        rows.append(np.packbits(padded, bitorder="little").view(np.uint64))
    return np.stack(rows)


def write_positions(folder: Path, prefix: str, tokens: Int32, vocabulary: int) -> None:
    """Writes where every word stands in the groups.

    folder: the folder of the postings.
    prefix: what the names of the files begin with, which tells the side.
    tokens: (tokens,), the groups end to end.
    vocabulary: how many distinct tokens there are.

    Raises DataError for more than 2^31 tokens."""
    from tmnmt.index.kernels.inversion import place

    if len(tokens) > MOST_POSITIONS:
        raise DataError(
            f"{len(tokens):,} match tokens in the distinct texts of one part of an index; at most "
            f"{MOST_POSITIONS:,} are allowed"
        )
    start = _sums(np.bincount(tokens, minlength=vocabulary))
    with tempfile.TemporaryFile(dir=folder) as file:
        positions = _of_file(file, len(tokens))
        place(tokens, start[:-1].copy(), positions)
        write_lists(folder, prefix + POSITION, positions, start)


def write_lists(folder: Path, kind: str, numbers: Int32, start: Int64) -> None:
    """Writes ascending lists, as `PackedLists` reads them.

    folder: the folder of the postings.
    kind: what the names of the files begin with.
    numbers: (numbers,), the lists end to end.
    start: (lists + 1,), where each list begins."""
    from tmnmt.index.kernels.packed import head_blocks, pack_lists

    blocks = int(block_starts(start)[-1])
    firsts, headers = np.empty(blocks, np.int32), np.empty(blocks, np.int64)
    bits = head_blocks(numbers, start, firsts, headers)
    *names, packed = (folder / f"{name.format(kind)}.npy" for name in NAMES)
    heads: tuple[NDArray[Any], ...] = start, firsts, headers
    for path, values in zip(names, heads, strict=True):
        np.save(path, values)
    pack_lists(numbers, start, headers, _new(packed, np.uint64, (words_for(bits),)))


def _text(words: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(words).encode(), np.uint8)


def _new(path: Path, kind: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
    """A new array of zeros that is the content of a file."""
    if 0 in shape:  # nothing to map
        np.save(path, np.empty(shape, kind))
        return np.empty(shape, kind)
    array = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
    with path.open("r+b") as file:
        reserve(file.fileno(), path.stat().st_size)
    return np.asarray(array)


def _of_file(file: IO[bytes], size: int) -> Int32:
    """So many numbers, zeros, that are the content of an empty file."""
    if not size:
        return np.empty(0, np.int32)
    file.truncate(4 * size)
    reserve(file.fileno(), 4 * size)
    return np.asarray(np.memmap(file, np.int32, "r+"))


def _sums(numbers: NDArray[Any]) -> Int64:
    """0, and the sums of the first one, two ... numbers."""
    sums = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(numbers, out=sums[1:])
    return sums


def _lengths(lengths: Int32) -> dict[str, NDArray[Any]]:
    longest = int(lengths[-1]) if len(lengths) else 0
    length_start = np.searchsorted(lengths, np.arange(longest + 2)).astype(np.int64)
    return {
        "length_start": length_start,
        "token_start": _sums(np.diff(length_start) * np.arange(longest + 1)),
    }


def _members(group_ids: Int32, groups: int, by_rank: NDArray[Any]) -> dict[str, NDArray[Any]]:
    of_rank = group_ids[by_rank]
    return {
        "member_offsets": _sums(np.bincount(of_rank, minlength=groups)).astype(np.int32),
        "members": np.argsort(of_rank, kind="stable").astype(np.int32),
    }


def _numpy(values: array[int]) -> NDArray[Any]:
    return (
        np.frombuffer(values, dtype=np.dtype(values.typecode))
        if values
        else np.empty(0, np.dtype(values.typecode))
    )
