"""What a search finds is what rapidfuzz finds by brute force: every threshold, every length, any
number of threads."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from brute_force import brute_force, pairs, queries, real_segments
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.errors import MemoryIndexError
from tmnmt.index import MemoryIndex, build
from tmnmt.segments import Segment
from tmnmt.text import match_tokens


@cache
def long_and_short() -> tuple[Segment, ...]:
    """Real segments, and runs of them of up to 1,000 tokens."""
    short, draw = real_segments(), random.Random(3)
    runs = [
        " ".join(segment.src for segment in short[i : i + 60]) for i in range(0, len(short), 25)
    ]
    cut = [" ".join(match_tokens(run)[: draw.randint(100, 1000)]) for run in runs]
    segments = [*short, *(Segment(src, "", changed=draw.choice(["", "2020"])) for src in cut)]
    return tuple(replace(segment, id=i) for i, segment in enumerate(segments, 1))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    path = tmp_path_factory.mktemp("index") / "long"
    build(path, long_and_short(), "en", "fr")
    with MemoryIndex.open(path) as opened:
        yield opened


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 0.55, 0.7, 0.8, 1.0])),
    st.integers(1, 1000),
    st.sampled_from([1, 3, 40, 5000]),
)
def test_search_equals_brute_force_at_every_threshold_and_length(
    index: MemoryIndex, seed: int, threshold: float, length: int, k: int
) -> None:
    draw = random.Random(seed)
    tokens = [
        token for segment in draw.sample(long_and_short(), 1) for token in match_tokens(segment.src)
    ]
    while tokens and len(tokens) < length and draw.random() < 0.8:
        tokens += match_tokens(draw.choice(long_and_short()).src)
    for _ in range(draw.choice([0, 1, 5, 50])):
        tokens.insert(draw.randrange(len(tokens) + 1), draw.choice(["the", ",", "unheard"]))
    query = " ".join(tokens[:length])
    assert pairs(index.search([query], k, threshold)[0]) == brute_force(
        query, long_and_short(), k, threshold
    )


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_the_score_is_symmetric_and_1_only_for_equal_token_sequences(
    index: MemoryIndex, seed: int
) -> None:
    one, other = random.Random(seed).sample(
        [s.src for s in real_segments() if match_tokens(s.src)], 2
    )
    there, back = (
        {m.segment.src: m.score for m in index.search([x], 5000, 0.0)[0]} for x in (one, other)
    )
    assert there[other] == back[one]
    assert all(
        (score == 1) == (match_tokens(src) == match_tokens(one)) for src, score in there.items()
    )


def test_threads_do_not_change_the_answers(
    index: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = queries(120, 17)
    monkeypatch.setattr("tmnmt.index.embedded.search.QUERIES_A_CALL", 5)
    monkeypatch.setattr(index, "threads", 1)
    alone = [index.search([query], 4, 0.4)[0] for query in batch]
    for threads in (1, 16, None):
        monkeypatch.setattr(index, "threads", threads)
        assert index.search(batch, 4, 0.4) == alone


def test_opening_reads_no_postings_and_compiles_nothing(index: MemoryIndex) -> None:
    code = (
        "import sys, pathlib, tmnmt.index.embedded.index as m; "
        "m.MemoryIndex.open(pathlib.Path(sys.argv[1])).close()"
    )
    code += "; print([name for name in ('numba', 'torch') if name in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code, str(index.path)], capture_output=True, text=True, check=True
    )
    assert out.stdout == "[]\n"


def test_postings_that_are_no_arrays_are_one_clear_error(tmp_path: Path) -> None:
    build(tmp_path / "index", real_segments()[:5], "en", "fr")
    part = tmp_path / "index/generation-1/postings-1/columns.npy"
    part.write_bytes(b"x" * part.stat().st_size)
    with pytest.raises(MemoryIndexError, match=r"columns\.npy: damaged"):
        MemoryIndex.open(tmp_path / "index")


def test_an_addition_whose_score_equals_the_threshold_is_found(tmp_path: Path) -> None:
    build(tmp_path / "index", [], "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        index.add([Segment("Creation and provision of information", "")])
        assert [
            m.score for m in index.search(["Studies and collection of information"], 3, 0.6)[0]
        ] == [0.6]
        assert index.search(["Studies and collection of information"], 3, 0.6005) == [[]]
