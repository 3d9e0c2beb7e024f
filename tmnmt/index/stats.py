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
    """Counts of segments.

    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    segments: how many segments there are.
    added: how many were added since the index was built or compacted; on a server, since it was
    built.
    corrected: how many were corrected since then.
    deleted: how many were deleted since then.
    documents: how many documents there are.
    without_document: how many segments are in no document.
    oldest: the least `changed`; "" where none is known.
    newest: the greatest `changed`; "" where none is known.
    origins: how many segments there are of each origin.
    users: how many segments there are of each user.
    properties: how many segments have each property, by its name.
    generation: how many times the index was made.
    bytes: how many bytes it takes on disk."""

    src_lang: str
    tgt_lang: str
    segments: int
    added: int
    corrected: int
    deleted: int
    documents: int
    without_document: int
    oldest: str
    newest: str
    origins: dict[str, int]
    users: dict[str, int]
    properties: dict[str, int]
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
