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
    State,
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
        """Forgets what nobody has used since that time, whoever's it is. `background`: pairs that
        were confirmed before the session began. False: the tenant has `limit` sessions already."""

    def background(self, tenant: str, id: str) -> list[ConfirmedPair]:
        """The pairs that were confirmed before the session began, in order."""

    def get(self, tenant: str, id: str) -> StoredSession | None: ...

    def tenant_sessions(self, tenant: str) -> list[tuple[StoredSession, int]]:
        """All of a tenant, each with the number of its confirmed pairs."""

    def count(self) -> int:
        """Of all tenants."""

    def touch(self, tenant: str, id: str, now: float) -> None:
        """Somebody has used it."""

    def delete(self, tenant: str, id: str) -> bool:
        """False: there is no such session."""

    def append(
        self, tenant: str, id: str, pair: ConfirmedPair, feedback: Feedback, token: str
    ) -> list[Intention] | None:
        """A pair is confirmed, with what the review is to know of it. Where the feedback names a
        "segment", it takes the place of the pair of this segment.

        Returns the pairs whose place it took, as far as they are to be taken out of a memory: as
        intentions, whose tokens begin with `token` and a dot. None: there is no such session."""

    def confirmed(self, tenant: str, id: str) -> int:
        """How many pairs."""

    def pairs(self, tenant: str, id: str) -> list[ConfirmedPair]:
        """All of them in order."""

    def changes(self, tenant: str, id: str, numbers: Sequence[int]) -> PairChanges | None:
        """What became of pairs of these numbers, which are in order. None: they are all, still."""

    def reviews(
        self, tenant: str, id: str, newest: int | None = None
    ) -> list[tuple[ConfirmedPair, Feedback]]:
        """The pairs in order, each with the feedback it came with. `newest`: so many of the last
        ones; None: all."""

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
        """A pair is about to be written to a memory, and confirmed. False: there is no such
        session."""

    def share(self, token: str, pair: ConfirmedPair) -> bool:
        """The pair of an intention, as it is now, holds a segment that is in the memory already.
        False: the intention was cancelled, or somebody is deleting the segment."""

    def withdraw(
        self, tenant: str, id: str, token: str, segment: str | None = None
    ) -> ConfirmedPair | None:
        """The pair that was confirmed last, or that of a `segment`, is confirmed no more, and about
        to be taken out of a memory. None: there is none."""

    def settle(self, token: str, pair: ConfirmedPair | None = None) -> list[Intention] | None:
        """The pair of an intention is confirmed, as the last one of its session. `pair`: as it is
        now; it takes the place of the pair of its segment, as with `append`. Without it, it is put
        back as it was. Returns what `append` does; None: there is no such intention, it was
        cancelled, or its session is gone."""

    def cancel(self, token: str, now: float) -> ConfirmedPair | None:
        """An intention is never to be settled from now on. Returns its pair, which is to be taken
        out of its memory. None: there is none: it was settled or dropped."""

    def drop(self, token: str) -> None:
        """Forgets an intention."""

    def intentions(self) -> list[Intention]:
        """Those of all tenants."""


class JobStorage(Protocol):
    def make(self, job: Job, tenant: str, unchanged_since: float, limit: int) -> bool:
        """Forgets those that have not changed since that time, whoever's they are. False: the
        tenant has `limit` jobs already."""

    def get(self, id: str, tenant: str | None) -> Job | None:
        """tenant: None: any."""

    def file(self, id: str) -> bytes | None:
        """What it has made."""

    def delete(self, id: str, tenant: str) -> bool:
        """False: there is no such job."""

    def claim(self, id: str) -> bool:
        """Whether the job awaited its file; it does no more. True once."""

    def advance(self, id: str, completed: int, total: int | None, now: float) -> bool:
        """It is at work, and so far. False: there is no such job any more."""

    def finish(
        self, id: str, state: State, result: Mapping[str, Any], file: bytes | None, now: float
    ) -> None:
        """It has ended; `file`: its file. Of a job that was deleted nothing is kept."""


class GlossaryStorage(Protocol):
    def make(self, glossary: Glossary, tenant: str, limit: int) -> bool:
        """False: the tenant has `limit` glossaries already."""

    def tenant_glossaries(self, tenant: str) -> list[Glossary]:
        """In the order in which they were made."""

    def get(self, tenant: str, id: str) -> Glossary | None: ...

    def change(
        self, tenant: str, id: str, name: str | None, dictionaries: Sequence[Dictionary]
    ) -> bool:
        """Another name, None: the same; and dictionaries in the place of those of their languages.
        False: there is no such glossary."""

    def delete(self, tenant: str, id: str) -> bool:
        """False: there is no such glossary."""

    def delete_dictionary(self, tenant: str, id: str, source: str, target: str) -> bool:
        """False: there is no such dictionary."""


class ClockStorage(Protocol):
    """Where looks at the clock are noted, for all servers that share it (`tmnmt.serve.clock`)."""

    def change(self, work: Callable[[str | None], str]) -> str:
        """The note, after `work` has made it of the note that there was; None: there was none."""


class Storage(Protocol):
    """All that is kept at one place."""

    @property
    def sessions(self) -> SessionStorage: ...

    @property
    def jobs(self) -> JobStorage: ...

    @property
    def glossaries(self) -> GlossaryStorage: ...

    @property
    def clock(self) -> ClockStorage: ...

    def size(self, tenant: str) -> int:
        """Bytes of all that is kept for a tenant, more or less."""

    def close(self) -> None: ...
