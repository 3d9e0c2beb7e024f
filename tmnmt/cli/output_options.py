"""Callbacks of the options that name what is written: what cannot be is told before anything is
loaded."""

from __future__ import annotations

import os
from pathlib import Path

from tmnmt.errors import UsageError

STDOUT = "-"


def file_or_stdout(path: Path | None) -> Path | None:
    """The file as given; None for -, which is standard output."""
    return None if str(path) == STDOUT else path


def no_stdout(path: Path | str | None) -> Path | str | None:
    """The file or folder as given. Raises UsageError for -."""
    if str(path) == STDOUT:
        raise UsageError(f"{path} is standard output, to which this cannot be written; give a name")
    return path


def folder(path: Path) -> Path:
    """The folder as given, which need not exist. Raises UsageError where there is a file in its
    place, or above it."""
    no_stdout(path)
    there = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    if not there.is_dir():
        raise UsageError(
            f"{path}: {'it' if there == path else there} is no folder, and a folder is wanted"
        )
    return path
