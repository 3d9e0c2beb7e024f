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
from tmnmt.cli.files import Job
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


TEXTS = [PAIRS[0][0], NEW, "Save it.", NEW, "Save it.", PAIRS[0][0], NEW]
DONE = {"Save it.": "Enregistrez."}  # the first time that it comes, where a file has targets
FORMATS = {  # the whole file, and an entry without and with a translation
    "a.xlf": (
        FILE,
        '<trans-unit id="{0}"><source>{1}</source>{2}</trans-unit>\n',
        "<target>{}</target>",
    ),
    "2.xlf": (
        '<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
        'trgLang="fr"><file id="f">{}</file></xliff>',
        '<unit id="{0}"><segment><source>{1}</source>{2}</segment></unit>\n',
        "<target>{}</target>",
    ),
    "a.po": (
        'msgid ""\nmsgstr "Language: fr\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n{}',
        'msgctxt "{0}"\nmsgid "{1}"\nmsgstr "{2}"\n\n',
        "{}",
    ),
    "a.ts": (
        '<!DOCTYPE TS>\n<TS version="2.1" language="fr" sourcelanguage="en">{}</TS>\n',
        "<context><name>u{0}</name><message><source>{1}</source>{2}</message></context>\n",
        "<translation>{}</translation>",
    ),
    "a.json": ('{{{}"z": 1}}', '"k{0}": "{1}",\n', ""),
    "a.properties": ("{}", "k{0}={1}\n", ""),
    "a.strings": ("{}", '"k{0}" = "{1}";\n', ""),
    "a.html": ("<html><body>{}</body></html>", "<p>{1}</p>\n", ""),
    "a.md": ("{}", "{1}\n\n", ""),
    "a.srt": ("{}", "{0}\n00:00:0{0},000 --> 00:00:0{0},900\n{1}\n\n", ""),
}


def written(path: Path, texts: Sequence[str], translations: dict[str, str]) -> Path:
    """A file of these texts; the first of each that has a translation gets it."""
    whole, entry, target = FORMATS[path.name]
    remaining = dict(translations) if target else {}
    entries = list[str]()
    for number, text in enumerate(texts, 1):
        translation = remaining.pop(text, "")
        entries.append(
            entry.format(number, text, target.format(translation) if translation else "")
        )
    path.parent.mkdir(exist_ok=True)
    path.write_text(whole.format("".join(entries)), encoding="utf-8")
    return path


def analysed(
    capsys: pytest.CaptureFixture[str], folder: Path, *arguments: object
) -> dict[str, int]:
    """How many segments are full matches, repetitions, unchanged and others, by `analyse`."""
    capsys.readouterr()
    command = ["analyse", "--json", "--memory", folder / "index", *arguments]
    assert run([str(part) for part in command]) == 0
    bands = json.loads(capsys.readouterr().out)["total"]["bands"]
    counts = {name: band["segments"] for name, band in bands.items()}
    return {
        "full": counts["102"] + counts["101"] + counts["100"],
        "repetitions": counts["repetitions"],
        "unchanged": counts["unchanged"],
        "all": sum(counts.values()),
    }


def filled(
    capsys: pytest.CaptureFixture[str], folder: Path, *arguments: object, output: Path
) -> dict[str, int]:
    """The same by the table of what `translate` does."""
    outcomes = list[Any]()
    count = Job._count

    def noted(self: Job, outcome: Any) -> None:
        outcomes.append(outcome)
        count(self, outcome)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "_count", noted)
        command = ["translate", "--memory", folder / "index", "--no-drafts", *arguments]
        assert run([str(part) for part in [*command, "--output", output]]) == 0
    opened = [outcome for outcome in outcomes if outcome.translation is not None]
    return {
        "full": sum(
            outcome.translation.origin in ("memory", "adapted") and not outcome.is_repetition
            for outcome in opened
        ),
        "repetitions": sum(outcome.is_repetition for outcome in opened),
        "unchanged": len(outcomes) - len(opened),
        "all": len(outcomes),
    }


@pytest.mark.parametrize("level", ["translated", "off"])
@pytest.mark.parametrize("name", FORMATS)
def test_what_analyse_counts_is_what_translate_does(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, level: str
) -> None:
    path = written(tmp_path / name, TEXTS, DONE)
    options = ["--own-translations", level]
    counts = analysed(capsys, folder, path, *options)
    assert counts == filled(capsys, folder, path, *options, output=tmp_path / f"out.{name}")
    assert counts["all"] == len(TEXTS) and counts["repetitions"] >= 3
    assert counts["unchanged"] == bool(FORMATS[name][2])
    assert counts["full"] == 1 + (counts["unchanged"] and level == "translated")


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_of_several_files_in_one_call(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    first = written(tmp_path / name, TEXTS[:4], {})
    other = written(tmp_path / "deep" / name, TEXTS[4:], DONE).rename(tmp_path / f"b{first.suffix}")
    counts = analysed(capsys, folder, first, other)
    assert counts == filled(capsys, folder, first, other, output=tmp_path / "out")
    assert counts["repetitions"] >= 2 and counts["all"] == len(TEXTS)


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.json", "a.po", "a.xlf"])
def test_the_same_beside_a_former_version(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    former = written(tmp_path / "old" / name, ["One.", "Save it.", "Gone."], {"Save it.": "E."})
    translation = former
    if not FORMATS[name][2]:
        translation = written(tmp_path / "fr" / name, ["Un.", "Enregistrez.", "Parti."], {})
    new = written(tmp_path / name, ["One.", "Save it.", *TEXTS], {})
    options = ["--previous", former, translation]
    counts = analysed(capsys, folder, new, *options)
    assert counts == filled(capsys, folder, new, *options, output=tmp_path / f"out.{name}")
    assert counts["unchanged"] >= 1 and counts["repetitions"] >= 3
