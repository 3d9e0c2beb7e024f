"""The records that travel: frozen, compared by value, changed with `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tmnmt.checks import Check
from tmnmt.codes.record import Code


@dataclass(frozen=True, slots=True)
class Segment:
    """A source text and its translation, as one unit of a memory.

    src: the source, as plain text.
    tgt: its translation, as plain text.
    document: the name of the document that the segment stands in; "" where it is unknown.
    position: where the segment stands in its document, counted from 0.
    id: the number that the index has given to the segment; 0 where it is not stored yet.
    origin: where the segment comes from, such as the name of a file.
    created: when it was made, in UTC by ISO 8601 ("2026-01-31T12:00:00Z"); "" where it is unknown.
    changed: when it was changed last, written as `created` is.
    user: who made or changed it last; "" where it is unknown.
    properties: pairs of a name and a value that the memory has for it, such as a domain.
    src_codes: the inline codes that stood in the source, in order (`tmnmt.codes.record`).
    tgt_codes: the inline codes that stood in the translation, in order.
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
    """One thing that a match's worth depends on.

    what: the thing, in words.
    points: how much it adds to the worth, or takes from it where it is below 0."""

    what: str
    points: int


@dataclass(frozen=True)
class ConfirmedPair:
    """A segment that a session has finished.

    src: the source; "" where a new document began.
    tgt: the translation as it was confirmed; "" where the segment was passed over.
    id: the id of the segment in `memory`. It is positive where the pair was added there, and
    negative where the memory gave the same translation already. Without a memory, it is negative in
    a session, and 0 for a pair that is in none.
    changed: when it was confirmed, as segments carry it.
    memory: the place of the memory that the id is of; "" for none.
    src_codes: the codes of the source.
    tgt_codes: the codes of the translation."""

    src: str
    tgt: str
    id: int = 0
    changed: str = ""
    memory: str = ""
    src_codes: tuple[Code, ...] = ()
    tgt_codes: tuple[Code, ...] = ()

    @property
    def segment(self) -> Segment:
        """The pair as a memory holds it."""
        return Segment(
            self.src,
            self.tgt,
            id=self.id,
            created=self.changed,
            changed=self.changed,
            src_codes=self.src_codes,
            tgt_codes=self.tgt_codes,
        )


@dataclass(frozen=True, slots=True)
class Worth:
    """What a match is worth to a translator, and why (`tmnmt.index.match_value`).

    value: the worth, from 0 to 102. 100 is the same text, and more is the same place, too.
    reasons: what the worth depends on, with the points of each.
    tgt: the translation with the numbers or the case that the text wants, where this differs from
    the translation of the segment; "" where it does not."""

    value: int
    reasons: tuple[Reason, ...] = ()
    tgt: str = ""


class Rival(NamedTuple):
    """Another translation of the same source in the memories.

    tgt: the translation.
    copies: how many segments have it."""

    tgt: str
    copies: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the memories agree on a translation that is taken as it stands.

    copies: how many segments have this translation.
    total: how many segments fit as well, whatever their translation is.
    rivals: the other translations, at most 5, the commonest first. Where there are some, the
    memories contradict themselves."""

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
    """A segment of the memory that is similar to a text.

    segment: the segment that was found.
    score: the fuzzy score, from 0 to 1, or the sentence BLEU where the pairs are ranked by it.
    edits: how many match tokens have to be edited to make the text of the segment's source.
    worth: what the match is worth to a translator; None where this was not computed.
    agreement: how far the memories agree on a match that is taken as it stands; None for another
    match. Two matches are compared without it.
    memory: the place of the index that it was found in; "" where a session has it, or nobody said.
    Two matches are compared without it."""

    segment: Segment
    score: float
    edits: int
    worth: Worth | None = None
    agreement: Agreement | None = field(default=None, compare=False)
    memory: str = field(default="", compare=False)

    @property
    def tgt(self) -> str:
        """The translation that the match gives; it is adapted to the text where this is sure."""
        return (self.worth.tgt if self.worth is not None else "") or self.segment.tgt


@dataclass(frozen=True, slots=True)
class MemorySource:
    """One position of a retrieved pair that a token was read from.

    match: which of `Translation.matches` it is, counted from 0.
    position: which subword of the pair's target it is, counted from 0.
    weight: its share q of the attention, from 0 to 1."""

    match: int
    position: int
    weight: float


@dataclass(frozen=True, slots=True)
class CacheSource:
    """One slot of the session cache, as a token read it.

    slot: the number of the slot, counted from 0.
    text: the subword that the slot holds.
    weight: the probability P_m with which the slot matched, from 0 to 1."""

    slot: int
    text: str
    weight: float


ReadSource = Literal["memory", "cache"]  # what a memory layer has read


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a memory layer had to do with a token.

    name: what the layer did, such as "copy" or "fusion".
    weight: where the layer was mixed into the probabilities (`is_mixed`), its exact share of the
    token's probability. Where it was blended into the state, how much the generator's probability
    grew by it, after the layers before it.
    gate: how far the layer was let in, from 0 to 1; the mean where the gate has elements.
    source: what the layer read: "memory" or "cache".
    is_mixed: whether it was mixed into the probabilities; otherwise it was blended into the
    state."""

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
    are sums over `provenance`.

    text: the subword.
    origin: where the largest part of its probability comes from: "model", "memory" or "cache". A
    word that a term asks for has the origin "term", and what a person has typed has "typed".
    probability: of the subword in the whole mixture, from 0 to 1.
    generated: the part of the probability that the model generates, which is
    `(1 - copy_gate) * (1 - recall_gate) * p_gen`.
    plain: the probability that the model gives to the subword without any memory layer.
    provenance: what every memory layer did, in order.
    sources: the positions that it was copied from, which hold this very subword; with fusion, the
    position with the greatest weight.
    attention: all positions of retrieved pairs with a weight of 0.01 or more, whatever their
    subword is. In a text that is taken as it stands, this is the subword's place there.
    slots: all slots of the session cache with a weight of 0.01 or more, and those that hold this
    very subword."""

    text: str
    origin: str
    probability: float
    generated: float
    plain: float
    provenance: tuple[Provenance, ...] = ()
    sources: tuple[MemorySource, ...] = ()
    attention: tuple[MemorySource, ...] = ()
    slots: tuple[CacheSource, ...] = ()

    @property
    def copied(self) -> float:
        """The part of the probability that is mixed in from a memory: `copy_gate * p_copy`."""
        return self._weight("memory", is_mixed=True)

    @property
    def recalled(self) -> float:
        """The part of the probability that is mixed in from what a session remembers, which is
        `(1 - copy_gate) * recall_gate * p_recall`."""
        return self._weight("cache", is_mixed=True)

    @property
    def copy_gate(self) -> float:
        """The share of the mixture that is read from a memory, from 0 to 1; 0 without a memory."""
        return self._share("memory")

    @property
    def recall_gate(self) -> float:
        """The share of the rest that is read from a session, from 0 to 1; 0 without a session."""
        rest = 1 - self.copy_gate
        return self._share("cache") / rest if rest > 0 else 0.0

    @property
    def fusion_gate(self) -> float:
        """How far a memory was blended into the state, from 0 to 1."""
        return self._blended("memory")

    @property
    def cache_gate(self) -> float:
        """How far a session was blended into the state, from 0 to 1."""
        return self._blended("cache")

    @property
    def fusion_effect(self) -> float:
        """How much the generator's probability grew because the memory was blended into the
        state."""
        return self._weight("memory", is_mixed=False)

    @property
    def cache_effect(self) -> float:
        """How much the generator's probability grew because the session was blended into the
        state."""
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
    """The shares of a mixture that parts have which are mixed in one after another; the rest is
    what they are mixed into.

    gates: the gate through which each part is mixed in, from 0 to 1."""
    shares, rest = list[float](), 1.0
    for gate in reversed(gates):
        shares.append(rest * gate)
        rest *= 1 - gate
    return shares[::-1]


@dataclass(frozen=True, slots=True)
class Other:
    """Another translation that the search has found.

    tgt: its text.
    score: its score, as that of a `Translation`.
    length: how many subwords it has, the end of the sentence included."""

    tgt: str
    score: float
    length: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """A word that may stand at a position.

    text: the word.
    probability: how likely it stands there, from 0 to 1.
    tokens: its subwords with their origins."""

    text: str
    probability: float
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a translation.

    text: the word, up to the next blank.
    confidence: how likely it is right, from 0 to 1."""

    text: str
    confidence: float


ORIGINS = ("model", "fuzzy", "adapted", "confirmed", "memory")  # what has most left to do is first


class SearchWork(NamedTuple):
    """What the search of an index has compared with a text.

    candidates: how many distinct sources were found by the words that they share with the text.
    distances: for how many of them the edit distance was computed."""

    candidates: int
    distances: int


class Work(NamedTuple):
    """How much every stage has done for a translation.

    search: what was compared with the text; None where no index has counted it.
    pairs: how many pairs were read.
    positions: how many target positions these have, of each of which the key was read.
    lookups: how many times the nearest of all keys of the memory were looked for, once for every
    word of every hypothesis.
    neighbours: how many keys these lookups have found."""

    search: SearchWork | None
    pairs: int
    positions: int
    lookups: int = 0
    neighbours: int = 0


def search_total(works: Iterable[SearchWork | None]) -> SearchWork | None:
    """What several searches have compared together; None where none was counted.

    works: what each has compared."""
    counts = [work for work in works if work is not None]
    return SearchWork(*map(sum, zip(*counts, strict=True))) if counts else None


def work_total(works: Iterable[Work | None]) -> Work | None:
    """How much was done for all parts of a translation; None where it is known of none.

    works: how much was done for each."""
    parts = [work for work in works if work is not None]
    if not parts:
        return None
    return Work(
        search_total(part.search for part in parts),
        sum(part.pairs for part in parts),
        sum(part.positions for part in parts),
        sum(part.lookups for part in parts),
        sum(part.neighbours for part in parts),
    )


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated segment.

    src: the source, as plain text.
    tgt: the translation, as plain text.
    score: the log probability of the translation, over its length in subwords to the power of the
    option `length_penalty`; not a number (NaN) where the base does not say it.
    matches: the matches that were found for the source, the best first.
    tokens: the subwords of the translation with their origins, where the caller asked for them.
    In a segment with placeholders, `tokens` has numbers in their places. A text without words that
    stays as it is has no tokens (`tmnmt.filters.non_linguistic`).
    origin: "model"; "memory" for a full match that is taken as it stands; "adapted" for a full
    match with something put into it, such as numbers or a mark at the end, or with other codes;
    "fuzzy" for a match worth less than 100, whose translation is a draft; "confirmed" for what was
    confirmed before; "" for what has no translation. `ORIGINS` has them in the order of what is
    left to do.
    low: whether the model scored the translation, or a piece of it, lower per subword than nearly
    all dev text (`low_score` in config.toml). It is False where a text was taken as it stands, and
    where the model does not say.
    unknown: how many characters of the source are not in the model's vocabulary. `tgt` has the
    words with them as the source has them, and `tokens` lacks them. A number of the source that
    was put in place of a wrong one is not in `tokens` either (`tmnmt.filters.numbers`).
    src_codes: the codes of a segment that was given as a text with codes (`tmnmt.codes.record`).
    tgt_codes: the same codes, at their places in the translation.
    user_checks: what is wrong in the translation with the terms of its source, where there is a
    list of terms, and what it lacks of what the user wants to be kept.
    others: the next best translations, the best first, where more than one was asked for. A text
    that is taken as it stands has none, nor has one with a term put into it.
    words: the words of the translation, and how likely each is right, where tokens were asked for
    and the model can say.
    confidence: how likely all of the translation is right (a TER of 0.1 or less), from 0 to 1; None
    where `words` is empty. For a long segment it is that of its least sure piece.
    work: how much every stage has done for it, where the caller asked for tokens and the model has
    translated."""

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
    work: Work | None = field(default=None, compare=False)
