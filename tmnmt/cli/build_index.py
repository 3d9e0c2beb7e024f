"""`tmnmt build-index`: an index over translation memories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def build_index(
    memories: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEMORY...",
            help="TMX, TSV, JRC-Acquis alignment, also packed; or the PREFIX of two plain files.",
        ),
    ],
    index: Annotated[Path, typer.Option("--index", help="Folder of the index.")],
    src_lang: Annotated[str, typer.Option(help="Language translated from, such as en.")],
    tgt_lang: Annotated[str, typer.Option(help="Language translated into, such as fr.")],
    columns: Annotated[
        str | None, typer.Option(help="Columns of a TSV, counted from 1: src=5,tgt=6,doc=1; else by its header.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an index that is there.")] = False,
) -> None:
    """Build an index over translation memories. What is there already stays valid until the new one is whole."""
    import time

    from tmnmt.formats import parse_columns
    from tmnmt.index.from_files import build_from_files
    from tmnmt.progress import Progress

    start = time.monotonic()
    chosen = parse_columns(columns) if columns is not None else None
    try:
        with Progress("indexing", "units") as progress:
            manifest, report = build_from_files(
                index, memories, src_lang, tgt_lang, columns=chosen, force=force, progress=progress.advance
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{index} is as it was before") from None
    print(report, file=sys.stderr)
    print(
        f"{index}: {manifest.segments:,} segments ({manifest.sources:,} distinct sources, {manifest.tokens:,} distinct "
        f"tokens), {src_lang} to {tgt_lang}, in {time.monotonic() - start:.1f} s",
        file=sys.stderr,
    )
