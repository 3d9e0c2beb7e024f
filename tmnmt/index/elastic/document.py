"""A document on the server as it was read, being changed: the segments that it holds, those that
are on their way to another one, and the requests that it remembers."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import orjson

from tmnmt.index.elastic.layout import (
    ElasticManifest,
    becoming,
    changes,
    document,
    emptied,
    encode_segment,
    key,
    read,
)
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, normalise

# that a document knows to have changed it: fewer may come between a lost answer and the next try
REQUESTS_KEPT = 100


@dataclass
class Document:
    """A document as it was read, being changed.

    name: its name.
    version: the condition that it is as it was read; empty where there is none yet.
    pairs: its segments, by their ids.
    moving: what some of its segments are to become in another document, by their ids.
    corrected: the ids of segments that were corrected.
    requests: the names of requests that have changed it, the last at the end."""

    name: str
    version: dict[str, int]
    pairs: dict[int, Segment]
    moving: dict[int, Segment]
    corrected: set[int]
    requests: list[str]

    def put(self, segment: Segment) -> None:
        """Takes a segment, or a new version of one of its own: to keep it or, where it belongs
        elsewhere, to move.

        segment: the segment."""
        if name_of(segment) != self.name:
            self.moving[segment.id] = segment
        elif segment.id not in self.pairs or self.pairs[segment.id].changed < segment.changed:
            self.pairs[segment.id] = segment
            self.corrected.add(segment.id)

    def remove(self, number: int) -> None:
        """Removes a segment.

        number: the id of the segment."""
        del self.pairs[number]
        self.moving.pop(number, None)

    def arrived(self, names: Set[str]) -> None:
        """Removes the segments that have come to some documents.

        names: the names of these documents."""
        for number in [number for number, new in self.moving.items() if name_of(new) in names]:
            self.remove(number)

    def operation(self, manifest: ElasticManifest, request: str) -> list[bytes]:
        """The lines of a bulk request that writes the document.

        manifest: what the index held when it was built.
        request: the name of the request, which the document keeps; "" for none."""
        condition = {"_id": self.name, **self.version}
        action = orjson.dumps({"index" if self.version else "create": condition})
        requests = [*self.requests, request][-REQUESTS_KEPT:] if request else self.requests
        if not self.pairs:
            return [action, emptied(requests)]
        ordered = sorted(self.pairs.values(), key=lambda segment: segment.id)
        ordered.sort(key=lambda segment: segment.changed, reverse=True)
        of_the_build = [
            number
            for number in self.pairs
            if number <= manifest.segments and number in self.corrected
        ]
        fields = changes(self.pairs, manifest.segments, of_the_build, self.moving, requests)
        pairs = (
            (segment.id, encode_segment(segment, segment.id, self.moving.get(segment.id)))
            for segment in ordered
        )
        tokens = match_tokens(ordered[0].src)
        features = manifest.has_skeletons, manifest.has_words
        return [action, document(tokens, pairs, fields, *features)]


def document_of(name: str, answer: Any) -> Document:
    """The document of an answer of the server.

    name: the name of the document.
    answer: the answer to a request for it."""
    content = answer["_source"] if answer["found"] else {}
    moving = {pair["id"]: becoming(pair) for pair in content.get("pairs", ())}
    return Document(
        name,
        unless_changed(answer) if answer["found"] else {},
        {pair["id"]: read(pair) for pair in content.get("pairs", ())},
        {number: new for number, new in moving.items() if new is not None},
        set(content.get("corrected", ())),
        list(content.get("requests", ())),
    )


def name_of(segment: Segment) -> str:
    """The name of the document that a segment belongs to.

    segment: the segment."""
    return key(normalise(segment.src), segment.id)


def unless_changed(answer: Any) -> dict[str, int]:
    """The condition that a document is as it was read.

    answer: the answer that it was read from."""
    return {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
