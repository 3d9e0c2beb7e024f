"""What changed between two runs, system by system, and whether by more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tmnmt.errors import DataError
from tmnmt.eval.data.distinct import unit_means, units_of
from tmnmt.eval.measures.metrics import count, metrics
from tmnmt.eval.measures.significance import Scored, approximate_randomisation, holm
from tmnmt.eval.report.run_folder import SEGMENTS, Node, read_report, read_segments


@dataclass
class Lines:
    """A test set of a run: its references, one list for each, and what every system wrote."""

    # (source, references) of every segment
    keys: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    systems: dict[str, list[str]] = field(default_factory=dict)

    def add(self, line: Node) -> None:
        self.keys.append((line.text("src"), tuple(line.texts("refs") or [line.text("ref")])))
        systems = line.node("systems")
        for name in systems.keys():
            self.systems.setdefault(name, []).append(systems.node(name).text("hyp"))


@dataclass(frozen=True)
class Run:
    """A run's folder, read."""

    folder: Path
    tests: dict[str, Node]  # of report.json
    lines: dict[str, Lines]


def read_run(folder: Path) -> Run:
    """Raises DataError, with file and line, for what is no report or is damaged."""
    tests = {test.name("name"): test for test in read_report(folder).nodes("tests")}
    lines: dict[str, Lines] = {}
    for line in read_segments(folder):
        lines.setdefault(line.name("test"), Lines()).add(line)
    for name, test_lines in lines.items():
        short = next(
            (
                system
                for system, outputs in test_lines.systems.items()
                if len(outputs) != len(test_lines.keys)
            ),
            None,
        )
        if short is not None:
            raise DataError(
                f"{folder / SEGMENTS}: {short} has not translated every segment of {name}"
            )
    return Run(folder, tests, lines)


def compare(a: Run, b: Run) -> dict[str, Any]:
    """{"a", "b", "tests": [{"name", "segments", "only_a", "only_b", "systems"}]} of the test sets
    that both have.

    A system is {"name", "changed" segments, "settings": {key: [a, b]} where they differ, "metrics":
    {name: {"a", "b", "difference", "p", "p_holm"}}}: scores of all segments; p by approximate
    randomisation, in which segments of one source and reference count once, corrected by Holm for
    the number of systems. Raises DataError where they have no test set in common, or one of the
    same name that differs."""
    names = [name for name in a.tests if name in b.tests]
    if not names:
        raise DataError(
            f"{a.folder} has {_listed(a.tests)}, {b.folder} {_listed(b.tests)}: no test set in "
            "common"
        )
    return {"a": str(a.folder), "b": str(b.folder), "tests": [_test(name, a, b) for name in names]}


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "no test set"


def _test(name: str, a: Run, b: Run) -> dict[str, Any]:
    lines_a, lines_b = a.lines.get(name, Lines()), b.lines.get(name, Lines())
    if lines_a.keys != lines_b.keys or not lines_a.keys:
        raise DataError(
            f"{name}: {a.folder} and {b.folder} have other segments or references under this name"
        )
    common = [system for system in lines_a.systems if system in lines_b.systems]
    return {
        "name": name,
        "segments": len(lines_a.keys),
        "only_a": [system for system in lines_a.systems if system not in common],
        "only_b": [system for system in lines_b.systems if system not in common],
        "systems": _systems(common, lines_a, lines_b, a.tests[name], b.tests[name]),
    }


def _systems(
    names: list[str], lines_a: Lines, lines_b: Lines, a: Node, b: Node
) -> list[dict[str, Any]]:
    references = list(zip(*(refs for _, refs in lines_a.keys), strict=True))
    units = units_of([src for src, _ in lines_a.keys], references)
    systems: list[dict[str, Any]] = [
        {
            "name": name,
            "changed": sum(
                x != y for x, y in zip(lines_a.systems[name], lines_b.systems[name], strict=True)
            ),
            "settings": _changed(_settings(a, name), _settings(b, name)),
            "metrics": {},
        }
        for name in names
    ]
    for metric in metrics(a.text("tgt_lang")):
        if not metric.is_main:
            continue
        counts = count(
            metric,
            references,
            [*(lines_a.systems[n] for n in names), *(lines_b.systems[n] for n in names)],
        )
        pairs = list(zip(counts[: len(names)], counts[len(names) :], strict=True))
        scored = [[Scored(metric, unit_means(rows, units)) for rows in pair] for pair in pairs]
        p = [approximate_randomisation(first, second) for first, second in scored]
        for system, pair, chance, corrected in zip(systems, pairs, p, holm(p), strict=True):
            score, other_score = (metric.score(rows) for rows in pair)
            system["metrics"][metric.name] = {
                "a": score,
                "b": other_score,
                "difference": other_score - score,
                "p": chance,
                "p_holm": corrected,
            }
    return systems


def _settings(test: Node, name: str) -> dict[str, str]:
    settings = next(
        (s.node("settings") for s in test.nodes("systems") if s.name("name") == name),
        Node({}, test.location),
    )
    return {key: settings.text(key) for key in settings.keys()}


def _changed(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, list[str | None]]:
    return {
        key: [a.get(key), b.get(key)]
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key)
    }
