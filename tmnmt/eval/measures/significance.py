"""Whether two systems differ: paired bootstrap, approximate randomisation, sign test; and Holm's
correction.

The first two draw what sacrebleu draws (`sacrebleu.significance`), by products of matrices instead
of one sum after another, so that a hundred thousand segments fit; the tests hold them to
sacrebleu's own classes. Two things are otherwise. Samples as large as the real difference count
too, as in Noreen 1989: sacrebleu counts larger ones only, and so calls identical outputs different,
with p = 0.0001, and systems of few segments too often. And the bootstrap's differences are centred
before their sign is dropped: sacrebleu drops the sign first, which leaves out one of the two tails
and calls one pair of equal systems in nine different at 5 % (eval/calibration.py).

A row of counts is what is drawn, or changes sides: a segment, or all segments that are the same one
again (`tmnmt.eval.data.distinct`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tmnmt.eval.measures.metrics import Counts, Metric

BOOTSTRAP = "paired bootstrap"
# of what is drawn, for a p of the bootstrap: resamples of few units are too much alike
FEWEST_UNITS = 30
SEED = 12345  # sacrebleu's
RESAMPLES = 1000
TRIALS = 10_000
BLOCK = 1 << 24  # numbers drawn at a time
ROUNDING = 1e-9  # differences of scores that are none


@dataclass(frozen=True)
class Scored:
    """A system's counts under a metric, and what is computed of them once: its score and those of
    the resamples."""

    metric: Metric
    counts: Counts

    @cached_property
    def score(self) -> float:
        return self.metric.score(self.counts)

    @cached_property
    def resampled(self) -> Counts:
        """The scores of RESAMPLES bootstrap resamples; the same segments are drawn for every
        system."""
        sums = np.concatenate([weights @ self.counts for weights in _resamples(len(self.counts))])
        return self.metric.formula(sums)

    def interval(self) -> tuple[float, float]:
        """The 95 % bootstrap interval."""
        return _middle(self.resampled)


def gain_interval(baseline: Scored, system: Scored) -> tuple[float, float]:
    """The 95 % bootstrap interval of the system's score less the baseline's, by the same resamples
    of both."""
    return _middle(system.resampled - baseline.resampled)


def _middle(sampled: Counts) -> tuple[float, float]:
    """Between which 95 % of the samples lie, cut as sacrebleu cuts it."""
    ordered = np.sort(sampled)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[-cut - 1])


def _resamples(n: int) -> Iterator[NDArray[np.float64]]:
    """How often every segment is drawn in each resample, (some, n) at a time."""
    rng = np.random.default_rng(SEED)
    for rows in _blocks(RESAMPLES, n):
        sample = rng.choice(n, size=(rows, n), replace=True) + n * np.arange(rows)[:, None]
        yield np.bincount(sample.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _blocks(total: int, n: int) -> Iterator[int]:
    size = max(1, BLOCK // max(n, 1))
    yield from (min(size, total - start) for start in range(0, total, size))


def paired_bootstrap(baseline: Scored, system: Scored) -> float:
    """The two-sided p-value of paired bootstrap resampling (Koehn 2004; centred as in Riezler and
    Maxwell 2005): how often a resample's difference is as far from their mean as the real one is
    from 0."""
    differences = system.resampled - baseline.resampled
    return _p_value(np.abs(differences - differences.mean()), abs(baseline.score - system.score))


def approximate_randomisation(
    baseline: Scored, system: Scored, trials: int = TRIALS, seed: int | None = SEED
) -> float:
    """The two-sided p-value of approximate randomisation (Riezler and Maxwell 2005): how often a
    difference as large comes when each segment's two translations change sides by the toss of a
    coin."""
    rng, n = np.random.default_rng(seed), len(system.counts)
    total = baseline.counts.sum(0), system.counts.sum(0)
    difference = baseline.counts - system.counts
    differences = []
    for rows in _blocks(trials, n):
        shift = rng.integers(2, size=(rows, n), dtype=bool).astype(np.float64) @ difference
        differences.append(
            baseline.metric.formula(total[1] + shift) - baseline.metric.formula(total[0] - shift)
        )
    return _p_value(np.abs(np.concatenate(differences)), abs(baseline.score - system.score))


def _p_value(sampled: Counts, real: float) -> float:
    return float((np.sum(sampled >= real - ROUNDING) + 1) / (len(sampled) + 1))


def sign_test(baseline: Scored, system: Scored) -> float:
    """The two-sided p-value of the sign test of Collins et al. 2005: for every segment the sign of
    the corpus score's change when the system's translation of it takes the place of the baseline's;
    ties are dropped."""
    better, worse = signs(baseline, system)
    return binomial_two_sided(min(better, worse), better + worse)


def signs(baseline: Scored, system: Scored) -> tuple[int, int]:
    """How many segments raise the baseline's corpus score when they are replaced, and how many
    lower it."""
    total = baseline.counts.sum(0)
    replaced = baseline.metric.formula(total + (system.counts - baseline.counts))
    change = replaced - baseline.metric.formula(total[None])[0]
    return int((change > ROUNDING).sum()), int((change < -ROUNDING).sum())


def binomial_two_sided(fewer: int, n: int) -> float:
    """P(as uneven or more) for `fewer` heads of `n` tosses of a fair coin; exact, 1 for no toss."""
    if 2 * fewer >= n:
        return 1.0
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(fewer + 1)
    ]
    largest = max(logs)
    tail = sum(math.exp(log - largest) for log in logs)
    return min(1.0, math.exp(math.log(2 * tail) + largest - n * math.log(2)))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for there being several of them (Holm 1979), in the order given."""
    ordered = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(ordered):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


TESTS: dict[str, Callable[[Scored, Scored], float]] = {
    BOOTSTRAP: paired_bootstrap,
    "approximate randomisation": approximate_randomisation,
    "sign test": sign_test,
}


Interval = dict[str, float]


class Compared:
    """counts: by the name of the metric, every system's, (units, k); a unit is what
    resamples draw."""

    def __init__(
        self, metrics: Sequence[Metric], counts: Mapping[str, Sequence[Counts]], baseline: int
    ) -> None:
        self.baseline = baseline
        self.scored = {
            metric.name: [Scored(metric, rows) for rows in counts[metric.name]]
            for metric in metrics
        }
        self.units = len(counts[metrics[0].name][baseline])

    def scores(self, system: int) -> dict[str, float]:
        """{metric: score} of one system, by its number."""
        return {name: scored[system].score for name, scored in self.scored.items()}

    def intervals(self, system: int) -> dict[str, Interval]:
        """{metric: {"low", "high"}}, 95 % bootstrap intervals."""
        return {name: _ends(scored[system].interval()) for name, scored in self.scored.items()}

    def gains(self, system: int) -> dict[str, Interval] | None:
        """{metric: {"difference", "low", "high"}}: the score less the baseline's, with a 95 %
        paired bootstrap interval; None for the baseline."""
        if system == self.baseline:
            return None
        pairs = {
            name: (scored[self.baseline], scored[system]) for name, scored in self.scored.items()
        }
        return {
            name: {
                "difference": candidate.score - base.score,
                **_ends(gain_interval(base, candidate)),
            }
            for name, (base, candidate) in pairs.items()
        }


def _ends(interval: tuple[float, float]) -> Interval:
    return {"low": interval[0], "high": interval[1]}
