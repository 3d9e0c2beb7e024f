"""A state of a decoder is a value, of every kind of base: what follows from it stays what it was,
however often it is gone on from."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tmnmt.models.base import Backbone
from tmnmt.models.decoding import for_decoding
from tmnmt.models.kinds import KINDS, make
from tmnmt.vocab import BOS, FIRST

WORDS, LENGTH = 40, 36  # as long as memory grows once
SIZES: dict[str, dict[str, Any]] = {
    "rnnsearch": {"embedding": 12, "hidden": 16, "attention": 12},
    "deeplau": {"embedding": 12, "hidden": 16, "attention": 12},
    "transformer": {"hidden": 16, "feed_forward": 24, "heads": 2},
    "student": {"hidden": 16, "feed_forward": 24, "heads": 2},
}
WAYS: dict[str, Any] = {
    "as it learns": ...,
    "fp32": None,
    "bf16": torch.bfloat16,
    "int8": torch.int8,
}
BASES = [
    (kind, way)
    for kind in KINDS
    for way in WAYS
    if way != "int8" or kind in ("transformer", "student")
]


def base_of(kind: str, way: str) -> Backbone:
    torch.manual_seed(4)
    backbone = make(WORDS, {"kind": kind, **SIZES[kind]}).eval()
    return backbone if way == "as it learns" else for_decoding(backbone, WAYS[way])


class Walk:
    """The steps of a base behind two sources, two rows of each."""

    def __init__(self, backbone: Backbone) -> None:
        src = torch.randint(FIRST, WORDS, (2, 5), generator=torch.Generator().manual_seed(1))
        encoded = backbone.encode(src, torch.tensor([5, 5]))
        self.backbone, self.encoded = backbone, backbone.for_beam(encoded)
        self.rows = torch.arange(2).repeat_interleave(2)
        self.first = backbone.reordered(backbone.start(encoded), self.rows)
        if not backbone.shares_encoded:
            self.encoded = self.encoded.rows(self.rows)

    def step(self, state: Any, word: int) -> tuple[Any, Tensor]:
        prev = torch.full((4,), word)
        state, context, hidden = self.backbone.step(prev, state, self.encoded)
        return state, torch.cat([context, hidden], -1)

    def along(self, state: Any, words: list[int]) -> list[Tensor]:
        """What every step gives."""
        steps = []
        for word in words:
            state, made = self.step(state, word)
            steps.append(made)
        return steps


@torch.inference_mode()
@pytest.mark.parametrize(("kind", "way"), BASES)
@pytest.mark.parametrize("length", [0, 1, 31, LENGTH])
def test_two_continuations_of_one_state_do_not_meet(kind: str, way: str, length: int) -> None:
    """They take turns, one step each; another one is reordered first, as a beam is. Each gives what
    it gives alone."""
    walk = Walk(base_of(kind, way))
    common = [BOS, *range(FIRST, FIRST + length)]
    state = walk.first
    for word in common:
        state, _ = walk.step(state, word)
    order = torch.tensor([1, 1, 2, 3])
    targets = [7, 8, 9], [10, 11, 12], [13, 14, 15]
    moving = [state, state, walk.backbone.reordered(state, order)]
    other = walk.backbone.reordered(state, order.flip(0))
    together: list[list[Tensor]] = [[], [], []]
    for at in range(3):
        for number, words in enumerate(targets):
            moving[number], made = walk.step(moving[number], words[at])
            together[number].append(made)
    walk.along(other, [16, 17])
    for number, words in enumerate(targets):
        again = Walk(walk.backbone)
        alone = again.first
        for word in common:
            alone, _ = again.step(alone, word)
        if number == 2:
            alone = again.backbone.reordered(alone, order)
        assert torch.equal(torch.stack(again.along(alone, words)), torch.stack(together[number])), (
            number
        )


def test_every_kind_of_base_is_looked_at() -> None:
    assert set(SIZES) == set(KINDS)
