"""An index without a folder answers as one in a folder does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from brute_force import brute_force, pairs, queries, real_segments

from tmnmt.errors import UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import IndexQuery, dated
from tmnmt.index.embedded import in_memory
from tmnmt.index.embedded.in_memory import InMemoryIndex
from tmnmt.index.match_value import Query, neighbours
from tmnmt.segments import Segment


@pytest.mark.parametrize("is_settled", [False, True])
def test_it_answers_as_brute_force_and_as_an_index_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_settled: bool
) -> None:
    monkeypatch.setattr(in_memory, "LOOSE", 200)  # so that there are parts and latest additions
    segments = [replace(s, changed=s.changed or "2019") for s in real_segments()[:1500]]
    build(tmp_path / "index", segments, "en", "fr")
    index = InMemoryIndex("en", "fr")
    assert index.add(segments) == [segment.id for segment in segments]
    if is_settled:
        index.settle()
    texts = queries(30, 3)
    matches = index.search(texts, 3, 0.5)
    assert [pairs(of_text) for of_text in matches] == [
        brute_force(text, segments, 3, 0.5) for text in texts
    ]
    searches = [IndexQuery(text, 4, 0.5, True, 4) for text in texts]
    with MemoryIndex.open(tmp_path / "index") as folder:
        answers = folder.look_up(searches)
        assert [answer.similar for answer in index.look_up(searches)] == [
            [
                replace(match, segment=index.find([match.segment.id])[match.segment.id])
                for match in a.similar
            ]
            for a in answers
        ]
        documents = [segment.document for segment in segments[:5]]
        sources = [segment.src for segment in segments[:5]]
        left_out = index.search(sources, 3, 0.4, exclude_documents=documents)
        expected = folder.search(sources, 3, 0.4, exclude_documents=documents)
        assert [pairs(of_text) for of_text in left_out] == [pairs(of_text) for of_text in expected]
        if is_settled:
            ids = [[m.segment.id for m in side.covering(texts[0], 4)] for side in (index, folder)]
            assert ids[0] == ids[1] != []


def test_segments_are_found_by_their_ids_with_their_neighbours() -> None:
    index = InMemoryIndex()
    index.add([Segment("One", "Un", "d", 0), Segment("Two", "Deux", "d", 1)])
    (match,) = index.search(["Two"], 1, 1.0)[0]
    places = neighbours(index, [Query("Two", None, "One", "")], [[match]])
    assert places is not None and places.find([1])[1].src == "One"
    assert len(index) == 2 and index.find([3]) == {}


def test_what_cannot_be_searched_is_refused() -> None:
    with pytest.raises(UsageError, match="k is 0"):
        InMemoryIndex().search(["a"], 0)


def test_what_is_built_at_once_is_what_is_added_and_settled() -> None:
    segments = dated(real_segments()[:300])  # once, whenever the clock goes on
    built, grown = InMemoryIndex.build(segments), InMemoryIndex()
    grown.add(segments)
    grown.settle()
    texts = queries(10, 3)
    assert len(built) == len(grown) == 300 and built.search(texts) == grown.search(texts)
    assert len(InMemoryIndex.build([])) == 0 and InMemoryIndex.build([]).search(["One"]) == [[]]
