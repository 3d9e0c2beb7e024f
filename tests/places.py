"""Where things lie: the repository, what ships with it, and the texts of the tests."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FORMATS = TESTS / "data" / "formats"  # small files of every kind
FILES = TESTS / "data" / "files"  # small files that translators work on
JRC = TESTS / "data" / "jrc-acquis.en-fr.tsv"  # 1,997 real pairs
MODEL = ROOT / "models" / "law.en-fr"
MEMORIES = ROOT / "memories"
HELD_OUT = MEMORIES / "held-out"
