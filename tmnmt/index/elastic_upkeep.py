"""Keeping an index on a server in shape: what is known of it, merging its parts, reading all of it."""

from __future__ import annotations

from typing import Any

from tmnmt.errors import MemoryIndexError
from tmnmt.index.elastic_generation import BY_ID, HOLDS_PAIRS, ElasticGeneration, Hit, pages
from tmnmt.index.elastic_layout import key, read
from tmnmt.index.elastic_server import Server, reason_in
from tmnmt.text import match_tokens

SECONDS_TO_MERGE = 3600.0  # minutes for some ten million pairs


def count_segments(server: Server) -> int:
    """How many segments the index holds."""
    return _sums(server)["all"]


def count_changes(server: Server, generation: ElasticGeneration) -> tuple[int, int, int]:
    """How many segments were added, corrected and deleted since the index was built, and stay so."""
    sums = _sums(server)
    return sums["added"], sums["corrected"], generation.manifest.segments - (sums["all"] - sums["added"])


def stored_bytes(server: Server) -> int:
    """Bytes on disk of one copy of every shard."""
    found = server.ask(server.client.indices.stats, index=server.address.name, metric="store")
    return int(found["_all"]["primaries"]["store"]["size_in_bytes"])


def merge(server: Server) -> None:
    """Makes every shard one part, without what was deleted (but of late: that is kept for a while, for replicas).
    Searches and changes go on; the server ends what it has begun, also where nobody waits. Raises ServerError."""
    patient = server.client.options(request_timeout=SECONDS_TO_MERGE)
    answer = server.ask(patient.indices.forcemerge, index=server.address.name, max_num_segments=1)
    if failures := answer["_shards"].get("failures"):
        raise server.error(f"not all was merged, nothing is lost: {reason_in(failures[0]['reason'])}")
    server.ask(server.client.indices.refresh, index=server.address.name)


def verify(server: Server) -> int:
    """Reads everything; how many segments there are. Raises MemoryIndexError at the first document that is not as it
    was written. That every byte is as it was, Elasticsearch sees for itself by checksums when it reads it."""
    seen = bytearray()  # one bit an id
    count = 0
    for page in pages(server, HOLDS_PAIRS, BY_ID, docvalue_fields=["n", "ids"]):
        for hit in page:
            ids = [pair["id"] for pair in hit["_source"]["pairs"]]
            if wrong := _wrong(hit, ids) or _seen_before(seen, ids):
                where = f"{server.address}: document {hit['_id']} with segment {ids[0] if ids else '-'}"
                raise MemoryIndexError(f"{where}: {wrong}; build the index again with --force")
            count += len(ids)
    return count


def _seen_before(seen: bytearray, ids: list[int]) -> str:
    """Notes the ids as seen; what is wrong where one was already."""
    for number in ids:
        byte, bit = number >> 3, 1 << (number & 7)
        seen.extend(bytes(max(0, byte + 1 - len(seen))))
        if seen[byte] & bit:
            return f"segment {number} is in another document too"
        seen[byte] |= bit
    return ""


def _wrong(hit: Hit, ids: list[int]) -> str:
    """What is wrong with a document; "" for nothing."""
    fields: dict[str, Any] = hit.get("fields", {})
    pairs = [read(pair) for pair in hit["_source"]["pairs"]]
    tokens = match_tokens(pairs[0].src) if pairs else []
    if sorted(ids) != sorted(fields["ids"]):
        return f"it is found by the ids {fields['ids']} but holds {ids}"
    if any(match_tokens(pair.src) != tokens for pair in pairs) or hit["_id"] != key(" ".join(tokens), ids[0]):
        return "its sources are not those it was written for"
    if fields.get("n", [0]) != [len(tokens)]:
        return f"it is found by {fields.get('n', [0])[0]} tokens but has {len(tokens)}"
    newest_first = sorted(sorted(pairs, key=lambda pair: pair.id), key=lambda pair: pair.changed, reverse=True)
    return "" if pairs == newest_first else "its pairs are not in order"


def _sums(server: Server) -> dict[str, int]:
    """Segments: all, added and corrected since the build."""
    wanted: dict[str, Any] = {
        "all": {"value_count": {"field": "ids"}},
        "added": {"sum": {"field": "added"}},
        "corrected": {"value_count": {"field": "corrected"}},
    }
    answer = server.ask(
        server.client.search, index=server.address.name, size=0, allow_partial_search_results=False, aggs=wanted
    )
    return {name: int(found["value"]) for name, found in answer["aggregations"].items()}
