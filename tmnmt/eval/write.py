"""A run's folder: report.json, report.md and segments.jsonl, each whole or not there."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tmnmt import __version__
from tmnmt.counted import counted
from tmnmt.eval.measure import Measured
from tmnmt.eval.metrics import LOWER_CASED, TOKENISED
from tmnmt.formats.atomic import writing

FORMAT = 1
LEVEL = 0.05
STARRED = "approximate randomisation"  # the test that the table's stars are of
REPORT, TABLE, SEGMENTS = "report.json", "report.md", "segments.jsonl"
PAPERS = {LOWER_CASED: "as Tu et al. 2018", TOKENISED: "as Gu et al. 2018"}


def made(seconds: float, recipe_sha256: str | None) -> dict[str, Any]:
    """What made a report: version, UTC date, machine, seconds it took, the command, and the recipe's hash."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    command = shlex.join(["tmnmt", *sys.argv[1:]])
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "version": __version__, "date": date, "machine": machine, "seconds": round(seconds, 1), "command": command,
        "recipe_sha256": recipe_sha256,
    }  # fmt: skip


def write_report(
    folder: Path, name: str, description: str, measured: Sequence[Measured], start: float, recipe_sha256: str | None
) -> dict[str, Any]:
    """Writes the three files; what report.json holds. start: by `time.monotonic`, of the whole command. Raises
    FormatError where they cannot be written."""
    tests = [one.entry() for one in measured]
    said = made(time.monotonic() - start, recipe_sha256)
    report = {"format": FORMAT, "name": name, "description": description, "made": said, "tests": tests}
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(line, ensure_ascii=False) + "\n" for one in measured for line in one.lines())
    _write(folder / SEGMENTS, lines)
    _write(folder / TABLE, [table(report)])
    _write(folder / REPORT, [json.dumps(report, ensure_ascii=False, indent=1) + "\n"])
    return report


def _write(path: Path, parts: Iterable[str]) -> None:
    """A byte of a file's name that is no UTF-8, a lone surrogate here, becomes a question mark."""
    with writing(path) as file:
        for part in parts:
            file.write(part.encode(errors="replace").decode())


def table(report: Mapping[str, Any]) -> str:
    """The report as Markdown: for every test set the systems, the bands, and what the numbers are."""
    made = report["made"]
    lines = [f"# {report['name']}", ""]
    lines += [report["description"], ""] if report["description"] else []
    for test in report["tests"]:
        lines += [f"## {test['name']}", "", *_test(test), ""]
    lines += [f"`{made['command']}`", "", f"tmnmt {made['version']}, {made['date']}, {made['machine']}", ""]
    return "\n".join(lines)


def _test(test: Mapping[str, Any]) -> Iterable[str]:
    nouns = {"segments": "segment", "documents": "document", "words": "reference word"}
    count = ", ".join(counted(test[key], noun) for key, noun in nouns.items())
    yield f"{count}, {test['src_lang']} to {test['tgt_lang']}."
    for warning in test["warnings"]:
        yield f"Note: {warning}."
    metrics = list(test["systems"][0]["metrics"])
    yield from ("", _row(["system", *metrics, "edit rate", "LTCR", "LTCR-1", "words/s"]))
    yield "|---|" + "---|" * (len(metrics) + 4)
    for system in test["systems"]:
        yield _row([system["name"], *(_score(system, name) for name in metrics), *_rest(system)])
    if test["reference"]:
        shares = [_share(test["reference"][name]) for name in ("LTCR", "LTCR-1")]
        yield _row(["the reference", *([""] * (len(metrics) + 1)), *shares, ""])
    yield ""
    yield from _bands(test)
    yield from ("", *_notes(test))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _score(system: Mapping[str, Any], metric: str) -> str:
    """Score, interval, and a star where it differs from the baseline's at 5 % after Holm's correction."""
    told = system["metrics"][metric]
    star = any(v["metric"] == metric and v["test"] == STARRED and v["p_holm"] <= LEVEL for v in system["versus"])
    return f"{told['score']:.2f}{'*' if star else ''} ({told['low']:.2f}-{told['high']:.2f})"


def _rest(system: Mapping[str, Any]) -> Iterable[str]:
    yield f"{system['effort']['edit_rate']:.3f}"
    shares = system["consistency"] or {}
    yield from (_share(shares.get(name)) for name in ("LTCR", "LTCR-1"))
    yield f"{system['cost']['words_per_second']:,.0f}" if system["cost"] else ""


def _share(share: float | None) -> str:
    return f"{share:.3f}" if share is not None else ""


def _bands(test: Mapping[str, Any]) -> Iterable[str]:
    """BLEU by the score of the best match, with intervals."""
    yield _row(["best match", "segments", f"{_side(test)} words", *(system["name"] for system in test["systems"])])
    yield "|---|---|---|" + "---|" * len(test["systems"])
    for number, band in enumerate(test["bands"]):
        scores = (_in_band(system["by_band"][number]) for system in test["systems"])
        yield _row([band["band"], f"{band['segments']:,}", f"{band['words']:,}", *scores])


def _in_band(part: Mapping[str, Any]) -> str:
    interval = part["intervals"]["BLEU"]
    return f"{part['metrics']['BLEU']:.2f} ({interval['low']:.2f}-{interval['high']:.2f})"


def _side(test: Mapping[str, Any]) -> str:
    """What the words of bands are of."""
    return "source" if test["has_sources"] else "reference"


def _notes(test: Mapping[str, Any]) -> Iterable[str]:
    baseline = next(system for system in test["systems"] if system["baseline"])
    yield "- in brackets: 95 % bootstrap interval; by best match: BLEU, not comparable from band to band"
    if len(test["systems"]) > 1:
        yield f"- \\*: differs from {baseline['name']}, p <= {LEVEL} by {STARRED}, corrected by Holm"
    effort = baseline["effort"]
    total = counted(sum(effort["words_by_band"].values()), f"{_side(test)} word")
    yield f"- weighted word count: {effort['weighted_words']:,.0f} of {total}"
    for name, told in baseline["metrics"].items():
        yield f"- {name}{', ' + PAPERS[name] if name in PAPERS else ''}: {told['signature']}"
