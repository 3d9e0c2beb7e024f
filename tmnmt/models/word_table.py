"""A table of what a function gives for every word of a vocabulary. A row is computed when it is
first read: a model of 8,000 words has one of 49 MB, of which a document reads some megabytes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

FEWEST = 4  # rows that are computed together: so many give the same numbers as all together do


class WordTable:
    """Rows of numbers by words, of a function that treats every row by itself. On a GPU all are
    computed at once, since to look there whether one is missing would take longer."""

    def __init__(self, words: Tensor, function: Callable[[Tensor], Tensor]) -> None:
        """words: (V, e), the embeddings of all words, which change no more.
        function: (n, e) -> (n, m), of words."""
        self._words, self._function = words.detach(), function
        size = function(self._words[:0]).shape[1]
        # the system gives memory where it is written to, and none before
        self._table = torch.empty(len(words), size, dtype=words.dtype, device=words.device)
        self._known = torch.zeros(len(words), dtype=torch.bool)
        self._complete = False
        if not words.is_cpu:
            self._compute(torch.arange(len(words)))

    def rows(self, ids: Tensor) -> Tensor:
        """The rows of some words, (..., m).

        ids: (...) int64, the words."""
        if not self._complete:
            known = self._known[ids]
            if not bool(known.all()):
                self._compute(ids[~known].unique())  # type: ignore[no-untyped-call]
        return self._table[ids]

    def _compute(self, ids: Tensor) -> None:
        """The rows of these words, which are some."""
        ids = ids.repeat(-(-FEWEST // len(ids)))
        with torch.inference_mode():
            self._table[ids] = self._function(self._words[ids])
            self._known[ids] = True  # last: another thread may read it meanwhile
        self._complete = bool(self._known.all())
