"""The compiled inner loops against plain ones, on real text."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from tmnmt.formats import read_memory
from tmnmt.index.embedded.inversion import Inversion
from tmnmt.index.embedded.postings import Postings
from tmnmt.index.kernels.search import (
    Arrays,
    Best,
    candidates,
    edit_distance,
    features,
    insert,
    pattern_bits,
)
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

DATA = Path(__file__).parent / "data" / "jrc-acquis.en-fr.tsv"


@pytest.mark.parametrize("size", [1, 5, 63, 64, 65, 128, 300])
def test_bit_parallel_edit_distance_is_exact(size: int) -> None:
    random = np.random.default_rng(size)
    for _ in range(50):
        vocabulary = int(random.integers(2, 40))
        pattern = random.integers(-1, vocabulary, size).astype(np.int32)
        text = random.integers(0, vocabulary, int(random.integers(1, 2 * size + 2))).astype(
            np.int32
        )
        if random.random() < 0.5:  # like one another, as a memory's segments are
            text = np.where(random.random(size) < 0.8, np.maximum(pattern, 0), 0).astype(np.int32)
        wanted = Levenshtein.distance(
            [t + 1 for t in pattern.tolist()], [t + 1 for t in text.tolist()]
        )
        assert edit_distance(pattern_bits(pattern), text) == wanted


def test_a_rank_that_stands_twice_has_no_place_behind_the_last() -> None:
    plain = insert.py_func  # as Python it looks at the bounds
    best = Best(np.array([5, 7], np.int32), np.array([1, 2], np.int32), np.array([0.9, 0.8]))
    assert plain(best, 2, 0.8, 7, 2) == 2
    assert (best.ranks.tolist(), best.edits.tolist(), best.scores.tolist()) == (
        [5, 7],
        [1, 2],
        [0.9, 0.8],
    )
    assert plain(best, 2, 0.8, 6, 2) == 2 and best.ranks.tolist() == [5, 6]


def numbered(sequence: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Every token with the number of its occurrence."""
    seen: Counter[str] = Counter()
    for token in sequence:
        seen[token] += 1
        yield token, seen[token]


def scan_count(
    sequences: Sequence[Sequence[str]], queries: Sequence[Sequence[str]]
) -> Iterator[list[int]]:
    """For every query the tokens that each sequence shares with it, by plain counting over postings
    (ScanCount)."""
    postings = defaultdict(list)
    for group, sequence in enumerate(sequences):
        for feature in numbered(sequence):
            postings[feature].append(group)
    for query in queries:
        shared = [0] * len(sequences)
        for feature in numbered(query):
            for group in postings.get(feature, []):
                shared[group] += 1
        yield shared


def real_sequences() -> list[list[str]]:
    """Token sequences of 1 to 1,000 tokens: real sources, and runs of them."""
    draw = random.Random(5)
    sources = [
        tokens for segment in read_memory(DATA, "en", "fr") if (tokens := match_tokens(segment.src))
    ]
    joined = [
        [token for source in sources[i : i + 60] for token in source]
        for i in range(0, len(sources), 20)
    ]
    return sources + [run[: draw.randint(100, 1000)] for run in joined]


@pytest.mark.parametrize("columns", [0, 7, 512, 30_000])
def test_shared_tokens_counted_for_512_groups_at_once_are_those_counted_one_by_one(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.inversion.MOST_COLUMNS", columns)
    sequences = real_sequences()
    inversion = Inversion(tmp_path)
    inversion.add(
        range(1, len(sequences) + 1), [Segment(" ".join(tokens), "") for tokens in sequences]
    )
    inversion.write(tmp_path / "postings")
    postings = Postings.open(tmp_path / "postings")
    arrays = Arrays(*postings._compiled.arrays[: len(Arrays._fields)])
    words = postings._parts["vocabulary"].tobytes().decode().split("\n")
    number = {token: i for i, token in enumerate(words)}
    lengths = np.repeat(np.arange(len(arrays.length_start) - 1), np.diff(arrays.length_start))
    ends = np.cumsum(lengths)
    groups = [
        [words[token] for token in arrays.tokens[end - n : end]]
        for end, n in zip(ends, lengths, strict=True)
    ]
    assert sorted(groups) == sorted(map(list, {tuple(sequence) for sequence in sequences}))
    queries = [
        *random.Random(columns).sample(sequences, 12),
        sequences[-1],
        sequences[-2],
        ["unheard", "of"],
    ]
    for query, shared in zip(queries, scan_count(groups, queries), strict=True):
        x = features(arrays, np.array([number.get(token, -1) for token in query], np.int32))
        for least in (-1e-9, 0.3, 0.5, 0.8, 1.0 - 1e-9):
            found = candidates(arrays, x, least, 1, len(arrays.length_start) - 2)
            needed = [least * max(len(query), len(group)) for group in groups]
            wanted = [(g, len(groups[g]), n) for g, n in enumerate(shared) if n >= needed[g]]
            assert list(zip(found.groups, found.lengths, found.shared, strict=True)) == wanted
