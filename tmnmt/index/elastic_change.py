"""Changes of an index on a server: safe beside other writers, and harmless when a request has to be repeated.

A document is written only if nobody has changed it since it was read (its sequence number), else read again. So two
writers lose nothing; and when the answer to a request was lost, the repeated one finds its own work done.

A correction may move a segment to another document, and there is no change of two documents at once. So versions of a
segment are in one order for everybody: by time of change, which every correction makes later, then by document. Who
takes a version away has seen a later one; so the latest is never taken away, whoever else is at work.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal

from tmnmt.counted import counted
from tmnmt.errors import MemoryIndexError, ServerError
from tmnmt.index.base import UnknownIdError, check_sources, corrected
from tmnmt.index.elastic_generation import ElasticGeneration
from tmnmt.index.elastic_layout import COUNTER, changes, document, key, read, written
from tmnmt.index.elastic_server import BUSY, Server, Waiting, reason_in
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, normalise

SEGMENTS_A_REQUEST = 500
MOST_PLACES = 10_000  # documents that hold so many segments; twice as many at most

Places = dict[str, Segment]  # documents that hold a segment, by name: one, unless a correction is under way
Version = tuple[str, str]  # of a segment: when it was changed, and the document that holds it
LAST: Version = ("\U0010ffff", "")  # later than any: for what is deleted


@dataclass
class _Change:
    """What becomes of one document: these pairs come in, or into the place of earlier versions of themselves; pairs
    with these ids go where they are earlier than these versions."""

    put: dict[int, Segment] = field(default_factory=dict)
    remove: dict[int, Version] = field(default_factory=dict)

    def carried_out(self, name: str, pairs: Iterable[Segment]) -> dict[int, Segment]:
        """The pairs of the document `name` by id, when this is done."""
        kept = {pair.id: pair for pair in pairs if (pair.changed, name) >= self.remove.get(pair.id, ("", ""))}
        new = {n: pair for n, pair in self.put.items() if n not in kept or pair.changed >= kept[n].changed}
        return kept | new


class Writer:
    """Changes one generation of an index. Every method raises ServerError with how much of it was done for certain,
    and MemoryIndexError where the index is built anew meanwhile."""

    def __init__(self, server: Server, generation: ElasticGeneration) -> None:
        self._server, self._generation = server, generation

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Adds segments; their ids, ascending. On return they are durable and can be found."""
        first = self._reserve(len(segments)) if segments else 0
        numbered = [replace(segment, id=first + i) for i, segment in enumerate(segments)]
        if len(numbered) <= SEGMENTS_A_REQUEST:
            self._step_by_step(numbered, self._add, "added")
        else:  # visible once, at the end: waiting for that after every request would take most of the time
            self._step_by_step(numbered, partial(self._add, refresh=False), "added")
            self._ask(self._server.client.indices.refresh)
        return [segment.id for segment in numbered]

    def edit(self, ids: Iterable[int], change: Callable[[Segment], Segment]) -> list[Segment]:
        """Puts `change(segment)` in the place of every segment with one of these ids; the new segments."""
        held = self._held_by(ids)
        edited = [corrected(old := _latest(places), change(old)) for places in held.values()]
        check_sources(edited)

        def step(some: Sequence[Segment]) -> None:
            self._add(some)  # a segment comes to its new document before it leaves the old one: a stop loses nothing
            moved = ((place, s, _name(s)) for s in some for place in held[s.id])
            self._remove((place, s.id, (s.changed, name)) for place, s, name in moved if place != name)
            self._settle([segment.id for segment in some])

        self._step_by_step(edited, step, "corrected")
        return edited

    def delete(self, ids: Iterable[int]) -> None:
        """Deletes the segments with these ids."""
        held = self._held_by(ids)

        def step(some: Sequence[int]) -> None:
            self._remove((name, number, LAST) for number in some for name in held[number])

        self._step_by_step(list(held), step, "deleted")

    def get(self, ids: Iterable[int]) -> list[Segment]:
        """The segments with these ids, in their order."""
        wanted = list(ids)
        held = self._held_by(wanted)
        return [_latest(held[number]) for number in wanted]

    def _step_by_step(self, all_of_them: Sequence[Any], step: Callable[[Sequence[Any]], None], done: str) -> None:
        rest = iter(all_of_them)
        before = 0
        while some := list(islice(rest, SEGMENTS_A_REQUEST)):
            try:
                step(some)
            except ServerError as error:
                counts = f"{before:,} of {counted(len(all_of_them), 'segment')} {done} for certain"
                raise ServerError(f"{error} ({counts}, the next {len(some):,} perhaps)") from error
            before += len(some)

    def _add(self, segments: Sequence[Segment], refresh: Literal["wait_for", False] = "wait_for") -> None:
        todo: defaultdict[str, _Change] = defaultdict(_Change)
        for segment in segments:
            todo[_name(segment)].put[segment.id] = segment
        self._carry_out(todo, refresh)

    def _remove(self, where: Iterable[tuple[str, int, Version]]) -> None:
        """Takes segments out of documents by name, where their version is earlier than this one."""
        todo: defaultdict[str, _Change] = defaultdict(_Change)
        for name, number, later in where:
            todo[name].remove[number] = later
        self._carry_out(todo)

    def _settle(self, ids: Sequence[int]) -> None:
        """Where two have moved a segment at once, so that it is in two documents, the later correction stays."""
        for number, places in self._places(ids).items():
            latest = max((segment.changed, name) for name, segment in places.items())
            self._remove((name, number, latest) for name in places if name != latest[1])

    def _held_by(self, ids: Iterable[int]) -> dict[int, Places]:
        """Where each of these segments lies. Raises UnknownIdError where one is not or no more there."""
        held: dict[int, Places] = {}
        rest = iter(dict.fromkeys(ids))
        while some := list(islice(rest, SEGMENTS_A_REQUEST)):
            found = self._places(some)
            if missing := [number for number in some if number not in found]:
                raise UnknownIdError(f"{self._server.address}: there is no segment {missing[0]}")
            held |= {number: found[number] for number in some}
        return held

    def _places(self, ids: Sequence[int]) -> dict[int, Places]:
        answer = self._ask(
            self._server.client.search, query={"terms": {"ids": list(ids)}}, size=MOST_PLACES,
            allow_partial_search_results=False,
        )  # fmt: skip
        wanted = set(ids)
        found: defaultdict[int, Places] = defaultdict(dict)
        for hit in answer["hits"]["hits"]:
            for pair in hit["_source"]["pairs"]:
                if pair["id"] in wanted:
                    found[pair["id"]][hit["_id"]] = read(pair)
        return dict(found)

    def _reserve(self, count: int) -> int:
        """The first of `count` ids that nobody else gets."""
        from elasticsearch import ConflictError

        client = self._server.client
        waiting = Waiting(self._server)
        while True:
            held = self._ask(client.get, id=COUNTER)
            last = int(held["_source"]["last_id"])
            try:
                self._ask(
                    client.index, expected=(409,), id=COUNTER, document={"last_id": last + count}, require_alias=True,
                    **_unless_changed(held),
                )  # fmt: skip
            except ConflictError as error:
                waiting.pause("others add too fast", error)
            else:
                return last + 1

    def _carry_out(self, todo: dict[str, _Change], refresh: Literal["wait_for", False] = "wait_for") -> None:
        """Changes these documents; again those that somebody else has changed meanwhile."""
        waiting = Waiting(self._server)
        while todo:
            held = self._held(list(todo))
            lines = {name: self._operation(name, change, held[name]) for name, change in todo.items()}
            todo = {name: change for name, change in todo.items() if lines[name]}
            refused = None
            for result in self._write([line for name in todo for line in lines[name]], refresh):
                if result["status"] < 300:
                    del todo[result["_id"]]
                elif result["status"] == 404:
                    raise self._gone()
                elif result["status"] == 409 or result["status"] in BUSY:
                    refused = result["error"]
                else:
                    raise self._server.error(f"a change was refused: {reason_in(result['error'])}")
            if refused is not None:
                waiting.pause(f"did not take {counted(len(todo), 'change')} yet: {reason_in(refused)}")

    def _held(self, names: list[str]) -> dict[str, Any]:
        found = {doc["_id"]: doc for doc in self._ask(self._server.client.mget, ids=names)["docs"]}
        if wrong := next((doc["error"] for doc in found.values() if "error" in doc), None):
            if wrong["type"] == "index_not_found_exception":
                raise self._gone()
            raise self._server.error(f"changes cannot be prepared: {reason_in(wrong)}")
        return found

    def _operation(self, name: str, change: _Change, held: Any) -> list[str | bytes]:
        """The lines of a bulk request that carry `change` out, or that write a document as it is where that was done;
        none where there is nothing left to delete."""
        content = held["_source"] if held["found"] else {"pairs": []}
        pairs = change.carried_out(name, map(read, content["pairs"]))
        condition = {"_id": name, **(_unless_changed(held) if held["found"] else {})}
        if not pairs:
            return [json.dumps({"delete": condition})] if held["found"] else []
        built = self._generation.manifest.segments
        touched = {*content.get("corrected", ()), *change.put}
        ordered = sorted(pairs.values(), key=lambda segment: segment.id)
        ordered.sort(key=lambda segment: segment.changed, reverse=True)
        fields = changes(pairs, built, [number for number in pairs if number <= built and number in touched])
        tokens = match_tokens(ordered[0].src)
        new = document(tokens, ((segment.id, written(segment, segment.id)) for segment in ordered), fields)
        return [json.dumps({"index" if held["found"] else "create": condition}), new]

    def _write(self, lines: list[str | bytes], refresh: Literal["wait_for", False]) -> list[Any]:
        client = self._server.client
        if not lines:  # done by a request whose answer was lost: perhaps not visible yet
            self._ask(client.indices.refresh)
            return []
        answer = self._ask(client.bulk, operations=lines, require_alias=True, refresh=refresh)
        return [next(iter(item.values())) for item in answer["items"]]

    def _ask(self, request: Callable[..., Any], *, expected: Sequence[int] = (), **parameters: Any) -> Any:
        """As `Server.ask`, of this generation alone."""
        from elasticsearch import NotFoundError

        try:
            return self._server.ask(request, expected=(404, *expected), index=self._generation.only, **parameters)
        except NotFoundError as error:
            raise self._gone() from error

    def _gone(self) -> MemoryIndexError:
        return MemoryIndexError(f"{self._server.address}: was built anew meanwhile, without this change; make it again")


def _name(segment: Segment) -> str:
    return key(normalise(segment.src), segment.id)


def _latest(places: Places) -> Segment:
    return max(places.values(), key=lambda segment: segment.changed)


def _unless_changed(held: Any) -> dict[str, int]:
    return {"if_seq_no": held["_seq_no"], "if_primary_term": held["_primary_term"]}
