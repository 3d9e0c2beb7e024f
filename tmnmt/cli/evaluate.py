"""`tmnmt evaluate`: data, runs and scores of an evaluation; each command in a module of its own."""

from __future__ import annotations

import typer

from tmnmt.cli import evaluate_compare, evaluate_prepare, evaluate_report, evaluate_run
from tmnmt.cli.options import with_options

app = typer.Typer(
    name="evaluate",
    help="Measure translation on documents that were kept out.",
    no_args_is_help=True,
)
app.command("prepare")(evaluate_prepare.prepare)
app.command("run")(with_options(evaluate_run.run))
app.command("score")(evaluate_run.score)
app.command("compare")(evaluate_compare.compare)
app.command("report")(evaluate_report.report)
