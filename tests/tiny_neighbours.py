"""Indexes of the tiny model's pairs with their keys, and translations that read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import compute, header_of, plan
from tmnmt.models.folder import load_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.segments import Segment, Translation

DOCUMENT = [
    "The Commission shall inform the Member States today.",
    "It shall apply from 3 March 1997.",
    "This Decision is addressed to the Commission.",
    "Repealed.",
]


def with_keys(path: Path, pairs: Sequence[Segment], model: Path) -> Path:
    build(path, pairs, "en", "fr")
    loaded = load_model(model)
    with MemoryIndex.open(path) as index:
        compute(index, loaded, plan(index, header_of(loaded), loaded.vocab))
    return path


def translated(
    model: Path, memories: Sequence[Path], texts: Sequence[str] = DOCUMENT, **options: Any
) -> list[Translation]:
    explain = options.pop("explain", False)
    translator = Translator.load(
        model,
        list(memories),
        TranslationOptions(**{"cache": 0, "beam": 3, "threads": 1, "verbatim": 0} | options),
    )
    return translator.translate(texts, explain)


def assert_same(one: list[Translation], other: list[Translation], tolerance: float = 1e-4) -> None:
    assert [t.tgt for t in one] == [t.tgt for t in other]
    assert [t.score for t in one] == pytest.approx([t.score for t in other], abs=tolerance)


class TwoWords(RNNsearch):
    """Read-out by hand: the logits are the state itself, so V = d = 2."""

    def __init__(self) -> None:
        super().__init__(2, embedding=2, hidden=2, attention=2, dropout=0.0)

    def readout(
        self, prev: torch.Tensor, hidden: torch.Tensor, context: torch.Tensor
    ) -> torch.Tensor:
        return hidden.clone()  # given away: it may be written over
