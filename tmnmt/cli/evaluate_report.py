"""`tmnmt evaluate report`: the page of an evaluated run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tmnmt.cli.options import no_stdout


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
