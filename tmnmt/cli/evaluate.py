"""`tmnmt evaluate`: data, runs and scores of an evaluation; what prepares and what runs it have
modules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tmnmt.cli import evaluate_prepare, evaluate_run
from tmnmt.cli.options import no_stdout, with_options
from tmnmt.eval.measures.verdict import TEST, differs
from tmnmt.quantities import quantity

app = typer.Typer(
    name="evaluate",
    help="Measure translation on documents that were kept out.",
    no_args_is_help=True,
)
app.command("prepare")(with_options(evaluate_prepare.prepare))
app.command("run")(with_options(evaluate_run.run))
app.command("score")(evaluate_run.score)


@app.command("compare")
def compare(
    run_a: Annotated[Path, typer.Argument(help="Folder of a run, or of scores.")],
    run_b: Annotated[Path, typer.Argument(help="Folder of another, of the same test sets.")],
    json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """What changed from one run to another: for every system that both have, scores and whether
    they differ by more than chance (approximate randomisation, corrected by Holm)."""
    from json import dumps

    from tmnmt.eval.compare import compare, read_run

    comparison = compare(read_run(run_a), read_run(run_b))
    if json:
        print(dumps(comparison, ensure_ascii=False))
        return
    for test in comparison["tests"]:
        print(f"{test['name']}: {quantity(test['segments'], 'segment')}")
        for system in test["systems"]:
            _show(system)
        for key in ("a", "b"):
            if test[f"only_{key}"]:
                print(f"  only in {comparison[key]}: {', '.join(test[f'only_{key}'])}")


def _show(system: dict[str, Any]) -> None:
    print(f"  {system['name']}: {quantity(system['changed'], 'segment')} changed")
    for name, record in system["metrics"].items():
        verdict = "differs" if differs(TEST, record["p_holm"]) else "no more than chance"
        scores = f"{record['a']:6.2f} -> {record['b']:6.2f}  {record['difference']:+6.2f}"
        print(f"    {name:8} {scores}  p = {record['p_holm']:.4f}, {verdict}")
    for key, (a, b) in system["settings"].items():
        print(f"    {key}: {a} -> {b}")


@app.command("report")
def report(
    run: Annotated[
        Path, typer.Argument(help="Run folder: report.json and segments.jsonl.", metavar="DIR")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; DIR/report.html when not given.",
            callback=no_stdout,
        ),
    ] = None,
) -> None:
    """Write the report of a run as one HTML page that needs no network: scores, plots, and every
    segment with what the systems made of it and where the words came from. Prints the page's
    path."""
    from tmnmt.eval.report.html import write_report

    print(write_report(run, output))
