"""Segments that share rare phrases with a text that no segment is like: a third lookup beside the
fuzzy search and that by skeletons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from tmnmt.index.base import Index
from tmnmt.segments import Match


def accept_always(_number: int) -> bool:
    """Every id is accepted."""
    return True


@runtime_checkable
class CoversPhrases(Protocol):
    """An index that keeps where words stand."""

    def covering(
        self, text: str, k: int, accepts: Callable[[int], bool] = accept_always
    ) -> list[Match]:
        """At most `k` segments whose ids are accepted, and which together cover most of the rare
        phrases of a text, in the order in which they are taken; each with its fuzzy score."""
        ...


def covering(
    index: Index, text: str, k: int, accepts: Callable[[int], bool] = accept_always
) -> list[Match]:
    """As `CoversPhrases.covering`; nothing of an index that does not keep where words stand."""
    return index.covering(text, k, accepts) if isinstance(index, CoversPhrases) else []
