"""The kinds of backbone there are: [model] of a configuration names one by `kind`, RNNsearch where it does not."""

from __future__ import annotations

from typing import Any

from tmnmt.models.base import Trainable
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.transformer import Transformer

KINDS: dict[str, type[Trainable]] = {"rnnsearch": RNNsearch, "transformer": Transformer}


def make(vocab_size: int, sizes: dict[str, Any]) -> Trainable:
    """A backbone that knows nothing yet, of the sizes in the table [model].

    Raises ValueError for a kind that is not there, TypeError for a size that its kind has not."""
    sizes = dict(sizes)
    kind = sizes.pop("kind", "rnnsearch")
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    return KINDS[kind](vocab_size, **sizes)
