"""Who may do what: a file of keys, each with a role, a tenant and the memories that it sees.

    [[key]]
    name = "agency-weblate"
    sha256 = "…"                  of the key, which is random and stands nowhere else
    role = "translate"            read, translate, write or admin; each may what those before it may
    tenant = "agency"             who shares sessions; not given: the name
    memories = ["law", "agency"]  not given: none
    terms = ["house"]             lists of terms; not given: none
    rights = ["export"]           what it may beside its role; not given: nothing

A key has 256 random bits, so a plain hash of it cannot be searched."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmnmt.durable import create
from tmnmt.errors import DataError, UsageError, short_repr
from tmnmt.serve.http_error import Refused
from tmnmt.serve.roles import RIGHTS, ROLES, Need, Right, Role, is_allowed
from tmnmt.system import flush, flush_folder, open_file

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAMES = "up to 64 letters, digits and . _ -, the first one a letter or a digit"
_HASH = re.compile("[0-9a-f]{64}")
_LONGEST = 200  # characters of a key


@dataclass(frozen=True)
class Caller:
    """Who asks: a key, or anybody where the server has none. `memories`, `terms`: None: all."""

    name: str
    tenant: str
    role: Role
    memories: frozenset[str] | None
    terms: frozenset[str] | None = frozenset()
    rights: frozenset[Right] = frozenset()

    def may(self, need: Need) -> bool:
        return is_allowed(self.role, self.rights, need)

    def check(self, need: Need) -> None:
        """Raises Refused where this may not be done."""
        if not self.may(need):
            why = "this needs a key of the role {role}"
            values = {"role": str(need)}
            if need == "export":
                why = "this needs a key of the role {role}, or with the right {right}"
                values = {"role": RIGHTS[need], "right": need}
            raise Refused(403, "forbidden", why, values=values)

    def sees(self, memory: str) -> bool:
        return self.memories is None or memory in self.memories

    def has(self, terms: str) -> bool:
        return self.terms is None or terms in self.terms


def key_with(need: Need) -> str:
    """The key that is needed, in words."""
    if need == "export":
        return f"a key of the role {RIGHTS[need]}, or with the right {need}"
    return f"a key of the role {need}"


ANYBODY = Caller("", "", "admin", None, None)


class Keys:
    """All keys of a file."""

    def __init__(self, callers: Sequence[tuple[bytes, Caller]]) -> None:
        self._callers = list(callers)

    @property
    def callers(self) -> list[Caller]:
        return [caller for _, caller in self._callers]

    def is_of(self, memory: str, tenant: str) -> bool:
        """Whether a key of this tenant sees the memory."""
        return any(caller.tenant == tenant and caller.sees(memory) for caller in self.callers)

    def caller(self, key: str) -> Caller:
        """Raises Refused for a key that there is not. All are compared, each in constant time."""
        key_digest = hashlib.sha256(key[:_LONGEST].encode("utf-8", "replace")).digest()
        callers = [c for digest, c in self._callers if hmac.compare_digest(digest, key_digest)]
        if not callers:
            raise Refused(401, "no_key", "a key is needed, and this is none")
        return callers[0]

    @classmethod
    def load(cls, path: Path) -> Keys:
        """Raises DataError with file and key for what is wrong."""
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: is no TOML: {error}") from error
        entries = table.get("key", [])
        if set(table) - {"key"} or not isinstance(entries, list):
            raise DataError(f"{path}: holds tables [[key]] and nothing else")
        callers = [_entry(entry, f"{path}, key {n}") for n, entry in enumerate(entries, 1)]
        for label, values in (
            ("name", [c.name for _, c in callers]),
            ("sha256", [digest for digest, _ in callers]),
        ):
            if len(set(values)) < len(values):
                raise DataError(f"{path}: two keys have the same {label}")
        if not callers:
            raise DataError(f"{path}: holds no key; tmnmt serve-key makes one")
        return cls(callers)


def _entry(entry: Any, location: str) -> tuple[bytes, Caller]:
    fields = {"name", "sha256", "role", "tenant", "memories", "terms", "rights"}
    if not isinstance(entry, dict) or set(entry) - fields:
        raise DataError(f"{location}: allowed are {', '.join(sorted(fields))}")
    name = _name(entry.get("name"), f"{location}: name")
    digest, role = entry.get("sha256"), entry.get("role")
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise DataError(f"{location}: sha256 must be 64 digits of the hash of a key")
    if role not in ROLES:
        raise DataError(f"{location}: role is {short_repr(role)}; allowed: {', '.join(ROLES)}")
    tenant = _name(entry.get("tenant", name), f"{location}: tenant")
    memories, terms = (
        _names(entry.get(field, []), f"{location}: {field}") for field in ("memories", "terms")
    )
    rights = _names(entry.get("rights", []), f"{location}: rights")
    if not rights <= RIGHTS.keys():
        raise DataError(
            f"{location}: rights are {short_repr(sorted(rights))}; allowed: {', '.join(RIGHTS)}"
        )
    allowed = frozenset(right for right in RIGHTS if right in rights)
    return bytes.fromhex(digest), Caller(name, tenant, role, memories, terms, allowed)


def _names(value: object, location: str) -> frozenset[str]:
    if not isinstance(value, list):
        raise DataError(f"{location} must be a list of names")
    return frozenset(_name(name, location) for name in value)


def _name(value: object, location: str) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise DataError(f"{location} is {short_repr(value)}; allowed: {NAMES}")
    return value


def check_tenants(
    callers: Sequence[Caller],
    memories: Collection[str],
    writable: Collection[str],
    terms: Collection[str] = (),
) -> None:
    """Raises UsageError for a key of a memory, or of terms, that are not served, and where two
    tenants share a memory that is written to: what one confirms the other would read."""
    owners: dict[str, Caller] = {}  # of memories that are written to
    for caller in callers:
        for name in sorted((caller.terms or set()) - {*terms}):
            served = ", ".join(sorted(terms)) or "none"
            raise UsageError(f"key {caller.name}: terms {name} are not served; served: {served}")
        for name in sorted(caller.memories or ()):
            if name not in memories:
                served = ", ".join(sorted(memories)) or "none"
                raise UsageError(
                    f"key {caller.name}: memory {name} is not served; served: {served}"
                )
            first = owners.setdefault(name, caller) if name in writable else caller
            if first.tenant != caller.tenant:
                raise UsageError(
                    f"memory {name} is written to, and tenants {first.tenant} (key {first.name}) "
                    f"and {caller.tenant} (key {caller.name}) share it; "
                    f"{_mend(name, first, caller)}"
                )


def _mend(memory: str, *callers: Caller) -> str:
    """What to do where keys of two tenants share a memory that is written to. A key of the role
    admin is rarely a tenant of its own."""
    admin = next((caller for caller in callers if caller.role == "admin"), None)
    client = next((caller for caller in callers if caller is not admin), callers[0])
    if admin is None:
        return "give each its own, give both keys one tenant, or serve it by --memory"
    return (
        f"take {memory} out of the memories of key {admin.name}, which /metrics does not need, or "
        f'give that key tenant = "{client.tenant}"'
    )


def new_key(
    path: Path,
    name: str,
    role: Role,
    tenant: str | None,
    memories: Sequence[str],
    terms: Sequence[str] = (),
    rights: Sequence[Right] = (),
) -> str:
    """A new key, whose hash is added to the file, which is made at need, for its owner alone.
    Raises DataError for what the file cannot hold."""
    key = secrets.token_urlsafe(32)
    record = {"name": name, "sha256": hashlib.sha256(key.encode()).hexdigest(), "role": role}
    record |= {"tenant": tenant} if tenant is not None else {}
    entry: dict[str, Any] = {**record, "memories": list(memories), "terms": list(terms)}
    entry |= {"rights": list(rights)} if rights else {}
    _entry(entry, str(path))
    if path.exists() and name in [caller.name for caller in Keys.load(path).callers]:
        raise DataError(f"{path}: there is a key {name} already")
    lines = [f"{field} = {json.dumps(value)}" for field, value in entry.items()]
    create(path)
    handle = open_file(path, os.O_WRONLY | os.O_APPEND, follows=True)
    with os.fdopen(handle, "a", encoding="utf-8") as file:
        file.write("\n".join(["[[key]]", *lines, "", ""]))
        file.flush()
        flush(file.fileno())
    flush_folder(path.parent)
    return key
