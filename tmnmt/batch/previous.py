"""The former version of a file with its translation, as pairs for the new version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tmnmt.errors import UsageError
from tmnmt.files.as_memory import with_pairs
from tmnmt.files.unit import TranslatableFile, Unit
from tmnmt.quantities import quantity
from tmnmt.segments import Segment


def previous_segments(
    source: TranslatableFile, translation: TranslatableFile, path: Path
) -> list[Segment]:
    """The pairs of a former version of a file, in their order. Where units have names, as keys of
    JSON are, those of one name belong together; otherwise those at the same place do.

    source: the former version, in the source language.
    translation: its translation, which is a file of the same kind in the target language.
    path: the path of the translation, which is the name of the document.

    Raises UsageError where the files do not belong together, FormatError where one cannot be
    read."""
    pairs = _paired(_units(source), _units(translation), path)
    units = [
        replace(unit, target=target.source, confirmation="translated") for unit, target in pairs
    ]
    segments = with_pairs(units, path.as_posix(), path.name, lambda unit: True)
    return [segment for _, segment in segments if segment is not None and segment.tgt]


def _units(file: TranslatableFile) -> list[Unit]:
    return [unit for document in file.documents() for unit in document.units if not unit.problem]


def _paired(
    sources: Sequence[Unit], targets: Sequence[Unit], path: Path
) -> Iterator[tuple[Unit, Unit]]:
    by_name = {unit.id: unit for unit in targets if unit.id}
    if len(by_name) == len(targets) and all(unit.id for unit in sources):
        yield from ((unit, by_name[unit.id]) for unit in sources if unit.id in by_name)
        return
    if len(sources) != len(targets):
        raise UsageError(
            f"{path}: has {quantity(len(targets), 'segment')} where the former version has "
            f"{len(sources):,}; a translation of it has as many, in the same order"
        )
    yield from zip(sources, targets, strict=True)
