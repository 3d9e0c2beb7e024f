"""A memory on a cluster of servers, with the same answers as the embedded index."""

from __future__ import annotations

import copy
import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from typing import Any, Self

from tmnmt.errors import MemoryIndexError, ServerError
from tmnmt.index.base import (
    BuiltIndex,
    IndexAnswer,
    IndexQuery,
    best_of,
    check_languages,
    check_queries,
    dated,
    primary,
)
from tmnmt.index.concordance import Occurrence, Phrase, check_concordance
from tmnmt.index.elastic.address import ElasticAddress, local_folder
from tmnmt.index.elastic.change import Writer
from tmnmt.index.elastic.concordance import with_phrase
from tmnmt.index.elastic.generation import (
    BY_ID,
    HITS_A_PAGE,
    ElasticGeneration,
    GenerationGone,
    every_segment,
    pages,
    read_generation,
)
from tmnmt.index.elastic.layout import ElasticManifest, hash_of, read
from tmnmt.index.elastic.query import FLOAT_SLACK, candidates, of_skeleton_query
from tmnmt.index.elastic.server import BUSY, PATIENCE, SECONDS_TO_ANSWER, Server, Waiting, reason_in
from tmnmt.index.elastic.upkeep import (
    count_changes,
    count_segments,
    greatest_id,
    merge,
    stored_bytes,
    verify,
)
from tmnmt.index.filter import NO_FILTER, Filter
from tmnmt.index.fuzzy import SLACK, edit_distance, score_of
from tmnmt.index.same_skeleton import OF_EQUAL_SOURCES, of_skeleton
from tmnmt.index.skeleton import bones
from tmnmt.segments import Match, SearchWork, Segment
from tmnmt.text import match_tokens

# languages whose letters have combining marks, or are compared one by one as those of Thai
OF_SPECIAL_SIGNS = frozenset(
    (
        *("ar", "fa", "ur", "ps", "ug", "sd", "ku", "he", "yi", "dv"),
        *("hi", "mr", "ne", "sa", "bn", "as", "pa", "gu", "or", "ta", "te", "kn", "ml", "si"),
        *("th", "lo", "km", "my", "bo", "dz"),
    )
)
FIRST_PAGE = 200  # candidates: nearly every query is settled by them
QUERIES_A_REQUEST = 32
IDS_A_REQUEST = 1000  # a server gives 10,000 documents at once, and two may have an id
SOURCE_FIELDS = ",".join(
    f"responses.{name}"
    for name in ("status", "error", "hits.hits._score", "hits.hits._source.pairs")
)
Version = tuple[int, str]  # of a segment: its id, and when it was changed
BEST_FIRST = ({"_score": "desc"},)


log = logging.getLogger(__name__)


class ElasticIndex(BuiltIndex):
    """An index on a server, open for searches and additions. Use from any thread; close
    it, or use `with`.

    `requests` counts the searches the server was asked for, one for nearly every query."""

    def __init__(self, server: Server) -> None:
        """server: the server.

        Raises MemoryIndexError where it has no index of tmnmt under the name."""
        self._server = server
        self.address = server.address
        self.manifest = read_generation(server).manifest
        self.src_lang, self.tgt_lang = self.manifest.src_lang, self.manifest.tgt_lang
        self.requests = 0
        self.conditions = NO_FILTER

    @classmethod
    def open(
        cls,
        address: ElasticAddress,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        *,
        patience: float = PATIENCE,
        seconds_to_answer: float = SECONDS_TO_ANSWER,
    ) -> ElasticIndex:
        """Opens the index at an address.

        address: the address.
        src_lang: the source language that it must have; None takes any.
        tgt_lang: the target language that it must have; None takes any.
        patience: how many seconds lost connections and a busy server are waited for, in all.
        seconds_to_answer: how many seconds the server has for an answer.

        Raises ServerError where the server cannot be reached. Raises MemoryIndexError where there
        is no index, or it is not one of tmnmt, or of another format or of other languages."""
        server = Server(address, patience, seconds_to_answer)
        try:
            server.check_engine()
            index = cls(server)
            check_languages(str(address), (index.src_lang, index.tgt_lang), src_lang, tgt_lang)
            _warn_of_former_tokens(str(address), index.manifest)
        except BaseException:
            server.close()
            raise
        return index

    changes_since = "it was built"

    def check_writable(self) -> None:
        """The server says so only when it is asked to take an addition."""

    @property
    def folder(self) -> Path | None:
        """A folder on this machine, which is made when something is first kept in it."""
        return local_folder(self.address)

    @property
    def last_id(self) -> int:
        return greatest_id(self._server)

    @property
    def place(self) -> str:
        """The address."""
        return str(self.address)

    def restricted_to(self, conditions: Filter) -> Self:
        """The server does not know the filter: what it finds is looked at until it is sure that
        nothing better follows."""
        view = copy.copy(self)
        view.conditions = conditions
        return view

    def look_up(
        self, queries: Sequence[IndexQuery], exclude_sources: bool = False
    ) -> list[IndexAnswer]:
        """The answer includes what any process has added, and nearly always takes one request for
        32 queries. Of more than 200 sources of one skeleton, those of as many match tokens come
        first, then any. An index of a former format has no skeletons.

        Raises ServerError, which says how many of the queries were answered."""
        check_queries(queries)
        questions = {query: _Question(query, exclude_sources, self.conditions) for query in queries}
        pending = [question for question in questions.values() if question.tokens]
        for i in range(0, len(pending), QUERIES_A_REQUEST):
            try:
                self._answer(pending[i : i + QUERIES_A_REQUEST])
            except ServerError as error:
                if len(pending) == 1:
                    raise
                raise ServerError(
                    f"{error} ({i:,} of {len(pending):,} queries had been answered)"
                ) from error
        return [questions[query].answer() for query in queries]

    def concordance(self, phrase: Phrase, k: int = 20) -> list[Occurrence]:
        """The answer includes what any process has changed.

        Raises ServerError where the server cannot be reached."""
        check_concordance(k)
        return with_phrase(self._server, phrase, k, self.conditions, self.find)

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Several processes may add at once.

        Raises ServerError with what was added and what perhaps was. Raises DataError for a text
        that cannot be kept."""
        return self._writer().add(dated(segments))

    def edit(self, ids: Iterable[int], change: Callable[[Segment], Segment]) -> list[Segment]:
        """Where the server goes away meanwhile, a ServerError says how many segments were
        corrected. Where somebody else changes a segment at once, `change` is called again with what
        that has made of it; where somebody deletes it, an UnknownIdError says so."""
        return self._writer().edit(ids, change)

    def delete(self, ids: Iterable[int]) -> None:
        """Where the server goes away meanwhile, a ServerError says how far the segments were
        deleted."""
        self._writer().delete(ids)

    def delete_chosen(self, choose: Callable[[Iterator[Segment]], Iterable[int]]) -> list[int]:
        """The segments are those that are there when this begins; others may change the index
        meanwhile."""
        writer = self._writer()
        ids = list(dict.fromkeys(choose(self.segments())))
        writer.delete(ids)
        return ids

    def get(self, ids: Iterable[int]) -> list[Segment]:
        return self._writer().get(ids)

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        numbers = set(ids)
        remaining = iter(sorted(numbers))
        segments = list[Segment]()
        while block := list(islice(remaining, IDS_A_REQUEST)):
            (hits,) = self._hits([({"terms": {"ids": block}}, 2 * len(block))])
            segments += [read(pair) for hit in hits for pair in hit["_source"]["pairs"]]
        segments.sort(key=lambda segment: segment.changed)  # one on its way stands in two places
        return {segment.id: segment for segment in segments if segment.id in numbers}

    def segments(self, conditions: Filter = NO_FILTER) -> Iterator[Segment]:
        """The segments are those that are there when the first is read. All are read, whatever the
        conditions."""
        return filter(conditions.keeps, every_segment(self._server))

    def changes(self) -> tuple[int, int, int]:
        """How many segments were added, corrected and deleted since the index was built."""
        return count_changes(self._server, self._current())

    def __len__(self) -> int:
        """How many segments the index holds now."""
        return count_segments(self._server, self._current())

    def compact(self, progress: Callable[[int], None] | None = None) -> None:
        """Drops what was deleted and makes one part of every shard, so that searches are at their
        fastest. The server does it while searches and changes go on, and nobody is told how far it
        is. Corrections that were broken off are carried to their end."""
        self._writer().finish()
        merge(self._server)

    def verify(self) -> int:
        """Reads everything; how many segments there are. Raises MemoryIndexError at the first
        document that is not as it was written."""
        return verify(self._server)

    def generation(self) -> int:
        """How many times the index was built."""
        return self._current().number

    def size(self) -> int:
        """Bytes on disk, of one copy of every shard."""
        return stored_bytes(self._server)

    def close(self) -> None:
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _current(self) -> ElasticGeneration:
        """The generation that answers now. Raises MemoryIndexError where its languages are others
        than when opened."""
        now = read_generation(self._server)
        languages = now.manifest.src_lang, now.manifest.tgt_lang
        if languages != (self.src_lang, self.tgt_lang):
            raise MemoryIndexError(
                f"{self.address}: was replaced by an index from {' to '.join(languages)}"
            )
        return now

    def _writer(self) -> Writer:
        return Writer(self._server, self._current())

    def _answer(self, questions: Sequence[_Question]) -> None:
        remaining = [question for question in questions if question.is_searched]
        with_skeleton = [question for question in questions if question.skeleton]
        while remaining or with_skeleton:
            self._search(remaining, with_skeleton)
            with_skeleton = []
            remaining = self._outdated(remaining) + [
                question for question in remaining if question.doubt()
            ]

    def _search(self, questions: Sequence[_Question], with_skeleton: Sequence[_Question]) -> None:
        """First pages, and documents by their skeleton, in one request; where that raised the
        bound, once more above it; the rest page by page."""
        page = FIRST_PAGE
        pending = list(questions)
        while pending or with_skeleton:
            bounds = [question.bound() for question in pending]
            pairs = zip(pending, bounds, strict=True)
            searches = [(candidates(question.tokens, bound), page) for question, bound in pairs]
            searches += [(question.of_skeleton(), FIRST_PAGE) for question in with_skeleton]
            pages_of = self._hits(searches)
            for question, hits in zip(with_skeleton, pages_of[len(pending) :], strict=True):
                question.documents = hits
            with_skeleton = []
            for question, hits in zip(pending, pages_of, strict=False):
                question.restart()
                question.read(hits)
                question.settled |= len(hits) < page
            open_ones = [
                (q, bound) for q, bound in zip(pending, bounds, strict=True) if not q.settled
            ]
            pending = [
                question
                for question, bound in open_ones
                if question.bound() > bound and page == FIRST_PAGE
            ]
            page = HITS_A_PAGE
            for question, _ in open_ones:
                if question not in pending:
                    self._read_on(question)

    def _outdated(self, questions: Sequence[_Question]) -> list[_Question]:
        """Those that have met a segment on its way that has arrived already, to be asked again."""
        moving = {number for question in questions for number, _ in question.moving}
        if not moving:
            return []
        hits = pages(self._server, {"terms": {"ids": sorted(moving)}}, BY_ID)
        pairs = (
            pair
            for page in hits
            for hit in page
            for pair in hit["_source"]["pairs"]
            if "becomes" not in pair
        )
        try:
            arrived = moving.intersection(pair["id"] for pair in pairs)
        except GenerationGone:
            for question in questions:
                question.restart()
            return list(questions)
        return [question for question in questions if question.forget(arrived)]

    def _read_on(self, question: _Question) -> None:
        """All candidates from the first on, from one point in time, until the question is settled
        or they end; in the new generation where the index was replaced meanwhile."""
        bound = question.bound()
        while True:
            question.restart()
            try:
                for page in pages(self._server, candidates(question.tokens, bound), BEST_FIRST):
                    self.requests += 1
                    question.read(page)
                    if question.settled:
                        return
                return
            except GenerationGone:
                bound = question.threshold

    def _hits(self, searches: Sequence[tuple[Mapping[str, Any], int]]) -> list[list[Any]]:
        """The first hits of every search, a query and how many, by one request; again for those a
        busy server has refused."""
        waiting = Waiting(self._server)
        hits: dict[int, list[Any]] = {}
        while remaining := [i for i in range(len(searches)) if i not in hits]:
            lines: list[Mapping[str, Any]] = []
            header = {
                "index": self.address.name,
                "allow_partial_search_results": False,
            }  # a part is a wrong answer
            for i in remaining:
                query, size = searches[i]
                lines += [header, {"query": query, "size": size, "track_total_hits": False}]
            answer = self._server.ask("POST", "/_msearch", lines, filter_path=SOURCE_FIELDS)
            self.requests += len(remaining)
            refused = None
            for i, response in zip(remaining, answer["responses"], strict=True):
                if "error" not in response:
                    hits[i] = response["hits"]["hits"] if "hits" in response else []
                elif response["status"] in BUSY:
                    refused = response["error"]
                else:
                    raise self._server.error(f"the search failed: {reason_in(response['error'])}")
            if refused is not None:
                waiting.pause(f"is too busy: {reason_in(refused)}")
        return [hits[i] for i in range(len(searches))]


def _version(pair: Mapping[str, Any]) -> Version:
    return pair["id"], pair.get("changed", "")


class _Question:
    """One query while its candidates come, best bound first. `documents`: those of its
    skeleton."""

    def __init__(self, query: IndexQuery, without_equal: bool, conditions: Filter) -> None:
        self.query, self.conditions = query, conditions
        self.tokens = match_tokens(query.text)
        self.is_searched = bool(query.similar) or query.same_source
        limits = (query.similar, query.threshold) if query.similar else (1, 1.0)
        self._k, self.threshold = limits
        self.skeleton = bones(self.tokens) if query.same_skeleton else ()
        self._without_equal = without_equal
        self._matches: list[Match] = []
        self._copies: list[Match] = []  # all matches of the same source, where these are wanted
        self._scores: list[float] = []  # heap of the k best
        self.settled = self._doubted = False
        self.moving: set[Version] = set()  # segments that were met on their way to another document
        self._arrived: set[Version] = set()  # those that are known to be there already
        self.documents: list[Any] = []
        self._candidates = self._distances = 0

    def of_skeleton(self) -> dict[str, Any]:
        """The server's query for the documents of its skeleton."""
        return of_skeleton_query(hash_of(self.skeleton), len(self.tokens))

    def bound(self) -> float:
        """What a score must reach to be among the k best as known by now."""
        return (
            max(self.threshold, self._scores[0]) if len(self._scores) == self._k else self.threshold
        )

    def doubt(self) -> bool:
        """Begins again, once, if it has met a segment twice: shards are not read at one moment, so
        one that moves may be met where it was and where it is."""
        has_twice = any(
            len({match.segment.id for match in matches}) < len(matches)
            for matches in (self._matches, self._copies)
        )
        if self._doubted or not has_twice:
            return False
        self._doubted = True
        self.restart()
        return True

    def restart(self) -> None:
        """Forgets the candidates: they come again, from another state of the index perhaps."""
        self._matches, self._copies, self._scores = [], [], []
        self.moving = set()
        self.settled = False

    def forget(self, arrived: Set[int]) -> bool:
        """Begins again, without the earlier versions of these segments, if it has met
        any of them."""
        outdated = {version for version in self.moving if version[0] in arrived}
        if outdated:
            self._arrived |= outdated
            self.restart()
        return bool(outdated)

    def read(self, hits: Iterable[Mapping[str, Any]]) -> None:
        """Verifies candidates; `settled` when those that follow cannot matter."""
        for hit in hits:
            self._candidates += 1
            if hit["_score"] < self.bound() - FLOAT_SLACK:
                self.settled = True
                return
            self._verify(_pairs(hit))

    def answer(self) -> IndexAnswer:
        """All that the query wants, as far as it was read."""
        similar = _latest(self._matches) if self.query.similar else []
        copies = _latest(self._copies)
        return IndexAnswer(
            best_of(similar, self._k),
            best_of(copies, len(copies)),
            self._of_same_skeleton(),
            SearchWork(self._candidates, self._distances),
        )

    def _of_same_skeleton(self) -> list[Match]:
        """Those of the segments of its documents that are meant and have its skeleton."""
        length, k = len(self.tokens), self.query.same_skeleton
        segment_groups = (
            [*filter(self.conditions.keeps, map(read, _pairs(hit)))] for hit in self.documents
        )
        groups = [group for group in segment_groups if group]
        groups.sort(key=lambda group: group[0].id)
        groups.sort(key=lambda group: group[0].changed, reverse=True)
        groups.sort(key=lambda group: len(match_tokens(group[0].src)) != length)
        segments = [segment for group in groups for segment in group[:OF_EQUAL_SOURCES]]
        latest = {segment.id: segment for segment in sorted(segments, key=lambda s: s.changed)}
        ids = [*dict.fromkeys(segment.id for segment in segments)][:k]
        return of_skeleton(self.tokens, [latest[number] for number in ids], k)

    def _verify(self, pairs: Sequence[Mapping[str, Any]]) -> None:
        tokens = match_tokens(pairs[0]["src"])
        self._distances += 1
        edits, longer = edit_distance(self.tokens, tokens), max(len(self.tokens), len(tokens))
        score = score_of(edits, longer)
        if score < self.bound() - SLACK or (self._without_equal and edits == 0):
            return
        excluded = self.query.without_document
        candidates = [
            pair for pair in pairs if not excluded or pair.get("document", "") != excluded
        ]
        if moving := {_version(pair) for pair in pairs if "becomes" in pair}:
            self.moving |= moving - self._arrived
            candidates = [
                pair
                for pair in candidates
                if "becomes" not in pair or _version(pair) not in self._arrived
            ]
        segments: Iterator[Segment] = filter(self.conditions.keeps, map(read, candidates))
        if edits == 0 and self.query.same_source:
            copies = [Match(segment, score, edits) for segment in segments]
            self._copies += copies
            segments = (match.segment for match in copies)
        # newest first: no more than k of them can be among the best
        for segment in islice(segments, self._k):
            self._matches.append(Match(segment, score, edits))
            push = heapq.heappushpop if len(self._scores) == self._k else heapq.heappush
            push(self._scores, score)


def _pairs(hit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    pairs: list[Mapping[str, Any]] = hit["_source"]["pairs"]
    return pairs


def _latest(matches: Iterable[Match]) -> list[Match]:
    """The latest version of every segment."""
    by_time = sorted(matches, key=lambda match: match.segment.changed)
    return [*{match.segment.id: match for match in by_time}.values()]


def _warn_of_former_tokens(location: str, manifest: ElasticManifest) -> None:
    if manifest.is_of_former_tokens and primary(manifest.src_lang) in OF_SPECIAL_SIGNS:
        log.warning(
            "%s: a former version built this index and cut letters from their marks, so segments "
            "that were there then may not be found; build it again with --force",
            location,
        )
