"""What there is to translate, counted as CAT tools count it: segments and words by what the
memories' best match is worth, repetitions, and what is like an earlier segment of the same
files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from tmnmt.codes.record import Text, inline
from tmnmt.config.options import Penalties
from tmnmt.engine.filling import placed
from tmnmt.engine.retrieve import tags_as_text
from tmnmt.files.texts import text_of
from tmnmt.files.unit import Unit
from tmnmt.index.base import Index, best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.postings import PostingsQuery
from tmnmt.index.embedded.sealed import LOOSE, Sealed, seal
from tmnmt.index.pairs import search_by_worth
from tmnmt.index.same_skeleton import SKELETONS_A_QUERY, of_skeleton
from tmnmt.index.skeleton import skeleton
from tmnmt.index.worth import FULL, IN_FULL, Asked, Trust
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens, normalise, words

LEAST = 50  # of a match that saves work
# by what a match is worth at least; the names are what is printed
BANDS = {102: "102", 101: "101", 100: "100", 95: "95-99", 85: "85-94", 75: "75-84", LEAST: "50-74"}
NO_MATCH, REPETITIONS, INTERNAL = "no match", "repetitions", "internal"
NAMES = (
    *BANDS.values(),
    NO_MATCH,
    REPETITIONS,
    *(f"{INTERNAL} {name}" for least, name in BANDS.items() if least <= FULL),
)
TOGETHER = 256  # segments that are looked up at once


@dataclass
class Counts:
    """Segments and words by band, each in one; the bands are NAMES."""

    segments: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)

    def add(self, band: str, text: str) -> None:
        self.segments[band] += 1
        self.words[band] += words(text)

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.segments + other.segments, self.words + other.words)


class Analysis:
    """Counts segments in the order in which they come. What came before, in whatever file, makes
    repetitions and internal matches."""

    def __init__(
        self,
        indexes: Sequence[Index],
        penalties: Penalties = Penalties(),
        trust: Sequence[Trust] = (),
    ) -> None:
        """`trust`: of every index; not given, in full."""
        self.penalties = penalties
        self._seen = set[str]()
        self._of_texts = replace(penalties, domain=None, older_than=None)  # these files' own
        self._indexes = list(zip(indexes, trust or [IN_FULL] * len(indexes), strict=True))
        self._earlier = _Earlier()

    def counts(
        self, asked: Iterable[Asked], progress: Callable[[int], None] = lambda _: None
    ) -> Counts:
        """The segments of one file; those without words, numbers or marks do not count.

        A segment in the same place as in a memory (101, 102) counts there. Else one that came
        before is a repetition; else its band is that of its best match, which is internal only
        where an earlier segment is more alike than all of the memories."""
        counts = Counts()
        for together in _runs(one for one in asked if match_tokens(one.text)):
            for one, value in zip(together, self._values(together), strict=True):
                counts.add(self._band(one, value), one.text)
            progress(len(together))
        return counts

    def _values(self, asked: Sequence[Asked]) -> list[int]:
        """What the best match of all memories is worth, for every text; 0: there is none."""
        best = [0] * len(asked)
        for index, trust in self._indexes:
            answers = search_by_worth(index, asked, 1, LEAST / FULL, self.penalties, trust)
            as_text = tags_as_text(index, asked, self.penalties, trust)
            best = [
                max(value, _value(matches), *(_value([match]) for match in as_text[one]))
                for one, value, matches in zip(asked, best, answers, strict=True)
            ]
        return best

    def _band(self, asked: Asked, value: int) -> str:
        name = normalise(asked.text)
        is_known = name in self._seen
        self._seen.add(name)
        own = 0 if is_known or value >= FULL else self._internal(asked.text)
        if not is_known:
            self._earlier.add(asked.text)
        if is_known and value <= FULL:
            return REPETITIONS
        return f"{INTERNAL} {_name_of(own)}" if own > value else _name_of(value)

    def _internal(self, text: str) -> int:
        """What the best of the earlier segments is worth."""
        (matches,) = search_by_worth(self._earlier, [Asked(text)], 1, LEAST / FULL, self._of_texts)
        return _value(matches)


def asked_of(units: Sequence[Unit]) -> list[Asked]:
    """The units of a document as they are looked up: with their neighbours, codes and names."""
    return [Asked(one.plain, one.codes, one.previous, one.next, one.id) for one in placed(units)]


def asked_of_lines(lines: Iterable[str]) -> Iterator[Asked]:
    """The lines of a plain text. Only of one with tags it says what codes it has."""
    before, here = "", None
    for line in lines:
        if here is not None:
            yield _asked_of(here, before, line)
            before = here
        here = line
    if here is not None:
        yield _asked_of(here, before, "")


def _asked_of(line: str, before: str, behind: str) -> Asked:
    text = text_of(line, breaks=False) if "<" in line else Text(line)
    if inline(text.codes):
        return Asked(text.plain, text.codes, before, behind)
    return Asked(line, None, before, behind)


def _value(matches: Sequence[Match]) -> int:
    return matches[0].worth.value if matches and matches[0].worth is not None else 0


def _name_of(value: int) -> str:
    return next((name for least, name in BANDS.items() if value >= least), NO_MATCH)


def _runs(asked: Iterable[Asked]) -> Iterator[list[Asked]]:
    run = list[Asked]()
    for one in asked:
        run.append(one)
        if len(run) == TOGETHER:
            yield run
            run = []
    if run:
        yield run


class _Earlier:
    """The segments so far, as an index; each is its own translation. Grows as an embedded index
    does by additions, in memory alone."""

    src_lang = tgt_lang = ""

    def __init__(self) -> None:
        self._delta = Delta()
        self._sealed = tuple[Sealed, ...]()
        self._last = 0

    def add(self, text: str) -> None:
        self._last += 1
        self._delta.add(Segment(text, text, id=self._last))
        if len(self._delta) > LOOSE:
            self._sealed, self._delta = seal(self._delta, self._sealed), Delta()

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:
        """As `Index.search`; no documents are known here."""
        lookups = [PostingsQuery(text) for text in queries]
        answers = [
            each.part.search(lookups, k, threshold, exclude_sources, 1) for each in self._sealed
        ]
        new = [self._delta.search(text, threshold, exclude_sources, "") for text in queries]
        return [best_of(chain(*alike), k) for alike in zip(*answers, new, strict=True)]

    def same_skeleton(
        self, queries: Sequence[str], k: int = SKELETONS_A_QUERY
    ) -> list[list[Match]]:
        """As `FindsSkeletons.same_skeleton`."""
        alike = []
        for text in queries:
            bones, length = skeleton(text), len(match_tokens(text))
            old = (each.part.same_skeleton(bones, length, k) for each in self._sealed if bones)
            alike.append(of_skeleton(text, chain(self._delta.same_skeleton(bones), *old), k))
        return alike
