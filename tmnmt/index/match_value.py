"""What a match is worth, as translators count it: 100 for the same text, 101 or 102 in the same
place, less for all that is to be looked at.

The fuzzy score stays what it is beside it. Penalties only lower a worth, with one exception: texts
of one skeleton, which differ in numbers, case or punctuation alone, count as the same text, less
what is not sure. So do those of the matches found that differ in placeholders alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tmnmt.codes.record import Code, alike
from tmnmt.config.options import Penalties
from tmnmt.index.base import Index
from tmnmt.index.fuzzy import SLACK
from tmnmt.index.substitute import Adapted, adapt, differences_of, renamed
from tmnmt.segments import Match, Reason, Segment, Worth
from tmnmt.text import match_tokens, normalise

FULL = 100  # the same text
MAX_VALUE = 102  # in the same place
MOST_PLACES = 256  # of equal segments whose neighbours are looked at

# Properties of TMX by which tools name a segment and its neighbours: OmegaT, memoQ, Okapi, Trados,
# this project; in lower case.
PREVIOUS = ("prev", "x-context-pre", "x-prev-segment")
NEXT = ("next", "x-context-post", "x-next-segment")
IDS = ("id", "tuid", "x-segment-id", "x-context", "x-idcontext", "resname", "msgctxt", "x-id")
# and by which they say who made it
ORIGINS = ("x-origin", "origin", "x-match-origin", "mt", "x-mt")
MACHINE = (
    *("mt", "mt!", "machine", "machinetranslation", "machine-translation", "nmt", "amt"),
    *("model", "fuzzy"),  # what this project writes of drafts into a TMX that it fills in
)
ALIGNMENT = ("alignment", "aligned", "align", "align!", "auto-aligned", "alignedtm")


@dataclass(frozen=True, slots=True)
class Query:
    """A text that the memories are asked for.

    text: the text.
    codes: its codes; None where they are not known.
    previous: the text before it in its document; "" where there is none, or nobody knows it.
    next: the text behind it in its document; "" where there is none, or nobody knows it.
    id: its id there; "" where it has none, or nobody knows it."""

    text: str
    codes: tuple[Code, ...] | None = None
    previous: str = ""
    next: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class AdjacentSources:
    """The neighbours of a segment in its document.

    previous: the source before it; "" where a memory does not say.
    next: the source behind it; "" where a memory does not say."""

    previous: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class Trust:
    """What a memory's matches are worth.

    penalty: how many points are taken off.
    weight: what the rest is multiplied by.
    precedes: whether a match that is taken goes before those of other memories that are worth the
    same."""

    penalty: int = 0
    weight: float = 1.0
    precedes: bool = False

    @property
    def is_full(self) -> bool:
        """Whether its matches are worth as much as they can be."""
        return not self.penalty and self.weight == 1.0


IN_FULL = Trust()
PRECEDING = Trust(precedes=True)


def worth(
    query: Query,
    match: Match,
    context: AdjacentSources = AdjacentSources(),
    penalties: Penalties = Penalties(),
    trust: Trust = IN_FULL,
) -> Worth:
    """What a match is worth for a text, why, and its translation adapted to the text.

    A text that is the same counts 100, one of the same skeleton too, less points for what differs,
    and one with other placeholders; any other its fuzzy score in per cent. Then points are taken
    for codes, domain, origin, age and memory. What is still 100, word for word, gets a point for
    each of previous segment, next segment and id that is the same, two at most.

    query: the text, and where it stands.
    match: the match.
    context: the neighbours of the match in its own document.
    penalties: how many points are taken off, and for what.
    trust: how far the memory of the match is trusted."""
    value, reasons, adapted = _of_text(query.text, match, penalties)
    reasons += _of_segment(query, match.segment, penalties)
    reasons += [Reason("memory", -trust.penalty)] if trust.penalty else []
    value += sum(reason.points for reason in reasons)
    if trust.weight != 1.0:
        weighted = int(max(value, 0) * trust.weight + SLACK)
        reasons.append(Reason("weight", weighted - max(value, 0)))
        value = weighted
    if value == FULL and not reasons:
        reasons = _of_place(query, match.segment, context)
        value += sum(reason.points for reason in reasons)
    tgt = adapted.tgt if adapted is not None and adapted.tgt != match.segment.tgt else ""
    return Worth(min(max(value, 0), MAX_VALUE), tuple(reasons), tgt)


def _of_text(
    text: str, match: Match, penalties: Penalties
) -> tuple[int, list[Reason], Adapted | None]:
    src = match.segment.src
    tokens, theirs = match_tokens(text), match_tokens(src)
    if tokens == theirs:
        return FULL, [], None
    differing = differences_of(tokens, theirs)
    if differing is None and (tgt := renamed(text, match.segment)) is not None:
        reasons = [Reason("placeholders", -penalties.penalty_codes)]
        return FULL, reasons, Adapted(tgt, True, True, True)
    if differing is None:
        return int(FULL * (1 - match.edits / max(len(tokens), len(theirs), 1)) + SLACK), [], None
    adapted = adapt(text, match.segment, differing)
    reasons = []
    if differing.numbers:
        reasons.append(Reason("numbers", 0 if adapted.numbers else -penalties.penalty_numbers))
    if differing.case:
        reasons.append(Reason("case", 0 if adapted.case else -penalties.penalty_case))
    if differing.punctuation:
        points = 0 if adapted.punctuation else -penalties.penalty_punctuation
        reasons.append(Reason("punctuation", points))
    return FULL, reasons, adapted


def _of_segment(query: Query, segment: Segment, penalties: Penalties) -> list[Reason]:
    makers = _made_by(segment)
    flaws = {
        "codes": query.codes is not None and not alike(query.codes, segment.src_codes),
        "domain": penalties.domain is not None and not _is_of(segment, *penalties.domain_property),
        "machine": makers & {*MACHINE} != set(),
        "alignment": makers & {*ALIGNMENT} != set(),
        "old": penalties.older_than is not None and segment.changed < penalties.older_than,
    }
    points = {
        name: -getattr(penalties, f"penalty_{name}") for name, holds in flaws.items() if holds
    }
    return [Reason(name, number) for name, number in points.items() if number]


def _is_of(segment: Segment, name: str, value: str) -> bool:
    if name == "document":
        return segment.document == value
    return (name, value) in segment.properties


def _made_by(segment: Segment) -> set[str]:
    """All that says who made a segment, in lower case."""
    origins = {value.strip().lower() for _, value in _find_properties(segment, ORIGINS)}
    return origins | {segment.user.strip().lower(), segment.origin.strip().lower()}


def _find_properties(segment: Segment, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in segment.properties if name.lower() in names)


def _of_place(query: Query, segment: Segment, context: AdjacentSources) -> list[Reason]:
    """A point for each of previous, next and id that agrees, two at most."""
    agree = [
        ("previous", query.previous, [context.previous, *_values(segment, PREVIOUS)]),
        ("next", query.next, [context.next, *_values(segment, NEXT)]),
    ]
    reasons = [
        Reason(name, 1)
        for name, text, candidates in agree
        if any(_same_text(text, o) for o in candidates)
    ]
    if query.id and query.id in _values(segment, IDS):
        reasons.append(Reason("id", 1))
    return reasons[: MAX_VALUE - FULL]


def _same_text(text: str, candidate: str) -> bool:
    """Whether two texts are the same, and say something."""
    if not text or not candidate:
        return False
    if (
        text.isascii()
        and candidate.isascii()
        and "".join(text.split()) != "".join(candidate.split())
    ):
        return False  # which is told sooner
    return normalise(text) == normalise(candidate) != ""


def _values(segment: Segment, names: Sequence[str]) -> list[str]:
    return [value for _, value in _find_properties(segment, names)]


@runtime_checkable
class FindsById(Protocol):
    """An index that gives segments by their ids."""

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of these segments that are there, by their ids.

        ids: the ids that are looked for."""
        ...


class Neighbours:
    """The neighbours of segments of an index, which is asked for all of them together."""

    def __init__(self, index: FindsById, segments: Iterable[Segment] = ()) -> None:
        """index: the index.
        segments: the segments whose neighbours are fetched at once."""
        self._index = index
        self._ids = _neighbour_ids(segments)
        self._segments = index.find(sorted(self._ids)) if self._ids else {}

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of these segments that are there, by their ids. The index is asked only for those
        that were not fetched before.

        ids: the ids that are looked for."""
        numbers = list(ids)
        if missing := [number for number in numbers if number not in self._ids]:
            self._ids |= set(missing)
            self._segments |= self._index.find(missing)
        return {number: self._segments[number] for number in numbers if number in self._segments}


def neighbours(
    index: Index, queries: Iterable[Query], matches: Iterable[Sequence[Match]]
) -> Neighbours | None:
    """The neighbours of those matches that may stand in the same place as their query. None where
    the index does not give segments by their ids.

    index: the index that the matches are of.
    queries: the queries.
    matches: for every query its matches, best first."""
    if not isinstance(index, FindsById):
        return None
    segments = [
        match.segment
        for query, alike in zip(queries, matches, strict=True)
        if query.previous or query.next
        for match in alike[:MOST_PLACES]
        if match.edits == 0
    ]
    return Neighbours(index, segments)


def _neighbour_ids(segments: Iterable[Segment]) -> set[int]:
    return {segment.id + step for segment in segments if segment.document for step in (-1, 1)}


def find_contexts(index: FindsById, segments: Sequence[Segment]) -> list[AdjacentSources]:
    """The neighbours of every segment in its document: what has the next smaller or greater id, and
    the next position.

    index: the index that the segments are of.
    segments: the segments."""
    adjacent = index.find(sorted(_neighbour_ids(segments)))
    return [
        AdjacentSources(
            *(_source_beside(adjacent.get(segment.id + step), segment, step) for step in (-1, 1))
        )
        for segment in segments
    ]


def _source_beside(neighbour: Segment | None, segment: Segment, step: int) -> str:
    if neighbour is None or not segment.document:
        return ""
    is_adjacent = (
        neighbour.document == segment.document and neighbour.position == segment.position + step
    )
    return neighbour.src if is_adjacent else ""


def valued(
    query: Query,
    matches: Sequence[Match],
    index: FindsById | None = None,
    penalties: Penalties = Penalties(),
    trust: Trust = IN_FULL,
) -> list[Match]:
    """The matches with what they are worth.

    query: the text that they were found for.
    matches: the matches, best first.
    index: is asked for the neighbours of the full matches, of the first 256 of them; None where
    neighbours do not count.
    penalties: how many points are taken off, and for what.
    trust: how far the memory of the matches is trusted."""
    cached: dict[object, Worth] = {}  # copies are worth the same
    plain = []
    for match in matches:
        key = _counts(match.segment, penalties)
        if key not in cached:
            cached[key] = worth(query, match, AdjacentSources(), penalties, trust)
        plain.append(cached[key])
    if index is not None and (query.previous or query.next):
        full = [row for row, rating in enumerate(plain) if rating.value >= FULL and not rating.tgt]
        segments = [matches[row].segment for row in full[:MOST_PLACES]]
        for row, context in zip(full, find_contexts(index, segments), strict=False):
            if _same_text(context.previous, query.previous) or _same_text(context.next, query.next):
                plain[row] = worth(query, matches[row], context, penalties, trust)
    return [
        Match(match.segment, match.score, match.edits, rating)
        for match, rating in zip(matches, plain, strict=True)
    ]


def _counts(segment: Segment, penalties: Penalties) -> object:
    """All of a segment that its worth depends on, but for its place."""
    document = segment.document if penalties.domain is not None else ""
    changed = segment.changed if penalties.older_than is not None else ""
    maker = segment.user, segment.origin, segment.properties
    return segment.src, segment.tgt, segment.src_codes, document, changed, maker


def most_worth(matches: Iterable[Match], k: int) -> list[Match]:
    """The matches that are worth most, best first. Among equals the one that is most alike comes
    first, then the newest, then the one with the smallest id.

    matches: the matches, with their worth.
    k: how many are given at most."""
    ordered = sorted(matches, key=lambda match: match.segment.id)
    ordered.sort(key=lambda match: match.segment.changed, reverse=True)
    ordered.sort(key=lambda match: (_value(match), match.score), reverse=True)
    return ordered[:k]


def _value(match: Match) -> int:
    return match.worth.value if match.worth is not None else int(FULL * match.score + SLACK)
