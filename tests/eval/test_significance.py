"""Metrics and significance equal sacrebleu, scipy and statsmodels; equal systems are seldom called
different."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from places import JRC
from sacrebleu.significance import PairedTest, Result

from tmnmt.eval.measures.metrics import Metric, bleu_of, count, metrics, sentence_bleu
from tmnmt.eval.measures.significance import (
    Scored,
    approximate_randomisation,
    binomial_two_sided,
    holm,
    paired_bootstrap,
    sign_test,
    signs,
)
from tmnmt.formats import read_memory

COMMAND_LINE = {"BLEU": "bleu", "chrF2++": "chrf", "TER": "ter"}


@pytest.fixture(scope="module")
def references() -> list[str]:
    return [segment.tgt for segment in read_memory(JRC, "en", "fr")][:80]


def perturbed(lines: list[str], seed: int, share: float = 0.2) -> list[str]:
    """Lines with words left out and words changed."""
    draw = random.Random(seed)
    return [
        " ".join(w if draw.random() > share else draw.choice(["", "mot"]) for w in line.split())
        for line in lines
    ]


def scored(metric: Metric, references: list[list[str]], hypotheses: list[str]) -> Scored:
    return Scored(metric, count(metric, references, [hypotheses])[0])


@pytest.mark.parametrize("several", [False, True])
def test_scores_equal_the_command_line_of_sacrebleu(
    several: bool, references: list[str], tmp_path: Path
) -> None:
    refs = [references, perturbed(references, 9, 0.1)] if several else [references]
    refs = [lines[:40] for lines in refs]
    hypotheses = perturbed(refs[0], 1)
    for name, lines in (("hyp", hypotheses), *((f"ref{i}", ref) for i, ref in enumerate(refs))):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = [str(tmp_path / f"ref{i}") for i in range(len(refs))]
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        *files,
        "-i",
        str(tmp_path / "hyp"),
        "-b",
        "-w",
        "6",
    ]
    command += ["-m", *COMMAND_LINE.values(), "--chrf-word-order", "2"]
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"NO_COLOR": "1"}
    )
    theirs = [
        float(number)
        for number in told.stdout.replace("[", " ").replace("]", " ").replace(",", " ").split()
    ]
    ours = [scored(metric, refs, hypotheses).score for metric in metrics("fr") if metric.is_main]
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert all(10 < score < 90 for score in ours)


def test_bleu_of_the_papers_is_lower_cased_or_over_tokens_without_smoothing(
    references: list[str],
) -> None:
    from tmnmt.text import match_tokens

    hypotheses = [line.title() for line in perturbed(references, 2)]
    lower, tokenised = metrics("fr")[3:]
    assert scored(lower, [references], hypotheses).score == pytest.approx(
        sacrebleu.corpus_bleu(hypotheses, [references], lowercase=True).score
    )
    tokens = [
        [" ".join(match_tokens(line)) for line in lines] for lines in (hypotheses, references)
    ]
    theirs = sacrebleu.corpus_bleu(
        tokens[0], [tokens[1]], tokenize="none", smooth_method="none", force=True
    )
    assert scored(tokenised, [references], hypotheses).score == pytest.approx(theirs.score)
    assert "case:lc" in lower.signature(1) and "tok:match-tokens" in tokenised.signature(1)


@pytest.mark.parametrize(
    "hypothesis", ["un mot", "", "x", "le conseil de la haute mer", "vu la mer du conseil"]
)
def test_bleu_of_one_segment_equals_sacrebleu(hypothesis: str) -> None:
    reference = "vu la proposition du conseil de la mer"
    counts = count(metrics("fr")[0], [[reference]], [[hypothesis]])[0]
    theirs = sacrebleu.BLEU(effective_order=True).sentence_score(hypothesis, [reference]).score
    assert sentence_bleu(counts)[0] == pytest.approx(theirs)
    whole = sacrebleu.BLEU().corpus_score([hypothesis], [[reference]]).score
    assert bleu_of(counts)[0] == pytest.approx(whole)


def test_p_values_and_intervals_equal_those_of_sacrebleu(references: list[str]) -> None:
    systems: list[tuple[str, Sequence[str]]] = [
        ("a", perturbed(references, 3)),
        ("b", perturbed(references, 4, 0.22)),
    ]
    used = {metric.name: metric for metric in metrics("fr")[:3]}
    scorers = {name: metric.scorer for name, metric in used.items()}
    for kind in ("bs", "ar"):
        _, theirs = PairedTest(systems, scorers, [references], test_type=kind, n_samples=1000)()
        for name, metric in used.items():
            first, second = (scored(metric, [references], list(lines)) for _, lines in systems)
            p = (
                approximate_randomisation(first, second, 1000)
                if kind == "ar"
                else paired_bootstrap(first, second)
            )
            result = theirs[name][1]
            assert isinstance(result, Result) and p is not None and result.p_value is not None
            if (
                kind == "ar" and name == "TER"
            ):  # whole edits: many samples are as large as the real difference
                assert p > result.p_value
                continue
            if kind == "bs":  # theirs has one tail of two
                low, high = second.interval()
                assert (high - low) / 2 == pytest.approx(result.ci, abs=1e-4)
                apart = np.abs(second.resampled - first.resampled)
                real = abs(second.score - first.score)
                one_tail = (np.sum(apart - apart.mean() > real) + 1) / 1001
                assert one_tail == pytest.approx(result.p_value, abs=0.0021)
                assert one_tail < p
                continue
            assert p == pytest.approx(
                result.p_value, abs=0.0021
            )  # they add in 32 bits: two samples may change sides
            assert 0.002 < p < 0.99


def test_sign_test_counts_the_change_of_corpus_bleu_one_sentence_at_a_time(
    references: list[str],
) -> None:
    few = references[:40]
    baseline, system = perturbed(few, 5), perturbed(few, 6)
    system[:10] = baseline[:10]  # ties
    whole = sacrebleu.corpus_bleu(baseline, [few]).score
    replaced = [[*baseline[:i], system[i], *baseline[i + 1 :]] for i in range(len(few))]
    changes = [sacrebleu.corpus_bleu(lines, [few]).score - whole for lines in replaced]
    expected = sum(c > 1e-9 for c in changes), sum(c < -1e-9 for c in changes)
    pair = [scored(metrics("fr")[0], [few], lines) for lines in (baseline, system)]
    assert signs(*pair) == expected and 0 < sum(expected) <= 30
    assert sign_test(*pair) == binomial_two_sided(min(expected), sum(expected))


# scipy.stats.binomtest(fewer, n).pvalue of scipy 1.17.1
@pytest.mark.parametrize(
    ("fewer", "n", "p"),
    [
        (3, 20, 0.0025768280029296875),
        (40, 100, 0.05688793364098089),
        (450, 1000, 0.0017305360849763027),
        (5, 10, 1.0),
        (0, 7, 0.015625),
        (49000, 100000, 2.5887160383468943e-10),
    ],
)
def test_sign_test_equals_scipy(fewer: int, n: int, p: float) -> None:
    assert binomial_two_sided(fewer, n) == pytest.approx(p, rel=1e-7)


def test_holm_equals_statsmodels() -> None:
    # statsmodels.stats.multitest.multipletests(p, method="holm")[1] of statsmodels 0.15.0
    assert holm([0.01, 0.04, 0.03, 0.005, 0.04, 0.9]) == pytest.approx(
        [0.05, 0.12, 0.12, 0.03, 0.12, 0.9]
    )
    assert holm([]) == []


def test_equal_systems_are_called_different_as_often_as_the_level_says() -> None:
    """1,000 pairs of equal systems: at 5 % the share called different lies in the binomial 99 %
    interval."""
    rng, bleu = np.random.default_rng(11), metrics("fr")[0]
    different = np.zeros(3)
    for number in range(1000):
        first, second = (Scored(bleu, translations(rng, 150)) for _ in range(2))
        p_values = (
            paired_bootstrap(first, second),
            approximate_randomisation(first, second, 199, seed=number),
        )
        different += np.array([*p_values, sign_test(first, second)]) <= 0.05
    bootstrap, randomisation, sign = different / 1000
    assert 0.033 <= bootstrap <= 0.070
    assert 0.033 <= randomisation <= 0.070
    assert sign <= 0.070  # it can only fall below: it is discrete


def translations(rng: np.random.Generator, n: int) -> np.ndarray:
    """BLEU's counts of n segments of 4 to 40 words, each word right with the segment's
    own chance."""
    words = rng.integers(4, 41, size=n)
    right = rng.beta(4, 3, size=n)
    totals = np.stack([words - order for order in range(4)], 1)
    matches = rng.binomial(totals, right[:, None] ** np.arange(1, 5))
    return np.concatenate([words[:, None], words[:, None], matches, totals], 1).astype(np.float64)


def test_identical_outputs_and_two_segments_are_never_called_different(
    references: list[str],
) -> None:
    bleu = metrics("fr")[0]
    own = scored(bleu, [references], perturbed(references, 7))
    assert (
        paired_bootstrap(own, own)
        == approximate_randomisation(own, own)
        == sign_test(own, own)
        == 1
    )
    first, second = (
        scored(bleu, [references[:2]], lines)
        for lines in (references[:2], perturbed(references[:2], 8))
    )
    assert approximate_randomisation(first, second) > 0.4  # two of four ways to toss two coins
