"""Sessions by their ids. They are written down in the storage; what a process holds of one is a
copy that follows what any process has confirmed in it or taken back."""

from __future__ import annotations

import math
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmnmt.engine.confirmed import confirmed_now, have_same_texts
from tmnmt.serve.http_error import Refused, unknown
from tmnmt.serve.intentions import Intentions
from tmnmt.serve.post_edit_statistics import Reviewed
from tmnmt.serve.storage.records import Feedback, StoredSession
from tmnmt.session import Session

if TYPE_CHECKING:
    from tmnmt.codes.record import Text
    from tmnmt.index.base import WritableIndex
    from tmnmt.segments import ConfirmedPair
    from tmnmt.serve.clock import Clock
    from tmnmt.serve.keys import Caller
    from tmnmt.serve.served_model import Model
    from tmnmt.serve.storage.base import SessionStorage

IDLE = 30 * 24 * 3600.0  # seconds after which a session that nobody used is forgotten
TOUCHED = 3600.0  # seconds: so exactly is it known when it was used
KEPT_OPEN = 256  # copies that a process keeps
MOST_CONFIRMED = 20_000  # in one session
NEWEST = 64  # confirmed pairs among which a request that is sent again is looked for
TURNS = 64  # locks for requests of the same name


@dataclass(frozen=True)
class SessionSetup:
    """What a session was begun with, by names. `write_to`: the memory that confirmed pairs are
    added to; `terms`: the lists that are kept to; `terms_domain`: what chooses between the
    meanings of their terms; `options`: of its translations; `name`: of the document, as the client
    calls it; `began`: in seconds since 1970; `document`: the id of the document of the server whose
    session it is. Such a session lasts as long as the document."""

    memories: tuple[str, ...]
    write_to: str | None = None
    terms: tuple[str, ...] = ()
    terms_mode: str = "soft"
    terms_domain: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    began: float = 0.0
    document: str = ""


@dataclass
class OpenSession:
    """A session as this process knows it."""

    id: str
    tenant: str
    model: Model
    setup: SessionSetup
    session: Session
    numbers: Sequence[int] = ()  # of the pairs that the copy holds
    state: object = None  # of the server, in which the copy was made

    @property
    def record(self) -> dict[str, Any]:
        """What a client is told of it."""
        source, target = self.model.languages
        return {
            "id": self.id,
            "model": self.model.name if self.model.translates else None,
            "source": source.code,
            "target": target.code,
            "memories": list(self.setup.memories),
            "write_to": self.setup.write_to,
            "terms": list(self.setup.terms),
            "terms_domain": self.setup.terms_domain,
        }


class Sessions:
    """For any thread; but a copy is used, and follows, in the thread of its model alone."""

    def __init__(
        self,
        storage: SessionStorage,
        limit: int,
        memories: Sequence[WritableIndex],
        clock: Clock,
    ) -> None:
        """limit: sessions of one tenant. memories: all that are written to. clock: it says which
        sessions nobody has used for long."""
        self._storage, self._limit, self._clock = storage, limit, clock
        self._intentions = Intentions(storage, memories)
        self._open: dict[str, OpenSession] = {}
        self._lock = threading.Lock()
        self._turns = [threading.Lock() for _ in range(TURNS)]

    def __len__(self) -> int:
        return self._storage.count()

    def serve(self, memories: Sequence[WritableIndex]) -> None:
        """From now on, these are all memories that are written to."""
        self._intentions.serve(memories)

    def begin(
        self,
        caller: Caller,
        model: Model,
        setup: SessionSetup,
        session: Session,
        background: Sequence[ConfirmedPair] = (),
        state: object = None,
    ) -> OpenSession:
        """A session, which knows already what was confirmed in the document before (`background`).
        `state`: as in `get`. Raises Refused where there are too many."""
        now, id = time.time(), secrets.token_urlsafe(16)
        last_access = math.inf if setup.document else now  # nobody forgets that of a document
        stored = StoredSession(id, caller.tenant, model.name, asdict(setup), last_access)
        if not self._storage.make(stored, self._clock.cutoff(IDLE), self._limit, background):
            raise Refused(429, "busy", "there are too many sessions; delete some", 60)
        return self._hold(OpenSession(id, caller.tenant, model, setup, session, state=state))

    def get(
        self,
        id: str,
        caller: Caller,
        create: Callable[[str, SessionSetup, Sequence[ConfirmedPair]], tuple[Model, Session]],
        state: object = None,
    ) -> OpenSession:
        """create: of the name of a model, what was given, and what was confirmed before, a copy
        that holds nothing else yet. state: what is served; a copy that was made when something else
        was served is made anew. Raises Refused for a session that is not there, or another
        tenant's: which of both is not told."""
        stored = self._storage.get(caller.tenant, id)
        if stored is None or not _is_for(setup := _parse_setup(stored), caller):
            raise unknown("there is no such session")
        if time.time() - stored.last_access > TOUCHED:
            self._storage.touch(caller.tenant, id, time.time())
        with self._lock:
            open_session = self._open.get(id)
        if open_session is not None and open_session.state is state:
            return self._hold(open_session)
        model, session = create(stored.model, setup, self._storage.background(caller.tenant, id))
        return self._hold(OpenSession(id, caller.tenant, model, setup, session, state=state))

    def summaries(self, caller: Caller) -> list[dict[str, Any]]:
        """Those that a caller may use, the latest first, as a client is told of them."""
        sessions = [
            (stored, _parse_setup(stored), count)
            for stored, count in self._storage.tenant_sessions(caller.tenant)
        ]
        return [
            {
                "id": stored.id,
                "name": setup.name,
                "began": int(setup.began),
                "model": stored.model,
                "confirmed": count,
            }
            for stored, setup, count in sorted(sessions, key=lambda entry: -entry[1].began)
            if _is_for(setup, caller)
        ]

    def _hold(self, open_session: OpenSession) -> OpenSession:
        """The copy that is kept, as the one that was used last."""
        with self._lock:
            cached = self._open.pop(open_session.id, open_session)
            cached = cached if cached.state is open_session.state else open_session
            self._open[open_session.id] = cached
            while len(self._open) > KEPT_OPEN:
                self._open.pop(next(iter(self._open)))
        return cached

    def end(self, id: str, caller: Caller, document: str = "") -> None:
        """Raises Refused as `get` does, and for the session of a document. `document`: the id of
        one that goes, too."""
        stored = self._storage.get(caller.tenant, id)
        if stored is not None and _parse_setup(stored).document != document:
            why = "this is the session of a document: delete the document"
            raise Refused(409, "in_use", why)
        if not self._storage.delete(caller.tenant, id):
            raise unknown("there is no such session")
        with self._lock:
            open_session = self._open.get(id)
        if open_session is not None:
            self.close(open_session)

    def close(self, open_session: OpenSession) -> None:
        """Forgets the copy of a session that this process has; it is opened anew when it is needed
        again."""
        with self._lock:
            self._open.pop(open_session.id, None)
        session = open_session.session
        session.translator.completions.forget(session)

    def follow(self, open_session: OpenSession) -> None:
        """The copy has what was done by now. In the thread of its model."""
        changes = self._storage.changes(open_session.tenant, open_session.id, open_session.numbers)
        if changes is not None:
            open_session.session.follow(changes.retained, changes.new)
            open_session.numbers = changes.numbers

    def confirmed_pairs(self, open_session: OpenSession) -> list[ConfirmedPair]:
        """All that was confirmed in a session, in order."""
        return self._storage.pairs(open_session.tenant, open_session.id)

    def count(self, open_session: OpenSession) -> int:
        """How many pairs were confirmed in it."""
        return self._storage.confirmed(open_session.tenant, open_session.id)

    def feedback(self, open_session: OpenSession) -> list[Feedback]:
        """What the pairs that are confirmed in a session came with, in order."""
        reviews = self._storage.reviews(open_session.tenant, open_session.id)
        return [feedback for _, feedback in reviews]

    def reviewed(self, open_session: OpenSession) -> list[Reviewed]:
        """What was told of the pairs that were confirmed in a session, in order."""
        reviews = self._storage.reviews(open_session.tenant, open_session.id)
        return [Reviewed.build(pair, feedback) for pair, feedback in reviews]

    def confirm(
        self,
        open_session: OpenSession,
        source: Text,
        target: Text,
        feedback: Feedback | None = None,
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
            self._confirm(open_session, source, target, feedback)
            return
        with self._turns[hash((open_session.id, request)) % TURNS]:
            if not self._is_confirmed(open_session, confirmed_now(source, target), request):
                self._confirm(open_session, source, target, feedback)

    def _is_confirmed(self, open_session: OpenSession, pair: ConfirmedPair, request: str) -> bool:
        """Whether a request of this name has confirmed this pair."""
        reviews = self._storage.reviews(open_session.tenant, open_session.id, NEWEST)
        return any(
            feedback.get("request") == request and have_same_texts(previous, pair)
            for previous, feedback in reviews
        )

    def _confirm(
        self, open_session: OpenSession, source: Text, target: Text, feedback: Feedback
    ) -> None:
        if self.count(open_session) >= MOST_CONFIRMED:
            raise Refused(
                409,
                "full",
                "a session holds {limit} confirmed pairs; begin another",
                values={"limit": MOST_CONFIRMED},
            )
        session, session_key = open_session.session, (open_session.tenant, open_session.id)
        memorises = session.pipeline.settings.memorises
        memory = session.writable if memorises else None
        if memory is not None:
            self._intentions.confirm(*session_key, memory, (source, target), feedback)
            return
        pair = confirmed_now(source, target)
        pair = replace(pair, id=-1) if memorises else pair
        if not self._intentions.append(*session_key, pair, feedback):
            raise unknown("there is no such session")

    def saved(self, open_session: OpenSession) -> bytes:
        """The session as a file of `Session.save`; of a copy of its own, so for any thread."""
        copy, pairs = Session(open_session.session.translator), self.confirmed_pairs(open_session)
        copy.follow(0, pairs)
        with tempfile.TemporaryDirectory(prefix="tmnmt-") as folder:
            copy.save(path := Path(folder) / "session")
            return path.read_bytes()

    def undo(self, open_session: OpenSession, segment: str | None = None) -> ConfirmedPair:
        """Takes the pair that was confirmed last back, or that of a segment, out of the memory,
        too, where no other session has confirmed it. Raises Refused where there is none."""
        pair = self._intentions.undo(open_session.tenant, open_session.id, segment)
        if pair is None:
            raise Refused(409, "nothing_confirmed", "nothing was confirmed in this session")
        return pair

    def mend(self) -> None:
        """As `Intentions.mend` says, of what processes have left behind that were killed."""
        self._intentions.mend()


def _parse_setup(stored: StoredSession) -> SessionSetup:
    lists = {key: tuple(stored.setup[key]) for key in ("memories", "terms")}
    return SessionSetup(**{**stored.setup, **lists})


def _is_for(setup: SessionSetup, caller: Caller) -> bool:
    return all(map(caller.sees, setup.memories)) and all(map(caller.has, setup.terms))
