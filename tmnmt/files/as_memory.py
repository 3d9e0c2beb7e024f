"""Files with sources and translations as memories: what is finished in an XLIFF or PO file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tmnmt.codes.record import Text
from tmnmt.files.opening import kind_of
from tmnmt.files.unit import TranslatableFile, Unit
from tmnmt.formats import Columns, Reader, Report
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.iso639 import short
from tmnmt.formats.report import DRAFT, EMPTY, MALFORMED, WRONG_LANGUAGE
from tmnmt.progress import ReadProgress
from tmnmt.segments import Segment


def read_memories(
    paths: Iterable[Path],
    src_lang: str,
    tgt_lang: str,
    *,
    columns: Columns | None = None,
    progress: ReadProgress | None = None,
) -> Reader:
    """As `tmnmt.formats.read_memories`, of XLIFF and PO files, too."""
    return Reader(
        [Path(path) for path in paths], src_lang, tgt_lang, columns, progress, kinds=(units_of,)
    )


def units_of(
    path: Path, src_lang: str, tgt_lang: str, report: Report
) -> Iterator[tuple[int, Segment]] | None:
    """The finished units of a file that has both languages, each with its line; the document is
    the file's path, and that of an XLIFF with several has the name of each behind it. None where
    it is of another kind. Drafts, and what has no translation, are counted as skipped."""
    if not path.is_file() or (kind := kind_of(path)) is None or not kind.is_memory:
        return None
    return _segments(kind(path), path, (src_lang, tgt_lang), report)


def _segments(
    file: TranslatableFile, path: Path, languages: tuple[str, str], report: Report
) -> Iterator[tuple[int, Segment]]:
    report.begin_file(str(path))
    file_languages = file.src_lang or languages[0], file.tgt_lang or languages[1]
    report.note_languages(file_languages)
    is_other = [*map(_language, file_languages)] != [*map(_language, languages)]
    names: dict[str, int] = {}
    for document in file.documents():
        name = f"{path.as_posix()}: {document.name}" if names else path.as_posix()
        names[name] = len(names)
        for position, unit in enumerate(document.units):
            if is_other:
                report.skip(
                    WRONG_LANGUAGE, unit.line, f"{file_languages[0]} to {file_languages[1]}"
                )
            elif reason := _reason(unit):
                report.skip(*reason)
            elif unit.target is not None:
                yield unit.line, _segment(unit, unit.target, name, position, path.name)


def _language(code: str) -> str:
    return short(code.lower().replace("_", "-").split("-")[0])


def _reason(unit: Unit) -> tuple[str, int, str] | None:
    """Why a unit is no pair of a memory."""
    if unit.problem:
        return MALFORMED, unit.line, unit.problem
    if unit.target is None or not unit.target.plain.strip():
        return EMPTY, unit.line, "no target"
    return (DRAFT, unit.line, "somebody has to look at it") if unit.state == "draft" else None


def _segment(unit: Unit, target: Text, document: str, position: int, origin: str) -> Segment:
    (src, _), (tgt, _) = clean_codes(unit.source), clean_codes(target)
    segment = Segment(src.plain, tgt.plain, document, position, origin=origin)
    context = (("x-context", unit.context),) if unit.context else ()
    return replace(segment, src_codes=src.codes, tgt_codes=tgt.codes, properties=context)
