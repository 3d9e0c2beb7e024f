"""The pairs a sentence is translated with: how they are chosen from what several memories hold."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from brute_force import queries, real_segments, separate_lookups

from tmnmt.codes.record import Code, Text, surroundings
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.config.options import Penalties, Select, Selection, Similarity
from tmnmt.engine.confirmed import Confirmed
from tmnmt.engine.retrieve import Request, Retriever, queries_of
from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import Index, IndexAnswer, IndexQuery
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.filter import NO_FILTER, Filter
from tmnmt.index.match_value import IN_FULL, Query, Trust
from tmnmt.segments import ConfirmedPair, Match, Segment

QUERY = "a b c d e f g h"
FIRST = "a b c d e x x x"
ALIKE = "a b c d x x x x"
LITTLE = "a b x x x f x x"
MUCH = "x x x x x f g x"


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[list[MemoryIndex]]:
    build(tmp_path / "one", [Segment(src, src.upper()) for src in (FIRST, MUCH)], "en", "fr")
    build(
        tmp_path / "two", [Segment(src, src.upper()) for src in (FIRST, ALIKE, LITTLE)], "en", "fr"
    )
    with MemoryIndex.open(tmp_path / "one") as one, MemoryIndex.open(tmp_path / "two") as two:
        yield [one, two]


@pytest.mark.parametrize(
    ("select", "similarity", "alpha", "sources"),
    [
        ("topk", "fuzzy", None, [FIRST, ALIKE]),
        ("greedy", "fuzzy", None, [FIRST, MUCH]),  # f and g at once
        ("walk", "fuzzy", None, [FIRST, LITTLE]),
        ("contrastive", "fuzzy", 0.5, [FIRST, MUCH]),
        ("topk", "bleu", None, [FIRST, ALIKE]),
    ],
)
def test_pairs_are_chosen_from_all_memories_together(
    indexes: list[MemoryIndex],
    select: Select,
    similarity: Similarity,
    alpha: float | None,
    sources: list[str],
) -> None:
    retriever = Retriever(indexes, 2, 0.2, selection=Selection(select, similarity, alpha))
    found, nothing = retriever.search([QUERY, "something else"])
    assert [match.segment.src for match in found] == sources
    assert nothing == ()
    fuzzy = {FIRST: 5 / 8, ALIKE: 4 / 8, LITTLE: 3 / 8, MUCH: 2 / 8}
    assert [match.score == fuzzy[match.segment.src] for match in found] == [
        similarity == "fuzzy"
    ] * 2


def test_a_confirmed_pair_is_among_those_chosen_from(indexes: list[MemoryIndex]) -> None:
    retriever = Retriever(indexes, 2, 0.2, selection=Selection("greedy"))
    confirmed = Confirmed()
    confirmed.add(ConfirmedPair("x x x x x f g h", "confirmed", confirmed.new_id()), in_index=False)
    found = retriever.search([QUERY, QUERY], [confirmed.similar, Delta()])
    assert [[match.segment.tgt for match in matches] for matches in found] == [
        [FIRST.upper(), "confirmed"],
        [FIRST.upper(), MUCH.upper()],
    ]


def test_of_several_targets_the_newest_of_the_most_frequent_is_taken(tmp_path: Path) -> None:
    said = [
        ("one", "2020"),
        ("two", "2021"),
        ("two", "2022"),
        ("last", "2024"),
        ("one", "2023"),
        ("alone", "2030"),
    ]
    copies = [Segment(QUERY, tgt, changed=f"{year}-01-01T00:00:00Z") for tgt, year in said]
    many = [
        Segment(QUERY, "often", changed="2001-01-01T00:00:00Z")
    ] * 300  # more than are asked for at first
    build(tmp_path / "few", copies, "en", "fr")
    build(tmp_path / "many", [*many, Segment("rare", "1"), Segment("rare", "2")], "en", "fr")
    with MemoryIndex.open(tmp_path / "few") as few, MemoryIndex.open(tmp_path / "many") as often:
        for indexes, taken in (([few], "one"), ([few, often], "often")):
            found = Retriever(indexes, 2, 0.5).exact(
                [f" {QUERY.replace(' ', '  ')}", "a b c d e f g"]
            )
            assert found[0] is not None and found[0].segment.tgt == taken and found[1] is None
        newest = Retriever([few], 2, 0.5).exact([QUERY])[0]
        assert newest is not None and newest.segment.changed.startswith("2023")


def test_for_a_short_segment_pairs_that_share_half_of_its_words_are_not_read(
    tmp_path: Path,
) -> None:
    sources = ["Close file", "Close the file", "Open it", "Leave the old file", "Open the file now"]
    build(tmp_path / "m", [Segment(src, src) for src in sources], "en", "fr")
    with MemoryIndex.open(tmp_path / "m") as index:

        def read(text: str, **options: float) -> list[str]:
            (found,) = Retriever([index], 4, 0.5, **options).search([text])  # type: ignore[arg-type]
            return sorted(match.segment.src for match in found)

        assert read("Open file") == []
        assert read("Open the file") == ["Close the file", "Open the file now"]
        assert read("Open the old file") == [
            "Close the file",
            "Leave the old file",
            "Open the file now",
        ]
        assert read("Open file", short_threshold=0.5) == [
            "Close file",
            "Open it",
            "Open the file now",
        ]
        assert len(index.search(["Open file"])[0]) == 3


def test_a_match_is_worth_the_same_when_it_is_listed_and_when_it_is_taken(tmp_path: Path) -> None:
    """With codes, the place in the document, and a memory that is trusted less."""
    code = (Code(1, "standalone", "<x/>", "xliff1"),)
    sources = ("a b c d", "n n n n")
    pairs = [Segment(s, s.upper(), document="d", position=n) for n, s in enumerate(sources)]
    build(tmp_path / "one", pairs, "en", "fr")
    with MemoryIndex.open(tmp_path / "one") as index:
        for codes, trust, near, value in (
            (code, Trust(weight=0.5), ("", ""), 49),
            (code, IN_FULL, ("", "n n n n"), 99),
            ((), IN_FULL, ("", "n n n n"), 101),
            (None, IN_FULL, ("", "n n n n"), 101),
        ):
            retriever = Retriever([index], 3, 0.3, trust=[trust])
            text = ["a b c d"]
            listed = retriever.search(text, codes=[codes], contexts=[near])[0]
            taken = retriever.exact(text, [codes], [near], min_worth=30)[0]
            assert taken is not None and taken.worth is not None and taken.worth.value == value
            assert [(one.segment, one.worth) for one in listed] == [(taken.segment, taken.worth)]


def test_points_for_codes_are_taken_once(tmp_path: Path) -> None:
    """Also where another match has the codes of the text, and is less alike."""
    code = (Code(1, "standalone", "<x/>", "xliff1"),)
    with_codes = Segment("a b c x x", "W", src_codes=code, tgt_codes=code)
    build(tmp_path / "one", [with_codes, Segment("a b c d x", "P")], "en", "fr")
    with MemoryIndex.open(tmp_path / "one") as index:
        found = Retriever([index], 3, 0.3).exact(["a b c d e"], [code], min_worth=50)[0]
        assert found is not None and found.worth is not None
        assert (found.segment.tgt, found.worth.value) == ("P", 79)


class Separately(Index):
    """An index that looks up one thing after another, and counts how often it is asked."""

    def __init__(self, index: MemoryIndex) -> None:
        self.index, self.calls = index, Counter[str]()
        self.src_lang, self.tgt_lang = index.src_lang, index.tgt_lang

    def search(self, *texts: Any, **limits: Any) -> list[list[Match]]:
        return self.index.search(*texts, **limits)

    def look_up(
        self, queries: Sequence[IndexQuery], exclude_sources: bool = False
    ) -> list[IndexAnswer]:
        self.calls["look_up"] += 1
        return [separate_lookups(self.index, query) for query in queries]

    def find(self, ids: Iterable[int]) -> dict[int, Segment]:
        self.calls["find"] += 1
        return self.index.find(ids)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[MemoryIndex]]:
    """Two memories of real text, one with codes and with tags as text, one with changes."""
    folder = tmp_path_factory.mktemp("real")
    segments = real_segments()[:600]
    tagged = [replace(s, src=f"<b>{s.src}</b>", tgt=f"<b>{s.tgt}</b>") for s in segments[::5]]
    coded = [replace(s, src_codes=STANDALONE, tgt_codes=STANDALONE) for s in segments[::7]]
    build(folder / "one", [*segments, *tagged, *coded], "en", "fr")
    build(folder / "two", segments[200:], "en", "fr")
    with MemoryIndex.open(folder / "one") as one, MemoryIndex.open(folder / "two") as two:
        two.edit(range(1, 60, 4), lambda segment: replace(segment, tgt=f"{segment.tgt} !"))
        two.add([replace(segment, id=0, src=segment.src.upper()) for segment in segments[:90:2]])
        yield [one, two]


STANDALONE = (Code(0, "standalone", '<x id="1"/>', "xliff1"),)


def real_queries() -> tuple[list[Query], list[Delta]]:
    """Texts with none, the same, other and HTML codes, and what their sessions have confirmed."""
    texts = [*queries(80, 11), *(segment.src for segment in real_segments()[:40:3])]
    kinds = itertools.cycle([None, (), STANDALONE, "html"])
    codes = [
        with_tags(Text(f"<b>{text}</b>"), html_tags).codes if isinstance(kind, str) else kind
        for text, kind in zip(texts, kinds, strict=False)
    ]
    deltas = [Delta() for _ in texts]
    for delta, text in zip(deltas[::3], texts[::3], strict=False):
        delta.add(Segment(text.upper(), "confirmed", id=1))
        delta.add(Segment(f"{text} 7", "confirmed, too", id=2))
    return queries_of(texts, codes, surroundings(texts)), deltas


@pytest.mark.parametrize(
    ("least", "settings", "meant"),
    [
        (100, {}, NO_FILTER),
        (75, {"trust": [Trust(weight=0.9), Trust(3)]}, NO_FILTER),
        (30, {"penalties": Penalties(penalty_codes=3)}, Filter(since="2020")),
        (100, {"selection": Selection("greedy")}, NO_FILTER),
    ],
)
def test_one_lookup_of_a_batch_gives_what_separate_ones_give(
    real: list[MemoryIndex], least: int, settings: dict[str, Any], meant: Filter
) -> None:
    indexes = [index.restricted_to(meant) for index in real]
    texts, deltas = real_queries()
    answers = Retriever(indexes, 4, 0.5, **settings).look_up(
        [Request(query, min_worth=least) for query in texts], deltas
    )
    separately = Retriever([*map(Separately, indexes)], 4, 0.5, **settings)
    for answer, query, delta in zip(answers, texts, deltas, strict=True):
        near = (query.previous, query.next)
        codes = [query.codes]
        (matches,) = separately.search([query.text], [delta], codes, [near])
        (exact,) = separately.exact([query.text], codes, [near], [delta], least)
        assert answer[:2] == (matches, exact)
        assert (exact and exact.agreement) == (answer.exact and answer.exact.agreement)
    assert sum(answer.exact is not None for answer in answers) > 30
    assert sum(bool(answer.matches) for answer in answers) > 50


def test_an_index_is_asked_once_for_a_batch_and_once_for_all_neighbours(
    real: list[MemoryIndex],
) -> None:
    indexes = [*map(Separately, real)]
    texts, deltas = real_queries()
    Retriever(indexes, 4, 0.5).look_up([*map(Request, texts)], deltas)
    assert [index.calls["look_up"] for index in indexes] == [1, 1]
    assert 1 <= indexes[0].calls["find"] <= 2
