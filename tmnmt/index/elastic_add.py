"""Additions to an index on a server: safe beside other writers, and harmless when a request has to be repeated."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.elastic_layout import COUNTER, document, key, read, written
from tmnmt.index.elastic_server import BUSY, Server, Waiting, reason_in
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

SEGMENTS_A_REQUEST = 500
MOST_TOKENS = 65_535  # as in the embedded index


def add(server: Server, segments: Sequence[Segment]) -> list[int]:
    """Adds segments; their ids, ascending. On return they are durable and can be found.

    A document is written only if nobody has changed it since it was read (its sequence number), else read again. So two
    writers lose nothing; and when the answer to a request was lost, the repeated one finds its own pair and leaves it.
    Raises ServerError with what was added and what was not."""
    for segment in segments:
        if len(match_tokens(segment.src)) > MOST_TOKENS:
            raise DataError(f"{segment.src[:40]!r}...: more than {MOST_TOKENS:,} match tokens")
    first = _reserve(server, len(segments)) if segments else 0
    numbered = [replace(segment, id=first + i) for i, segment in enumerate(segments)]
    rest = iter(numbered)
    while some := list(islice(rest, SEGMENTS_A_REQUEST)):
        _add(server, some)
    return [segment.id for segment in numbered]


def _reserve(server: Server, count: int) -> int:
    """The first of `count` ids that nobody else gets."""
    from elasticsearch import ConflictError, NotFoundError

    name = server.address.name
    waiting = Waiting(server)
    while True:
        try:
            held = server.ask(server.client.get, expected=(404,), index=name, id=COUNTER)
            last = int(held["_source"]["last_id"])
            _put(server, {"last_id": last + count}, held)
        except NotFoundError as error:
            raise MemoryIndexError(f"{server.address}: no such index; make one with tmnmt build-index") from error
        except ConflictError as error:
            waiting.pause("others add too fast", error)
        else:
            return last + 1


def _put(server: Server, content: dict[str, Any], held: Any) -> None:
    version = {"if_seq_no": held["_seq_no"], "if_primary_term": held["_primary_term"]}
    name = server.address.name
    server.ask(
        server.client.index, expected=(404, 409), index=name, id=COUNTER, document=content, require_alias=True,
        **version,
    )  # fmt: skip


def _add(server: Server, segments: Sequence[Segment]) -> None:
    """Writes the documents of these segments; again those that somebody else has changed meanwhile."""
    todo: defaultdict[str, list[Segment]] = defaultdict(list)
    for segment in segments:
        todo[key(match_tokens(segment.src), segment.id)].append(segment)
    waiting = Waiting(server)
    while todo:
        held = _held(server, list(todo))
        lines: list[str] = []
        for name, new in todo.items():
            lines += _operation(name, new, held[name])
        refused = None
        for result in _write(server, lines):
            if result["status"] < 300:
                del todo[result["_id"]]
            elif result["status"] == 409 or result["status"] in BUSY:
                refused = result["error"]
            else:
                raise server.error(f"an addition was refused: {reason_in(result['error'])}")
        if refused is not None:
            waiting.pause(f"did not take {len(todo)} additions yet: {reason_in(refused)}")


def _held(server: Server, names: list[str]) -> dict[str, Any]:
    index = server.address.name
    answer = server.ask(server.client.mget, index=index, ids=names)
    found = {doc["_id"]: doc for doc in answer["docs"]}
    if wrong := next((doc for doc in found.values() if "error" in doc), None):
        raise server.error(f"additions cannot be prepared: {reason_in(wrong['error'])}")
    return found


def _operation(name: str, new: Sequence[Segment], held: Any) -> list[str]:
    """The lines of a bulk request that put `new` into the document, or that write it as it is if they are in it."""
    pairs = {segment.id: segment for segment in new}
    action, condition = "create", {}
    if held["found"]:
        pairs |= {pair["id"]: read(pair) for pair in held["_source"]["pairs"]}
        action, condition = "index", {"if_seq_no": held["_seq_no"], "if_primary_term": held["_primary_term"]}
    ordered = sorted(pairs.values(), key=lambda segment: segment.id)
    ordered.sort(key=lambda segment: segment.changed, reverse=True)
    content = document(match_tokens(new[0].src), [written(segment) for segment in ordered])
    return [json.dumps({action: {"_id": name, **condition}}), content]


def _write(server: Server, lines: list[Any]) -> list[Any]:
    index = server.address.name
    answer = server.ask(server.client.bulk, operations=lines, index=index, require_alias=True, refresh="wait_for")
    return [next(iter(item.values())) for item in answer["items"]]
