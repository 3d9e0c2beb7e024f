"""`tmnmt evaluate`: measuring translations, one's own and others'."""

from __future__ import annotations

import typer

from tmnmt.cli import evaluate_compare, evaluate_run

app = typer.Typer(name="evaluate", help="Measure translations on whole test sets.", no_args_is_help=True)
app.command("run")(evaluate_run.run)
app.command("score")(evaluate_run.score)
app.command("compare")(evaluate_compare.compare)
