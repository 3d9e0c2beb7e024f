"""Okapi, for the tests that need it: its jars, and a Java to run them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from places import ROOT
from required import absent

FETCHED = ROOT / ".cache" / "okapi"


def okapi_jars() -> Path:
    """The folder of the jars: that of $TMNMT_OKAPI, or the one that `okapi/fetch.py` fills."""
    folder = Path(os.environ.get("TMNMT_OKAPI") or FETCHED)
    if not (folder / "Office.class").exists():
        absent("okapi", "the jars of Okapi are not here; python okapi/fetch.py gets them")
    if not shutil.which("java"):
        absent("okapi", "no Java is installed")
    return folder
