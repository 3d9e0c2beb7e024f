"""Finds the best pairs for a sentence in several memories, and in what a session has confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tmnmt.codes.record import Beside, Code, Text, inline, native
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.config.options import Penalties, Search, Selection
from tmnmt.engine.full_match import has_codes, value_of, worth_most
from tmnmt.index.base import SKELETONS_A_QUERY, Index, IndexAnswer, IndexQuery, best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.fuzzy import SLACK, edit_distance, fuzzy_score
from tmnmt.index.match_value import (
    FULL,
    IN_FULL,
    FindsById,
    Query,
    Trust,
    most_worth,
    neighbours,
    valued,
)
from tmnmt.index.pairs import OVERSAMPLED, distinct
from tmnmt.index.same_skeleton import of_skeleton
from tmnmt.index.select import candidates, selected
from tmnmt.segments import Match, SearchWork, search_total
from tmnmt.text import match_tokens, words

# tags for codes whose format does not say what they are
_UNKNOWN = {"open": "<g>", "close": "</g>", "standalone": "<x/>", "placeholder": "<x/>"}
SHORT = 3  # words: of a shorter segment a similar one mostly says something else


class Request(NamedTuple):
    """A text, with what is wanted of the memories for it.

    query: the text, and where it stands.
    similar: whether the pairs are wanted that the decoder reads.
    min_worth: what a match is worth at least that is taken as it stands; None where none is looked
    for."""

    query: Query
    similar: bool = True
    min_worth: int | None = FULL

    @property
    def tagged(self) -> str:
        """The text with its tags in it, where segments may have it so, as in a catalogue that
        became a memory."""
        return _with_tags_as_text(self.query)


class Answer(NamedTuple):
    """What the memories have for a request.

    matches: the matches that the decoder reads, best first.
    exact: the match that is taken as it stands; None where there is none.
    work: what the searches have compared; None where it was not counted."""

    matches: tuple[Match, ...]
    exact: Match | None
    work: SearchWork | None = None


class _Source(NamedTuple):
    """Where matches come from: the neighbours of segments there, which are None where it knows
    none, how far it is trusted, and where it lies. By default it is what a session has confirmed,
    which the user has made."""

    places: FindsById | None = None
    trust: Trust = IN_FULL
    memory: str = ""


class _IndexFindings(NamedTuple):
    """What an index has for a text, and for the same with its tags in it, where it has any."""

    text: str
    answer: IndexAnswer
    tagged: IndexAnswer | None

    def similar(self, k: int, threshold: float) -> list[Match]:
        """The matches of a search for `k` segments with at least this score. In those that are
        found for the text with its tags in it, the tags become codes, and the score is that of what
        remains."""
        similar = _best(self.answer.similar, k, threshold)
        if self.tagged is None or not self.tagged.similar:
            return similar
        best = {match.segment.id: match for match in similar}
        tokens = match_tokens(self.text)
        for match in map(_tagged, _best(self.tagged.similar, k, threshold)):
            source = match_tokens(match.segment.src)
            score, edits = fuzzy_score(tokens, source), edit_distance(tokens, source)
            previous = best.get(match.segment.id)
            if match.segment.src_codes and (previous is None or previous.score < score):
                best[match.segment.id] = replace(match, score=score, edits=edits)
        return _best(best_of(best.values(), len(best)), k, threshold)

    def inexact_matches(self, min_worth: int) -> list[Match]:
        """What may be worth `min_worth` beside segments of the same text: some of the same
        skeleton; and where a full match is not asked for, the most alike."""
        if min_worth >= FULL:
            return self.answer.same_skeleton
        similar = self.similar(SKELETONS_A_QUERY, min_worth / FULL)
        matches = {match.segment.id: match for match in (*self.answer.same_skeleton, *similar)}
        return [*matches.values()]


class _Findings(NamedTuple):
    """What all sources have for a request."""

    answers: Sequence[tuple[_Source, _IndexFindings]]
    prepared: PreparedQuery
    confirmed: Delta | None

    def of_session(self) -> list[Match]:
        """What its session has confirmed of its skeleton."""
        if self.confirmed is None:
            return []
        segments = self.confirmed.same_skeleton(self.prepared)
        return of_skeleton(self.prepared.tokens, segments, SKELETONS_A_QUERY)


class Retriever:
    """Searches several indexes. Of pairs with equal source and target only the first is given, and
    the selection says which pairs are given at all."""

    def __init__(
        self,
        indexes: Sequence[Index],
        top_k: int,
        threshold: float,
        selection: Selection = Selection(),
        short_threshold: float = Search.short_threshold,
        penalties: Penalties = Penalties(),
        trust: Sequence[Trust] = (),
    ) -> None:
        """indexes: the indexes.
        top_k: how many pairs are given at most.
        threshold: the smallest fuzzy score of a pair, from 0 to 1.
        selection: which of the best pairs are given.
        short_threshold: the smallest fuzzy score of a pair for a text of up to three words.
        penalties: what makes a match worth less.
        trust: how far the matches of each index are trusted, in the order of `indexes`; none given,
        all count in full."""
        self.indexes = list(indexes)
        self.top_k = top_k
        self.threshold = threshold
        self.selection, self.short_threshold = selection, short_threshold
        self.penalties = penalties
        self.trust = [*trust, *[IN_FULL] * (len(self.indexes) - len(trust))]

    def look_up(self, requests: Sequence[Request], confirmed: Sequence[Delta] = ()) -> list[Answer]:
        """For every request, what it wants. Each index is asked once for all of them.

        `Answer.matches` has at most `top_k` distinct pairs, chosen from the best. Of equal scores,
        the newest pair is the better one, and then the one with the smallest id. Where a memory is
        trusted less, pairs are chosen by what they are worth. Each match says what it is worth. The
        codes and the place of the text count for the worth, but not for which pairs are found.

        `Answer.exact` is the match whose target is taken as it stands, or adapted: the one that is
        worth most, if that is enough, and otherwise None. Where the codes of a text are None, codes
        are not looked at. Where a pair has the same codes, pairs with other codes do not count.

        requests: the requests.
        confirmed: for every request, what its session has confirmed and no index keeps, which is
        searched, too; or nothing."""
        if not requests:
            return []
        of_texts = [self._index_query(request) for request in requests]
        of_tagged = [
            query._replace(text=request.tagged, same_skeleton=0)
            for query, request in zip(of_texts, requests, strict=True)
        ]
        queries = [*dict.fromkeys([*of_texts, *(query for query in of_tagged if query.text)])]
        by_index = [
            dict(zip(queries, index.look_up(queries), strict=True)) for index in self.indexes
        ]
        deltas: Sequence[Delta | None] = confirmed or [None] * len(requests)
        sources = self._sources(requests, of_texts, of_tagged, by_index)
        answers = []
        for request, query, tagged, delta in zip(
            requests, of_texts, of_tagged, deltas, strict=True
        ):
            findings = _Findings(
                [
                    (
                        source,
                        _IndexFindings(
                            request.query.text, index_answers[query], index_answers.get(tagged)
                        ),
                    )
                    for source, index_answers in zip(sources, by_index, strict=True)
                ],
                PreparedQuery(query),
                delta,
            )
            matches = self._similar(request, findings) if request.similar else []
            min_worth = request.min_worth
            exact = (
                self._exact(request.query, findings, min_worth) if min_worth is not None else None
            )
            work = search_total(
                index_answers[text].work
                for index_answers in by_index
                for text in (query, tagged)
                if text in index_answers
            )
            answers.append(Answer(tuple(matches), exact, work))
        return answers

    def search(
        self,
        texts: Sequence[str],
        confirmed: Sequence[Delta] = (),
        codes: Sequence[Sequence[Code] | None] = (),
        contexts: Sequence[Beside] = (),
    ) -> list[tuple[Match, ...]]:
        """The matches of every text, as `look_up` finds them.

        texts: the texts.
        confirmed: for every text, what its session has confirmed; or nothing.
        codes: for every text its codes, or None; or nothing.
        contexts: for every text, the texts before and after it; or nothing."""
        queries = queries_of(texts, codes, contexts)
        answers = self.look_up([Request(query, min_worth=None) for query in queries], confirmed)
        return [answer.matches for answer in answers]

    def exact(
        self,
        texts: Sequence[str],
        codes: Sequence[Sequence[Code] | None] = (),
        contexts: Sequence[Beside] = (),
        confirmed: Sequence[Delta] = (),
        min_worth: int = FULL,
    ) -> list[Match | None]:
        """For every text, the match that is taken as it stands, as `look_up` finds it; None where
        there is none.

        texts: the texts.
        codes: for every text its codes, or None; or nothing.
        contexts: for every text, the texts before and after it; or nothing.
        confirmed: for every text, what its session has confirmed; or nothing.
        min_worth: what a match has to be worth at least, from 0 to 102."""
        queries = queries_of(texts, codes, contexts)
        answers = self.look_up([Request(query, False, min_worth) for query in queries], confirmed)
        return [answer.exact for answer in answers]

    def fragments(self, text: str, k: int) -> tuple[Match, ...]:
        """Distinct pairs that together cover most of the rare phrases of a text. They come from the
        first memory that has any.

        text: the text.
        k: how many pairs are given at most."""
        for index in self.indexes:
            if matches := distinct(index.covering(text, k)):
                return tuple(matches)
        return ()

    def min_score(self, text: str) -> float:
        """The fuzzy score that a match of a text must have.

        text: the text."""
        return max(self.threshold, self.short_threshold if words(text) <= SHORT else 0.0)

    def _index_query(self, request: Request) -> IndexQuery:
        """What an index is asked for a request: one search finds the pairs that are read and, where
        a match that is taken may be worth less than the same text, those that may be that."""
        searches = list[tuple[int, float]]()
        if request.similar:
            searches.append((self._candidates, self.threshold))
        if request.min_worth is None:
            return IndexQuery(request.query.text, *_widest(searches))
        if request.min_worth < FULL:
            searches.append((SKELETONS_A_QUERY, request.min_worth / FULL))
        skeletons = SKELETONS_A_QUERY
        return IndexQuery(
            request.query.text, *_widest(searches), same_source=True, same_skeleton=skeletons
        )

    @property
    def _candidates(self) -> int:
        """How many segments are searched for, from which the pairs are chosen."""
        return candidates(self.selection, self.top_k) * OVERSAMPLED

    def _sources(
        self,
        requests: Sequence[Request],
        of_texts: Sequence[IndexQuery],
        of_tagged: Sequence[IndexQuery],
        by_index: Sequence[Mapping[IndexQuery, IndexAnswer]],
    ) -> list[_Source]:
        """The indexes as sources, each asked once for the neighbours of all copies."""
        queries = [request.query for request in requests] * 2
        sources = []
        for index, trust, index_answers in zip(self.indexes, self.trust, by_index, strict=True):
            copies = [
                index_answers[query].same_source or index_answers[query].similar
                for query in of_texts
            ]
            tagged = [index_answers[query].same_source if query.text else [] for query in of_tagged]
            places = neighbours(index, queries, [*copies, *tagged])
            sources.append(_Source(places, trust, index.place))
        return sources

    def _similar(self, request: Request, findings: _Findings) -> list[Match]:
        by_source = [
            (source, index_findings.similar(self._candidates, self.threshold))
            for source, index_findings in findings.answers
        ]
        if findings.confirmed is not None:
            matches = findings.confirmed.search(findings.prepared, self.threshold)
            by_source.append((_Source(), matches))
        return self._choose(request.query, by_source)

    def _choose(
        self, query: Query, by_source: Sequence[tuple[_Source, Sequence[Match]]]
    ) -> list[Match]:
        text = query.text
        min_score = self.min_score(text)
        source_of = {
            id(match.segment): source for source, matches in by_source for match in matches
        }
        eligible = [
            match for _, matches in by_source for match in matches if match.score >= min_score
        ]

        def with_worth(match: Match, query: Query) -> Match:
            source = source_of[id(match.segment)]
            plain = _without_codes(query)
            [valued_match] = valued(plain, [match], source.places, self.penalties, source.trust)
            valued_match = replace(valued_match, memory=source.memory)
            return self._less_for_codes(valued_match, query, source.trust)

        if not all(trust.is_full for trust in self.trust):
            best = most_worth([with_worth(match, Query(text)) for match in eligible], len(eligible))
        else:
            best = best_of(eligible, len(eligible))
        pairs = distinct(best)[: candidates(self.selection, self.top_k)]
        top_matches = selected(self.selection, text, pairs, self.top_k)
        return [with_worth(match, query) for match in top_matches]

    def _exact(self, query: Query, findings: _Findings, min_worth: int) -> Match | None:
        """The match that is taken as it stands: with the same tags as text where there is one, then
        of the same text; where neither is worth enough, one that is worth more."""
        equal_matches = [
            (source, index_findings.answer.same_source)
            for source, index_findings in findings.answers
        ]
        as_text = [
            (source, _tags_as_codes(query, tagged.same_source, source, self.penalties))
            for source, index_findings in findings.answers
            if (tagged := index_findings.tagged) is not None
        ]
        coded = [match for _, matches in as_text for match in matches]
        best = worth_most(coded, min_worth) or self._worth_most(query, equal_matches, min_worth)
        inexact_matches = list[tuple[_Source, list[Match]]]()
        if best is None or value_of(best) < FULL:
            inexact_matches += [
                (source, index_findings.inexact_matches(min_worth))
                for source, index_findings in findings.answers
            ]
            inexact_matches.append((_Source(), findings.of_session()))
            rival = self._worth_most(query, inexact_matches, min_worth)
            if best is None or (rival is not None and value_of(rival) > value_of(best)):
                best = rival
        if best is None:
            return None
        sources = (
            source
            for source, matches in (*as_text, *equal_matches, *inexact_matches)
            for match in matches
            if match.segment is best.segment
        )
        source = next(sources, _Source())
        best = self._less_for_codes(best, query, source.trust)
        return replace(best, memory=source.memory)

    def _worth_most(
        self, query: Query, by_source: Sequence[tuple[_Source, Sequence[Match]]], min_worth: int
    ) -> Match | None:
        """The match of all sources that is worth most; of those worth the same, one of a source
        that precedes the others."""
        matches = self._valued(query, by_source)
        best = worth_most(matches, min_worth)
        preceding = {
            id(match.segment)
            for source, of_source in by_source
            if source.trust.precedes
            for match in of_source
        }
        if best is None or not preceding:
            return best
        first = [match for match in matches if id(match.segment) in preceding]
        return worth_most(first, value_of(best)) or best

    def _valued(
        self, query: Query, by_source: Sequence[tuple[_Source, Sequence[Match]]]
    ) -> list[Match]:
        """All of these matches with their worth."""
        codes = query.codes
        has_same_codes = codes is not None and any(
            has_codes(match, codes) for _, matches in by_source for match in matches
        )
        query = query if has_same_codes else _without_codes(query)
        return [
            match
            for source, matches in by_source
            for match in valued(query, matches, source.places, self.penalties, source.trust)
        ]

    def _less_for_codes(self, match: Match, query: Query, trust: Trust) -> Match:
        """The match, worth less where its codes are others than those of the text."""
        penalty = self.penalties.penalty_codes
        if (
            match.worth is None
            or query.codes is None
            or has_codes(match, query.codes)
            or not penalty
        ):
            return match
        [valued_match] = valued(query, [match], None, self.penalties, trust)
        return replace(match, worth=valued_match.worth)


def queries_of(
    texts: Sequence[str],
    codes: Sequence[Sequence[Code] | None] = (),
    contexts: Sequence[Beside] = (),
) -> list[Query]:
    """Queries of texts.

    texts: the texts.
    codes: for every text its codes, or None; or nothing.
    contexts: for every text, the texts before and after it; or nothing."""
    return [
        Query(text, tuple(text_codes) if text_codes is not None else None, *context)
        for text, text_codes, context in zip(
            texts, codes or [None] * len(texts), contexts or [("", "")] * len(texts), strict=True
        )
    ]


def _without_codes(query: Query) -> Query:
    return query if query.codes is None else replace(query, codes=None)


def _with_tags_as_text(query: Query) -> str:
    """The text with its tags in it, as its own format has them, or tags of no meaning where it does
    not say so; "" where it has no codes but placeholders."""
    codes = query.codes or ()
    if not inline(codes):
        return ""
    tags = tuple(
        replace(code, markup=native(code) or _UNKNOWN.get(code.kind, "")) for code in codes
    )
    return Text(query.text, tags).full_text()


def _tags_as_codes(
    query: Query, matches: Iterable[Match], source: _Source, penalties: Penalties
) -> list[Match]:
    """The matches of `_with_tags_as_text` that have the tags of the text, as codes and with their
    worth. A catalogue that became a memory has them as text."""
    coded = valued(query, [*map(_tagged, matches)], source.places, penalties, source.trust)
    return [match for match in coded if has_codes(match, query.codes or ())]


def _tagged(match: Match) -> Match:
    """The match with codes in place of the tags in its texts."""
    segment = match.segment
    src, tgt = (with_tags(Text(side), html_tags) for side in (segment.src, segment.tgt))
    plain = replace(segment, src=src.plain, tgt=tgt.plain)
    return replace(match, segment=replace(plain, src_codes=src.codes, tgt_codes=tgt.codes))


def _widest(searches: Sequence[tuple[int, float]]) -> tuple[int, float]:
    """The number of segments and the lowest score of a search that finds all that these searches
    find; 0 where there are none."""
    return max((k for k, _ in searches), default=0), min((t for _, t in searches), default=1.0)


def _best(matches: Sequence[Match], k: int, threshold: float) -> list[Match]:
    """The matches of a search for `k` segments with at least this score, taken from what a wider
    search has found."""
    return [match for match in matches[:k] if match.score >= threshold - SLACK]
