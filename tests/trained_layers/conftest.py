"""Fixtures of the tests of neighbours and kNN."""

from __future__ import annotations

from neighbour_memory import memory, model, three

__all__ = ["memory", "model", "three"]
