"""Changes of an index on a server, beside other writers, and repeated where the answer to a request
was lost.

A document is written only if nobody has changed it since it was read (its sequence number), else
read and changed again. So of two who change a segment at once, the second works on what the first
has left. A document keeps the names of the last requests that have changed it: where an answer was
lost, the repeated request finds its own work done, whatever others have made of it since; where too
many have followed, it says that it cannot know. A document that holds nothing any more stays for a
while for that alone.

A correction of the source moves a segment to another document, and there is no change of two
documents at once. So the move is first written into the document that holds the segment, beside it:
from then on it is decided. Then the new version comes into its document, and the old one leaves.
Whoever wants to change a segment that is moving first carries the move to its end; so one that was
broken off waits for nothing but that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from secrets import token_urlsafe
from typing import Any, Literal

import orjson

from tmnmt.errors import DataError, MemoryIndexError, ServerError
from tmnmt.index.base import UnknownIdError, check_sources, corrected
from tmnmt.index.elastic.document import (
    REQUESTS_KEPT,
    Document,
    document_of,
    name_of,
    unless_changed,
)
from tmnmt.index.elastic.generation import HITS_A_PAGE, MOVING, ElasticGeneration, read_generation
from tmnmt.index.elastic.layout import (
    COUNTER,
    emptied,
    encode_segment,
    read,
)
from tmnmt.index.elastic.server import BUSY, CONFLICT, NOT_FOUND, Server, Waiting, reason_in
from tmnmt.quantities import quantity
from tmnmt.segments import Segment

SEGMENTS_A_REQUEST = 500
KEPT_EMPTY = "1h"  # longer than anybody waits for an answer, and than clocks differ
MOST_PLACES = 10_000  # documents that hold so many segments; twice as many at most

# whether a request returns when its changes can be found, or at once
Refresh = Literal["wait_for", False]


class Writer:
    """Changes one generation of an index. Every method raises ServerError with how much of it was
    done for certain, and MemoryIndexError where the index is built anew meanwhile."""

    def __init__(self, server: Server, generation: ElasticGeneration) -> None:
        """server: the server.
        generation: the generation that is changed."""
        self._server, self._generation = server, generation

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Adds segments and returns their ids, ascending. On return they are durable and can be
        found.

        segments: the segments."""
        first = self._reserve(len(segments)) if segments else 0
        numbered = [replace(segment, id=first + i) for i, segment in enumerate(segments)]
        _check_texts(numbered)
        if len(numbered) <= SEGMENTS_A_REQUEST:
            self._step_by_step(numbered, self._add, "added")
        # visible once, at the end: waiting for that after every request would take most of the time
        else:
            self._step_by_step(numbered, partial(self._add, refresh=False), "added")
            try:
                self._ask("POST", "_refresh")
            except ServerError as error:
                note = f"all {len(numbered):,} segments are added, but perhaps not found yet"
                raise ServerError(f"{error} ({note})") from error
        return [segment.id for segment in numbered]

    def edit(self, ids: Iterable[int], change: Callable[[Segment], Segment]) -> list[Segment]:
        """Replaces segments and returns the new ones.

        ids: the ids of the segments.
        change: gives the new segment for the old one. It is called more than once: to check first,
        and again where somebody else has changed the segment meanwhile.

        Raises UnknownIdError or DataError; then nothing was changed, unless the UnknownIdError says
        what was deleted meanwhile."""
        numbers = list(dict.fromkeys(ids))
        changed = [change(segment) for segment in self.get(numbers)]
        check_sources(changed)
        _check_texts(changed)
        new: dict[int, Segment] = {}

        def correct(entry: Document, number: int) -> None:
            new[number] = corrected(entry.pairs[number], change(entry.pairs[number]))
            check_sources([new[number]])
            _check_texts([new[number]])
            entry.put(new[number])

        deleted: set[int] = set()
        self._step_by_step(
            numbers, lambda remaining: deleted.update(self._change(remaining, correct)), "corrected"
        )
        if deleted:
            raise UnknownIdError(
                f"{self._server.address}: segment {min(deleted)} was deleted meanwhile "
                f"({len(numbers) - len(deleted):,} of "
                f"{quantity(len(numbers), 'segment')} corrected)"
            )
        return [new[number] for number in numbers]

    def delete(self, ids: Iterable[int]) -> None:
        """Deletes segments.

        ids: the ids of the segments.

        Raises UnknownIdError; then nothing was deleted."""
        numbers = list(dict.fromkeys(ids))
        self.get(numbers)
        self._step_by_step(numbers, partial(self._change, change=Document.remove), "deleted")

    def get(self, ids: Iterable[int]) -> list[Segment]:
        """The segments with these ids, in the order of the ids, as a search finds them.

        ids: the ids.

        Raises UnknownIdError where a segment is not there."""
        numbers = list(ids)
        segments: dict[int, Segment] = {}
        rest = iter(dict.fromkeys(numbers))
        while batch := list(islice(rest, SEGMENTS_A_REQUEST)):
            for hit in self._hits(batch, ["pairs"]):
                for segment in map(read, hit["_source"]["pairs"]):
                    if segment.id not in segments or segments[segment.id].changed < segment.changed:
                        segments[segment.id] = segment
            if missing := next((number for number in batch if number not in segments), None):
                raise UnknownIdError(f"{self._server.address}: there is no segment {missing}")
        return [segments[number] for number in numbers]

    def finish(self) -> None:
        """Carries every move that was broken off to its end, and removes documents that hold
        nothing any more."""
        self._ask("POST", "_refresh")
        previous: list[str] = []
        while names := [
            hit["_id"]
            for hit in self._search({"query": MOVING, "size": HITS_A_PAGE, "_source": False})
        ]:
            if names == previous and not any(
                entry.moving for entry in self._read(names, by_primaries=True).values()
            ):
                problem = f"document {names[0]} is found by a segment that moves, and holds none"
                raise MemoryIndexError(
                    f"{self._server.address}: {problem}; build the index again with --force"
                )
            self._finish(names)
            previous = names
        empty = {"range": {"emptied": {"lt": f"now-{KEPT_EMPTY}"}}}
        waiting = Waiting(self._server)
        search = {"query": empty, "size": HITS_A_PAGE, "_source": False}
        while hits := self._search({**search, "seq_no_primary_term": True}):
            lines = [
                orjson.dumps({"delete": {"_id": hit["_id"], **unless_changed(hit)}}) for hit in hits
            ]
            if len(self._bulk(lines, waiting, "wait_for")) < len(hits):
                waiting = Waiting(self._server)

    def _step_by_step(
        self, all_of_them: Sequence[Any], step: Callable[[Sequence[Any]], object], outcome: str
    ) -> None:
        rest = iter(all_of_them)
        completed = 0
        while numbers := list(islice(rest, SEGMENTS_A_REQUEST)):
            try:
                step(numbers)
            except (ServerError, DataError) as error:
                total = quantity(len(all_of_them), "segment")
                counts = f"{completed:,} of {total} {outcome} for certain"
                raise type(error)(
                    f"{error} ({counts}, the next {len(numbers):,} perhaps)"
                ) from error
            completed += len(numbers)

    def _add(self, segments: Sequence[Segment], refresh: Refresh = "wait_for") -> None:
        remaining = segments
        request, waiting = _new_request(), Waiting(self._server)
        while remaining:
            documents = self._read(map(name_of, remaining))
            for segment in remaining:
                documents[name_of(segment)].put(segment)
            accepted = self._write(documents.values(), waiting, request, refresh)
            remaining = [segment for segment in remaining if name_of(segment) not in accepted]

    def _change(self, ids: Iterable[int], change: Callable[[Document, int], None]) -> set[int]:
        """Has every one of these segments changed in the document that holds it, again where that
        was changed meanwhile; those that are gone."""
        remaining = set(ids)
        deleted = set[int]()
        waiting = Waiting(self._server)
        while remaining:
            documents_of = self._documents_of(remaining, waiting)
            deleted |= remaining - documents_of.keys()
            documents = {entry.name: entry for entry in documents_of.values()}
            for number, entry in documents_of.items():
                change(entry, number)
            # a new name in every round: a segment may come into a document that the round before
            # has changed already
            # a move is seen before anything of it is
            accepted = self._write(documents.values(), waiting, _new_request())
            self._finish([name for name in accepted if documents[name].moving])
            remaining = {
                number for number, entry in documents_of.items() if entry.name not in accepted
            }
        return deleted

    def _documents_of(self, ids: Iterable[int], waiting: Waiting) -> dict[int, Document]:
        """The documents that hold these segments now, none of which is moving any more; without
        those that are gone."""
        numbers = list(ids)
        up_to_date = False
        while True:
            names: defaultdict[int, list[str]] = defaultdict(list)
            for hit in self._hits(numbers, ["ids"]):
                for number in hit["_source"]["ids"]:
                    names[number].append(hit["_id"])
            documents = self._read({name for number in numbers for name in names[number]})
            if moving := [
                name
                for name, entry in documents.items()
                if not entry.moving.keys().isdisjoint(numbers)
            ]:
                self._finish(moving)
                up_to_date = False
                continue
            documents_of = {
                number: documents[name]
                for number in numbers
                for name in names[number]
                if number in documents[name].pairs
            }
            unclear = [
                number
                for number in numbers
                if number not in documents_of and (names[number] or not up_to_date)
            ]
            if not unclear:
                return documents_of
            if up_to_date:
                waiting.pause(f"others change segment {unclear[0]} too fast")
            # what has moved since is found where it is
            self._ask("POST", "_refresh")
            up_to_date = True

    def _finish(self, names: Sequence[str]) -> None:
        """Carries the moves out of these documents to their end, whoever began them."""
        waiting = Waiting(self._server)
        while names:
            initial = self._read(names, by_primaries=True)
            decided = [new for origin in initial.values() for new in origin.moving.values()]
            if not decided:  # somebody else was faster: perhaps not visible yet
                self._ask("POST", "_refresh")
                return
            targets = self._read(map(name_of, decided))
            if self._make(
                [name for name, target in targets.items() if not target.version], waiting
            ):
                continue
            # read after the targets: what still moves now came to none of them before it was read
            now = self._read(names, by_primaries=True)
            origins = {name: origin for name, origin in now.items() if origin.moving}
            # what others have written of this is to be seen before it goes on: the decision before
            # the target
            self._ask("POST", "_refresh")
            previous_pairs = {name: dict(target.pairs) for name, target in targets.items()}
            for origin in origins.values():
                for new in origin.moving.values():
                    if target := targets.get(name_of(new)):
                        target.put(new)
            extended = [
                target for target in targets.values() if target.pairs != previous_pairs[target.name]
            ]
            # written again, a cycle would never end
            unchanged = targets.keys() - {target.name for target in extended}
            arrived = unchanged | self._write(extended, waiting)
            for origin in origins.values():
                origin.arrived(arrived)
            cleared = self._write(
                (origin for origin in origins.values() if not origin.moving), waiting
            )
            names = [name for name in origins if name not in cleared]

    def _make(self, names: Sequence[str], waiting: Waiting) -> bool:
        """Makes empty documents, whose versions tell whether they were changed since; whether any
        had to be made."""
        lines = [
            line for name in names for line in (orjson.dumps({"create": {"_id": name}}), emptied())
        ]
        if lines:
            self._bulk(lines, waiting, False)
        return bool(lines)

    def _hits(self, ids: Sequence[int], source: Sequence[str]) -> list[Any]:
        """The documents that hold some of these segments, as a search finds them."""
        query = {"terms": {"ids": list(ids)}}
        return self._search({"query": query, "size": MOST_PLACES, "_source": source})

    def _search(self, search: Mapping[str, Any]) -> list[Any]:
        answer = self._ask("POST", "_search", search, allow_partial_search_results=False)
        return list(answer["hits"]["hits"])

    def _reserve(self, count: int) -> int:
        """The first of `count` ids that nobody else gets."""
        from elastic_transport import ApiError

        path = f"_doc/{COUNTER}"
        waiting = Waiting(self._server)
        while True:
            counter = self._ask("GET", path)
            last = int(counter["_source"]["last_id"])
            try:
                self._ask(
                    "PUT",
                    path,
                    {"last_id": last + count},
                    expected=(CONFLICT,),
                    require_alias=True,
                    **unless_changed(counter),
                )
            except ApiError as error:
                waiting.pause("others add too fast", error)
            else:
                return last + 1

    def _read(self, names: Iterable[str], *, by_primaries: bool = False) -> dict[str, Document]:
        """These documents as they are now, seen by searches or not. A replica may lag behind what
        nobody has been told of yet; primaries do not, and are slower to read."""
        documents: dict[str, Document] = {}
        distinct, waiting = list(dict.fromkeys(names)), Waiting(self._server)
        while remaining := [name for name in distinct if name not in documents]:
            ask = self._ask_primaries if by_primaries else self._ask_anybody
            answers = dict(zip(remaining, ask(remaining), strict=True))
            errors = [answer["error"] for answer in answers.values() if "error" in answer]
            if any(error["type"] == "index_not_found_exception" for error in errors):
                self._check_current()
            documents |= {
                name: document_of(name, answer)
                for name, answer in answers.items()
                if "error" not in answer
            }
            if errors:
                waiting.pause(f"changes cannot be prepared: {reason_in(errors[0])}")
        return documents

    def _ask_anybody(self, names: Sequence[str]) -> list[Any]:
        return list(self._ask("POST", "_mget", {"ids": list(names)})["docs"])

    def _ask_primaries(self, names: Sequence[str]) -> list[Any]:
        """By updates that change nothing, which primaries alone answer."""
        lines = [
            line
            for name in names
            for line in (orjson.dumps({"update": {"_id": name, "_source": True}}), b'{"doc":{}}')
        ]
        items = self._ask("POST", "_bulk", lines, require_alias=True)["items"]
        answers = [item["update"].get("get") or item["update"] for item in items]
        return [{"found": False} if _is_missing(answer) else answer for answer in answers]

    def _write(
        self,
        documents: Iterable[Document],
        waiting: Waiting,
        request: str = "",
        refresh: Refresh = "wait_for",
    ) -> set[str]:
        """Writes documents; the names of those that are as wanted. The others were changed
        meanwhile: the time for another try has come."""
        by_name = {entry.name: entry for entry in documents}
        manifest = self._generation.manifest
        lines = [line for entry in by_name.values() for line in entry.operation(manifest, request)]
        refused = self._bulk(lines, waiting, refresh) if lines else set[str]()
        if (
            request
            and refused
            and (completed := self._done_before([by_name[name] for name in refused], request))
        ):
            refused -= completed
            if refresh:
                self._ask("POST", "_refresh")
        return by_name.keys() - refused

    def _done_before(self, refused: Sequence[Document], request: str) -> set[str]:
        """The names of those documents that were refused because this request has written them
        before, and the answer was lost. Raises ServerError where too many have changed one since to
        know that."""
        now = self._read([entry.name for entry in refused], by_primaries=True)
        for entry in refused:
            requests = now[entry.name].requests
            followed = not entry.requests or entry.requests[-1] not in requests
            if request not in requests and len(requests) == REQUESTS_KEPT and followed:
                raise self._server.error(
                    "so many others have changed the same pairs that it is unknown what was done"
                )
        return {entry.name for entry in refused if request in now[entry.name].requests}

    def _bulk(self, lines: Sequence[bytes], waiting: Waiting, refresh: Refresh) -> set[str]:
        """Sends a bulk request; the names of the documents that were not written now, after a
        pause."""
        answer = self._ask("POST", "_bulk", lines, require_alias=True, refresh=refresh)
        refused: dict[str, Any] = {}
        for item in answer["items"]:
            (result,) = item.values()
            unknown = result["status"] == NOT_FOUND and "error" in result
            if unknown:
                self._check_current()
            if unknown or result["status"] == CONFLICT or result["status"] in BUSY:
                refused[result["_id"]] = result["error"]
            elif result["status"] >= 300:
                raise self._server.error(f"a change was refused: {reason_in(result['error'])}")
        if refused:
            problem = reason_in(next(iter(refused.values())))
            waiting.pause(f"did not take {quantity(len(refused), 'change')} yet: {problem}")
        return set(refused)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        expected: Sequence[int] = (),
        **parameters: Any,
    ) -> Any:
        """As `Server.ask`, of this generation alone, below whose path `path` lies; again where a
        host does not know it yet."""
        from elastic_transport import ApiError

        waiting = Waiting(self._server)
        target = f"/{self._generation.exclusive_alias}/{path}"
        while True:
            try:
                return self._server.ask(
                    method, target, body, expected=(NOT_FOUND, *expected), **parameters
                )
            except ApiError as error:
                if error.meta.status != NOT_FOUND:
                    raise
                self._check_current()
                waiting.pause("does not know its indexes yet", error)

    def _check_current(self) -> None:
        """Raises MemoryIndexError where another generation answers now."""
        if read_generation(self._server).concrete != self._generation.concrete:
            problem = "was built anew meanwhile, without this change; make it again"
            raise MemoryIndexError(f"{self._server.address}: {problem}")


def _check_texts(segments: Iterable[Segment]) -> None:
    """Raises DataError where one cannot be written."""
    for segment in segments:
        encode_segment(segment, segment.id)


def _new_request() -> str:
    return token_urlsafe(9)


def _is_missing(answer: Any) -> bool:
    return "error" in answer and answer["error"]["type"] == "document_missing_exception"
