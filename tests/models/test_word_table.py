"""Tables of words: a row is what the function gives, and is computed once, when it is read."""

from __future__ import annotations

import torch
from torch import Tensor

from tmnmt.models.word_table import FEWEST, WordTable

WORDS, SIZE = 50, 7


class Watched:
    """A function of words, and how many it was told of."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, words: Tensor) -> Tensor:
        self.counts.append(len(words))
        return torch.cat([2 * words, words + 1], 1)


def test_rows_are_what_the_function_gives_and_computed_once() -> None:
    words, function = torch.randn(WORDS, SIZE), Watched()
    expected = torch.cat([2 * words, words + 1], 1)
    table = WordTable(words, function)
    for ids in ([[3, 3], [49, 0]], [[3, 0], [49, 49]], [[3, 5], [7, 11]]):
        assert torch.equal(table.rows(torch.tensor(ids)), expected[torch.tensor(ids)])
    assert function.counts == [0, 6, 6]  # 3 of each, twice: FEWEST at least
    assert table.rows(torch.empty(2, 0, dtype=torch.int64)).shape == (2, 0, 2 * SIZE)
    assert len(function.counts) == 3


def test_a_single_word_is_computed_with_as_many_as_give_the_same_numbers() -> None:
    function = Watched()
    table = WordTable(torch.randn(WORDS, SIZE), function)
    table.rows(torch.tensor([4]))
    assert function.counts == [0, FEWEST]


def test_a_table_that_is_whole_computes_nothing() -> None:
    function = Watched()
    table = WordTable(torch.randn(3, SIZE), function)
    for ids in (0, 2, 1, 0, 1, 2):
        table.rows(torch.tensor([ids]))
    assert function.counts == [0, FEWEST, FEWEST, FEWEST]
