"""The files of a cache report: report.json, tables as TSV, plots as SVG."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tmnmt.eval.cache.report import CacheReading, Results
from tmnmt.eval.cache.watch import CLASSES, FREQUENT
from tmnmt.eval.report.svg import heat_map, line_chart
from tmnmt.formats.atomic import writing

AGES_SHOWN = 100  # in the plot; the table has all
SCORES = (
    "test",
    "slots",
    "overwriting",
    "hypotheses written",
    "BLEU",
    "chrF",
    "better",
    "worse",
    "p",
    "words/s",
)


def write_report(
    folder: Path, metadata: dict[str, Any], tests: Sequence[Results]
) -> dict[str, Any]:
    """Writes all files, each whole or not at all, and gives back what report.json says."""
    report = metadata | {"tests": {test.name: _record(test) for test in tests}}
    _write(folder / "report.json", json.dumps(report, ensure_ascii=False, indent=1) + "\n")
    _write(folder / "scores.tsv", _tsv([SCORES, *score_lines(tests)]))
    _write(folder / "size.svg", size_chart(tests))
    for test in tests:
        _write(folder / f"matching.{test.name}.tsv", _tsv(_ages(test)))
        _write(folder / f"matching.{test.name}.svg", age_chart(test))
        _write(folder / f"gates.{test.name}.tsv", _tsv(_gates(test)))
        _write(folder / f"gates.{test.name}.svg", gate_chart(test))
        _write(folder / f"matrix.{test.name}.tsv", _tsv(_matrix(test.view)))
        _write(folder / f"matrix.{test.name}.svg", matrix_map(test))
    return report


def score_lines(tests: Sequence[Results]) -> list[list[str]]:
    """The table of scores, without its head: what the paper's tables 2 to 5 say."""
    lines = []
    for test in tests:
        for row in test.rows:
            arm, signs = row.arm, row.signs
            kind = [
                str(arm.size),
                *([("on" if arm.overwrite else "off"), str(arm.best)] if arm.size else ["", ""]),
            ]
            sign_cells = (
                [str(signs.better), str(signs.worse), f"{signs.p:.4f}"] if signs else ["", "", ""]
            )
            speed = f"{row.outcome.words / row.outcome.seconds:.1f}"
            lines.append(
                [
                    test.name,
                    *kind,
                    f"{row.scores.bleu:.2f}",
                    f"{row.scores.chrf:.2f}",
                    *sign_cells,
                    speed,
                ]
            )
    return lines


def size_chart(tests: Sequence[Results]) -> str:
    sizes = [str(row.arm.size) for row in tests[0].by_size]
    lines = {test.name: [row.scores.bleu for row in test.by_size] for test in tests}
    return line_chart(
        "BLEU over the size of the session cache",
        "slots (0: no cache)",
        "BLEU, 0 to 100",
        sizes,
        lines,
    )


def age_chart(test: Results) -> str:
    lines = {
        f"{row.arm.size} slots": [mean.value for mean in row.outcome.matching[:AGES_SHOWN]]
        for row in test.by_size
        if row.outcome.matching
    }
    ages = [str(age) for age in range(max(map(len, lines.values())))]
    return line_chart(
        f"{test.name}: matching by age",
        "age of the slot, in slots written later",
        "mean matching probability",
        ages,
        lines,
    )


def gate_chart(test: Results) -> str:
    gates = test.row(test.main).outcome.gates
    lines = {
        location: [
            gate.value if gate.count else None
            for kind in CLASSES
            if (gate := gates[f"{kind}, {location}"])
        ]
        for location in ("in the cache", "not in the cache")
    }
    return line_chart(
        f"{test.name}: gate by class of word, slots: {test.main.name}",
        f"class ({FREQUENT} words are frequent)",
        "mean gate, 0 to 1",
        CLASSES,
        lines,
        has_lines=False,
    )


def matrix_map(test: Results) -> str:
    view = test.view
    return heat_map(
        f"{test.name}, segment {view.segment}: matching probability",
        "subwords of the translation",
        "slots, the latest first",
        [*map(_legible, view.words)],
        [*map(_legible, view.slots)],
        view.weights,
    )


def _legible(subword: str) -> str:
    """A subword by itself: what begins a word as it is, what goes on with one after a plus."""
    return subword.removeprefix("▁") or "▁" if subword.startswith("▁") else f"+{subword}"


def _record(test: Results) -> dict[str, Any]:
    return {
        "segments": test.segments,
        "documents": test.documents,
        "arms": [row.record() for row in test.rows],
        "matrix": asdict(test.view),
    }


def _ages(test: Results) -> Iterable[Sequence[str]]:
    yield (
        "slots",
        "overwriting",
        "hypotheses written",
        "age",
        "mean matching probability",
        "subwords",
    )
    for row in test.rows:
        arm = row.arm
        kind = str(arm.size), "on" if arm.overwrite else "off", str(arm.best)
        for age, mean in enumerate(row.outcome.matching):
            yield *kind, str(age), f"{mean.value:.6f}", str(mean.count)


def _gates(test: Results) -> Iterable[Sequence[str]]:
    yield "class", "slot", "mean gate", "subwords"
    for name, gate in test.row(test.main).outcome.gates.items():
        yield *name.split(", "), f"{gate.value:.6f}", str(gate.count)


def _matrix(view: CacheReading) -> Iterable[Sequence[str]]:
    yield "slot", *view.words
    for slot, weights in zip(view.slots, view.weights, strict=True):
        yield slot, *(f"{weight:.6f}" for weight in weights)


def _tsv(lines: Iterable[Sequence[str]]) -> str:
    return "".join("\t".join(line) + "\n" for line in lines)


def _write(path: Path, text: str) -> None:
    with writing(path) as stream:
        stream.write(text)
