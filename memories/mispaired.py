"""Pairs of a corpus that are no translations of each other, found by rules and by a list.

The corpora pair the n-th text of one language with the n-th of the other. Where a list is sorted in
each language, or where a name stands before its title in one and behind it in the other, they pair
the wrong ones. A rule may also take a right pair: what a memory ships must be right, not complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from tmnmt.checks import SLACK, TIMES_LONGER
from tmnmt.numbers import missing_numbers
from tmnmt.segments import Segment
from tmnmt.text import normalise

LISTED = Path(__file__).with_name("mispaired.tsv")
NEAR = 20  # segments of a document between a text and its other place
GAP = 3  # segments between two mispaired ones, which are mispaired with them

Place = tuple[str, int]  # document and position


def mispaired(segments: Sequence[Segment]) -> dict[str, set[Place]]:
    """The places of the mispaired segments, by the rule that finds them; of several rules the
    first."""
    documents: dict[str, list[Segment]] = defaultdict(list)
    for segment in segments:
        documents[segment.document].append(segment)
    found: dict[str, set[Place]] = {}
    known: set[Place] = set()
    for name, rule in RULES.items():
        found[name] = {place for document in documents.values() for place in rule(document)} - known
        known |= found[name]
    return found


def lengths_differ(document: Sequence[Segment]) -> Iterator[Place]:
    """One side is much longer than the other, so that part of it is translated elsewhere."""
    for segment in document:
        shorter, longer = sorted((len(segment.src), len(segment.tgt)))
        if longer > TIMES_LONGER * shorter + SLACK:
            yield _place(segment)


def numbers_differ(document: Sequence[Segment]) -> Iterator[Place]:
    """Each side has a number that the other lacks."""
    for segment in document:
        src, tgt = segment.src, segment.tgt
        if missing_numbers(src, tgt) and missing_numbers(tgt, src):
            yield _place(segment)


def out_of_order(document: Sequence[Segment]) -> Iterator[Place]:
    """The source stands as the target of a segment nearby, and its own target is another text:
    both of them, and what lies between two such segments."""
    targets: dict[str, list[int]] = defaultdict(list)
    for number, segment in enumerate(document):
        targets[_form(segment.tgt)].append(number)
    found: set[int] = set()
    for number, segment in enumerate(document):
        source = _form(segment.src)
        if source == _form(segment.tgt) or not any(map(str.isalpha, source)):
            continue
        others = [other for other in targets[source] if abs(other - number) <= NEAR]
        found |= {number, *others} if others else set()
    for before, after in pairwise(sorted(found)):
        if after - before <= GAP:
            found |= set(range(before, after))
    for number in sorted(found):
        yield _place(document[number])


def listed(document: Sequence[Segment]) -> Iterator[Place]:
    """What somebody has read and found wrong: memories/mispaired.tsv."""
    for segment in document:
        if _place(segment) in _LISTED:
            yield _place(segment)


RULES: dict[str, Callable[[Sequence[Segment]], Iterable[Place]]] = {
    "lengths": lengths_differ,
    "numbers": numbers_differ,
    "order": out_of_order,
    "listed": listed,
}


def _place(segment: Segment) -> Place:
    return segment.document, segment.position


def _form(text: str) -> str:
    return normalise(text).casefold()


def _read(path: Path) -> set[Place]:
    """Lines of document, first and last position."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {
        (document, position)
        for document, first, last, *_ in rows
        for position in range(int(first), int(last) + 1)
    }


_LISTED = _read(LISTED)
