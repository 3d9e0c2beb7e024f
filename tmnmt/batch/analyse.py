"""What there is to translate, counted as CAT tools count it: segments and words by what the
memories' best match is worth, repetitions, and what is like an earlier segment of the same
files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tmnmt.batch.filling import placed
from tmnmt.batch.own_translations import is_open
from tmnmt.codes.record import Text, inline
from tmnmt.config.options import Overwrite, Penalties
from tmnmt.engine.full_match import value_of
from tmnmt.engine.retrieve import Request, Retriever
from tmnmt.files.texts import text_of
from tmnmt.files.unit import Unit
from tmnmt.index.base import Index
from tmnmt.index.embedded.in_memory import InMemoryIndex
from tmnmt.index.match_value import FULL, Query, Trust
from tmnmt.index.pairs import search_by_worth
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens, normalise, words

MIN_VALUE = 50  # of a match that saves work
# by what a match is worth at least; the names are what is printed
BANDS = {
    102: "102",
    101: "101",
    100: "100",
    95: "95-99",
    85: "85-94",
    75: "75-84",
    MIN_VALUE: "50-74",
}
NO_MATCH, REPETITIONS, INTERNAL = "no match", "repetitions", "internal"
UNCHANGED = "unchanged"  # units of a file that a translation of it leaves as they are
NAMES = (
    *BANDS.values(),
    NO_MATCH,
    REPETITIONS,
    UNCHANGED,
    *(f"{INTERNAL} {name}" for min_worth, name in BANDS.items() if min_worth <= FULL),
)
TOGETHER = 256  # segments that are looked up at once


@dataclass
class Counts:
    """Segments and words by band, each in one; the bands are NAMES."""

    segments: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)

    def add(self, band: str, words: int) -> None:
        """Counts a segment.

        band: the band that it is in.
        words: how many words its source has."""
        self.segments[band] += 1
        self.words[band] += words

    def __add__(self, addend: Counts) -> Counts:
        return Counts(self.segments + addend.segments, self.words + addend.words)


class Analysis:
    """Counts segments in the order in which they come. What came before, in whatever file, makes
    repetitions and internal matches."""

    def __init__(
        self,
        indexes: Sequence[Index],
        penalties: Penalties = Penalties(),
        trust: Sequence[Trust] = (),
        count_words: Callable[[str], int] = words,
    ) -> None:
        """indexes: the memories.
        penalties: how many points are taken off matches, and for what.
        trust: how far the matches of each memory are trusted; none given, all count in full.
        count_words: says how many words a text has."""
        self._count_words = count_words
        self._seen_texts = set[str]()
        self._of_texts = replace(penalties, domain=None, older_than=None)  # these files' own
        self._retriever = Retriever(indexes, 1, MIN_VALUE / FULL, penalties=penalties, trust=trust)
        self._earlier = InMemoryIndex()

    def counts(
        self, queries: Iterable[Query], progress: Callable[[int], None] = lambda _: None
    ) -> Counts:
        """The segments of one file; those without words, numbers or marks do not count.

        A segment in the same place as in a memory (101, 102) counts there. Otherwise one that came
        before is a repetition. Otherwise its band is that of its best match, which is internal only
        where an earlier segment is more alike than all of the memories.

        queries: the segments, and where they stand.
        progress: is called with the number of segments that are done since the last call."""
        counts = Counts()
        for together in _runs(query for query in queries if match_tokens(query.text)):
            for query, value in zip(together, self._values(together), strict=True):
                counts.add(self._band(query, value), self._count_words(query.text))
            progress(len(together))
        return counts

    def counts_of_file(
        self,
        documents: Iterable[Sequence[Unit]],
        overwrite: Overwrite = "nothing",
        progress: Callable[[int], None] = lambda _: None,
    ) -> Counts:
        """The units of one file: those that a translation of the file fills, as `counts` has them,
        and the others as unchanged.

        documents: the units of each document.
        overwrite: which translations are made anew.
        progress: is called with the number of units that are done since the last call."""
        unchanged = Counts()

        def queries() -> Iterator[Query]:
            for units in documents:
                for unit, query in zip(units, queries_of_units(units), strict=True):
                    if is_open(unit, overwrite):
                        yield query
                    elif match_tokens(query.text):
                        unchanged.add(UNCHANGED, self._count_words(query.text))

        counts = self.counts(queries(), progress)
        return counts + unchanged

    def _values(self, queries: Sequence[Query]) -> list[int]:
        """What the best match of all memories is worth, for every text; 0: there is none."""
        requests = [Request(query, similar=False, min_worth=MIN_VALUE) for query in queries]
        answers = self._retriever.look_up(requests)
        return [0 if answer.exact is None else value_of(answer.exact) for answer in answers]

    def _band(self, query: Query, value: int) -> str:
        name = normalise(query.text)
        is_known = name in self._seen_texts
        self._seen_texts.add(name)
        internal_value = 0 if is_known or value >= FULL else self._internal(query.text)
        if not is_known:
            self._earlier.add([Segment(query.text, query.text)])
        if is_known and value <= FULL:
            return REPETITIONS
        return (
            f"{INTERNAL} {_name_of(internal_value)}" if internal_value > value else _name_of(value)
        )

    def _internal(self, text: str) -> int:
        """What the best of the earlier segments is worth."""
        (matches,) = search_by_worth(
            self._earlier, [Query(text)], 1, MIN_VALUE / FULL, self._of_texts
        )
        return _value(matches)


def queries_of_units(units: Sequence[Unit]) -> list[Query]:
    """The units of a document as they are looked up: with their neighbours, codes and names.

    units: the units."""
    return [
        Query(unit.plain, unit.codes, unit.previous, unit.next, unit.id) for unit in placed(units)
    ]


def queries_of_lines(lines: Iterable[str]) -> Iterator[Query]:
    """The lines of a plain text as they are looked up. Only a line with tags says which codes it
    has.

    lines: the lines."""
    previous, current = "", None
    for line in lines:
        if current is not None:
            yield _query_of(current, previous, line)
            previous = current
        current = line
    if current is not None:
        yield _query_of(current, previous, "")


def _query_of(line: str, previous: str, following: str) -> Query:
    text = text_of(line, breaks=False) if "<" in line else Text(line)
    if inline(text.codes):
        return Query(text.plain, text.codes, previous, following)
    return Query(line, None, previous, following)


def _value(matches: Sequence[Match]) -> int:
    return matches[0].worth.value if matches and matches[0].worth is not None else 0


def _name_of(value: int) -> str:
    return next((name for min_worth, name in BANDS.items() if value >= min_worth), NO_MATCH)


def _runs(queries: Iterable[Query]) -> Iterator[list[Query]]:
    run = list[Query]()
    for query in queries:
        run.append(query)
        if len(run) == TOGETHER:
            yield run
            run = []
    if run:
        yield run
