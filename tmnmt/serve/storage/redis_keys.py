"""Names of keys on a Redis, and fields of hashes as it takes and gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tmnmt.serve.storage.redis_server import PREFIX

_PART = re.compile(r"[A-Za-z0-9._-]{0,64}")  # of a key: a tenant, or an id


def key_of(kind: str, *parts: str) -> str:
    """The name of a key.

    kind: what the key holds.
    parts: whose it is: a tenant, an id, or both.

    Raises ValueError for a part that could be read as two: no tenant and no id is such."""
    if not all(map(_PART.fullmatch, parts)):
        raise ValueError("no part of a key")
    return PREFIX + ":".join((kind, *parts))


def is_id(id: str) -> bool:
    """Whether this can be an id at all.

    id: what a client asks for, which may be anything."""
    return bool(id) and _PART.fullmatch(id) is not None


def listed(fields: Mapping[str, str]) -> list[str]:
    """Names and values in turn, as Redis takes them.

    fields: the values by their names."""
    return [part for field in fields.items() for part in field]


def decoded(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    """The texts of a hash.

    fields: the hash as Redis gives it."""
    return {name.decode(): value.decode() for name, value in fields.items()}
