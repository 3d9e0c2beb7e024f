"""Subwords that a search does not write for one sentence or another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from tmnmt.engine.beam_search import Live
from tmnmt.layers.combine import Stepped
from tmnmt.models.base import Columns
from tmnmt.vocab import EOS, FIRST, Vocabulary


class BarredWords:
    """Leads a search so that translations have none of some characters, as `Leader` does. Where the
    model would go on with one of them, the translation is complete: its probability is that of the
    end."""

    compares_all_words = False

    def __init__(
        self,
        signs: Sequence[frozenset[str]],
        vocab: Vocabulary,
        beam: int,
        columns: Columns | None,
        device: str,
    ) -> None:
        """signs: for every sentence, the characters that its translation does not have.
        vocab: the vocabulary of the model.
        beam: how many rows a sentence has.
        columns: the words that the read-out compares; None where these are all.
        device: where the search runs."""
        self._beam = beam
        self._barred = list[tuple[Tensor, Tensor]]()  # sentences (N,) and columns of their words
        for barred in {*signs} - {frozenset()}:
            words = torch.tensor(words_with(vocab, barred), dtype=torch.int64, device=device)
            if columns is not None:
                numbers = columns.of_word[words]
                words = numbers[numbers >= FIRST]
            sentences = torch.tensor([of_one == barred for of_one in signs], device=device)
            self._barred.append((sentences, words))

    def bar(self, live: Live, step: Stepped, position: int) -> None:
        """Leaves in log p only what may come at a step, as `Leader.bar` does.

        live: the rows that are still decoded.
        step: what the step gave; its log p are changed in place.
        position: the number of the step, from 0."""
        for sentences, words in self._barred:
            rows = sentences[live.sentence].repeat_interleave(self._beam).nonzero()
            if not rows.numel():
                continue
            if position:
                ends = torch.cat([words.new_tensor([EOS]), words])
                step.log_probs[rows[:, 0], EOS] = step.log_probs[rows, ends].logsumexp(1)
            step.log_probs[rows, words] = -torch.inf

    def advance(self, rows: Tensor, tokens: Tensor) -> None:
        """Follows the rows of the beam, as `Leader.advance` does: what is barred is the same at
        every step.

        rows: (R',) which row each of the next rows was.
        tokens: (R',) the subword that each of them has got."""


@lru_cache(maxsize=4)
def words_with(vocab: Vocabulary, signs: frozenset[str]) -> tuple[int, ...]:
    """The subwords of a vocabulary that have any of these characters.

    vocab: the vocabulary.
    signs: the characters."""
    in_bytes = {f"<0x{ord(sign):02X}>" for sign in signs if sign.isascii()}
    return tuple(
        number
        for number in range(FIRST, len(vocab))
        if not signs.isdisjoint(vocab.piece(number)) or vocab.piece(number) in in_bytes
    )
