"""Learned measures, such as COMET: a score for each translation, which a command gives that runs
in an environment of its own, or which stands in a file. tmnmt knows nothing of such a measure but
its scores, of which more is better. The score of a test set is their mean.

A command reads one JSON object a line, {"src": …, "mt": …, "ref": …}, and writes one number a line,
in the same order. A file has such objects with "score" besides."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tmnmt.durable import make_folder
from tmnmt.errors import DataError
from tmnmt.eval.measures.learned_measure import LearnedMeasure
from tmnmt.eval.measures.metrics import Counts, Metric
from tmnmt.progress import Progress
from tmnmt.quantities import quantity

SCORES = "scores"  # the folder in a run's folder for what commands have scored
LONGEST_REASON = 300  # characters of what is said of a command that failed


class Judged(NamedTuple):
    """What a score is of: a translation with its source, which is empty where it is unknown, and a
    reference."""

    src: str
    mt: str
    ref: str


class AbsentError(Exception):
    """A measure has no scores; the message says why."""


def judged(
    measure: LearnedMeasure,
    translations: Sequence[Judged],
    folder: Path,
    progress: Callable[[int], None] = lambda count: None,
) -> list[float]:
    """The score of each translation. What a command says is kept in `folder`, so that a run which
    was stopped goes on, and no translation is scored twice.

    measure: the measure.
    translations: what is scored.
    folder: where scores are kept.
    progress: is told of translations that were scored.

    Raises AbsentError where scores lack, because the command failed or the file has others;
    DataError for a file that cannot be read."""
    if measure.scores:
        scores_by_text = _scores_of(Path(measure.scores))
        missing = sum(translation not in scores_by_text for translation in translations)
        if missing:
            raise AbsentError(
                f"{measure.scores} has no score of {missing:,} of "
                f"{quantity(len(translations), 'translation')}"
            )
        return [scores_by_text[translation] for translation in translations]
    key = hashlib.sha256(json.dumps([measure.name, measure.command]).encode()).hexdigest()[:16]
    make_folder(folder / SCORES)
    path = folder / SCORES / f"{key}.jsonl"
    path.touch()
    _drop_cut_line(path)
    scores_by_text = _scores_of(path)
    new = [
        translation
        for translation in dict.fromkeys(translations)
        if translation not in scores_by_text
    ]
    with path.open("a", encoding="utf-8", newline="\n") as file:
        for translation, score in _command_scores(measure, new):
            file.write(_line(translation, score))
            file.flush()
            scores_by_text[translation] = score
            progress(1)
    return [scores_by_text[translation] for translation in translations]


class MeasuredScores(NamedTuple):
    """A learned measure of a test set: its metric, and the counts (n, 2) of every system."""

    metric: Metric
    counts: list[Counts]


def score_all(
    measures: Sequence[LearnedMeasure],
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    systems: Sequence[Sequence[str]],
    folder: Path,
) -> tuple[list[MeasuredScores], list[str]]:
    """The learned measures of several systems, and a note for each that is absent, which says why.
    Where a segment has several references, its score is the mean of those beside each.

    measures: the measures.
    sources: the sources; empty where they are unknown.
    references: R lists of as many segments.
    systems: N lists of as many translations.
    folder: where the scores of commands are kept.

    Raises DataError for a file of scores that cannot be read."""
    source_texts = sources or [""] * len(references[0])
    of_systems = [
        [
            Judged(*texts)
            for lines in references
            for texts in zip(source_texts, system, lines, strict=True)
        ]
        for system in systems
    ]
    measured, notes = list[MeasuredScores](), list[str]()
    translations = [translation for of_system in of_systems for translation in of_system]
    for measure in measures:
        distinct = len(set(translations))
        label = f"scoring {measure.name}"
        try:
            with Progress(label, "translations", distinct, lazy=True) as progress:
                scores = judged(measure, translations, folder, progress.advance)
        except AbsentError as reason:
            notes.append(f"{measure.name} is absent: {reason}")
            continue
        means = np.array(scores).reshape(len(systems), len(references), -1).mean(1)
        counts = [np.stack([row, np.ones_like(row)], 1) for row in means]
        measured.append(MeasuredScores(mean_metric(measure), counts))
    return measured, notes


def mean_metric(measure: LearnedMeasure) -> Metric:
    """The metric of a learned measure: counts (n, 2) are the score of each translation, and 1."""
    words = shlex.split(measure.command) if measure.command else [measure.scores]
    names = " ".join(Path(word).name if Path(word).is_absolute() else word for word in words)
    kind = "command" if measure.command else "file"
    return Metric(measure.name, _Signature(f"mean of the scores of the {kind} {names}"), mean_of)


def mean_of(sums: Counts) -> Counts:
    """The mean of summed counts (m, 2) -> (m,): scores, and how many they are."""
    means: Counts = sums[:, 0] / np.maximum(sums[:, 1], 1.0)
    return means


@dataclass
class _Signature:
    """What says of a metric how it was computed, as sacrebleu's metrics do."""

    text: str
    num_refs: int = 1

    def get_signature(self) -> str:
        return self.text


def _line(translation: Judged, score: float) -> str:
    return json.dumps({**translation._asdict(), "score": score}, ensure_ascii=False) + "\n"


def _drop_cut_line(path: Path) -> None:
    """Takes off the last line where it has no end, as a kill leaves it."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)


def _scores_of(path: Path) -> dict[Judged, float]:
    """The scores in a file."""
    scores = dict[Judged, float]()
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            translation = Judged(*(record[name] for name in Judged._fields))
            scores[translation] = float(record["score"])
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"{path}, line {number}: each line is a JSON object with src, mt, ref and score"
            ) from error
        if not all(isinstance(text, str) for text in translation) or not math.isfinite(
            scores[translation]
        ):
            raise DataError(f"{path}, line {number}: texts are strings, and a score is a number")
    return scores


def _command_scores(
    measure: LearnedMeasure, translations: Sequence[Judged]
) -> Iterator[tuple[Judged, float]]:
    """What the command says of each, as soon as it says it."""
    if not translations:
        return
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as texts,
        tempfile.TemporaryFile() as errors,
    ):
        for translation in translations:
            texts.write(json.dumps(translation._asdict(), ensure_ascii=False) + "\n")
        texts.seek(0)
        words = shlex.split(measure.command)
        try:
            process = subprocess.Popen(
                words,
                stdin=texts,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise AbsentError(f"{words[0]} cannot be run: {error.strerror or error}") from error
        with process:
            try:
                yield from _read(process, translations)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            raise AbsentError(
                f"its command ended with {process.returncode}{_last_words(errors.read())}"
            )


def _read(
    process: subprocess.Popen[str], translations: Sequence[Judged]
) -> Iterator[tuple[Judged, float]]:
    """The scores that a command writes. Raises AbsentError where they are too few or too many, and
    nothing where the command fails, whose last words say more."""
    count, lines = 0, process.stdout or ()
    for translation, line in zip(translations, lines, strict=False):
        count += 1
        yield translation, _number(line, count)
    count += sum(1 for line in lines if line.strip())
    if not process.wait() and count != len(translations):
        raise AbsentError(
            f"its command wrote {quantity(count, 'line')} for "
            f"{quantity(len(translations), 'translation')}"
        )


def _number(line: str, count: int) -> float:
    try:
        number = float(line)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise AbsentError(f"line {count} of its command is no number: {line.strip()[:80]!r}")
    return number


def _last_words(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1].strip()[:LONGEST_REASON]}" if lines else ""
