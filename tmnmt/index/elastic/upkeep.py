"""Keeping an index on a server in shape: what is known of it, merging its parts,
reading all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from tmnmt.errors import MemoryIndexError
from tmnmt.index.elastic.generation import (
    BY_ID,
    HOLDS_PAIRS,
    MOVING,
    ElasticGeneration,
    Hit,
    pages,
    read_generation,
)
from tmnmt.index.elastic.layout import COUNTER, key, read
from tmnmt.index.elastic.server import Server, reason_in
from tmnmt.text import is_of_special_signs, match_tokens

TERMS_A_REQUEST = 10_000  # of 65,536 that a server allows
SECONDS_TO_MERGE = 3600.0  # minutes for some ten million pairs


def count_segments(server: Server, generation: ElasticGeneration) -> int:
    """How many segments the index holds.

    server: the server.
    generation: the generation that answers."""
    return _sums(server, generation)["all"]


def count_changes(server: Server, generation: ElasticGeneration) -> tuple[int, int, int]:
    """How many segments were added, corrected and deleted since the index was built, and stay so.

    server: the server.
    generation: the generation that answers."""
    sums = _sums(server, generation)
    return (
        sums["added"],
        sums["corrected"],
        generation.manifest.segments - (sums["all"] - sums["added"]),
    )


def greatest_id(server: Server) -> int:
    """The greatest id that a segment was ever given.

    server: the server."""
    answer = server.ask("GET", f"/{server.address.name}/_doc/{COUNTER}")
    return int(answer["_source"]["last_id"])


def stored_bytes(server: Server) -> int:
    """The bytes on disk of one copy of every shard.

    server: the server."""
    answer = server.ask("GET", f"/{server.address.name}/_stats/store")
    return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])


def merge(server: Server) -> None:
    """Makes every shard one part, without what was deleted (but of late: that is kept for a while,
    for replicas). Searches and changes go on. The server ends what it has begun, also where nobody
    waits.

    server: the server.

    Raises ServerError where not all was merged; nothing is lost then."""
    path = f"/{server.address.name}/_forcemerge"
    answer = server.ask("POST", path, seconds=SECONDS_TO_MERGE, max_num_segments=1)
    if failures := answer["_shards"].get("failures"):
        raise server.error(
            f"not all was merged, nothing is lost: {reason_in(failures[0]['reason'])}"
        )
    server.ask("POST", f"/{server.address.name}/_refresh")


def verify(server: Server) -> int:
    """Reads everything, and returns how many segments there are. The server itself checks by
    checksums that every byte is as it was.

    server: the server.

    Raises MemoryIndexError at the first document that is not as it was written."""
    id_bits = bytearray()  # one bit an id
    count = 0
    twice: list[int] = []
    is_former = read_generation(server).manifest.is_of_former_tokens
    for page in pages(server, HOLDS_PAIRS, BY_ID, docvalue_fields=["n", "ids", "moving"]):
        for hit in page:
            if wrong := _wrong(hit, is_former):
                raise _damaged(server, hit, wrong)
            ids = [pair["id"] for pair in hit["_source"]["pairs"]]
            repeated = [number for number in ids if not _note(id_bits, number)]
            count += len(ids) - len(repeated)
            twice += repeated
    if twice:
        _check_moves(server, twice)
    return count


def _note(id_bits: bytearray, number: int) -> bool:
    """Notes an id as seen; False where it was already."""
    byte, bit = number >> 3, 1 << (number & 7)
    id_bits.extend(bytes(max(0, byte + 1 - len(id_bits))))
    new = not id_bits[byte] & bit
    id_bits[byte] |= bit
    return new


def _check_moves(server: Server, ids: Sequence[int]) -> None:
    """Raises MemoryIndexError where one of these segments is in two documents and does not move
    from one to the other, now and when all is read again: shards are not read at one moment, so
    what moves may be seen where it was and where it is."""
    suspects = {
        number: places for number, places in _places(server, ids).items() if len(places) > 1
    }
    server.ask("POST", f"/{server.address.name}/_refresh")
    current = _places(server, list(suspects))
    if twice := [number for number, places in suspects.items() if current.get(number) == places]:
        documents = " and ".join(sorted(document for document, _ in suspects[twice[0]]))
        problem = (
            f"segment {twice[0]} is in the documents {documents}; build the index again with "
            "--force"
        )
        raise MemoryIndexError(f"{server.address}: {problem}")


def _places(server: Server, ids: Sequence[int]) -> dict[int, set[tuple[str, str]]]:
    """The documents that hold each of these segments to stay, and when it was changed there."""
    places: dict[int, set[tuple[str, str]]] = {number: set() for number in ids}
    for hit in _holding(server, ids):
        for pair in hit["_source"]["pairs"]:
            if pair["id"] in places and "becomes" not in pair:
                places[pair["id"]].add((hit["_id"], pair.get("changed", "")))
    return places


def _holding(server: Server, ids: Sequence[int]) -> Iterator[Hit]:
    """The documents that hold any of these segments, once or more often."""
    rest = iter(ids)
    while terms := list(islice(rest, TERMS_A_REQUEST)):
        yield from chain.from_iterable(pages(server, {"terms": {"ids": terms}}, BY_ID))


def _damaged(server: Server, hit: Hit, wrong: str) -> MemoryIndexError:
    pairs = hit["_source"]["pairs"]
    location = (
        f"{server.address}: document {hit['_id']} with segment {pairs[0]['id'] if pairs else '-'}"
    )
    return MemoryIndexError(f"{location}: {wrong}; build the index again with --force")


def _wrong(hit: Hit, is_former: bool) -> str:
    """What is wrong with a document; "" for nothing. is_former: its tokens are of a former
    tokenisation, so those of special signs cannot be told to be wrong."""
    fields: dict[str, Any] = hit.get("fields", {})
    pairs = [read(pair) for pair in hit["_source"]["pairs"]]
    ids = [pair.id for pair in pairs]
    moving = [pair["id"] for pair in hit["_source"]["pairs"] if "becomes" in pair]
    tokens = match_tokens(pairs[0].src) if pairs else []
    if len(set(ids)) < len(ids):
        return f"it holds a segment twice: {sorted(ids)}"
    if sorted(ids) != sorted(fields["ids"]):
        return f"it is found by the ids {fields['ids']} but holds {ids}"
    if sorted(moving) != sorted(fields.get("moving", [])):
        return f"the segments that move are {moving} but it is found by {fields.get('moving', [])}"
    if not (is_former and any(is_of_special_signs(pair.src) for pair in pairs)):
        if any(match_tokens(pair.src) != tokens for pair in pairs) or hit["_id"] != key(
            " ".join(tokens), ids[0]
        ):
            return "its sources are not those it was written for"
        if fields.get("n", [0]) != [len(tokens)]:
            return f"it is found by {fields.get('n', [0])[0]} tokens but has {len(tokens)}"
    newest_first = sorted(
        sorted(pairs, key=lambda pair: pair.id), key=lambda pair: pair.changed, reverse=True
    )
    return "" if pairs == newest_first else "its pairs are not in order"


def _sums(server: Server, generation: ElasticGeneration) -> dict[str, int]:
    """Segments: all, added and corrected since the build."""
    sums_asked: dict[str, Any] = {
        "all": {"value_count": {"field": "ids"}},
        "added": {"sum": {"field": "added"}},
        "corrected": {"value_count": {"field": "corrected"}},
        "moving": {"value_count": {"field": "moving"}},
    }
    answer = server.ask(
        "POST",
        f"/{server.address.name}/_search",
        {"size": 0, "aggs": sums_asked},
        allow_partial_search_results=False,
    )
    sums = {name: int(total["value"]) for name, total in answer["aggregations"].items()}
    if sums["moving"]:
        twice = _twice(server)
        sums["all"] -= len(twice["ids"])
        sums["added"] -= sum(number > generation.manifest.segments for number in twice["ids"])
        sums["corrected"] -= len(twice["corrected"])
    return sums


def _twice(server: Server) -> dict[str, list[int]]:
    """Which of the segments that are moving stand twice in the fields `ids` and `corrected` of all
    documents."""
    moving = [
        n for page in pages(server, MOVING, BY_ID) for hit in page for n in hit["_source"]["moving"]
    ]
    documents: dict[tuple[str, int], set[str]] = defaultdict(set)
    for hit in _holding(server, moving):
        for name in ("ids", "corrected"):
            for number in hit["_source"].get(name, ()):
                documents[name, number].add(hit["_id"])
    return {
        name: [n for n in moving if len(documents[name, n]) > 1] for name in ("ids", "corrected")
    }
