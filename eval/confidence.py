"""Fits how sure a model is of its words and segments, on dev, and says how right that is, on test.

    python memories/make.py DATA --whole-law FILE.tmx.gz --law-dev DEV.tsv.gz
    tmnmt build-index FILE.tmx.gz --index INDEX --src-lang en --tgt-lang fr
    python eval/confidence.py --memory INDEX [--dev DEV.tsv.gz] [--test TSV] [--model DIR]
        [--segments N] [--output FILE.json] [--write]

The first segments of every document are translated in order, each reference confirmed before the
next. A word, up to a blank, is right where TER's alignment without shifts finds it in the
reference; a segment where TER is 0.1 or less. Dev fits the weights (ridge logistic regression) and
the least confidence with which 90 % of segments are right. Without dev, what the model has of it is
measured. --write puts confidence.json into the model's folder. Beside the confidence stands the
mean log probability of the same words or segments; the calibration error is of ten bands of equal
width. So few are never just as right as is said: beside it stands what is measured, on average,
where every confidence is right."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sacrebleu.metrics import lib_ter

from tmnmt.config.options import TranslationOptions
from tmnmt.durable import write
from tmnmt.eval.measures.ter import BeamEditDistance, edits
from tmnmt.explain.confidence import (
    FORMAT,
    SEGMENT,
    WORD,
    Confidence,
    by_words,
    logit,
    segment_signs,
    word_signs,
)
from tmnmt.formats import read_memory
from tmnmt.models.folder import CONFIDENCE_FILE, load_model, stamp
from tmnmt.segments import Segment, Translation
from tmnmt.translator import Translator

ROOT = Path(__file__).resolve().parent.parent
RIGHT = 0.1  # TER of a segment, at most
PRECISION = 0.9
RIDGE = 1.0  # of weights of standardised signs
BANDS = 10
DRAWS = 500
Array = NDArray[np.float64]
Pairs = list[tuple[Translation, str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    test = ROOT / "memories" / "held-out" / "law.test.en-fr.tsv.gz"
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "law.en-fr")
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--dev", type=Path)
    parser.add_argument("--test", type=Path, default=test)
    parser.add_argument("--segments", type=int, default=400, help="about so many of each")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write and options.dev is None:
        parser.error("--write needs --dev")
    torch.set_num_threads(1)
    translator = Translator.load(options.model, [options.memory], TranslationOptions(threads=1))
    fitted = Confidence.load(load_model(options.model))
    if options.dev is not None:
        fitted = fit(explained(translator, options.dev, options.segments))
    if fitted is None:
        raise SystemExit(f"{options.model} has no {CONFIDENCE_FILE}: give --dev")
    of_test = explained(translator, options.test, options.segments)
    told = json.dumps(measured(fitted, of_test), indent=1)
    print(told)
    if options.output:
        options.output.write_text(told + "\n", encoding="utf-8")
    if options.write:
        save(options.model, fitted)


def taken(segments: Sequence[Segment], wanted: int) -> list[list[Segment]]:
    """The first segments of every document, as many of each as make about `wanted` of all."""
    documents = [list(some) for _, some in groupby(segments, lambda segment: segment.document)]
    most = 1
    while sum(min(len(one), most) for one in documents) < min(wanted, len(segments)):
        most += 1
    return [one[:most] for one in documents]


def explained(translator: Translator, path: Path, segments: int) -> Pairs:
    """Translations with their references."""
    documents = taken(list(read_memory(path, "en", "fr")), segments)
    pairs = [[(one.src, one.tgt) for one in document] for document in documents]
    sources = [[src for src, _ in document] for document in pairs]
    references = [tgt for document in pairs for _, tgt in document]
    return list(zip(translator.stream(sources, True, pairs), references, strict=True))


def fit(pairs: Pairs) -> Confidence:
    signs = [word_signs(one, by_words(one.tokens)) for one, _ in pairs]
    words = _regression(
        [[one[name] for name in WORD] for some in signs for one in some],
        [right for one, reference in pairs for right in right_words(one.tgt, reference)],
        WORD,
    )
    whole = [_segment(one, words) for one, _ in pairs]
    right = [is_right(one.tgt, reference) for one, reference in pairs]
    segment = _regression([[one[name] for name in SEGMENT] for one in whole], right, SEGMENT)
    chances = _chances(segment, whole)
    return Confidence(words, segment, _least(chances, np.array(right, float)))


def _segment(translation: Translation, weights: dict[str, float]) -> dict[str, float]:
    words = by_words(translation.tokens)
    logits = [logit(weights, signs) for signs in word_signs(translation, words)]
    return segment_signs(translation, words, logits)


def _chances(weights: Any, signs: Sequence[dict[str, float]]) -> Array:
    return 1 / (1 + np.exp(-np.array([logit(weights, one) for one in signs])))


def _regression(
    rows: list[list[float]], right: Sequence[bool], names: Sequence[str]
) -> dict[str, float]:
    """Ridge logistic regression by Newton's method."""
    x, y = np.array(rows), np.array(right, float)
    mean, deviation = x.mean(0), x.std(0) + 1e-6
    z = np.c_[(x - mean) / deviation, np.ones(len(x))]
    ridge = np.diag([*[RIDGE] * len(names), 0.0])
    weights = np.zeros(z.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-z @ weights))
        hessian = (z * (p * (1 - p))[:, None]).T @ z + ridge
        weights -= np.linalg.solve(hessian, z.T @ (p - y) + ridge @ weights)
    slopes = weights[:-1] / deviation
    told = {"bias": float(weights[-1] - slopes @ mean)}
    return told | {name: float(slope) for name, slope in zip(names, slopes, strict=True)}


def right_words(said: str, reference: str) -> list[bool]:
    """Whether each word stands in the reference, by the alignment of the fewest edits."""
    _, trace = BeamEditDistance(reference.split())(said.split())
    return [op == lib_ter._OP_NOP for op in trace if op != lib_ter._OP_INS]


def is_right(said: str, reference: str) -> bool:
    words = reference.split()
    return edits(said.split(), words) <= RIGHT * len(words)


def _least(chances: Array, right: Array) -> float:
    """The least confidence from which on `PRECISION` of the segments are right."""
    order = np.argsort(-chances)
    precision = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(precision >= PRECISION)
    return float(chances[order[good[-1]]]) if len(good) else 1.0


def measured(fitted: Confidence, pairs: Pairs) -> dict[str, object]:
    signs = [word_signs(one, by_words(one.tokens)) for one, _ in pairs]
    flat = [one for some in signs for one in some]
    words = [right for one, reference in pairs for right in right_words(one.tgt, reference)]
    whole = [_segment(one, dict(fitted.words)) for one, _ in pairs]
    right = np.array([is_right(one.tgt, reference) for one, reference in pairs], float)
    chances = _chances(fitted.segment, whole)
    free = chances >= fitted.min_confidence
    own = np.array([one.origin == "model" for one, _ in pairs])
    return {
        "segments": len(pairs),
        "words": _told(_chances(fitted.words, flat), np.array(words, float), flat),
        "segment": _told(chances, right, whole),
        "released": {
            "least": round(fitted.min_confidence, 4),
            "share": round(float(free.mean()), 3),
            "precision": round(float(right[free].mean()), 3) if free.any() else None,
            "share of the model's own": round(float(free[own].mean()), 3),
        },
    }


def _told(chances: Array, right: Array, signs: Sequence[dict[str, float]]) -> dict[str, float]:
    plain = np.array([one["log_prob"] for one in signs])
    return {
        "number": len(right),
        "right": round(float(right.mean()), 4),
        "AUC": round(auc(chances, right), 4),
        "AUC of the mean log probability": round(auc(plain, right), 4),
        "calibration error": round(calibration_error(chances, right), 4),
        "where all are right": round(by_chance(chances), 4),
    }


def auc(scores: Array, right: Array) -> float:
    """The share of pairs of one right and one wrong that the scores put in order; ties are
    halves."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = ((ends - counts + 1 + ends) / 2)[inverse]
    ones = right.sum()
    return float((ranks[right > 0].sum() - ones * (ones + 1) / 2) / (ones * (len(right) - ones)))


def calibration_error(chances: Array, right: Array) -> float:
    """Mean difference of confidence and share of right ones, over bands."""
    band = np.minimum((chances * BANDS).astype(int), BANDS - 1)
    mean: Callable[[Array, int], float] = lambda x, at: float(x[band == at].mean())  # noqa: E731
    return sum(
        abs(mean(chances, at) - mean(right, at)) * float((band == at).mean())
        for at in range(BANDS)
        if (band == at).any()
    )


def by_chance(chances: Array) -> float:
    """The mean calibration error of what is right as often as these say."""
    draw = np.random.default_rng(1)
    errors = [
        calibration_error(chances, (draw.random(len(chances)) < chances).astype(float))
        for _ in range(DRAWS)
    ]
    return float(np.mean(errors))


def save(folder: Path, fitted: Confidence) -> None:
    """Writes confidence.json, and its checksum."""
    told = {
        "format": FORMAT,
        "model": load_model(folder).hash,
        "least": round(fitted.min_confidence, 6),
        "words": {name: round(value, 6) for name, value in fitted.words.items()},
        "segment": {name: round(value, 6) for name, value in fitted.segment.items()},
    }
    write(folder / CONFIDENCE_FILE, (json.dumps(told, indent=1) + "\n").encode())
    stamp(folder)


if __name__ == "__main__":
    main()
