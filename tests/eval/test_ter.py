"""TER with the compiled edit distance against sacrebleu's own."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from places import HELD_OUT
from sacrebleu.metrics import lib_ter

from tmnmt.eval.measures.ter import BeamEditDistance, edits
from tmnmt.formats import read_memory

TEST = HELD_OUT / "jrc-acquis.test.en-fr.tsv.gz"
words = st.lists(st.sampled_from("abcdefg"), max_size=12)


@given(words, words)
@settings(max_examples=300)
def test_edits_and_shifts_are_those_of_sacrebleu(
    hypothesis: list[str], reference: list[str]
) -> None:
    assert edits(hypothesis, reference) == lib_ter.translation_edit_rate(hypothesis, reference)[0]


@given(st.lists(st.sampled_from("ab"), max_size=150), st.lists(st.sampled_from("ab"), max_size=150))
@settings(max_examples=60)
def test_distance_and_trace_are_those_of_sacrebleu_far_from_the_diagonal_too(
    left: list[str], right: list[str]
) -> None:
    assert BeamEditDistance(right)(left) == lib_ter.BeamEditDistance(right)(left)


def test_real_segments_against_their_neighbours_and_shuffled() -> None:
    rng = random.Random(1)
    texts = [segment.tgt.split() for segment in read_memory(TEST, "en", "fr")]
    chosen = [number for number in range(0, len(texts) - 1, 9) if 3 <= len(texts[number]) <= 40]
    for number in chosen:
        reference = texts[number]
        half = len(reference) // 2
        for hypothesis in (
            texts[number + 1][:40],
            reference[half:] + reference[:half],
            rng.sample(reference, len(reference)),
        ):
            assert (
                edits(hypothesis, reference)
                == lib_ter.translation_edit_rate(hypothesis, reference)[0]
            )
    assert len(chosen) > 50
