"""The beginning of a document that somebody has translated already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.errors import DataError, FormatError, UsageError

if TYPE_CHECKING:
    from tmnmt.segments import ConfirmedPair
    from tmnmt.session import Session

PAIRS = {
    ".tsv",
    ".tmx",
}  # at the end of the names of files that hold both sides, before .gz and .xz


def finished_lines(path: Path, lines: Sequence[str], src_lang: str, tgt_lang: str) -> list[str]:
    """The translations of the first of the document's `lines`; "" where there is none. A file of
    lines has one for each; TSV and TMX have sources, too, in the order of the document.

    Raises FormatError where it cannot be read, is not of this document, or cannot be confirmed."""
    from tmnmt.engine.confirmed import confirmable

    lines_done = _targets(path, lines, src_lang, tgt_lang)
    for number, (line, tgt) in enumerate(zip(lines, lines_done, strict=False), 1):
        try:
            if line.strip() and tgt.strip():
                confirmable(line, tgt)
        except UsageError as error:
            raise FormatError(f"{path}, line {number}: {error}") from error
    return lines_done


def _targets(path: Path, lines: Sequence[str], src_lang: str, tgt_lang: str) -> list[str]:
    from tmnmt.formats.stream import file_source

    if file_source(path).suffix in PAIRS:
        return _paired(path, lines, src_lang, tgt_lang)
    from tmnmt.formats.text import check_content, read_document_lines

    targets = list(read_document_lines(path, check=check_content))
    if len(targets) > len(lines):
        raise FormatError(f"{path}: has {len(targets):,} lines, and the document {len(lines):,}")
    for number, (line, tgt) in enumerate(zip(lines, targets, strict=False), 1):
        if tgt.strip() and not line.strip():
            raise FormatError(
                f"{path}, line {number}: is a translation, and the document's line is blank"
            )
    return targets


def _paired(path: Path, lines: Sequence[str], src_lang: str, tgt_lang: str) -> list[str]:
    from tmnmt.formats import read_memory
    from tmnmt.text import normalise

    sources = [normalise(line) for line in lines]
    targets = list[str]()
    for number, segment in enumerate(read_memory(path, src_lang, tgt_lang), 1):
        try:
            index = sources.index(normalise(segment.src), len(targets))
        except ValueError:
            raise FormatError(
                f"{path}: pair {number} ({segment.src[:40]!r}) is not in the document, or not in "
                "its order"
            ) from None
        targets += [*[""] * (index - len(targets)), segment.tgt]
    return targets


def confirm_all(session: Session, lines: Sequence[str], targets: Sequence[str]) -> None:
    """Goes through what is finished, as `finished_lines` gives it, as a translator would have."""
    for line, tgt in zip(lines, targets, strict=False):
        if not line.strip():
            session.new_document()
        elif not tgt.strip():
            session.pass_over(line)
        else:
            session.confirm(line, tgt)


def check_document(path: Path, entries: Sequence[ConfirmedPair], lines: Sequence[str]) -> None:
    """Raises DataError where what a session has done is not the beginning of the document."""
    from tmnmt.text import normalise

    for number, entry in enumerate(entries, 1):
        if number > len(lines) or normalise(entry.src) != normalise(lines[number - 1]):
            raise DataError(
                f"{path}: is of another document: its line {number} is {entry.src[:40]!r} there"
            )
