"""Pre-translation from the memory alone, without a model: full matches as they stand or adapted,
and other matches as drafts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from tmnmt.codes.record import Beside, Source, Text, plain_of, surroundings
from tmnmt.config.options import DRAFTS, Untranslated
from tmnmt.engine.full_match import copy_match, value_but_codes, value_of
from tmnmt.engine.retrieve import Request, Retriever, queries_of
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.filters import Filters
from tmnmt.filters.contract import Reader
from tmnmt.formats.clean import clean
from tmnmt.index.match_value import FULL, Query
from tmnmt.segments import Match, Translation

TOGETHER = 32  # texts that are looked up at once
_FILTERS = Filters(Reader())
MIN_VALUE = 50  # what a match is worth that is told beside a translation


def best_matches(
    retriever: Retriever, texts: Sequence[Source], min_worth: int = MIN_VALUE
) -> list[Match | None]:
    """For every text of a document the match that is worth most; None where that is worth too
    little.

    retriever: asks the memories.
    texts: the texts of the document, in order.
    min_worth: what a match has to be worth."""
    matches = list[Match | None]()
    coming = iter(texts)
    contexts = iter(surroundings(texts))
    while batch := list(islice(coming, TOGETHER)):
        queries = _queries_of(*_cleaned(batch), [*islice(contexts, len(batch))])
        answers = retriever.look_up([Request(query, False, min_worth) for query in queries])
        matches += [answer.exact for answer in answers]
    return matches


def _queries_of(
    cleaned: Sequence[str], coded: Sequence[SourceSegment | None], contexts: Sequence[Beside]
) -> list[Query]:
    codes = [segment.source.codes if segment is not None else None for segment in coded]
    return queries_of(cleaned, codes, contexts)


def _cleaned(batch: Sequence[Source]) -> tuple[list[str], list[SourceSegment | None]]:
    """The texts as they are looked up, and those that may have codes with these."""
    coded = [SourceSegment(text, _FILTERS) if isinstance(text, Text) else None for text in batch]
    cleaned = [
        segment.source.plain if segment is not None else clean(plain_of(text))[0]
        for text, segment in zip(batch, coded, strict=True)
    ]
    return cleaned, coded


class Pretranslator:
    """Gives texts the translations that memories hold.

    `counts` says how many texts became what, by the origin of their translations: "" stayed. Two
    kinds of these are counted besides: "held" have a match worth 75 or more that is no full match,
    and drafts were not wanted; "unplaced" have a match whose translation was not taken, since only
    a model can say where the codes stand in it."""

    def __init__(
        self,
        retriever: Retriever,
        untranslated: Untranslated = "empty",
        min_worth: int = FULL,
        drafts: int = 0,
    ) -> None:
        """retriever: asks the memories.
        untranslated: what a text without such a match gets: "empty" for nothing, or "source" for
        the text itself.
        min_worth: what a match has to be worth that is taken.
        drafts: what a match has to be worth that is taken as a draft; 0 takes none."""
        self.retriever, self.untranslated = retriever, untranslated
        self.min_worth = min(min_worth, drafts or min_worth)
        self.counts = Counter[str]()

    def stream(self, texts: Iterable[Source]) -> Iterator[Translation]:
        """The translations of a document, in order, with the matches that the memories have. A
        blank text is translated as "". One with codes is taken where a pair says how they stand, or
        they stand around all words.

        texts: the texts of the document."""
        coming = iter(texts)
        while batch := list(islice(coming, TOGETHER)):
            yield from self._batch(batch)

    def _batch(self, batch: list[Source]) -> Iterator[Translation]:
        cleaned, coded = _cleaned(batch)
        sought = min(self.min_worth, DRAFTS)
        queries = _queries_of(cleaned, coded, surroundings(batch))
        answers = self.retriever.look_up([Request(query, min_worth=sought) for query in queries])
        for row, answer in enumerate(answers):
            plain, matches, match = plain_of(batch[row]), answer.matches, answer.exact
            translation = None
            if match is not None:
                translation = copy_match(plain, match, matches)
                matches = translation.matches
                translation = self._placed(translation, match, coded[row])
            self.counts[translation.origin if translation else ""] += bool(
                translation or cleaned[row]
            )
            yield translation or self._left(plain, cleaned[row], matches)

    def _placed(
        self, translation: Translation, match: Match, coded: SourceSegment | None
    ) -> Translation | None:
        """The translation with its codes; None where it is not taken, which is counted."""
        value = value_of(match) if translation.origin == "fuzzy" else value_but_codes(match)
        if value < self.min_worth:
            self.counts["held"] += value >= DRAFTS
            return None
        if coded is None:
            return translation
        coded.use_match(match)
        if not coded.placement.unlinked():
            return coded.restore(translation)
        if self.min_worth <= value_of(match) < FULL:  # whoever edits the draft puts its codes in
            source = coded.original
            codes = source.codes if isinstance(source, Text) else ()
            return replace(translation, origin="fuzzy", src=plain_of(source), src_codes=codes)
        self.counts["unplaced"] += 1
        return None

    def _left(self, text: str, cleaned: str, matches: tuple[Match, ...]) -> Translation:
        target = cleaned if self.untranslated == "source" else ""
        return Translation(text, target, 0.0, matches)
