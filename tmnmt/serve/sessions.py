"""Sessions by their ids. They are written down in the storage; what a process holds of one is a
copy that follows what any process has confirmed in it or taken back."""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tmnmt.codes.record import Text
from tmnmt.engine.confirmed import Done, confirmed_now
from tmnmt.engine.session import Session
from tmnmt.index.base import WritableIndex
from tmnmt.serve.clock import Clock
from tmnmt.serve.intentions import Intentions
from tmnmt.serve.keys import Caller
from tmnmt.serve.refused import Refused, unknown
from tmnmt.serve.reviewed import Reviewed
from tmnmt.serve.served_model import Model
from tmnmt.serve.storage.base import SessionStorage
from tmnmt.serve.storage.records import Feedback, StoredSession

IDLE = 30 * 24 * 3600.0  # seconds after which a session that nobody used is forgotten
TOUCHED = 3600.0  # seconds: so exactly is it known when it was used
KEPT_OPEN = 256  # copies that a process keeps
MOST_CONFIRMED = 20_000  # in one session
NEWEST = 64  # confirmed pairs among which a request that is sent again is looked for
TURNS = 64  # locks for requests of the same name


@dataclass(frozen=True)
class Given:
    """What a session was begun with, by names. `write_to`: the memory that confirmed pairs are
    added to; `terms`: the lists that are kept to; `options`: of its translations; `name`: of the
    document, as the client calls it; `began`: in seconds since 1970."""

    memories: tuple[str, ...]
    write_to: str | None = None
    terms: tuple[str, ...] = ()
    terms_mode: str = "soft"
    options: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    began: float = 0.0


@dataclass
class Open:
    """A session as this process knows it."""

    id: str
    tenant: str
    model: Model
    given: Given
    session: Session
    numbers: Sequence[int] = ()  # of the pairs that the copy holds


class Sessions:
    """For any thread; but a copy is used, and follows, in the thread of its model alone."""

    def __init__(
        self,
        storage: SessionStorage,
        most: int,
        memories: Sequence[WritableIndex],
        clock: Clock,
    ) -> None:
        """most: sessions of one tenant. memories: all that are written to. clock: it says which
        sessions nobody has used for long."""
        self._storage, self._most, self._clock = storage, most, clock
        self._intentions = Intentions(storage, memories)
        self._open: dict[str, Open] = {}
        self._lock = threading.Lock()
        self._turns = [threading.Lock() for _ in range(TURNS)]

    def __len__(self) -> int:
        return self._storage.count()

    def begin(self, caller: Caller, model: Model, given: Given, session: Session) -> Open:
        """Raises Refused where there are too many."""
        now, id = time.time(), secrets.token_urlsafe(16)
        stored = StoredSession(id, caller.tenant, model.name, asdict(given), now)
        if not self._storage.make(stored, self._clock.before(IDLE), self._most):
            raise Refused(429, "busy", "there are too many sessions; delete some", 60)
        return self._hold(Open(id, caller.tenant, model, given, session))

    def get(
        self, id: str, caller: Caller, made: Callable[[str, Given], tuple[Model, Session]]
    ) -> Open:
        """made: of the name of a model and what was given, a copy that holds nothing yet. Raises
        Refused for a session that is not there, or another tenant's: which of both is not told."""
        stored = self._storage.get(caller.tenant, id)
        if stored is None or not _is_for(given := _given(stored), caller):
            raise unknown("there is no such session")
        if time.time() - stored.used > TOUCHED:
            self._storage.touch(caller.tenant, id, time.time())
        with self._lock:
            one = self._open.get(id)
        if one is not None:
            return self._hold(one)
        model, session = made(stored.model, given)
        return self._hold(Open(id, caller.tenant, model, given, session))

    def of(self, caller: Caller) -> list[dict[str, Any]]:
        """Those that a caller may use, the latest first, as a client is told of them."""
        sessions = [(one, _given(one), count) for one, count in self._storage.of(caller.tenant)]
        return [
            {
                "id": stored.id,
                "name": given.name,
                "began": int(given.began),
                "model": stored.model,
                "confirmed": count,
            }
            for stored, given, count in sorted(sessions, key=lambda one: -one[1].began)
            if _is_for(given, caller)
        ]

    def _hold(self, one: Open) -> Open:
        """The copy that is kept, as the one that was used last."""
        with self._lock:
            kept = self._open.pop(one.id, one)
            self._open[one.id] = kept
            while len(self._open) > KEPT_OPEN:
                self._open.pop(next(iter(self._open)))
        return kept

    def end(self, id: str, caller: Caller) -> None:
        """Raises Refused as `get` does."""
        if not self._storage.delete(caller.tenant, id):
            raise unknown("there is no such session")
        with self._lock:
            one = self._open.pop(id, None)
        if one is not None:
            one.session.forget_work()

    def follow(self, one: Open) -> None:
        """The copy has what was done by now. In the thread of its model."""
        since = self._storage.since(one.tenant, one.id, one.numbers)
        if since is not None:
            one.session.follow(since.kept, since.new)
            one.numbers = since.numbers

    def done(self, one: Open) -> list[Done]:
        """All that was confirmed in a session, in order."""
        return self._storage.pairs(one.tenant, one.id)

    def count(self, one: Open) -> int:
        """How many pairs were confirmed in it."""
        return self._storage.confirmed(one.tenant, one.id)

    def reviewed(self, one: Open) -> list[Reviewed]:
        """What was told of the pairs that were confirmed in a session, in order."""
        reviews = self._storage.reviews(one.tenant, one.id)
        return [Reviewed.of(pair, feedback) for pair, feedback in reviews]

    def confirm(
        self, one: Open, source: Text, target: Text, feedback: Feedback | None = None
    ) -> None:
        """A pair of `confirmable` is confirmed: kept, in the memory that is written to, too.
        `feedback`: what the review is to know of it; with a "request", the same pair that was
        confirmed under this name is not confirmed again; with a "segment", it takes the place of
        what was confirmed for this segment before. No model is asked, and none waited for.
        Raises Refused where the session takes no more, or is gone, ServerError for the storage, and
        LockedError where another process writes to the memory; then it is in neither."""
        feedback = feedback or {}
        request = feedback.get("request")
        if request is None:
            self._confirm(one, source, target, feedback)
            return
        with self._turns[hash((one.id, request)) % TURNS]:
            if not self._is_confirmed(one, confirmed_now(source, target), request):
                self._confirm(one, source, target, feedback)

    def _is_confirmed(self, one: Open, pair: Done, request: str) -> bool:
        """Whether a request of this name has confirmed this pair."""
        reviews = self._storage.reviews(one.tenant, one.id, NEWEST)
        return any(
            feedback.get("request") == request and done.has_texts_of(pair)
            for done, feedback in reviews
        )

    def _confirm(self, one: Open, source: Text, target: Text, feedback: Feedback) -> None:
        if self.count(one) >= MOST_CONFIRMED:
            raise Refused(
                409, "full", f"a session holds {MOST_CONFIRMED:,} confirmed pairs; begin another"
            )
        translator, about = one.session.translator, (one.tenant, one.id)
        memory = translator.writable if translator.settings.memorises else None
        if memory is not None:
            self._intentions.confirm(*about, memory, (source, target), feedback)
            return
        pair = confirmed_now(source, target)
        pair = replace(pair, id=-1) if translator.settings.memorises else pair
        if not self._intentions.append(*about, pair, feedback):
            raise unknown("there is no such session")

    def saved(self, one: Open) -> bytes:
        """The session as a file of `Session.save`; of a copy of its own, so for any thread."""
        copy, done = Session(one.session.translator), self.done(one)
        copy.follow(0, done)
        with tempfile.TemporaryDirectory(prefix="tmnmt-") as folder:
            copy.save(path := Path(folder) / "session")
            return path.read_bytes()

    def undo(self, one: Open, segment: str | None = None) -> Done:
        """Takes the pair that was confirmed last back, or that of a segment, out of the memory,
        too, where no other session has confirmed it. Raises Refused where there is none."""
        pair = self._intentions.undo(one.tenant, one.id, segment)
        if pair is None:
            raise Refused(409, "nothing_confirmed", "nothing was confirmed in this session")
        return pair

    def mend(self) -> None:
        """As `Intentions.mend` says, of what processes have left behind that were killed."""
        self._intentions.mend()


def _given(stored: StoredSession) -> Given:
    lists = {key: tuple(stored.given[key]) for key in ("memories", "terms")}
    return Given(**{**stored.given, **lists})


def _is_for(given: Given, caller: Caller) -> bool:
    return all(map(caller.sees, given.memories)) and all(map(caller.has, given.terms))
