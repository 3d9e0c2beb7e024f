"""A memory on an Elasticsearch cluster, with the same answers as the embedded index."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

from tmnmt.errors import MemoryIndexError, ServerError
from tmnmt.index.base import best_of, check_languages, check_search
from tmnmt.index.elastic_add import add
from tmnmt.index.elastic_address import ElasticAddress
from tmnmt.index.elastic_layout import read, read_meta
from tmnmt.index.elastic_query import FLOAT_SLACK, candidates
from tmnmt.index.elastic_server import BUSY, PATIENCE, SECONDS_TO_ANSWER, Server, Waiting, reason_in
from tmnmt.index.fuzzy import SLACK, edit_distance, score_of
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

FIRST_PAGE = 200  # candidates: nearly every query is settled by them
NEXT_PAGE = 1000
QUERIES_A_REQUEST = 32
KEPT_OPEN = "2m"  # between two pages of one query


class ElasticIndex:
    """An index on a server, open for searches and additions; an `Index`. Use from any thread; close it, or use `with`.

    `requests` counts the searches the server was asked for, one for nearly every query."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.address = server.address
        self.manifest = _read_manifest(server)
        self.src_lang, self.tgt_lang = self.manifest.src_lang, self.manifest.tgt_lang
        self.requests = 0

    @classmethod
    def open(
        cls, address: ElasticAddress, src_lang: str | None = None, tgt_lang: str | None = None, *,
        patience: float = PATIENCE, seconds_to_answer: float = SECONDS_TO_ANSWER,
    ) -> ElasticIndex:  # fmt: skip
        """The index at `address`. Lost connections and a busy server are waited for, `patience` seconds in all.
        Raises ServerError, and MemoryIndexError: no index, not ours, of another format or of other languages."""
        server = Server(address, patience, seconds_to_answer)
        try:
            index = cls(server)
            check_languages(str(address), (index.src_lang, index.tgt_lang), src_lang, tgt_lang)
        except BaseException:
            server.close()
            raise
        return index

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:
        """As `Index.search` says; equal to scoring every segment, and includes what any process has added.
        Raises ServerError, which says how many of the queries were answered."""
        check_search(queries, k, threshold, exclude_documents)
        documents = exclude_documents or [""] * len(queries)
        keys = [(tuple(match_tokens(text)), document) for text, document in zip(queries, documents, strict=True)]
        questions = {key: _Question(key[0], k, threshold, exclude_sources, key[1]) for key in keys}
        asked = [question for question in questions.values() if question.tokens]
        for i in range(0, len(asked), QUERIES_A_REQUEST):
            try:
                self._answer(asked[i : i + QUERIES_A_REQUEST])
            except ServerError as error:
                if len(asked) == 1:
                    raise
                raise ServerError(f"{error} ({i:,} of {len(asked):,} queries had been answered)") from error
        return [questions[key].best() for key in keys]

    def add(self, segments: Sequence[Segment]) -> list[int]:
        """Adds segments; their ids. On return they are durable, and the next search by anyone finds them. Without
        `changed` (or `created`) they get the present time. Several may add at once. Raises ServerError, DataError."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        dated = [replace(s, created=s.created or now, changed=s.changed or s.created or now) for s in segments]
        return add(self._server, dated)

    def __len__(self) -> int:
        """How many segments the index holds, additions included."""
        answer = self._server.ask(
            self._server.client.search, index=self.address.name, size=0, allow_partial_search_results=False,
            aggs={"all": {"sum": {"field": "segments"}}},
        )  # fmt: skip
        return int(answer["aggregations"]["all"]["value"])

    def __iter__(self) -> Iterator[Segment]:
        """Every segment, in no order, as of now."""
        for hit in self._every({"exists": {"field": "segments"}}, [{"_shard_doc": "asc"}]):
            yield from map(read, hit["_source"]["pairs"])

    def close(self) -> None:
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _answer(self, questions: Sequence[_Question]) -> None:
        """First pages in one request; where that raised the bound, once more above it; the rest page by page."""
        page = FIRST_PAGE
        asked = list(questions)
        while asked:
            bounds = [question.bound() for question in asked]
            for question, hits in zip(asked, self._pages(asked, bounds, page), strict=True):
                question.restart()
                question.read(hits)
                question.settled |= len(hits) < page
            open_ones = [(q, bound) for q, bound in zip(asked, bounds, strict=True) if not q.settled]
            asked = [question for question, bound in open_ones if question.bound() > bound and page == FIRST_PAGE]
            page = NEXT_PAGE
            for question, _ in open_ones:
                if question not in asked:
                    self._read_on(question)

    def _read_on(self, question: _Question) -> None:
        """All candidates from the first on, from one point in time, until the question is settled or they end."""
        bound = question.bound()
        question.restart()
        for hit in self._every(candidates(question.tokens, bound), [{"_score": "desc"}, {"_shard_doc": "asc"}]):
            question.read([hit])
            if question.settled:
                return

    def _pages(self, questions: Sequence[_Question], bounds: Sequence[float], size: int) -> list[list[Any]]:
        """The first page of every question, by one request; again for those a busy server has refused."""
        waiting = Waiting(self._server)
        found: dict[int, list[Any]] = {}
        while left := [i for i in range(len(questions)) if i not in found]:
            lines: list[Mapping[str, Any]] = []
            header = {"index": self.address.name, "allow_partial_search_results": False}  # a part is a wrong answer
            for i in left:
                query = candidates(questions[i].tokens, bounds[i])
                lines += [header, {"query": query, "size": size, "track_total_hits": False}]
            answer = self._server.ask(self._server.client.msearch, searches=lines)
            self.requests += len(left)
            refused = None
            for i, response in zip(left, answer["responses"], strict=True):
                if "error" not in response:
                    found[i] = response["hits"]["hits"]
                elif response["status"] in BUSY:
                    refused = response["error"]
                else:
                    raise self._server.error(f"the search failed: {reason_in(response['error'])}")
            if refused is not None:
                waiting.pause(f"is too busy: {reason_in(refused)}")
        return [found[i] for i in range(len(questions))]

    def _every(self, query: Mapping[str, Any], sort: list[Mapping[str, str]]) -> Iterator[Any]:
        """All hits of a query in order, from one point in time, page by page."""
        name = self.address.name
        server = self._server
        point = server.ask(server.client.open_point_in_time, index=name, keep_alive=KEPT_OPEN)["id"]
        after: dict[str, Any] = {}
        try:
            while True:
                answer = server.ask(
                    server.client.search, query=query, sort=sort, size=NEXT_PAGE,
                    pit={"id": point, "keep_alive": KEPT_OPEN}, track_total_hits=False,
                    allow_partial_search_results=False, **after,
                )  # fmt: skip
                self.requests += 1
                point = answer["pit_id"]
                hits = answer["hits"]["hits"]
                yield from hits
                if len(hits) < NEXT_PAGE:
                    return
                after = {"search_after": hits[-1]["sort"]}
        finally:
            server.ask(server.client.close_point_in_time, id=point)


class _Question:
    """One query while its candidates come, best bound first."""

    def __init__(
        self, tokens: tuple[str, ...], k: int, threshold: float, without_equal: bool, without_document: str
    ) -> None:
        self.tokens, self._k, self._threshold = tokens, k, threshold
        self._without_equal, self._without_document = without_equal, without_document
        self._matches: list[Match] = []
        self._scores: list[float] = []  # heap of the k best
        self.settled = False

    def bound(self) -> float:
        """What a score must reach to be among the k best as known by now."""
        return max(self._threshold, self._scores[0]) if len(self._scores) == self._k else self._threshold

    def restart(self) -> None:
        """Forgets the candidates: they come again, from another state of the index perhaps."""
        self._matches, self._scores = [], []

    def read(self, hits: Iterable[Mapping[str, Any]]) -> None:
        """Verifies candidates; `settled` when those that follow cannot matter."""
        for hit in hits:
            if hit["_score"] < self.bound() - FLOAT_SLACK:
                self.settled = True
                return
            self._verify(hit["_source"]["pairs"])

    def best(self) -> list[Match]:
        return best_of(self._matches, self._k)

    def _verify(self, pairs: Sequence[Mapping[str, Any]]) -> None:
        tokens = match_tokens(pairs[0]["src"])
        edits, longer = edit_distance(self.tokens, tokens), max(len(self.tokens), len(tokens))
        score = score_of(edits, longer)
        if score < self.bound() - SLACK or (self._without_equal and edits == 0):
            return
        without = self._without_document
        wanted = [pair for pair in pairs if not without or pair.get("document", "") != without][: self._k]
        for pair in wanted:  # newest first: no more than k of them can be among the best
            self._matches.append(Match(read(pair), score, edits))
            push = heapq.heappushpop if len(self._scores) == self._k else heapq.heappush
            push(self._scores, score)


def _read_manifest(server: Server) -> Any:
    from elasticsearch import NotFoundError

    name, where = server.address.name, str(server.address)
    try:
        found = server.ask(server.client.indices.get_mapping, expected=(404,), index=name)
    except NotFoundError as error:
        raise MemoryIndexError(f"{where}: no such index; make one with tmnmt build-index") from error
    if len(found) != 1 or name in found:
        raise MemoryIndexError(f"{where}: an Elasticsearch index that tmnmt did not make")
    (concrete,) = found.values()
    return read_meta(concrete["mappings"].get("_meta"), where)
