"""Segments that differ from a text in numbers, case and punctuation alone are found, wherever they
are kept; the fuzzy search answers as before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import real_segments, same_skeleton
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.errors import MemoryIndexError
from tmnmt.index import MemoryIndex
from tmnmt.index.base import COPIES, Index, IndexQuery, best_of
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.delta_segments import LOOSE
from tmnmt.index.embedded.manifest import read_manifest, write_manifest
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.skeleton import NUMBER, skeleton, skeleton_hash, sorted_hashes, texts_with
from tmnmt.index.substitute import adapt, differences
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens, nfc

PAGE = Segment("Page 3 of 12.", "Page 3 sur 12.")
CLOSE = Segment("Close file", "Fermer le fichier")
OTHERS = [Segment("Close the file", "Fermer le fichier"), Segment("...", "...")]


def scored(query: str, segments: Iterable[Segment]) -> list[Match]:
    """What has the skeleton of the query, by brute force."""
    bones = skeleton(query)
    return best_of(
        [
            Match(segment, fuzzy_score(match_tokens(query), match_tokens(segment.src)), 0)
            for segment in segments
            if bones and skeleton(segment.src) == bones
        ],
        10_000,
    )


def ids(matches: Iterable[Match]) -> list[tuple[int, float]]:
    return [(match.segment.id, match.score) for match in matches]


def without_skeletons(folder: Path) -> None:
    """An index as format 5 had it."""
    manifest = read_manifest(folder)
    name = f"postings-{manifest.postings}/skeletons.npy"
    (manifest.generation_dir(folder) / name).unlink()
    files = {other: about for other, about in manifest.files.items() if other != name}
    write_manifest(replace(manifest, format=5, files=files), folder)


@pytest.fixture
def index(tmp_path: Path) -> MemoryIndex:
    build(tmp_path / "m", [PAGE, CLOSE, *OTHERS], "en", "fr")
    return MemoryIndex.open(tmp_path / "m")


@pytest.mark.parametrize(
    ("text", "bones"),
    [
        ("Page 7 of 31.", ("page", NUMBER, "of", NUMBER)),
        ("PAGE 1,000.5 OF “3”", ("page", NUMBER, "of", NUMBER)),
        ("ÉTÉ", ("été",)),
        ("50 %", (NUMBER, "%")),
        ("第7页。", ("第", NUMBER, "页")),
        ("a + b", ("a", "+", "b")),
        ("", ()),
        ("... (!)", ()),
    ],
)
def test_of_a_text_its_words_and_the_places_of_its_numbers_are_left(
    text: str, bones: tuple[str, ...]
) -> None:
    assert skeleton(text) == bones


@given(st.text())
def test_any_text_has_the_skeleton_of_its_normal_form(text: str) -> None:
    assert skeleton(text) == skeleton(nfc(text))


@given(st.lists(st.lists(st.sampled_from([*"abc.,;17%", "É", "é"]), max_size=6), max_size=30))
def test_many_hashes_at_once_are_those_of_each(texts: list[list[str]]) -> None:
    texts.sort(key=len)
    words = sorted({token for text in texts for token in text})
    tokens = np.array([words.index(token) for text in texts for token in text], np.int32)
    hashes = sorted_hashes(words, tokens, np.array(list(map(len, texts)), np.int32))
    for text in texts:
        bones = skeleton(" ".join(text))
        alike = [at for at, other in enumerate(texts) if skeleton(" ".join(other)) == bones]
        (found,) = texts_with(hashes, [skeleton_hash(bones)])
        assert found.tolist() == (alike if bones else [])


def test_what_differs_in_numbers_case_and_punctuation_is_found(index: MemoryIndex) -> None:
    pages, closes, marks, none = same_skeleton(index, ["Page 7 of 31", "CLOSE FILE!", "...", "x 7"])
    assert [match.segment.src for match in pages] == [PAGE.src]
    assert [match.segment.src for match in closes] == [CLOSE.src]
    assert [match.score for match in closes] == [0.0]
    assert marks == none == []
    assert index.search(["CLOSE FILE!"]) == [[]]  # the fuzzy search says what it said


def test_real_segments_are_found_as_brute_force_finds_them(tmp_path: Path) -> None:
    segments = real_segments()
    build(tmp_path / "real", segments, "en", "fr")
    index = MemoryIndex.open(tmp_path / "real")
    asked = [segment.src.upper() for segment in segments[::23]] + ["Article 1", "1", "(a)"]
    expected = [scored(query, segments) for query in asked]
    few = [row for row, alike in enumerate(expected) if len(alike) <= 4]
    found = same_skeleton(index, asked)
    assert len(few) > 40
    for row, (matches, alike) in enumerate(zip(found, expected, strict=True)):
        assert {*ids(matches)} <= {*ids(alike)} and bool(matches) == bool(alike)
        assert row not in few or ids(matches) == ids(alike)


def test_of_many_those_with_as_many_tokens_come_then_the_newest(tmp_path: Path) -> None:
    dates = [f"20{year}-01-01T00:00:00Z" for year in range(10, 60)]
    old = [Segment(f"Page {n}", f"Page {n}", changed=date) for n, date in enumerate(dates)]
    new = [Segment(f"Page {n}.", f"Page {n}.", changed="2070") for n in range(50)]
    build(tmp_path / "m", [*old, *new], "en", "fr")
    (found,) = same_skeleton(MemoryIndex.open(tmp_path / "m"), ["Page 900"], 3)
    assert [match.segment.changed for match in found] == dates[:-4:-1]


def test_additions_corrections_and_deletions_are_seen_and_compaction_keeps_them(
    index: MemoryIndex,
) -> None:
    (number,) = index.add([Segment("PAGE 9 OF 9", "PAGE 9 SUR 9")])
    assert len(same_skeleton(index, ["page 1 of 2"])[0]) == 2
    index.edit([number], lambda segment: replace(segment, src="Sheet 9 of 9"))
    index.delete([1])
    for opened in (index, MemoryIndex.open(index.path)):
        asked = ["page 1 of 2", "sheet 1 of 2", "close file"]
        assert [len(found) for found in same_skeleton(opened, asked)] == [0, 1, 1]
    index.compact()
    assert [len(found) for found in same_skeleton(index, asked)] == [0, 1, 1]


def test_additions_that_got_postings_of_their_own_are_found(index: MemoryIndex) -> None:
    index.add([Segment(f"Line {n}", f"Ligne {n}") for n in range(LOOSE + 1)])
    index.search(["Line 7"])
    assert len(same_skeleton(index, ["LINE 900"])[0]) == 16


def test_an_index_of_the_former_format_answers_alike_and_keeps_them_once_compacted(
    index: MemoryIndex,
) -> None:
    asked = ["Page 7 of 31", "CLOSE FILE!", "..."]
    expected = same_skeleton(index, asked)
    without_skeletons(index.path)
    former = MemoryIndex.open(index.path)
    assert same_skeleton(former, asked) == expected and read_manifest(index.path).format == 5
    former.add([Segment("New", "Nouveau")])
    former.compact()
    manifest = read_manifest(index.path)
    assert f"postings-{manifest.postings}/skeletons.npy" in manifest.files
    assert same_skeleton(former, asked) == expected


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    build(tmp_path / "m", [], "en", "fr")
    assert same_skeleton(MemoryIndex.open(tmp_path / "m"), ["a", ""]) == [[], []]


def test_hashes_that_name_a_text_that_is_not_there_are_told_as_damage(index: MemoryIndex) -> None:
    path = index.path / "generation-1/postings-1/skeletons.npy"
    hashes = np.load(path)
    np.save(path, hashes | np.uint64(0xFFFF))
    with pytest.raises(MemoryIndexError, match=r"skeletons\.npy: damaged \(names a text"):
        same_skeleton(MemoryIndex.open(index.path), ["Close file"])


def test_an_index_that_can_only_search_has_all_but_skeletons(index: MemoryIndex) -> None:
    class Searched(Index):
        src_lang = tgt_lang = "en"

        def search(self, *texts: Any, **more: Any) -> list[list[Match]]:
            return index.search(*texts, **more)

    index.add([CLOSE] * (COPIES + 1))
    queries = [
        IndexQuery("Close file", 2, 0.5, True, 16),
        IndexQuery("Close the file", 1, 0.3),
        IndexQuery("Page 3 of 12.", same_source=True),
        IndexQuery("Close file", 2, 0.5),
    ]
    expected = [answer._replace(same_skeleton=[], work=None) for answer in index.look_up(queries)]
    assert Searched().look_up(queries) == expected
    assert [[*map(len, answer[:3])] for answer in expected] == [
        [2, COPIES + 2, 0],
        [1, 0, 0],
        [0, 1, 0],
        [2, 0, 0],
    ]


@pytest.mark.parametrize(
    ("query", "src", "tgt", "expected"),
    [
        ("Page 7 of 31", "Page 3 of 12", "Page 3 sur 12", "Page 7 sur 31"),
        ("Close file", "close file", "fermer le fichier", "Fermer le fichier"),
        ("Close file", "Close file", "Fermer", "Fermer"),
        ("Close file.", "Close file", "Fermer", "Fermer."),
        ("Article 2", "Article 1", "Article premier", None),
    ],
)
def test_a_target_is_given_where_it_is_sure(
    query: str, src: str, tgt: str, expected: str | None
) -> None:
    differing = differences(query, src)
    assert differing is not None
    adapted = adapt(query, Segment(src, tgt), differing)
    assert all(adapted[1:]) == (expected is not None)
    assert adapted.tgt == (tgt if expected is None else expected)


def test_capitals_throughout_are_put_in_and_not_sure() -> None:
    differing = differences("CLOSE FILE", "Close file")
    assert differing is not None
    adapted = adapt("CLOSE FILE", Segment("Close file", "Fermer le fichier"), differing)
    assert adapted == ("FERMER LE FICHIER", True, False, True)


@given(st.text("ab1 2.,%Éß", max_size=12), st.text("ab1 2.,%Éß", max_size=12))
def test_texts_differ_in_something_or_are_the_same(one: str, other: str) -> None:
    found = differences(one, other)
    assert (found is not None) == (skeleton(one) == skeleton(other) != ())
    if found is not None:
        assert any(found) == (match_tokens(one) != match_tokens(other))


def test_a_segment_deleted_after_it_got_postings_is_found_no_more(
    index: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.generation.LOOSE", 0)
    with index, MemoryIndex.open(index.path) as other:
        added = other.add([Segment("Page 4 of 5.", "a"), Segment("Page 5 of 5.", "b")])
        assert len(same_skeleton(other, ["Page 9 of 9."])[0]) == 3
        other.delete(added[:1])
        found = same_skeleton(other, ["Page 9 of 9."])[0]
        assert sorted(match.segment.id for match in found) == [1, added[1]]
