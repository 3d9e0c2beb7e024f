"""Sentence BLEU by hand and against sacrebleu."""

from __future__ import annotations

import math

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.papers.sentence_bleu import SentenceBleu, sentence_bleu

TOKENS = st.lists(st.sampled_from("abc"), min_size=1, max_size=9)


def test_bleu_by_hand() -> None:
    # 3/4, (2 + 1)/(3 + 1), (1 + 1)/(2 + 1), (0 + 1)/(1 + 1)
    assert sentence_bleu(["a", "b", "c", "d"], ["a", "b", "c", "e"]) == pytest.approx(
        (3 / 4 * 3 / 4 * 2 / 3 / 2) ** 0.25
    )
    assert sentence_bleu(["a", "b"], ["a", "b", "c", "e"]) == pytest.approx(
        math.exp(1 - 4 / 2)
    )  # too short, else right
    assert sentence_bleu(["a", "a"], ["a", "b"]) == pytest.approx(
        (1 / 2 * 1 / 2) ** 0.25
    )  # the second a is clipped
    assert sentence_bleu(["a"], ["a"]) == 1
    assert sentence_bleu(["a"], ["b"]) == sentence_bleu([], ["b"]) == sentence_bleu(["a"], []) == 0


@given(TOKENS, TOKENS)
def test_bleu_is_what_sacrebleu_computes(tokens: list[str], reference: list[str]) -> None:
    theirs = sacrebleu.sentence_bleu(
        " ".join(tokens),
        [" ".join(reference)],
        smooth_method="add-k",
        smooth_value=1,
        tokenize="none",
        use_effective_order=False,
    )
    assert sentence_bleu(tokens, reference) == pytest.approx(theirs.score / 100, abs=1e-9)


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=1, max_size=4))
def test_bleu_among_texts_is_that_of_every_two(texts: list[list[str]]) -> None:
    bleu = SentenceBleu(texts)
    for number, reference in enumerate(texts):
        assert bleu.scores(number).tolist() == [
            sentence_bleu(tokens, reference) for tokens in texts
        ]
