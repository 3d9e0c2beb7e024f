"""The smallest index: one verb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tmnmt.segments import Match


class Index(Protocol):
    """A memory that can be searched, wherever it lives."""

    src_lang: str
    tgt_lang: str

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:
        """For every query its at most `k` segments of fuzzy score >= `threshold`, best first, ties by newest
        (greatest `changed`), then by smallest id. With threshold 0 every segment with tokens qualifies; a text
        without tokens matches nothing.

        exclude_sources: leave out every segment whose source equals the query in match tokens (leave-one-out).
        exclude_documents: for every query the document whose segments are left out, "" for none.
        """
        ...
