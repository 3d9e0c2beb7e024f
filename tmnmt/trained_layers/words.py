"""OURS: what a remembered state lacks is the word it led to; a learned map of the word's embedding
is added to it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

Embed = Callable[[Tensor], Tensor]  # words (...) int64 -> their embeddings (..., word_size)


def word_map(word_size: int, hidden_size: int) -> nn.Linear:
    """E, which starts at zero: training starts from the states alone, as in the papers."""
    layer = nn.Linear(word_size, hidden_size, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def with_words(layer: nn.Linear | None, hiddens: Tensor, ids: Tensor, embed: Embed) -> Tensor:
    """v + E e(y) of hidden states (..., d) and the words (...) they led to; without a layer the
    states themselves."""
    return hiddens if layer is None else hiddens + layer(embed(ids))
