"""Okapi's filters, which are in Java: run as a program of its own, where its jars are.

TMNMT_OKAPI names the folder of the jars, as `okapi/fetch.py` of the repository fills it. Nothing is
fetched here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

from tmnmt.errors import FormatError, UsageError

FOLDER = "TMNMT_OKAPI"
CLASS = "Office"
HEAP = "1g"
LONGEST = 1800  # seconds that one file may take


def jars(path: Path) -> Path:
    """The folder of the jars. UsageError where there is none.

    path: the file that needs them."""
    folder = os.environ.get(FOLDER, "")
    if not folder:
        raise UsageError(
            "{file}: it needs Java and the jars of Okapi, and {variable} names none; see "
            "docs/files-office.md",
            **{"file": str(path), "variable": FOLDER},
        )
    if not (Path(folder) / f"{CLASS}.class").is_file():
        raise UsageError(
            "{file}: the jars of Okapi are not in {folder}, which {variable} names; see "
            "docs/files-office.md",
            **{"file": str(path), "folder": folder, "variable": FOLDER},
        )
    return Path(folder)


def java(path: Path) -> str:
    """The program: of $JAVA_HOME, else the one on the path. UsageError where there is none.

    path: the file that needs it."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else None
    program = program or shutil.which("java")
    if program is None:
        raise UsageError(
            "{file}: it needs a Java, and none is installed; see docs/files-office.md",
            file=str(path),
        )
    return program


def check(path: Path) -> None:
    """Raises UsageError where Okapi cannot be run.

    path: the file that needs it."""
    jars(path)
    java(path)


def run(action: Literal["extract", "merge"], path: Path, *arguments: str, temporary: Path) -> None:
    """Runs Okapi once on a file.

    action: what Okapi does, "extract" or "merge".
    path: the file.
    arguments: what the action takes besides.
    temporary: the folder of Okapi's temporary files.

    Raises FormatError with Okapi's reason where that fails."""
    folder = jars(path)
    options = [f"-Xmx{HEAP}", "-Djava.awt.headless=true", f"-Djava.io.tmpdir={temporary}"]
    place = f"{folder}{os.pathsep}{folder / '*'}"
    command = [java(path), *options, "-cp", place, CLASS, action, str(path.absolute()), *arguments]
    try:
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired as error:
        raise FormatError(f"{path}: Okapi was not done with it in {LONGEST} seconds") from error
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        raise FormatError(
            f"{path}: Okapi cannot {action} it: {lines[-1] if lines else 'no reason'}"
        )
