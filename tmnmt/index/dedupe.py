"""Which segments of a memory say again what a newer one says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

from tmnmt.segments import Segment
from tmnmt.text import normalise

Criterion = Literal["pair", "source"]


def duplicates(
    segments: Iterable[Segment], criterion: Criterion = "pair", within_documents: bool = False
) -> list[int]:
    """The ids of all but the newest (greatest `changed`, then smallest id) among segments that are
    equal in match tokens. It takes some 150 bytes of memory a distinct segment, for which a hash of
    128 bits stands.

    segments: the segments.
    criterion: what has to be equal: "pair" for both texts, "source" for the source alone.
    within_documents: whether only segments of one document are compared."""
    newest: dict[bytes, tuple[str, int]] = {}
    older = []
    for segment in segments:
        key = _key(segment, criterion, within_documents)
        current = segment.changed, -segment.id
        best = newest.get(key)
        if best is not None:
            older.append(-min(best, current)[1])
        newest[key] = current if best is None else max(best, current)
    return older


def _key(segment: Segment, criterion: Criterion, within_documents: bool) -> bytes:
    target = normalise(segment.tgt) if criterion == "pair" else ""
    document = segment.document if within_documents else ""
    key = "\n".join((normalise(segment.src), target, document))  # tokens have no line end
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
