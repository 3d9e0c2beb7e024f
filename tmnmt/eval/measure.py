"""Everything that is measured of the systems on one test set: what `tmnmt evaluate` writes into a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tmnmt.eval.align import Aligner, tokens
from tmnmt.eval.consistency import Terms, function_words
from tmnmt.eval.effort import edits_to, weighted_words, words_by_band
from tmnmt.eval.metrics import MAIN, Counts, Metric, count, metrics, sentence_bleu
from tmnmt.eval.origin import origins
from tmnmt.eval.significance import TESTS, Scored, holm
from tmnmt.eval.slices import BANDS, LENGTHS, NONE, POSITIONS, band_of, parts, places
from tmnmt.progress import ReadProgress
from tmnmt.segments import Match
from tmnmt.text import match_tokens, words


@dataclass(frozen=True)
class TestSet:
    """What systems translate: as many sources (none where unknown), references (R lists) and documents as segments.

    best: for every segment the best match of its memory at any score, None where it has no memory. pairs: sources and
    targets of that memory, for the aligner."""

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

    def __len__(self) -> int:
        return len(self.documents)

    def of(self, segment: int) -> list[str]:
        """The references of one segment."""
        return [lines[segment] for lines in self.references]

    @cached_property
    def bands(self) -> list[str]:
        """The band of every segment."""
        return [band_of(match) for match in self.best] if self.best is not None else [NONE] * len(self)

    @cached_property
    def texts(self) -> Sequence[str]:
        """What lengths and words are counted in: the sources, the references where those are unknown."""
        return self.sources or self.references[0]


@dataclass(frozen=True)
class Output:
    """What one system wrote. records: reads again, segment by segment, {"matches": [...], "tokens": [...]}, as
    `tmnmt translate --json` says them; None for a system of which only the text is known."""

    name: str
    lines: Sequence[str]
    settings: Mapping[str, str] = field(default_factory=dict)
    records: Callable[[], Iterator[Mapping[str, Any]]] | None = None
    explained: bool = False
    cost: Mapping[str, float | int | None] | None = None


class Measured:
    """The outputs of several systems on one test set, counted; `entry` is their part of report.json, `lines` theirs of
    segments.jsonl. baseline: the name of the system that the others are compared with."""

    def __init__(
        self, test: TestSet, outputs: Sequence[Output], baseline: str, weights: Mapping[str, float],
        progress: ReadProgress | None = None,
    ) -> None:  # fmt: skip
        self.test, self.outputs, self.weights = test, outputs, weights
        self.baseline = next(i for i, output in enumerate(outputs) if output.name == baseline)
        self.metrics = metrics(test.tgt_lang)
        written = [output.lines for output in outputs]
        self.counts = {metric.name: count(metric, test.references, written, progress) for metric in self.metrics}
        self.edits = [
            [edits_to(line, test.of(segment)) for segment, line in enumerate(output.lines)] for output in outputs
        ]

    @property
    def main(self) -> list[Metric]:
        return [metric for metric in self.metrics if metric.name in MAIN]

    def entry(self) -> dict[str, Any]:
        """The test set and its systems, in the form of report.json."""
        test, consistency = self.test, self._consistency()
        versus = self._versus()
        return {
            "name": test.name, "src_lang": test.src_lang, "tgt_lang": test.tgt_lang, "segments": len(test),
            "documents": len(set(test.documents)), "words": sum(map(words, test.references[0])),
            "has_sources": bool(test.sources), "warnings": list(test.warnings), "bands": self._bands(),
            "reference": consistency(test.references[0]) if consistency else None,
            "systems": [
                {
                    "name": output.name, "settings": dict(output.settings), "baseline": number == self.baseline,
                    "metrics": self._scores(number), "versus": versus[number],
                    "by_band": [{"band": band, **self._band(number, some)} for band, some in self._by_band()],
                    "by_position": self._parts(number, places(test.documents), POSITIONS),
                    "by_length": self._parts(number, [len(match_tokens(text)) for text in test.texts], LENGTHS),
                    "origin": self._origin(output), "consistency": consistency(output.lines) if consistency else None,
                    "effort": self._effort(number), "cost": output.cost,
                }
                for number, output in enumerate(self.outputs)
            ],
        }  # fmt: skip

    def lines(self) -> Iterator[dict[str, Any]]:
        """The segments in order, in the form of segments.jsonl; "position" counts from 1 in the document."""
        test = self.test
        bleu = [sentence_bleu(counts) for counts in self.counts["BLEU"]]
        records = [output.records() if output.records else None for output in self.outputs]
        for segment, place in enumerate(places(test.documents)):
            references = test.of(segment)
            systems = {}
            for number, (output, more) in enumerate(zip(self.outputs, records, strict=True)):
                systems[output.name] = {
                    "hyp": output.lines[segment], "bleu": round(float(bleu[number][segment]), 2),
                    "edit_rate": round(self.edits[number][segment].rate, 4),
                    **(_told(next(more), output.explained) if more else {}),
                }  # fmt: skip
            yield {
                "test": test.name, "document": test.documents[segment], "position": place,
                "src": test.sources[segment] if test.sources else None, "ref": references[0],
                **({"refs": references} if len(references) > 1 else {}),
                "band": test.bands[segment], "best": self._best(segment), "systems": systems,
            }  # fmt: skip

    def _best(self, segment: int) -> dict[str, Any] | None:
        match = self.test.best[segment] if self.test.best is not None else None
        if match is None:
            return None
        found = match.segment
        return {"score": round(match.score, 4), "src": found.src, "tgt": found.tgt, "document": found.document}

    def _scores(self, number: int) -> dict[str, dict[str, Any]]:
        found = {}
        for metric in self.metrics:
            scored = self._scored[metric.name][number]
            low, high = scored.interval()
            signature = metric.signature(len(self.test.references))
            found[metric.name] = {"score": scored.score, "low": low, "high": high, "signature": signature}
        return found

    @cached_property
    def _scored(self) -> dict[str, list[Scored]]:
        return {metric.name: [Scored(metric, c) for c in self.counts[metric.name]] for metric in self.metrics}

    def _versus(self) -> list[list[dict[str, Any]]]:
        """For every system how it differs from the baseline; Holm's correction is for the number of systems."""
        found: list[list[dict[str, Any]]] = [[] for _ in self.outputs]
        others = [number for number in range(len(self.outputs)) if number != self.baseline]
        against = self.outputs[self.baseline].name
        for metric in self.main:
            scored = self._scored[metric.name]
            for test, p_value in TESTS.items():
                p = [p_value(scored[self.baseline], scored[number]) for number in others]
                for number, one, corrected in zip(others, p, holm(p), strict=True):
                    found[number].append({
                        "test": test, "metric": metric.name, "against": against,
                        "difference": scored[number].score - scored[self.baseline].score, "p": one, "p_holm": corrected,
                    })  # fmt: skip
        return found

    def _bands(self) -> list[dict[str, Any]]:
        counted = words_by_band(self.test.texts, self.test.bands)
        return [
            {"band": band, "segments": len(some), "words": counted[band]} for band, some in self._by_band()
        ]  # fmt: skip

    def _by_band(self) -> list[tuple[str, list[int]]]:
        """The bands that have segments, from the lowest on, with those."""
        of = {band: [i for i, own in enumerate(self.test.bands) if own == band] for band in (*BANDS, NONE)}
        return [(band, some) for band, some in of.items() if some]

    def _parts(self, number: int, values: Sequence[int], starts: Sequence[int]) -> list[dict[str, Any]]:
        found = parts(values, starts)
        return [{"from": start, "to": end, **self._part(number, some)} for start, end, some in found]

    def _band(self, number: int, some: Sequence[int]) -> dict[str, Any]:
        """The same with 95 % bootstrap intervals, of resamples of these segments alone."""
        intervals = {}
        for metric in self.main:
            low, high = Scored(metric, self._of(metric, number)[np.array(some)]).interval()
            intervals[metric.name] = {"low": low, "high": high}
        return {**self._part(number, some), "intervals": intervals}

    def _part(self, number: int, some: Sequence[int]) -> dict[str, Any]:
        """The scores of some segments by themselves."""
        rows = np.array(some)
        scores = {metric.name: metric.score(self._of(metric, number)[rows]) for metric in self.main}
        return {"segments": len(some), "metrics": scores}

    def _of(self, metric: Metric, number: int) -> Counts:
        return self.counts[metric.name][number]

    def _origin(self, output: Output) -> dict[str, Any] | None:
        if output.records is None or not output.explained:
            return None
        told = (record["tokens"] for record in output.records())
        return origins((tokens, self.test.of(segment)) for segment, tokens in enumerate(told))

    def _effort(self, number: int) -> dict[str, Any]:
        edits = self.edits[number]
        counted = words_by_band(self.test.texts, self.test.bands)
        return {
            "edit_rate": sum(one.edits for one in edits) / max(sum(one.words for one in edits), 1),
            "words_by_band": counted, "weighted_words": weighted_words(counted, self.weights),
        }  # fmt: skip

    def _consistency(self) -> Callable[[Sequence[str]], dict[str, float | None]] | None:
        """What gives the shares of a text; None where no sources are known."""
        test = self.test
        if not test.sources:
            return None
        taught = [*test.pairs, *zip(test.sources, test.references[0], strict=True)]
        aligner = Aligner(taught)
        common = set().union(*(function_words([tokens(text) for text in side]) for side in zip(*taught, strict=True)))
        terms = Terms(test.sources, test.documents, common)

        def shares(lines: Sequence[str]) -> dict[str, float | None]:
            aligned = terms.by_alignment(lines, aligner)
            return {
                "LTCR": aligned.ltcr, "LTCR-1": aligned.ltcr_1, "LTCR (string)": terms.by_strings(lines).ltcr
            }  # fmt: skip

        return shares


def _told(record: Mapping[str, Any], explained: bool) -> dict[str, Any]:
    matches = [{name: match[name] for name in ("src", "tgt", "score", "document")} for match in record["matches"]]
    return {"matches": matches, **({"tokens": record["tokens"]} if explained else {})}
