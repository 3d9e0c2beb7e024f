"""One contract, three ways to keep it: brute force, the embedded index, Elasticsearch. Same ids,
scores, order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from brute_force import (
    DATES,
    brute_force,
    looked_up,
    pairs,
    queries,
    real_segments,
    same_skeleton,
    separate_lookups,
    written,
)
from elastic_server import Running
from places import MEMORIES
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import COPIES, IndexQuery
from tmnmt.index.elastic import build as build_module
from tmnmt.index.elastic import layout
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import QUERIES_A_REQUEST, ElasticIndex
from tmnmt.index.filter import NO_FILTER, Filter
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

THRESHOLDS = (0.3, 0.5, 0.7, 0.8)


@pytest.fixture(scope="module")
def elastic(server: Running) -> Iterator[ElasticIndex]:
    address = server.address("contract")
    build_elastic(address, real_segments(), "en", "fr", shards=2)
    with ElasticIndex.open(address) as index:
        yield index


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    path = tmp_path_factory.mktemp("index") / "real"
    build(path, real_segments(), "en", "fr")
    with MemoryIndex.open(path) as index:
        yield index


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_all_three_answer_alike(
    elastic: ElasticIndex, embedded: MemoryIndex, threshold: float
) -> None:
    asked = queries(40, 3)
    found = elastic.search(asked, 3, threshold)
    assert found == embedded.search(asked, 3, threshold)
    assert [pairs(matches) for matches in found] == [
        brute_force(q, real_segments(), 3, threshold) for q in asked
    ]


@pytest.mark.parametrize(
    "query", ["", "zzzz", "the " * 1200, "Article 1", "\u200b\u0007", "␟ ␟ (1)"]
)
def test_odd_queries_are_answered_alike(
    elastic: ElasticIndex, embedded: MemoryIndex, query: str
) -> None:
    for threshold, k in [(0.0, 2), (0.5, 300)]:
        assert elastic.search([query], k, threshold) == embedded.search([query], k, threshold)


def test_more_candidates_than_a_page_are_all_read(
    elastic: ElasticIndex, embedded: MemoryIndex
) -> None:
    for k, threshold in [(3000, 0.0), (1500, 0.05)]:
        found = elastic.search([real_segments()[5].src], k, threshold)
        assert len(found[0]) > 1000 and found == embedded.search(
            [real_segments()[5].src], k, threshold
        )


def test_sources_and_documents_are_left_out_alike(
    elastic: ElasticIndex, embedded: MemoryIndex
) -> None:
    some = real_segments()[::100]
    asked, documents = [segment.src for segment in some], [segment.document for segment in some]
    for left_out in ({"exclude_sources": True}, {"exclude_documents": documents}):
        found = elastic.search(asked, 3, 0.4, **left_out)
        assert found == embedded.search(asked, 3, 0.4, **left_out)


def test_nearly_every_query_is_one_request(elastic: ElasticIndex) -> None:
    asked = queries(100, 5)
    before = elastic.requests
    elastic.search(asked, 3, 0.5)
    assert elastic.requests - before <= 1.05 * len(asked)


def test_every_segment_comes_back_whole(elastic: ElasticIndex) -> None:
    assert list(elastic.segments()) == list(real_segments())


def test_additions_are_found_at_once_and_keep_the_order(server: Running, tmp_path: Path) -> None:
    first = [
        replace(segment, properties=(("a", "b"), ("a", "c"))) for segment in real_segments()[:50]
    ]
    new = [
        Segment("a new one", "un"),
        Segment("!", "!"),
        Segment("a new one", "deux"),
        Segment(" ", "no tokens"),
    ]
    later = [
        replace(segment, created="2022", changed="2022")
        for segment in (*new, *real_segments()[2:9])
    ]
    path = tmp_path / "index"
    address = server.address("additions")
    build_elastic(address, first, "en", "fr")
    build(path, first, "en", "fr")
    with (
        ElasticIndex.open(address) as there,
        ElasticIndex.open(address) as other,
        MemoryIndex.open(path) as here,
    ):
        assert there.add(later) == here.add(later)
        assert len(other) == len(here) == 61
        asked = [segment.src for segment in later]
        assert other.search(asked, 5, 0.3) == here.search(asked, 5, 0.3)
        assert other.add([Segment("a new one", "trois")]) == [62]
        (newest, *_) = there.search(["a new one"], 5, 1.0)[0]
        assert newest.segment.tgt == "trois" and newest.segment.changed.endswith("Z")


@pytest.mark.slow
def test_two_thousand_kept_out_sentences_at_four_thresholds(
    server: Running, tmp_path: Path
) -> None:
    dates = random.Random(1)
    law = read_memory(MEMORIES / "canadian-law.en-fr.tmx.gz", "en", "fr")
    segments = [
        replace(segment, id=i, changed=dates.choice(DATES)) for i, segment in enumerate(law, 1)
    ]
    kept_out = read_memory(MEMORIES / "held-out" / "law.test.en-fr.tsv.gz", "en", "fr")
    asked = list(
        dict.fromkeys(segment.src for segment in kept_out if len(match_tokens(segment.src)) >= 5)
    )[:2000]
    assert len(asked) == 2000
    distances = process.cdist(
        [*map(written, asked)], [written(s.src) for s in segments], scorer=Levenshtein.distance
    )
    address = server.address("law")
    build(tmp_path / "law", segments, "en", "fr")
    build_elastic(address, segments, "en", "fr", shards=2)
    with ElasticIndex.open(address) as there, MemoryIndex.open(tmp_path / "law") as here:
        for threshold in THRESHOLDS:
            found = there.search(asked, 3, threshold)
            assert found == here.search(asked, 3, threshold)
            expected = [
                three_best(*row, segments, threshold) for row in zip(asked, distances, strict=True)
            ]
            assert [pairs(matches) for matches in found] == expected


def three_best(
    query: str, distances: Any, segments: list[Segment], threshold: float
) -> list[tuple[int, float]]:
    """As `brute_force`, from the distances to all segments."""
    length = len(written(query))
    scores = [
        1.0 - int(distance) / max(length, len(written(segment.src)))
        for distance, segment in zip(distances, segments, strict=True)
    ]
    hits = [
        (score, s.changed, -s.id)
        for score, s in zip(scores, segments, strict=True)
        if score >= threshold - 1e-9
    ]
    return [(-number, score) for score, _, number in sorted(hits, reverse=True)[:3]]


def wanted(texts: Sequence[str]) -> list[IndexQuery]:
    """All kinds of queries in one batch, some of them twice."""
    kinds = itertools.cycle(
        [
            IndexQuery("", 12, 0.5, True, 16),
            IndexQuery("", same_source=True, same_skeleton=16),
            IndexQuery("", 3, 0.3),
            IndexQuery("", same_source=True),
            IndexQuery("", 2, 1.0, same_skeleton=3),
        ]
    )
    some = [kind._replace(text=text) for text, kind in zip(texts, kinds, strict=False)]
    return [*some, *some[::3], IndexQuery(texts[0])]


@pytest.mark.parametrize("meant", [NO_FILTER, Filter(since="2020"), Filter(document="none")])
def test_one_lookup_of_many_queries_has_what_separate_ones_have(
    elastic: ElasticIndex, embedded: MemoryIndex, meant: Filter
) -> None:
    texts = [*queries(90, 7), "", "...", "Article 1", "(a)", *map(str.upper, queries(5, 8))]
    batch = wanted(texts)
    answers = []
    for index in (elastic.restricted_to(meant), embedded.restricted_to(meant)):
        expected = [separate_lookups(index, query) for query in batch]
        assert looked_up(index, batch) == expected
        answers.append(expected)
    assert answers[0] == answers[1]
    has = [sum(bool(answer[part]) for answer in answers[0]) for part in range(3)]
    assert (min(has) > 10) == (meant != Filter(document="none"))


def test_a_batch_of_lookups_is_one_request(elastic: ElasticIndex, counted: list[int]) -> None:
    texts = queries(QUERIES_A_REQUEST, 5)
    elastic.look_up([IndexQuery(text, 12, 0.5, True, 16) for text in texts])
    assert len(counted) == 1 and counted[0] > QUERIES_A_REQUEST


@pytest.fixture
def counted(elastic: ElasticIndex, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many searches were in every request."""
    sizes = list[int]()
    ask = elastic._server.ask

    def noted(method: str, path: str, body: Any = None, **options: Any) -> Any:
        if path == "/_msearch":
            sizes.append(len(body) // 2)
        return ask(method, path, body, **options)

    monkeypatch.setattr(elastic._server, "ask", noted)
    return sizes


def test_lookups_after_changes_have_what_separate_ones_have(
    server: Running, tmp_path: Path
) -> None:
    """More copies of a source than are looked for at first, in the build and in what was added."""
    address = server.address("changed")
    often = Segment("Repealed.", "Abrogé.", created="2019", changed="2020-01-01T00:00:00Z")
    build_elastic(address, [*real_segments()[:300], *[often] * (COPIES + 1)], "en", "fr")
    build(tmp_path / "m", [*real_segments()[:300], *[often] * (COPIES + 1)], "en", "fr")
    added = [replace(one, id=0, created="2024", changed="2024") for one in real_segments()[:700]]
    with ElasticIndex.open(address) as there, MemoryIndex.open(tmp_path / "m") as here:
        for index in (there, here):
            index.add([*added, *[replace(often, changed="2023")] * 3])
            index.delete(range(1, 60, 3))
            index.edit([2, 350], lambda one: replace(one, tgt=f"{one.tgt} !", changed="2025"))
            index.add([replace(often, src="REPEALED", changed="2026"), *added[:20]])
        texts = ["Repealed.", "repealed", *[segment.src for segment in added[:300:7]]]
        batch = [IndexQuery(text, 12, 0.5, True, 16) for text in texts]
        answers = []
        for index in (there, here):
            answers.append(looked_up(index, batch))
            assert answers[-1] == [separate_lookups(index, query) for query in batch]
        assert [answer[:2] for answer in answers[0]] == [answer[:2] for answer in answers[1]]
        assert len(answers[0][0].same_source) == COPIES + 4
        for first, second, *_ in answers:
            assert "REPEALED" in {match.segment.src for match in first.same_skeleton}
            assert "Repealed." in {match.segment.src for match in second.same_skeleton}


def test_skeletons_and_neighbours_are_found_alike(
    elastic: ElasticIndex, embedded: MemoryIndex
) -> None:
    sources = [segment.src for segment in real_segments()]
    asked = [*map(str.upper, sources[::29]), "Article 900", "(x) 5", "...", "nothing like it"]
    found = same_skeleton(elastic, asked)
    assert found == same_skeleton(embedded, asked)
    assert sum(map(bool, found)) > 60 and found[-2:] == [[], []]
    ids = [segment.id for segment in real_segments()[::50]] + [999_999]
    assert elastic.find(ids) == embedded.find(ids) and elastic.find([]) == {}
    assert len(elastic.find(ids)) == len(ids) - 1


def test_skeletons_of_additions_and_corrections_are_found_alike(
    server: Running, tmp_path: Path
) -> None:
    address = server.address("skeletons")
    some = [Segment("Page 3 of 12", "Page 3 sur 12"), Segment("Close file", "Fermer")]
    build_elastic(address, some, "en", "fr")
    build(tmp_path / "m", some, "en", "fr")
    with ElasticIndex.open(address) as there, MemoryIndex.open(tmp_path / "m") as here:
        for index in (there, here):
            index.add([Segment("PAGE 7 OF 7", "PAGE 7", changed="2020-01-01T00:00:00Z")])
            index.edit([2], lambda segment: replace(segment, src="Shut file", changed="2021"))
        asked = ["Page 1 of 1", "CLOSE FILE", "SHUT FILE"]
        found = same_skeleton(there, asked)
        assert [[match.segment.id for match in alike] for alike in found] == [[1, 3], [], [2]]
        assert [[m.segment.src for m in alike] for alike in found] == [
            [m.segment.src for m in alike] for alike in same_skeleton(here, asked)
        ]


def test_a_server_index_of_the_former_format_is_changed_and_keeps_no_skeletons(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    mappings = layout.mappings()
    del mappings["properties"]["skeleton"]
    monkeypatch.setattr(build_module, "mappings", lambda: mappings)
    monkeypatch.setattr(build_module, "document", partial(layout.document, has_skeleton=False))
    former = partial(layout.ElasticManifest, format=layout.SKELETONS_SINCE - 1)
    monkeypatch.setattr(build_module, "ElasticManifest", former)
    address = server.address("former")
    build_elastic(address, [Segment("Page 3", "Page 3")], "en", "fr")
    with ElasticIndex.open(address) as index:
        index.add([Segment("Page 4", "Page 4")])
        assert len(index.search(["Page 4"])[0]) == 2 and same_skeleton(index, ["Page 7"]) == [[]]
