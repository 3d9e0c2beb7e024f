"""What is stored, as the server knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tmnmt.engine.confirmed import Done
from tmnmt.serve.languages import Language, language

State = Literal["awaiting", "waiting", "working", "done", "failed"]
Entries = tuple[tuple[str, str], ...]  # a source term and its target each


@dataclass(frozen=True)
class StoredSession:
    """`given`: what it was begun with, as JSON has it. `used`: when it was used last, in seconds
    since 1970, to an hour."""

    id: str
    tenant: str
    model: str
    given: Mapping[str, Any]
    used: float


@dataclass(frozen=True)
class Since:
    """What was done in a session, seen from a number: `kept` of the pairs up to it are still there,
    and `new` came behind. `last`: the number of the last pair; 0: there is none."""

    kept: int
    new: Sequence[Done]
    last: int


@dataclass(frozen=True)
class Intention:
    """A pair on its way between a session and a memory. `cancelled`: when that was found to have
    been left behind, in seconds since 1970; None: somebody may still be about it."""

    token: str
    pair: Done
    cancelled: float | None = None


@dataclass(frozen=True)
class Job:
    """`given`: what it is about. `result`: what came of it; of a failed one "error". `done`,
    `total`: units, or bytes, that it is through with, and all."""

    id: str
    kind: str
    given: Mapping[str, Any]
    state: State
    done: int
    total: int | None
    result: Mapping[str, Any]
    has_file: bool
    changed: float

    @property
    def has_ended(self) -> bool:
        return self.state in ("done", "failed")

    @property
    def record(self) -> dict[str, Any]:
        """As the own interface writes it."""
        names = ("id", "kind", "state", "done", "total")
        return {name: getattr(self, name) for name in names} | {**self.given, **self.result}


@dataclass(frozen=True)
class Dictionary:
    """The entries of a glossary for one pair of languages, by their codes."""

    source: str
    target: str
    entries: Entries

    @property
    def languages(self) -> tuple[Language, Language]:
        return language(self.source), language(self.target)


@dataclass(frozen=True)
class Glossary:
    """What a client has made. `made`: a time of ISO 8601."""

    id: str
    name: str
    made: str
    dictionaries: tuple[Dictionary, ...]
