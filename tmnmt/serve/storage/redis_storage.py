"""Sessions, jobs and glossaries on a Redis, for the processes of any machine.

What changes more than one key is a script or a transaction: whole, and seen whole. A key that
belongs to a tenant has the tenant in its name; a job, which is stored by its id alone, has it in a
field. No key ends by itself: a Redis that is short of memory and throws away what is set to end
(maxmemory-policy volatile-...) leaves them. What each holds:

    session:TENANT:ID      a hash: model, given; last: the number of the last pair there ever was
    pairs:TENANT:ID        a sorted set by number, each "[number, pair, feedback]"
    segments:TENANT:ID     a hash: of pairs that have a segment, their numbers
    intention:TOKEN        a hash: tenant, id, of a session; pair and feedback; cancelled, if it
                           was; removes: when the segment was written that is to be deleted, or ""
    holders:DIGEST         a set of pairs that hold a segment of a memory: "pair TENANT:ID NUMBER"
                           or "intention TOKEN"; some may be gone
    inherited              a hash by DIGEST: of segments whose first pair was taken back, when each
                           was written; "" of those that stay
    intentions             a set of tokens
    sessions:TENANT        a set of ids
    used                   a sorted set of TENANT:ID by the time when it was used last
    job:ID, file:ID        a hash, and what the job has made
    jobs:TENANT, jobs      a set of ids; a sorted set of ids by the time of the last change
    glossary:TENANT:ID     a hash: name, made; terms:SOURCE:TARGET: entries
    glossaries:TENANT      a set of ids
    clock                  looks at the clock, as `tmnmt.serve.clock` has them

`redis_documents.py` has those of documents. Values are JSON where they are more than a text or a
number."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from tmnmt.engine.confirmed import pair_of, record_of
from tmnmt.segments import ConfirmedPair
from tmnmt.serve.storage.address import RedisAddress
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
from tmnmt.serve.storage.redis_documents import Documents
from tmnmt.serve.storage.redis_keys import decoded, is_id, key_of, listed
from tmnmt.serve.storage.redis_server import PREFIX, RedisServer

_TWO_DAYS = 2 * 86_400  # seconds
_MAKE_SESSION = """
local prefix, before = ARGV[1], '(' .. ARGV[2]
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', before, 'LIMIT', 0, 1000)) do
  local tenant, id = string.match(name, '^(.*):(.*)$')
  redis.call('UNLINK', prefix .. 'session:' .. name, prefix .. 'pairs:' .. name,
    prefix .. 'segments:' .. name)
  redis.call('SREM', prefix .. 'sessions:' .. tenant, id)
  redis.call('ZREM', KEYS[1], name)
end
if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[3], 'model', ARGV[6], 'given', ARGV[7], 'last', '0')
redis.call('SADD', KEYS[2], ARGV[5])
redis.call('ZADD', KEYS[1], ARGV[8], ARGV[4] .. ':' .. ARGV[5])
return 1
"""
# What the scripts of pairs share. They get texts of JSON as they are, and never write them anew:
# Lua has neither empty lists nor whole numbers of 64 bits. So the caller tells what a pair holds:
# `digest` of the segment of a memory, '' for none; and `written`, when that was, where the pair has
# added it. The caller has read the pair before, and reads it again where it has changed.
_PAIRS = """
local prefix = ARGV[1]

-- Whether pairs or intentions hold a segment. Those that are gone are forgotten.
local function is_held(holders)
  for _, holder in ipairs(redis.call('SMEMBERS', holders)) do
    local name, number = string.match(holder, '^pair (%S+) (%d+)$')
    if name and redis.call('ZCOUNT', prefix .. 'pairs:' .. name, number, number) > 0 then
      return true
    end
    local token = string.match(holder, '^intention (%S+)$') or ''
    local marks = redis.call('HMGET', prefix .. 'intention:' .. token, 'pair', 'cancelled',
      'removes')
    if marks[1] and not marks[2] and not marks[3] then return true end
    redis.call('SREM', holders, holder)
  end
  return false
end

-- When the segment was written that is to be deleted, as its holder leaves; '': none is.
local function leave(holder, digest, written)
  if digest == '' then return '' end
  local holders, inherited = prefix .. 'holders:' .. digest, prefix .. 'inherited'
  redis.call('SREM', holders, holder)
  local known = redis.call('HGET', inherited, digest)
  if known == '' then return '' end
  if written == '' then written = known or '' end
  if written == '' then return '' end
  if is_held(holders) then
    redis.call('HSET', inherited, digest, written)
    return ''
  end
  redis.call('HDEL', inherited, digest)
  return written
end

-- A number is the time in microseconds, or one more than the last: so numbers of pairs that a Redis
-- has lost never come again.
local function insert(name, now, pair, digest)
  local session = prefix .. 'session:' .. name
  local last = tonumber(redis.call('HGET', session, 'last'))
  local number = string.format('%.0f', math.max(last + 1, tonumber(now)))
  redis.call('HSET', session, 'last', number)
  redis.call('ZADD', prefix .. 'pairs:' .. name, number, '[' .. number .. ',' .. pair .. ']')
  if digest ~= '' then
    redis.call('SADD', prefix .. 'holders:' .. digest, 'pair ' .. name .. ' ' .. number)
  end
  return number
end

-- A pair of a session is an intention from now on.
local function take_out(name, number, member, segment, token, digest, written)
  redis.call('ZREM', prefix .. 'pairs:' .. name, member)
  local segments = prefix .. 'segments:' .. name
  if segment ~= '' and redis.call('HGET', segments, segment) == number then
    redis.call('HDEL', segments, segment)
  end
  local removes = leave('pair ' .. name .. ' ' .. number, digest, written)
  local tenant, id = string.match(name, '^(.*):(.*)$')
  local pair = string.match(member, '^%[%d+,%s*(.*)%]$')
  redis.call('HSET', prefix .. 'intention:' .. token, 'tenant', tenant, 'id', id, 'pair', pair,
    'removes', removes, 'digest', digest)
  redis.call('SADD', prefix .. 'intentions', token)
  return removes
end

local function drop(token)
  redis.call('DEL', prefix .. 'intention:' .. token)
  redis.call('SREM', prefix .. 'intentions', token)
end
"""
_ADD = """
local _, now, name, pair, digest, segment, token, number, member, old_token, old_digest, written =
  unpack(ARGV)
local segments = prefix .. 'segments:' .. name
if redis.call('EXISTS', prefix .. 'session:' .. name) == 0 then return false end
if token ~= '' then
  local marks = redis.call('HMGET', prefix .. 'intention:' .. token, 'pair', 'cancelled')
  if not marks[1] or marks[2] then return false end
end
if segment ~= '' and (redis.call('HGET', segments, segment) or '') ~= number then return 'again' end
local new = insert(name, now, pair, digest)
if segment ~= '' then redis.call('HSET', segments, segment, new) end
if token ~= '' then drop(token) end
if member == '' then return '' end
local removes = take_out(name, number, member, segment, old_token, old_digest, written)
if removes == '' then drop(old_token) end
return removes
"""
_PUT_BACK = """
local _, now, token, digest, segment = unpack(ARGV)
local tenant, id, pair, cancelled, removes = unpack(redis.call('HMGET',
  prefix .. 'intention:' .. token, 'tenant', 'id', 'pair', 'cancelled', 'removes'))
local name = (tenant or '') .. ':' .. (id or '')
if not pair or cancelled or redis.call('EXISTS', prefix .. 'session:' .. name) == 0 then
  return 0
end
local number = insert(name, now, pair, digest)
if segment ~= '' then redis.call('HSETNX', prefix .. 'segments:' .. name, segment, number) end
if removes and removes ~= '' then
  redis.call('HSET', prefix .. 'inherited', digest, removes)
end
drop(token)
return 1
"""
# What stands in the member of a pair behind its number is kept as it is.
_WITHDRAW = """
local _, name, is_last, number, member, segment, token, digest, written = unpack(ARGV)
local pairs = prefix .. 'pairs:' .. name
if not redis.call('ZSCORE', pairs, member) then return 'again' end
if is_last == '1' and redis.call('ZREVRANGE', pairs, 0, 0)[1] ~= member then return 'again' end
return take_out(name, number, member, segment, token, digest, written)
"""
_CHANGES = """
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or '0'
local count = redis.call('ZCARD', KEYS[1])
if tonumber(last) == tonumber(ARGV[1]) and count == tonumber(ARGV[2]) then return false end
if redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1]) == tonumber(ARGV[2]) then
  return {1, redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf')}
end
return {0, redis.call('ZRANGE', KEYS[1], 0, -1)}
"""
_INTEND = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
redis.call('SADD', KEYS[3], ARGV[1])
return 1
"""
_SHARE = """
local _, token, pair, digest = unpack(ARGV)
local key = prefix .. 'intention:' .. token
local marks = redis.call('HMGET', key, 'pair', 'cancelled')
if not marks[1] or marks[2] then return 0 end
for _, other in ipairs(redis.call('SMEMBERS', prefix .. 'intentions')) do
  local of_other = redis.call('HMGET', prefix .. 'intention:' .. other, 'digest', 'removes')
  if of_other[1] == digest and (of_other[2] or '') ~= '' then return 0 end
end
redis.call('HSET', key, 'pair', pair)
redis.call('SADD', prefix .. 'holders:' .. digest, 'intention ' .. token)
return 1
"""
_CANCEL = """
local _, token, now, expected, digest, written = unpack(ARGV)
local key = prefix .. 'intention:' .. token
local pair, cancelled, removes = unpack(redis.call('HMGET', key, 'pair', 'cancelled', 'removes'))
if not pair then return false end
if pair ~= expected then return 'again' end
if not cancelled then
  redis.call('HSET', key, 'cancelled', now)
  if not removes and digest ~= '' then
    removes = leave('intention ' .. token, digest, written)
    redis.call('HSET', key, 'removes', removes, 'digest', digest)
  end
end
return {removes and 1 or 0, removes or ''}
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


class Sessions(SessionStorage):
    """Sessions as `SessionStorage` has them."""

    def __init__(self, server: RedisServer) -> None:
        """server: the Redis that the sessions are on."""
        self._server = server
        self._make, self._changes, self._intend = map(
            server.script, (_MAKE_SESSION, _CHANGES, _INTEND)
        )
        self._add, self._put_back, self._withdraw, self._share, self._cancel = (
            server.script(_PAIRS + script)
            for script in (_ADD, _PUT_BACK, _WITHDRAW, _SHARE, _CANCEL)
        )

    def make(
        self,
        session: StoredSession,
        unused_since: float,
        limit: int,
        background: Sequence[ConfirmedPair] = (),
    ) -> bool:
        tenant, id = session.tenant, session.id
        old = "ZRANGEBYSCORE", key_of("used"), "-inf", f"({unused_since!r}", "LIMIT", 0, 1000
        for name in self._server.run(*old):
            self._keep_segments(_Name(*name.decode().split(":")))
        keys = key_of("used"), key_of("sessions", tenant), key_of("session", tenant, id)
        values = tenant, id, session.model, json.dumps(session.setup), repr(session.last_access)
        is_made = bool(self._make(keys, (PREFIX, repr(unused_since), limit, *values)))
        if is_made and background:  # nobody knows the id before this returns
            pairs = _json([*map(record_of, background)])
            self._server.run("HSET", key_of("session", tenant, id), "background", pairs)
        return is_made

    def background(self, tenant: str, id: str) -> list[ConfirmedPair]:
        if not is_id(id):
            return []
        pairs = self._server.run("HGET", key_of("session", tenant, id), "background")
        return [] if pairs is None else [pair_of(record) for record in json.loads(pairs)]

    def get(self, tenant: str, id: str) -> StoredSession | None:
        if not is_id(id):
            return None
        fields, last_access = self._server.together(*_reads(tenant, id))
        return _session(tenant, id, fields, last_access)

    def tenant_sessions(self, tenant: str) -> list[tuple[StoredSession, int]]:
        ids = sorted(id.decode() for id in self._server.run("SMEMBERS", key_of("sessions", tenant)))
        commands = [
            command
            for id in ids
            for command in (*_reads(tenant, id), ("ZCARD", key_of("pairs", tenant, id)))
        ]
        answers = self._server.together(*commands)
        return [
            (session, count)
            for id, fields, last_access, count in zip(
                ids, answers[::3], answers[1::3], answers[2::3], strict=True
            )
            if (session := _session(tenant, id, fields, last_access)) is not None
        ]

    def count(self) -> int:
        return int(self._server.run("ZCARD", key_of("used")))

    def touch(self, tenant: str, id: str, now: float) -> None:
        self._server.run("ZADD", key_of("used"), "XX", repr(now), f"{tenant}:{id}")

    def delete(self, tenant: str, id: str) -> bool:
        if not is_id(id):
            return False
        self._keep_segments(_Name(tenant, id))
        removed, _, _ = self._server.together(
            ("SREM", key_of("sessions", tenant), id),
            ("UNLINK", *(key_of(kind, tenant, id) for kind in ("session", "pairs", "segments"))),
            ("ZREM", key_of("used"), f"{tenant}:{id}"),
        )
        return bool(removed)

    def _keep_segments(self, name: _Name) -> None:
        """What a session that is about to be deleted holds in memories stays there, whoever takes
        it back. Of a segment that the session has added nobody else is the one who did."""
        pairs = self.pairs(*name)
        digests = [digest for digest in map(_digest, pairs) if digest]
        inherited = self._server.run("HMGET", key_of("inherited"), *digests) if digests else []
        added = {_digest(pair) for pair in pairs if pair.id > 0}
        stay = [
            digest
            for digest, timestamp in zip(digests, inherited, strict=True)
            if timestamp is not None or digest not in added
        ]
        self._server.together(*(("HSET", key_of("inherited"), digest, "") for digest in stay))

    def append(
        self, tenant: str, id: str, pair: ConfirmedPair, feedback: Feedback, token: str
    ) -> list[Intention] | None:
        return self._added(_Name(tenant, id), pair, feedback, token, is_intention=False)

    def _added(
        self, name: _Name, pair: ConfirmedPair, feedback: Feedback, token: str, is_intention: bool
    ) -> list[Intention] | None:
        """`append`, where `is_intention` of the pair of an intention."""
        segment = slot_of(pair, feedback)
        texts = f"{_json(record_of(pair))},{_json(feedback)}"
        while True:
            number, old = self._of_segment(name, segment) if segment else ("", None)
            place = f"{token}.{number}"
            of_old = (number, old.member, place, *old.facts) if old else (number, "", "", "", "")
            values = str(name), texts, _digest(pair), segment, token if is_intention else ""
            removes = self._add((), (PREFIX, _now(), *values, *of_old))
            if removes == b"again":
                continue
            if removes is None:
                return None
            if old is None or not removes:
                return []
            return [Intention(place, leaving(old.pair, removes.decode()))]

    def _of_segment(self, name: _Name, segment: str) -> tuple[str, _Member | None]:
        """The number of its pair, "" where there is none, and the pair."""
        number = self._server.run("HGET", key_of("segments", *name), segment)
        if number is None:
            return "", None
        stored = self._server.run("ZRANGEBYSCORE", key_of("pairs", *name), number, number)
        return number.decode(), _Member(stored[0]) if stored else None

    def confirmed(self, tenant: str, id: str) -> int:
        return int(self._server.run("ZCARD", key_of("pairs", tenant, id)))

    def pairs(self, tenant: str, id: str) -> list[ConfirmedPair]:
        return [pair for pair, _ in self.reviews(tenant, id)]

    def changes(self, tenant: str, id: str, numbers: Sequence[int]) -> PairChanges | None:
        last = numbers[-1] if numbers else 0
        answer = self._changes([key_of("pairs", tenant, id)], [last, len(numbers)])
        if answer is None:
            return None
        are_new, members = answer
        stored = [_Member(member) for member in members]
        now = [*(numbers if are_new else ()), *(int(member.number) for member in stored)]
        retained = same_first(numbers, now)
        return PairChanges(
            retained, [member.pair for member in stored[0 if are_new else retained :]], now
        )

    def reviews(
        self, tenant: str, id: str, newest: int | None = None
    ) -> list[tuple[ConfirmedPair, Feedback]]:
        first = 0 if newest is None else -newest
        members = self._server.run("ZRANGE", key_of("pairs", tenant, id), first, -1)
        return [(member.pair, member.feedback) for member in map(_Member, members)]

    def intend(
        self, tenant: str, id: str, token: str, pair: ConfirmedPair, feedback: Feedback
    ) -> bool:
        keys = key_of("session", tenant, id), key_of("intention", token), key_of("intentions")
        texts = f"{_json(record_of(pair))},{_json(feedback)}"
        fields = {"tenant": tenant, "id": id, "pair": texts}
        return bool(self._intend(keys, (token, *listed(fields))))

    def share(self, token: str, pair: ConfirmedPair) -> bool:
        stored = self._intention(token)
        if stored is None:
            return False
        texts = f"{_json(record_of(pair))},{_json(stored.feedback)}"
        return bool(self._share((), (PREFIX, token, texts, _digest(pair))))

    def withdraw(
        self, tenant: str, id: str, token: str, segment: str | None = None
    ) -> ConfirmedPair | None:
        name = _Name(tenant, id)
        while True:
            if segment is None:
                last = self._server.run("ZREVRANGE", key_of("pairs", tenant, id), 0, 0)
                stored = _Member(last[0]) if last else None
            else:
                _, stored = self._of_segment(name, segment)
            if stored is None:
                return None
            slot = slot_of(stored.pair, stored.feedback)
            facts = stored.number, stored.member, slot
            values = str(name), int(segment is None), *facts, token
            removes = self._withdraw((), (PREFIX, *values, *stored.facts))
            if removes != b"again":
                return leaving(stored.pair, removes.decode())

    def settle(self, token: str, pair: ConfirmedPair | None = None) -> list[Intention] | None:
        stored = self._intention(token)
        if stored is None:
            return None
        if pair is not None:
            return self._added(stored.name, pair, stored.feedback, token, is_intention=True)
        values = token, _digest(stored.pair), slot_of(stored.pair, stored.feedback)
        return [] if self._put_back((), (PREFIX, _now(), *values)) else None

    def cancel(self, token: str, now: float) -> ConfirmedPair | None:
        while True:
            stored = self._intention(token)
            if stored is None:
                return None
            facts = _digest(stored.pair), _write_time(stored.pair)
            answer = self._cancel((), (PREFIX, token, repr(now), stored.texts, *facts))
            if answer is None:
                return None
            if answer != b"again":
                is_known, removes = answer
                return leaving(stored.pair, removes.decode() if is_known else None)

    def _intention(self, token: str) -> _Stored | None:
        fields = self._server.run("HMGET", key_of("intention", token), "tenant", "id", "pair")
        return None if fields[2] is None else _Stored(*(field.decode() for field in fields))

    def drop(self, token: str) -> None:
        self._server.together(
            ("UNLINK", key_of("intention", token)), ("SREM", key_of("intentions"), token)
        )

    def intentions(self) -> list[Intention]:
        tokens = [token.decode() for token in self._server.run("SMEMBERS", key_of("intentions"))]
        names = "pair", "removes", "cancelled"
        reads = (("HMGET", key_of("intention", token), *names) for token in tokens)
        return [
            Intention(
                token,
                leaving(_texts(pair.decode())[0], None if removes is None else removes.decode()),
                None if cancelled is None else float(cancelled),
            )
            for token, (pair, removes, cancelled) in zip(
                tokens, self._server.together(*reads), strict=True
            )
            if pair is not None
        ]


class _Name(NamedTuple):
    """Of a session."""

    tenant: str
    id: str

    def __str__(self) -> str:
        return f"{self.tenant}:{self.id}"


class _Stored(NamedTuple):
    """An intention as it is stored."""

    tenant: str
    id: str
    texts: str

    @property
    def name(self) -> _Name:
        return _Name(self.tenant, self.id)

    @property
    def pair(self) -> ConfirmedPair:
        return _texts(self.texts)[0]

    @property
    def feedback(self) -> Feedback:
        return _texts(self.texts)[1]


class _Member:
    """A pair of a session as it is stored."""

    def __init__(self, member: bytes) -> None:
        number, record, feedback = json.loads(member)
        self.member, self.number = member, str(number)
        self.pair, self.feedback = pair_of(record), feedback

    @property
    def facts(self) -> tuple[str, str]:
        """As the scripts are told."""
        return _digest(self.pair), _write_time(self.pair)


class Jobs(JobStorage):
    """Jobs as `JobStorage` has them."""

    def __init__(self, server: RedisServer) -> None:
        """server: the Redis that the jobs are on."""
        self._server = server
        self._make, self._delete, self._claim, self._change = map(
            server.script, (_MAKE_JOB, _DELETE_JOB, _CLAIM_JOB, _CHANGE_JOB)
        )

    def make(self, job: Job, tenant: str, unchanged_since: float, limit: int) -> bool:
        keys = key_of("jobs"), key_of("jobs", tenant), key_of("job", job.id)
        changed = repr(job.changed)
        fields = {
            "tenant": tenant,
            "kind": job.kind,
            "given": json.dumps(job.parameters),
            "state": job.state,
            "at": json.dumps([job.done, job.total]),
            "result": json.dumps(job.result),
            "changed": changed,
        }
        arguments = PREFIX, repr(unchanged_since), limit, job.id, changed
        return bool(self._make(keys, (*arguments, *listed(fields))))

    def get(self, id: str, tenant: str | None) -> Job | None:
        if not is_id(id):
            return None
        fields, has_file = self._server.together(
            ("HGETALL", key_of("job", id)), ("EXISTS", key_of("file", id))
        )
        texts = decoded(fields)
        if not texts or tenant not in (None, texts["tenant"]):
            return None
        parameters, (completed, total), result = (
            json.loads(texts[name]) for name in ("given", "at", "result")
        )
        state: Any = texts["state"]
        changed = float(texts["changed"])
        return Job(
            id, texts["kind"], parameters, state, completed, total, result, bool(has_file), changed
        )

    def file(self, id: str) -> bytes | None:
        content: bytes | None = self._server.run("GET", key_of("file", id)) if is_id(id) else None
        return content

    def delete(self, id: str, tenant: str) -> bool:
        if not is_id(id):
            return False
        keys = key_of("job", id), key_of("file", id), key_of("jobs", tenant), key_of("jobs")
        return bool(self._delete(keys, (tenant, id)))

    def claim(self, id: str) -> bool:
        return is_id(id) and bool(self._claim([key_of("job", id)], []))

    def advance(self, id: str, completed: int, total: int | None, now: float) -> bool:
        return self._changed(
            id, {"state": "working", "at": json.dumps([completed, total])}, None, now
        )

    def finish(
        self, id: str, state: State, result: Mapping[str, Any], file: bytes | None, now: float
    ) -> None:
        self._changed(id, {"state": state, "result": json.dumps(result)}, file, now)

    def _changed(self, id: str, fields: Mapping[str, str], file: bytes | None, now: float) -> bool:
        keys = key_of("job", id), key_of("file", id), key_of("jobs")
        arguments = id, repr(now), int(file is not None), file or b"", *listed(fields)
        return bool(self._change(keys, arguments))


class Glossaries(GlossaryStorage):
    """Glossaries as `GlossaryStorage` has them."""

    def __init__(self, server: RedisServer) -> None:
        """server: the Redis that the glossaries are on."""
        self._server = server
        self._make, self._change = map(server.script, (_MAKE_GLOSSARY, _CHANGE_GLOSSARY))

    def make(self, glossary: Glossary, tenant: str, limit: int) -> bool:
        keys = key_of("glossaries", tenant), key_of("glossary", tenant, glossary.id)
        fields = {"name": glossary.name, "made": glossary.created, **_terms(glossary.dictionaries)}
        return bool(self._make(keys, (limit, glossary.id, *listed(fields))))

    def tenant_glossaries(self, tenant: str) -> list[Glossary]:
        ids = [id.decode() for id in self._server.run("SMEMBERS", key_of("glossaries", tenant))]
        records = self._server.together(
            *(("HGETALL", key_of("glossary", tenant, id)) for id in ids)
        )
        glossaries = [_glossary(id, fields) for id, fields in zip(ids, records, strict=True)]
        existing = [glossary for glossary in glossaries if glossary is not None]
        return sorted(existing, key=lambda glossary: (glossary.created, glossary.id))

    def get(self, tenant: str, id: str) -> Glossary | None:
        if not is_id(id):
            return None
        return _glossary(id, self._server.run("HGETALL", key_of("glossary", tenant, id)))

    def change(
        self, tenant: str, id: str, name: str | None, dictionaries: Sequence[Dictionary]
    ) -> bool:
        fields = ({"name": name} if name is not None else {}) | _terms(dictionaries)
        key = key_of("glossary", tenant, id) if is_id(id) else None
        return key is not None and bool(self._change([key], listed(fields)))

    def delete(self, tenant: str, id: str) -> bool:
        if not is_id(id):
            return False
        removed, _ = self._server.together(
            ("SREM", key_of("glossaries", tenant), id), ("UNLINK", key_of("glossary", tenant, id))
        )
        return bool(removed)

    def delete_dictionary(self, tenant: str, id: str, source: str, target: str) -> bool:
        if not is_id(id):
            return False
        field = f"terms:{source}:{target}"
        return bool(self._server.run("HDEL", key_of("glossary", tenant, id), field))


class Clock(ClockStorage):
    """Looks at the clock as `ClockStorage` has them. Of two at once one may be lost, which says
    nearly the same as the other."""

    def __init__(self, server: RedisServer) -> None:
        """server: the Redis that the note is on."""
        self._server = server

    def change(self, work: Callable[[str | None], str]) -> str:
        stored: bytes | None = self._server.run("GET", key_of("clock"))
        note = work(stored.decode() if stored is not None else None)
        self._server.run("SET", key_of("clock"), note)
        return note


class Usage(UsageStorage):
    """Usage as `UsageStorage` has it: a hash for each day, which Redis forgets."""

    def __init__(self, server: RedisServer) -> None:
        """server: the Redis that the counts are on."""
        self._server = server

    def add(self, day: str, tenant: str, kind: str, amount: int) -> int:
        key, field = key_of("usage", day), f"{kind} {tenant}"
        if not amount:
            return int(self._server.run("HGET", key, field) or 0)
        count = int(self._server.run("HINCRBY", key, field, amount))
        self._server.run("EXPIRE", key, _TWO_DAYS)
        return count


class RedisStorage(Storage):
    """All that is kept on one Redis."""

    def __init__(self, address: RedisAddress) -> None:
        """address: the address of the Redis.

        Raises DataError where the database is of another program or a newer version. Raises
        ServerError where it cannot be written to."""
        self._server = RedisServer(address)
        self.sessions, self.jobs = Sessions(self._server), Jobs(self._server)
        self.glossaries, self.clock = Glossaries(self._server), Clock(self._server)
        self.documents, self.usage = Documents(self._server), Usage(self._server)

    def size(self, tenant: str) -> int:
        """The size is what Redis says that it takes in memory."""
        lists = ("sessions", ("session", "pairs")), ("glossaries", ("glossary",))
        keys = [
            key_of(kind, tenant, id.decode())
            for name, kinds in lists
            for id in self._server.run("SMEMBERS", key_of(name, tenant))
            for kind in kinds
        ]
        keys += [
            key_of(kind, id.decode())
            for id in self._server.run("SMEMBERS", key_of("jobs", tenant))
            for kind in ("job", "file")
        ]
        sizes = self._server.together(*(("MEMORY", "USAGE", key) for key in keys))
        return sum(size or 0 for size in sizes) + self.documents.size(tenant)

    def close(self) -> None:
        self._server.close()


def _reads(tenant: str, id: str) -> tuple[Sequence[str], Sequence[str]]:
    """The commands that read a session."""
    command = "HMGET", key_of("session", tenant, id), "model", "given"
    return command, ("ZSCORE", key_of("used"), f"{tenant}:{id}")


def _session(
    tenant: str, id: str, fields: Sequence[bytes | None], last_access: float | None
) -> StoredSession | None:
    model, setup = fields
    if model is None or setup is None:
        return None
    return StoredSession(id, tenant, model.decode(), json.loads(setup), float(last_access or 0))


def _texts(pair: str) -> tuple[ConfirmedPair, Feedback]:
    """What stands in a member behind its number."""
    record, feedback = json.loads(f"[{pair}]")
    return pair_of(record), feedback


def _digest(pair: ConfirmedPair) -> str:
    """Of the segment that a pair holds; "": of none."""
    key = memory_key(pair)
    return "" if key is None else blake2b(key.encode(), digest_size=16).hexdigest()


def _write_time(pair: ConfirmedPair) -> str:
    """When the segment was written that this pair has added; "": it has added none."""
    return pair.changed if pair.memory and pair.id > 0 else ""


def _now() -> int:
    """In microseconds since 1970."""
    return int(time.time() * 1e6)


def _json(record: object) -> str:
    return json.dumps(record, ensure_ascii=False)


def _terms(dictionaries: Sequence[Dictionary]) -> dict[str, str]:
    return {
        f"terms:{dictionary.source}:{dictionary.target}": _json(dictionary.entries)
        for dictionary in dictionaries
    }


def _glossary(id: str, fields: Mapping[bytes, bytes]) -> Glossary | None:
    texts = decoded(fields)
    if not texts:
        return None
    dictionaries = [
        Dictionary(source, target, tuple(map(tuple, json.loads(texts[name]))))
        for name in sorted(texts)
        if name.startswith("terms:")
        for _, source, target in [name.split(":")]
    ]
    return Glossary(id, texts["name"], texts["made"], tuple(dictionaries))
