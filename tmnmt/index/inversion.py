"""Making postings: from token sequences to the arrays of `kernels.Arrays`, by sorting."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.errors import DataError
from tmnmt.index.postings import DOCUMENTS_FILE, IDS_FILE, VOCABULARY_FILE

MAX_TOKENS = 65_535  # shared tokens are counted in 16 bits

Ints = NDArray[np.signedinteger[Any]]


class _Numbers(dict[str, int]):
    """Numbers new strings from 0 in order of appearance."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


class Groups(NamedTuple):
    """The distinct token sequences, sorted by length: `of` every segment its group."""

    of: Ints  # (segments,)
    lengths: Ints  # (groups,)
    tokens: Ints  # (all their tokens,)


class Inversion:
    """Collects segments one by one, then writes the postings of all of them."""

    def __init__(self) -> None:
        self._tokens, self._lengths = array("i"), array("i")
        self._ids, self._changed_of, self._document_of = array("q"), array("i"), array("i")
        self._vocabulary, self._changed, self._documents = _Numbers(), _Numbers(), _Numbers()

    def add(self, number: int, tokens: Sequence[str], changed: str, document: str) -> None:
        """A segment by id. One without tokens matches nothing and is left out. Raises DataError beyond 65,535."""
        if not tokens:
            return
        if len(tokens) > MAX_TOKENS:
            raise DataError(f"segment {number}: {len(tokens):,} match tokens; at most {MAX_TOKENS:,} are allowed")
        self._tokens.extend(map(self._vocabulary.__getitem__, tokens))
        self._lengths.append(len(tokens))
        self._ids.append(number)
        self._changed_of.append(self._changed[changed])
        self._document_of.append(self._documents[document])

    def write(self, folder: Path) -> tuple[int, int]:
        """Writes the postings into the new folder; how many distinct sources and distinct tokens they hold."""
        folder.mkdir()
        groups = group_equal(_numpy(self._tokens), _numpy(self._lengths))
        by_rank = self._newest_first()
        arrays = {
            **_sequences(groups),
            **_features(groups, len(self._vocabulary)),
            **_members(groups, by_rank),
            "document_of": _numpy(self._document_of)[by_rank],
        }
        for name, values in arrays.items():
            np.save(folder / f"{name}.npy", values)
        np.save(folder / IDS_FILE, _numpy(self._ids)[by_rank])
        (folder / VOCABULARY_FILE).write_text("\n".join(self._vocabulary), encoding="utf-8")
        (folder / DOCUMENTS_FILE).write_text(json.dumps(list(self._documents)), encoding="utf-8")
        return len(groups.lengths), len(self._vocabulary)

    def _newest_first(self) -> Ints:
        order = np.argsort(np.argsort(np.array(list(self._changed), dtype=object))) if self._changed else np.empty(0)
        changed = order.astype(np.int32)[_numpy(self._changed_of)]
        return np.lexsort((_numpy(self._ids), -changed))


def group_equal(tokens: Ints, lengths: Ints) -> Groups:
    """The distinct sequences among those laid end to end in `tokens`. Equal hashes only bring sequences side by
    side: what counts as equal is compared token by token."""
    if not len(lengths):
        return Groups(lengths, lengths, tokens)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    weights = np.random.default_rng(0).integers(1, 2**63, int(lengths.max()), dtype=np.uint64)
    hashes = np.add.reduceat((tokens.astype(np.uint64) + np.uint64(1)) * weights[_within(starts, lengths)], starts)
    order = np.lexsort((hashes, lengths))
    lengths, hashes = lengths[order], hashes[order]
    offsets = np.cumsum(lengths, dtype=np.int64) - lengths
    tokens = tokens[_within(offsets, lengths) + np.repeat(starts[order], lengths)]
    alike = np.zeros(len(lengths), bool)
    alike[1:] = (lengths[1:] == lengths[:-1]) & (hashes[1:] == hashes[:-1])
    alike &= ~np.logical_or.reduceat(tokens != tokens[np.arange(len(tokens)) - np.repeat(lengths, lengths)], offsets)
    of = np.empty(len(lengths), np.int32)
    of[order] = np.cumsum(~alike) - 1
    return Groups(of, lengths[~alike], tokens[np.repeat(~alike, lengths)])


def _within(starts: Ints, lengths: Ints) -> Ints:
    """0, 1, ... within every run."""
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(starts, lengths)


def _sequences(groups: Groups) -> dict[str, Ints]:
    longest = int(groups.lengths[-1]) if len(groups.lengths) else 0
    length_start = np.searchsorted(groups.lengths, np.arange(longest + 2)).astype(np.int64)
    token_start = np.zeros(longest + 2, np.int64)
    np.cumsum(np.diff(length_start) * np.arange(longest + 1), out=token_start[1:])
    return {"length_start": length_start, "token_start": token_start, "tokens": groups.tokens.astype(np.int32)}


def _features(groups: Groups, vocabulary: int) -> dict[str, Ints]:
    group = np.repeat(np.arange(len(groups.lengths), dtype=np.int32), groups.lengths)
    order = np.argsort(group.astype(np.int64) * vocabulary + groups.tokens, kind="stable")
    token, group = groups.tokens[order], group[order]
    new = np.ones(len(token), bool)
    new[1:] = (token[1:] != token[:-1]) | (group[1:] != group[:-1])
    runs = np.flatnonzero(new)
    occurrence = _within(runs, np.diff(runs, append=len(token)))
    feature = token.astype(np.int64) * (int(occurrence.max(initial=0)) + 1) + occurrence
    order = np.argsort(feature, kind="stable")  # stable: the groups of a feature stay ascending
    _, first, counts = np.unique(feature[order], return_index=True, return_counts=True)
    a_token = np.bincount(token[order][first], minlength=vocabulary)
    return {
        "feature_start": np.concatenate([[0], np.cumsum(a_token)]).astype(np.int32),
        "feature_offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "postings": group[order].astype(np.int32),
    }


def _members(groups: Groups, by_rank: Ints) -> dict[str, Ints]:
    of_rank = groups.of[by_rank]
    counts = np.bincount(of_rank, minlength=len(groups.lengths))
    return {
        "member_offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        "members": np.argsort(of_rank, kind="stable").astype(np.int32),
    }


def _numpy(values: array[int]) -> Ints:
    return np.frombuffer(values, dtype=np.dtype(values.typecode)) if values else np.empty(0, np.dtype(values.typecode))
