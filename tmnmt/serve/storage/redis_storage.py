"""Sessions, jobs and glossaries on a Redis, for the processes of any machine.

What changes more than one key is a script or a transaction: whole, and seen whole. A key that
belongs to a tenant has the tenant in its name; a job, which is found by its id alone, has it in a
field. No key ends by itself: a Redis that is short of memory and throws away what is set to end
(maxmemory-policy volatile-...) leaves them. What each holds:

    session:TENANT:ID      a hash: model, given; last: the number of the last pair there ever was
    pairs:TENANT:ID        a sorted set by number, each "[number, pair, feedback]"
    intention:TOKEN        a hash: tenant, id, of a session; pair and feedback; cancelled, if it was
    intentions             a set of tokens
    sessions:TENANT        a set of ids
    used                   a sorted set of TENANT:ID by the time when it was used last
    job:ID, file:ID        a hash, and what the job has made
    jobs:TENANT, jobs      a set of ids; a sorted set of ids by the time of the last change
    glossary:TENANT:ID     a hash: name, made; terms:SOURCE:TARGET: entries
    glossaries:TENANT      a set of ids
    clock                  looks at the clock, as `tmnmt.serve.clock` has them

Values are JSON where they are more than a text or a number."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tmnmt.engine.confirmed import Done
from tmnmt.serve.storage.address import RedisAddress
from tmnmt.serve.storage.records import (
    Dictionary,
    Glossary,
    Intention,
    Job,
    Since,
    State,
    StoredSession,
)
from tmnmt.serve.storage.redis_server import PREFIX, RedisServer

_PART = re.compile(r"[A-Za-z0-9._-]{0,64}")  # of a key: a tenant, or an id
_MAKE_SESSION = """
local prefix, before = ARGV[1], '(' .. ARGV[2]
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', before, 'LIMIT', 0, 1000)) do
  local tenant, id = string.match(name, '^(.*):(.*)$')
  redis.call('UNLINK', prefix .. 'session:' .. name, prefix .. 'pairs:' .. name)
  redis.call('SREM', prefix .. 'sessions:' .. tenant, id)
  redis.call('ZREM', KEYS[1], name)
end
if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[3], 'model', ARGV[6], 'given', ARGV[7], 'last', '0')
redis.call('SADD', KEYS[2], ARGV[5])
redis.call('ZADD', KEYS[1], ARGV[8], ARGV[4] .. ':' .. ARGV[5])
return 1
"""
# A number is the time in microseconds, or one more than the last: so numbers of pairs that a Redis
# has lost never come again.
_APPEND = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local last = tonumber(redis.call('HGET', KEYS[1], 'last'))
local number = string.format('%.0f', math.max(last + 1, tonumber(ARGV[1])))
redis.call('HSET', KEYS[1], 'last', number)
redis.call('ZADD', KEYS[2], number, '[' .. number .. ',' .. ARGV[2] .. ',' .. ARGV[3] .. ']')
return 1
"""
_SINCE = """
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or '0'
if tonumber(last) == tonumber(ARGV[1]) then return false end
local kept = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1])
return {kept, last, redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf')}
"""
_INTEND = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
redis.call('SADD', KEYS[3], ARGV[1])
return 1
"""
# What stands in the member of a pair behind its number is kept as it is.
_WITHDRAW = """
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0)[1]
if not last then return false end
redis.call('ZREM', KEYS[1], last)
local pair = string.match(last, '^%[%d+,%s*(.*)%]$')
redis.call('HSET', KEYS[2], 'pair', pair, unpack(ARGV, 2))
redis.call('SADD', KEYS[3], ARGV[1])
return pair
"""
# ARGV: a prefix of keys, the token, the time, the pair; '': as it is.
_SETTLE = """
local prefix = ARGV[1]
local tenant, id, pair, feedback, cancelled = unpack(
  redis.call('HMGET', KEYS[1], 'tenant', 'id', 'pair', 'feedback', 'cancelled'))
if not pair or cancelled then return 0 end
local name = tenant .. ':' .. id
local session, pairs = prefix .. 'session:' .. name, prefix .. 'pairs:' .. name
if redis.call('EXISTS', session) == 0 then return 0 end
if ARGV[4] ~= '' then pair = ARGV[4] .. ',' .. feedback end
local last = tonumber(redis.call('HGET', session, 'last'))
local number = string.format('%.0f', math.max(last + 1, tonumber(ARGV[3])))
redis.call('HSET', session, 'last', number)
redis.call('ZADD', pairs, number, '[' .. number .. ',' .. pair .. ']')
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[2])
return 1
"""
_CANCEL = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSETNX', KEYS[1], 'cancelled', ARGV[1])
return 1
"""
_MAKE_JOB = """
local prefix, before = ARGV[1], '(' .. ARGV[2]
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', before, 'LIMIT', 0, 1000)) do
  local tenant = redis.call('HGET', prefix .. 'job:' .. id, 'tenant') or ''
  redis.call('UNLINK', prefix .. 'job:' .. id, prefix .. 'file:' .. id)
  redis.call('SREM', prefix .. 'jobs:' .. tenant, id)
  redis.call('ZREM', KEYS[1], id)
end
if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[3], unpack(ARGV, 6))
redis.call('SADD', KEYS[2], ARGV[4])
redis.call('ZADD', KEYS[1], ARGV[5], ARGV[4])
return 1
"""
_DELETE_JOB = """
if redis.call('HGET', KEYS[1], 'tenant') ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('SREM', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
return 1
"""
_CLAIM_JOB = """
if redis.call('HGET', KEYS[1], 'state') ~= 'awaiting' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'waiting')
return 1
"""
# ARGV: id, time, whether there is a file, the file, and fields with their values.
_CHANGE_JOB = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'changed', ARGV[2], unpack(ARGV, 5))
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
if ARGV[3] == '1' then redis.call('SET', KEYS[2], ARGV[4]) end
return 1
"""
_MAKE_GLOSSARY = """
if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('SADD', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], unpack(ARGV, 3))
return 1
"""
_CHANGE_GLOSSARY = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if #ARGV > 0 then redis.call('HSET', KEYS[1], unpack(ARGV)) end
return 1
"""


class Sessions:
    """Sessions as `SessionStorage` has them."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._make, self._append, self._since = map(server.script, (_MAKE_SESSION, _APPEND, _SINCE))
        self._intend, self._withdraw, self._settle, self._cancel = map(
            server.script, (_INTEND, _WITHDRAW, _SETTLE, _CANCEL)
        )

    def make(self, session: StoredSession, unused_since: float, most: int) -> bool:
        tenant, id = session.tenant, session.id
        keys = _key("used"), _key("sessions", tenant), _key("session", tenant, id)
        about = tenant, id, session.model, json.dumps(session.given), repr(session.used)
        return bool(self._make(keys, (PREFIX, repr(unused_since), most, *about)))

    def get(self, tenant: str, id: str) -> StoredSession | None:
        if not _is_id(id):
            return None
        fields, used = self._server.together(*_reads(tenant, id))
        return _session(tenant, id, fields, used)

    def of(self, tenant: str) -> list[tuple[StoredSession, int]]:
        ids = sorted(id.decode() for id in self._server.run("SMEMBERS", _key("sessions", tenant)))
        commands = [
            command
            for id in ids
            for command in (*_reads(tenant, id), ("ZCARD", _key("pairs", tenant, id)))
        ]
        answers = self._server.together(*commands)
        return [
            (session, count)
            for id, fields, used, count in zip(
                ids, answers[::3], answers[1::3], answers[2::3], strict=True
            )
            if (session := _session(tenant, id, fields, used)) is not None
        ]

    def count(self) -> int:
        return int(self._server.run("ZCARD", _key("used")))

    def touch(self, tenant: str, id: str, now: float) -> None:
        self._server.run("ZADD", _key("used"), "XX", repr(now), f"{tenant}:{id}")

    def delete(self, tenant: str, id: str) -> bool:
        if not _is_id(id):
            return False
        removed, _, _ = self._server.together(
            ("SREM", _key("sessions", tenant), id),
            ("UNLINK", _key("session", tenant, id), _key("pairs", tenant, id)),
            ("ZREM", _key("used"), f"{tenant}:{id}"),
        )
        return bool(removed)

    def append(self, tenant: str, id: str, pair: Done, feedback: Mapping[str, Any]) -> bool:
        keys = [_key(kind, tenant, id) for kind in ("session", "pairs")]
        arguments = int(time.time() * 1e6), _json(pair.record()), _json(feedback)
        return bool(self._append(keys, arguments))

    def confirmed(self, tenant: str, id: str) -> int:
        return int(self._server.run("ZCARD", _key("pairs", tenant, id)))

    def pairs(self, tenant: str, id: str) -> list[Done]:
        return [pair for pair, _ in self.reviews(tenant, id)]

    def since(self, tenant: str, id: str, number: int) -> Since | None:
        answer = self._since([_key("pairs", tenant, id)], [number])
        if answer is None:
            return None
        kept, last, new = answer
        return Since(kept, [_pair(member)[1] for member in new], int(last))

    def reviews(
        self, tenant: str, id: str, newest: int | None = None
    ) -> list[tuple[Done, Mapping[str, Any]]]:
        first = 0 if newest is None else -newest
        members = self._server.run("ZRANGE", _key("pairs", tenant, id), first, -1)
        return [_pair(member)[1:] for member in members]

    def intend(
        self, tenant: str, id: str, token: str, pair: Done, feedback: Mapping[str, Any]
    ) -> bool:
        keys = _key("session", tenant, id), _key("intention", token), _key("intentions")
        texts = _json(pair.record()), _json(feedback)
        fields = {"tenant": tenant, "id": id, "pair": ",".join(texts), "feedback": texts[1]}
        return bool(self._intend(keys, (token, *_listed(fields))))

    def withdraw(self, tenant: str, id: str, token: str) -> Done | None:
        keys = _key("pairs", tenant, id), _key("intention", token), _key("intentions")
        pair = self._withdraw(keys, (token, *_listed({"tenant": tenant, "id": id})))
        return None if pair is None else _first(pair)

    def settle(self, token: str, pair: Done | None = None) -> bool:
        keys = _key("intention", token), _key("intentions")
        record = "" if pair is None else _json(pair.record())
        return bool(self._settle(keys, (PREFIX, token, int(time.time() * 1e6), record)))

    def cancel(self, token: str, now: float) -> bool:
        return bool(self._cancel([_key("intention", token)], [repr(now)]))

    def drop(self, token: str) -> None:
        self._server.together(
            ("UNLINK", _key("intention", token)), ("SREM", _key("intentions"), token)
        )

    def intentions(self) -> list[Intention]:
        tokens = [token.decode() for token in self._server.run("SMEMBERS", _key("intentions"))]
        reads = (("HMGET", _key("intention", token), "pair", "cancelled") for token in tokens)
        return [
            Intention(token, _first(pair), None if cancelled is None else float(cancelled))
            for token, (pair, cancelled) in zip(tokens, self._server.together(*reads), strict=True)
            if pair is not None
        ]


class Jobs:
    """Jobs as `JobStorage` has them."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._make, self._delete, self._claim, self._change = map(
            server.script, (_MAKE_JOB, _DELETE_JOB, _CLAIM_JOB, _CHANGE_JOB)
        )

    def make(self, job: Job, tenant: str, unchanged_since: float, most: int) -> bool:
        keys = _key("jobs"), _key("jobs", tenant), _key("job", job.id)
        changed = repr(job.changed)
        fields = {
            "tenant": tenant,
            "kind": job.kind,
            "given": json.dumps(job.given),
            "state": job.state,
            "at": json.dumps([job.done, job.total]),
            "result": json.dumps(job.result),
            "changed": changed,
        }
        arguments = PREFIX, repr(unchanged_since), most, job.id, changed
        return bool(self._make(keys, (*arguments, *_listed(fields))))

    def get(self, id: str, tenant: str | None) -> Job | None:
        if not _is_id(id):
            return None
        fields, has_file = self._server.together(
            ("HGETALL", _key("job", id)), ("EXISTS", _key("file", id))
        )
        texts = _decoded(fields)
        if not texts or tenant not in (None, texts["tenant"]):
            return None
        given, (done, total), result = (json.loads(texts[at]) for at in ("given", "at", "result"))
        state: Any = texts["state"]
        changed = float(texts["changed"])
        return Job(id, texts["kind"], given, state, done, total, result, bool(has_file), changed)

    def file(self, id: str) -> bytes | None:
        made: bytes | None = self._server.run("GET", _key("file", id)) if _is_id(id) else None
        return made

    def delete(self, id: str, tenant: str) -> bool:
        if not _is_id(id):
            return False
        keys = _key("job", id), _key("file", id), _key("jobs", tenant), _key("jobs")
        return bool(self._delete(keys, (tenant, id)))

    def claim(self, id: str) -> bool:
        return _is_id(id) and bool(self._claim([_key("job", id)], []))

    def advance(self, id: str, done: int, total: int | None, now: float) -> bool:
        return self._changed(id, {"state": "working", "at": json.dumps([done, total])}, None, now)

    def finish(
        self, id: str, state: State, result: Mapping[str, Any], made: bytes | None, now: float
    ) -> None:
        self._changed(id, {"state": state, "result": json.dumps(result)}, made, now)

    def _changed(self, id: str, fields: Mapping[str, str], made: bytes | None, now: float) -> bool:
        keys = _key("job", id), _key("file", id), _key("jobs")
        arguments = id, repr(now), int(made is not None), made or b"", *_listed(fields)
        return bool(self._change(keys, arguments))


class Glossaries:
    """Glossaries as `GlossaryStorage` has them."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._make, self._change = map(server.script, (_MAKE_GLOSSARY, _CHANGE_GLOSSARY))

    def make(self, glossary: Glossary, tenant: str, most: int) -> bool:
        keys = _key("glossaries", tenant), _key("glossary", tenant, glossary.id)
        fields = {"name": glossary.name, "made": glossary.made, **_terms(glossary.dictionaries)}
        return bool(self._make(keys, (most, glossary.id, *_listed(fields))))

    def of(self, tenant: str) -> list[Glossary]:
        ids = [id.decode() for id in self._server.run("SMEMBERS", _key("glossaries", tenant))]
        every = self._server.together(*(("HGETALL", _key("glossary", tenant, id)) for id in ids))
        glossaries = [_glossary(id, fields) for id, fields in zip(ids, every, strict=True)]
        there = [one for one in glossaries if one is not None]
        return sorted(there, key=lambda one: (one.made, one.id))

    def get(self, tenant: str, id: str) -> Glossary | None:
        if not _is_id(id):
            return None
        return _glossary(id, self._server.run("HGETALL", _key("glossary", tenant, id)))

    def change(self, tenant: str, id: str, name: str | None, put: Sequence[Dictionary]) -> bool:
        fields = ({"name": name} if name is not None else {}) | _terms(put)
        key = _key("glossary", tenant, id) if _is_id(id) else None
        return key is not None and bool(self._change([key], _listed(fields)))

    def delete(self, tenant: str, id: str) -> bool:
        if not _is_id(id):
            return False
        removed, _ = self._server.together(
            ("SREM", _key("glossaries", tenant), id), ("UNLINK", _key("glossary", tenant, id))
        )
        return bool(removed)

    def delete_dictionary(self, tenant: str, id: str, source: str, target: str) -> bool:
        if not _is_id(id):
            return False
        field = f"terms:{source}:{target}"
        return bool(self._server.run("HDEL", _key("glossary", tenant, id), field))


class Clock:
    """Looks at the clock as `ClockStorage` has them. Of two at once one may be lost, which says
    nearly the same as the other."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def change(self, work: Callable[[str | None], str]) -> str:
        stored: bytes | None = self._server.run("GET", _key("clock"))
        note = work(stored.decode() if stored is not None else None)
        self._server.run("SET", _key("clock"), note)
        return note


class RedisStorage:
    """Raises as `RedisServer` does."""

    def __init__(self, address: RedisAddress) -> None:
        self._server = RedisServer(address)
        self.sessions, self.jobs = Sessions(self._server), Jobs(self._server)
        self.glossaries, self.clock = Glossaries(self._server), Clock(self._server)

    def size(self, tenant: str) -> int:
        """Of what Redis says that it takes in memory."""
        lists = ("sessions", ("session", "pairs")), ("glossaries", ("glossary",))
        keys = [
            _key(kind, tenant, id.decode())
            for name, kinds in lists
            for id in self._server.run("SMEMBERS", _key(name, tenant))
            for kind in kinds
        ]
        keys += [
            _key(kind, id.decode())
            for id in self._server.run("SMEMBERS", _key("jobs", tenant))
            for kind in ("job", "file")
        ]
        sizes = self._server.together(*(("MEMORY", "USAGE", key) for key in keys))
        return sum(size or 0 for size in sizes)

    def close(self) -> None:
        self._server.close()


def _key(kind: str, *parts: str) -> str:
    """Raises ValueError for a part that could be read as two: no tenant and no id is such."""
    if not all(map(_PART.fullmatch, parts)):
        raise ValueError("no part of a key")
    return PREFIX + ":".join((kind, *parts))


def _is_id(id: str) -> bool:
    """Whether this can be an id at all; what clients ask for may be anything."""
    return bool(id) and _PART.fullmatch(id) is not None


def _reads(tenant: str, id: str) -> tuple[Sequence[str], Sequence[str]]:
    """The commands that read a session."""
    about = "HMGET", _key("session", tenant, id), "model", "given"
    return about, ("ZSCORE", _key("used"), f"{tenant}:{id}")


def _session(
    tenant: str, id: str, fields: Sequence[bytes | None], used: float | None
) -> StoredSession | None:
    model, given = fields
    if model is None or given is None:
        return None
    return StoredSession(id, tenant, model.decode(), json.loads(given), float(used or 0))


def _pair(member: bytes) -> tuple[int, Done, Mapping[str, Any]]:
    number, record, feedback = json.loads(member)
    return number, Done.of(record), feedback


def _first(pair: bytes) -> Done:
    """The pair of a member, of what stands behind its number."""
    record, _ = json.loads(b"[" + pair + b"]")
    return Done.of(record)


def _json(record: object) -> str:
    return json.dumps(record, ensure_ascii=False)


def _listed(fields: Mapping[str, str]) -> list[str]:
    """Names and values in turn, as Redis takes them."""
    return [part for field in fields.items() for part in field]


def _decoded(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in fields.items()}


def _terms(dictionaries: Sequence[Dictionary]) -> dict[str, str]:
    return {f"terms:{one.source}:{one.target}": _json(one.entries) for one in dictionaries}


def _glossary(id: str, fields: Mapping[bytes, bytes]) -> Glossary | None:
    texts = _decoded(fields)
    if not texts:
        return None
    dictionaries = [
        Dictionary(source, target, tuple(map(tuple, json.loads(texts[name]))))
        for name in sorted(texts)
        if name.startswith("terms:")
        for _, source, target in [name.split(":")]
    ]
    return Glossary(id, texts["name"], texts["made"], tuple(dictionaries))
