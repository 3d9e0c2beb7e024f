"""Files that translators work on, read and written in tests."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path

from tmnmt.codes.record import Text
from tmnmt.files.unit import Filling, TranslatableFile, Unit

Opening = Callable[[Path], TranslatableFile]


def units(file: TranslatableFile) -> list[Unit]:
    """Those of all documents."""
    return [unit for document in file.documents() for unit in document.units]


def written(file: TranslatableFile, fillings: Iterable[Filling | None]) -> bytes:
    out = io.BytesIO()
    file.write(out, fillings)
    return out.getvalue()


def untouched(file: TranslatableFile) -> bytes:
    """What is written where nothing is filled in."""
    return written(file, [None] * len(units(file)))


def filled(file: TranslatableFile, *targets: str | Text | None, origin: str = "memory") -> bytes:
    """The file with these targets in its first units."""
    texts = [Text(target) if isinstance(target, str) else target for target in targets]
    fillings = [None if text is None else Filling(text, origin) for text in texts]
    return written(file, fillings + [None] * (len(units(file)) - len(fillings)))


def echoed(file: TranslatableFile, origin: str = "memory") -> bytes:
    """The file with every source as its target."""
    return written(file, [Filling(unit.source, origin) for unit in units(file)])
