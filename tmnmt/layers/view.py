"""What rows see of their sentences' memories, laid out once and not at every step."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from tmnmt.layers.base import CacheState, TMState, View
from tmnmt.layers.rows import Rows

State = TypeVar("State", TMState, CacheState)
SHARED = (
    "keys",
    "values",
    "mask",
    "ids",
    "before",
    "pair",
    "position",
    "marks",
    "said",
    "worth",
    "read",
    "first",
)


def seen(state: State) -> State:
    """The same state with its view. Raises ValueError where it was not made ready."""
    if state.view is not None:
        return state
    state = compact(state)
    if state.first is None:
        raise ValueError("the state of a memory was not made ready")
    sees = _filled(state)
    some = None if bool(sees.all()) else sees.nonzero()[:, 0]
    sentence = state.sentence if some is None else state.sentence[some]
    mask, worth = state.mask[sentence], getattr(state, "worth", None)
    view = View(
        some,
        Rows.of(sentence, len(state.keys)),
        state.ids[state.sentence],
        state.first[state.sentence],
        None if bool(mask.all()) else mask,
        state.before[sentence],
        worth[sentence] if worth is not None else None,
    )
    return replace(state, view=view)


def view_of(state: TMState | CacheState) -> View:
    """The view of a state that has one."""
    assert state.view is not None
    return state.view


def compact(state: State) -> State:
    """The same state without the sentences that no row reads any more, once they are half of the
    batch, and with one for all rows that have nothing to read.

    Finished sentences leave the beam but their keys would still be multiplied; dropping them every
    time would copy the rest too often."""
    if len(state.keys) == 1:
        return state
    sees, sentence = _filled(state), state.sentence
    if not bool(sees.all()):
        sentence = torch.where(sees, sentence, sentence[sees.long().argmin()])
    read = torch.unique(sentence)
    if 2 * len(read) > len(state.keys):
        return state
    held = {name: getattr(state, name, None) for name in SHARED}
    kept = {name: value.index_select(0, read) for name, value in held.items() if value is not None}
    return replace(state, **kept, sentence=torch.searchsorted(read, sentence))


def _filled(state: TMState | CacheState) -> Tensor:
    """(R,) bool: has the row anything to read?"""
    return state.mask.any(-1)[state.sentence]


def first_of(ids: Tensor) -> Tensor:
    """(N, P) int64: the first position of the row (N, P) that holds the same word,
    itself included."""
    ordered, order = ids.sort(dim=1, stable=True)
    place = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    begins = torch.ones_like(ids, dtype=torch.bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = torch.where(begins, place, 0).cummax(1).values
    return torch.empty_like(ids).scatter_(1, order, order.gather(1, start))
