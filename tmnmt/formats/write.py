"""Memories written as the name of the file says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tmnmt.errors import UsageError
from tmnmt.formats.atomic import WriteReport
from tmnmt.formats.tmx_writer import write_tmx
from tmnmt.formats.tsv import write_tsv
from tmnmt.segments import Segment


def check_writable(path: Path) -> str:
    """The kind of memory that the name of a file says, "tmx" or "tsv".

    path: the file.

    Raises UsageError where it says none that can be written."""
    kind = path.name.lower().removesuffix(".gz").removesuffix(".xz").rpartition(".")[2]
    if kind not in ("tmx", "tsv"):
        raise UsageError(
            f"{path}: the name says no format that can be written; allowed: .tmx, .tsv, packed "
            ".gz, .xz"
        )
    return kind


def write_memory(
    path: Path,
    segments: Iterable[Segment],
    src_lang: str,
    tgt_lang: str,
    *,
    progress: Callable[[int], None] | None = None,
) -> WriteReport:
    """Writes segments to a file of the kind that its name says, which replaces an existing one at
    the end, as a whole.

    path: the file.
    segments: the segments.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    progress: is called with the number of segments that were written since the last call; None
    tells nobody.

    Raises UsageError where the name says no kind that can be written. Raises FormatError where a
    segment or the file cannot be written."""
    if check_writable(path) == "tmx":
        return write_tmx(path, segments, src_lang, tgt_lang, progress=progress)
    return write_tsv(path, segments, progress=progress)
