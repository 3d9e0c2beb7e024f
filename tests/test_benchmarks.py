"""What the benchmarks take the time of is there."""

from __future__ import annotations

import importlib


def test_the_parts_that_decoding_is_split_into_are_there() -> None:
    parts = importlib.import_module("decode").PARTS
    assert len(parts) > 15
    assert [(part, name) for part, owner, name in parts if not hasattr(owner, name)] == []
