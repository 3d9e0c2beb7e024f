"""The analyses of Tu et al. 2018, sections 4.2 to 4.5, of one model on test sets of documents.

An arm is one setting of the session cache. Every arm translates every test set alone, without
translation memory; what it gave is kept in RUNS/HASH.jsonl, a line a group of documents, so that a
run that was stopped goes on. What is read there is checked: each line must be the results of the
group whose turn it is."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from tmnmt.engine.settings import Settings
from tmnmt.errors import DataError, UsageError
from tmnmt.eval.cache.watch import CLASSES, Matrix, Mean, Watched, Watching, frequent_words
from tmnmt.eval.data.distinct import unit_means, units_of
from tmnmt.eval.measures.metrics import count, metrics
from tmnmt.eval.measures.scores import Scores, score
from tmnmt.eval.measures.significance import Scored, binomial_two_sided, signs
from tmnmt.eval.report.run_folder import Node, parsed
from tmnmt.eval.translated import digest
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.folder import Model, parameters
from tmnmt.progress import Progress
from tmnmt.segments import Segment

TOGETHER = 8  # documents side by side, and in a group
IN_CACHE = "in the cache"
TELLING = range(5, 26)  # subwords of a sentence whose matching matrix can be read
FORMAT = 2  # of a line in RUNS/HASH.jsonl; files of another have other names
PLACES = {
    f"{kind}, {location}": (kind, location == IN_CACHE)
    for kind in CLASSES
    for location in (IN_CACHE, "not " + IN_CACHE)
}


@dataclass(frozen=True)
class Arm:
    """A setting of the session cache; size 0 is the plain model."""

    size: int
    overwrite: bool = True
    best: int = 1  # hypotheses written

    @property
    def name(self) -> str:
        if not self.size:
            return "no cache"
        kind = "" if self.overwrite else ", no overwriting"
        return f"{self.size}{kind}{f', {self.best} best' * (self.best > 1)}"


@dataclass
class Outcome:
    """What an arm gave on a test set, or on a part of it. Ages, gates: sums and counts, see
    `Watched`."""

    lines: list[str] = field(default_factory=list)
    # of decoding, reading and writing the cache; without the time it took to watch
    seconds: float = 0.0
    matching: list[Mean] = field(default_factory=list)
    # "frequent word, in the cache" and the like
    gates: dict[str, Mean] = field(default_factory=dict)
    by_segment: list[Mean] = field(default_factory=list)  # gate and number of subwords

    @property
    def words(self) -> int:
        return sum(len(line.split()) for line in self.lines)

    def extend(self, part: Outcome) -> None:
        """With the next part of the test set."""
        self.lines, self.seconds = self.lines + part.lines, self.seconds + part.seconds
        self.by_segment += part.by_segment
        self.matching += [Mean() for _ in range(len(part.matching) - len(self.matching))]
        for mine, mean in zip(self.matching, part.matching, strict=False):
            mine.add(mean.total, mean.count)
        for name, mean in part.gates.items():
            self.gates.setdefault(name, Mean()).add(mean.total, mean.count)


@dataclass(frozen=True)
class Signs:
    """How many segments an arm translates better or worse than no cache (Collins et al. 2005), and
    the p-value."""

    better: int
    worse: int
    p: float

    @classmethod
    def compare(
        cls,
        base: Sequence[str],
        ours: Sequence[str],
        sources: Sequence[str],
        references: Sequence[str],
        tgt_lang: str,
    ) -> Signs:
        """Segments that are the same count as one (`tmnmt.eval.data.distinct`)."""
        bleu, units = metrics(tgt_lang)[0], units_of(sources, [references])
        baseline, system = (
            Scored(bleu, unit_means(counts, units))
            for counts in count(bleu, [references], [base, ours])
        )
        better, worse = signs(baseline, system)
        return cls(better, worse, binomial_two_sided(min(better, worse), better + worse))


@dataclass(frozen=True)
class Row:
    """An arm in the table of a test set."""

    arm: Arm
    outcome: Outcome
    scores: Scores
    signs: Signs | None  # against no cache

    def record(self) -> dict[str, Any]:
        outcome = self.outcome
        return {
            "cache": asdict(self.arm),
            **asdict(self.scores),
            "sign_test": self.signs and asdict(self.signs),
            "words": outcome.words,
            "seconds": outcome.seconds,
            "words_per_second": outcome.words / outcome.seconds,
            "matching_by_age": [mean.value for mean in outcome.matching],
            "gates": {
                name: {"mean": gate.value, "subwords": gate.count}
                for name, gate in outcome.gates.items()
            },
        }


@dataclass(frozen=True)
class CacheReading:
    """A segment of a test set, counted from 1, and what its translation read from the cache."""

    segment: int
    src: str
    words: list[str]
    slots: list[str]  # the one written last first
    weights: list[list[float]]  # of every slot for every word: weights[slot][word]


@dataclass(frozen=True)
class Results:
    """What was found on one test set; `main` is the arm by which gates and matrix are told."""

    name: str
    segments: int
    documents: int
    main: Arm
    rows: list[Row]
    view: CacheReading

    def row(self, arm: Arm) -> Row:
        return next(row for row in self.rows if row.arm == arm)

    @property
    def by_size(self) -> list[Row]:
        """The rows that differ in the number of slots alone."""
        overwrite = self.main.overwrite
        return [
            row
            for row in self.rows
            if (row.arm.overwrite == overwrite or not row.arm.size) and row.arm.best == 1
        ]


class Analysis:
    """One model on one test set."""

    def __init__(
        self,
        model: Model,
        layers: MemoryLayers,
        name: str,
        segments: Sequence[Segment],
        settings: Settings,
        runs: Path,
    ) -> None:
        self.model = model
        self.layers = layers
        self.name = name
        self.segments = segments
        self.runs = runs
        self.settings = replace(settings, mode="off", batch=TOGETHER, remember="own")
        self.documents = [list(group) for _, group in groupby(segments, key=lambda s: s.document)]
        if len(self.documents) == len(segments):
            raise DataError(
                f"{name}: every document is of one segment, which has no cache to read; name "
                "documents by a column of "
                "a TSV or a property of a TMX"
            )
        self.references = [s.tgt for s in segments]
        self.frequent = frequent_words(self.references)

    def results(self, arms: Sequence[Arm], main: Arm, segment: int | None) -> Results:
        """All of it; `segment` None: the most telling one."""
        rows = self.rows(arms)
        number = segment or self.telling(rows[list(arms).index(main)].outcome)
        return Results(
            self.name,
            len(self.segments),
            len(self.documents),
            main,
            rows,
            self.view_segment(main, number),
        )

    def rows(self, arms: Sequence[Arm]) -> list[Row]:
        """Every arm's results; the sign test is against the first arm, which is to be the one
        without a cache."""
        outcomes = [self.outcome(arm) for arm in arms]
        return [
            Row(
                arm,
                outcome,
                score(outcome.lines, self.references),
                self.signs(outcomes[0], outcome) if arm.size else None,
            )
            for arm, outcome in zip(arms, outcomes, strict=True)
        ]

    def signs(self, base: Outcome, ours: Outcome) -> Signs:
        """Against no cache."""
        sources = [s.src for s in self.segments]
        return Signs.compare(
            base.lines, ours.lines, sources, self.references, self.model.config["tgt_lang"]
        )

    def outcome(self, arm: Arm) -> Outcome:
        """What the arm gives; groups of documents that are in its file are not translated again."""
        path, total = self.runs / f"{self.digest(arm)}.jsonl", Outcome()
        groups = [
            self.documents[start : start + TOGETHER]
            for start in range(0, len(self.documents), TOGETHER)
        ]
        saved = _saved_outcomes(path, [sum(map(len, group)) for group in groups])
        with Progress(f"{self.name}, {arm.name}", "segments", len(self.segments)) as progress:
            for number, group in enumerate(groups):
                if number < len(saved):
                    outcome = saved[number]
                else:
                    outcome = self._translated(arm, group)
                    with path.open("a", encoding="utf-8") as file:
                        record = asdict(outcome) | {"format": FORMAT, "group": number + 1}
                        file.write(json.dumps(record, ensure_ascii=False) + "\n")
                total.extend(outcome)
                progress.advance(len(outcome.lines))
        return total

    def digest(self, arm: Arm) -> str:
        """Names all that an arm's translations, and what is counted of them, depend on."""
        return digest(
            self.model.hash,
            self.layers.digest("off", arm.size > 0),
            asdict(arm),
            asdict(self.settings),
            [(s.document, s.src, s.tgt) for s in self.segments],
            FORMAT,
        )

    def telling(self, outcome: Outcome) -> int:
        """The segment, counted from 1, of 5 to 25 subwords for which the gate was open widest."""
        gates = outcome.by_segment
        fit = [i for i, gate in enumerate(gates) if gate.count in TELLING]
        if not fit:
            raise DataError(
                f"{self.name}: no segment of {TELLING[0]} to {TELLING[-1]} subwords has a cache "
                "to read"
            )
        return 1 + max(fit, key=lambda i: gates[i].value)

    def view_segment(self, arm: Arm, segment: int) -> CacheReading:
        """What the translation of a segment (its last piece, where it is too long for one) reads,
        with what stands before it in its document. Raises UsageError where there is no such segment
        or nothing before it."""
        preceding = self.preceding(segment)
        translator = self._translator(arm)
        list(translator.stream([[s.src for s in [*preceding, self.segments[segment - 1]]]]))
        matrix = translator.watched.matrix
        if matrix is None or len(preceding) not in translator.watched.by_segment:
            raise DataError(
                f"{self.name}: the translation of segment {segment}, or of those before it, is "
                "empty"
            )
        return self._view(segment, self.segments[segment - 1].src, matrix)

    def preceding(self, segment: int) -> list[Segment]:
        """What stands before a segment in its document; UsageError where there is none or no such
        segment."""
        if not 1 <= segment <= len(self.segments):
            raise UsageError(f"segment {segment}: {self.name} has 1 to {len(self.segments):,}")
        index = start = segment - 1
        while start and self.segments[start - 1].document == self.segments[index].document:
            start -= 1
        if start == index:
            raise UsageError(
                f"segment {segment}: the first of its document in {self.name}; its cache is empty"
            )
        return list(self.segments[start:index])

    def _view(self, segment: int, src: str, matrix: Matrix) -> CacheReading:
        words, slots = (
            [self.model.vocab.piece(word) for word in side] for side in (matrix.words, matrix.slots)
        )
        return CacheReading(segment, src, words, slots, matrix.weights.T.tolist())

    def _translator(self, arm: Arm) -> Watching:
        overwrite = arm.overwrite if arm.size else None
        settings = replace(
            self.settings, cache=arm.size, cache_overwrite=overwrite, cache_best=arm.best
        )
        return Watching(self.model, self.layers, settings, self.frequent)

    def _translated(self, arm: Arm, documents: Sequence[Sequence[Segment]]) -> Outcome:
        translator = self._translator(arm)
        start = time.perf_counter()
        lines = [
            translation.tgt
            for translation in translator.stream(
                [[s.src for s in document] for document in documents]
            )
        ]
        seconds = time.perf_counter() - start - translator.tally.seconds["watch"]
        return _outcome(lines, seconds, translator.watched)


def arms_of(sizes: Sequence[int], main_size: int, best: int, overwrite: bool) -> list[Arm]:
    """No cache, every size, and at size `main_size` with overwriting switched and, where `best` >
    1, with k-best writes."""
    arms = [Arm(size, overwrite) if size else Arm(0) for size in sorted({0, main_size, *sizes})]
    return arms + [Arm(main_size, not overwrite)] + [Arm(main_size, overwrite, best)] * (best > 1)


def sizes_of(model: Model, layers: MemoryLayers) -> dict[str, int]:
    """Parameters of the base and, on top of it, of the session cache."""
    return {
        "base": parameters(model.backbone),
        "cache": parameters(layers.cache) if layers.cache else 0,
    }


def _outcome(lines: list[str], seconds: float, watched: Watched) -> Outcome:
    gates = {place: watched.gates[key] for place, key in PLACES.items()}
    return Outcome(
        lines, seconds, watched.matching, gates, [watched.by_segment[i] for i in range(len(lines))]
    )


def _saved_outcomes(path: Path, sizes: Sequence[int]) -> list[Outcome]:
    """The groups in a file, of so many segments each; a last line that was not finished is taken
    away. Raises DataError for a line that is not the results of the group whose turn it is."""
    if not path.exists():
        return []
    content = path.read_bytes()
    outcomes = []
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            group = Node(parsed(line, "the group"), "the group")
            if (group.raw("format"), group.raw("group")) != (FORMAT, number) or number > len(sizes):
                raise DataError("of another group")
            outcomes.append(_read(group, sizes[number - 1]))
        except DataError as error:
            raise DataError(
                f"{path}, line {number}: no results of this command ({error}); delete the file"
            ) from error
    return outcomes


def _read(group: Node, size: int) -> Outcome:
    """The results of a group of so many segments."""
    lines, seconds, gates = group.texts("lines"), group.number("seconds"), group.node("gates")
    by_segment = [_mean(mean) for mean in group.nodes("by_segment")]
    if (
        len(lines) != size
        or len(by_segment) != size
        or not seconds
        or seconds < 0
        or {*gates.keys()} != {*PLACES}
    ):
        raise DataError(f"{size} lines, seconds and gates are expected")
    matching = [_mean(mean) for mean in group.nodes("matching")]
    return Outcome(
        lines, seconds, matching, {place: _mean(gates.node(place)) for place in PLACES}, by_segment
    )


def _mean(mean: Node) -> Mean:
    return Mean(mean.number("total") or 0.0, int(mean.number("count") or 0))
