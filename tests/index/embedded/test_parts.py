"""An index in several parts answers as one in a single part, and as brute force."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from brute_force import brute_force, pairs, queries, real_segments

from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import IndexQuery
from tmnmt.index.concordance import Phrase
from tmnmt.index.embedded import build as building
from tmnmt.index.embedded import new_parts, search
from tmnmt.index.embedded.manifest import read_manifest
from tmnmt.index.embedded.part import Part
from tmnmt.index.filter import Filter
from tmnmt.segments import Segment

PARTS = 5


@pytest.fixture(scope="module", autouse=True)
def small_parts() -> Iterator[None]:
    """Parts of so many segments that the real ones take several."""
    run = len(real_segments()) // (3 * PARTS) + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "SEGMENTS_A_WRITE", run)
        patch.setattr(new_parts, "SEGMENTS_A_PART", 3 * run)
        yield


def segments() -> list[Segment]:
    return [
        replace(segment, document=f"d{number % 7}", changed=f"20{number % 13 + 10}")
        for number, segment in enumerate(real_segments(), 1)
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    path = tmp_path_factory.mktemp("index") / "parts"
    build(path, segments(), "en", "fr")
    with MemoryIndex.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    path = tmp_path_factory.mktemp("index") / "single"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_parts, "SEGMENTS_A_PART", 1 << 20)
        build(path, segments(), "en", "fr")
    with MemoryIndex.open(path) as opened:
        yield opened


def test_parts_are_as_large_as_they_may_be(index: MemoryIndex, single: MemoryIndex) -> None:
    assert (index.manifest.postings, single.manifest.postings) == (PARTS, 1)
    assert index.verify() == single.verify() == len(real_segments())
    assert index.manifest.sources >= single.manifest.sources


def test_a_search_of_all_parts_equals_brute_force(index: MemoryIndex) -> None:
    everything = [replace(segment, id=number) for number, segment in enumerate(segments(), 1)]
    for k, threshold in ((1, 0.5), (3, 0.5), (3, 0.8), (40, 0.3), (5000, 0.0)):
        for query in queries(12, k):
            found = pairs(index.search([query], k, threshold)[0])
            assert found == brute_force(query, everything, k, threshold)


@pytest.mark.parametrize("threads", [2, 3, PARTS + 1])
def test_threads_that_share_the_parts_find_the_same(
    index: MemoryIndex, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    texts = queries(30, 5)
    monkeypatch.setattr(index, "threads", 1)
    alone = [index.search([text], 3, 0.5)[0] for text in texts]
    monkeypatch.setattr(index, "threads", threads)
    monkeypatch.setattr(search, "LEAST_SHARE", 1)
    sharing = set[int]()
    search_shares = search._search

    def search_share(parts: list[tuple[int, Part]], *others: Any) -> list[search.SearchResult]:
        sharing.add(threading.get_ident())
        return search_shares(parts, *others)

    monkeypatch.setattr(search, "_search", search_share)
    assert [index.search([text], 3, 0.5)[0] for text in texts] == alone
    assert len(sharing) > 1
    assert index.search(texts, 3, 0.5) == alone


def test_parts_are_shared_by_their_sizes_among_threads_that_pay() -> None:
    million = search.LEAST_SHARE
    assert search._shares([4 * million, 4 * million, 2 * million], 2) == [[0, 2], [1]]
    assert search._shares([million, 3 * million, 2 * million], 2) == [[1], [0, 2]]
    assert search._shares([4 * million, 9], 2) == [[0, 1]]
    assert search._shares([9, 9], 2) == [[0, 1]]
    assert search._shares([4 * million] * 3, 1) == [[0, 1, 2]]


def test_all_that_is_looked_up_in_parts_is_what_one_part_has(
    index: MemoryIndex, single: MemoryIndex
) -> None:
    texts = queries(60, 8)
    asked = [
        IndexQuery(
            text,
            similar=number % 4,
            threshold=(0.0, 0.5, 0.8)[number % 3],
            same_source=number % 2 == 0,
            same_skeleton=16,
            without_document="d2" if number % 5 else "",
        )
        for number, text in enumerate(texts)
    ]
    for conditions in (Filter(), Filter(document="d3")):
        of_parts, of_one = (one.restricted_to(conditions) for one in (index, single))
        for exclude in (False, True):
            for found, wanted in zip(
                of_parts.look_up(asked, exclude), of_one.look_up(asked, exclude), strict=True
            ):
                assert found.similar == wanted.similar
                assert found.same_source == wanted.same_source
                if len(wanted.same_skeleton) < 16:
                    assert found.same_skeleton == wanted.same_skeleton
        for phrase in ("the", "of the", "committee", "p* t*", "regulation (e*"):
            wanted_places = of_one.concordance(Phrase(phrase), 30)
            assert wanted_places
            assert of_parts.concordance(Phrase(phrase), 30) == wanted_places


def test_fragments_are_those_of_one_part(index: MemoryIndex, single: MemoryIndex) -> None:
    texts, alike = queries(40, 21), 0
    for text in texts:
        of_parts, of_one = (
            [match.segment.src for match in one.covering(text, 6)] for one in (index, single)
        )
        assert len(of_parts) == len(of_one)
        alike += of_parts == of_one
    assert 0.8 * len(texts) < alike  # candidates of equal weight stand in another order


def test_what_is_changed_is_found_in_no_part_any_more_and_compacted_into_few(
    tmp_path: Path,
) -> None:
    build(tmp_path / "m", segments(), "en", "fr")
    with MemoryIndex.open(tmp_path / "m") as index:
        query = queries(1, 3)[0]
        before = index.search([query], 5, 0.0)[0]
        index.delete([match.segment.id for match in before[:2]])
        after = index.search([query], 3, 0.0)[0]
        assert after == before[2:]
        index.compact()
        assert index.search([query], 3, 0.0)[0] == after
        assert read_manifest(index.path).postings == PARTS
