"""The kinds of backbone there are: [model] of a configuration names one by `kind`, RNNsearch where
it does not."""

from __future__ import annotations

from typing import Any

import torch

from tmnmt.models.base import BaseConfig, Trainable
from tmnmt.models.decoding import for_decoding
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.models.student import Student
from tmnmt.models.transformer import Transformer
from tmnmt.registry import Registry

DTYPES = {"fp32": None, "bf16": torch.bfloat16, "int8": torch.int8}  # of products, by precision
KINDS: Registry[type[Trainable]] = Registry(
    "base", {"rnnsearch": RNNsearch, "transformer": Transformer, "student": Student}
)
for_decoding.register(RNNsearch, FastRNNsearch)


def configs() -> dict[str, type[BaseConfig]]:
    """The tables [model] of the kinds that `tmnmt train` makes."""
    return {name: kind.config for name, kind in KINDS.items() if kind.config is not None}


def make(vocab_size: int, sizes: dict[str, Any]) -> Trainable:
    """A backbone that knows nothing yet.

    vocab_size: how many words it has.
    sizes: the table [model], with the kind and its sizes.

    Raises ValueError for a kind that is not there. Raises TypeError for a size that its kind has
    not."""
    sizes = dict(sizes)
    kind = sizes.pop("kind", "rnnsearch")
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    return KINDS[kind](vocab_size, **sizes)
