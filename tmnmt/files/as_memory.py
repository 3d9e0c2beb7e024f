"""Files with sources and translations as memories: what is finished in an XLIFF or PO file, and the
rows of workbooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

from tmnmt.codes.record import Text
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.opening import kind_of
from tmnmt.files.unit import Document, TranslatableFile, Unit
from tmnmt.files.workbook import SUFFIXES as WORKBOOK_SUFFIXES
from tmnmt.files.workbook import pairs_of_workbook
from tmnmt.formats import Columns, Reader, Report
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.iso639 import short
from tmnmt.formats.reader import PathKind
from tmnmt.formats.report import DRAFT, EMPTY, MALFORMED, WRONG_LANGUAGE
from tmnmt.formats.stream import Source
from tmnmt.progress import ReadProgress
from tmnmt.segments import Segment

# of files whose finished units are a memory, but for TMX, whose readers read streams
SUFFIXES = tuple(
    dict.fromkeys(
        suffix
        for name, kind in FILE_KINDS.items()
        if kind.is_bilingual and name != "tmx"
        for suffix in kind.suffixes
    )
)
# properties that say where a segment stands (`tmnmt.index.match_value` reads them)
UNIT_NAME, PREVIOUS_SOURCE, NEXT_SOURCE = "x-context", "x-context-pre", "x-context-post"


def read_memories(
    paths: Iterable[Path],
    src_lang: str,
    tgt_lang: str,
    *,
    columns: Columns | None = None,
    progress: ReadProgress | None = None,
) -> Reader:
    """The segments of several memories, as `tmnmt.formats.reader.read_memories` gives them, of
    XLIFF and PO files and of workbooks, too.

    paths: the files.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    columns: which columns of tables are read; None finds them by their names.
    progress: is told of units that are read; None tells nobody."""
    kinds = (
        PathKind(SUFFIXES, units_of),
        PathKind(WORKBOOK_SUFFIXES, partial(pairs_of_workbook, columns=columns)),
    )
    return Reader(
        [Path(path) for path in paths], src_lang, tgt_lang, columns, progress, kinds=kinds
    )


def units_of(
    path: Path, source: Source, src_lang: str, tgt_lang: str, report: Report
) -> Iterator[tuple[int, Segment]] | None:
    """The finished units of a file that has both languages, each with its line. The document is
    what the file is called, and that of an XLIFF with several has the name of each behind it. None
    where the file is of another kind. Drafts, and what has no translation, are counted as skipped.

    path: the file.
    source: says what the file is called.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    report: counts the units."""
    if not path.is_file() or (kind := kind_of(path)) is None or not kind.is_memory:
        return None
    return _segments(kind(path), source, (src_lang, tgt_lang), report)


def _segments(
    file: TranslatableFile, source: Source, languages: tuple[str, str], report: Report
) -> Iterator[tuple[int, Segment]]:
    report.begin_file(source.label, source.allowance)
    file_languages = file.src_lang or languages[0], file.tgt_lang or languages[1]
    file.src_lang, file.tgt_lang = file_languages
    report.note_languages(file_languages)
    is_other = [*map(_language, file_languages)] != [*map(_language, languages)]
    for name, document in named_documents(file, source.label):
        for unit, segment in with_pairs(document.units, name, source.name, _is_pair):
            if is_other:
                report.skip(
                    WRONG_LANGUAGE, unit.line, f"{file_languages[0]} to {file_languages[1]}"
                )
            elif reason := _reason(unit):
                report.skip(*reason)
            elif segment is not None:
                yield unit.line, segment


def named_documents(file: TranslatableFile, label: str) -> Iterator[tuple[str, Document]]:
    """The documents of a file, each with the name that it has as a document of a memory: what the
    file is called, and from the second on the name in the file behind it.

    file: the file.
    label: what it is called."""
    for number, document in enumerate(file.documents()):
        yield f"{label}: {document.name}" if number else label, document


def with_pairs(
    units: Iterable[Unit], document: str, origin: str, is_pair: Callable[[Unit], bool]
) -> Iterator[tuple[Unit, Segment | None]]:
    """The units of a document, each with the segment of a memory that it is; None where it is none.
    A segment knows its place: its position, its name, and as properties the sources beside it that
    are no segments of the memory.

    units: the units.
    document: the name of the document in the memory.
    origin: the origin of the segments.
    is_pair: says of a unit whether it is a segment of the memory."""
    padded = chain([None], units, [None])
    previous: Unit | None = None
    for position, (unit, following) in enumerate(pairwise(padded), -1):
        if unit is not None:
            segment = None
            if unit.target is not None and is_pair(unit):
                segment = replace(
                    _segment(unit, unit.target, document, position, origin),
                    properties=_place_of(unit, previous, following, is_pair),
                )
            yield unit, segment
        previous = unit


def _place_of(
    unit: Unit,
    previous: Unit | None,
    following: Unit | None,
    is_pair: Callable[[Unit], bool],
) -> tuple[tuple[str, str], ...]:
    """The properties that say where a unit stands."""
    name = unit.context or unit.id
    values = [(UNIT_NAME, name)] if name else []
    for label, neighbour in ((PREVIOUS_SOURCE, previous), (NEXT_SOURCE, following)):
        if neighbour is not None and neighbour.source.plain and not is_pair(neighbour):
            values.append((label, clean_codes(neighbour.source)[0].plain))
    return tuple(values)


def _is_pair(unit: Unit) -> bool:
    return _reason(unit) is None


def _language(code: str) -> str:
    return short(code.lower().replace("_", "-").split("-")[0])


def _reason(unit: Unit) -> tuple[str, int, str] | None:
    """Why a unit is no pair of a memory."""
    if unit.problem:
        return MALFORMED, unit.line, unit.problem
    if unit.target is None or not unit.target.plain.strip():
        return EMPTY, unit.line, "no target"
    is_draft = unit.confirmation == "none"
    return (DRAFT, unit.line, "somebody has to look at it") if is_draft else None


def _segment(unit: Unit, target: Text, document: str, position: int, origin: str) -> Segment:
    (src, _), (tgt, _) = clean_codes(unit.source), clean_codes(target)
    segment = Segment(src.plain, tgt.plain, document, position, origin=origin)
    return replace(segment, src_codes=src.codes, tgt_codes=tgt.codes)
