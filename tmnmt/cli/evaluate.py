"""`tmnmt evaluate`: systems measured on documents that neither model nor memory has seen."""

from __future__ import annotations

import typer

from tmnmt.cli import evaluate_report

app = typer.Typer(name="evaluate", help="Measure systems, and report what was measured.", no_args_is_help=True)
app.command("report")(evaluate_report.report)
