"""The sign test on BLEU (Collins, Koehn, Kucerova 2005), which Tu et al. (2018) use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

Statistics = NDArray[np.int64]  # (10,) n-grams that match, n-grams, lengths of hypothesis and reference


@dataclass(frozen=True)
class Signs:
    """How many segments a system translates better or worse than a baseline, and the two-sided p-value."""

    better: int
    worse: int
    p: float


def sign_test(baseline: Sequence[str], system: Sequence[str], references: Sequence[str]) -> Signs:
    """Segment i is better where the baseline's corpus BLEU rises when the system's translation of i is put in its
    place; equal ones do not count. One reference a segment."""
    theirs, ours = (_statistics(lines, references) for lines in (baseline, system))
    whole = theirs.sum(0)
    before = _bleu(whole)
    changes = [_bleu(whole - a + b) - before for a, b in zip(theirs, ours, strict=True) if (a != b).any()]
    better, worse = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    return Signs(better, worse, two_sided(better, worse))


def two_sided(better: int, worse: int) -> float:
    """The probability that a fair coin gives a split at least as uneven."""
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return float(min(1.0, 2 * tail / 2**n))


def _statistics(lines: Sequence[str], references: Sequence[str]) -> Statistics:
    metric = BLEU(effective_order=True)
    found = [metric.sentence_score(line, [one]) for line, one in zip(lines, references, strict=True)]
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in found], dtype=np.int64)


def _bleu(sums: Statistics) -> float:
    correct, total, (ours, theirs) = (part.tolist() for part in np.split(sums, [4, 8]))
    return BLEU.compute_bleu(correct, total, ours, theirs, smooth_method="exp").score
