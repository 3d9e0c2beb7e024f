"""Documents that people work on, on a Redis. Their keys:

document:TENANT:ID     a hash: version, size, head, and content, the bytes of the file
texts:TENANT:ID        a hash of the records of its segments by their numbers
versions:TENANT:ID     a sorted set of these numbers by the version of their last change
history:TENANT:ID      a hash of what is noted of segments, by NUMBER:SLOT
people:TENANT:ID       a hash of who has it open, by their names as JSON
documents:TENANT       a set of ids"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from tmnmt.serve.storage.base import DocumentStorage
from tmnmt.serve.storage.records import Person, StoredDocument
from tmnmt.serve.storage.redis_keys import is_id, key_of
from tmnmt.serve.storage.redis_server import RedisServer

_KINDS = "document", "texts", "versions", "history", "people"
_FIELDS = "version", "size", "head"
_MAKE = """
if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
local id, version = ARGV[2], ARGV[3]
redis.call('HSET', KEYS[2], 'version', version, 'size', ARGV[4], 'head', ARGV[5],
  'content', ARGV[6])
for number = 1, #ARGV - 6 do
  redis.call('HSET', KEYS[3], number, ARGV[number + 6])
  redis.call('ZADD', KEYS[4], version, number)
end
redis.call('SADD', KEYS[1], id)
return 1
"""
# ARGV: the version before, what the document has now, how many segments, numbers and records of
# these, then fields and records of the history
_CHANGE = """
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'size', ARGV[3], 'head', ARGV[4])
local last = 5 + 2 * tonumber(ARGV[5])
for place = 6, last, 2 do
  redis.call('HSET', KEYS[2], ARGV[place], ARGV[place + 1])
  redis.call('ZADD', KEYS[3], ARGV[2], ARGV[place])
end
for place = last + 1, #ARGV, 2 do
  redis.call('HSET', KEYS[4], ARGV[place], ARGV[place + 1])
end
return 1
"""
_NOTE = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
if #ARGV > 2 then redis.call('HDEL', KEYS[2], unpack(ARGV, 3)) end
return 1
"""


class Documents(DocumentStorage):
    """Documents as `DocumentStorage` has them."""

    def __init__(self, server: RedisServer) -> None:
        """server: the Redis that the documents are on."""
        self._server = server
        self._make, self._change, self._note = map(server.script, (_MAKE, _CHANGE, _NOTE))

    def make(
        self,
        document: StoredDocument,
        content: bytes,
        segments: Sequence[Mapping[str, Any]],
        limit: int,
    ) -> bool:
        tenant, id = document.tenant, document.id
        keys = key_of("documents", tenant), *_keys(tenant, id)[:3]
        values = document.version, document.size, json.dumps(document.head), content
        return bool(self._make(keys, (limit, id, *values, *map(_text, segments))))

    def get(self, tenant: str, id: str) -> StoredDocument | None:
        if not is_id(id):
            return None
        fields = self._server.run("HMGET", key_of("document", tenant, id), *_FIELDS)
        return _document(tenant, id, fields)

    def tenant_documents(self, tenant: str) -> list[StoredDocument]:
        ids = [id.decode() for id in self._server.run("SMEMBERS", key_of("documents", tenant))]
        reads = (("HMGET", key_of("document", tenant, id), *_FIELDS) for id in ids)
        entries = zip(ids, self._server.together(*reads), strict=True)
        documents = [_document(tenant, id, fields) for id, fields in entries]
        return [document for document in documents if document is not None]

    def content(self, tenant: str, id: str) -> bytes | None:
        if not is_id(id):
            return None
        content: bytes | None = self._server.run("HGET", key_of("document", tenant, id), "content")
        return content

    def segments(
        self, tenant: str, id: str, numbers: Sequence[int]
    ) -> dict[int, Mapping[str, Any]]:
        if not is_id(id) or not numbers:
            return {}
        records = self._server.run("HMGET", key_of("texts", tenant, id), *numbers)
        return {
            number: json.loads(record)
            for number, record in zip(numbers, records, strict=True)
            if record is not None
        }

    def changes(self, tenant: str, id: str, version: int) -> list[int]:
        if not is_id(id):
            return []
        versions = key_of("versions", tenant, id)
        return sorted(map(int, self._server.run("ZRANGEBYSCORE", versions, f"({version}", "+inf")))

    def put(
        self,
        document: StoredDocument,
        segments: Mapping[int, Mapping[str, Any]],
        history: Mapping[tuple[int, int], Mapping[str, Any]],
    ) -> bool:
        head = document.version, document.size, json.dumps(document.head)
        records = [part for number, record in segments.items() for part in (number, _text(record))]
        notes = [
            part
            for (number, slot), record in history.items()
            for part in (f"{number}:{slot}", _text(record))
        ]
        keys = _keys(document.tenant, document.id)[:4]
        arguments = document.version - 1, *head, len(segments), *records, *notes
        return bool(self._change(keys, arguments))

    def history(self, tenant: str, id: str, number: int, slots: int) -> list[Mapping[str, Any]]:
        if not is_id(id):
            return []
        fields = [f"{number}:{slot}" for slot in range(slots)]
        records = self._server.run("HMGET", key_of("history", tenant, id), *fields)
        return [json.loads(record) for record in records if record is not None]

    def delete(self, tenant: str, id: str) -> bool:
        if not is_id(id):
            return False
        removed, _ = self._server.together(
            ("SREM", key_of("documents", tenant), id), ("UNLINK", *_keys(tenant, id))
        )
        return bool(removed)

    def note(self, tenant: str, id: str, person: Person, unseen_since: float) -> None:
        if not is_id(id):
            return
        unseen = [_name(p) for p in self.people(tenant, id) if p.seen < unseen_since]
        keys = key_of("document", tenant, id), key_of("people", tenant, id)
        absent = [name for name in unseen if name != _name(person)]
        self._note(keys, (_name(person), json.dumps(astuple(person)), *absent))

    def people(self, tenant: str, id: str) -> list[Person]:
        if not is_id(id):
            return []
        records = self._server.run("HVALS", key_of("people", tenant, id))
        people = [Person(*json.loads(record)) for record in records]
        return sorted(people, key=lambda person: (person.name, person.tab))

    def size(self, tenant: str) -> int:
        """The bytes of all documents of a tenant.

        tenant: the tenant."""
        return sum(document.size for document in self.tenant_documents(tenant))


def _keys(tenant: str, id: str) -> list[str]:
    """All keys of a document, in the order of `_KINDS`."""
    return [key_of(kind, tenant, id) for kind in _KINDS]


def _document(tenant: str, id: str, fields: Sequence[bytes | None]) -> StoredDocument | None:
    version, size, head = fields
    if version is None or size is None or head is None:
        return None
    return StoredDocument(id, tenant, int(version), int(size), json.loads(head))


def _name(person: Person) -> str:
    return json.dumps([person.name, person.tab])


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)
