"""The segments that cover a text's rare phrases, held to a plain loop over all segments."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import Index, accept_always
from tmnmt.index.embedded import fragments
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

WORDS = ["of", "the", "a", "in", "to"] * 12 + [f"w{number}" for number in range(60)]
TIES = 1e-9


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    made = [" ".join(chance.choices(WORDS, k=chance.randint(1, 14))) for _ in range(count)]
    for at in range(0, count, 3):  # parts of others
        words = made[chance.randrange(count)].split()
        made[at] = " ".join([*words[2:8], *chance.choices(WORDS, k=3)])
    return made


def phrases(words: list[str], places: dict[str, int], rare: int) -> set[tuple[str, ...]]:
    """All that `words` has in a row, 2 to 5 of them, with a rare one."""
    return {
        tuple(words[begin : begin + n])
        for n in range(2, 6)
        for begin in range(len(words) - n + 1)
        if any(0 < places.get(word, 0) <= rare for word in words[begin : begin + n])
    }


def gains(text: str, sources: list[str], rare: int, taken: list[str]) -> dict[str, float]:
    """What every source would add to those that were taken."""
    tokens = {source: match_tokens(source) for source in sources}
    places: dict[str, int] = {}
    for words in tokens.values():
        for word in words:
            places[word] = places.get(word, 0) + 1
    own = {source: phrases(words, places, rare) for source, words in tokens.items()}
    asked = match_tokens(text)
    counted = {
        (begin, n): sum(tuple(asked[begin : begin + n]) in of_it for of_it in own.values())
        for n in range(2, 6)
        for begin in range(len(asked) - n + 1)
        if tuple(asked[begin : begin + n]) in phrases(asked, places, rare)
    }
    covered = {
        place
        for place in counted
        for source in taken
        if tuple(asked[place[0] : sum(place)]) in own[source]
    }
    return {
        source: sum(
            n * math.log(len(sources) / df)
            for (begin, n), df in counted.items()
            if df and (begin, n) not in covered and tuple(asked[begin : begin + n]) in own[source]
        )
        / math.sqrt(len(tokens[source]))
        for source in sources
    }


@pytest.mark.parametrize("seed", range(4))
def test_every_segment_that_is_taken_covers_most_of_what_is_left(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare = 12
    monkeypatch.setattr(fragments, "RARE", rare)
    sources = sorted(set(sentences(150, seed)))
    build(tmp_path / "index", [Segment(source, source.upper()) for source in sources], "en", "fr")
    index = MemoryIndex.open(tmp_path / "index")
    covered = 0
    for text in sentences(12, seed + 100):
        matches = index.covering(text, 5)
        taken: list[str] = []
        for match in matches:
            of_each = gains(text, sources, rare, taken)
            assert of_each[match.segment.src] >= max(of_each.values()) - TIES > 0
            assert match.score == fuzzy_score(match_tokens(text), match_tokens(match.segment.src))
            taken.append(match.segment.src)
        if len(matches) < 5:
            assert max(gains(text, sources, rare, taken).values()) < TIES
        covered += len(matches)
    assert covered > 20


def test_what_is_deleted_not_accepted_or_in_another_index_is_not_taken(tmp_path: Path) -> None:
    texts = [f"the purple owl of house {number} sleeps" for number in range(6)]
    segments = [Segment(text, text, document=str(at % 2)) for at, text in enumerate(texts)]
    fillers = [Segment(text, text) for text in sentences(200, 9)]
    build(tmp_path / "index", [*segments, *fillers], "en", "fr")
    index = MemoryIndex.open(tmp_path / "index")
    asked = "a purple owl of a kind"

    def taken(accepts: Callable[[int], bool] = accept_always) -> set[int]:
        return {match.segment.id for match in index.covering(asked, 3, accepts)}

    (first, *_) = taken()
    assert first <= len(texts)
    assert first not in taken(lambda number: number != first)
    index.delete([first])
    assert first not in taken() and taken()
    assert index.covering("nothing of this is there", 3) == []
    assert index.covering("", 3) == []
    assert Index.covering(index, asked, 3) == []  # of an index that has `search` alone


def test_damaged_positions_are_an_error(tmp_path: Path) -> None:
    build(tmp_path / "index", [Segment(text, text) for text in sentences(40, 3)], "en", "fr")
    (path,) = tmp_path.glob("index/generation-*/*/positions.npy")
    content = bytearray(path.read_bytes())
    content[-400:] = b"\x7f" * 400
    path.write_bytes(bytes(content))
    from tmnmt.errors import MemoryIndexError

    with (
        pytest.raises(MemoryIndexError, match=r"positions\.npy"),
        MemoryIndex.open(tmp_path / "index") as index,
    ):
        for number in range(60):
            index.covering(f"of w{number} the w{number} a", 3)
