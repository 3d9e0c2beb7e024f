"""What a file that is to be translated knows already: its confirmed units, as a memory of their own
and as what a session begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.batch.repetitions import RepeatedTexts
from tmnmt.codes.record import Source
from tmnmt.config.options import Overwrite, OwnTranslations
from tmnmt.files.as_memory import named_documents, with_pairs
from tmnmt.files.unit import Confirmation, State, TranslatableFile, Unit
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.index.embedded.in_memory import InMemoryIndex
from tmnmt.partial_document import ConfirmedNeighbour, PartialDocument
from tmnmt.segments import Segment

OPEN: dict[Overwrite, tuple[State, ...]] = {
    "nothing": ("new",),
    "drafts": ("new", "draft"),
    "all": ("new", "draft", "translated"),
}
CONFIRMED: dict[OwnTranslations, tuple[Confirmation, ...]] = {
    "off": (),
    "approved": ("approved",),
    "translated": ("translated", "approved"),
}


def is_open(unit: Unit, overwrite: Overwrite) -> bool:
    """Whether a unit gets a translation; `overwrite`: which of those that have one."""
    return unit.state in OPEN[overwrite] and bool(unit.source.plain.strip())


def is_confirmed(unit: Unit, overwrite: Overwrite, level: OwnTranslations) -> bool:
    """Whether a unit stays as it is, and its target is taken as confirmed. `level`: which targets
    are."""
    return (
        unit.confirmation in CONFIRMED[level]
        and not is_open(unit, overwrite)
        and unit.target is not None
        and bool(unit.source.plain.strip() and unit.target.plain.strip())
    )


class FileMemory:
    """What files have to say before they are translated. `repeated` says which of the texts that
    are to be translated come more than once."""

    def __init__(self, overwrite: Overwrite, level: OwnTranslations) -> None:
        self.overwrite, self.level = overwrite, level
        self.repeated = RepeatedTexts()
        self._segments = list[Segment]()
        self._open_units = 0

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def segments(self) -> Sequence[Segment]:
        """The confirmed units of all files that were read, each with its document and its place
        there; nothing where there is nothing to be translated."""
        return self._segments if self._open_units else ()

    @cached_property
    def index(self) -> InMemoryIndex:
        """The `segments` as a memory."""
        return InMemoryIndex.build(self.segments)

    def read(self, file: TranslatableFile, path: Path) -> FileCounts:
        """Adds the confirmed units of a file, and counts all units. Raises FormatError where the
        file cannot be read."""
        units = open_units = 0
        for name, document in named_documents(file, path.as_posix()):
            for unit, segment in with_pairs(document.units, name, path.name, self._is_confirmed):
                units += 1
                if is_open(unit, self.overwrite):
                    open_units += 1
                    self.repeated.add(unit.source.plain)
                if segment is not None:
                    self._segments.append(segment)
        self._open_units += open_units
        return FileCounts(units, open_units)

    def add(self, segments: Sequence[Segment]) -> None:
        """Adds pairs that are not in the files, as those of a former version."""
        self._segments += segments

    def _is_confirmed(self, unit: Unit) -> bool:
        return is_confirmed(unit, self.overwrite, self.level)


class FileCounts(NamedTuple):
    """How many units a file has, and how many of these are to be translated."""

    units: int
    open_units: int


def partial_document(
    units: Iterable[tuple[Unit, Source | None]],
    overwrite: Overwrite,
    level: OwnTranslations,
) -> PartialDocument:
    """A document of which a part is to be translated, and the confirmed units are known.

    units: all units, each with the text that is translated; None where it is not."""
    texts, pairs = list[Source](), list[ConfirmedNeighbour]()
    for unit, text in units:
        if text is not None:
            texts.append(text)
        elif unit.target is not None and is_confirmed(unit, overwrite, level):
            src, tgt = (clean_codes(text)[0].plain for text in (unit.source, unit.target))
            pairs.append(ConfirmedNeighbour(src, tgt, len(texts)))
    return PartialDocument(texts, pairs)
