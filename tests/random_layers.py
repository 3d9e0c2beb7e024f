"""Memory layers as after training, and pairs and caches at random for them to read."""

from __future__ import annotations

import torch
from torch import nn

from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.trained_layers.cache import CacheContents, CacheKind, SessionCache, Slots, collate_caches
from tmnmt.trained_layers.tm import TMKind, TranslationMemory

D = 16  # l = d
WORD = 8
V = 75
STANDARD, DEEP = TMKind(), CacheKind()


SCORES = [0.9, 0.7, 0.7, 0.5]  # of the pairs of a sentence: two are equal


def random_base(words: int, size: int) -> RNNsearch:
    """With enough contrast to prefer some words."""
    torch.manual_seed(0)
    model = RNNsearch(words, embedding=WORD, hidden=size, attention=8, dropout=0.0).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model


def learned(kind: TMKind = STANDARD, cache: CacheKind = DEEP, size: int = D) -> MemoryLayers:
    """As after training: nothing is at its start, the gates are half open, and what was read is not
    read again."""
    torch.manual_seed(1)
    memories = MemoryLayers(
        TranslationMemory(size, size, WORD, kind), SessionCache(size, size, WORD, cache)
    )
    with torch.no_grad():
        for parameter in memories.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for gate in gates(memories):
            gate.fill_(0.3)
        if memories.cache is not None and memories.cache.empty is not None:
            memories.cache.empty.copy_(torch.tensor([0.2, 0.1]))  # slots at random are like nothing
        if memories.tm is not None and memories.tm.coverage.weight is not None:
            memories.tm.coverage.weight.fill_(4.0 / memories.tm.coverage.width)
        if memories.tm is not None and memories.tm.coverage.gru is not None:
            memories.tm.coverage.gru.weight_ih.mul_(
                20
            )  # so that positions differ by what was read of them
    return memories


def gates(memories: MemoryLayers) -> list[nn.Parameter]:
    """Their biases: -inf closes them, where their weights are zero."""
    assert memories.tm is not None and memories.cache is not None
    return [gate.out.bias for gate in (memories.tm.copy, memories.tm.fusion) if gate] + [
        memories.cache.U.bias
    ]


def pair(length: int, seed: int, size: int = D, words: int = V) -> PairKeys:
    made = torch.Generator().manual_seed(seed)
    return PairKeys(
        torch.randn(length, size, generator=made),
        torch.randn(length, size, generator=made),
        torch.randint(4, words, (length,), generator=made),
    )


PAIRS = [pair(6, 1), pair(4, 2), pair(5, 3), pair(3, 4)]


def cached(documents: int, size: int = D, words: int = V) -> Slots | None:
    """Every other document has nothing behind it."""
    contents = [CacheContents(5, size, size) for _ in range(documents)]
    for at in range(0, documents, 2):
        keys = pair(7, 5 + at, size, words)
        contents[at].write(keys.contexts, keys.hiddens, keys.ids)
    return collate_caches(contents)
