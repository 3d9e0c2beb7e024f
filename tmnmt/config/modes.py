"""The modes in which a memory is read, and the ways to select pairs: tables that plug-ins add to.

Nothing heavy is imported: `tmnmt --help` shows the names."""

from __future__ import annotations

from typing import Any, NamedTuple

from tmnmt.registry import Registry


class ReadingMode(NamedTuple):
    """How a memory is read; which layers serve a mode, the layers say. `retrieves`: whether pairs
    are looked up for a segment. `neighbours`: positions of the whole memory that are read at every
    word where nothing else is said."""

    retrieves: bool = True
    neighbours: int = 0


MODES: Registry[ReadingMode] = Registry(
    "mode", {"nearest": ReadingMode(), "off": ReadingMode(retrieves=False)}
)
# each is a `tmnmt.index.select.Selector`
SELECTIONS: Registry[Any] = Registry(
    "selection",
    {"topk": "tmnmt.index.select:select_top", "greedy": "tmnmt.index.select:select_greedy"},
)
# each is a `tmnmt.index.select.Ranking`
SIMILARITIES: Registry[Any] = Registry("similarity", {"fuzzy": "tmnmt.index.select:FUZZY"})
