"""`tmnmt evaluate run` and `score` as they are used: recipes, resuming, reports, and what is said
of bad input."""

from __future__ import annotations

import copy
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from full_disk import files_of_at_most
from places import ROOT
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.assembly import Assembly
from tmnmt.engine.loading import load_layers
from tmnmt.engine.run_statistics import Tally
from tmnmt.errors import DataError
from tmnmt.eval.recipe import SystemConfig, load_recipe
from tmnmt.eval.report.write import table
from tmnmt.eval.translated import TranslationCache
from tmnmt.formats import read_memory, write_tsv
from tmnmt.index.embedded.lock import writing
from tmnmt.models.folder import load_model
from tmnmt.progress import Progress
from tmnmt.segments import Segment, Translation
from tmnmt.translator import Translator

TEST = [
    ("The Commission shall inform the Council.", "La Commission informe le Conseil."),
    ("This Regulation shall enter into force now.", "Le présent règlement entre en vigueur."),
    ("It shall apply from 3 March 1997.", "Il est applicable à partir du 3 mars 1997."),
    ("Having regard to the opinion of the Commission,", "vu l'avis de la Commission,"),
]
RECIPES = ROOT / "eval" / "recipes"
RECIPE = """
name = "tiny"
baseline = "base"
[[test]]
name = "own"
files = ["test.tsv"]
memory = "tm"
[[model]]
name = "tiny"
path = "model"
[[memory]]
name = "tm"
path = "memory.tsv"
[[system]]
name = "base"
beam = 2
[[system]]
name = "paste"
paste = true
[[system]]
name = "copy"
mode = "copy"
cache = 5
remember = "own"
beam = 2
threshold = 0.3
explain = true
[[system]]
name = "random"
mode = "copy"
pairs = "random"
beam = 2
[[system]]
name = "other"
hypothesis = "other.txt"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, memory.tsv, test.tsv, other.txt, recipe.toml, and out: the report of the recipe"""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        write_tiny_model(folder / "model")
        write_tsv(folder / "memory.tsv", segments())
        test = [
            Segment(src, tgt, f"doc{number // 2}", number % 2)
            for number, (src, tgt) in enumerate(TEST)
        ]
        write_tsv(folder / "test.tsv", test)
        (folder / "other.txt").write_text(
            "".join(tgt + "\n" for _, tgt in TEST[:3]) + "\n", encoding="utf-8"
        )
        (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        assert evaluate(folder) == 0
    return folder


def evaluate(folder: Path, recipe: str = "recipe.toml", *arguments: str) -> int:
    out = str(folder / "out")
    return run(
        ["evaluate", "run", str(folder / recipe), "--out", out, "--threads", "1", *arguments]
    )


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(made / "cache"))
    return made


def report(folder: Path, out: str = "out") -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / out / "report.json").read_text(encoding="utf-8"))[
        "tests"
    ][0]
    return read


def told(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "out/segments.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_the_report_holds_every_system_and_what_the_engine_writes(folder: Path) -> None:
    test, lines = report(folder), told(folder)
    assert (test["segments"], test["documents"]) == (4, 2)
    systems = {system["name"]: system for system in test["systems"]}
    assert list(systems) == ["base", "paste", "copy", "random", "other"]
    assert [system["baseline"] for system in test["systems"]] == [True, False, False, False, False]
    translator = Translator.load(
        folder / "model", options=TranslationOptions(cache=0, mode="off", beam=2, device="cpu")
    )
    assert [line["systems"]["base"]["hyp"] for line in lines] == [
        translator.translate([src])[0].tgt for src, _ in TEST
    ]
    assert lines[0]["systems"]["paste"]["hyp"] == lines[0]["best"]["tgt"] == PAIRS[0][1]
    assert (
        lines[0]["best"]["score"] == pytest.approx(1 - 2 / 8, abs=1e-4)
        and lines[0]["band"] == "0.7-0.8"
    )
    copied = lines[0]["systems"]["copy"]
    assert copied["matches"][0]["src"] == PAIRS[0][0] and {
        t["origin"] for t in copied["tokens"]
    } & {"memory", "model"}
    assert (
        systems["copy"]["origin"]["memory"]["share"] + systems["copy"]["origin"]["model"]["share"]
        <= 1 + 1e-9
    )
    assert len(lines[0]["systems"]["random"]["matches"]) == 4
    assert systems["other"]["cost"] is None and systems["base"]["cost"]["words_per_second"] > 0
    assert systems["other"]["effort"]["edit_rate"] > 0
    assert "other: 1 segment without a translation" in test["warnings"]
    assert systems["other"]["metrics"]["BLEU"]["low"] <= systems["other"]["metrics"]["BLEU"]["high"]
    assert {v["test"] for v in systems["copy"]["versus"]} == {
        "paired bootstrap",
        "approximate randomisation",
        "sign test",
    }
    assert sum(band["segments"] for band in test["bands"]) == 4
    for part in systems["copy"]["by_band"]:
        for name, score in part["metrics"].items():
            interval = part["intervals"][name]
            assert interval["low"] - 1e-9 <= score <= interval["high"] + 1e-9
            assert part["segments"] > 1 or interval["low"] == pytest.approx(
                interval["high"]
            )  # one segment, drawn again
    assert "| copy |" in (folder / "out/report.md").read_text(encoding="utf-8")


TRAINED = """
{"tokens": 900, "seconds": 30.0}
{"tokens": 3000, "seconds": 100.0}
{"part": "tm", "tokens": 500, "seconds": 20.0}
{"part": "cache", "tokens": 100, "seconds": 4.0}
{"part": "gates", "tokens": 20, "seconds": 1.0}
{"part": "anchors", "tokens": 9, "seconds": 3.0}
{"part": "reference", "tokens": 80, "seconds": 2.0}
"""


def costs(folder: Path, name: str) -> dict[str, list[Any]]:
    keys = "parameters", "training_seconds", "training_tokens", "training_tokens_per_second"
    of = {system["name"]: system["cost"] for system in report(folder)["systems"]}
    assert of["paste"] is None and of["other"] is None
    return {key: [of[system][key] for system in name.split()] for key in keys}


def columns_of(folder: Path) -> dict[str, list[str]]:
    """The columns of the first table of report.md from words a second on, by their titles."""
    lines = (folder / "out/report.md").read_text(encoding="utf-8").split("\n\n")
    table = next(part for part in lines if part.startswith("| system")).splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return {title: cells for title, _, *cells in columns[rows[0].index("words/s") :]}


def test_parameters_and_training_are_of_what_a_system_reads(folder: Path) -> None:
    """The cache of system copy counts with it alone; where the folder has no log, its column is
    left out."""
    assert evaluate(folder) == 0
    model = load_model(folder / "model")
    layers = load_layers(model, "cpu")
    assert layers is not None and layers.tm is not None and layers.cache is not None
    base = sum(value.numel() for value in model.backbone.parameters())
    read = [name for name, _ in layers.tm.named_parameters() if name.split(".")[0] != "fusion"]
    sizes = {name: value.numel() for name, value in layers.tm.named_parameters()}
    tm = sum(sizes[name] for name in read if not name.startswith("word."))
    cache = sum(value.numel() for value in layers.cache.parameters())
    told = costs(folder, "base copy random")
    assert told.pop("parameters") == [base, base + tm + cache, base + tm]
    assert told == dict.fromkeys(told, [None] * 3)
    shown = [f"{base:,}", "", f"{base + tm + cache:,}", f"{base + tm:,}", "", ""]
    assert columns_of(folder).keys() == {"words/s", "parameters"}
    assert columns_of(folder)["parameters"] == shown

    shutil.copytree(folder / "model", folder / "logged")
    (folder / "logged/train.jsonl").write_text(TRAINED, encoding="utf-8")
    (folder / "again.toml").write_text(RECIPE.replace('"model"', '"logged"'), encoding="utf-8")
    assert evaluate(folder, "again.toml") == 0
    told = costs(folder, "base copy random")
    assert told["training_seconds"] == [105.0, 130.0, 125.0]
    assert told["training_tokens"] == [3080, 3700, 3580]
    rates = [30.2, 29.1, 29.3]  # 3080 / 102, 3700 / 127, 3580 / 122: without the anchors
    assert told["training_tokens_per_second"] == rates
    shown = ["105 (30)", "", "130 (29)", "125 (29)", "", ""]
    assert columns_of(folder)["training s (subwords/s)"] == shown
    notes = (folder / "out/report.md").read_text(encoding="utf-8")
    assert "- parameters: of the backbone" in notes and "- training s (subwords/s): of" in notes

    (folder / "logged/train.jsonl").write_text('{"seconds": 2.5}\n', encoding="utf-8")
    assert evaluate(folder, "again.toml") == 0
    assert columns_of(folder)["training s (subwords/s)"] == ["2", "", "2", "2", "", ""]
    assert evaluate(folder) == 0


@pytest.mark.parametrize("name", ["jrc-acquis", "law", "papers"])
def test_a_report_of_before_parameters_reads_as_it_did(name: str) -> None:
    path = ROOT / "eval" / "results" / f"{name}.json"
    old = json.loads(path.read_text(encoding="utf-8"))
    assert table(old) == path.with_suffix(".md").read_text(encoding="utf-8")


def test_a_changed_setting_translates_again_only_what_it_touches(folder: Path) -> None:
    before = {path.name for path in (folder / "out/translations").iterdir()}
    assert len(before) == 3
    times = {path: path.stat().st_mtime_ns for path in (folder / "out/translations").iterdir()}
    (folder / "again.toml").write_text(RECIPE.replace("cache = 5", "cache = 6"), encoding="utf-8")
    assert evaluate(folder, "again.toml") == 0
    assert len({path.name for path in (folder / "out/translations").iterdir()} - before) == 1
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


def test_other_code_translates_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = shutil.copytree(folder / "out", folder / "by-other-code")
    before = {path.name for path in (out / "translations").iterdir()}
    monkeypatch.setattr("tmnmt.eval.translated.source_hash", lambda: "another")
    assert evaluate(folder, "recipe.toml", "--out", str(out)) == 0
    assert len({path.name for path in (out / "translations").iterdir()} - before) == 3


def test_what_is_only_measured_otherwise_translates_nothing_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another baseline, weights, description, and systems that need no model: the same
    translations."""
    assert evaluate(folder) == 0
    before = {path: path.stat().st_mtime_ns for path in (folder / "out/translations").iterdir()}
    again = RECIPE.replace(
        'baseline = "base"', 'baseline = "copy"\ndescription = "again"\nallow_leaks = true'
    )
    again += '[[system]]\nname = "paste again"\npaste = true\n[weights]\nexact = 0.1\n'
    (folder / "again.toml").write_text(again, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "stream", None)
        assert evaluate(folder, "again.toml") == 0
        (folder / "elsewhere/translations").mkdir(parents=True)
        for path in before:
            shutil.copy(
                path, folder / "elsewhere/translations"
            )  # made in another folder, or on another machine
        assert (
            run(
                ["evaluate", "run", str(folder / "recipe.toml"), "--out", str(folder / "elsewhere")]
            )
            == 0
        )
        assert (
            report(folder, "elsewhere")["systems"][0]["metrics"]
            == report(folder, "out")["systems"][0]["metrics"]
        )
        assert {
            path: path.stat().st_mtime_ns for path in (folder / "out/translations").iterdir()
        } == before
        assert evaluate(folder, "recipe.toml", "--baseline", "copy", "--only", "random") == 0
    assert [(system["name"], system["baseline"]) for system in report(folder)["systems"]] == [
        ("copy", True),
        ("random", False),
    ]
    assert evaluate(folder, "recipe.toml", "--baseline", "copi") == 2
    assert "--baseline: there is no 'copi'; did you mean 'copy'?" in capsys.readouterr().err
    assert evaluate(folder) == 0


def test_what_is_written_to_the_cache_is_a_setting_and_its_default_translates_nothing_again(
    folder: Path,
) -> None:
    before = {path.name for path in (folder / "out/translations").iterdir()}
    stated = RECIPE.replace("cache = 5", "cache = 5\ncache_overwrite = true\ncache_best = 1")
    (folder / "again.toml").write_text(stated, encoding="utf-8")
    assert evaluate(folder, "again.toml") == 0
    assert {path.name for path in (folder / "out/translations").iterdir()} == before
    own = "cache = 5\ncache_overwrite = false\ncache_best = 2"
    (folder / "again.toml").write_text(RECIPE.replace("cache = 5", own), encoding="utf-8")
    assert evaluate(folder, "again.toml") == 0
    system = next(s for s in report(folder)["systems"] if s["name"] == "copy")
    assert (system["settings"]["cache_overwrite"], system["settings"]["cache_best"]) == (
        "False",
        "2",
    )
    translator = Translator.load(
        folder / "model",
        [folder / "memory.tsv"],
        TranslationOptions(
            threshold=0.3,
            cache=5,
            cache_overwrite=False,
            cache_best=2,
            remember="own",
            mode="copy",
            beam=2,
            verbatim=0,
            device="cpu",
        ),
    )
    texts = [src for src, _ in TEST]
    expected = [one for at in (0, 2) for one in translator.translate(texts[at : at + 2])]
    lines = told(folder)
    assert [line["systems"]["copy"]["hyp"] for line in lines] == [one.tgt for one in expected]
    assert evaluate(folder) == 0


def scores(folder: Path, system: str) -> list[float]:
    found = next(s for s in report(folder)["systems"] if s["name"] == system)
    lines = (
        (folder / "out/translations" / found["settings"]["translations"]).read_text().splitlines()
    )
    return [segment["score"] for line in lines for segment in json.loads(line)["segments"]]


CONTROL = """
[[system]]
name = "cache"
cache = 50
remember = "own"
beam = 2
[[system]]
name = "next"
cache = 50
beam = 2
remember = "confirmed"
confirmed = "next"
confirm_to = "cache"
"""
REFERENCES = CONTROL.replace('confirmed = "next"', "").replace('"next"', '"confirmed"')


def open_cache(folder: Path) -> None:
    """A model whose session cache is worth half of what it says."""
    write_tiny_model(folder)
    model = load_model(folder)
    memories = load_layers(model, "cpu")
    assert memories is not None and memories.cache is not None
    torch.nn.init.zeros_(memories.cache.U.bias)
    memories.save(folder / "memory.safetensors")


def test_a_cache_from_the_reference_holds_what_a_translator_would_have_confirmed(
    folder: Path,
) -> None:
    open_cache(folder / "open")
    recipe = RECIPE.split('[[system]]\nname = "paste"')[0].replace('"model"', '"open"')
    recipe += REFERENCES
    (folder / "confirmed.toml").write_text(recipe, encoding="utf-8")
    assert evaluate(folder, "confirmed.toml") == 0
    translator = Translator.load(
        folder / "open", options=TranslationOptions(cache=50, mode="off", beam=2, device="cpu")
    )
    expected = []
    for _, document in groupby(
        read_memory(folder / "test.tsv", "en", "fr"), attrgetter("document")
    ):
        session = translator.session()
        for segment in document:
            expected.append(session.translate(segment.src).score)
            session.confirm(segment.src, segment.tgt)
    assert (
        scores(folder, "confirmed") == pytest.approx(expected, abs=1e-5) != scores(folder, "cache")
    )


def test_a_reference_is_not_in_the_cache_before_its_segment_is_translated_to_its_end(
    folder: Path,
) -> None:
    open_cache(folder / "open")
    long = " ".join([PAIRS[0][0]] * 12)
    assert len(Translator.load(folder / "open").pipeline.preparation.pieces(long, Assembly())) > 2
    write_tsv(
        folder / "long.tsv",
        [Segment(long, " ".join([PAIRS[0][1]] * 12), f"doc{n}", 0) for n in range(2)],
    )
    recipe = (
        RECIPE.split('[[system]]\nname = "paste"')[0]
        .replace("test.tsv", "long.tsv")
        .replace('"model"', '"open"')
    )
    (folder / "long.toml").write_text(recipe + REFERENCES, encoding="utf-8")
    assert evaluate(folder, "long.toml") == 0
    assert scores(folder, "confirmed") == pytest.approx(scores(folder, "base"), abs=1e-6)


def test_a_cache_from_the_next_document_holds_what_that_was_translated_to(folder: Path) -> None:
    open_cache(folder / "open")
    # the second document is the longer one: the first has nothing to write after its second segment
    texts = [*(src for src, _ in TEST), PAIRS[0][0]]
    documents = [texts[:2], texts[2:]]
    test = [
        Segment(text, text, f"doc{int(text in documents[1])}", at) for at, text in enumerate(texts)
    ]
    write_tsv(folder / "longer.tsv", test)
    recipe = (
        RECIPE.split('[[system]]\nname = "paste"')[0]
        .replace("test.tsv", "longer.tsv")
        .replace('"model"', '"open"')
    )
    recipe += CONTROL
    (folder / "again.toml").write_text(recipe, encoding="utf-8")
    assert evaluate(folder, "again.toml") == 0
    found, own = scores(folder, "next"), scores(folder, "cache")

    translator = Translator.load(
        folder / "open",
        options=TranslationOptions(cache=50, remember="own", mode="off", beam=2, device="cpu"),
    )
    said = [[one.tgt for one in translator.translate(document)] for document in documents]
    expected = []
    for document, other, theirs in zip(documents, documents[::-1], said[::-1], strict=True):
        filled, asked = translator.session(), translator.session()
        for at, text in enumerate(document):
            asked.histories["cache"] = copy.deepcopy(filled.histories["cache"])
            expected.append(asked.translate(text).score)
            if at < len(other):
                filled.confirm(other[at], theirs[at])
    assert found == pytest.approx(expected, abs=1e-5)
    assert found[0] == pytest.approx(own[0], abs=1e-6) and found[2] == pytest.approx(
        own[2], abs=1e-6
    )
    assert min(abs(found[at] - own[at]) for at in (1, 3, 4)) > 1e-2

    system = next(s for s in report(folder)["systems"] if s["name"] == "next")
    told = system["settings"]
    assert (told["remember"], told["confirmed"]) == ("confirmed", "next")
    path = folder / "out/translations" / system["settings"]["translations"]
    path.write_bytes(path.read_bytes()[: path.read_bytes().index(b"\n") + 9])
    assert evaluate(folder, "again.toml") == 0
    assert scores(folder, "next") == pytest.approx(found, abs=1e-6)
    assert evaluate(folder) == 0


def test_what_is_confirmed_goes_where_the_recipe_says_and_stays_in_its_document(
    folder: Path,
) -> None:
    open_cache(folder / "open")
    same = [
        ("The Council met again today.", "Une seule et même phrase."),
        ("The Council met again now.", "x"),
    ]
    write_tsv(
        folder / "twice.tsv",
        [Segment(*pair, f"doc{n}", at) for n in range(2) for at, pair in enumerate(same)],
    )
    recipe = (
        RECIPE.split('[[system]]\nname = "paste"')[0]
        .replace("test.tsv", "twice.tsv")
        .replace('"model"', '"open"')
    )
    system = (
        '[[system]]\nname = "{0}"\nmode = "copy"\nbeam = 2\nremember = "confirmed"\n'
        'confirm_to = "{0}"\n'
    )
    recipe += "".join(system.format(name) for name in ("cache", "memory", "both"))
    (folder / "where.toml").write_text(recipe, encoding="utf-8")
    assert evaluate(folder, "where.toml") == 0
    lines = [line["systems"] for line in told(folder)]
    found = {
        name: [[m["tgt"] for m in line[name]["matches"]] for line in lines]
        for name in ("cache", "memory", "both")
    }
    assert found["cache"] == [[], [], [], []]
    assert found["memory"] == found["both"] == [[], [same[0][1]], [], [same[0][1]]]
    scored = {name: scores(folder, name) for name in found}
    assert (
        len({round(of[1], 3) for of in scored.values()}) == 3
    )  # the slots and the pair are each worth something
    assert all(of[:2] == pytest.approx(of[2:], abs=1e-5) for of in scored.values())
    assert evaluate(folder) == 0


def test_exact_matches_are_translated_unless_a_system_says_otherwise(folder: Path) -> None:
    write_tsv(
        folder / "exact.tsv",
        [Segment(PAIRS[0][0], "autre", "doc", 0), Segment("Repealed.", "Abrogé.", "doc", 1)],
    )
    recipe = RECIPE.split('[[system]]\nname = "paste"')[0].replace("test.tsv", "exact.tsv")
    recipe += (
        '[[system]]\nname = "copy"\nmode = "copy"\n[[system]]\nname = "taken"\nmode = '
        '"copy"\nverbatim = 100\n'
    )
    (folder / "exact.toml").write_text(recipe, encoding="utf-8")
    assert evaluate(folder, "exact.toml") == 0
    assert scores(folder, "copy")[0] < 0 == scores(folder, "taken")[0]
    assert told(folder)[0]["systems"]["taken"]["hyp"] == PAIRS[0][1]
    assert evaluate(folder) == 0


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        (
            f'description = "${{TMNMT_ES_PASSWORD}}"\n{RECIPE}',
            "description: TMNMT_ES_PASSWORD is secret",
        ),
        (
            RECIPE.replace('"memory.tsv"', '"elasticsearch+http://me:${TMNMT_ES_API_KEY}@host/x"'),
            "API_KEY is secret",
        ),
        (
            RECIPE.replace('"memory.tsv"', '"elasticsearch+http://me:${OTHER}/x@host/x"'),
            "no password in an address",
        ),
    ],
)
def test_what_is_secret_is_neither_told_nor_written_down(
    recipe: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("TMNMT_ES_PASSWORD", "TMNMT_ES_API_KEY", "OTHER"):
        monkeypatch.setenv(name, "hidden-word")
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    assert evaluate(tmp_path) == 2
    out, err = capsys.readouterr()
    assert told in err and "hidden-word" not in out + err and err.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["recipe.toml"]


def test_one_document_has_no_next_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tsv(
        folder / "one.tsv", [Segment(src, tgt, "doc", at) for at, (src, tgt) in enumerate(TEST)]
    )
    (folder / "again.toml").write_text(
        RECIPE.replace("test.tsv", "one.tsv") + CONTROL, encoding="utf-8"
    )
    assert evaluate(folder, "again.toml", "--only", "next") == 1
    assert (
        "test 'own': one document, and system 'next' confirms the next one's"
        in capsys.readouterr().err
    )


def test_systems_that_differ_in_name_only_are_translated_once(folder: Path) -> None:
    twin = RECIPE + '[[system]]\nname = "twin"\nbeam = 2\n'
    shutil.rmtree(folder / "out")
    (folder / "again.toml").write_text(twin, encoding="utf-8")
    assert evaluate(folder, "again.toml") == 0
    assert all(
        line["systems"]["twin"]["hyp"] == line["systems"]["base"]["hyp"] for line in told(folder)
    )
    assert len(list((folder / "out/translations").iterdir())) == 3
    assert evaluate(folder) == 0


def test_a_second_run_in_the_folder_is_told_who_works_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in (folder / "out").rglob("*.json*")}
    with writing(folder / "out", 0):
        assert evaluate(folder) == 1
    assert (
        f"out: process {os.getpid()} is writing to it; try again when it has ended"
        in capsys.readouterr().err
    )
    assert {path: path.read_bytes() for path in (folder / "out").rglob("*.json*")} == before


def test_models_that_no_system_of_a_run_reads_may_be_absent(folder: Path) -> None:
    more = '[[model]]\nname = "absent"\npath = "absent"\n[[memory]]\nname = "far"\npath = "none"\n'
    system = '[[system]]\nname = "far"\nmodel = "absent"\nmode = "copy"\nmemories = ["far"]\n'
    (folder / "more.toml").write_text(RECIPE + more + system, encoding="utf-8")
    with pytest.raises(DataError, match="2 of the files it names are not there"):
        load_recipe(folder / "more.toml")
    assert [one.name for one in load_recipe(folder / "more.toml", ["copy"]).model] == ["tiny"]


def test_a_run_that_was_torn_in_a_line_goes_on_and_ends_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert evaluate(folder, "recipe.toml", "--only", "copy") == 0
    whole = [line["systems"]["copy"]["hyp"] for line in told(folder)]
    system = next(s for s in report(folder)["systems"] if s["name"] == "copy")
    path = folder / "out/translations" / system["settings"]["translations"]
    content = path.read_bytes()
    assert content.count(b"\n") == 2  # a line a document
    path.write_bytes(content[: content.index(b"\n") + 40])
    translated: list[int] = []
    stream = Translator.stream

    def counting(
        self: Translator, documents: Any, explain: bool = False, confirmed: Any = None
    ) -> Any:
        translated.append(len(documents))
        return stream(self, documents, explain, confirmed)

    monkeypatch.setattr(Translator, "stream", counting)
    assert evaluate(folder, "recipe.toml", "--only", "copy") == 0
    assert translated == [1]
    assert [line["systems"]["copy"]["hyp"] for line in told(folder)] == whole
    assert [system["name"] for system in report(folder)["systems"]] == ["base", "copy"]
    assert evaluate(folder) == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'beam = 2\n[[system]]\nname = "paste"',
            'baem = 2\n[[system]]\nname = "paste"',
            "did you mean `beam`?",
        ),
        ('baseline = "base"', 'baseline = "bass"', "did you mean 'base'?"),
        ('memory = "tm"', 'memory = "mt"', "test 'own': memory: there is no 'mt'"),
        (
            'mode = "copy"\ncache',
            'mode = "copied"\ncache',
            "'copied' is none of copy, fusion, both, nearest, examples, knn, off",
        ),
        (
            'hypothesis = "other.txt"',
            'hypothesis = "other.txt"\npaste = true',
            "exclude each other",
        ),
        (
            'name = "other"\n',
            'name = "other"\nbeam = 3\n',
            "hypothesis and beam exclude each other",
        ),
        (
            'name = "base"\n',
            'name = "base"\nmemories = ["tm"]\n',
            "mode is off, so it reads no memories",
        ),
        ('name = "paste"', 'name = "copy"', "two have the name 'copy'"),
        (
            'baseline = "base"',
            'baseline = "base"\nweights = {"0.9-2" = 0.5}',
            "did you mean '0.9-1'?",
        ),
        ("threshold = 0.3", "threshold = 1.5", "system 3: threshold: 1.5; it must be from 0 to 1"),
        ("beam = 2", "beam = 1001", "system 1: beam: 1001; it must be a whole number, 1 to 1,000"),
        (
            "beam = 2",
            "cache_overwrite = false",
            "system 'base': cache_overwrite is of a session cache",
        ),
        ("beam = 2", "cache_best = 2", "system 'base': cache_best is of a session cache"),
        (
            "beam = 2",
            "cache = 5",
            "system 'base': cache is of a session cache, and nothing is written to one",
        ),
        (
            "beam = 2",
            'confirm_to = "cache"',
            'confirm_to = "cache" is of what is confirmed, and nothing is',
        ),
        (
            "beam = 2",
            'confirmed = "next"',
            'confirmed = "next" is of what is confirmed, and nothing is',
        ),
        (
            "beam = 2",
            'remember = "confirmed"\nconfirm_to = "memory"',
            "mode is off, so it reads no memory",
        ),
        (
            '"own"\nbeam = 2\nthreshold',
            '"confirmed"\ncache_best = 2\nthreshold',
            "cache_best is of the model's own words",
        ),
        (
            "cache = 5",
            "cache = 5\ncache_best = 3",
            "system 'copy': cache-best is 3; a beam of 2 finds",
        ),
    ],
)
def test_what_is_wrong_in_a_recipe_is_said_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    assert old in RECIPE
    (folder / "wrong.toml").write_text(RECIPE.replace(old, new, 1), encoding="utf-8")
    assert evaluate(folder, "wrong.toml") == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.toml")), ids=attrgetter("stem"))
def test_every_recipe_that_ships_is_understood(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = "LAW", "LAW_DEV", "WAYS", "TVSUB", "TVSUB_CACHES", "REFERENCES", "ADAPTED"
    split = "SPLITS", "SRC", "TGT", "MODEL", "MEMORY", "STUDENT"
    for name in (*places, *split, "NETWORKS", "TVSUB_NETWORKS", "SEED"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setattr("tmnmt.eval.recipe._is_there", lambda path, recipe: True)
    loaded = load_recipe(recipe)
    (baseline,) = [system for system in loaded.system if system.name == loaded.baseline]
    assert baseline.options.mode == "off" and baseline.options.remember == "nothing"


@pytest.mark.parametrize("name", ["law", "jrc-acquis.en-fr"])
def test_confirmed_pairs_in_the_memory_in_the_cache_and_in_both_differ_in_nothing_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAW", "/elsewhere")
    monkeypatch.setattr("tmnmt.eval.recipe._is_there", lambda path, recipe: True)
    systems = {system.name: system for system in load_recipe(RECIPES / f"{name}.toml").system}
    rows = [systems[f"copy, confirmed in {where}"] for where in ("memory", "cache", "both")]
    assert [(row.options.confirm_to, row.options.cache) for row in rows] == [
        ("memory", None),
        ("cache", 1000),
        ("both", 1000),
    ]

    def with_usual_session(row: SystemConfig) -> SystemConfig:
        options = replace(row.options, remember="confirmed", confirm_to="both", cache=None)
        return replace(row, name="", options=options)

    assert {*map(with_usual_session, rows)} == {with_usual_session(systems["copy"])}


def test_files_that_are_not_there_are_named_all_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = RECIPE.replace("other.txt", "a/../nowhere.txt").replace("test.tsv", "gone.tsv")
    (folder / "wrong.toml").write_text(wrong.replace('"model"', '"./no-model"'), encoding="utf-8")
    assert evaluate(folder, "wrong.toml") == 1
    message = capsys.readouterr().err
    assert "3 of the files" in message
    assert all(str(folder / name) in message for name in ("nowhere.txt", "gone.tsv", "no-model"))


def test_a_path_behind_a_link_leads_where_it_led(tmp_path: Path) -> None:
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "deep")
    recipe = RECIPE.replace("test.tsv", "link/../test.tsv").replace(
        "memory.tsv", "far/../memory.tsv"
    )
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    for name in ("far/test.tsv", "memory.tsv", "model", "other.txt"):
        (tmp_path / name).touch()
    loaded = load_recipe(tmp_path / "recipe.toml")
    assert loaded.test[0].files == (f"{tmp_path}/link/../test.tsv",)
    assert loaded.memory[0].path == f"{tmp_path}/memory.tsv"


def test_what_is_wrong_in_a_recipe_is_said_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(RECIPE.replace("beam", "baem"), encoding="utf-8")
    arguments = ["evaluate", "run", str(tmp_path / "wrong.toml"), "--out", str(tmp_path / "out")]
    code = (
        "import sys; from tmnmt.cli import run; code = run(sys.argv[1:]); print(code, *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("2 ") and "did you mean `beam`?" in done.stderr
    assert not {"torch", "numba", "sacrebleu", "scipy"} & set(done.stdout.split())


@pytest.mark.parametrize("out", ["file", "file/below", "link"])
def test_a_file_where_a_folder_is_to_be_is_said_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    for command in (
        ["run", "missing.toml"],
        ["score", "--ref", "missing", "--hyp", "a=missing"],
        ["prepare", "missing", *languages],
    ):
        assert run(["evaluate", *command, "--out", str(tmp_path / out)]) == 2
        assert "is no folder, and a folder is wanted" in capsys.readouterr().err
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_reference_in_the_memory_is_refused_unless_it_is_allowed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leaky = [*segments(), Segment(TEST[2][0], TEST[2][1] + " ", "elsewhere")]
    write_tsv(folder / "leaky.tsv", leaky)
    wrong = RECIPE.replace("memory.tsv", "leaky.tsv")
    (folder / "wrong.toml").write_text(wrong, encoding="utf-8")
    assert evaluate(folder, "wrong.toml", "--only", "paste") == 1
    assert (
        "1 of 4 segments of own stands in the memory tm with its reference: 'It shall"
        in capsys.readouterr().err
    )
    (folder / "wrong.toml").write_text("allow_leaks = true\n" + wrong, encoding="utf-8")
    assert evaluate(folder, "wrong.toml", "--only", "paste") == 0
    assert any("stands in the memory" in warning for warning in report(folder)["warnings"])
    assert evaluate(folder) == 0


def test_the_baseline_must_be_able_to_translate_every_test_set(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = RECIPE.replace('baseline = "base"', 'baseline = "paste"').replace(
        'memory = "tm"\n', ""
    )
    (folder / "wrong.toml").write_text(recipe, encoding="utf-8")
    assert evaluate(folder, "wrong.toml") == 2
    assert (
        "system 'paste': the baseline is for all tests, and 'own' is not its"
        in capsys.readouterr().err
    )


def test_a_document_that_begins_twice_and_a_hypothesis_out_of_step_are_said_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [
        Segment(src, tgt, f"doc{number % 2}", number) for number, (src, tgt) in enumerate(TEST)
    ]
    write_tsv(folder / "twice.tsv", twice)
    written(folder / "short.txt", "un")
    monkeypatch.setattr(Translator, "stream", None)  # nothing is translated
    for old, new, said in (
        ("test.tsv", "twice.tsv", "document 'doc0' begins twice"),
        ("other.txt", "short.txt", "1 line, but"),
    ):
        (folder / "wrong.toml").write_text(RECIPE.replace(old, new), encoding="utf-8")
        assert evaluate(folder, "wrong.toml") == 1
        assert said in capsys.readouterr().err


LANGUAGES = ("--src-lang", "en", "--tgt-lang", "fr")


def score(folder: Path, *arguments: str) -> int:
    return run(["evaluate", "score", "--out", str(folder / "out"), *arguments])


def written(path: Path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_plain_files_are_scored_and_blank_lines_part_documents(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    src = written(tmp_path / "src", TEST[0][0], "", TEST[1][0], TEST[2][0])
    ref = written(tmp_path / "ref", TEST[0][1], "", TEST[1][1], TEST[2][1])
    second = tmp_path / "second.gz"
    second.write_bytes(gzip.compress("\n".join(["autre chose", "", "autre", "chose", ""]).encode()))
    own = written(tmp_path / "own", TEST[0][1], "", "", "Il est applicable.")
    code = score(
        tmp_path,
        "--ref",
        ref,
        "--ref",
        str(second),
        "--sources",
        src,
        "--hyp",
        f"one={own}",
        "--hyp",
        f"two={ref}",
        "--memory",
        str(folder / "memory.tsv"),
        "--baseline",
        "two",
        *LANGUAGES,
    )
    assert code == 0
    test = report(tmp_path)
    few = "3 distinct segments: no p is given of the paired bootstrap, which wants 30"
    assert (test["segments"], test["documents"]) == (3, 2)
    assert test["warnings"] == ["one: 1 segment without a translation", few]
    assert test["systems"][1]["baseline"] and test["systems"][1]["metrics"]["BLEU"][
        "score"
    ] == pytest.approx(100)
    assert "nrefs:2" in test["systems"][0]["metrics"]["BLEU"]["signature"]
    assert [line["position"] for line in told(tmp_path)] == [1, 1, 2]
    assert told(tmp_path)[0]["refs"] == [TEST[0][1], "autre chose"]
    assert capsys.readouterr().out.startswith("# ref\n")


def test_a_full_disk_names_the_file_and_that_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = TranslationCache(tmp_path / "translations/a.jsonl", [["a"]])
    progress = Progress("translating", "segments", 1)
    with (
        files_of_at_most(10),
        pytest.raises(DataError, match=r"a.jsonl: cannot be written: File too large") as raised,
    ):
        kept.fill(Repeating(), False, progress)  # type: ignore[arg-type]
    assert raised.value.__notes__ == ["the same command goes on where this one stopped"]
    again = TranslationCache(kept.path, kept.units)
    assert again.missing == 1 and kept.path.read_bytes() == b""
    again.fill(Repeating(), False, progress)  # type: ignore[arg-type]
    assert [record["tgt"] for record in again.records()] == ["a"]


class Repeating:
    """A translator to which every text is its own translation."""

    tally = Tally()

    def stream(
        self, documents: list[list[str]], explain: bool, confirmed: None
    ) -> Iterator[Translation]:
        return (Translation(text, text, 0.0, (), ()) for document in documents for text in document)


def test_a_model_that_cannot_serve_is_named_with_the_recipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_model(tmp_path / "model", memories=False)
    for name in ("memory.tsv", "test.tsv"):
        write_tsv(tmp_path / name, segments())
    written(tmp_path / "other.txt", "x")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    assert evaluate(tmp_path) == 2
    said = (
        f"{tmp_path / 'recipe.toml'}: system 'copy': {tmp_path / 'model'}: this model has no "
        "parameters for mode"
    )
    assert said in capsys.readouterr().err


def test_the_table_says_one_document_and_whose_words_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ref, src = written(tmp_path / "ref", "un deux"), written(tmp_path / "src", "one")
    assert score(tmp_path, "--ref", ref, "--sources", src, "--hyp", f"a={ref}") == 0
    page = capsys.readouterr().out
    assert (
        "\n1 segment, 1 document, 2 reference words.\n" in page
    )  # of no language, where none is given
    assert "| source words |" in page and "of 1 source word\n" in page
    assert score(tmp_path, "--ref", ref, "--hyp", f"a={ref}") == 0
    assert "of 2 reference words\n" in capsys.readouterr().out
    assert score(tmp_path, "--ref", ref, "--hyp", f"a={ref}", "--tgt-lang", "fr") == 0
    assert "\n1 segment, 1 document, 2 reference words, fr.\n" in capsys.readouterr().out


def test_the_languages_of_a_score_are_those_given_or_those_of_the_index(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ref, src = written(tmp_path / "ref", "un deux"), written(tmp_path / "src", "one")
    files = ["--ref", ref, "--sources", src, "--hyp", f"a={ref}"]
    assert score(tmp_path, *files, "--memory", str(folder / "memory.tsv")) == 2
    assert "memory.tsv: give --src-lang and --tgt-lang" in capsys.readouterr().err
    index = str(tmp_path / "index")
    assert run(["build-index", str(folder / "memory.tsv"), "--index", index, *LANGUAGES]) == 0
    assert score(tmp_path, *files, "--memory", index) == 0
    test = report(tmp_path)
    assert (test["src_lang"], test["tgt_lang"]) == ("en", "fr")


def test_output_that_looks_tokenised_is_told_as_sacrebleu_does(tmp_path: Path) -> None:
    lines = [f"mot {number} ." for number in range(100)]
    ref = written(tmp_path / "ref", *(line.replace(" .", ".") for line in lines))
    tokenised = written(tmp_path / "tokenised", *lines)
    fewer = written(tmp_path / "fewer", *lines[:99], "mot.")
    assert score(tmp_path, "--ref", ref, "--hyp", f"a={tokenised}", "--hyp", f"b={fewer}") == 0
    assert [warning[:49] for warning in report(tmp_path)["warnings"]] == [
        "a: 100 lines end in a tokenised period (' .'): sa"
    ]


def test_plain_references_in_the_memory_are_refused_unless_they_are_allowed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tsv(
        tmp_path / "leaky.tsv",
        [*segments(), *(Segment(src, tgt + " ", "elsewhere") for src, tgt in TEST[:2])],
    )
    files = ["--sources", written(tmp_path / "src", *(src for src, _ in TEST))]
    files += [
        "--ref",
        written(tmp_path / "ref", *"abcd"),
        "--ref",
        written(tmp_path / "two", *(t for _, t in TEST)),
    ]
    memory = ["--hyp", f"a={tmp_path / 'ref'}", "--memory", str(tmp_path / "leaky.tsv"), *LANGUAGES]
    said = (
        f"2 of 4 segments of ref stand in the memory {tmp_path / 'leaky.tsv'} with their "
        "reference: 'The Commission"
    )
    assert score(tmp_path, *files, *memory) == 1
    error = capsys.readouterr().err
    assert said in error and error.endswith("to measure all the same, give --allow-leaks\n")
    assert not (tmp_path / "out").exists()
    assert score(tmp_path, *files, *memory, "--allow-leaks") == 0
    assert [warning[: len(said)] for warning in report(tmp_path)["warnings"]] == [said]
    assert score(tmp_path, *files, *memory[:2], "--allow-leaks") == 2


def test_files_out_of_step_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ref, short = written(tmp_path / "ref", "un", "", "deux"), written(tmp_path / "short", "un", "")
    full = written(tmp_path / "full", "un", "x", "deux")
    for arguments, said in (
        (["--ref", ref, "--hyp", f"a={short}"], f"{short}: 2 lines, but {ref} has 3"),
        (["--ref", ref, "--hyp", f"a={full}"], f"{full}, line 2: not blank"),
        (
            ["--ref", ref, "--sources", full, "--hyp", f"a={ref}"],
            f"{ref}, line 2: blank, but it is not in {full}",
        ),
        (
            ["--ref", ref, "--hyp", f"a={tmp_path}/x", "--hyp", f"b={tmp_path}/y"],
            f"{tmp_path}/x, {tmp_path}/y",
        ),
    ):
        assert score(tmp_path, *arguments) == 1
        assert said in capsys.readouterr().err
    assert score(tmp_path, "--ref", ref, "--hyp", ref) == 2
    assert score(tmp_path, "--ref", ref, "--hyp", f"a={ref}", "--memory", "m") == 2
    assert not (tmp_path / "out").exists()


def test_names_of_systems_and_files_are_written_so_that_they_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ref = written(tmp_path / "ref", TEST[0][1])
    odd = written(tmp_path / "odd\udcff", TEST[0][1])
    assert score(tmp_path, "--ref", ref, "--hyp", f"a\udcff={ref}") == 2
    assert "'a\\udcff' is no UTF-8 text" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert score(tmp_path, "--ref", ref, "--hyp", f"a|b={odd}") == 0
    assert report(tmp_path)["systems"][0]["settings"] == {"hypothesis": f"{tmp_path}/odd?"}
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    columns = [len(row.replace("\\|", "").split("|")) for row in rows]
    assert set(columns[:3]) == {columns[0]} and set(columns[3:]) == {columns[3]}
    assert rows[2].startswith("| a\\|b |") and rows[3].endswith("| a\\|b |")


def test_two_runs_are_compared_system_by_system(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refs = [f"{tgt} {number}" for number in range(8) for _, tgt in TEST]
    ref = written(tmp_path / "ref", *refs)
    good = written(tmp_path / "good", *(line.replace(" le ", " la ") for line in refs))
    poor = written(tmp_path / "poor", *(line.replace("e", "i") for line in refs))
    for name, hypothesis in (("a", poor), ("b", good)):
        arguments = [
            "--ref",
            ref,
            "--hyp",
            f"one={hypothesis}",
            "--hyp",
            f"same={good}",
            "--hyp",
            f"{name}={ref}",
        ]
        assert run(["evaluate", "score", "--out", str(tmp_path / name), *arguments]) == 0
    capsys.readouterr()
    assert run(["evaluate", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    test = json.loads(capsys.readouterr().out)["tests"][0]
    assert (test["name"], test["segments"], test["only_a"], test["only_b"]) == (
        "ref",
        32,
        ["a"],
        ["b"],
    )
    one, same = test["systems"]
    assert one["settings"] == {"hypothesis": [poor, good]} and one["changed"] == 32
    bleu = {
        name: report(tmp_path, name)["systems"][0]["metrics"]["BLEU"]["score"]
        for name in ("a", "b")
    }
    told_bleu = one["metrics"]["BLEU"]
    assert (told_bleu["a"], told_bleu["b"]) == (pytest.approx(bleu["a"]), pytest.approx(bleu["b"]))
    assert told_bleu["p"] < 0.001 and told_bleu["p_holm"] == pytest.approx(2 * told_bleu["p"])
    assert same["changed"] == 0 and same["metrics"]["TER"]["p_holm"] == 1
    assert run(["evaluate", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    shown = capsys.readouterr().out
    assert "p = 0.0002, differs" in shown and "no more than chance" in shown


def test_segments_that_are_the_same_are_one_where_runs_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = TEST[0][1]
    ref = written(tmp_path / "ref", *[same] * 50)
    poor = written(tmp_path / "poor", *[same.replace("e", "i")] * 50)
    for name, hypothesis in (("a", poor), ("b", ref)):
        assert (
            run(
                [
                    "evaluate",
                    "score",
                    "--out",
                    str(tmp_path / name),
                    "--ref",
                    ref,
                    "--hyp",
                    f"x={hypothesis}",
                ]
            )
            == 0
        )
    capsys.readouterr()
    assert run(["evaluate", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    system = json.loads(capsys.readouterr().out)["tests"][0]["systems"][0]
    assert system["changed"] == 50 and {told["p"] for told in system["metrics"].values()} == {1.0}


def test_runs_of_other_segments_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("a", "un"), ("b", "deux")):
        (tmp_path / name).mkdir()
        ref = written(tmp_path / name / "ref", text)
        assert (
            run(
                [
                    "evaluate",
                    "score",
                    "--out",
                    str(tmp_path / name),
                    "--ref",
                    ref,
                    "--hyp",
                    f"x={ref}",
                ]
            )
            == 0
        )
    assert run(["evaluate", "compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "have other segments or references" in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", "compare", str(tmp_path), str(tmp_path)]) == 1
    assert f"{tmp_path / 'report.json'}: cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("report", ['{"format": 1}', '{"format": 1, "tests": 5}', '{"format": 2}'])
def test_damaged_runs_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], report: str
) -> None:
    (tmp_path / "report.json").write_text(report, encoding="utf-8")
    (tmp_path / "segments.jsonl").write_text("[1]\n", encoding="utf-8")
    assert run(["evaluate", "compare", str(tmp_path), str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"tmnmt: error: {tmp_path / 'report.json'}") and err.count("\n") == 1
