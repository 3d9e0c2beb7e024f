"""`tmnmt align`, as a user types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tmnmt.alignment import memory
from tmnmt.alignment.folder import AlignmentFolder
from tmnmt.alignment.memory import AlignedDocument
from tmnmt.alignment.memory import aligned_document as align_document
from tmnmt.cli import run
from tmnmt.formats import read_memory

EN = "The Minister may revoke a permit.\n\nThe holder has 30 days to reply.\n\nSee section 12.\n"
FR = (
    "Le ministre peut révoquer un permis.\n\n"
    "Le titulaire a 30 jours pour répondre.\n\nVoir l'article 12.\n"
)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "act.en.txt").write_text(EN, encoding="utf-8")
    (tmp_path / "act.fr.txt").write_text(FR, encoding="utf-8")
    return tmp_path


def align(folder: Path, *options: str) -> int:
    files = str(folder / "act.en.txt"), str(folder / "act.fr.txt")
    return run(["align", *files, "-o", str(folder / "memory.tmx"), *options])


def test_two_documents_become_a_memory(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert align(documents, "--src-lang", "en", "--tgt-lang", "fr", "--json") == 0
    segments = [*read_memory(documents / "memory.tmx", "en", "fr")]
    assert [segment.tgt for segment in segments] == FR.strip().split("\n\n")
    assert {segment.origin for segment in segments} == {"alignment"}
    assert all(dict(s.properties)["x-alignment-probability"] for s in segments)
    output = capsys.readouterr()
    record = json.loads(output.out)
    assert [pair["sources"] for pair in record["pairs"]] == [[0], [1], [2]]
    assert "3 sentences and 3; 3 pairs" in output.err and "3 segments" in output.err


def test_unsure_pairs_can_be_left_out(documents: Path) -> None:
    assert align(documents, "--src-lang", "en", "--tgt-lang", "fr", "--min-probability", "1") == 0
    assert [*read_memory(documents / "memory.tmx", "en", "fr")] == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--src-lang and --tgt-lang"),
        (("--src-lang", "en", "--tgt-lang", "en"), "two languages"),
        (("--src-lang", "en", "--tgt-lang", "fr", "-o", "memory.doc"), "allowed: .tmx"),
    ],
)
def test_wrong_usage_is_one_line(
    documents: Path, options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert align(documents, *options) == 2
    error = capsys.readouterr().err
    assert told in error and len(error.strip().splitlines()) == 1
    assert not (documents / "memory.tmx").exists()


def test_a_file_and_a_folder_are_no_pair(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["align", str(documents), str(documents / "act.fr.txt"), "-o", "m.tmx"]
    assert run([*arguments, "--src-lang", "en", "--tgt-lang", "fr"]) == 2
    assert "two files, or two folders" in capsys.readouterr().err


LANGUAGES = ("--src-lang", "en", "--tgt-lang", "fr")


def folders(folder: Path, count: int) -> tuple[str, str]:
    for language, text in (("en", EN), ("fr", FR)):
        (folder / language).mkdir()
        for number in range(count):
            path = folder / language / f"{number}.{language}.txt"
            path.write_text(f"{number}.\n\n{text}", encoding="utf-8")
    return str(folder / "en"), str(folder / "fr")


def test_what_is_aligned_is_not_aligned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["align", *folders(tmp_path, 3), "-o", str(tmp_path / "memory.tmx"), *LANGUAGES]
    aligned = list[str]()

    def noted(source: Path, *more: Any) -> AlignedDocument:
        aligned.append(source.name)
        if len(aligned) == 2:
            raise KeyboardInterrupt
        return align_document(source, *more)

    monkeypatch.setattr(memory, "aligned_document", noted)
    assert run(command) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "memory.tmx").exists()
    assert run(command) == 0
    assert aligned == ["0.en.txt", "1.en.txt", "1.en.txt", "2.en.txt"]
    assert "0.en.txt: 4 sentences and 4" in capsys.readouterr().err
    first = (tmp_path / "memory.tmx").read_bytes()
    (tmp_path / "en" / "0.en.txt").rename(tmp_path / "en" / "9.en.txt")
    (tmp_path / "fr" / "0.fr.txt").rename(tmp_path / "fr" / "9.fr.txt")
    assert run(command) == 0 and len(aligned) == 4
    documents = [s.document for s in read_memory(tmp_path / "memory.tmx", "en", "fr")]
    assert documents[-1] == str(tmp_path / "en" / "9.en.txt") and len(documents) == 12
    (tmp_path / "fr" / "1.fr.txt").write_text("Autre.\n", encoding="utf-8")
    assert run(command) == 0 and aligned[4:] == ["1.en.txt"]
    assert first != (tmp_path / "memory.tmx").read_bytes()


def test_what_a_person_has_mended_stays(documents: Path) -> None:
    assert align(documents, *LANGUAGES) == 0
    folder = AlignmentFolder(documents / "memory.tmx.alignment")
    (path,) = folder.path.iterdir()
    document = folder.load(path.stem)
    assert document is not None
    dropped = replace(document.alignment.links[0], decision="dropped")
    folder.save(path.stem, document.mended(0, 1, [dropped]))
    assert align(documents, *LANGUAGES) == 0
    segments = [*read_memory(documents / "memory.tmx", "en", "fr")]
    assert [segment.tgt for segment in segments] == FR.strip().split("\n\n")[1:]


def test_a_damaged_alignment_is_told(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert align(documents, *LANGUAGES) == 0
    (path,) = (documents / "memory.tmx.alignment").iterdir()
    path.write_text('{"sources": []}')
    assert align(documents, *LANGUAGES) == 1
    assert f"{path}: is damaged" in capsys.readouterr().err


def test_the_page_is_served_until_it_is_stopped_and_the_memory_written_again(
    documents: Path,
) -> None:
    files = [str(documents / name) for name in ("act.en.txt", "act.fr.txt")]
    command = [sys.executable, "-m", "tmnmt", "align", *files, *LANGUAGES, "--review"]
    output = documents / "memory.tmx"
    with subprocess.Popen(
        [*command, "-o", str(output)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        address = next(line for line in process.stderr if line.startswith("review at ")).split()[-1]
        with urlopen(f"{address}/alignments") as reply:
            (found,) = json.load(reply)["documents"]
        links = {"sources": [0], "targets": [0], "probability": 1, "decision": "dropped"}
        change = {"version": 0, "start": 0, "count": 1, "links": [links]}
        request = Request(
            f"{address}/alignments/{found['name']}",
            json.dumps(change).encode(),
            {"Content-Type": "application/json"},
        )
        urlopen(request).close()
        assert len([*read_memory(output, "en", "fr")]) == 3
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert len([*read_memory(output, "en", "fr")]) == 2
