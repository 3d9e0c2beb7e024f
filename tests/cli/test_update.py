"""`tmnmt update` fills files where they lie, and says what it did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polib
import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.cli.update import CHANGED
from tmnmt.index import build

PO = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: fr\\n"\n\n'
    "# a note | with a bar\n"
    'msgctxt "a"\nmsgid "Save it."\nmsgstr "Enregistrez."\n\n{}'
)
NEW = 'msgctxt "{}"\nmsgid "{}"\nmsgstr ""\n\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("update")
    write_tiny_model(folder / "model")
    build(folder / "index", segments(), "en", "fr")
    return folder


def catalogue(path: Path, *sources: str) -> Path:
    new = [NEW.format(number, source) for number, source in enumerate(sources)]
    path.write_text(PO.format("".join(new)), encoding="utf-8")
    return path


def update(folder: Path, *arguments: object) -> int:
    command = ["update", "--model", folder / "model", "--memory", folder / "index", "--beam", "2"]
    return run([str(part) for part in [*command, *arguments]])


def row(table: str, path: Path) -> list[str]:
    """The cells of a file in a table of Markdown."""
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {path} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_new_messages_are_filled_where_they_lie_and_counted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = catalogue(tmp_path / "full.po")
    before = full.read_bytes(), full.stat().st_mtime_ns
    new = catalogue(tmp_path / "new.po", PAIRS[0][0], "Save it.", "Quite new.", "Quite new.")
    assert update(folder, full, new) == CHANGED
    table = capsys.readouterr().out
    assert table.startswith("| file | new | full matches | adapted | fuzzy | machine |")
    assert row(table, new) == ["4", "2", "0", "0", "1", "1", "0"]
    assert str(full) not in table and (full.read_bytes(), full.stat().st_mtime_ns) == before
    entries = polib.pofile(str(new))
    assert [entry.msgstr for entry in entries][:3] == ["Enregistrez.", PAIRS[0][1], "Enregistrez."]
    assert [entry.fuzzy for entry in entries] == [False, False, False, True, True]
    assert "# a note | with a bar\n" in new.read_text(encoding="utf-8")
    assert update(folder, full, new) == 0
    assert capsys.readouterr().out == "Nothing was to be translated.\n"


def test_several_files_have_a_sum(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = catalogue(tmp_path / "a.po", PAIRS[0][0], "Save it.")
    second = catalogue(tmp_path / "b|c.po", PAIRS[0][0])
    assert run(["update", "--memory", str(folder / "index"), str(first), str(second)]) == CHANGED
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "| **2 files** | 3 | 2 | 0 | 0 | 0 | 1 | 0 |"
    assert lines[-2].startswith(f"| {tmp_path}/b\\|c.po | 1 |") and len(lines) == 5


def test_a_check_changes_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = catalogue(tmp_path / "a.po", "Quite new.", "Save it.")
    before = path.read_bytes()
    assert update(folder, "--check", path) == CHANGED
    assert row(capsys.readouterr().out, path) == ["3", "2"] and path.read_bytes() == before
    assert update(folder, "--check", catalogue(path)) == 0
    assert capsys.readouterr().out == "Every segment has a translation.\n"


def test_without_a_model_what_nobody_knows_stays_empty(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = catalogue(tmp_path / "a.po", PAIRS[0][0], "Quite new.")
    assert run(["update", "--memory", str(folder / "index"), str(path)]) == CHANGED
    assert row(capsys.readouterr().out, path) == ["2", "1", "0", "0", "0", "0", "1"]
    assert [entry.msgstr for entry in polib.pofile(str(path))][2] == ""


XLIFFS = {
    "1.2": (
        '<xliff version="1.2"><file original="d" source-language="en" target-language="fr" '
        'datatype="html"><body>{}</body></file></xliff>',
        '<trans-unit id="{}"><source>{}</source><target state="{}">{}</target></trans-unit>',
        ("new", "translated"),
    ),
    "2.1": (
        '<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
        'trgLang="fr"><file id="f">{}</file></xliff>',
        '<unit id="{0}"><segment id="s" state="{2}"><source>{1}</source><target>{3}</target>'
        "</segment></unit>",
        ("initial", "translated"),
    ),
}


@pytest.mark.parametrize("version", XLIFFS)
def test_a_renamed_file_gets_no_match_twice(tmp_path: Path, version: str) -> None:
    whole, unit, (new, translated) = XLIFFS[version]
    known = unit.format("1", "The fee schedule is attached below.", translated, "Le barème.")
    similar = unit.format("2", "The fee schedule is lost for good.", new, "")
    path = tmp_path / "a.xlf"
    path.write_text(whole.format(known + similar), encoding="utf-8")
    assert run(["update", str(path)]) == CHANGED
    first = path.read_text(encoding="utf-8")
    assert first.count('origin="a.xlf"') == 1
    renamed = path.rename(tmp_path / "b.xlf")
    assert run(["update", str(renamed)]) == CHANGED
    assert renamed.read_text(encoding="utf-8") == first


def test_what_cannot_be_updated_is_told_and_nothing_is_changed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = catalogue(tmp_path / "a.po", "Quite new.")
    before = path.read_bytes()
    (tmp_path / "a.md").write_text("# One\n")
    assert update(folder, path, tmp_path / "a.md") == 2
    assert "a.md: holds one language" in capsys.readouterr().err
    (tmp_path / "b.po").write_text('msgid "a"\nmsgstr "b"\nmsgid\n')
    assert update(folder, path, tmp_path / "b.po") == 1
    assert "b.po, line 3" in capsys.readouterr().err
    assert update(folder, path, tmp_path / "none.po") == 1
    assert path.read_bytes() == before


def test_the_exit_code_is_that_of_the_process(folder: Path, tmp_path: Path) -> None:
    path = catalogue(tmp_path / "a.po", "Save it.")
    command = [sys.executable, "-m", "tmnmt", "update", str(path), "--src-lang", "en"]
    assert subprocess.run(command, check=False).returncode == CHANGED
    assert subprocess.run(command, check=False).returncode == 0
