"""BLEU, chrF++ and TER by sacrebleu, kept as counts a segment, so that every subset and resample is
a sum of rows.

sacrebleu counts; the formulas over summed counts stand here as well, for many sums at once (the
tests hold them to sacrebleu's own, and to its command line)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from tmnmt.errors import UsageError
from tmnmt.eval.measures.learned_measure import LOWER_CASED, TOKENISED
from tmnmt.eval.measures.ter import TER
from tmnmt.progress import ReadProgress
from tmnmt.text import match_tokens

ORDER = 4  # of BLEU's n-grams
BETA = 2.0  # of chrF: what recall weighs against precision

Counts = NDArray[np.float64]  # (segments, k): what a score is computed from, to be summed


@dataclass(frozen=True)
class Metric:
    """One metric: `scorer` counts, `formula` turns summed counts (m, k) into scores (m,) in [0,
    100] (TER: or more). Intervals by band, gains and tests are of the main ones alone."""

    name: str
    scorer: Any  # a sacrebleu Metric
    formula: Callable[[Counts], Counts]
    prepare: Callable[[str], str] = str
    is_main: bool = True

    def signature(self, references: int) -> str:
        """sacrebleu's signature, for so many references a segment."""
        self.scorer.num_refs = references
        signature = str(self.scorer.get_signature())
        return (
            signature.replace("tok:none", "tok:match-tokens")
            if self.name == TOKENISED
            else signature
        )

    def score(self, counts: Counts) -> float:
        """The corpus score of all rows together."""
        return float(self.formula(counts.sum(0)[None])[0])


def metrics(tgt_lang: str) -> list[Metric]:
    """The metrics for a target language, the main ones first. Raises UsageError where sacrebleu
    lacks a package that splits this language into words."""
    try:
        bleu, lower = (
            sacrebleu.BLEU(trg_lang=tgt_lang, lowercase=lower) for lower in (False, True)
        )
    except (ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"BLEU of {tgt_lang} needs pip install 'sacrebleu[{tgt_lang}]': {reason}"
        ) from error
    plain = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    return [
        Metric("BLEU", bleu, bleu_of),
        Metric("chrF2++", sacrebleu.CHRF(word_order=2), chrf_of),
        Metric("TER", TER(), ter_of),
        Metric(LOWER_CASED, lower, bleu_of, is_main=False),
        Metric(
            TOKENISED,
            plain,
            unsmoothed_bleu_of,
            lambda text: " ".join(match_tokens(text)),
            is_main=False,
        ),
    ]


def count(
    metric: Metric,
    references: Sequence[Sequence[str]],
    systems: Sequence[Sequence[str]],
    progress: ReadProgress | None = None,
) -> list[Counts]:
    """The counts of every system; `references` are R lists and `systems` N lists of as many
    segments.

    Segment by segment, so that a reference is read once and equal hypotheses are counted once."""
    rows: list[list[list[float]]] = [[] for _ in systems]
    scorer = metric.scorer
    for number, segment in enumerate(zip(*references, strict=True)):
        info = scorer._extract_reference_info(
            [scorer._preprocess_segment(metric.prepare(ref)) for ref in segment]
        )
        cache: dict[str, list[float]] = {}
        for row, hypotheses in zip(rows, systems, strict=True):
            hypothesis = hypotheses[number]
            if hypothesis not in cache:
                text = scorer._preprocess_segment(metric.prepare(hypothesis))
                cache[hypothesis] = scorer._compute_segment_statistics(text, info)
            row.append(cache[hypothesis])
        if progress:
            progress(1, 0.0)
    return [np.array(row, np.float64) for row in rows]


def bleu_of(sums: Counts, effective_order: bool = False, smooth: bool = True) -> Counts:
    """BLEU of summed counts (m, 10) -> (m,): hypothesis length, reference length, matches and
    totals of four orders.

    A precision without a match is smoothed as in mteval-v13a (sacrebleu's "exp"). effective_order:
    for single segments, only the orders that the hypothesis has."""
    lengths, matches, totals = sums[:, :2], sums[:, 2 : 2 + ORDER], sums[:, 2 + ORDER :]
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = (matches == 0) & (totals > 0)
        smoothed = 0.5 ** np.cumsum(missed, 1) if smooth else 0.0
        # nan where there is no n-gram of the order
        logs = np.log(np.where(missed, smoothed, matches) / totals)
        orders = (totals > 0).sum(1) if effective_order else np.full(len(sums), ORDER)
        logs = np.where(totals > 0, logs, 0.0 if effective_order else -np.inf)
        brevity = np.minimum(0.0, 1 - lengths[:, 1] / lengths[:, 0])
        scores = 100 * np.exp(brevity + logs.sum(1) / orders)
    return np.where(matches.sum(1) > 0, scores, 0.0)


def unsmoothed_bleu_of(sums: Counts) -> Counts:
    """BLEU as multi-bleu.perl computes it: 0 where an order has no match."""
    return bleu_of(sums, smooth=False)


def chrf_of(sums: Counts) -> Counts:
    """chrF of summed counts (m, 3 orders) -> (m,): n-grams of hypothesis, of reference, matches,
    order by order."""
    hypothesis, reference, matches = sums[:, 0::3], sums[:, 1::3], sums[:, 2::3]
    present = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(present.sum(1), 1)
    precision = (matches / np.where(present, hypothesis, np.inf)).sum(1) / orders
    recall = (matches / np.where(present, reference, np.inf)).sum(1) / orders
    denominator = BETA**2 * precision + recall
    scores: Counts = (
        100 * (1 + BETA**2) * precision * recall / np.where(denominator > 0, denominator, 1.0)
    )
    return scores


def ter_of(sums: Counts) -> Counts:
    """TER of summed counts (m, 2) -> (m,): edits and reference words."""
    edits, words = sums[:, 0], sums[:, 1]
    return 100 * np.where(words > 0, edits / np.where(words > 0, words, 1.0), np.sign(edits))


def sentence_bleu(counts: Counts) -> Counts:
    """BLEU of every segment by itself (n, 10) -> (n,)."""
    return bleu_of(counts, effective_order=True)
