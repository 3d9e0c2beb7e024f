"""Segments of documents confirmed and taken back, with their repetitions.

A confirmed segment has a pair in the session of its document, under its number. So a change is
three steps: the document notes what is about to be done, the session does it, and the document
notes that it is done. Where the second step fails or a process is killed, the session says later
what came of it (`settle`)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from tmnmt.checks import OnChecks
from tmnmt.errors import ServerError
from tmnmt.serve.confirming import confirmation_of
from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import Caller
from tmnmt.serve.markup import single_text
from tmnmt.serve.sessions import OpenSession, Sessions
from tmnmt.serve.storage.records import StoredDocument
from tmnmt.serve.workspace.documents import Documents, Edit, person
from tmnmt.serve.workspace.segment import Level, Origin, Pending, WorkSegment

ABANDONED = 120.0  # seconds after which nobody is about a change that was begun


@dataclass(frozen=True)
class Confirming:
    """What a person confirms of a segment.

    version: the version of the segment that the person knows.
    text: the translation, of XML.
    on_checks: what is done where the checks find something.
    level: how far it is right.
    repetitions: whether the segment's repetitions are confirmed alike.
    request: the name of the request; where it is sent again, nothing is confirmed twice.
    origin: where the text came from; None: where the draft did, if it is the same.
    match: what the match was worth that it came from.
    quality: how likely the text is right that was suggested, from 0 to 1; None where nothing was.
    feedback: what the review is to know."""

    version: int
    text: str
    on_checks: OnChecks = "tell"
    level: Level = "translated"
    repetitions: bool = False
    request: str | None = None
    origin: Origin | None = None
    match: int | None = None
    quality: float | None = None
    feedback: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Confirmed:
    """What came of it.

    segment: the segment.
    repetitions: those that were confirmed with it.
    differing: the numbers of repetitions that have another text."""

    segment: WorkSegment
    repetitions: Sequence[WorkSegment]
    differing: Sequence[int]


class Confirmations:
    """For any thread."""

    def __init__(self, documents: Documents, sessions: Sessions) -> None:
        self._documents, self._sessions = documents, sessions

    def confirm(
        self, id: str, open_session: OpenSession, caller: Caller, number: int, wish: Confirming
    ) -> Confirmed:
        """Confirms a segment, and its repetitions where that is wished. Raises Refused for what
        cannot be confirmed, for what the checks find, and where somebody else has changed the
        segment."""
        work = _Work(self, id, open_session, caller)
        document = self._documents.get(id, caller)
        segment = self._documents.segment(document, number)
        request = wish.request or secrets.token_hex(8)
        if not _is_confirmed(segment, wish.text, request):
            segment = work.confirm(segment, replace(wish, request=request))
        if not wish.repetitions:
            return Confirmed(segment, (), ())
        return work.repeat(document, segment)

    def undo(
        self, id: str, open_session: OpenSession, caller: Caller, number: int | None
    ) -> list[WorkSegment]:
        """Takes back what was confirmed in a segment, with the repetitions that were confirmed with
        it, and returns them all. Raises Refused where nothing was confirmed.

        number: the number of the segment; None takes the one that this person confirmed last."""
        document = self._documents.get(id, caller)
        if number is None:
            number = self._last(document, open_session, person(caller))
        segment = self._documents.segment(document, number)
        if segment.confirmed is None:
            raise _nothing_confirmed()
        work = _Work(self, id, open_session, caller)
        members = work.members(document, segment)
        return work.undo(sorted([number, *(member.number for member in members)]), number)

    def _last(self, document: StoredDocument, open_session: OpenSession, author: str) -> int:
        """The number of the segment that a person confirmed last, of repetitions that of the
        segment that they were confirmed with. What others have changed since is left out."""
        for feedback in reversed(self._sessions.feedback(open_session)):
            if (name := str(feedback.get("segment", ""))).isascii() and name.isdigit():
                segment = self._documents.segment(document, int(name))
                if segment.author != author:
                    continue
                if segment.leader is None:
                    return segment.number
                leader = self._documents.segment(document, segment.leader)
                return (leader if _is_of(segment, leader) else segment).number
        raise _nothing_confirmed()

    def settle(self, id: str, open_session: OpenSession, caller: Caller) -> StoredDocument:
        """The document, after what was begun in it and not noted as done is settled by what the
        session has."""
        document = self._documents.get(id, caller)
        if document.head["pending"]:
            _Work(self, id, open_session, caller).settle(document.head["pending"])
            document = self._documents.get(id, caller)
        return document


class _Work:
    """What one person does in one document."""

    def __init__(
        self, parent: Confirmations, id: str, open_session: OpenSession, caller: Caller
    ) -> None:
        self._documents, self._sessions = parent._documents, parent._sessions
        self._id, self._session, self._caller = id, open_session, caller

    def confirm(self, segment: WorkSegment, wish: Confirming) -> WorkSegment:
        """A segment that is confirmed."""
        number, ignored = segment.number, {(c["name"], c["what"]) for c in segment.ignored}
        source, target = (single_text(text, "xml") for text in (segment.source, wish.text))
        session = self._session.session
        limit = segment.max_length
        pair = confirmation_of(session, source, target, wish.on_checks, ignored, limit)
        checks = [check._asdict() for check in pair.checks]
        pending = Pending("confirm", wish.request or "", time.time(), wish.text, wish.level)

        def begin(segments: Mapping[int, WorkSegment]) -> list[Edit]:
            current = segments[number]
            if current.is_locked:
                raise Refused(409, "locked", current.problem or "the segment is locked")
            if not _is_under_way(current, pending.request):
                check_version(current, wish.version)
            default = (
                (current.origin, current.match) if current.text == wish.text else ("person", None)
            )
            origin, match = (wish.origin, wish.match) if wish.origin is not None else default
            changes: dict[str, Any] = {
                "text": wish.text,
                "origin": origin,
                "match": match,
                "checks": checks,
            }
            if wish.quality is not None:
                changes["quality"] = wish.quality
            return [Edit(current.begin(pending, **changes))]

        self._documents.change(self._id, self._caller, [number], begin)
        feedback = {**(wish.feedback or {}), **_feedback(number, pending)}
        with self._settling([number]):
            self._sessions.confirm(self._session, pair.src, pair.tgt, feedback)
        return self._finish([number])[number]

    def repeat(self, document: StoredDocument, segment: WorkSegment) -> Confirmed:
        """The repetitions of a confirmed segment are confirmed alike."""
        text, request = segment.confirmed or "", segment.request or ""
        numbers = self._repetitions(document, segment)
        if not numbers:
            return Confirmed(segment, (), ())
        differing = list[int]()
        started = time.time()

        def begin(segments: Mapping[int, WorkSegment]) -> list[Edit]:
            differing[:] = [n for n, entry in segments.items() if _differs(entry, text)]
            pending = Pending("confirm", request, started, text, segment.level, segment.number)
            return [
                Edit(entry.begin_repetition(pending, segment.checks))
                for n, entry in segments.items()
                if n not in differing and _is_open(entry, text)
            ]

        started_segments = self._documents.change(self._id, self._caller, numbers, begin)
        filled = [n for n, entry in started_segments.items() if _is_under_way(entry, request)]
        source, target = (single_text(side, "xml") for side in (segment.source, text))
        pair = self._session.session.confirmation(source, target)
        with self._settling(filled):
            for number in filled:
                feedback = _feedback(number, started_segments[number].pending)
                self._sessions.confirm(self._session, pair.src, pair.tgt, feedback)
        self._finish(filled)
        return Confirmed(segment, self.members(document, segment), differing)

    def members(self, document: StoredDocument, segment: WorkSegment) -> list[WorkSegment]:
        """The repetitions that were confirmed with a segment, and still are."""
        repetitions = self._documents.segments(document, self._repetitions(document, segment))
        return [member for member in repetitions.values() if _is_of(member, segment)]

    def _repetitions(self, document: StoredDocument, segment: WorkSegment) -> list[int]:
        first = segment
        if segment.repeats is not None:
            first = self._documents.segment(document, segment.repeats)
        return [n for n in (first.number, *first.repetitions) if n != segment.number]

    def undo(self, numbers: Sequence[int], leader: int) -> list[WorkSegment]:
        """Segments that are not confirmed any more.

        leader: the number of that with which the others were confirmed, which goes last: as long
        as it stands, one can find the others by it."""
        pending = Pending("undo", secrets.token_hex(8), time.time())

        def begin(segments: Mapping[int, WorkSegment]) -> list[Edit]:
            return [Edit(s.begin(pending)) for s in segments.values() if s.confirmed is not None]

        started_segments = self._documents.change(self._id, self._caller, numbers, begin)
        numbers = [n for n in started_segments if started_segments[n].pending == pending]
        with self._settling(numbers):
            for number in sorted(numbers, key=lambda number: number == leader):
                self._withdraw(number)
        return [*self._finish(numbers).values()]

    def _withdraw(self, number: int) -> None:
        try:
            self._sessions.undo(self._session, str(number))
        except Refused as refused:  # it is not there any more
            if refused.code != "nothing_confirmed":
                raise

    @contextmanager
    def _settling(self, numbers: Sequence[int]) -> Iterator[None]:
        """A part of the work that may fail in the midst: then what is pending is settled."""
        try:
            yield
        except BaseException:
            with suppress(ServerError, Refused):  # it is settled later, then
                self.settle(numbers, is_over=True)
            raise

    def _finish(self, numbers: Sequence[int]) -> dict[int, WorkSegment]:
        """Notes that the session has done what is pending in these segments."""

        def finish(segments: Mapping[int, WorkSegment]) -> list[Edit]:
            return [Edit(s.finish(), "event") for s in segments.values() if s.pending is not None]

        return self._documents.change(self._id, self._caller, numbers, finish)

    def settle(self, numbers: Sequence[int], is_over: bool = False) -> None:
        """Notes of changes that were begun whether the session has made them.

        is_over: whether nobody is about them any more."""
        feedback = {
            str(entry.get("segment")): str(entry.get("request", ""))
            for entry in self._sessions.feedback(self._session)
        }

        def finish(segments: Mapping[int, WorkSegment]) -> list[Edit]:
            edits = list[Edit]()
            for number, segment in segments.items():
                pending = segment.pending
                if pending is None:
                    continue
                request = feedback.get(str(number))
                is_made = request == _request(number, pending)
                if pending.action == "undo":
                    is_made = request is None
                if is_made:
                    edits.append(Edit(segment.finish(), "event"))
                elif is_over or time.time() - pending.started > ABANDONED:
                    edits.append(Edit(segment.drop()))
            return edits

        self._documents.change(self._id, self._caller, numbers, finish)


def check_version(segment: WorkSegment, version: int) -> None:
    """Raises Refused where somebody has changed a segment since the version that a caller knows."""
    if segment.edit_version > version:
        why = "somebody else has changed this segment"
        raise Refused(409, "conflict", why, details={"segment": segment.record})


def _is_confirmed(segment: WorkSegment, text: str, request: str) -> bool:
    """Whether a request of this name has confirmed this text, and it stands."""
    return segment.request == request and segment.confirmed == text and segment.pending is None


def _is_under_way(segment: WorkSegment, request: str) -> bool:
    """Whether a request of this name is about to confirm a segment."""
    pending = segment.pending
    return pending is not None and pending.action == "confirm" and pending.request == request


def _is_of(member: WorkSegment, segment: WorkSegment) -> bool:
    """Whether a repetition was confirmed with a segment, and both still are as they were then."""
    is_filled = member.leader == segment.number and member.confirmed is not None
    return is_filled and member.request == segment.request


def _is_open(segment: WorkSegment, text: str) -> bool:
    """Whether a repetition may be confirmed alike: nobody has confirmed it for itself."""
    is_followed = segment.leader is not None and segment.confirmed != text
    is_free = not segment.is_locked and segment.pending is None
    return is_free and (is_followed or not segment.is_translated)


def _differs(segment: WorkSegment, text: str) -> bool:
    """Whether a repetition has another text, which a person has written or confirmed for it."""
    if segment.is_locked or segment.present_text == text:
        return False
    if segment.text is not None:
        return segment.origin == "person"
    return segment.is_translated and segment.leader is None


def _request(number: int, pending: Pending) -> str:
    """The name of the request in the session: every segment has one of its own."""
    return f"{pending.request} {number}"


def _feedback(number: int, pending: Pending | None) -> dict[str, Any]:
    """By what the session knows the pair of a segment."""
    request = _request(number, pending) if pending is not None else ""
    return {"segment": str(number), "request": request}


def _nothing_confirmed() -> Refused:
    return Refused(409, "nothing_confirmed", "nothing was confirmed here")
