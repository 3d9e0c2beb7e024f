"""Options of what a document's session learns, where that goes, and where the session begins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tmnmt.cli.output_options import no_stdout

REMEMBER = Annotated[
    Literal["confirmed", "own", "nothing"],
    typer.Option(
        help="What a document's translations learn from. confirmed: what you confirm. own: what "
        "the model itself said, "
        "too, in the session cache, which does harm on the texts it was measured on. nothing."
    ),
]
CONFIRM_TO = Annotated[
    Literal["both", "memory", "cache"],
    typer.Option(help="Where what you confirm goes: a memory, the session cache."),
]
CACHE = Annotated[
    int | None,
    typer.Option(
        min=0, help="Slots of the session cache; as many as the model's has learned with."
    ),
]
CACHE_OVERWRITE = Annotated[
    bool | None,
    typer.Option(
        "--cache-overwrite/--no-cache-overwrite",
        help="A word has one slot / as many as it came; not given, as the model's cache has "
        "learned.",
    ),
]
CACHE_BEST = Annotated[
    int,
    typer.Option(min=1, help="Of own words: hypotheses that are remembered, of the beam's best."),
]
WRITE_TO = Annotated[
    str | None,
    typer.Option(
        metavar="INDEX",
        help="Built index, or its address, that confirmed pairs are added to, and that is read; "
        "made where it is not "
        "there. Without it they last as long as the session.",
    ),
]
INTERACTIVE = Annotated[
    bool,
    typer.Option(
        "--interactive",
        "-i",
        help="On a terminal: every translation with its matches, to be edited and confirmed. So "
        "it is without INPUT.",
    ),
]
SESSION = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=no_stdout,
        help="The document's session: gone on with where the file is there; with --interactive "
        "kept in it.",
    ),
]
CONFIRMED = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=no_stdout,
        help="What is finished of the document: its first lines translated, or a TSV or TMX of "
        "both sides. It is "
        "confirmed first, and is in the output.",
    ),
]
