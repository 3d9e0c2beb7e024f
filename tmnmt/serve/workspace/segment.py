"""A segment of a document that people work on, and what each event makes of it. It knows no
storage, no session and no clock.

    untouched ──write──► draft ──confirm──► translated ──review──► reviewed, approved
                           ▲                    │
                           └──write, take back──┘

`confirmed` is what a person has confirmed, `text` what was written beside it. Both are XML with
short tags (`tmnmt.serve.tagged`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

Level = Literal["translated", "reviewed", "approved"]
Origin = Literal["", "person", "memory", "adapted", "model", "repetition"]
LEVELS: tuple[Level, ...] = get_args(Level)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
OF_FILE = "file-"  # what the ids of comments begin with that stand in the file
MOST_COMMENTS = 50  # of a segment
# what everybody is told of a segment as it is stored
_PUBLIC = (
    *("number", "source", "file", "document", "id", "context", "plural", "notes", "problem"),
    *("markup", "max_length", "text", "confirmed", "state", "origin", "match", "quality", "checks"),
    *("comments", "repeats", "words", "by", "time", "version"),
)


@dataclass(frozen=True)
class Pending:
    """A change that the session of the document has to make first, as it was begun. Where a process
    is killed meanwhile, the session says what came of it.

    action: "confirm" or "undo".
    request: the name of the request in the session.
    started: when it was begun, in seconds since 1970.
    text: what is confirmed.
    level: how far it is right.
    leader: the number of the segment whose repetition this one is; None where it is none."""

    action: Literal["confirm", "undo"]
    request: str
    started: float
    text: str = ""
    level: Level = "translated"
    leader: int | None = None


@dataclass(frozen=True)
class WorkSegment:
    """A segment as it is stored.

    number: its number, from 1.
    source: its source.
    file: {"target", "state"}, what the file has.
    document, id, context, plural, notes, problem: as `tmnmt.files.unit.Unit` has them.
    markup: what each of its tags is in the file.
    max_length: how many characters its target may have; None where the file does not say it.
    words: the words of its source.
    repeats: the number of the first segment with the same source; None for that one.
    repetitions: of the first segment, the numbers of those that repeat it.
    text: the draft; None where there is none.
    confirmed: what was confirmed; None where nothing was.
    level: how far a person said that this is right.
    origin: where the text came from.
    match: what the match was worth that it came from.
    quality: how likely the text is right that was suggested, from 0 to 1.
    checks: {"name", "what"}, what the checks find in what stands there.
    ignored: {"name", "what", "reason"} of checks that somebody looked at.
    comments: {"id", "by", "time", "text"}.
    author: who changed it last.
    time: when that was, a time of ISO 8601.
    version: the version of the document then.
    edit_version: the version of the document when a person changed its text or its level last. What
    is found out beside them, and comments, are no conflict with what somebody writes.
    edits: how many entries its history has had.
    last_note: {"kind", "by", "time"} of the last of these.
    request: the name of the request by which it was confirmed.
    leader: the number of the segment with which it was confirmed as a repetition.
    previous: of a repetition, what it was before.
    pending: what is under way."""

    number: int
    source: str
    file: Mapping[str, Any]
    document: str = ""
    id: str = ""
    context: str = ""
    plural: str = ""
    notes: Sequence[str] = ()
    problem: str = ""
    markup: Mapping[str, str] = field(default_factory=dict)
    max_length: int | None = None
    words: int = 0
    repeats: int | None = None
    repetitions: Sequence[int] = ()
    text: str | None = None
    confirmed: str | None = None
    level: Level = "translated"
    origin: Origin = ""
    match: int | None = None
    quality: float | None = None
    checks: Sequence[Mapping[str, str]] = ()
    ignored: Sequence[Mapping[str, str]] = ()
    comments: Sequence[Mapping[str, str]] = ()
    author: str = ""
    time: str = ""
    version: int = 0
    edit_version: int = 0
    edits: int = 0
    last_note: Mapping[str, Any] | None = None
    request: str | None = None
    leader: int | None = None
    previous: Mapping[str, Any] | None = None
    pending: Pending | None = None

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> WorkSegment:
        """A segment of its stored record."""
        pending = record.get("pending")
        return cls(**{**record, "pending": Pending(**pending) if pending else None})

    @property
    def stored(self) -> dict[str, Any]:
        """The record by which it is stored: what is as in a new segment is left out."""
        values = {name: value for name, value in vars(self).items() if not _is_default(name, value)}
        if self.pending is not None:
            values["pending"] = vars(self.pending)
        return values

    @property
    def state(self) -> str:
        if self.is_locked:
            return "locked"
        if self.text is not None:
            return "draft"
        return self.level if self.confirmed is not None else "untouched"

    @property
    def is_locked(self) -> bool:
        return bool(self.file["state"] == "locked")

    @property
    def is_translated(self) -> bool:
        """Whether nobody has to see to it: it is confirmed, or the file has it translated."""
        state = self.state
        return state in LEVELS or (state == "untouched" and self.file["state"] == "translated")

    @property
    def base(self) -> str | None:
        """What it has beside its draft."""
        target: str | None = self.file["target"]
        return self.confirmed if self.confirmed is not None else target

    @property
    def present_text(self) -> str | None:
        """What stands there."""
        return self.text if self.text is not None else self.base

    @property
    def new_comments(self) -> list[Mapping[str, str]]:
        """The comments that the file does not have."""
        return [comment for comment in self.comments if not comment["id"].startswith(OF_FILE)]

    @property
    def issues(self) -> list[dict[str, Any]]:
        """What the checks found, with the reason where somebody has ignored it."""
        reasons = {(entry["name"], entry["what"]): entry["reason"] for entry in self.ignored}
        return [
            {**check, "ignored": reasons.get((check["name"], check["what"]))}
            for check in self.checks
        ]

    @property
    def open_issues(self) -> int:
        """How many of these nobody has ignored."""
        return sum(issue["ignored"] is None for issue in self.issues)

    @property
    def record(self) -> dict[str, Any]:
        """What everybody is told of it."""
        values = {**vars(self), "state": self.state, "checks": self.issues, "by": self.author}
        return {name: values[name] for name in _PUBLIC}

    @property
    def history_record(self) -> dict[str, Any]:
        """What its history has of it as it stands now."""
        return {
            "edit": self.edits,
            "text": self.text,
            "confirmed": self.confirmed,
            "state": self.state,
            "origin": self.origin,
            "by": self.author,
            "time": self.time,
        }

    @property
    def tally(self) -> Counter[str]:
        """What it counts for in its document."""
        state, words = self.state, 0 if self.is_locked else self.words
        return Counter(
            {
                f"state {state}": 1,
                "words all": words,
                "words confirmed": words * self.is_translated,
                "words draft": words * (state == "draft"),
                "issues": 0 if self.is_locked else self.open_issues,
            }
        )

    def write(
        self,
        text: str | None,
        origin: Origin,
        match: int | None,
        checks: Sequence[Mapping[str, str]],
    ) -> WorkSegment:
        """The segment with a draft; None discards the draft. A text that stands there anyway is
        none."""
        if text is None or text == self.base:
            return replace(self, text=None, checks=checks)
        return replace(self, text=text, origin=origin, match=match, checks=checks)

    def ignore(self, name: str, finding: str, reason: str | None) -> WorkSegment:
        """The segment in which a check is ignored for a reason; None: it is no more."""
        check = {"name": name, "what": finding}
        ignored = [entry for entry in self.ignored if {**entry, **check} != entry]
        return replace(self, ignored=[*ignored, {**check, "reason": reason}] if reason else ignored)

    def begin(self, pending: Pending, **changes: Any) -> WorkSegment:
        """The segment while its session changes."""
        return replace(self, pending=pending, **changes)

    def begin_repetition(
        self, pending: Pending, checks: Sequence[Mapping[str, str]]
    ) -> WorkSegment:
        """The segment while its session confirms it as a repetition of another one. `checks`: what
        they find in what is confirmed."""
        names = ("text", "origin", "match", "checks")
        previous = self.previous or {name: vars(self)[name] for name in names}
        return replace(
            self,
            text=pending.text,
            origin="repetition",
            match=None,
            checks=checks,
            previous=previous,
            pending=pending,
        )

    def finish(self) -> WorkSegment:
        """The segment once the session has made the change that is pending. What was written
        meanwhile is a draft."""
        pending = self.pending
        if pending is None:
            return self
        if pending.action == "undo":
            return self._take_back()
        return replace(
            self,
            confirmed=pending.text,
            text=None if self.text == pending.text else self.text,
            level=pending.level,
            request=pending.request,
            leader=pending.leader,
            previous=self.previous if pending.leader is not None else None,
            pending=None,
        )

    def _take_back(self) -> WorkSegment:
        """Nothing is confirmed any more: what was is a draft, and a repetition is as it was before
        it was one."""
        cleared = replace(self, **_UNCONFIRMED)
        if self.previous is not None and self.text is None:
            return replace(cleared, **self.previous)
        text = self.confirmed if self.text is None else self.text
        return replace(cleared, text=None if text == cleared.base else text)

    def drop(self) -> WorkSegment:
        """The segment where the session has not made the change that was pending: what was to be
        confirmed is a draft, and a repetition is as it was."""
        pending, previous = self.pending, self.previous
        if pending is None or pending.leader is None or self.text != pending.text or not previous:
            return replace(self, pending=None)
        if self.confirmed is not None:  # with an earlier text
            return replace(self, pending=None, text=None)
        return replace(self, **previous, pending=None, previous=None)


_UNCONFIRMED: Mapping[str, Any] = {
    **{"confirmed": None, "level": "translated", "request": None, "leader": None},
    **{"previous": None, "pending": None},
}
_REQUIRED = ("number", "source", "file")
_DEFAULTS = {entry.name: entry.default for entry in fields(WorkSegment)}


def _is_default(name: str, value: object) -> bool:
    """Whether a new segment has this value. Lists and mappings are empty there."""
    return name not in _REQUIRED and value in (_DEFAULTS[name], [], {})
