"""The usual storage: one file of SQLite, for the processes of one machine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tmnmt.engine.confirmed import pair_of, record_of
from tmnmt.segments import ConfirmedPair
from tmnmt.serve.storage.base import (
    ClockStorage,
    GlossaryStorage,
    JobStorage,
    SessionStorage,
    Storage,
    UsageStorage,
)
from tmnmt.serve.storage.records import (
    Dictionary,
    Feedback,
    Glossary,
    Intention,
    Job,
    PairChanges,
    State,
    StoredSession,
    leaving,
    memory_key,
    same_first,
    slot_of,
)
from tmnmt.serve.storage.sqlite_documents import SIZE as SIZE_OF_DOCUMENTS
from tmnmt.serve.storage.sqlite_documents import Documents
from tmnmt.serve.storage.sqlite_file import File

_SIZES = (
    "SELECT sum(length(given)) FROM session WHERE tenant = ?",
    "SELECT sum(length(CAST(done.record AS BLOB)) + ifnull(length(CAST(review.record AS BLOB)), 0))"
    " FROM session JOIN done ON done.session = session.id LEFT JOIN review USING (number)"
    " WHERE tenant = ?",
    "SELECT sum(length(CAST(pairs AS BLOB))) FROM session JOIN background ON session = id"
    " WHERE tenant = ?",
    "SELECT sum(length(given) + length(told) + ifnull(length(made), 0)) FROM job WHERE tenant = ?",
    "SELECT sum(length(entries)) FROM glossary JOIN dictionary ON glossary = id WHERE tenant = ?",
    SIZE_OF_DOCUMENTS,
)
_OF_SESSION = "session = (SELECT id FROM session WHERE id = ? AND tenant = ?)"


class Sessions(SessionStorage):
    """Sessions as `SessionStorage` has them."""

    def __init__(self, file: File) -> None:
        """file: the file that the sessions are in."""
        self._file = file

    def make(
        self,
        session: StoredSession,
        unused_since: float,
        limit: int,
        background: Sequence[ConfirmedPair] = (),
    ) -> bool:
        with self._file.writing() as connection:
            _keep_segments(connection, "session.used < ?", unused_since)
            connection.execute("DELETE FROM session WHERE used < ?", (unused_since,))
            count = connection.execute(
                "SELECT count(*) FROM session WHERE tenant = ?", (session.tenant,)
            )
            if count.fetchone()[0] >= limit:
                return False
            setup = json.dumps(session.setup)
            row = session.id, session.tenant, session.model, setup, session.last_access
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", row)
            if background:
                pairs = _text([*map(record_of, background)])
                connection.execute("INSERT INTO background VALUES (?, ?)", (session.id, pairs))
        return True

    def background(self, tenant: str, id: str) -> list[ConfirmedPair]:
        rows = self._file.rows(f"SELECT pairs FROM background WHERE {_OF_SESSION}", id, tenant)
        return [pair_of(record) for (pairs,) in rows for record in json.loads(pairs)]

    def get(self, tenant: str, id: str) -> StoredSession | None:
        query = "SELECT model, given, used FROM session WHERE id = ? AND tenant = ?"
        for model, setup, last_access in self._file.rows(query, id, tenant):
            return StoredSession(id, tenant, model, json.loads(setup), last_access)
        return None

    def tenant_sessions(self, tenant: str) -> list[tuple[StoredSession, int]]:
        query = (
            "SELECT id, model, given, used, (SELECT count(*) FROM done WHERE session = id) "
            "FROM session WHERE tenant = ?"
        )
        return [
            (StoredSession(id, tenant, model, json.loads(setup), last_access), count)
            for id, model, setup, last_access, count in self._file.rows(query, tenant)
        ]

    def count(self) -> int:
        return self._file.number("SELECT count(*) FROM session")

    def touch(self, tenant: str, id: str, now: float) -> None:
        self._file.write("UPDATE session SET used = ? WHERE id = ? AND tenant = ?", now, id, tenant)

    def delete(self, tenant: str, id: str) -> bool:
        with self._file.writing() as connection:
            _keep_segments(connection, "session.id = ? AND session.tenant = ?", id, tenant)
            delete = "DELETE FROM session WHERE id = ? AND tenant = ?"
            return connection.execute(delete, (id, tenant)).rowcount > 0

    def append(
        self, tenant: str, id: str, pair: ConfirmedPair, feedback: Feedback, token: str
    ) -> list[Intention] | None:
        session = "SELECT id FROM session WHERE id = ? AND tenant = ?"
        with self._file.writing() as connection:
            if connection.execute(session, (id, tenant)).fetchone() is None:
                return None
            return _add(connection, (tenant, id), pair, feedback, token)

    def confirmed(self, tenant: str, id: str) -> int:
        return self._file.number(f"SELECT count(*) FROM done WHERE {_OF_SESSION}", id, tenant)

    def pairs(self, tenant: str, id: str) -> list[ConfirmedPair]:
        query = f"SELECT record FROM done WHERE {_OF_SESSION} ORDER BY number"
        return [_parse_pair(record) for (record,) in self._file.rows(query, id, tenant)]

    def changes(self, tenant: str, id: str, numbers: Sequence[int]) -> PairChanges | None:
        last = f"SELECT count(*), ifnull(max(number), 0) FROM done WHERE {_OF_SESSION}"
        numbers_query = f"SELECT number FROM done WHERE {_OF_SESSION} ORDER BY number"
        records_query = (
            f"SELECT record FROM done WHERE {_OF_SESSION} AND number > ? ORDER BY number"
        )
        with self._file.reading() as connection:
            newest = connection.execute(last, (id, tenant)).fetchone()
            if newest == (len(numbers), numbers[-1] if numbers else 0):
                return None
            now = [number for (number,) in connection.execute(numbers_query, (id, tenant))]
            retained = same_first(numbers, now)
            rows = connection.execute(
                records_query, (id, tenant, now[retained - 1] if retained else 0)
            ).fetchall()
        return PairChanges(retained, [_parse_pair(record) for (record,) in rows], now)

    def reviews(
        self, tenant: str, id: str, newest: int | None = None
    ) -> list[tuple[ConfirmedPair, Feedback]]:
        query = (
            "SELECT done.record, review.record FROM done JOIN review USING (number) "
            f"WHERE {_OF_SESSION} ORDER BY number DESC LIMIT ?"
        )
        rows = self._file.rows(query, id, tenant, -1 if newest is None else newest)
        return [(_parse_pair(record), json.loads(feedback)) for record, feedback in reversed(rows)]

    def intend(
        self, tenant: str, id: str, token: str, pair: ConfirmedPair, feedback: Feedback
    ) -> bool:
        insert = (
            "INSERT INTO intention SELECT ?, tenant, id, ?, ?, NULL, NULL, NULL FROM session "
            "WHERE id = ? AND tenant = ?"
        )
        values = token, _text(record_of(pair)), _text(feedback), id, tenant
        return self._file.write(insert, *values)

    def share(self, token: str, pair: ConfirmedPair) -> bool:
        removing = "SELECT 1 FROM intention WHERE held = ? AND removes <> ''"
        set_ = "UPDATE intention SET record = ?, held = ? WHERE token = ? AND cancelled IS NULL"
        with self._file.writing() as connection:
            if connection.execute(removing, (memory_key(pair),)).fetchone() is not None:
                return False
            values = _text(record_of(pair)), memory_key(pair), token
            return connection.execute(set_, values).rowcount > 0

    def withdraw(
        self, tenant: str, id: str, token: str, segment: str | None = None
    ) -> ConfirmedPair | None:
        last = (
            f"SELECT number FROM done WHERE {_OF_SESSION} AND (? IS NULL OR segment = ?) "
            "ORDER BY number DESC LIMIT 1"
        )
        with self._file.writing() as connection:
            row = connection.execute(last, (id, tenant, segment, segment)).fetchone()
            return None if row is None else _take_out(connection, (tenant, id), row[0], token)

    def settle(self, token: str, pair: ConfirmedPair | None = None) -> list[Intention] | None:
        query = (
            "SELECT intention.tenant, session, record, review, removes FROM intention "
            "JOIN session ON session.id = session AND session.tenant = intention.tenant "
            "WHERE token = ? AND cancelled IS NULL"
        )
        with self._file.writing() as connection:
            row = connection.execute(query, (token,)).fetchone()
            if row is None:
                return None
            *session, record, review, removes = row
            connection.execute("DELETE FROM intention WHERE token = ?", (token,))
            feedback: Feedback = json.loads(review)
            if pair is not None:
                return _add(connection, session, pair, feedback, token)
            _insert(connection, session[1], _parse_pair(record), feedback)
            if removes:
                _inherit(connection, _parse_pair(record), removes)
            return []

    def cancel(self, token: str, now: float) -> ConfirmedPair | None:
        query = "SELECT record, cancelled, removes FROM intention WHERE token = ?"
        set_ = "UPDATE intention SET cancelled = ?, removes = ? WHERE token = ?"
        with self._file.writing() as connection:
            row = connection.execute(query, (token,)).fetchone()
            if row is None:
                return None
            record, cancelled, removes = row
            pair = _parse_pair(record)
            if cancelled is None:
                if removes is None and pair.id:
                    removes = _removes(connection, pair, token=token)
                connection.execute(set_, (now, removes, token))
        return leaving(pair, removes)

    def drop(self, token: str) -> None:
        self._file.write("DELETE FROM intention WHERE token = ?", token)

    def intentions(self) -> list[Intention]:
        query = "SELECT token, record, removes, cancelled FROM intention"
        return [
            Intention(token, leaving(_parse_pair(record), removes), cancelled)
            for token, record, removes, cancelled in self._file.rows(query)
        ]


def _keep_segments(connection: sqlite3.Connection, condition: str, *values: Any) -> None:
    """What sessions that are about to be deleted hold in memories stays there, whoever takes it
    back. Of a segment that the session has added nobody else is the one who did."""
    keep = (
        "INSERT OR REPLACE INTO inherited SELECT held, '' FROM done "
        "JOIN session ON session.id = done.session "
        f"WHERE {condition} AND held IS NOT NULL AND (json_extract(record, '$[2]') < 0 "
        "OR held IN (SELECT held FROM inherited))"
    )
    connection.execute(keep, values)


def _add(
    connection: sqlite3.Connection,
    session: Sequence[str],
    pair: ConfirmedPair,
    feedback: Feedback,
    token: str,
) -> list[Intention]:
    """`SessionStorage.append`, in a session that is there: its tenant and id."""
    query = "SELECT number FROM done WHERE session = ? AND segment = ? ORDER BY number"
    replaced = connection.execute(query, (session[1], slot_of(pair, feedback))).fetchall()
    _insert(connection, session[1], pair, feedback)
    replaced_intentions = list[Intention]()
    for (number,) in replaced:
        place = f"{token}.{number}"
        pair = _take_out(connection, session, number, place)
        if pair.id > 0:
            replaced_intentions.append(Intention(place, pair))
        else:
            connection.execute("DELETE FROM intention WHERE token = ?", (place,))
    return replaced_intentions


def _insert(
    connection: sqlite3.Connection, session: str, pair: ConfirmedPair, feedback: Feedback
) -> None:
    insert = "INSERT INTO done (session, record, held, segment) VALUES (?, ?, ?, ?)"
    slot = slot_of(pair, feedback) or None
    values = session, _text(record_of(pair)), memory_key(pair), slot
    number = connection.execute(insert, values).lastrowid
    connection.execute("INSERT INTO review VALUES (?, ?)", (number, _text(feedback)))


def _take_out(
    connection: sqlite3.Connection, session: Sequence[str], number: int, token: str
) -> ConfirmedPair:
    """A pair of a session, by its number, which is an intention from now on."""
    query = (
        "SELECT done.record, review.record FROM done JOIN review USING (number) WHERE number = ?"
    )
    record, review = connection.execute(query, (number,)).fetchone()
    connection.execute("DELETE FROM done WHERE number = ?", (number,))
    pair = _parse_pair(record)
    removes = _removes(connection, pair, token)
    values = token, *session, record, review, memory_key(pair), removes
    connection.execute("INSERT INTO intention VALUES (?, ?, ?, ?, ?, NULL, ?, ?)", values)
    return leaving(pair, removes)


def _removes(connection: sqlite3.Connection, pair: ConfirmedPair, token: str) -> str:
    """When the segment was written that is to be deleted, as this pair holds it no more; "": none
    is, as others hold it, or no session has added it. token: of an intention of this pair."""
    key = memory_key(pair)
    inherited = connection.execute(
        "SELECT changed FROM inherited WHERE held = ?", (key,)
    ).fetchone()
    stays = inherited is not None and not inherited[0]
    timestamp: str = pair.changed if pair.id > 0 else inherited[0] if inherited is not None else ""
    if key is None or stays or not timestamp:
        return ""
    holders = (
        "SELECT 1 FROM done WHERE held = ? UNION ALL SELECT 1 FROM intention "
        "WHERE held = ? AND token <> ? AND cancelled IS NULL AND removes IS NULL LIMIT 1"
    )
    if connection.execute(holders, (key, key, token)).fetchone() is not None:
        _inherit(connection, pair, timestamp)
        return ""
    connection.execute("DELETE FROM inherited WHERE held = ?", (key,))
    return timestamp


def _inherit(connection: sqlite3.Connection, pair: ConfirmedPair, timestamp: str) -> None:
    """Others hold the segment of a pair, which was written at this time."""
    connection.execute(
        "INSERT OR REPLACE INTO inherited VALUES (?, ?)", (memory_key(pair), timestamp)
    )


class Jobs(JobStorage):
    """Jobs as `JobStorage` has them."""

    def __init__(self, file: File) -> None:
        """file: the file that the jobs are in."""
        self._file = file

    def make(self, job: Job, tenant: str, unchanged_since: float, limit: int) -> bool:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM job WHERE changed < ?", (unchanged_since,))
            count = connection.execute("SELECT count(*) FROM job WHERE tenant = ?", (tenant,))
            if count.fetchone()[0] >= limit:
                return False
            values = (
                json.dumps(job.parameters),
                job.state,
                job.done,
                job.total,
                json.dumps(job.result),
            )
            row = job.id, tenant, job.kind, *values, None, job.changed
            connection.execute("INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return True

    def get(self, id: str, tenant: str | None) -> Job | None:
        query = (
            "SELECT kind, given, state, done, total, told, made IS NOT NULL, changed FROM job "
            "WHERE id = ? AND (? IS NULL OR tenant = ?)"
        )
        for (
            kind,
            parameters_json,
            state,
            completed,
            total,
            result,
            has_file,
            changed,
        ) in self._file.rows(query, id, tenant, tenant):
            parameters, result = json.loads(parameters_json), json.loads(result)
            return Job(
                id, kind, parameters, state, completed, total, result, bool(has_file), changed
            )
        return None

    def file(self, id: str) -> bytes | None:
        query = "SELECT made FROM job WHERE id = ? AND made IS NOT NULL"
        return next((bytes(content) for (content,) in self._file.rows(query, id)), None)

    def delete(self, id: str, tenant: str) -> bool:
        return self._file.write("DELETE FROM job WHERE id = ? AND tenant = ?", id, tenant)

    def claim(self, id: str) -> bool:
        update = "UPDATE job SET state = 'waiting' WHERE id = ? AND state = 'awaiting'"
        return self._file.write(update, id)

    def advance(self, id: str, completed: int, total: int | None, now: float) -> bool:
        set_ = "UPDATE job SET state = 'working', done = ?, total = ?, changed = ? WHERE id = ?"
        return self._file.write(set_, completed, total, now, id)

    def finish(
        self, id: str, state: State, result: Mapping[str, Any], file: bytes | None, now: float
    ) -> None:
        set_ = "UPDATE job SET state = ?, told = ?, made = ?, changed = ? WHERE id = ?"
        self._file.write(set_, state, json.dumps(result), file, now, id)


class Glossaries(GlossaryStorage):
    """Glossaries as `GlossaryStorage` has them."""

    def __init__(self, file: File) -> None:
        """file: the file that the glossaries are in."""
        self._file = file

    def make(self, glossary: Glossary, tenant: str, limit: int) -> bool:
        with self._file.writing() as connection:
            count = connection.execute("SELECT count(*) FROM glossary WHERE tenant = ?", (tenant,))
            if count.fetchone()[0] >= limit:
                return False
            row = glossary.id, tenant, glossary.name, glossary.created
            connection.execute("INSERT INTO glossary VALUES (?, ?, ?, ?)", row)
            _put(connection, glossary.id, glossary.dictionaries)
        return True

    def tenant_glossaries(self, tenant: str) -> list[Glossary]:
        return self._glossaries("tenant = ? ORDER BY made, id", tenant)

    def get(self, tenant: str, id: str) -> Glossary | None:
        return next(iter(self._glossaries("id = ? AND tenant = ?", id, tenant)), None)

    def _glossaries(self, condition: str, *values: str) -> list[Glossary]:
        with self._file.reading() as connection:
            heads = connection.execute(
                f"SELECT id, name, made FROM glossary WHERE {condition}", values
            )
            query = "SELECT source, target, entries FROM dictionary WHERE glossary = ?"
            return [
                Glossary(
                    id,
                    name,
                    created,
                    tuple(
                        Dictionary(source, target, tuple(map(tuple, json.loads(entries))))
                        for source, target, entries in connection.execute(query, (id,)).fetchall()
                    ),
                )
                for id, name, created in heads.fetchall()
            ]

    def change(
        self, tenant: str, id: str, name: str | None, dictionaries: Sequence[Dictionary]
    ) -> bool:
        with self._file.writing() as connection:
            set_ = "UPDATE glossary SET name = ifnull(?, name) WHERE id = ? AND tenant = ?"
            if not connection.execute(set_, (name, id, tenant)).rowcount:
                return False
            _put(connection, id, dictionaries)
        return True

    def delete(self, tenant: str, id: str) -> bool:
        return self._file.write("DELETE FROM glossary WHERE id = ? AND tenant = ?", id, tenant)

    def delete_dictionary(self, tenant: str, id: str, source: str, target: str) -> bool:
        condition = "glossary = (SELECT id FROM glossary WHERE id = ? AND tenant = ?)"
        delete = f"DELETE FROM dictionary WHERE {condition} AND source = ? AND target = ?"
        return self._file.write(delete, id, tenant, source, target)


class Clock(ClockStorage):
    """Looks at the clock as `ClockStorage` has them."""

    def __init__(self, file: File) -> None:
        """file: the file that the note is in."""
        self._file = file

    def change(self, work: Callable[[str | None], str]) -> str:
        with self._file.writing() as connection:
            notes = [
                record for (record,) in connection.execute("SELECT record FROM clock").fetchall()
            ]
            note = work(notes[0] if notes else None)
            connection.execute("DELETE FROM clock")
            connection.execute("INSERT INTO clock VALUES (?)", (note,))
        return note


class Usage(UsageStorage):
    """Usage as `UsageStorage` has it."""

    def __init__(self, file: File) -> None:
        """file: the file that the counts are in."""
        self._file = file

    def add(self, day: str, tenant: str, kind: str, amount: int) -> int:
        key = day, tenant, kind
        query = "SELECT amount FROM usage WHERE day = ? AND tenant = ? AND kind = ?"
        if amount:
            with self._file.writing() as connection:
                connection.execute("DELETE FROM usage WHERE day < date(?, '-1 day')", (day,))
                connection.execute("INSERT OR IGNORE INTO usage VALUES (?, ?, ?, 0)", key)
                connection.execute(
                    "UPDATE usage SET amount = amount + ? WHERE day = ? AND tenant = ?"
                    " AND kind = ?",
                    (amount, *key),
                )
                return int(connection.execute(query, key).fetchone()[0])
        rows = self._file.rows(query, *key)
        return int(rows[0][0]) if rows else 0


class SqliteStorage(Storage):
    """All that is kept in one file."""

    def __init__(self, path: Path) -> None:
        """path: the file, which is made where it is missing.

        Raises DataError where the file is of another program or a newer version, or cannot be
        made."""
        self._file = File(path)
        self.sessions, self.jobs = Sessions(self._file), Jobs(self._file)
        self.glossaries, self.clock = Glossaries(self._file), Clock(self._file)
        self.documents, self.usage = Documents(self._file), Usage(self._file)

    def size(self, tenant: str) -> int:
        return sum(self._file.rows(query, tenant)[0][0] or 0 for query in _SIZES)

    def close(self) -> None:
        self._file.close()


def _put(connection: sqlite3.Connection, glossary: str, dictionaries: Sequence[Dictionary]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO dictionary VALUES (?, ?, ?, ?)",
        [
            (glossary, dictionary.source, dictionary.target, json.dumps(dictionary.entries))
            for dictionary in dictionaries
        ],
    )


def _text(record: object) -> str:
    return json.dumps(record, ensure_ascii=False)


def _parse_pair(record: str) -> ConfirmedPair:
    return pair_of(json.loads(record))
