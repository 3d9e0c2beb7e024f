"""Pairs out of segments: none twice, none lost, every copy counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import JRC

from tmnmt.config.options import Penalties
from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import COPIES
from tmnmt.index.fuzzy import edit_distance, fuzzy_score
from tmnmt.index.match_value import Query, Trust, most_worth, valued
from tmnmt.index.pairs import count_copies, distinct, search_by_worth, search_pairs
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

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


def worths(matches: list[Match]) -> list[tuple[str, int | None]]:
    return [(m.segment.src, m.worth.value if m.worth is not None else None) for m in matches]


def scored(text: str, segment: Segment) -> Match:
    tokens = match_tokens(text), match_tokens(segment.src)
    return Match(segment, fuzzy_score(*tokens), edit_distance(*tokens))


@pytest.mark.parametrize(
    "penalties", [Penalties(), Penalties(domain="document=even", penalty_domain=40)]
)
def test_those_worth_most_are_found_however_many_are_more_alike(
    tmp_path: Path, penalties: Penalties
) -> None:
    text = " ".join("abcdefghijklmnopqrst")
    segments = []
    for n in range(300):  # the most alike are of another document
        words = text.split()
        words[: 1 + n // 40] = [f"x{n}"] * (1 + n // 40)
        segments.append(Segment(" ".join(words), f"{n}", "odd" if n < 200 else "even"))
    build(tmp_path / "m", segments, "en", "fr")
    asked, trust = Query(text), Trust(3)
    with MemoryIndex.open(tmp_path / "m") as index:
        (found,) = search_by_worth(index, [asked], 5, 0.5, penalties, trust)
        every = [scored(text, segment) for segment in index.segments()]
    best = most_worth(valued(asked, every, None, penalties, trust), 5)
    assert worths(found) == worths(best)
    assert {match.segment.document for match in found} == {
        "odd" if not penalties.domain else "even"
    }


def test_what_has_the_same_skeleton_is_found_below_the_threshold_and_by_its_worth(
    tmp_path: Path,
) -> None:
    segments = [Segment("Page 3 of 12", "Page 3 sur 12"), Segment("Close file", "Fermer")]
    build(tmp_path / "m", segments, "en", "fr")
    with MemoryIndex.open(tmp_path / "m") as index:
        asked = [Query("Page 7 of 31"), Query("CLOSE FILE"), Query("Open")]
        found = search_by_worth(index, asked, 4, 0.8)
        assert [worths(matches) for matches in found] == [
            [("Page 3 of 12", 100)],
            [("Close file", 99)],
            [],
        ]
        assert search_by_worth(index, asked[1:2], 4, 1.0) == [[]]
