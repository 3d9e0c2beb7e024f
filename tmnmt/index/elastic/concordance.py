"""Where a phrase stands, on a server: it names the documents that have it in whatever case, newest
first, and they are looked at one by one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tmnmt.index.concordance import Occurrence, Phrase, Word, occurrences, spelling
from tmnmt.index.elastic.generation import (
    GenerationGone,
    Hit,
    every_segment,
    pages,
    read_generation,
)
from tmnmt.index.elastic.layout import SRC_WORDS, TGT_WORDS, read
from tmnmt.index.elastic.query import MOST_CHARS
from tmnmt.index.elastic.server import Server
from tmnmt.index.filter import Filter
from tmnmt.segments import Segment

DOCUMENTS_A_PAGE = 200
# a document has the place of the best of its segments
NEWEST_FIRST = ({"newest": "desc"}, {"newest_id": "asc"})

log = logging.getLogger(__name__)


def with_phrase(
    server: Server,
    phrase: Phrase,
    k: int,
    conditions: Filter,
    find: Callable[[Iterable[int]], Mapping[int, Segment]],
) -> list[Occurrence]:
    """The newest segments that have a phrase, each with its places. Of an index of a former format
    all segments are read.

    server: the server.
    phrase: the phrase.
    k: how many segments are given at most.
    conditions: which segments are found.
    find: gives segments by their ids."""
    while True:
        manifest = read_generation(server).manifest
        try:
            if manifest.has_words:
                query = _query(phrase, manifest.has_places)
                # nearly every document that is named counts
                size = k if manifest.has_places and not conditions else DOCUMENTS_A_PAGE
                hits = pages(server, query, NEWEST_FIRST, min(size, DOCUMENTS_A_PAGE))
                return _newest(hits, phrase, k, conditions, find)
            log.info(
                "%s: an index of format %d does not know where words stand; looking at all of it. "
                "Built again it does",
                server.address,
                manifest.format,
            )
            return occurrences(phrase, filter(conditions.keeps, every_segment(server)), k)
        except GenerationGone:
            continue


def _newest(
    hits: Iterator[list[Hit]],
    phrase: Phrase,
    k: int,
    conditions: Filter,
    find: Callable[[Iterable[int]], Mapping[int, Segment]],
) -> list[Occurrence]:
    """Reads pages of documents until none that follows can have a newer segment."""
    newest: dict[int, Segment] = {}
    best = list[Occurrence]()
    for page in hits:
        pairs = [pair for hit in page for pair in hit["_source"]["pairs"]]
        segments = {segment.id: segment for segment in map(read, pairs)}
        # one on its way to another document: as it is there, if it has arrived
        segments |= find(pair["id"] for pair in pairs if "becomes" in pair)
        newest |= {
            occurrence.segment.id: occurrence.segment
            for occurrence in occurrences(
                phrase, filter(conditions.keeps, segments.values()), len(segments)
            )
        }
        best = occurrences(phrase, newest.values(), k)
        newest = {occurrence.segment.id: occurrence.segment for occurrence in best}
        if len(best) == k and page and not _is_before(page[-1]["sort"], best[-1].segment):
            break
    return best


def _is_before(place: list[Any], segment: Segment) -> bool:
    """Whether a document at this place of the order can be followed by one with a newer segment."""
    newest, number = place[:2]
    return bool(newest > segment.changed or (newest == segment.changed and number < segment.id))


def _query(phrase: Phrase, has_places: bool) -> dict[str, Any]:
    """The documents that have the phrase, whatever its case. Where the places of words are not
    known, those that have every word."""
    field = SRC_WORDS if phrase.side == "source" else TGT_WORDS
    if len(phrase.words) == 1 or not has_places:
        return {"bool": {"filter": [_has(field, word) for word in phrase.words]}}
    # tokens that may stand between the words; one token can be several of them
    slop = 0 if phrase.within is None else max(0, phrase.within + 1 - len(phrase.words))
    words = [_place(field, word) for word in phrase.words]
    span_query = {"clauses": words, "slop": slop, "in_order": phrase.within is None}
    return {"bool": {"filter": [{"span_near": span_query}]}}


def _has(field: str, word: Word) -> dict[str, Any]:
    text = spelling(word.text)[:MOST_CHARS]
    return {"prefix" if word.is_beginning else "term": {field: {"value": text}}}


def _place(field: str, word: Word) -> dict[str, Any]:
    if word.is_beginning:
        return {"span_multi": {"match": _has(field, word)}}
    return {"span_term": _has(field, word)["term"]}
