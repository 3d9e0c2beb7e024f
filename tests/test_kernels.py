"""The compiled inner loops against plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from tmnmt.index.inversion import group_equal
from tmnmt.index.kernels import edit_distance, pattern_bits


@pytest.mark.parametrize("size", [1, 5, 63, 64, 65, 128, 300])
def test_bit_parallel_edit_distance_is_exact(size: int) -> None:
    random = np.random.default_rng(size)
    for _ in range(50):
        vocabulary = int(random.integers(2, 40))
        pattern = random.integers(-1, vocabulary, size).astype(np.int32)
        text = random.integers(0, vocabulary, int(random.integers(1, 2 * size + 2))).astype(np.int32)
        if random.random() < 0.5:  # like one another, as a memory's segments are
            text = np.where(random.random(size) < 0.8, np.maximum(pattern, 0), 0).astype(np.int32)
        wanted = Levenshtein.distance([t + 1 for t in pattern.tolist()], [t + 1 for t in text.tolist()])
        assert edit_distance(*pattern_bits(pattern), size, text) == wanted


def test_equal_sequences_are_one_group_and_others_are_not() -> None:
    sequences = [[1, 2], [2, 1], [1, 2], [7], [1, 2, 3], [7], [2, 1]]
    tokens = np.array([t for s in sequences for t in s], np.int32)
    groups = group_equal(tokens, np.array([len(s) for s in sequences], np.int32))
    assert groups.lengths.tolist() == [1, 2, 2, 3]
    ends = np.cumsum(groups.lengths)
    held = [groups.tokens[end - n : end].tolist() for n, end in zip(groups.lengths, ends, strict=True)]
    assert [held[g] for g in groups.of] == sequences
