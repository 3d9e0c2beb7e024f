"""What a memory holds, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmnmt.index.filter import NO_FILTER, Filter

if TYPE_CHECKING:
    from tmnmt.index.base import BuiltIndex


@dataclass(frozen=True)
class Stats:
    """Counts of segments, but `bytes` on disk; dates are the least and greatest `changed`, "" where
    none is known."""

    src_lang: str
    tgt_lang: str
    segments: int
    added: int  # since the index was built or compacted; on a server, built
    corrected: int
    deleted: int
    documents: int
    without_document: int
    oldest: str
    newest: str
    origins: dict[str, int]
    users: dict[str, int]
    properties: dict[str, int]  # by name
    generation: int
    bytes: int


def stats(index: BuiltIndex, conditions: Filter = NO_FILTER) -> Stats:
    """Counts of the segments that meet some conditions, all of which are read. The changes, the
    generation and the bytes are those of the whole index.

    index: the index.
    conditions: which segments are counted."""
    documents = Counter[str]()
    origins = Counter[str]()
    users = Counter[str]()
    properties = Counter[str]()
    oldest = newest = ""
    for segment in index.segments(conditions):
        documents[segment.document] += 1
        origins[segment.origin] += 1
        users[segment.user] += 1
        properties.update({name for name, _ in segment.properties})
        if segment.changed:
            oldest = min(oldest or segment.changed, segment.changed)
            newest = max(newest, segment.changed)
    undocumented = documents.pop("", 0)
    return Stats(
        index.src_lang,
        index.tgt_lang,
        documents.total() + undocumented,
        *index.changes(),
        len(documents),
        undocumented,
        oldest,
        newest,
        dict(origins.most_common()),
        dict(users.most_common()),
        dict(properties.most_common()),
        index.generation(),
        index.size(),
    )
