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
from tmnmt.eval.measures.learned_measure import LOWER_CASED, TOKENISED
from tmnmt.eval.measures.measure import Measured
from tmnmt.eval.measures.slices import NONE
from tmnmt.eval.measures.verdict import RULE, differs
from tmnmt.formats.atomic import writing
from tmnmt.quantities import quantity

FORMAT = 1
REPORT, TABLE, SEGMENTS = "report.json", "report.md", "segments.jsonl"
PAPERS = {LOWER_CASED: "as Tu et al. 2018", TOKENISED: "as Gu et al. 2018"}
PARAMETERS, TRAINING = "parameters", "training s (subwords/s)"  # columns that are of models


def provenance(seconds: float, recipe_sha256: str | None) -> dict[str, Any]:
    """What made a report: version, UTC date, machine, seconds it took, the command, and the
    recipe's hash."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    command = shlex.join(["tmnmt", *sys.argv[1:]])
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "version": __version__,
        "date": date,
        "machine": machine,
        "seconds": round(seconds, 1),
        "command": command,
        "recipe_sha256": recipe_sha256,
    }


def write_report(
    folder: Path,
    name: str,
    description: str,
    measured: Sequence[Measured],
    start: float,
    recipe_sha256: str | None,
) -> dict[str, Any]:
    """Writes the three files; what report.json holds. start: by `time.monotonic`, of the whole
    command. Raises FormatError where they cannot be written."""
    tests = [test.entry() for test in measured]
    record = provenance(time.monotonic() - start, recipe_sha256)
    report = {
        "format": FORMAT,
        "name": name,
        "description": description,
        "made": record,
        "tests": tests,
    }
    folder.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(line, ensure_ascii=False) + "\n" for test in measured for line in test.lines()
    )
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
    """The report as Markdown: for every test set the systems, the bands, and what the
    numbers are."""
    record = report["made"]
    lines = [f"# {report['name']}", ""]
    lines += [report["description"], ""] if report["description"] else []
    for test in report["tests"]:
        lines += [f"## {test['name']}", "", *_test(test), ""]
    lines += [
        f"`{record['command']}`",
        "",
        f"tmnmt {record['version']}, {record['date']}, {record['machine']}",
        "",
    ]
    return "\n".join(lines)


def _test(test: Mapping[str, Any]) -> Iterable[str]:
    nouns = {"documents": "document", "words": "reference word"}
    distinct_note = (
        f", {test['distinct']:,} of them distinct" if test["distinct"] < test["segments"] else ""
    )
    count = [
        quantity(test["segments"], "segment") + distinct_note,
        *(quantity(test[key], noun) for key, noun in nouns.items()),
    ]
    languages = " to ".join(filter(None, (test["src_lang"], test["tgt_lang"])))
    yield f"{', '.join([*count, *([languages] if languages else [])])}."
    for warning in test["warnings"]:
        yield f"Note: {warning}."
    metrics = list(test["systems"][0]["metrics"])
    models = {title: cells for title, cells in _of_models(test["systems"]).items() if any(cells)}
    columns = ["system", *metrics, "edit rate", "LTCR", "LTCR-1", "words/s", *models]
    yield from ("", *_head(columns))
    for system, *model_cells in zip(test["systems"], *models.values(), strict=True):
        scores = (_score(system, name) for name in metrics)
        yield _row([system["name"], *scores, *_rest(system), *model_cells])
    if test["reference"]:
        shares = [_share(test["reference"][name]) for name in ("LTCR", "LTCR-1")]
        blank = [""] * (1 + len(models))
        yield _row(["the reference", *([""] * (len(metrics) + 1)), *shares, *blank])
    yield from ("", *_bands(test), *_gains(test), *_leaks(test), "", *_notes(test))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _score(system: Mapping[str, Any], metric: str) -> str:
    """Score, interval, and a star where it differs from the baseline's."""
    record = system["metrics"][metric]
    star = any(v["metric"] == metric and differs(v["test"], v["p_holm"]) for v in system["versus"])
    return f"{record['score']:.2f}{'*' if star else ''} ({record['low']:.2f}-{record['high']:.2f})"


def _rest(system: Mapping[str, Any]) -> Iterable[str]:
    yield f"{system['effort']['edit_rate']:.3f}"
    shares = system["consistency"] or {}
    yield from (_share(shares.get(name)) for name in ("LTCR", "LTCR-1"))
    yield f"{system['cost']['words_per_second']:,.0f}" if system["cost"] else ""


def _share(share: float | None) -> str:
    return f"{share:.3f}" if share is not None else ""


def _of_models(systems: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """For every column that is of models its cells, blank where nothing is known."""
    costs = [system["cost"] or {} for system in systems]
    return {
        PARAMETERS: [_whole(cost.get("parameters")) for cost in costs],
        TRAINING: [_training(cost) for cost in costs],
    }


def _whole(number: float | None) -> str:
    return f"{number:,.0f}" if number is not None else ""


def _training(cost: Mapping[str, Any]) -> str:
    rate = _whole(cost.get("training_tokens_per_second"))
    return _whole(cost.get("training_seconds")) + (f" ({rate})" if rate else "")


def _bands(test: Mapping[str, Any]) -> Iterable[str]:
    """BLEU by the score of the best match, with intervals."""
    yield from _head(
        ["best match", *_count_columns(test), *(system["name"] for system in test["systems"])]
    )
    for number, band in enumerate(test["bands"]):
        scores = (_in_band(system["by_band"][number]) for system in test["systems"])
        yield _row([band["band"], f"{band['segments']:,}", f"{band['words']:,}", *scores])


def _gains(test: Mapping[str, Any]) -> Iterable[str]:
    """What is gained over the baseline, of all segments and by the best match, beside the share
    that has such one."""
    rivals = [system for system in test["systems"] if not system["baseline"]]
    if not rivals:
        return
    names = (system["name"] for system in rivals)
    yield from ("", *_head([f"gain over {_baseline(test)['name']}", *_count_columns(test), *names]))
    yield _row(["all", "100.0 %", "100.0 %", *(_gain(system["gain"]) for system in rivals)])
    for size, field in (("halves", "by_half"), ("bands", "by_band")):
        for number, part in enumerate(test[size]):
            if part["band"] != NONE:
                shares = (f"{100 * part[key]:.1f} %" for key in ("share", "word_share"))
                yield _row(
                    [
                        part["band"],
                        *shares,
                        *(_gain(system[field][number]["gain"]) for system in rivals),
                    ]
                )


def _leaks(test: Mapping[str, Any]) -> Iterable[str]:
    """BLEU of the near leaks and of all other segments, with intervals; the sizes of reports from
    before near leaks are not there."""
    if not test.get("near"):
        return
    names = (system["name"] for system in test["systems"])
    yield from ("", *_head(["references", *_count_columns(test), *names]))
    for number, part in enumerate(test["near"]):
        scores = (_in_band(system["by_near_leak"][number]) for system in test["systems"])
        yield _row([part["band"], f"{part['segments']:,}", f"{part['words']:,}", *scores])


def near_leaks(test: Mapping[str, Any]) -> str | None:
    """What is said of the references that stand in what the systems know; None where a report says
    nothing of them."""
    leaks = test.get("near_leaks")
    if leaks is None:
        return None
    notes = [f"{_near_size(leaks)} in all"] if len(leaks["places"]) > 1 else []
    notes += [f"{_near_size(place)} in {place['name']}" for place in leaks["places"]]
    notes += [f"what {name} has learned from is not named" for name in leaks["unknown"]]
    return (
        f"near leaks, references of {leaks['fewest_words']} words or more that stand as they are "
        f"in what systems know: {'; '.join(notes)}"
    )


def _near_size(size: Mapping[str, Any]) -> str:
    share = f"{100 * size['word_share']:.1f} % of the words"
    return f"{quantity(size['segments'], 'segment')} ({share})"


def _head(columns: Sequence[str]) -> Iterable[str]:
    yield _row(columns)
    yield "|" + "---|" * len(columns)


def _count_columns(test: Mapping[str, Any]) -> list[str]:
    return ["segments", f"{_side(test)} words"]


def _baseline(test: Mapping[str, Any]) -> Mapping[str, Any]:
    baseline: Mapping[str, Any] = next(system for system in test["systems"] if system["baseline"])
    return baseline


def _gain(gain: Mapping[str, Any]) -> str:
    bleu = gain["BLEU"]
    return f"{bleu['difference']:+.2f} ({bleu['low']:+.2f} to {bleu['high']:+.2f})"


def _in_band(part: Mapping[str, Any]) -> str:
    interval = part["intervals"]["BLEU"]
    return f"{part['metrics']['BLEU']:.2f} ({interval['low']:.2f}-{interval['high']:.2f})"


def _side(test: Mapping[str, Any]) -> str:
    """What the words of bands are of."""
    return "source" if test["has_sources"] else "reference"


def _notes(test: Mapping[str, Any]) -> Iterable[str]:
    baseline = _baseline(test)
    yield (
        "- in brackets: 95 % bootstrap interval; by best match: BLEU, not comparable from band "
        "to band"
    )
    yield (
        "- scores are of all segments; those of one source and reference are drawn as one for "
        "intervals and tests, and "
        "count once by best match"
    )
    if note := near_leaks(test):
        yield f"- {note}"
    if len(test["systems"]) > 1:
        yield f"- \\*: differs from {baseline['name']}, {RULE}"
    of_models = _of_models(test["systems"])
    if any(of_models[PARAMETERS]):
        yield f"- {PARAMETERS}: of the backbone and of the memory layers that a system reads"
    if any(of_models[TRAINING]):
        yield f"- {TRAINING}: of these, as the model's log has it; validations are left out"
    effort = baseline["effort"]
    total = quantity(sum(effort["words_by_band"].values()), f"{_side(test)} word")
    yield f"- weighted word count: {effort['weighted_words']:,.0f} of {total}"
    for name, record in baseline["metrics"].items():
        yield f"- {name}{', ' + PAPERS[name] if name in PAPERS else ''}: {record['signature']}"
