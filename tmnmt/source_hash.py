"""What tells the code of this package from that of another version, or of another machine."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent
UNRELATED_FOLDERS = ("cli", "eval", "serve", "training")  # folders in which nothing translates


@cache
def source_hash() -> str:
    """A hash of the code that translates, as it stands when it is first asked for."""
    paths = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    lines = (
        f"{path.as_posix()} {hashlib.sha256((PACKAGE / path).read_bytes()).hexdigest()}"
        for path in paths
        if path.parts[0] not in UNRELATED_FOLDERS
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
