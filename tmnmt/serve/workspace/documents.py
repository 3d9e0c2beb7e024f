"""Documents by their ids: made, listed and changed. A change reads what is there, and is made whole
where nobody has changed the document meanwhile; otherwise it is worked out anew."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from tmnmt.serve.http_error import Refused, unknown
from tmnmt.serve.keys import Caller
from tmnmt.serve.storage.base import DocumentStorage
from tmnmt.serve.storage.records import Person, StoredDocument
from tmnmt.serve.workspace.segment import WorkSegment

MOST_DOCUMENTS = 500  # of one tenant
SLOTS = 100  # entries of the history of a segment
PAUSE = 60.0  # seconds within which the drafts of one person are one entry of the history
PRESENT = 40.0  # seconds after which somebody who was not seen is not there any more
MOST_PEOPLE = 100  # of one document
TRIES = 50  # of a change, where others change the document at the same moment
TURNS = 64  # locks for changes of the same document
ANYBODY = "you"  # the name of a person where the server has no keys

Kind = Literal["", "draft", "event"]  # of an entry of a history; "": none


class Edit(NamedTuple):
    """A segment as it is to be, and what its history has of the change. Where the kind is "",
    nobody is said to have changed it."""

    segment: WorkSegment
    kind: Kind = ""


Work = Callable[[Mapping[int, WorkSegment]], Sequence[Edit]]


class Documents:
    """For any thread."""

    def __init__(self, storage: DocumentStorage, limit: int = MOST_DOCUMENTS) -> None:
        """limit: documents of one tenant."""
        self._storage, self._limit = storage, limit
        self._turns = [threading.Lock() for _ in range(TURNS)]

    def make(
        self,
        id: str,
        caller: Caller,
        head: Mapping[str, Any],
        content: bytes,
        segments: Sequence[WorkSegment],
    ) -> StoredDocument:
        """A new document. Raises Refused where the tenant has too many."""
        now = iso_now()
        counts = sum((segment.tally for segment in segments), Counter[str]())
        complete = {**head, "created": now, "changed": now, "by": person(caller), "pending": []}
        complete |= {"segments": len(segments), "counts": dict(counts)}
        records = [segment.stored for segment in segments]
        size = len(content) + sum(map(_size, records))
        document = StoredDocument(id, caller.tenant, 1, size, complete)
        if not self._storage.make(document, content, records, self._limit):
            raise Refused(429, "busy", "there are too many documents; delete some", 60)
        return document

    def get(self, id: str, caller: Caller) -> StoredDocument:
        """Raises Refused for a document that is not there, or not for this caller: which of both is
        not told."""
        document = self._storage.get(caller.tenant, id)
        if document is None or not _is_for(document, caller):
            raise unknown("there is no such document")
        return document

    def visible(self, caller: Caller) -> list[StoredDocument]:
        """Those that a caller may use, the one that changed last first."""
        documents = self._storage.tenant_documents(caller.tenant)
        return sorted(
            (document for document in documents if _is_for(document, caller)),
            key=lambda document: (document.head["changed"], document.id),
            reverse=True,
        )

    def content(self, document: StoredDocument) -> bytes:
        """The bytes of its file."""
        content = self._storage.content(document.tenant, document.id)
        if content is None:
            raise unknown("there is no such document")
        return content

    def segments(
        self, document: StoredDocument, numbers: Sequence[int] | None = None
    ) -> dict[int, WorkSegment]:
        """Its segments by their numbers; None gives all."""
        if numbers is None:
            numbers = range(1, document.head["segments"] + 1)
        records = self._storage.segments(document.tenant, document.id, numbers)
        return {number: WorkSegment.parse(records[number]) for number in sorted(records)}

    def segment(self, document: StoredDocument, number: int) -> WorkSegment:
        """Raises Refused where it has no such segment."""
        return _segment_of(self.segments(document, [number]), number)

    def changes(self, document: StoredDocument, version: int) -> list[WorkSegment]:
        """The segments that have changed since a version."""
        numbers = self._storage.changes(document.tenant, document.id, version)
        return [*self.segments(document, numbers).values()]

    def change(
        self,
        id: str,
        caller: Caller,
        numbers: Sequence[int],
        work: Work,
        **head: Any,
    ) -> dict[int, WorkSegment]:
        """Changes segments, and returns those of these numbers as they are then.

        numbers: the segments that the work is about.
        work: gives those that change; called once more where others were faster.
        head: what changes of the whole document, by its names.

        Raises Refused where there is no such document or segment, and what the work raises."""
        with self._turns[hash((caller.tenant, id)) % TURNS]:
            for _ in range(TRIES):
                document = self.get(id, caller)
                segments = self.segments(document, numbers)
                for number in numbers:
                    _segment_of(segments, number)
                edits = work(segments)
                if not edits and not head:
                    return segments
                pending_change = _Change(document, segments, caller, head)
                changed = pending_change.add(edits)
                if self._storage.put(
                    pending_change.document, pending_change.records, pending_change.history
                ):
                    return segments | changed
        raise Refused(503, "busy", "others are changing this document; try again", 1)

    def is_strict(self, project: str, caller: Caller) -> bool:
        """Whether no file of a project's documents may have what checks find."""
        return any(d.head.get("strict", False) for d in self._of_project(project, caller))

    def make_strict(self, id: str, caller: Caller, is_strict: bool) -> None:
        """Says whether the file of a document may have what checks find, or those of all documents
        of its project. Nobody is said to have changed them. Raises Refused as `get` does."""
        document = self.get(id, caller)
        for member in (document, *self._of_project(document.head["project"], caller)):
            if member.head.get("strict", False) != is_strict:
                author = {name: member.head[name] for name in ("changed", "by")}
                self.change(member.id, caller, (), lambda _: (), strict=is_strict, **author)

    def _of_project(self, project: str, caller: Caller) -> list[StoredDocument]:
        return [d for d in self.visible(caller) if project and d.head["project"] == project]

    def history(self, document: StoredDocument, number: int) -> list[Mapping[str, Any]]:
        """What is noted of a segment, the newest first."""
        entries = self._storage.history(document.tenant, document.id, number, SLOTS)
        return sorted(entries, key=lambda entry: -entry["edit"])

    def delete(self, id: str, caller: Caller) -> StoredDocument:
        """Deletes a document, and returns what it was. Raises Refused as `get` does."""
        document = self.get(id, caller)
        if not self._storage.delete(caller.tenant, id):
            raise unknown("there is no such document")
        return document

    def note(self, document: StoredDocument, caller: Caller, tab: str, number: int | None) -> None:
        """Notes that a caller is there, at work on a segment."""
        now, name = time.time(), person(caller)
        people = self.people(document)
        present = next((p for p in people if (p.name, p.tab) == (name, tab)), None)
        if present is None and len(people) >= MOST_PEOPLE:
            raise Refused(429, "busy", "too many people have this document open", 10)
        arrival = present.since if present is not None and present.number == number else now
        visitor = Person(name, tab, number, arrival, now)
        self._storage.note(document.tenant, document.id, visitor, now - PRESENT)

    def people(self, document: StoredDocument) -> list[Person]:
        """Who is there."""
        people = self._storage.people(document.tenant, document.id)
        return [person for person in people if person.seen > time.time() - PRESENT]


class _Change:
    """What one change writes: the document, its segments and their histories."""

    def __init__(
        self,
        document: StoredDocument,
        segments: Mapping[int, WorkSegment],
        caller: Caller,
        head: Mapping[str, Any],
    ) -> None:
        self._segments, self._author, self._now = segments, person(caller), iso_now()
        changed = {"changed": self._now, "by": self._author}
        self.document = replace(
            document, version=document.version + 1, head={**document.head, **changed, **head}
        )
        self.records: dict[int, Mapping[str, Any]] = {}
        self.history: dict[tuple[int, int], Mapping[str, Any]] = {}
        self._size = 0  # bytes of new entries of histories

    def add(self, edits: Sequence[Edit]) -> dict[int, WorkSegment]:
        """Adds the segments that change, and returns them."""
        counts, pending = Counter(self.document.head["counts"]), {*self.document.head["pending"]}
        size, changed = self.document.size, dict[int, WorkSegment]()
        for edit in edits:
            previous = self._segments[edit.segment.number]
            segment = self._with_note(previous, edit)
            self.records[segment.number] = record = segment.stored
            size += _size(record) - _size(previous.stored)
            counts.subtract(previous.tally)
            counts.update(segment.tally)
            pending.discard(segment.number)
            if segment.pending is not None:
                pending.add(segment.number)
            changed[segment.number] = segment
        head = {**self.document.head, "pending": sorted(pending)}
        head["counts"] = {name: count for name, count in counts.items() if count}
        self.document = replace(self.document, size=size + self._size, head=head)
        return changed

    def _with_note(self, previous: WorkSegment, edit: Edit) -> WorkSegment:
        """The segment of an edit, with who made it; its history has it then."""
        version = self.document.version
        segment = replace(edit.segment, version=version)
        if edit.kind or segment.pending != previous.pending:
            segment = replace(segment, edit_version=version)
        is_begun = segment.pending is not None and previous.pending is None
        if (edit.kind or is_begun) and _has_unnoted_text(previous):
            self._note(replace(previous, edits=1))
            segment = replace(segment, edits=1)
        if not edit.kind:
            return segment
        segment = replace(segment, author=self._author, time=self._now)
        if not self._is_continued(segment, edit.kind):
            note = {"kind": edit.kind, "by": self._author, "time": time.time()}
            segment = replace(segment, edits=segment.edits + 1, last_note=note)
            self._note(segment)
        self.history[segment.number, segment.edits % SLOTS] = segment.history_record
        return segment

    def _is_continued(self, segment: WorkSegment, kind: Kind) -> bool:
        """Whether a draft goes on with the one that was noted last, without a pause."""
        note = segment.last_note
        if note is None or not kind == note["kind"] == "draft" or note["by"] != self._author:
            return False
        return bool(time.time() - note["time"] < PAUSE)

    def _note(self, segment: WorkSegment) -> None:
        """A new entry of the history of a segment."""
        record = segment.history_record
        self.history[segment.number, segment.edits % SLOTS] = record
        self._size += _size(record) if segment.edits <= SLOTS else 0


def _has_unnoted_text(segment: WorkSegment) -> bool:
    """Whether a text stands there, of the file or filled in, that the history does not have. What
    a change that is under way has written is noted when that is done."""
    return not segment.edits and segment.pending is None and segment.present_text is not None


def person(caller: Caller) -> str:
    """What a caller is called."""
    return caller.name or ANYBODY


def iso_now() -> str:
    """The time as a text of ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def stamp_of(people: Sequence[Person]) -> str:
    """A short text that is another one where others are there, or are elsewhere."""
    places = [(person.name, person.tab, person.number) for person in people]
    return blake2b(json.dumps(places).encode(), digest_size=6).hexdigest()


def _is_for(document: StoredDocument, caller: Caller) -> bool:
    session = document.head["session"]
    memories, terms = session["memories"], session["terms"]
    return all(map(caller.sees, memories)) and all(map(caller.has, terms))


def _segment_of(segments: Mapping[int, WorkSegment], number: int) -> WorkSegment:
    if number not in segments:
        raise unknown("there is no such segment")
    return segments[number]


def _size(record: Mapping[str, Any]) -> int:
    return len(json.dumps(record, ensure_ascii=False).encode())
