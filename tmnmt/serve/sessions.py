"""Sessions by their ids. They are written down in the database; what a process holds of one is a
copy that follows what any process has confirmed in it or taken back."""

from __future__ import annotations

import json
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmnmt.codes.record import Text
from tmnmt.engine.confirmed import Done, confirmed_now
from tmnmt.engine.session import Session, deleted_from, written_to
from tmnmt.index.cached import same_place
from tmnmt.serve.database import Database
from tmnmt.serve.keys import Caller
from tmnmt.serve.refused import Refused, unknown
from tmnmt.serve.reviewed import Reviewed

if TYPE_CHECKING:
    from tmnmt.serve.service import Model

IDLE = 30 * 24 * 3600.0  # seconds after which a session that nobody used is forgotten
TOUCHED = 3600.0  # seconds: so exactly is it known when it was used
KEPT_OPEN = 256  # copies that a process keeps
MOST_CONFIRMED = 20_000  # in one session


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
    last: int = 0  # the number of what was done last, as far as the copy has followed


class Sessions:
    """For any thread; but a copy is used, and follows, in the thread of its model alone."""

    def __init__(self, database: Database, most: int) -> None:
        """most: sessions of one tenant."""
        self._database, self._most = database, most
        self._open: dict[str, Open] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        ((count,),) = self._database.rows("SELECT count(*) FROM session")
        return int(count)

    def begin(self, caller: Caller, model: Model, given: Given, session: Session) -> Open:
        """Raises Refused where there are too many."""
        now, id = time.time(), secrets.token_urlsafe(16)
        with self._database.writing() as to:
            to.execute("DELETE FROM session WHERE used < ?", (now - IDLE,))
            rows = to.execute("SELECT count(*) FROM session WHERE tenant = ?", (caller.tenant,))
            if rows.fetchone()[0] >= self._most:
                raise Refused(429, "busy", "there are too many sessions; delete some", 60)
            row = id, caller.tenant, model.name, json.dumps(asdict(given)), now
            to.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", row)
        return self._hold(Open(id, caller.tenant, model, given, session))

    def get(
        self, id: str, caller: Caller, made: Callable[[str, Given], tuple[Model, Session]]
    ) -> Open:
        """made: of the name of a model and what was given, a copy that holds nothing yet. Raises
        Refused for a session that is not there, or another tenant's: which of both is not told."""
        rows = self._database.rows(
            "SELECT model, given, used FROM session WHERE id = ? AND tenant = ?", id, caller.tenant
        )
        if not rows:
            raise unknown("there is no such session")
        name, text, used = rows[0]
        given = _given(text)
        if not _is_for(given, caller):
            raise unknown("there is no such session")
        if time.time() - used > TOUCHED:
            self._database.write("UPDATE session SET used = ? WHERE id = ?", time.time(), id)
        with self._lock:
            one = self._open.get(id)
        if one is not None:
            return self._hold(one)
        model, session = made(name, given)
        return self._hold(Open(id, caller.tenant, model, given, session))

    def of(self, caller: Caller) -> list[dict[str, Any]]:
        """Those that a caller may use, the latest first, as a client is told of them."""
        query = (
            "SELECT id, model, given, (SELECT count(*) FROM done WHERE session = id) FROM session "
            "WHERE tenant = ?"
        )
        rows = self._database.rows(query, caller.tenant)
        sessions = [(id, model, _given(text), count) for id, model, text, count in rows]
        return [
            {
                "id": id,
                "name": given.name,
                "began": int(given.began),
                "model": model,
                "confirmed": count,
            }
            for id, model, given, count in sorted(sessions, key=lambda one: -one[2].began)
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
        if not self._database.write(
            "DELETE FROM session WHERE id = ? AND tenant = ?", id, caller.tenant
        ):
            raise unknown("there is no such session")
        with self._lock:
            one = self._open.pop(id, None)
        if one is not None:
            one.session.forget_work()

    def follow(self, one: Open) -> None:
        """The copy has what was done by now. In the thread of its model."""
        with self._database.reading() as at:
            last = "SELECT max(number) FROM done WHERE session = ?"
            before = "SELECT count(*) FROM done WHERE session = ? AND number <= ?"
            new = "SELECT number, record FROM done WHERE session = ? AND number > ? ORDER BY number"
            (newest,) = at.execute(last, (one.id,)).fetchone()
            if (newest or 0) == one.last:
                return
            (kept,) = at.execute(before, (one.id, one.last)).fetchone()
            rows = at.execute(new, (one.id, one.last)).fetchall()
        one.session.follow(kept, [_done(record) for _, record in rows])
        one.last = newest or 0

    def done(self, id: str) -> list[Done]:
        """All that was confirmed in a session, in order."""
        query = "SELECT record FROM done WHERE session = ? ORDER BY number"
        return [_done(record) for (record,) in self._database.rows(query, id)]

    def count(self, id: str) -> int:
        """How many pairs were confirmed in it."""
        ((count,),) = self._database.rows("SELECT count(*) FROM done WHERE session = ?", id)
        return int(count)

    def reviewed(self, id: str) -> list[Reviewed]:
        """What was told of the pairs that were confirmed in a session, in order."""
        query = (
            "SELECT done.record, review.record FROM done JOIN review USING (number) "
            "WHERE session = ? ORDER BY number"
        )
        rows = self._database.rows(query, id)
        return [Reviewed.of(_done(record), json.loads(feedback)) for record, feedback in rows]

    def confirm(
        self, one: Open, source: Text, target: Text, feedback: Mapping[str, Any] | None = None
    ) -> None:
        """A pair of `confirmable` is confirmed: on disk, in the memory that is written to, too.
        `feedback`: what the review is to know of it. No model is asked, and none waited for. Raises
        Refused where the session takes no more, or is gone, and LockedError where another process
        writes to the memory; then it is not."""
        if self.count(one.id) >= MOST_CONFIRMED:
            raise Refused(
                409, "full", f"a session holds {MOST_CONFIRMED:,} confirmed pairs; begin another"
            )
        translator, entry = one.session.translator, confirmed_now(source, target)
        if translator.settings.memorises:
            if translator.writable is not None:
                entry = written_to(translator.writable, entry)
            entry = entry if entry.id else _of_session(entry)
        record = json.dumps(entry.record(), ensure_ascii=False)
        insert = "INSERT INTO done (session, record) SELECT id, ? FROM session WHERE id = ?"
        with self._database.writing() as to:
            added = to.execute(insert, (record, one.id))
            if not added.rowcount:
                raise unknown("there is no such session")
            review = added.lastrowid, json.dumps(feedback or {}, ensure_ascii=False)
            to.execute("INSERT INTO review VALUES (?, ?)", review)

    def saved(self, one: Open) -> bytes:
        """The session as a file of `Session.save`; of a copy of its own, so for any thread."""
        copy, done = Session(one.session.translator), self.done(one.id)
        copy.follow(0, done)
        with tempfile.TemporaryDirectory(prefix="tmnmt-") as folder:
            copy.save(path := Path(folder) / "session")
            return path.read_bytes()

    def undo(self, one: Open) -> Done:
        """Takes the pair that was confirmed last back, out of the memory, too. Raises Refused where
        nothing was confirmed."""
        query = "SELECT number, record FROM done WHERE session = ? ORDER BY number DESC LIMIT 1"
        with self._database.writing() as to:  # of two who undo at once each takes one back
            rows = to.execute(query, (one.id,)).fetchall()
            if not rows:
                raise Refused(409, "nothing_confirmed", "nothing was confirmed in this session")
            number, record = rows[0]
            entry, writable = _done(record), one.session.translator.writable
            if entry.id > 0 and writable is not None and same_place(writable.place, entry.memory):
                deleted_from(writable, entry)  # killed now, the next undo takes it back once more
            to.execute("DELETE FROM done WHERE number = ?", (number,))
        return entry


def _given(text: str) -> Given:
    stored = json.loads(text)
    return Given(**stored | {key: tuple(stored[key]) for key in ("memories", "terms")})


def _is_for(given: Given, caller: Caller) -> bool:
    return all(map(caller.sees, given.memories)) and all(map(caller.has, given.terms))


def _of_session(entry: Done) -> Done:
    """A pair that no memory keeps: the session's own memory gives it a number there."""
    return replace(entry, id=-1)


def _done(record: str) -> Done:
    return Done.of(json.loads(record))
