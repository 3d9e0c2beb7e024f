"""What changed between two runs, system by system, and whether by more than chance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tmnmt.errors import DataError
from tmnmt.eval.metrics import MAIN, count, metrics
from tmnmt.eval.significance import Scored, approximate_randomisation, holm
from tmnmt.eval.write import FORMAT, REPORT, SEGMENTS


@dataclass
class Lines:
    """A test set of a run: its references, one list for each, and what every system wrote."""

    keys: list[tuple[Any, Any]] = field(default_factory=list)  # (source, references) of every segment
    systems: dict[str, list[str]] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any]) -> None:
        self.keys.append((line["src"], tuple(line.get("refs", [line["ref"]]))))
        for name, system in line["systems"].items():
            self.systems.setdefault(name, []).append(system["hyp"])


@dataclass(frozen=True)
class Run:
    """A run's folder, read."""

    folder: Path
    tests: dict[str, dict[str, Any]]  # of report.json
    lines: dict[str, Lines]


def read_run(folder: Path) -> Run:
    """Raises DataError, with file and line, for what is no report or is damaged."""
    report = _parsed((folder / REPORT).read_text, folder / REPORT)
    if report.get("format") != FORMAT:
        raise DataError(f"{folder / REPORT}: report format {report.get('format')}, this version reads {FORMAT}")
    lines: dict[str, Lines] = {}
    for line in _segments(folder / SEGMENTS):
        lines.setdefault(line["test"], Lines()).add(line)
    return Run(folder, {test["name"]: test for test in report["tests"]}, lines)


def _segments(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise DataError(f"{path}, line {number}: no JSON: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def _parsed(read: Any, path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(read(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; a run's folder is wanted") from error
    except ValueError as error:
        raise DataError(f"{path}: no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise DataError(f"{path}: no report")
    return parsed


def compare(a: Run, b: Run) -> dict[str, Any]:
    """{"a", "b", "tests": [{"name", "segments", "only_a", "only_b", "systems"}]} of the test sets that both have.

    A system is {"name", "changed" segments, "settings": {key: [a, b]} where they differ, "metrics": {name: {"a", "b",
    "difference", "p", "p_holm"}}}; p by approximate randomisation, Holm's correction for the number of systems. Raises
    DataError where they have no test set in common, or one of the same name that differs."""
    names = [name for name in a.tests if name in b.tests]
    if not names:
        raise DataError(f"{a.folder} has {_listed(a.tests)}, {b.folder} {_listed(b.tests)}: no test set in common")
    return {"a": str(a.folder), "b": str(b.folder), "tests": [_test(name, a, b) for name in names]}


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "no test set"


def _test(name: str, a: Run, b: Run) -> dict[str, Any]:
    one, other = a.lines.get(name, Lines()), b.lines.get(name, Lines())
    if one.keys != other.keys or not one.keys:
        raise DataError(f"{name}: {a.folder} and {b.folder} have other segments or references under this name")
    both = [system for system in one.systems if system in other.systems]
    return {
        "name": name, "segments": len(one.keys),
        "only_a": [system for system in one.systems if system not in both],
        "only_b": [system for system in other.systems if system not in both],
        "systems": _systems(both, one, other, a.tests[name], b.tests[name]),
    }  # fmt: skip


def _systems(
    names: list[str], one: Lines, other: Lines, a: Mapping[str, Any], b: Mapping[str, Any]
) -> list[dict[str, Any]]:
    references = list(zip(*(refs for _, refs in one.keys), strict=True))
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "changed": sum(x != y for x, y in zip(one.systems[name], other.systems[name], strict=True)),
            "settings": _changed(_settings(a, name), _settings(b, name)),
            "metrics": {},
        }
        for name in names
    ]
    for metric in metrics(a["tgt_lang"]):
        if metric.name not in MAIN:
            continue
        counts = count(metric, references, [*(one.systems[n] for n in names), *(other.systems[n] for n in names)])
        scored = [Scored(metric, rows) for rows in counts]
        pairs = list(zip(scored[: len(names)], scored[len(names) :], strict=True))
        p = [approximate_randomisation(*pair) for pair in pairs]
        for system, (first, second), chance, corrected in zip(found, pairs, p, holm(p), strict=True):
            system["metrics"][metric.name] = {
                "a": first.score, "b": second.score, "difference": second.score - first.score, "p": chance,
                "p_holm": corrected,
            }  # fmt: skip
    return found


def _settings(test: Mapping[str, Any], name: str) -> dict[str, str]:
    return next((dict(system["settings"]) for system in test["systems"] if system["name"] == name), {})


def _changed(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, list[str | None]]:
    return {key: [a.get(key), b.get(key)] for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)}
