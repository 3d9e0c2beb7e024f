"""`tmnmt build-index`: an index over translation memories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.cli.options import interruption_note
from tmnmt.errors import UsageError
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from tmnmt.models.folder import Model


def build_index(
    memories: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEMORY",
            help="TMX, TSV, JRC-Acquis alignment, XLIFF, PO, also packed; or the PREFIX of two "
            "plain files.",
        ),
    ],
    index: Annotated[
        str, typer.Option("--index", help="Folder of the index, or its address on a server.")
    ],
    src_lang: Annotated[str, typer.Option(help="Language translated from, such as en.")],
    tgt_lang: Annotated[str, typer.Option(help="Language translated into, such as fr.")],
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of a TSV, counted from 1: src=5,tgt=6,doc=1; else by its header."
        ),
    ] = None,
    floor: Annotated[
        str | None,
        typer.Option(
            metavar="PROPERTY=NUMBER",
            help="Leave out pairs of which this property says less, such as score-bicleaner=0.7; "
            "pairs without it are taken.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an index that is there.")] = False,
    shards: Annotated[
        int | None, typer.Option(min=1, help="On a server: parts of the index; 1.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=0, help="On a server: copies of every part; 0.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Model folder: also choose how --mode nearest of this model reads the memory, as "
            "calibrate does, which takes a minute or two.",
        ),
    ] = None,
) -> None:
    """Build an index over translation memories. What is there already stays valid until the new one
    is whole."""
    import time

    from tmnmt.formats import parse_columns
    from tmnmt.formats.languages import check_pair
    from tmnmt.index.back_ends import check_build_options, prepare_search
    from tmnmt.index.from_files import QualityFloor, build_from_files
    from tmnmt.progress import Progress

    start = time.monotonic()
    check_pair(src_lang, tgt_lang)
    column_map = parse_columns(columns) if columns is not None else None
    quality_floor = QualityFloor(floor) if floor is not None else None
    options = {"shards": shards, "replicas": replicas}
    chosen_options = {name: value for name, value in options.items() if value is not None}
    check_build_options(index, chosen_options)
    loaded = _model_for(model, index, (src_lang, tgt_lang)) if model is not None else None
    prepare_search([index])
    with (
        interruption_note(f"{index} is as it was before; the same command goes on"),
        Progress("indexing", "units") as progress,
    ):

        def sending(segments: int, share: float) -> None:
            progress.begin_part("sending", "segments")
            progress.advance(segments, share)

        counts, report = build_from_files(
            index,
            memories,
            src_lang,
            tgt_lang,
            columns=column_map,
            floor=quality_floor,
            force=force,
            options=chosen_options,
            progress=progress.advance,
            sending=sending,
        )
    print(report, file=sys.stderr)
    if quality_floor is not None:
        print(quality_floor, file=sys.stderr)
    parts = counts.parts
    note = f"; one that is in several of the {parts:,} parts counts in each" if parts > 1 else ""
    print(
        f"{index}: {quantity(counts.segments, 'segment')} "
        f"({quantity(counts.sources, 'distinct source')}, "
        f"{quantity(counts.tokens, 'distinct token')}{note}), {src_lang} to {tgt_lang}, in "
        f"{time.monotonic() - start:.1f} s",
        file=sys.stderr,
    )
    if loaded is not None:
        _calibrate(index, loaded)


def _model_for(folder: Path, index: str, languages: tuple[str, str]) -> Model:
    """The model in a folder. Raises UsageError where its numbers could not be kept beside the
    index, or would not be read there, and for a model of other languages."""
    from tmnmt.engine.loading import languages_of, load_layers, load_on
    from tmnmt.engine.settings import default_mode
    from tmnmt.index.back_ends import local_path

    if local_path(index) is None:
        raise UsageError(
            f"{index}: --model is for an index in a folder; an index on a server is read by the "
            "standard numbers"
        )
    model = load_on(folder, "cpu")
    languages_of(model, *languages)
    if (mode := default_mode(load_layers(model, "cpu"), model)) != "nearest":
        raise UsageError(
            f"{folder}: this model translates in mode {mode}, which reads no calibration; leave "
            "out --model"
        )
    return model


def _calibrate(index: str, model: Model) -> None:
    """Keeps beside the index how a model reads it; says so where the memory is too small."""
    from tmnmt.engine.loading import load_layers
    from tmnmt.errors import DataError
    from tmnmt.eval.calibrate import calibrate
    from tmnmt.index import MemoryIndex
    from tmnmt.layers.reach import STANDARD, save_calibration

    with (
        interruption_note(f"{index} is whole; tmnmt calibrate chooses its numbers later"),
        MemoryIndex.open(Path(index)) as opened,
    ):
        try:
            calibration = calibrate(model, load_layers(model, "cpu"), opened)
        except DataError as error:
            print(error, file=sys.stderr)
            return
        path = save_calibration(opened.folder, calibration)
    choice = "the standard numbers" if calibration.reaches == STANDARD else "other numbers"
    print(
        f"{path}: {choice} hold, by {quantity(calibration.segments, 'segment')} held out",
        file=sys.stderr,
    )
