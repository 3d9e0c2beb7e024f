"""`tmnmt evaluate prepare`: dev, test, training data and memory from parallel documents, without
leaks."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tmnmt.cli.options import folder, interruption_note
from tmnmt.config.bounds import Help, at_least
from tmnmt.config.option import Options
from tmnmt.errors import DataError, UsageError
from tmnmt.quantities import quantity

JRC = "jrc-acquis"


class By(StrEnum):
    """What is kept out whole."""

    document = "document"


@dataclass(frozen=True)
class Splitting(Options):
    """What is kept out, and what leaves training and memory with it."""

    title = "Splitting"
    regime: Annotated[
        Literal["research", "translator"],
        Help("Sources of dev and test leave training and memory (research) or training only."),
    ] = "research"
    segments: Annotated[int, at_least(1), Help("Of dev and of test, about.")] = 2500
    splits: Annotated[
        Path | None,
        Help("Folder with lists of dev and test documents, to keep to.", metavar="DIR"),
    ] = None
    max_length: Annotated[
        int,
        at_least(1),
        Help("Longest pair that is trained on: match tokens, or subwords of --vocab."),
    ] = 80
    vocab: Annotated[
        Path | None, Help("The spm.model whose subwords lengths are counted in.", metavar="FILE")
    ] = None


def prepare(
    form: Annotated[
        list[str],
        typer.Argument(
            metavar="FORM|MEMORY",
            help=f"{JRC}, whose files lie in --from; or memory files of your own.",
        ),
    ],
    src_lang: Annotated[str, typer.Option(help="Language translated from, such as en.")],
    tgt_lang: Annotated[str, typer.Option(help="Language translated into, such as fr.")],
    out: Annotated[
        Path, typer.Option(help="Folder to make; must be new or empty.", callback=folder)
    ],
    from_: Annotated[
        Path | None, typer.Option("--from", help=f"Folder with the files of {JRC}.")
    ] = None,
    by: Annotated[By, typer.Option(help="What is kept out whole.")] = By.document,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of a TSV, counted from 1: src=5,tgt=6,doc=1; else by its header."
        ),
    ] = None,
    splitting: Splitting = Splitting(),
    keep_index: Annotated[
        bool, typer.Option("--keep-index", help="Leave an index of the memory there, OUT/index.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Model folder that is asked, too, which pairs are no translations of each other."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    """Split parallel documents into dev, test, training data and a memory, and count what was left
    out and why.

    Whole documents are kept out, by the sha256 of their ids; where there are too few of them,
    stretches of neighbouring segments. OUT gets train, memory, dev and test
    (.tsv.gz, which every other command reads), the lists of documents, and manifest.json with every
    count and the sha256 of every file."""
    from tmnmt.eval.data import prepare as preparation
    from tmnmt.formats import parse_columns
    from tmnmt.formats.languages import check_pair

    check_pair(src_lang, tgt_lang)
    column_map = parse_columns(columns) if columns is not None else None
    settings = preparation.Settings(**asdict(splitting))
    loaded = None
    if model is not None:
        from tmnmt.engine.loading import languages_of
        from tmnmt.models.folder import load_model

        loaded = load_model(model)
        languages_of(loaded, src_lang, tgt_lang)
    with interruption_note(f"{out} was not made; run it again"):
        paths = _paths(form, from_, src_lang, tgt_lang)
        manifest, report = preparation.prepare(
            paths, src_lang, tgt_lang, out, settings, column_map, keep_index, model=loaded
        )
    print(report, file=sys.stderr)
    if manifest["listed_but_absent"]:
        print(
            f"{quantity(manifest['listed_but_absent'], 'listed id')} without a document",
            file=sys.stderr,
        )
    if as_json:
        print(json.dumps(manifest, ensure_ascii=False, indent=1))
    else:
        print("\n".join(_table(manifest)))


def _paths(form: list[str], folder: Path | None, src: str, tgt: str) -> list[Path]:
    """The memory files that are meant. DataError names all that are absent at once."""
    from tmnmt.eval.data.editions import find_edition
    from tmnmt.formats.moses import moses_pair

    if JRC in form:
        if len(form) > 1 or folder is None:
            raise UsageError(f"{JRC} stands alone and needs --from, the folder with its files")
        return [find_edition(folder, src, tgt)]
    if folder is not None:
        raise UsageError(f"--from goes with {JRC}; files of your own are named themselves")
    paths = [Path(name) for name in form]
    absent = [
        str(path) for path in paths if not path.exists() and moses_pair(path, src, tgt) is None
    ]
    if absent:
        raise DataError(
            f"no such file: {', '.join(absent)}; allowed: memory files, a PREFIX of two, or {JRC}"
        )
    return paths


def _table(manifest: dict[str, Any]) -> list[str]:
    """The counts, a stage a line."""
    reading = manifest["read"]
    lines = []
    units = quantity(reading["units"], "unit") + (
        f", links {reading['links']:,}, 1-1 {reading['1-1']:,}" if "links" in reading else ""
    )
    lines.append(f"read: {units}; {_dropped(reading['dropped'])}; kept {reading['kept']:,}")
    if manifest["stretch"]:
        lines.append(
            f"too few documents to keep some out: stretches of {manifest['stretch']} segments are "
            "kept out instead, whose neighbours stay in the memory"
        )
    for kind, split in manifest["split"].items():
        duplicates = manifest["also_in_memory"][kind]
        overlap = (
            f"exact {duplicates['exact']:,}, near-duplicates (from {manifest['near_from']:g}) "
            f"{duplicates['near']:,}"
        )
        in_dev = f"; in dev too: {duplicates['in_dev']:,}" if "in_dev" in duplicates else ""
        sizes = f"documents {split['documents']:,}, segments {split['segments']:,}"
        lines.append(f"{kind}: {sizes}; in memory too: {overlap}{in_dev}")
    for part in ("train", "memory"):
        counts = manifest[part]
        lines.append(
            f"{part}: of {counts['read']:,}; {_dropped(counts['dropped'])}; kept {counts['kept']:,}"
        )
    if manifest["faults"] is None:
        lines.append("so large a memory was not looked through for faults; tmnmt memory clean does")
    elif faults := said_of_faults(manifest["faults"]):
        lines.append(f"to look at in the memory (tmnmt memory clean lists them): {faults}")
    return lines


def said_of_faults(faults: Mapping[str, Any]) -> str:
    """How many segments have each kind of fault; "" where none has."""
    return ", ".join(
        f"{kind} {count:,}"
        + (f" of {faults['asked']:,} that the model was asked of" if kind == "unrelated" else "")
        for kind, count in faults["counts"].items()
    )


def _dropped(counts: dict[str, int]) -> str:
    return "dropped: " + (", ".join(f"{why} {count:,}" for why, count in counts.items()))
