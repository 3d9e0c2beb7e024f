"""What is stored, as the server knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal

from tmnmt.segments import ConfirmedPair
from tmnmt.serve.languages import Language, language

State = Literal["awaiting", "waiting", "working", "done", "failed"]
# Of a confirmed pair, as a client tells it: "suggested", "keys", "request",
# "segment" and "resumed".
Feedback = Mapping[str, Any]
Entries = tuple[tuple[str, str], ...]  # a source term and its target each


@dataclass(frozen=True)
class StoredSession:
    """A session.

    id: its id.
    tenant: the tenant that it belongs to.
    model: the name of its model.
    setup: what it was begun with, as JSON has it.
    last_access: when it was used last, in seconds since 1970, to an hour."""

    id: str
    tenant: str
    model: str
    setup: Mapping[str, Any]
    last_access: float


@dataclass(frozen=True)
class PairChanges:
    """What became of the pairs of a session that somebody knows.

    retained: how many of the first ones are still there.
    new: the pairs that now come behind these.
    numbers: the numbers of all pairs that are there now."""

    retained: int
    new: Sequence[ConfirmedPair]
    numbers: Sequence[int]


def same_first(numbers: Sequence[int], current: Sequence[int]) -> int:
    """How many of the first numbers of two rows are the same.

    numbers: one row.
    current: the other row."""
    pairs = enumerate(zip(numbers, current, strict=False))
    return next(
        (place for place, (first, second) in pairs if first != second),
        min(len(numbers), len(current)),
    )


@dataclass(frozen=True)
class Intention:
    """A pair on its way between a session and a memory. A segment with its id, or one that holds
    its texts and time where the id is 0, is to be taken out of the memory where the intention is
    left behind; none where the id is negative.

    token: names the intention.
    pair: the pair.
    cancelled: when it was found to have been left behind, in seconds since 1970; None where
    somebody may still be about it."""

    token: str
    pair: ConfirmedPair
    cancelled: float | None = None


def memory_key(pair: ConfirmedPair) -> str | None:
    """What names the segment of a memory that a pair holds; None where it holds none.

    pair: the pair."""
    return f"{abs(pair.id)} {pair.memory}" if pair.memory and pair.id else None


def slot_of(pair: ConfirmedPair, feedback: Feedback) -> str:
    """The name under which a session holds one pair alone, so that a pair takes the place of that
    before it: the client's name of a segment, or else that of the request with the texts. So a
    request that two servers are about at once takes its own place. "" where the pair has neither.

    pair: the pair.
    feedback: what it came with."""
    if "segment" in feedback or "request" not in feedback:
        return str(feedback.get("segment", ""))
    texts = pair.src, pair.tgt, pair.src_codes, pair.tgt_codes
    digest = blake2b(repr((feedback["request"], texts)).encode(), digest_size=16)
    return f"\0request {digest.hexdigest()}"  # no client's name of a segment begins so


def leaving(pair: ConfirmedPair, removes: str | None) -> ConfirmedPair:
    """A pair that leaves its session, as `Intention` has it.

    pair: the pair.
    removes: when the segment was written that is to be deleted; "" where none is to be deleted, and
    None where this is not known yet."""
    if removes is None:
        return pair
    return (
        replace(pair, id=abs(pair.id), changed=removes)
        if removes
        else replace(pair, id=-abs(pair.id))
    )


@dataclass(frozen=True)
class Job:
    """Work that takes longer than a request.

    id: its id.
    kind: what it does.
    parameters: what it is about.
    state: how far it is, in a word.
    done: how many units or bytes are done.
    total: how many there are; None where this is not known.
    result: what came of it; of a failed job "error".
    has_file: whether it has made a file.
    changed: when it changed last, in seconds since 1970."""

    id: str
    kind: str
    parameters: Mapping[str, Any]
    state: State
    done: int
    total: int | None
    result: Mapping[str, Any]
    has_file: bool
    changed: float

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of the job."""
        return self.state in ("done", "failed")

    @property
    def record(self) -> dict[str, Any]:
        """The job as JSON has it in the own interface."""
        names = ("id", "kind", "state", "done", "total")
        return {name: getattr(self, name) for name in names} | {**self.parameters, **self.result}


@dataclass(frozen=True)
class Dictionary:
    """The entries of a glossary for one pair of languages.

    source: the code of the source language.
    target: the code of the target language.
    entries: the terms, each with its target."""

    source: str
    target: str
    entries: Entries

    @property
    def languages(self) -> tuple[Language, Language]:
        """The source and the target language."""
        return language(self.source), language(self.target)


@dataclass(frozen=True)
class Glossary:
    """A glossary that a client has made.

    id: its id.
    name: its name.
    created: when it was made, a time of ISO 8601.
    dictionaries: its entries, for each pair of languages."""

    id: str
    name: str
    created: str
    dictionaries: tuple[Dictionary, ...]


@dataclass(frozen=True)
class StoredDocument:
    """A document that people work on.

    id: its id.
    tenant: the tenant that it belongs to.
    version: it grows by one with every change.
    size: the bytes of all that is kept of it.
    head: what is known of all of it, as JSON has it."""

    id: str
    tenant: str
    version: int
    size: int
    head: Mapping[str, Any]


@dataclass(frozen=True)
class Person:
    """Somebody who has a document open.

    name: the person's name.
    tab: the name that the page gives itself; a person may have several open.
    number: the number of the segment at work; None where there is none.
    since: when the person came to this segment, in seconds since 1970.
    seen: when the person was there last, in seconds since 1970."""

    name: str
    tab: str
    number: int | None
    since: float
    seen: float
