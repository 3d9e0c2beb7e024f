"""Everything that is measured of the systems on one test set: what `tmnmt evaluate` writes into a
report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tmnmt.eval.data.distinct import together, unit_means, units_of
from tmnmt.eval.data.near_leaks import FEWEST_WORDS, NearLeaks
from tmnmt.eval.measures.align import Aligner, tokens
from tmnmt.eval.measures.consistency import Terms, function_words
from tmnmt.eval.measures.effort import edits_to, weighted_words, words_by_band
from tmnmt.eval.measures.learned import MeasuredScores
from tmnmt.eval.measures.metrics import Metric, count, metrics, sentence_bleu
from tmnmt.eval.measures.origin import origins
from tmnmt.eval.measures.significance import BOOTSTRAP, FEWEST_UNITS, TESTS, Compared, holm
from tmnmt.eval.measures.slices import (
    BANDS,
    HALVES,
    LENGTHS,
    NEAR_LEAKS,
    NONE,
    POSITIONS,
    band_of,
    half_of,
    parts,
    places,
)
from tmnmt.progress import ReadProgress
from tmnmt.quantities import quantity
from tmnmt.segments import Match
from tmnmt.text import match_tokens, words


@dataclass(frozen=True)
class TestSet:
    """What systems translate: as many sources (none where unknown), references (R lists) and
    documents as segments.

    best: for every segment the best match of its memory at any score, None where it has no memory.
    pairs: sources and targets of that memory, for the aligner. leaks: the references that stand in
    what the systems know, None where that is not known at all."""

    __test__ = False  # no test of pytest's

    name: str
    src_lang: str
    tgt_lang: str
    sources: Sequence[str]
    references: Sequence[Sequence[str]]
    documents: Sequence[str]
    best: Sequence[Match | None] | None = None
    pairs: Iterable[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
    leaks: NearLeaks | None = None

    def __len__(self) -> int:
        return len(self.documents)

    def segment_references(self, segment: int) -> list[str]:
        """The references of one segment."""
        return [lines[segment] for lines in self.references]

    @cached_property
    def bands(self) -> list[str]:
        """The band of every segment."""
        return (
            [band_of(match) for match in self.best] if self.best is not None else [NONE] * len(self)
        )

    @cached_property
    def texts(self) -> Sequence[str]:
        """What lengths and words are counted in: the sources, the references where those are
        unknown."""
        return self.sources or self.references[0]


@dataclass(frozen=True)
class Output:
    """What one system wrote. records: reads again, segment by segment, {"matches": [...], "tokens":
    [...]}, as `tmnmt translate --json` says them; None for a system of which only the text is
    known."""

    name: str
    lines: Sequence[str]
    settings: Mapping[str, str] = field(default_factory=dict)
    records: Callable[[], Iterator[Mapping[str, Any]]] | None = None
    explained: bool = False
    cost: Mapping[str, float | int | None] | None = None


class Measured:
    """The outputs of several systems on one test set, counted; `entry` is their part of
    report.json, `lines` theirs of segments.jsonl. baseline: the name of the system that the others
    are compared with. learned_scores: what others have scored, beside what is counted here."""

    def __init__(
        self,
        test: TestSet,
        outputs: Sequence[Output],
        baseline: str,
        weights: Mapping[str, float],
        progress: ReadProgress | None = None,
        learned_scores: Sequence[MeasuredScores] = (),
    ) -> None:
        self.test, self.outputs, self.weights = test, outputs, weights
        self.baseline = next(i for i, output in enumerate(outputs) if output.name == baseline)
        counted_metrics = metrics(test.tgt_lang)
        self.learned_names = [scores.metric.name for scores in learned_scores]
        self.metrics = [*counted_metrics, *(scores.metric for scores in learned_scores)]
        hypotheses = [output.lines for output in outputs]
        self.counts = {
            metric.name: count(metric, test.references, hypotheses, progress)
            for metric in counted_metrics
        } | {scores.metric.name: scores.counts for scores in learned_scores}
        self.units = units_of(test.sources, test.references)
        whole = {
            name: [together(rows, self.units) for rows in counts]
            for name, counts in self.counts.items()
        }
        self.whole = Compared(self.metrics, whole, self.baseline)
        self.distinct = self._part(range(len(test)))
        self.edits = [
            [
                edits_to(line, test.segment_references(segment))
                for segment, line in enumerate(output.lines)
            ]
            for output in outputs
        ]

    @property
    def main(self) -> list[Metric]:
        return [metric for metric in self.metrics if metric.is_main]

    def entry(self) -> dict[str, Any]:
        """The test set and its systems, in the form of report.json."""
        test, consistency = self.test, self._consistency()
        versus = self._versus()
        bands = self._grouped(test.bands, (*BANDS, NONE))
        halves = self._halves()
        by_band, by_half = self._compared(bands), self._compared(halves)
        leak_groups = self._leak_groups()
        by_near_leak = self._compared(leak_groups)
        by_position = self._parts(places(test.documents), POSITIONS)
        by_length = self._parts([len(match_tokens(text)) for text in test.texts], LENGTHS)
        return {
            "name": test.name,
            "src_lang": test.src_lang,
            "tgt_lang": test.tgt_lang,
            "segments": len(test),
            "distinct": self.distinct.units,
            "documents": len(set(test.documents)),
            "words": sum(map(words, test.references[0])),
            "has_sources": bool(test.sources),
            "warnings": [*test.warnings, *self._notes()],
            "bands": self._sizes(bands),
            "halves": self._sizes(halves),
            "near_leaks": self._near_leaks(),
            "near": self._sizes(leak_groups),
            "reference": consistency(test.references[0]) if consistency else None,
            "systems": [
                {
                    "name": output.name,
                    "settings": dict(output.settings),
                    "baseline": number == self.baseline,
                    "metrics": self._scores(number),
                    "gain": self.whole.gains(number),
                    "versus": versus[number],
                    "by_band": by_band[number],
                    "by_half": by_half[number],
                    "by_near_leak": by_near_leak[number],
                    "by_position": by_position[number],
                    "by_length": by_length[number],
                    "origin": self._origin(output),
                    "consistency": consistency(output.lines) if consistency else None,
                    "effort": self._effort(number),
                    "cost": output.cost,
                }
                for number, output in enumerate(self.outputs)
            ],
        }

    def lines(self) -> Iterator[dict[str, Any]]:
        """The segments in order, in the form of segments.jsonl; "position" counts from 1 in the
        document."""
        test = self.test
        bleu = [sentence_bleu(counts) for counts in self.counts["BLEU"]]
        records = [output.records() if output.records else None for output in self.outputs]
        for segment, place in enumerate(places(test.documents)):
            references = test.segment_references(segment)
            systems = {}
            for number, (output, details) in enumerate(zip(self.outputs, records, strict=True)):
                systems[output.name] = {
                    "hyp": output.lines[segment],
                    "bleu": round(float(bleu[number][segment]), 2),
                    "edit_rate": round(self.edits[number][segment].rate, 4),
                    **self._learned_scores(number, segment),
                    **(_record(next(details), output.explained) if details else {}),
                }
            yield {
                "test": test.name,
                "document": test.documents[segment],
                "position": place,
                "src": test.sources[segment] if test.sources else None,
                "ref": references[0],
                **({"refs": references} if len(references) > 1 else {}),
                "band": test.bands[segment],
                "best": self._best(segment),
                "systems": systems,
            }

    def _learned_scores(self, system: int, segment: int) -> dict[str, dict[str, float]]:
        scores = {
            name: round(float(self.counts[name][system][segment, 0]), 4)
            for name in self.learned_names
        }
        return {"scores": scores} if scores else {}

    def _best(self, segment: int) -> dict[str, Any] | None:
        match = self.test.best[segment] if self.test.best is not None else None
        if match is None:
            return None
        best = match.segment
        return {
            "score": round(match.score, 4),
            "src": best.src,
            "tgt": best.tgt,
            "document": best.document,
        }

    def _scores(self, number: int) -> dict[str, dict[str, Any]]:
        """Of all segments, with intervals by resampled units."""
        scores, intervals = self.whole.scores(number), self.whole.intervals(number)
        references = len(self.test.references)
        return {
            metric.name: {
                "score": scores[metric.name],
                **intervals[metric.name],
                "signature": metric.signature(references),
            }
            for metric in self.metrics
        }

    def _versus(self) -> list[list[dict[str, Any]]]:
        """For every system how it differs from the baseline, every unit counted once; Holm's
        correction is for the number of systems. The bootstrap has no p where there are too few
        units to draw from."""
        tests: list[list[dict[str, Any]]] = [[] for _ in self.outputs]
        rivals = [number for number in range(len(self.outputs)) if number != self.baseline]
        baseline = self.outputs[self.baseline].name
        for metric in self.main:
            scored = self.distinct.scored[metric.name]
            for test, p_value in TESTS.items():
                p = [p_value(scored[self.baseline], scored[number]) for number in rivals]
                has_p = test != BOOTSTRAP or self.distinct.units >= FEWEST_UNITS
                for number, raw_p, corrected in zip(rivals, p, holm(p), strict=True):
                    tests[number].append(
                        {
                            "test": test,
                            "metric": metric.name,
                            "against": baseline,
                            "difference": scored[number].score - scored[self.baseline].score,
                            "p": raw_p if has_p else None,
                            "p_holm": corrected if has_p else None,
                        }
                    )
        return tests

    def _notes(self) -> list[str]:
        """What is to be noted where there are too few units for the bootstrap's p."""
        if len(self.outputs) < 2 or self.distinct.units >= FEWEST_UNITS:
            return []
        units = quantity(self.distinct.units, "distinct segment")
        return [f"{units}: no p is given of the {BOOTSTRAP}, which wants {FEWEST_UNITS}"]

    def _halves(self) -> dict[str, list[int]]:
        """The segments below and above what is looked up by default; none where there
        is no memory."""
        return self._grouped([half_of(band) for band in self.test.bands], HALVES)

    def _leak_groups(self) -> dict[str, list[int]]:
        """The near leaks and all other segments; none where there is no near leak."""
        leaks = set(self.test.leaks.segments) if self.test.leaks is not None else set()
        if not leaks:
            return {}
        names = [NEAR_LEAKS[number not in leaks] for number in range(len(self.test))]
        return self._grouped(names, NEAR_LEAKS)

    def _near_leaks(self) -> dict[str, Any] | None:
        """How many references of FEWEST_WORDS words or more stand in what the systems know, and
        where; every segment counts. None where there is nothing that is known."""
        leaks = self.test.leaks
        if leaks is None:
            return None
        lengths = [words(text) for text in self.test.references[0]]
        total = max(sum(lengths), 1)

        def size(segments: Sequence[int]) -> dict[str, Any]:
            word_count = sum(lengths[segment] for segment in segments)
            return {
                "segments": len(segments),
                "share": len(segments) / len(self.test),
                "words": word_count,
                "word_share": word_count / total,
            }

        return {
            "fewest_words": FEWEST_WORDS,
            **size(leaks.segments),
            "places": [{"name": name, **size(segments)} for name, segments in leaks.places.items()],
            "unknown": list(leaks.unknown),
        }

    def _grouped(self, values: Sequence[str], order: Sequence[str]) -> dict[str, list[int]]:
        """Of every value that there is, in this order, the segments that have it."""
        members = {
            value: [i for i, entry in enumerate(values) if entry == value] for value in order
        }
        return {value: segments for value, segments in members.items() if segments}

    def _sizes(self, groups: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
        """How many segments a part has, how many words they have, and what share of all that is; a
        segment that is there several times counts once."""
        texts = dict(zip(self.units.tolist(), self.test.texts, strict=True))
        members = {
            name: {int(self.units[segment]) for segment in segments}
            for name, segments in groups.items()
        }
        word_counts = {
            name: sum(words(texts[unit]) for unit in units) for name, units in members.items()
        }
        total = max(sum(words(text) for text in texts.values()), 1)
        return [
            {
                "band": name,
                "segments": len(units),
                "words": word_counts[name],
                "share": len(units) / len(texts),
                "word_share": word_counts[name] / total,
            }
            for name, units in members.items()
        ]

    def _compared(self, groups: Mapping[str, Sequence[int]]) -> list[list[dict[str, Any]]]:
        """For every system its scores in every part, with intervals, and what it gains there."""
        parts = [(name, self._part(segments)) for name, segments in groups.items()]
        return [
            [
                {
                    "band": name,
                    "segments": part.units,
                    "metrics": part.scores(number),
                    "intervals": part.intervals(number),
                    "gain": part.gains(number),
                }
                for name, part in parts
            ]
            for number in range(len(self.outputs))
        ]

    def _parts(self, values: Sequence[int], starts: Sequence[int]) -> list[list[dict[str, Any]]]:
        """For every system its scores in the parts that begin at `starts`."""
        compared = [
            (start, end, self._part(segments)) for start, end, segments in parts(values, starts)
        ]
        return [
            [
                {"from": start, "to": end, "segments": part.units, "metrics": part.scores(number)}
                for start, end, part in compared
            ]
            for number in range(len(self.outputs))
        ]

    def _part(self, segments: Sequence[int]) -> Compared:
        """All systems on some segments, each unit of them counted once."""
        rows = np.array(segments)
        counts = {
            m.name: [
                unit_means(system_counts[rows], self.units[rows])
                for system_counts in self.counts[m.name]
            ]
            for m in self.main
        }
        return Compared(self.main, counts, self.baseline)

    def _origin(self, output: Output) -> dict[str, Any] | None:
        if output.records is None or not output.explained:
            return None
        tokens_of = (record["tokens"] for record in output.records())
        return origins(
            (tokens, self.test.segment_references(segment))
            for segment, tokens in enumerate(tokens_of)
        )

    def _effort(self, number: int) -> dict[str, Any]:
        edits = self.edits[number]
        word_counts = words_by_band(self.test.texts, self.test.bands)
        return {
            "edit_rate": sum(edit.edits for edit in edits)
            / max(sum(edit.words for edit in edits), 1),
            "words_by_band": word_counts,
            "weighted_words": weighted_words(word_counts, self.weights),
        }

    def _consistency(self) -> Callable[[Sequence[str]], dict[str, float | None]] | None:
        """What gives the shares of a text; None where no sources are known."""
        test = self.test
        if not test.sources:
            return None
        training_pairs = [*test.pairs, *zip(test.sources, test.references[0], strict=True)]
        aligner = Aligner(training_pairs)
        common = set().union(
            *(
                function_words([tokens(text) for text in side])
                for side in zip(*training_pairs, strict=True)
            )
        )
        terms = Terms(test.sources, test.documents, common)

        def shares(lines: Sequence[str]) -> dict[str, float | None]:
            aligned = terms.by_alignment(lines, aligner)
            return {
                "LTCR": aligned.ltcr,
                "LTCR-1": aligned.ltcr_1,
                "LTCR (string)": terms.by_strings(lines).ltcr,
            }

        return shares


def _record(record: Mapping[str, Any], explained: bool) -> dict[str, Any]:
    matches = [
        {name: match[name] for name in ("src", "tgt", "score", "document")}
        for match in record["matches"]
    ]
    return {"matches": matches, **({"tokens": record["tokens"]} if explained else {})}
