"""Options of the commands that run a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MODEL = Annotated[Path, typer.Option("--model", help="Model folder.")]
DEVICE = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1, ...; a GPU where there is one.")
]
THREADS = Annotated[int | None, typer.Option(min=1, max=1024, help="CPU threads; all cores.")]
