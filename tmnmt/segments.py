"""The records that travel: frozen, compared by value, changed with `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tmnmt.checks import Check
from tmnmt.codes.record import Code


@dataclass(frozen=True, slots=True)
class Segment:
    """A source text and its translation, as one unit of a memory.

    `position` counts from 0 within `document`; `id` is given by the store (0: not stored yet);
    `created` and `changed` are ISO 8601 in UTC ("2026-01-31T12:00:00Z"), "" when unknown. `src` and
    `tgt` are plain text; the codes that stood in them are beside them (`tmnmt.codes.record`).
    """

    src: str
    tgt: str
    document: str = ""
    position: int = 0
    id: int = 0
    origin: str = ""
    created: str = ""
    changed: str = ""
    user: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    src_codes: tuple[Code, ...] = ()
    tgt_codes: tuple[Code, ...] = ()


class Reason(NamedTuple):
    """One thing that a match's worth goes by, and what it adds, or takes where it is below 0."""

    what: str
    points: int


@dataclass(frozen=True, slots=True)
class Worth:
    """What a match is worth to a translator: 0 to 102, and why (`tmnmt.index.match_value`).

    `tgt`: the translation as the text wants it, where that is not the segment's own: numbers put
    into it, or the case restored; "" where it is."""

    value: int
    reasons: tuple[Reason, ...] = ()
    tgt: str = ""


class Rival(NamedTuple):
    """Another translation of the same source in the memories, and how many segments have it."""

    tgt: str
    copies: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the memories agree on a translation that is taken as it stands: of `total` segments
    that fit as well, `copies` have it. `rivals` are the other translations, at most 5, the
    commonest first: with them the memories contradict themselves."""

    copies: int
    total: int
    rivals: tuple[Rival, ...] = ()

    def __str__(self) -> str:
        rivals = "; ".join(f"{rival.tgt!r} ({rival.copies})" for rival in self.rivals)
        return (
            f"the memory contradicts itself: {self.copies} of {self.total} segments that fit as "
            f"well have this translation; others: {rivals}"
        )


@dataclass(frozen=True, slots=True)
class Match:
    """A segment of the memory similar to a query: `score` in [0, 1], fuzzy, or sentence BLEU where
    that was asked for; `edits` in match tokens; `worth` where that was asked for. `agreement`:
    of a match that is taken as it stands, how far the memories agree on it; two matches are the
    same without it."""

    segment: Segment
    score: float
    edits: int
    worth: Worth | None = None
    agreement: Agreement | None = field(default=None, compare=False)

    @property
    def tgt(self) -> str:
        """The translation that the match gives: adapted where that is sure."""
        return (self.worth.tgt if self.worth is not None else "") or self.segment.tgt


@dataclass(frozen=True, slots=True)
class MemorySource:
    """One position of a retrieved pair that a token was read from: its share of the attention
    `weight`."""

    match: int  # index into Translation.matches
    position: int  # subword position in the pair's target
    weight: float  # q, in [0, 1]


@dataclass(frozen=True, slots=True)
class CacheSource:
    """One slot of the session cache as a token read it: the subword it holds and its matching
    probability `weight`."""

    slot: int
    text: str
    weight: float  # P_m, in [0, 1]


ReadSource = Literal["memory", "cache"]  # what memory layers read


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a memory layer had to do with a token.

    `name`: of what the layer did. `source`: what it read for it. `gate`: how far it was let in,
    from 0 to 1, the mean where the gate has elements. `weight`: where it was mixed into the
    probabilities (`is_mixed`), its exact share of the token's probability; where it was blended
    into the state, how much the generator's probability grew by it, after those before it."""

    name: str
    weight: float
    gate: float
    source: ReadSource
    is_mixed: bool


@dataclass(frozen=True, slots=True)
class Token:
    """One output subword and where it came from.

    `generated + recalled + copied == probability`: these are the exact parts of the mixture
    (docs/contracts/provenance.md). Effects are differences of probability, so that `plain +
    cache_effect + fusion_effect` is the generator's probability. All but `generated` and `plain`
    are sums over `provenance`, which has what every memory layer did, in order."""

    text: str
    # "model" | "memory" | "cache"; "term": a given form of a term; "typed": by the translator
    origin: str
    probability: float
    generated: float  # (1 - copy_gate) * (1 - recall_gate) * p_gen
    plain: float  # of the model without any memory layer
    provenance: tuple[Provenance, ...] = ()
    # copied from: all positions of this very subword; of fusion the heaviest
    sources: tuple[MemorySource, ...] = ()
    # q itself: all positions of 0.01 or more, whatever their subword; of a text taken as it stands,
    # this one's place
    attention: tuple[MemorySource, ...] = ()
    # P_m: all slots of 0.01 or more, and those of this very subword
    slots: tuple[CacheSource, ...] = ()

    @property
    def copied(self) -> float:
        """Mixed in from a memory: copy_gate * p_copy."""
        return self._weight("memory", is_mixed=True)

    @property
    def recalled(self) -> float:
        """Mixed in from what a session remembers: (1 - copy_gate) * recall_gate * p_recall."""
        return self._weight("cache", is_mixed=True)

    @property
    def copy_gate(self) -> float:
        """The share of the mixture that is read from a memory; 0 without one."""
        return self._share("memory")

    @property
    def recall_gate(self) -> float:
        """The share of the rest that is read from a session; 0 without one."""
        rest = 1 - self.copy_gate
        return self._share("cache") / rest if rest > 0 else 0.0

    @property
    def fusion_gate(self) -> float:
        """How far a memory was blended into the state."""
        return self._blended("memory")

    @property
    def cache_gate(self) -> float:
        """How far a session was blended into the state."""
        return self._blended("cache")

    @property
    def fusion_effect(self) -> float:
        """What blending the memory into the state did to the generator's probability."""
        return self._weight("memory", is_mixed=False)

    @property
    def cache_effect(self) -> float:
        """What blending the session into the state did to it."""
        return self._weight("cache", is_mixed=False)

    def _entries(self, source: ReadSource, is_mixed: bool) -> list[Provenance]:
        return [p for p in self.provenance if (p.source, p.is_mixed) == (source, is_mixed)]

    def _weight(self, source: ReadSource, is_mixed: bool) -> float:
        return sum((entry.weight for entry in self._entries(source, is_mixed)), 0.0)

    def _blended(self, source: ReadSource) -> float:
        return max((entry.gate for entry in self._entries(source, is_mixed=False)), default=0.0)

    def _share(self, source: ReadSource) -> float:
        """What is mixed in later leaves less of what was mixed in before."""
        shares = shares_of([entry.gate for entry in self.provenance if entry.is_mixed])
        mixed = [entry for entry in self.provenance if entry.is_mixed]
        return sum(
            (x for entry, x in zip(mixed, shares, strict=True) if entry.source == source), 0.0
        )


def shares_of(gates: Sequence[float]) -> list[float]:
    """The shares of a mixture that parts have which are mixed in one after another through these
    gates; the rest is what they are mixed into."""
    shares, rest = list[float](), 1.0
    for gate in reversed(gates):
        shares.append(rest * gate)
        rest *= 1 - gate
    return shares[::-1]


@dataclass(frozen=True, slots=True)
class Other:
    """Another translation that the search has found: its text, its score as that of a
    `Translation`, and its subwords, </s> included."""

    tgt: str
    score: float
    length: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """A word that may stand at a position: its text, its probability there, and its subwords with
    their origins."""

    text: str
    probability: float
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a translation, up to the next blank, and how likely it is right, from 0 to 1."""

    text: str
    confidence: float


ORIGINS = ("model", "fuzzy", "adapted", "confirmed", "memory")  # what has most left to do is first


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated segment. `score` is the length-normalised log probability; tokens only when
    explained.

    `origin`: "model"; "memory" for a full match, taken as it stands; "adapted" for one with
    something put into it, as numbers or a mark at the end, or with codes that it has not; "fuzzy"
    for a match worth less than 100, whose translation is a draft; "confirmed" for what was
    confirmed before; "" for what has no translation. `ORIGINS` has them in the order of what is
    left to do.

    `low`: the model, or for one of the pieces of a long segment, scored it lower, per subword, than
    nearly all dev text (`low_score` in config.toml); never where a text was taken as it stands, or
    where the model does not say.

    `unknown`: so many characters of the source are not in the model's vocabulary; `tgt` has the
    words with them as the source has them, and `tokens` has not. Nor has it a number of the source
    that was put in place of a wrong one (`tmnmt.filters.numbers`). A text without words that stays
    as it is has no tokens (`tmnmt.filters.non_linguistic`).

    `src_codes`, `tgt_codes`: of a segment that was given as a text with codes
    (`tmnmt.codes.record`); then `tokens` has numbers where `tgt` has placeholders.

    `user_checks`: what is wrong in it with the terms of its source, where there are some to go by;
    and what it lacks of what the user wants to be kept.

    `others`: the next best translations, best first, where more than one was asked for. None is of
    a text taken as it stands, or one with a term put into it.

    `words`, `confidence`: how likely each word is right, and all of it (TER of 0.1 or less), where
    tokens were asked for and the model can say; of a long segment that of its least sure piece."""

    src: str
    tgt: str
    score: float
    matches: tuple[Match, ...] = ()
    tokens: tuple[Token, ...] = ()
    origin: str = ""
    low: bool = False
    unknown: int = 0
    src_codes: tuple[Code, ...] = ()
    tgt_codes: tuple[Code, ...] = ()
    user_checks: tuple[Check, ...] = ()
    others: tuple[Other, ...] = ()
    words: tuple[Word, ...] = ()
    confidence: float | None = None
