"""The kinds of backbone there are: [model] of a configuration names one by `kind`, RNNsearch where
it does not."""

from __future__ import annotations

from typing import Any

import torch

from tmnmt.errors import UsageError
from tmnmt.models.base import Backbone, BaseConfig, Injectable, Trainable
from tmnmt.models.encoder_decoder import EncoderDecoder
from tmnmt.models.injected import Injected
from tmnmt.models.pivot import Pivot
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.models.student import Student
from tmnmt.models.transformer import Transformer
from tmnmt.registry import Registry

DTYPES = {"fp32": None, "bf16": torch.bfloat16, "int8": torch.int8}  # of products, by precision
KINDS: Registry[type[Trainable]] = Registry(
    "base", {"rnnsearch": RNNsearch, "transformer": Transformer, "student": Student}
)


def configs() -> dict[str, type[BaseConfig]]:
    """The tables [model] of the kinds that `tmnmt train` makes."""
    return {name: kind.config for name, kind in KINDS.items() if kind.config is not None}


def make(vocab_size: int, sizes: dict[str, Any]) -> Trainable:
    """A backbone that knows nothing yet, of the sizes in the table [model].

    Raises ValueError for a kind that is not there, TypeError for a size that its kind has not."""
    sizes = dict(sizes)
    kind = sizes.pop("kind", "rnnsearch")
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    return KINDS[kind](vocab_size, **sizes)


def for_decoding(backbone: Backbone, dtype: torch.dtype | None = None) -> Backbone:
    """The backbone as it decodes, in evaluation mode; `dtype`: of its products, None: the
    parameters' own. Raises UsageError for int8 where there are no such products: of a recurrent
    kind, or on a GPU."""
    if isinstance(backbone, Pivot):
        first = for_decoding(backbone.first, backbone.first_dtype)
        return backbone.with_parts(first, for_decoding(backbone.second, dtype)).eval()
    if dtype == torch.int8:
        on_cpu = all(parameter.is_cpu for parameter in backbone.parameters())
        if not isinstance(backbone, EncoderDecoder) or not on_cpu:
            raise UsageError("precision int8 is for a Transformer or a student, on a CPU")
    if isinstance(backbone, Injected):
        base = for_decoding(backbone.base, dtype)
        if not isinstance(base, Injectable):
            raise TypeError(f"{type(base).__name__} takes nothing into its state")
        return backbone.for_decoding(base)
    if isinstance(backbone, RNNsearch):
        return FastRNNsearch(backbone, dtype)
    if isinstance(backbone, EncoderDecoder):
        return backbone.for_decoding(dtype)
    return backbone.eval()
