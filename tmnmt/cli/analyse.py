"""`tmnmt analyse`: how much there is to translate, and how much of it the memories have."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmnmt.config.options import FileFormat, Format, Language, Penalties

if TYPE_CHECKING:
    from tmnmt.batch.analyse import Counts
    from tmnmt.files.unit import TranslatableFile
    from tmnmt.index.match_value import Query


def analyse(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Text, one segment a line, or XLIFF, PO, TMX, HTML, Markdown, JSON, properties.",
        ),
    ],
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            metavar="PLACE",
            help="Index, its Elasticsearch address, or file; may be repeated. PLACE:penalty=5, "
            ":weight=0.9 or :readonly sets how far it is trusted.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One object of JSON: every file, and all together.")
    ] = False,
    running_text: Annotated[
        bool,
        typer.Option(
            "--running-text",
            help="The sentences of text, HTML and Markdown are the segments, as in translate.",
        ),
    ] = False,
    format: FileFormat = None,
    worth: Penalties = Penalties(),
    src_lang: Language = None,
    tgt_lang: Language = None,
) -> None:
    """Count segments and words by what the memories' best match is worth, as CAT tools do.

    101 and 102 are the same text in the same place, 100 the same text, also where only numbers
    differ and can be put in. A repetition came before in these files. Internal matches are like an
    earlier segment of these files, more than like any of the memories."""
    from tmnmt.batch.analyse import Analysis, Counts
    from tmnmt.cli.memory_languages import languages_of
    from tmnmt.index.named_memories import open_memories, parse_memory
    from tmnmt.progress import Progress

    names = memory or []
    loaded = [_file(path, running_text, format) for path in files]
    languages: tuple[str | None, str | None] = src_lang, tgt_lang
    if names:
        languages = languages_of(names, languages, [file for file in loaded if file is not None])
    # what cannot be read is told first
    texts = [_texts(*pair, *languages, format) for pair in zip(files, loaded, strict=True)]
    with Progress("indexing", "segments", lazy=True) as progress:
        indexes = (
            open_memories(names, *languages_of(names, languages), progress.advance) if names else []
        )
    analysis = Analysis(indexes, worth, [parse_memory(name).trust for name in names])
    by_file: dict[str, Counts] = {}
    total = Counts()
    for path, queries in zip(files, texts, strict=True):
        with Progress("analysing", "segments", lazy=True) as progress:
            counts = analysis.counts(queries, progress.advance)
        by_file[str(path)] = counts
        total += counts
    if json:
        records = [{"file": name, **record(counts)} for name, counts in by_file.items()]
        print(json_module.dumps({"files": records, "total": record(total)}, ensure_ascii=False))
        return
    for name, counts in by_file.items() if len(by_file) > 1 else ():
        print(f"{name}\n{table(counts)}\n")
    sys.stdout.write(f"{table(total)}\n")


def _file(path: Path, running_text: bool, format: Format | None) -> TranslatableFile | None:
    """The file, where it is of a kind that translators work on; None: lines of text. Raises
    FormatError for a text to be cut into sentences that is no plain text."""
    from tmnmt.cli.files import check_text, opened_as
    from tmnmt.files.opening import kind_of
    from tmnmt.files.paragraphs import ParagraphFile

    kind = kind_of(path, format) if path.is_file() else None
    if kind is None and running_text and path.is_file():
        check_text(path, format)
        kind = ParagraphFile
    return opened_as(kind, path, running_text) if kind is not None else None


def _texts(
    path: Path,
    file: TranslatableFile | None,
    src_lang: str | None,
    tgt_lang: str | None,
    format: Format | None,
) -> Iterable[Query]:
    """What there is to translate in a file. Raises FormatError where its beginning cannot be
    read."""
    from tmnmt.batch.analyse import queries_of_lines, queries_of_units
    from tmnmt.cli.files import check_text
    from tmnmt.formats.text import CHECKS, read_document_lines

    if file is not None:
        file.src_lang = file.src_lang or src_lang or ""
        file.tgt_lang = file.tgt_lang or tgt_lang or ""
        return chain.from_iterable(
            queries_of_units([*document.units]) for document in file.documents()
        )
    check_text(path, format)
    return queries_of_lines(read_document_lines(path, check=CHECKS[format]))


def record(counts: Counts) -> dict[str, object]:
    """{"segments", "words", "bands": {name: {"segments", "words"}}}; every band is there."""
    from tmnmt.batch.analyse import NAMES

    bands = {
        name: {"segments": counts.segments[name], "words": counts.words[name]} for name in NAMES
    }
    return {
        "segments": counts.segments.total(),
        "words": counts.words.total(),
        "bands": bands,
    }


def table(counts: Counts) -> str:
    """The bands one a line, with their share of all words."""
    from tmnmt.batch.analyse import NAMES

    rows = [("match", "segments", "words", "share")]
    all_words = counts.words.total()
    for name in NAMES:
        share = counts.words[name] / all_words if all_words else 0.0
        label = f"{name} %" if name[-1].isdecimal() else name
        rows.append(
            (label, f"{counts.segments[name]:,}", f"{counts.words[name]:,}", f"{share:.1%}")
        )
    rows.append(("all", f"{counts.segments.total():,}", f"{all_words:,}", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
