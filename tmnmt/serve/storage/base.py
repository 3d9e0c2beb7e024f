"""What any storage promises. A change is whole or not made at all, and it is kept once the call
returns: on disk, or where a Redis keeps it. Every process that opens the same place sees it from
then on. What belongs to a tenant is not there for another one.

All of it is for any thread, and raises ServerError where the storage cannot be read or written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tmnmt.segments import ConfirmedPair
from tmnmt.serve.storage.records import (
    Dictionary,
    Feedback,
    Glossary,
    Intention,
    Job,
    PairChanges,
    Person,
    State,
    StoredDocument,
    StoredSession,
)

BUSY = 5.0  # seconds that a change waits for those of other processes


class SessionStorage(Protocol):
    """Sessions, and the pairs that were confirmed in them, each with a number. Numbers grow."""

    def make(
        self,
        session: StoredSession,
        unused_since: float,
        limit: int,
        background: Sequence[ConfirmedPair] = (),
    ) -> bool:
        """Keeps a new session, and first forgets all sessions that nobody has used for long,
        whoever's they are. Returns False where the tenant has too many sessions; then the new one
        is not kept.

        session: the session.
        unused_since: a session that was used last before this time is forgotten, in seconds since
        1970.
        limit: how many sessions a tenant may have.
        background: the pairs that were confirmed before the session began, in order."""

    def background(self, tenant: str, id: str) -> list[ConfirmedPair]:
        """The pairs that were confirmed before a session began, in order; none where there is no
        such session.

        tenant: the tenant of the session.
        id: the id of the session."""

    def get(self, tenant: str, id: str) -> StoredSession | None:
        """A session; None where the tenant has none of this id.

        tenant: the tenant of the session.
        id: the id of the session."""

    def tenant_sessions(self, tenant: str) -> list[tuple[StoredSession, int]]:
        """All sessions of a tenant, each with the number of its confirmed pairs.

        tenant: the tenant."""

    def count(self) -> int:
        """How many sessions all tenants have together."""

    def touch(self, tenant: str, id: str, now: float) -> None:
        """Notes that somebody has used a session.

        tenant: the tenant of the session.
        id: the id of the session.
        now: the time, in seconds since 1970."""

    def delete(self, tenant: str, id: str) -> bool:
        """Deletes a session. Returns False where there is no such session.

        tenant: the tenant of the session.
        id: the id of the session."""

    def append(
        self, tenant: str, id: str, pair: ConfirmedPair, feedback: Feedback, token: str
    ) -> list[Intention] | None:
        """Adds a confirmed pair to a session. Where its feedback names a "segment", it takes the
        place of the pairs of this segment. Returns those pairs whose place it took and that are to
        be taken out of a memory, as intentions. None where there is no such session.

        tenant: the tenant of the session.
        id: the id of the session.
        pair: the pair.
        feedback: what the review is to know of the pair.
        token: the tokens of the returned intentions begin with it and a dot."""

    def confirmed(self, tenant: str, id: str) -> int:
        """How many pairs are confirmed in a session; 0 where there is no such session.

        tenant: the tenant of the session.
        id: the id of the session."""

    def pairs(self, tenant: str, id: str) -> list[ConfirmedPair]:
        """The pairs that are confirmed in a session, in order.

        tenant: the tenant of the session.
        id: the id of the session."""

    def changes(self, tenant: str, id: str, numbers: Sequence[int]) -> PairChanges | None:
        """What has changed in the pairs of a session since somebody knew them. None where nothing
        has.

        tenant: the tenant of the session.
        id: the id of the session.
        numbers: the numbers of the pairs that were known, in order."""

    def reviews(
        self, tenant: str, id: str, newest: int | None = None
    ) -> list[tuple[ConfirmedPair, Feedback]]:
        """The pairs of a session in order, each with the feedback that it came with.

        tenant: the tenant of the session.
        id: the id of the session.
        newest: how many are given, of the last ones; None gives all."""

    # A pair that is on its way between a session and a memory is an intention, under a token of the
    # caller's: it is in no session then, and whoever finds it left behind takes it out of the
    # memory (`tmnmt.serve.intentions`).
    #
    # Several pairs, of any sessions, may hold one segment of a memory: that which one of them has
    # added has the segment's id, the others the negative of it, because the memory gave the same
    # translation already. The segment stays until the last of them is taken back. One that no
    # session has added stays in any case, and so does one that a session held which was deleted. So
    # a pair that leaves its session is given back with the segment's id where the segment is to be
    # deleted, and else with a negative one.

    def intend(
        self, tenant: str, id: str, token: str, pair: ConfirmedPair, feedback: Feedback
    ) -> bool:
        """Notes that a pair is about to be written to a memory, and then confirmed. Returns False
        where there is no such session.

        tenant: the tenant of the session.
        id: the id of the session.
        token: a new token, by which the intention is known.
        pair: the pair.
        feedback: what the review is to know of the pair."""

    def share(self, token: str, pair: ConfirmedPair) -> bool:
        """Notes that the pair of an intention holds a segment that is in the memory already.
        Returns False where the intention was cancelled, or somebody is deleting the segment.

        token: the token of the intention.
        pair: the pair as it is now, with the segment that it holds."""

    def withdraw(
        self, tenant: str, id: str, token: str, segment: str | None = None
    ) -> ConfirmedPair | None:
        """Makes an intention of a confirmed pair, which is about to be taken out of a memory and is
        confirmed no more. Returns the pair; None where there is none.

        tenant: the tenant of the session.
        id: the id of the session.
        token: a new token, by which the intention is known.
        segment: the client's name of the segment whose pair it is; None takes the pair that was
        confirmed last."""

    def settle(self, token: str, pair: ConfirmedPair | None = None) -> list[Intention] | None:
        """Ends an intention: its pair is confirmed, as the last one of its session. Returns what
        `append` does. None where there is no such intention, or it was cancelled, or its session is
        gone.

        token: the token of the intention.
        pair: the pair as it is now, which takes the place of the pair of its segment, as with
        `append`. None puts the pair back as it was."""

    def cancel(self, token: str, now: float) -> ConfirmedPair | None:
        """Makes sure that an intention is never settled. Returns its pair, which is to be taken out
        of its memory. None where there is no such intention, because it was settled or dropped.

        token: the token of the intention.
        now: the time, in seconds since 1970."""

    def drop(self, token: str) -> None:
        """Forgets an intention.

        token: the token of the intention."""

    def intentions(self) -> list[Intention]:
        """The intentions of all tenants."""


class JobStorage(Protocol):
    """Jobs, and the files that they have made."""

    def make(self, job: Job, tenant: str, unchanged_since: float, limit: int) -> bool:
        """Keeps a new job, and first forgets all jobs that have not changed for long, whoever's
        they are. Returns False where the tenant has too many jobs; then the new one is not kept.

        job: the job.
        tenant: the tenant that it belongs to.
        unchanged_since: a job that changed last before this time is forgotten, in seconds since
        1970.
        limit: how many jobs a tenant may have."""

    def get(self, id: str, tenant: str | None) -> Job | None:
        """A job; None where there is none.

        id: the id of the job.
        tenant: the tenant that it belongs to; None gives it whoever's it is."""

    def file(self, id: str) -> bytes | None:
        """The file that a job has made; None where there is none.

        id: the id of the job."""

    def delete(self, id: str, tenant: str) -> bool:
        """Deletes a job and its file. Returns False where there is no such job.

        id: the id of the job.
        tenant: the tenant that it belongs to."""

    def claim(self, id: str) -> bool:
        """Notes that a job has its file, and returns whether it was awaiting one. So this is True
        once for a job.

        id: the id of the job."""

    def advance(self, id: str, completed: int, total: int | None, now: float) -> bool:
        """Notes how far a job is, and that it is at work. Returns False where there is no such job
        any more.

        id: the id of the job.
        completed: the units or bytes that are done.
        total: the units or bytes in all; None where this is not known.
        now: the time, in seconds since 1970."""

    def finish(
        self, id: str, state: State, result: Mapping[str, Any], file: bytes | None, now: float
    ) -> None:
        """Notes that a job has ended. Of a job that was deleted nothing is kept.

        id: the id of the job.
        state: how it has ended: "done" or "failed".
        result: what came of it; of a failed job "error".
        file: the file that it has made; None where it has made none.
        now: the time, in seconds since 1970."""


class GlossaryStorage(Protocol):
    """Glossaries that clients have made."""

    def make(self, glossary: Glossary, tenant: str, limit: int) -> bool:
        """Keeps a new glossary. Returns False where the tenant has too many glossaries; then it is
        not kept.

        glossary: the glossary.
        tenant: the tenant that it belongs to.
        limit: how many glossaries a tenant may have."""

    def tenant_glossaries(self, tenant: str) -> list[Glossary]:
        """All glossaries of a tenant, in the order in which they were made.

        tenant: the tenant."""

    def get(self, tenant: str, id: str) -> Glossary | None:
        """A glossary; None where the tenant has none of this id.

        tenant: the tenant that it belongs to.
        id: the id of the glossary."""

    def change(
        self, tenant: str, id: str, name: str | None, dictionaries: Sequence[Dictionary]
    ) -> bool:
        """Changes a glossary. Returns False where there is no such glossary.

        tenant: the tenant that it belongs to.
        id: the id of the glossary.
        name: its new name; None keeps the name.
        dictionaries: dictionaries that take the place of those of their languages. All others
        stay."""

    def delete(self, tenant: str, id: str) -> bool:
        """Deletes a glossary. Returns False where there is no such glossary.

        tenant: the tenant that it belongs to.
        id: the id of the glossary."""

    def delete_dictionary(self, tenant: str, id: str, source: str, target: str) -> bool:
        """Deletes a dictionary of a glossary. Returns False where there is no such dictionary.

        tenant: the tenant that the glossary belongs to.
        id: the id of the glossary.
        source: the code of the source language.
        target: the code of the target language."""


class DocumentStorage(Protocol):
    """Documents that people work on: the file, its segments, what became of these, and who is about
    it. A segment is known by its number, from 1."""

    def make(
        self,
        document: StoredDocument,
        content: bytes,
        segments: Sequence[Mapping[str, Any]],
        limit: int,
    ) -> bool:
        """Keeps a new document. Returns False where the tenant has too many documents; then it is
        not kept.

        document: the document.
        content: the bytes of its file.
        segments: the records of its segments in order.
        limit: how many documents a tenant may have."""

    def get(self, tenant: str, id: str) -> StoredDocument | None:
        """A document; None where the tenant has none of this id.

        tenant: the tenant that it belongs to.
        id: the id of the document."""

    def tenant_documents(self, tenant: str) -> list[StoredDocument]:
        """All documents of a tenant.

        tenant: the tenant."""

    def content(self, tenant: str, id: str) -> bytes | None:
        """The bytes of the file as it came; None where there is no such document.

        tenant: the tenant that it belongs to.
        id: the id of the document."""

    def segments(
        self, tenant: str, id: str, numbers: Sequence[int]
    ) -> dict[int, Mapping[str, Any]]:
        """The records of segments by their numbers; one that there is not is left out.

        tenant: the tenant that the document belongs to.
        id: the id of the document.
        numbers: the numbers of the segments."""

    def changes(self, tenant: str, id: str, version: int) -> list[int]:
        """The numbers of the segments that have changed since a version, in order.

        tenant: the tenant that the document belongs to.
        id: the id of the document.
        version: the version."""

    def put(
        self,
        document: StoredDocument,
        segments: Mapping[int, Mapping[str, Any]],
        history: Mapping[tuple[int, int], Mapping[str, Any]],
    ) -> bool:
        """Makes one change, whole. Returns False where the document is not of the version before
        any more, or is gone; then nothing was changed.

        document: the document as it is now, of a version that is one more than the present one.
        segments: the records of the segments that change, by their numbers.
        history: what is noted in the history of segments, by the number of the segment and a slot.
        What is in the slot goes."""

    def history(self, tenant: str, id: str, number: int, slots: int) -> list[Mapping[str, Any]]:
        """What is noted in the history of a segment, in any order.

        tenant: the tenant that the document belongs to.
        id: the id of the document.
        number: the number of the segment.
        slots: how many slots a history has, from 0."""

    def delete(self, tenant: str, id: str) -> bool:
        """Deletes a document with all that belongs to it. Returns False where there is no such
        document.

        tenant: the tenant that it belongs to.
        id: the id of the document."""

    def note(self, tenant: str, id: str, person: Person, unseen_since: float) -> None:
        """Notes that somebody has a document open, and forgets who was not seen for a while.
        Nothing is noted where there is no such document.

        tenant: the tenant that the document belongs to.
        id: the id of the document.
        person: the person.
        unseen_since: who was seen last before this time is forgotten, in seconds since 1970."""

    def people(self, tenant: str, id: str) -> list[Person]:
        """Who was noted, in the order of their names.

        tenant: the tenant that the document belongs to.
        id: the id of the document."""


class ClockStorage(Protocol):
    """Where looks at the clock are noted, for all servers that share it (`tmnmt.serve.clock`)."""

    def change(self, work: Callable[[str | None], str]) -> str:
        """Replaces the note, and returns the new one. Of two changes at once, one may be lost.

        work: gives the new note for the present one, which is None where there is none."""


class UsageStorage(Protocol):
    """How much tenants have had on a day, of all servers together."""

    def add(self, day: str, tenant: str, kind: str, amount: int) -> int:
        """Counts what a tenant has, and returns how much it has had of it on that day. What was had
        more than a day before is forgotten.

        day: the day, as 2026-11-27.
        tenant: the tenant.
        kind: what it has, in a word.
        amount: how much; 0 only asks."""


class Storage(Protocol):
    """All that is kept at one place."""

    sessions: SessionStorage
    jobs: JobStorage
    glossaries: GlossaryStorage
    documents: DocumentStorage
    clock: ClockStorage
    usage: UsageStorage

    def size(self, tenant: str) -> int:
        """How many bytes all that is kept for a tenant has, more or less.

        tenant: the tenant."""

    def close(self) -> None:
        """Closes the storage. Nothing may be asked of it afterwards."""
