"""Which kind a file is of that is to be translated: told by how it begins, and by its name."""

from __future__ import annotations

from pathlib import Path

from tmnmt.config.options import Format
from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.unit import TranslatableFile
from tmnmt.formats.text import kind_by_name
from tmnmt.registry import Registry

PARTIAL = ".partial"
HEAD = 1 << 16  # bytes of a file's beginning

# the first that accepts a file opens it
KINDS: Registry[type[TranslatableFile]] = Registry(
    "file format", {name: kind.reader for name, kind in FILE_KINDS.items()}
)


def open_translatable(path: Path) -> TranslatableFile:
    """Opens a file that is to be translated.

    path: the file.

    Raises FormatError where it cannot be read, or is of no known kind."""
    kind = kind_of(path)
    if kind is None:
        hint = kind_by_name(path.name)
        titles = ", ".join(dict.fromkeys(kind.title for kind in KINDS.values()))
        raise FormatError(
            f"{path}: no file that can be translated{f', but {hint}' if hint else ''}; allowed: "
            f"{titles}"
        )
    return kind(path)


def kind_of(path: Path, format: Format | None = None) -> type[TranslatableFile] | None:
    """The kind of a file; None where it is of none that is known, as lines of text are.
    NAME.partial, which an interrupted run leaves, is of the kind of NAME.

    path: the file.
    format: the format that the user has named; with "text" the file is of no kind. None tells the
    kind by the file.

    Raises FormatError where the file cannot be read."""
    if format == "text":
        return None
    final_path = path.with_suffix("") if path.suffix == PARTIAL else path
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    return next((kind for kind in KINDS.values() if kind.accepts(head, final_path)), None)
