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
HELP = "see docs/files-office.md"


def jars() -> Path:
    """The folder of the jars. UsageError where there is none, or no Java."""
    folder = os.environ.get(FOLDER, "")
    if not folder:
        raise UsageError(f"it needs Java and the jars of Okapi, and {FOLDER} names none; {HELP}")
    if not (Path(folder) / f"{CLASS}.class").is_file():
        raise UsageError(f"{FOLDER}={folder}: the jars of Okapi are not there; {HELP}")
    return Path(folder)


def java() -> str:
    """The program: of $JAVA_HOME, else the one on the path. UsageError where there is none."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else None
    program = program or shutil.which("java")
    if program is None:
        raise UsageError(f"it needs a Java, and none is installed; {HELP}")
    return program


def check() -> None:
    """Raises UsageError where Okapi cannot be run."""
    jars()
    java()


def run(action: Literal["extract", "merge"], path: Path, *arguments: str, temporary: Path) -> None:
    """Runs Okapi once on a file.

    action: what Okapi does, "extract" or "merge".
    path: the file.
    arguments: what the action takes besides.
    temporary: the folder of Okapi's temporary files.

    Raises FormatError with Okapi's reason where that fails."""
    folder = jars()
    options = [f"-Xmx{HEAP}", "-Djava.awt.headless=true", f"-Djava.io.tmpdir={temporary}"]
    place = f"{folder}{os.pathsep}{folder / '*'}"
    command = [java(), *options, "-cp", place, CLASS, action, str(path.absolute()), *arguments]
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
