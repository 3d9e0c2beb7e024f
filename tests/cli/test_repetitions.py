"""What `tmnmt analyse` counts as a repetition, `tmnmt translate` fills alike and marks as one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.codes.record import Source, plain_of
from tmnmt.files.opening import open_translatable
from tmnmt.index import build
from tmnmt.segments import Segment, Translation
from tmnmt.translator import Translator

NEW = "The Council shall inform the States."
FILE = (
    '<xliff version="1.2"><file original="d.html" source-language="en" target-language="fr" '
    'datatype="html"><body>\n{}</body></file></xliff>\n'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("repetitions")
    write_tiny_model(folder / "model")
    build(folder / "index", segments(), "en", "fr")
    return folder


def xliff(path: Path, *sources: str) -> Path:
    units = [
        f'<trans-unit id="{number}"><source>{source}</source></trans-unit>\n'
        for number, source in enumerate(sources)
    ]
    path.write_text(FILE.format("".join(units)), encoding="utf-8")
    return path


def translate(folder: Path, *arguments: object) -> int:
    command = ["translate", "--model", folder / "model", "--memory", folder / "index"]
    return run([str(part) for part in [*command, "--beam", 2, *arguments]])


def records(folder: Path, *paths: Path) -> list[dict[str, Any]]:
    out = paths[0].parent / "out.jsonl"
    assert translate(folder, "--json", *paths, "--output", out) == 0
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def repetitions_of(capsys: pytest.CaptureFixture[str], folder: Path, *paths: Path) -> int:
    capsys.readouterr()
    assert run(["analyse", "--json", "--memory", str(folder / "index"), *map(str, paths)]) == 0
    bands = json.loads(capsys.readouterr().out)["total"]["bands"]
    return int(bands["repetitions"]["segments"])


def test_a_repetition_is_translated_once_and_marked(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = list[str]()
    stream = Translator.stream

    def noted(
        self: Translator, documents: Iterable[Sequence[Source]], *more: Any, **options: Any
    ) -> Iterator[Translation]:
        def read() -> Iterator[Sequence[Source]]:
            for document in documents:
                texts.extend(map(plain_of, document))
                yield document

        return stream(self, read(), *more, **options)

    monkeypatch.setattr(Translator, "stream", noted)
    coded = NEW.replace("Council", '<g id="1">Council</g>')
    path = xliff(tmp_path / "a.xlf", NEW, "Another.", f"{NEW[:3]} {NEW[3:]}", NEW, coded)
    out = tmp_path / "out.xlf"
    assert translate(folder, path, "--output", out) == 0
    assert texts == [NEW, "Another.", NEW.replace("The", "The "), NEW]  # other codes, or blanks
    assert "5 of 5 segments translated, 3 as repetitions" in capsys.readouterr().err
    units = [unit for document in open_translatable(out).documents() for unit in document.units]
    assert units[0].target == units[3].target and units[3].state == "draft"
    written = out.read_text(encoding="utf-8")
    assert written.count('state-qualifier="leveraged-mt"') == 2
    assert written.count('state-qualifier="x-repetition"') == 3
    assert repetitions_of(capsys, folder, path) == 3
    assert [record["repetition"] for record in records(folder, path)] == [0, 0, 1, 1, 1]


def test_full_matches_that_come_again_stay_full_matches(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = xliff(tmp_path / "a.xlf", PAIRS[0][0], PAIRS[0][0])
    out = tmp_path / "out.xlf"
    assert translate(folder, path, "--output", out) == 0
    assert out.read_text(encoding="utf-8").count('state-qualifier="exact-match"') == 2
    assert repetitions_of(capsys, folder, path) == 1
    assert [record["repetition"] for record in records(folder, path)] == [0, 1]


def test_the_same_place_in_a_memory_goes_before_a_repetition(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = ["Save", "Enregistrer"], ["Other.", "Autre."], ["Save", "Sauver"], ["Last.", "Fin."]
    place = tmp_path / "place"
    place.mkdir()
    memory = [Segment(src, tgt, "d", position) for position, (src, tgt) in enumerate(pairs)]
    build(place / "index", memory, "en", "fr")
    path = xliff(tmp_path / "a.xlf", "Save", "Other.", "Save", "Last.", "Save")
    (place / "model").symlink_to(folder / "model")
    assert repetitions_of(capsys, place, path) == 1
    found = records(place, path)
    assert [record["repetition"] for record in found] == [0, 0, 0, 0, 1]
    assert [record["tgt"] for record in found][:3:2] == ["Enregistrer", "Sauver"]


def test_what_came_in_an_earlier_file_is_a_repetition(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = xliff(tmp_path / "a.xlf", NEW), xliff(tmp_path / "b.xlf", NEW, NEW)
    assert repetitions_of(capsys, folder, first, second) == 2
    out = tmp_path / "out"
    assert translate(folder, first, second, "--output", out) == 0
    files = [open_translatable(out / path.name) for path in (first, second)]
    units = [unit for file in files for document in file.documents() for unit in document.units]
    assert len({unit.target for unit in units}) == 1 and units[0].target is not None
    assert (out / "a.xlf").read_text(encoding="utf-8").count("x-repetition") == 0
    assert (out / "b.xlf").read_text(encoding="utf-8").count("x-repetition") == 2


def test_without_a_model_repetitions_are_marked_and_the_memory_fills_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = xliff(tmp_path / "a.xlf", PAIRS[0][0], PAIRS[0][0], "Quite new.", "Quite new.")
    out = tmp_path / "out.jsonl"
    command = ["translate", "--memory", str(folder / "index"), "--json", str(path)]
    assert run([*command, "--output", str(out)]) == 0
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [record["repetition"] for record in found] == [0, 1, 0, 1]
    assert [record["tgt"] for record in found] == [PAIRS[0][1], PAIRS[0][1], "", ""]
    assert repetitions_of(capsys, folder, path) == 2
