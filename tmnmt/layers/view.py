"""What the rows of a beam see of what their sentences read, laid out once and not at every step.

R: rows (sentences x beam)   N: sentences   P: positions of pairs, or slots   R': rows that see any
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from tmnmt.compiled import kernels
from tmnmt.compiled.kernels import Array, Table


@dataclass(frozen=True)
class Rows:
    """Where every row stands when the rows of a sentence are laid side by side: a place in (N,
    width). So keys are read with one product a sentence, and never copied a row."""

    place: Tensor | None  # (R,) int64, sentence * width + slot; None: row r stands at place r
    sentences: int  # N
    width: int  # the most rows any sentence has

    @classmethod
    def build(cls, sentence: Tensor, sentences: int) -> Rows:
        """The places of rows.

        sentence: (R,) int64, the sentence of every row, in any order; a sentence may have no row at
        all.
        sentences: how many sentences there are, N."""
        if sentences == 1:
            return cls(None, 1, len(sentence))
        counts = torch.bincount(sentence, minlength=sentences)
        width = int(counts.max())
        ordered, order = sentence.sort(stable=True)
        number = torch.arange(len(sentence), device=sentence.device)
        place = torch.empty_like(sentence)
        place[order] = ordered * width + number - (counts.cumsum(0) - counts)[ordered]
        full = len(sentence) == sentences * width and torch.equal(place, number)
        return cls(None if full else place, sentences, width)

    def dot(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The inner products of every row's query with its sentence's keys, (R, P).

        queries: (R, l), the queries.
        keys: (N, P, l), the keys."""
        return self._gather(torch.bmm(self._spread(queries), keys.transpose(1, 2)))

    def blend(self, weights: Tensor, values: Tensor) -> Tensor:
        """The sums of the sentence's values by every row's weights, (R, d).

        weights: (R, P), the weights.
        values: (N, P, d), the values."""
        return self._gather(torch.bmm(self._spread(weights), values))

    def _spread(self, rows: Tensor) -> Tensor:
        if self.place is not None:
            rows = rows.new_zeros(self.sentences * self.width, rows.shape[1]).index_copy(
                0, self.place, rows
            )
        return rows.view(self.sentences, self.width, rows.shape[1])

    def _gather(self, side_by_side: Tensor) -> Tensor:
        rows = side_by_side.flatten(0, 1)
        return rows if self.place is None else rows.index_select(0, self.place)


@dataclass(frozen=True)
class View:
    """What every row sees of its sentence's positions or slots."""

    filled: Tensor | None  # (R',) int64 which rows see any; None: all
    rows: Rows  # where the R' stand
    ids: Tensor  # (R, P)
    first: Tensor  # (R, P)
    mask: Tensor | None  # (R', P); None where all are real
    previous_ids: Tensor  # (R', P)
    worth: Tensor | None  # (R', P)

    def pick(self, x: Tensor) -> Tensor:
        """The rows of a tensor that see any position, (R', ...).

        x: (R, ...), the tensor."""
        return x if self.filled is None else x.index_select(0, self.filled)

    def put(self, part: Tensor, default: float | Tensor = 0.0) -> Tensor:
        """A tensor (R, ...) of all rows.

        part: (R', ...), what the rows have that see any position.
        default: a number or (R, ...), what the other rows have."""
        if self.filled is None:
            return part
        if not isinstance(default, Tensor):
            default = part.new_full((len(self.ids), *part.shape[1:]), default)
        return default.index_copy(0, self.filled, part)


@dataclass(frozen=True)
class Positions:
    """What N sentences read, made ready, and which sentence each row reads: positions of pairs, or
    slots of a cache."""

    keys: Tensor  # (N, P, l), or as a cache keeps them
    ids: Tensor  # (N, P) int64
    previous_ids: Tensor  # (N, P) int64: the word before it
    mask: Tensor  # (N, P) bool
    first: Tensor  # (N, P) int64: the first position that holds the same word
    values: Tensor  # (N, P, ...) what a step blends of every position, as its layer says
    worth: Tensor | None  # (N, P) what is added to the match of every position; None: nothing
    sentence: Tensor  # (R,) int64: which of the N each row reads

    @cached_property
    def view(self) -> View:
        """What the rows see, laid out when it is first asked for."""
        sees = self._filled()
        filled = None if bool(sees.all()) else sees.nonzero()[:, 0]
        sentence = self.sentence if filled is None else self.sentence[filled]
        mask = self.mask[sentence]
        ids, first = self.words
        return View(
            filled=filled,
            rows=Rows.build(sentence, len(self.keys)),
            ids=ids,
            first=first,
            mask=None if bool(mask.all()) else mask,
            previous_ids=self.previous_ids[sentence],
            worth=self.worth[sentence] if self.worth is not None else None,
        )

    @cached_property
    def words(self) -> tuple[Tensor, Tensor]:
        """What every row sees: words and where each stands first, (R, P) each."""
        return self.ids[self.sentence], self.first[self.sentence]

    @cached_property
    def table(self) -> Table:
        """What there is to read, for compiled code."""
        (_, positions, key_size), (*_, read_size) = self.keys.shape, self.values.shape
        arrays = (
            Array.of("sentences of rows", self.sentence, torch.int64),
            Array.of("keys", self.keys),
            Array.of("what is read", self.values),
            Array.of("mask", self.mask, torch.bool),
            Array.of("words before", self.previous_ids, torch.int64),
            None if self.worth is None else Array.of("worth", self.worth),
        )
        return Table.of((positions, key_size, read_size), arrays)

    def rows(self, index: Tensor) -> Self:
        """These rows, in their order.

        index: (R',) int64, the numbers of the rows."""
        return replace(self, sentence=self.sentence.index_select(0, index)).compact()

    def reordered(self, index: Tensor) -> Self:
        """The same rows in another order, in which every row takes the place of one of its own
        sentence; so all read what they read.

        index: (R,) int64, the number of the row that comes to each place."""
        return self

    def compact(self) -> Self:
        """The same without the sentences that no row reads any more, once they are half of the
        batch, and with one for all rows that have nothing to read.

        Finished sentences leave the beam but their keys would still be multiplied; dropping them
        every time would copy the rest too often."""
        if len(self.keys) == 1 or not len(self.sentence):
            return self
        sees, sentence = self._filled(), self.sentence
        if not bool(sees.all()):
            sentence = torch.where(sees, sentence, sentence[sees.long().argmin()])
        sentences = torch.unique(sentence)
        if 2 * len(sentences) > len(self.keys):
            return self
        of_sentences = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sentence"}
        shared = {
            name: x.index_select(0, sentences)
            for name, x in of_sentences.items()
            if isinstance(x, Tensor)
        }
        return replace(self, **shared, sentence=torch.searchsorted(sentences, sentence))

    def _filled(self) -> Tensor:
        """(R,) bool: has the row anything to read?"""
        return self.mask.any(-1)[self.sentence]


def first_of(ids: Tensor) -> Tensor:
    """(N, P) int64: the first position of the row that holds the same word, itself included.

    ids: (N, P) int64, the words.

    Raises ValueError for words that are not int64."""
    return kernels.first_positions(ids.cpu().contiguous()).to(ids.device)
