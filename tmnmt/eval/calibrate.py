"""How nearest positions of a memory are read by a model: numbers chosen by translations.

Some stretches of the memory are held out. Their references say which numbers are likely
(`tmnmt.calibration.fitting`), and what those few make of the segments is compared with what the
standard numbers make of them. Losses alone mislead: they prefer a lower temperature than
translations do.

The standard numbers stay unless others are better by more than chance: by chrF2++, in at least
1 - 0.05 / n of 1,000 paired bootstrap resamples, n being how many are compared with the standard
ones. Of several such numbers those of the highest chrF2++ are taken.

Where the index has keys of the model, the numbers that were chosen are then compared, by the same
rule, with themselves and the positions of the whole memory that are near to a draft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tmnmt.calibration.fitting import likelihoods
from tmnmt.calibration.held_out import stretches
from tmnmt.calibration.translation import translate_held_out
from tmnmt.eval.measures.metrics import count, metrics
from tmnmt.eval.measures.significance import Scored
from tmnmt.eval.measures.verdict import LEVEL
from tmnmt.index.base import FolderIndex
from tmnmt.keys.files import models_of
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.reach import STANDARD, Calibration, Reaches, Trial
from tmnmt.models.folder import Model
from tmnmt.progress import Progress

SEGMENTS = 200
JUDGE = "chrF2++"
NEIGHBOURS = 8, 16  # of a word of a draft, that are tried


class Way(NamedTuple):
    """A way to read positions: the numbers, the loss of the references by them, and how many
    neighbours of a word of a draft are read."""

    reaches: Reaches
    loss: float
    neighbours: int = 0


def calibrate(
    model: Model,
    layers: MemoryLayers | None,
    index: FolderIndex,
    segments: int = SEGMENTS,
    seed: int = 1,
    device: str = "cpu",
) -> Calibration:
    """The numbers for this model and this memory; `save_calibration` puts them beside the index,
    where translating reads them. About so many segments are held out, drawn by the seed. How far
    it is stands on stderr.

    Raises DataError where the memory has too few segments to hold any out."""
    sample = stretches(index, segments, seed)
    total = sum(len(stretch.segments) for stretch in sample)
    with Progress("calibrating", "segments", total) as progress:
        likely = likelihoods(model, index, sample, device, progress.advance)
    ways = [Way(STANDARD, likely.standard), *(Way(*candidate) for candidate in likely.candidates)]
    counts = NEIGHBOURS if model.states_hash in models_of(index.folder) else ()
    total = (len(ways) + len(counts)) * likely.segments
    with Progress("translating", "segments", total) as progress:
        references, translations = translate_held_out(
            model, layers, index, sample, [way.reaches for way in ways], device, progress.advance
        )
        trials = compare(ways, references, translations, index.tgt_lang)
        choice = best_of(trials)
        if counts:
            place = trials.index(choice)
            ways, translations = [ways[place]], [translations[place]]
            for count in counts:
                ways.append(ways[0]._replace(neighbours=count))
                _, (texts,) = translate_held_out(
                    model, layers, index, sample, [choice.reaches], device, progress.advance, count
                )
                translations.append(texts)
            neighbour_trials = compare(ways, references, translations, index.tgt_lang)
            choice = best_of(neighbour_trials)
            trials += neighbour_trials[1:]
    return Calibration(
        model=model.states_hash,
        memory=len(index),
        segments=likely.segments,
        subwords=likely.subwords,
        model_loss=likely.model,
        trials=trials,
        reaches=choice.reaches,
        neighbours=choice.neighbours,
    )


def compare(
    ways: Sequence[Way],
    references: Sequence[str],
    translations: Sequence[Sequence[str]],
    language: str,
) -> list[Trial]:
    """A trial of every way, by its translations. All are compared with the first."""
    scored = {
        metric.name: [
            Scored(metric, counts) for counts in count(metric, [references], translations)
        ]
        for metric in metrics(language)
        if metric.name in ("BLEU", JUDGE)
    }
    first, *_ = scored[JUDGE]
    return [
        Trial(
            reaches=way.reaches,
            loss=way.loss,
            bleu=round(bleu.score, 2),
            chrf=round(chrf.score, 2),
            above=float(np.mean(chrf.resampled > first.resampled)),
            neighbours=way.neighbours,
        )
        for way, bleu, chrf in zip(ways, scored["BLEU"], scored[JUDGE], strict=True)
    ]


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial that is better than the first by more than chance, the best of several; else the
    first."""
    first, *rivals = trials
    threshold = 1.0 - LEVEL / max(len(rivals), 1)
    better = [trial for trial in rivals if trial.above >= threshold]
    return max(better, key=lambda trial: trial.chrf, default=first)
