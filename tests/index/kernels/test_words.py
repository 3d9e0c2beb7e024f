"""Compiled tokens against those of `match_tokens`, on real text and on text made to be
difficult."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import JRC

from tmnmt.formats import read_memory
from tmnmt.index.kernels.arrays import UNKNOWN, Words, numbered
from tmnmt.index.kernels.tokens import NewWords, encode
from tmnmt.text import match_tokens

ASCII = [chr(i) for i in range(128)]
DIFFICULT = st.lists(
    st.sampled_from([*ASCII, "1.2", "3,4", ",5", "_", "a" * 199, "12." * 70, "ab", "AB"]),
    max_size=30,
)


@numba.njit
def encode_from_python(words, text, begin, end, one_a_line, numbers):  # type: ignore[no-untyped-def]
    return encode(words, text, begin, end, one_a_line, numbers)


def characters(text: str) -> bytes:
    return text.encode()


def vocabulary(tokens: Sequence[str]) -> tuple[list[str], Words]:
    distinct = list(dict.fromkeys(tokens))
    return distinct, numbered(np.frombuffer(characters("\n".join(distinct)), np.uint8))


def encoded(words: Words, written: bytes, one_a_line: bool) -> list[int]:
    """With text before and behind, which is none of this query's."""
    text = np.frombuffer(b"7" + written + b"7a", np.uint8)
    numbers = np.empty(len(written), np.int32)
    return numbers[
        : encode_from_python(words, text, 1, 1 + len(written), one_a_line, numbers)
    ].tolist()


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return [segment.src for segment in read_memory(JRC, "en", "fr")]


def check(text: str, known: Sequence[str]) -> None:
    distinct, words = vocabulary(known)
    number = {token: i for i, token in enumerate(distinct)}
    tokens = match_tokens(text)
    wanted = [number.get(token, UNKNOWN) for token in tokens]
    if text.isascii():
        assert encoded(words, characters(text), False) == wanted
    assert encoded(words, characters("\n".join(tokens)), True) == wanted


def test_real_text_has_the_tokens_that_match_tokens_makes(sources: Sequence[str]) -> None:
    tokens = [token for source in sources for token in match_tokens(source)]
    assert sum(not source.isascii() for source in sources) > 10
    for known in (tokens, tokens[::7], []):
        _, words = vocabulary(known)
        assert len(words.start) == len(set(known)) + 1
    for source in sources[:300]:
        check(source, tokens[::3])


@given(DIFFICULT, st.integers(0, 2))
def test_ascii_text_has_the_tokens_that_match_tokens_makes(pieces: list[str], step: int) -> None:
    text = "".join(pieces)
    check(text, match_tokens(text)[:: step + 1] + match_tokens("".join(reversed(pieces))))


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_finds_its_tokens_by_all_their_bytes(text: str, other: str) -> None:
    check(text, match_tokens(other) + match_tokens(text)[::2])


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 1000, 5000])
def test_every_token_of_a_vocabulary_has_its_number(size: int) -> None:
    distinct, words = vocabulary([f"token{i}" for i in range(size)])
    assert encoded(words, characters("\n".join(distinct)), True) == list(range(size))
    assert encoded(words, b"token token5000x", False) == [UNKNOWN] * 4


def check_new_words(runs: Sequence[Sequence[str]]) -> None:
    words, number = NewWords(), dict[str, int]()
    for texts in runs:
        tokens, lengths = words.encode(texts)
        wanted = [match_tokens(text) for text in texts]
        assert lengths.tolist() == list(map(len, wanted))
        assert tokens.tolist() == [
            number.setdefault(token, len(number)) for some in wanted for token in some
        ]
    assert len(words) == len(number) and words.text().tobytes() == characters("\n".join(number))


def test_new_words_are_numbered_in_order_of_appearance_however_often_there_is_no_more_room(
    sources: Sequence[str],
) -> None:
    check_new_words([sources[i : i + 100] for i in range(0, 1000, 100)])
    check_new_words([[" ".join(f"w{i}" for i in range(5000)), "w1 w5000"], [], ["", "w4999 new"]])


@given(st.lists(st.lists(DIFFICULT.map("".join) | st.text(max_size=30), max_size=4), max_size=4))
def test_new_words_of_any_text_are_those_of_match_tokens(runs: list[list[str]]) -> None:
    check_new_words(runs)
