"""The program that counts full matches, as they stand and with other numbers."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from places import ROOT

from tmnmt.formats import write_tsv
from tmnmt.segments import Segment


def test_full_matches_of_both_kinds_are_counted_with_those_that_are_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    memory = [Segment("Page 3", "Page 3"), Segment("Close it", "Fermer")]
    asked = [
        Segment("Close it", "Fermer"),
        Segment("Close it", "Clore"),
        Segment("Page 7", "Page 7"),
        Segment("Page 8", "P. 8"),
        Segment("Page 8", "P. 8"),
        Segment("Page 9 of 9", "Page 9"),
    ]
    write_tsv(tmp_path / "memory.tsv", memory)
    write_tsv(tmp_path / "asked.tsv", asked)
    arguments = [str(tmp_path / "asked.tsv"), "--memory", str(tmp_path / "memory.tsv")]
    monkeypatch.setattr("sys.argv", ["full_matches", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "eval" / "full_matches.py"), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "5 pairs",
        "as it stands: 2, of which 1 as the reference",
        "with other numbers: 2, of which 1 as the reference",
    ]
