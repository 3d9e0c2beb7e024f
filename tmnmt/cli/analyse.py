"""`tmnmt analyse`: how much there is to translate, and how much of it the memories have."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tmnmt.cli.previous import PREVIOUS, check_previous, with_former
from tmnmt.config.options import (
    FileFormat,
    Format,
    Language,
    Output,
    Overwrite,
    OwnPairs,
    Penalties,
    Targets,
)
from tmnmt.file_kinds import titles

if TYPE_CHECKING:
    from tmnmt.batch.analyse import Analysis, Counts
    from tmnmt.files.unit import TranslatableFile
    from tmnmt.segments import Segment

    Reading = Callable[[Analysis, Callable[[int], None]], Counts]  # counts a file


def analyse(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help=f"Text, one segment a line, or {titles()}.",
        ),
    ],
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            metavar="PLACE",
            help="Index, its address on a server, or file; may be repeated. PLACE:penalty=5, "
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
    previous: PREVIOUS = None,
    overwrite: Targets = "nothing",
    own_translations: OwnPairs = Output.own_translations,
    words_by: Annotated[
        Literal["blanks", "icu"],
        typer.Option(
            "--words-by",
            help="What parts words: blanks, and in Chinese and Japanese every character is one; or "
            "ICU's dictionaries, also in Thai, Lao, Khmer and Burmese.",
        ),
    ] = "blanks",
    worth: Penalties = Penalties(),
    src_lang: Language = None,
    tgt_lang: Language = None,
) -> None:
    """Count segments and words by what the memories' best match is worth, as CAT tools do.

    101 and 102 are the same text in the same place, 100 the same text, also where only numbers
    differ and can be put in. A repetition came before in these files. Internal matches are like an
    earlier segment of these files, more than like any of the memories. What a file has translated
    already is a memory, too, and counts as unchanged itself."""
    from tmnmt.batch.analyse import Analysis, Counts
    from tmnmt.batch.icu_words import icu_counter
    from tmnmt.batch.own_translations import FileMemory
    from tmnmt.cli.memory_languages import languages_of
    from tmnmt.index.match_value import PRECEDING
    from tmnmt.index.named_memories import open_memories, parse_memory
    from tmnmt.progress import Progress
    from tmnmt.text import words

    count_words = icu_counter() if words_by == "icu" else words
    names = memory or []
    loaded = [_file(path, running_text, format) for path in files]
    open_files = [file for file in loaded if file is not None]
    languages: tuple[str | None, str | None] = src_lang, tgt_lang
    if names:
        languages = languages_of(names, languages, open_files)
    pairs: Sequence[Segment] = ()
    if previous is not None:
        check_previous([*zip(files, open_files, strict=False)], previous)
        languages = pair = languages_of(names, languages, open_files)
        loaded[0], pairs = with_former(open_files[0], files[0], pair, previous)
    # what cannot be read is told first
    readings = [
        _reading(path, file, languages, format, overwrite)
        for path, file in zip(files, loaded, strict=True)
    ]
    own_memory = FileMemory(overwrite, own_translations)
    own_memory.add(pairs)
    for path, file in zip(files, loaded, strict=True):
        if file is not None:
            own_memory.read(file, path)
    with Progress("indexing", "segments", lazy=True) as progress:
        indexes = (
            open_memories(names, *languages_of(names, languages), progress.advance) if names else []
        )
    trust = [parse_memory(name).trust for name in names]
    if len(own_memory):
        indexes, trust = [own_memory.index, *indexes], [PRECEDING, *trust]
    analysis = Analysis(indexes, worth, trust, count_words)
    by_file: dict[str, Counts] = {}
    total = Counts()
    for path, count in zip(files, readings, strict=True):
        with Progress("analysing", "segments", lazy=True) as progress:
            counts = count(analysis, progress.advance)
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


def _reading(
    path: Path,
    file: TranslatableFile | None,
    languages: tuple[str | None, str | None],
    format: Format | None,
    overwrite: Overwrite,
) -> Reading:
    """What counts what there is to translate in a file. Raises FormatError where its beginning
    cannot be read."""
    from tmnmt.batch.analyse import queries_of_lines
    from tmnmt.cli.files import check_text
    from tmnmt.formats.text import CHECKS, read_document_lines

    if file is not None:
        src_lang, tgt_lang = languages
        file.src_lang = file.src_lang or src_lang or ""
        file.tgt_lang = file.tgt_lang or tgt_lang or ""
        return lambda analysis, progress: analysis.counts_of_file(
            ([*document.units] for document in file.documents()), overwrite, progress
        )
    check_text(path, format)
    queries = queries_of_lines(read_document_lines(path, check=CHECKS[format]))
    return lambda analysis, progress: analysis.counts(queries, progress)


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
