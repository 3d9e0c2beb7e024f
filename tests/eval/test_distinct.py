"""A segment that stands several times in a test set: one witness, one of a part, and every time in
the score."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import sacrebleu

from tmnmt.eval.data.distinct import together, unit_means, units_of
from tmnmt.eval.measures.effort import WEIGHTS
from tmnmt.eval.measures.measure import Measured, Output, TestSet
from tmnmt.eval.measures.metrics import count, metrics
from tmnmt.eval.measures.significance import BOOTSTRAP
from tmnmt.eval.measures.slices import BANDS, HALVES, half_of
from tmnmt.segments import Match, Segment

WORDS = [
    "vu",
    "la",
    "proposition",
    "du",
    "conseil",
    "de",
    "mer",
    "et",
    "des",
    "droits",
    "pêche",
    "dans",
    "eaux",
]
TIMES = 60


def texts(n: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [f"article {number} : " + " ".join(draw.choices(WORDS, k=8)) for number in range(n)]


def spoilt(lines: Sequence[str], seed: int = 2) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(word for word in line.split() if draw.random() > 0.3) for line in lines]


def entry(
    references: Sequence[str], systems: dict[str, Sequence[str]], scores: Sequence[float]
) -> dict[str, Any]:
    """What report.json has of a test set whose sources are its references; the first system is the
    baseline."""
    best = [
        Match(Segment(text, text), score, 0) for text, score in zip(references, scores, strict=True)
    ]
    test = TestSet("t", "en", "fr", references, [references], ["d"] * len(references), best)
    outputs = [Output(name, lines) for name, lines in systems.items()]
    return Measured(test, outputs, next(iter(systems)), WEIGHTS).entry()


def test_segments_of_one_source_and_reference_are_one_unit() -> None:
    sources = ["a", "b", "a", "a", "b"]
    one = ["x", "y", "x", "z", "y"]
    other = ["1", "2", "1", "1", "3"]
    assert units_of(sources, [one]).tolist() == [0, 1, 0, 2, 1]
    assert units_of(sources, [one, other]).tolist() == [0, 1, 0, 2, 3]
    assert units_of([], [one]).tolist() == [0, 1, 0, 2, 1]


def test_counts_of_a_unit_are_added_up_or_averaged() -> None:
    counts = np.array([[1.0, 2], [10, 20], [3, 4], [5, 6]])
    units = np.array([4, 1, 4, 7])  # of a part, so not every number is there
    assert together(counts, units).tolist() == [[10, 20], [4, 6], [5, 6]]
    assert unit_means(counts, units).tolist() == [[10, 20], [2, 3], [5, 6]]


def test_a_segment_that_stands_often_is_one_witness_and_all_of_the_score() -> None:
    """Two systems that differ in one segment, which stands 60 times, do not differ by more than
    chance."""
    few = texts(20)
    references = [*few, *[few[0]] * TIMES]
    base = spoilt(references)
    base[20:] = [base[0]] * TIMES
    better = [*base]
    better[0], better[20:] = few[0], [few[0]] * TIMES
    found = entry(references, {"base": base, "better": better}, [0.3] * len(references))
    score = found["systems"][1]["metrics"]["BLEU"]
    assert score["score"] == pytest.approx(sacrebleu.corpus_bleu(better, [references]).score)
    assert found["systems"][1]["gain"]["BLEU"]["difference"] > 10
    p = {
        (v["metric"], v["test"]): v["p"]
        for v in found["systems"][1]["versus"]
        if v["test"] != BOOTSTRAP
    }
    assert len(p) == 6 and min(p.values()) > 0.1
    assert (found["segments"], found["distinct"]) == (20 + TIMES, 20)
    low, high = score["low"], score["high"]
    assert (
        low < score["score"] < high and high - low > 20
    )  # with all 80 as witnesses the interval is some 10 wide


@pytest.mark.parametrize(("units", "has_p"), [(29, False), (30, True)])
def test_the_bootstrap_has_a_p_where_there_are_units_enough_to_draw_from(
    units: int, has_p: bool
) -> None:
    references = texts(units)
    told = entry(
        [*references, references[0]],
        {"base": [*references, ""], "other": ["", *references]},
        [0.0] * (units + 1),
    )
    own = {
        v["test"]: (v["p"], v["p_holm"])
        for v in told["systems"][1]["versus"]
        if v["metric"] == "BLEU"
    }
    assert all((p is not None) == has_p for p in own.pop(BOOTSTRAP))
    assert len(own) == 2 and all(p is not None for pair in own.values() for p in pair)
    note = ["29 distinct segments: no p is given of the paired bootstrap, which wants 30"]
    assert told["warnings"] == ([] if has_p else note)
    assert told["distinct"] == units


def test_a_part_counts_every_segment_once_whatever_was_made_of_it() -> None:
    """The score of a band is the one without repetitions; where these have other outputs, each has
    its share."""
    few = texts(12)
    references = [*few, *[few[-1]] * TIMES]
    base = spoilt(references)
    base[12:] = [base[11]] * TIMES
    mixed = [*base]
    mixed[12:] = [few[-1]] * TIMES  # the first is wrong, the others are right
    scores = [0.3] * 6 + [0.95] * (6 + TIMES)
    found = entry(references, {"base": base, "mixed": mixed}, scores)
    assert [(band["band"], band["segments"], band["share"]) for band in found["bands"]] == [
        ("0.2-0.4", 6, 0.5),
        ("0.9-1", 6, 0.5),
    ]
    assert sum(band["word_share"] for band in found["bands"]) == pytest.approx(1)
    assert sum(band["words"] for band in found["bands"]) == sum(len(text.split()) for text in few)
    without = sacrebleu.corpus_bleu(base[6:12], [few[6:]]).score
    of_base, of_mixed = (system["by_band"][1] for system in found["systems"])
    assert of_base["segments"] == 6 and of_base["metrics"]["BLEU"] == pytest.approx(without)
    bleu = metrics("fr")[0]
    counts = count(bleu, [references[6:]], [mixed[6:]])[0]
    assert of_mixed["metrics"]["BLEU"] == pytest.approx(
        bleu.score(np.concatenate([counts[:5], counts[5:].mean(0, keepdims=True)]))
    )
    for system in found["systems"]:
        assert sum(part["segments"] for part in system["by_length"]) == 12


def test_a_gain_stands_beside_the_share_that_has_it() -> None:
    references = texts(40)
    base = spoilt(references)
    better = [
        line if number < 20 else reference
        for number, (line, reference) in enumerate(zip(base, references, strict=True))
    ]
    found = entry(
        references, {"base": base, "better": better}, [0.45] * 20 + [0.5] * 10 + [1.0] * 10
    )
    assert [(half["band"], half["share"]) for half in found["halves"]] == [
        ("below 0.5", 0.5),
        ("0.5 or better", 0.5),
    ]
    system = found["systems"][1]
    below, above = (half["gain"]["BLEU"] for half in system["by_half"])
    assert below == {"difference": 0, "low": 0, "high": 0}
    assert above["low"] < above["difference"] < above["high"] and above["low"] > 0
    by_band = {part["band"]: part for part in system["by_band"]}
    bleu = {name: by_band["exact"][name]["BLEU"] for name in ("metrics", "gain")}
    of_base = {part["band"]: part["metrics"]["BLEU"] for part in found["systems"][0]["by_band"]}
    assert bleu["metrics"] == pytest.approx(100) and bleu["gain"]["difference"] == pytest.approx(
        100 - of_base["exact"]
    )
    assert (
        set(system["gain"]) >= {"BLEU", "chrF2++", "TER"}
        and system["gain"]["TER"]["difference"] < 0
    )
    assert found["systems"][0]["gain"] is None


def test_halves_part_the_bands_where_matches_begin_to_be_read() -> None:
    assert [band for band in BANDS if half_of(band) == HALVES[0]] == ["0-0.2", "0.2-0.4", "0.4-0.5"]
    assert half_of("exact") == HALVES[1] and half_of("none") == "none"
