"""Numbers of the nearest positions, chosen by what is translated with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from repeating_memory import documents, student

from tmnmt.calibration import translation
from tmnmt.calibration.held_out import MARGIN, Stretch, excluded_pairs, stretches
from tmnmt.calibration.translation import translate_held_out
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.eval import calibrate as calibrating
from tmnmt.eval.calibrate import Way, best_of, calibrate, compare
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import compute, header_of, plan
from tmnmt.keys.files import keys_dir
from tmnmt.layers.contract import NearDraft
from tmnmt.layers.reach import (
    STANDARD,
    Reach,
    Reaches,
    Trial,
    load_calibration,
    save_calibration,
)
from tmnmt.models.folder import Model
from tmnmt.trained_layers.neighbours import Neighbours
from tmnmt.translator import Translator, restrict

WIDE, NOTHING = Reach(3.0, 0.3), Reach(1e-6, 0.1)
REACHES = STANDARD, Reaches(WIDE, WIDE, WIDE), Reaches(NOTHING, NOTHING, NOTHING)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return student(tmp_path_factory.mktemp("student") / "en-pt")


@pytest.fixture
def index(tmp_path: Path) -> MemoryIndex:
    build(tmp_path / "index", documents(), "en", "pt")
    return MemoryIndex.open(tmp_path / "index")


def near_to(stretch: Stretch) -> range:
    """The ids of a neighbourhood: every document is a large part of so small a memory."""
    assert stretch.document == ""
    numbers = [segment.id for segment in stretch.segments]
    return range(numbers[0] - MARGIN, numbers[-1] + MARGIN + 1)


def test_held_out_segments_are_translated_as_in_a_session(
    index: MemoryIndex, model: Model, tmp_path: Path
) -> None:
    drawn = stretches(index, 100, 1)
    advanced: list[int] = []
    references, translations = translate_held_out(
        model, None, index, drawn, REACHES, progress=advanced.append
    )
    assert references == [segment.tgt for stretch in drawn for segment in stretch.segments]
    assert sum(advanced) == len(REACHES) * len(references)
    assert len({*map(tuple, translations)}) == len(REACHES)
    for reaches, texts in zip(REACHES, translations, strict=True):
        expected = []
        for stretch in drawn:
            near = near_to(stretch)
            rest = [segment for segment in index.segments() if segment.id not in near]
            folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            build(folder, rest, "en", "pt")
            translator = Translator.load(
                model.folder,
                [MemoryIndex.open(folder)],
                TranslationOptions(mode="nearest", verbatim=0),
            )
            indexes = translator.pipeline.lookup.retriever.indexes
            read = restrict(translator, indexes, [], translator.settings, reaches=reaches)
            session = read.session()
            for segment in stretch.segments:
                expected.append(session.translate(segment.src).tgt)
                session.confirm(segment.src, segment.tgt)
        assert texts == expected


def trial(chrf: float, above: float, tau: float) -> Trial:
    return Trial(Reaches(Reach(tau, 0.1)), 1.0, 50.0, chrf, above)


def test_the_standard_numbers_stay_unless_others_are_better_by_more_than_chance() -> None:
    standard = Trial(STANDARD, 1.1, 50.0, 70.0, 0.0)
    likelier, better = trial(70.4, 0.9, 0.2), trial(71.0, 0.99, 0.3)
    best = trial(71.5, 0.985, 0.5)
    assert best_of([standard]) == standard
    assert best_of([standard, likelier]) == standard
    assert best_of([standard, likelier, better]) == better
    assert best_of([standard, likelier, better, best]) == best
    by_chance = replace(better, above=0.96)  # enough for one comparison, too little for three
    assert best_of([standard, by_chance]) == by_chance
    assert best_of([standard, by_chance, likelier, likelier]) == standard


def test_resamples_say_how_often_numbers_are_better() -> None:
    references = [segment.tgt for segment in documents()[:40]]
    worse = [text.replace("o", "a") for text in references]
    mixed = [*references[:20], *worse[20:]]
    ways = [Way(reaches, 1.0) for reaches in REACHES]
    trials = compare(ways, references, [mixed, references, worse], "pt")
    assert [each.reaches for each in trials] == [*REACHES]
    assert [each.above for each in trials] == [0.0, 1.0, 0.0]
    assert trials[1].chrf == trials[1].bleu == 100 > trials[0].chrf > trials[2].chrf


def test_likely_numbers_that_translate_worse_are_not_taken(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibration = calibrate(model, None, index)
    assert calibration.memory == len(index) and calibration.segments == len(index) // 5
    assert calibrate(model, None, index) == calibration
    save_calibration(index.path, calibration)
    assert load_calibration(index.path, model.states_hash) == calibration
    standard, likeliest, *_ = calibration.trials
    assert standard.reaches == STANDARD != likeliest.reaches and standard.loss > likeliest.loss

    def writing(good: bool) -> Any:
        """Candidates that write the references, or nothing."""

        def translate(
            model: Model,
            layers: None,
            index: MemoryIndex,
            drawn: Sequence[Stretch],
            reaches: Sequence[Reaches],
            *_: Any,
        ) -> tuple[list[str], list[list[str]]]:
            references, (own,) = translate_held_out(model, layers, index, drawn, [STANDARD])
            others = references if good else [""] * len(references)
            return references, [own, *[others] * (len(reaches) - 1)]

        return translate

    monkeypatch.setattr(calibrating, "translate_held_out", writing(good=False))
    assert calibrate(model, None, index).reaches == STANDARD
    monkeypatch.setattr(calibrating, "translate_held_out", writing(good=True))
    assert calibrate(model, None, index).reaches == likeliest.reaches


def with_keys(index: MemoryIndex, model: Model) -> None:
    compute(index, model, plan(index, header_of(model), model.vocab))


def test_neighbours_of_held_out_segments_are_of_the_rest(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_keys(index, model)
    segments = [*index.segments()]
    drawn = [Stretch((*segments[:4],), "owner"), Stretch((*segments[-3:],), "")]
    excluded = excluded_pairs(index, drawn)
    assert excluded == {
        (segment.src, segment.tgt)
        for segment in segments
        if segment.document == "owner" or segment.id in near_to(drawn[1])
    }
    assert 0 < len(excluded) < len(segments)
    found, as_it_is = set[tuple[str, str]](), Neighbours.near_drafts

    def near_drafts(neighbours: Neighbours, *arguments: Any) -> list[NearDraft]:
        results = as_it_is(neighbours, *arguments)
        for near in results:
            for position in near.positions.tolist():
                segment = near.search.match(near.sentence, near.search.place(position)[0]).segment
                found.add((segment.src, segment.tgt))
        return results

    monkeypatch.setattr(Neighbours, "near_drafts", near_drafts)
    unlike = replace(
        translation._settings(replace(model, products="fp32"), None),
        fragments=0,
        threshold=1.0,
        short_threshold=1.0,
    )
    monkeypatch.setattr(translation, "_settings", lambda *_: unlike)
    alone, beside = (
        translate_held_out(model, None, index, drawn, [STANDARD], neighbours=count)
        for count in (0, 2)
    )
    assert found and not found & excluded
    assert alone[0] == beside[0] and alone[1] != beside[1]


def test_neighbours_are_chosen_where_they_pay_and_then_read(
    index: MemoryIndex,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gain = [0]

    def translate(
        model: Model,
        layers: None,
        index: MemoryIndex,
        drawn: Sequence[Stretch],
        reaches: Sequence[Reaches],
        *others: Any,
    ) -> tuple[list[str], list[list[str]]]:
        """Translations of which neighbours have so many more right."""
        references = [segment.tgt for stretch in drawn for segment in stretch.segments]
        right = gain[0] if len(others) == 3 and others[2] == 8 else 0
        return references, [references[:right] + [""] * len(references[right:])] * len(reaches)

    def neighbours(**options: Any) -> int:
        options = {"mode": "nearest"} | options
        translator = Translator.load(model.folder, [index], TranslationOptions(**options))
        return translator.settings.neighbours

    monkeypatch.setattr(calibrating, "translate_held_out", translate)
    gain[0] = 10
    assert {trial.neighbours for trial in calibrate(model, None, index).trials} == {0}
    with_keys(index, model)
    gain[0] = 0
    assert calibrate(model, None, index).neighbours == 0 == neighbours()
    gain[0] = 10
    arguments = ["calibrate", "--model", str(model.folder), "--memory", str(index.path)]
    assert run(arguments) == 0
    out, error = capsys.readouterr()
    assert out.endswith("neighbours\t8\n")
    (chosen,) = (line for line in error.splitlines() if line.endswith("<- chosen"))
    assert ", 8 neighbours: " in chosen and "above the same without in 100.0%" in chosen
    assert neighbours() == 8 and neighbours(neighbours=3) == 3
    assert neighbours(neighbours=0) == neighbours(mode="off") == 0
    assert "has no keys" not in caplog.text
    shutil.rmtree(keys_dir(index.path, model.states_hash))
    assert neighbours() == 0
    assert f"{index.path}: has no keys of model {model.states_hash}" in caplog.text


def test_the_command_prints_the_numbers_and_keeps_them(
    index: MemoryIndex, model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["calibrate", "--model", str(model.folder), "--memory", str(index.path)]
    assert run([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    calibration = load_calibration(index.path, model.states_hash)
    assert calibration is not None
    assert Path(printed.pop("file")).exists()
    assert printed == calibration.record()
    assert run([*arguments, "--precision", "fp32"]) == 0
    assert load_calibration(index.path, replace(model, products="fp32").states_hash) is not None
    out, error = capsys.readouterr()
    header, pairs, *_ = out.splitlines()
    assert header == "source\ttau\ttemperature\tpenalty\tdoubt"
    assert pairs.startswith("pairs\t")
    assert "0.8/0.1/0.1, 0.8/0.1/0, 0.4/0.1/0: chrF2++" in error and error.count("<- chosen") == 1
    build(tmp_path / "small", documents()[:20], "en", "pt")
    assert run([*arguments[:3], "--memory", str(tmp_path / "small")]) == 1
    assert "at least 10 are needed" in capsys.readouterr().err


def test_an_index_is_calibrated_when_it_is_built(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory, small = tmp_path / "memory.tsv", tmp_path / "small.tsv"
    rows = [f"{segment.src}\t{segment.tgt}\n" for segment in documents()]
    memory.write_text("en\tpt\n" + "".join(rows))
    small.write_text("en\tpt\n" + "".join(rows[:20]))
    languages = ["--src-lang", "en", "--tgt-lang", "pt"]

    def built(path: Path, index: str, *options: str) -> int:
        return run(["build-index", str(path), "--index", index, *languages, *options])

    with_model = "--model", str(model.folder)
    assert built(memory, str(tmp_path / "whole"), *with_model) == 0
    assert load_calibration(tmp_path / "whole", model.states_hash) is not None
    assert "numbers hold, by" in capsys.readouterr().err
    assert built(small, str(tmp_path / "few"), *with_model) == 0
    assert "standard numbers hold" in capsys.readouterr().err
    with MemoryIndex.open(tmp_path / "few") as index:
        assert len(index) > 0 and load_calibration(tmp_path / "few", model.states_hash) is None
    assert built(memory, "elasticsearch+http://localhost/x", *with_model) == 2
    assert "an index in a folder" in capsys.readouterr().err
    languages[3] = "fr"
    assert built(memory, str(tmp_path / "other"), *with_model) == 2
    assert "this model is from en to pt" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
