"""The index against brute force on real segments; additions; what survives."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from brute_force import DATES, brute_force, pairs, queries, real_segments
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from tmnmt.errors import LockedError, MemoryIndexError, UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.embedded.lock import writing
from tmnmt.index.opening import open_memory
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens, normalise

THRESHOLDS = (0.0, 0.3, 0.5, 0.55, 0.7, 0.8, 1.0)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    path = tmp_path_factory.mktemp("index") / "real"
    build(path, real_segments(), "en", "fr")
    with MemoryIndex.open(path) as opened:
        yield opened


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_search_equals_brute_force_ties_included(index: MemoryIndex, threshold: float) -> None:
    draw = random.Random(threshold)
    for query in queries(20, round(threshold * 100)):
        k = draw.choice([1, 2, 5, 50, 3000])
        assert pairs(index.search([query], k, threshold)[0]) == brute_force(
            query, real_segments(), k, threshold
        )


@pytest.mark.parametrize("query", ["", " \n", "zzzz", "the " * 700, "Article 1", "\u200b\u0007"])
def test_odd_queries_equal_brute_force(index: MemoryIndex, query: str) -> None:
    for threshold in (0.0, 0.5):
        assert pairs(index.search([query], 9, threshold)[0]) == brute_force(
            query, real_segments(), 9, threshold
        )


def test_matches_carry_the_whole_segment_and_the_edits(index: MemoryIndex) -> None:
    segment = real_segments()[4]
    (matches,) = index.search([segment.src + " indeed"], 1)
    tokens = len(match_tokens(segment.src)) + 1
    assert matches == [Match(segment, 1 - 1 / tokens, 1)]


def test_a_batch_gives_what_its_queries_give_alone(index: MemoryIndex) -> None:
    batch = queries(30, 7) * 2
    assert index.search(batch, 4, 0.4) == [index.search([query], 4, 0.4)[0] for query in batch]
    assert index.search([]) == []


def test_leave_one_out_leaves_out_every_duplicate_of_the_source(index: MemoryIndex) -> None:
    for query in [segment.src for segment in real_segments()[::40]]:
        others = [
            segment for segment in real_segments() if normalise(segment.src) != normalise(query)
        ]
        found = index.search([query], 5, 0.4, exclude_sources=True)[0]
        assert pairs(found) == brute_force(query, others, 5, 0.4)


def test_a_document_can_be_left_out_for_each_query(index: MemoryIndex) -> None:
    asked = [segment for segment in real_segments()[::40] if segment.document]
    documents = [segment.document for segment in asked[:-1]] + [""]
    found = index.search([segment.src for segment in asked], 5, 0.4, exclude_documents=documents)
    for segment, document, matches in zip(asked, documents, found, strict=True):
        others = [other for other in real_segments() if not document or other.document != document]
        assert pairs(matches) == brute_force(segment.src, others, 5, 0.4)


@pytest.mark.parametrize(
    ("k", "threshold", "documents"),
    [(0, 0.5, None), (1, -0.1, None), (1, 1.1, None), (1, float("nan"), None), (1, 1, ["a"])],
)
def test_wrong_arguments_are_usage_errors(
    index: MemoryIndex, k: int, threshold: float, documents: list[str] | None
) -> None:
    with pytest.raises(UsageError):
        index.search(["a", "b"], k, threshold, exclude_documents=documents)


SOURCES = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd"), max_size=6).map(" ".join), st.sampled_from(DATES)),
    max_size=12,
)


@settings(max_examples=25)
@given(
    SOURCES,
    SOURCES,
    st.randoms(use_true_random=False),
    st.sampled_from(THRESHOLDS),
    st.integers(1, 30),
)
def test_order_of_insertion_and_the_way_in_do_not_matter(
    built: list[tuple[str, str]],
    added: list[tuple[str, str]],
    shuffle: random.Random,
    threshold: float,
    k: int,
) -> None:
    segments = [
        Segment(src, str(i), changed=changed or "2019")
        for i, (src, changed) in enumerate(built + added)
    ]
    with tempfile.TemporaryDirectory() as name:
        first_path, second_path = Path(name) / "first", Path(name) / "second"
        build(first_path, segments[: len(built)], "en", "fr")
        build(second_path, shuffle.sample(segments, len(segments)), "en", "fr")
        with MemoryIndex.open(first_path) as first, MemoryIndex.open(second_path) as second:
            first.add(segments[len(built) :])
            numbered = [replace(segment, id=i) for i, segment in enumerate(segments, 1)]
            for query in ["a b c", "d", "a a b b", "c b a d x"]:
                one = first.search([query], k, threshold)[0]
                other = second.search([query], k, threshold)[0]
                assert pairs(one) == brute_force(query, numbered, k, threshold)
                assert [(m.score, m.segment.changed) for m in one] == [
                    (m.score, m.segment.changed) for m in other
                ]


def test_an_empty_index_can_be_filled(tmp_path: Path) -> None:
    build(tmp_path / "index", [], "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        assert index.search(["a"], 5, 0.0) == [[]]
        index.add([Segment("a b", "x")])
        assert [match.segment.tgt for match in index.search(["a"], 5, 0.0)[0]] == ["x"]


def test_additions_are_found_at_once_by_everybody_and_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "index"
    build(path, real_segments()[:50], "en", "fr")
    with MemoryIndex.open(path) as writer, MemoryIndex.open(path) as reader:
        assert writer.add([Segment("a wholly new sentence", "neuf"), Segment("!", "")]) == [51, 52]
        with MemoryIndex.open(path) as later:
            for index in (writer, reader, later):
                ((match,),) = index.search(["a wholly new sentence indeed"], 5, 0.5)
                assert (match.segment.id, match.score, match.edits) == (51, 0.8, 1)
                assert match.segment.changed.endswith("Z") and len(index) == 52
        assert reader.add([Segment("a wholly new sentence", "nouveau")]) == [53]
        found = writer.search(["a wholly new sentence"], 5, 0.5, exclude_documents=[""])[0]
        assert {match.segment.tgt for match in found} == {"neuf", "nouveau"}
        assert writer.search(["a wholly new sentence"], 5, 0.9, exclude_sources=True) == [[]]


def test_two_writers_the_second_is_told_who_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    build(path, real_segments()[:5], "en", "fr")
    monkeypatch.setattr("tmnmt.index.embedded.index.SECONDS_TO_WAIT", 0.0)
    with MemoryIndex.open(path) as index:
        with writing(path, 0.0):
            with pytest.raises(LockedError, match=str(os.getpid())):
                index.add([Segment("a", "b")])
            with pytest.raises(LockedError, match=str(os.getpid())):
                build(path, [], "en", "fr", force=True)
            assert index.search(["Article 1"]) is not None
        assert index.add([Segment("a", "b")]) == [6]


def _add_twenty(path: Path, name: str) -> None:
    with MemoryIndex.open(path) as index:
        for i in range(20):
            index.add([Segment(f"{name} {i}", "")])


def test_additions_of_two_processes_are_all_there(tmp_path: Path) -> None:
    build(tmp_path / "index", [], "en", "fr")
    spawn = multiprocessing.get_context("spawn")
    writers = [
        spawn.Process(target=_add_twenty, args=(tmp_path / "index", name))
        for name in ("one", "two")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with MemoryIndex.open(tmp_path / "index") as index:
        sources = {match.segment.src for match in index.search(["x"], 100, 0.0)[0]}
    assert sources == {f"{name} {i}" for name in ("one", "two") for i in range(20)}


def test_an_index_that_was_replaced_is_followed_by_who_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "index"
    build(path, [Segment("old one", "x")], "en", "fr")
    with MemoryIndex.open(path) as index, MemoryIndex.open(path) as other:
        build(path, [Segment("new one", "y")], "en", "fr", force=True)
        assert [match.segment.tgt for match in index.search(["new one"], 1, 1.0)[0]] == ["y"]
        index.add([Segment("added one", "z")])
        assert {match.segment.tgt for match in other.search(["one"], 5, 0.5)[0]} == {"y", "z"}
        build(path, [], "fr", "en", force=True)
        with pytest.raises(MemoryIndexError, match="from fr to en; open it again"):
            index.search(["new one"])


def test_building_over_an_index_needs_force_and_leaves_one_generation(tmp_path: Path) -> None:
    path = tmp_path / "index"
    build(path, real_segments()[:5], "en", "fr")
    (path / "generation-7").mkdir()  # what a killed build left
    with pytest.raises(UsageError, match="--force"):
        build(path, [], "en", "fr")
    assert build(path, real_segments()[:9], "en", "fr", force=True).segments == 9
    assert [p.name for p in path.glob("generation-*")] == ["generation-2"]


@pytest.mark.parametrize(
    ("error", "raised", "named"),
    [
        (OSError("disk full"), MemoryIndexError, "as it was: disk full"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    ],
)
def test_a_failing_build_leaves_what_was_there(
    tmp_path: Path, error: BaseException, raised: type[BaseException], named: str
) -> None:
    def failing() -> Iterator[Segment]:
        yield from real_segments() * 3
        raise error

    def fail() -> None:
        with pytest.raises(raised, match=named):
            build(path, failing(), "en", "fr", force=True)

    path = tmp_path / "made" / "index"
    fail()
    assert not path.exists() and path.parent.exists()
    path.mkdir()
    (path / "generation-3").mkdir()  # what a killed first build left
    fail()
    assert not list(path.glob("generation-*"))
    build(path, real_segments()[:5], "en", "fr")
    fail()
    assert [p.name for p in path.glob("generation-*")] == ["generation-1"]
    with MemoryIndex.open(path) as index:
        assert len(index) == 5


def test_what_a_killed_writer_left_is_removed_by_the_next_change(tmp_path: Path) -> None:
    build(tmp_path, real_segments()[:5], "en", "fr")
    (tmp_path / "generation-2" / "postings-1").mkdir(parents=True)
    (tmp_path / "manifest.json.new").touch()
    with MemoryIndex.open(tmp_path) as index:
        index.add([Segment("a", "b")])
    assert {p.name for p in tmp_path.iterdir()} == {".lock", "generation-1", "manifest.json"}


def test_an_index_that_lost_its_manifest_is_replaced_only_by_force(tmp_path: Path) -> None:
    build(tmp_path, real_segments()[:5], "en", "fr")
    with MemoryIndex.open(tmp_path) as index:
        index.add([Segment("a", "b")])
    manifest = tmp_path / "manifest.json"
    whole = manifest.read_bytes()
    manifest.unlink()
    said = r"half an index.*generation-1/changes.log holds pairs that were confirmed"
    with pytest.raises(MemoryIndexError, match=said):
        MemoryIndex.open(tmp_path)
    with pytest.raises(UsageError, match=f"{said}.*--force"):
        build(tmp_path, real_segments()[:3], "en", "fr")
    manifest.write_bytes(whole)
    with MemoryIndex.open(tmp_path) as index:
        assert len(index) == 6
    manifest.unlink()
    assert build(tmp_path, real_segments()[:3], "en", "fr", force=True).segments == 3


def test_a_memory_whose_indexing_was_killed_is_indexed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    memory = tmp_path / "m.tsv"
    memory.write_text("en\tfr\na\tb\n", encoding="utf-8")
    open_memory(memory, "en", "fr").close()
    for manifest in tmp_path.rglob("manifest.json"):
        manifest.unlink()
    with open_memory(memory, "en", "fr") as index:
        assert len(index) == 1


@pytest.fixture
def small(tmp_path: Path) -> Path:
    build(tmp_path / "index", real_segments()[:20], "en", "fr")
    return tmp_path / "index"


def _edit_manifest(path: Path, **changes: object) -> None:
    manifest = path / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda path: (path / "manifest.json").unlink(), "half an index"),
        (lambda path: (path / "manifest.json").write_text("{"), "manifest.json: damaged"),
        (lambda path: (path / "manifest.json").write_text("[]"), "not the manifest"),
        (lambda path: _edit_manifest(path, format=99), "format 99"),
        (lambda path: _edit_manifest(path, tokenisation="other"), "other"),
        (lambda path: _edit_manifest(path, files=None), "damaged"),
        (lambda path: _edit_manifest(path, segments=7), r"damaged \(checksum\)"),
        (
            lambda path: (path / "generation-1/postings-1/tokens.npy").unlink(),
            "tokens.npy: is missing",
        ),
        (
            lambda path: (path / "generation-1/postings-1/tokens.npy").write_bytes(b"x"),
            "1 byte instead of",
        ),
        (lambda path: (path / "generation-1/segments.db").unlink(), "segments.db: is missing"),
    ],
)
def test_a_damaged_index_is_one_clear_error(small: Path, damage: object, named: str) -> None:
    assert callable(damage)
    damage(small)
    with pytest.raises(MemoryIndexError, match=named):
        MemoryIndex.open(small)


def test_a_manifest_that_may_not_be_read_is_not_called_damaged(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(
        MemoryIndexError, match=r"manifest\.json: cannot be read: Permission denied$"
    ):
        MemoryIndex.open(small)


def test_what_is_no_index_is_one_clear_error(tmp_path: Path, small: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for name, named in [
        ("nowhere", "no such index"),
        ("file", "this is a file"),
        ("folder", "not an index"),
    ]:
        with pytest.raises(MemoryIndexError, match=named):
            MemoryIndex.open(tmp_path / name)
    with pytest.raises(MemoryIndexError, match="from en to fr, not en to de"):
        MemoryIndex.open(small, "en", "de")
    (tmp_path / "folder" / "thesis.doc").write_text("x")
    with pytest.raises(MemoryIndexError, match=r"thesis\.doc"):
        build(tmp_path / "folder", [], "en", "fr", force=True)


def test_the_brute_force_here_is_that_of_rapidfuzz_itself() -> None:
    sources = [match_tokens(segment.src) for segment in real_segments()]
    query = match_tokens(queries(1, 11)[0])
    found = process.extract(
        query, sources, scorer=Levenshtein.normalized_similarity, score_cutoff=0.3, limit=None
    )
    ours = brute_force(" ".join(query), real_segments(), 9999, 0.3)
    assert sorted(score for _, score, _ in found) == pytest.approx(
        sorted(score for _, score in ours)
    )
