"""Pairs out of segments: none twice, none lost, every copy counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import JRC

from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex, build
from tmnmt.index.pairs import COPIES, count_copies, distinct, search_pairs
from tmnmt.segments import Match, Segment

MANY = COPIES + 6


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    """One pair many times over, one twice, one once; all but the last with the same tokens in the
    source."""
    path = tmp_path_factory.mktemp("crowded") / "index"
    segments = [Segment("a b c d", "A", f"document {i}") for i in range(MANY)]
    segments += [
        Segment("a b c  d", "A", "two spaces"),
        *[Segment("a b c d", "B")] * 2,
        Segment("a b c x", "C"),
    ]
    build(path, segments, "en", "fr")
    with MemoryIndex.open(path) as index:
        yield index


def texts(matches: list[Match]) -> list[tuple[str, str]]:
    return [(match.segment.src, match.segment.tgt) for match in matches]


def test_copies_take_no_places(crowded: MemoryIndex) -> None:
    (found,) = search_pairs(crowded, ["a b c d"], 4, 0.5)
    assert texts(found) == [("a b c d", "A"), ("a b c  d", "A"), ("a b c d", "B"), ("a b c x", "C")]
    assert found[0].segment.id == 1
    assert texts(search_pairs(crowded, ["a b c d"], 9, 0.5)[0]) == texts(found)
    assert texts(search_pairs(crowded, ["a b c d"], 3, 0.5)[0]) == texts(found)[:3]


def test_every_copy_is_counted(crowded: MemoryIndex) -> None:
    (found,) = search_pairs(crowded, ["a b c d"], 4, 0.5)
    assert count_copies(crowded, found) == [MANY, 1, 2, 1]
    assert count_copies(crowded, []) == []


def test_queries_keep_their_places_even_when_they_repeat(crowded: MemoryIndex) -> None:
    found = search_pairs(crowded, ["a b c x", "nothing", "a b c d", "a b c x"], 1, 0.5)
    assert [texts(matches) for matches in found] == [
        [("a b c x", "C")],
        [],
        [("a b c d", "A")],
        [("a b c x", "C")],
    ]


def test_pairs_and_counts_are_those_of_the_whole_memory(tmp_path: Path) -> None:
    segments = list(read_memory(JRC, "en", "fr"))
    build(tmp_path / "index", segments, "en", "fr")
    queries = [segment.src for segment in segments[::40]] + [
        "Article 1",
        "Having regard to the proposal",
    ]
    every = Counter((segment.src, segment.tgt) for segment in segments)
    with MemoryIndex.open(tmp_path / "index") as index:
        whole = index.search(queries, len(segments), 0.5)
        for k in (1, 5):
            found = search_pairs(index, queries, k, 0.5)
            assert found == [distinct(matches)[:k] for matches in whole]
        flat = [match for matches in found for match in matches]
        assert count_copies(index, flat) == [every[pair] for pair in texts(flat)]
