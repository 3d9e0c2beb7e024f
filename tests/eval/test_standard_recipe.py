"""`tmnmt evaluate run` without a recipe: a model, a memory and test files say what is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_model import segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.eval.recipe import SystemConfig, narrowed
from tmnmt.eval.standard_recipe import standard_recipe
from tmnmt.formats import write_tsv
from tmnmt.segments import Segment

TEST = [
    ("The Commission shall inform the Council.", "La Commission informe le Conseil."),
    ("This Regulation shall enter into force now.", "Le présent règlement entre en vigueur."),
    ("It shall apply from 3 March 1997.", "Il est applicable à partir du 3 mars 1997."),
    ("Having regard to the opinion of the Commission,", "vu l'avis de la Commission,"),
]
RECIPE = """
name = "model"
baseline = "base"
[[test]]
name = "test.tsv"
files = ["test.tsv"]
memory = "memory.tsv"
[[model]]
name = "model"
path = "model"
[[memory]]
name = "memory.tsv"
path = "memory.tsv"
[[system]]
name = "base"
[[system]]
name = "pasted TM"
paste = true
[[system]]
name = "with the TM"
mode = "copy"
verbatim = 100
[[system]]
name = "with the TM, confirmed"
mode = "copy"
verbatim = 100
remember = "confirmed"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("standard")
    write_tiny_model(made / "model")
    write_tsv(made / "memory.tsv", segments())
    write_tsv(made / "test.tsv", [Segment(*pair, "d", at) for at, pair in enumerate(TEST)])
    (made / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return made


@pytest.fixture(autouse=True)
def _own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


def evaluate(folder: Path, out: str, *arguments: str) -> int:
    threads = ["--threads", "1"]
    return run(["evaluate", "run", "--out", str(folder / out), *threads, *arguments])


def named(folder: Path, *without: str) -> list[str]:
    paths = {"--model": "model", "--memory": "memory.tsv", "--test": "test.tsv"}
    return [
        word
        for name, path in paths.items()
        if name not in without
        for word in (name, str(folder / path))
    ]


def report(folder: Path, out: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / out / "report.json").read_text(encoding="utf-8"))
    return read


def systems(folder: Path, out: str) -> list[str]:
    return [system["name"] for system in report(folder, out)["tests"][0]["systems"]]


def test_it_measures_what_the_recipe_of_the_same_systems_measures(folder: Path) -> None:
    assert evaluate(folder, "standard", *named(folder)) == 0
    assert evaluate(folder, "recipe", str(folder / "recipe.toml")) == 0
    standard, recipe = (report(folder, out)["tests"][0] for out in ("standard", "recipe"))
    for test in (standard, recipe):
        for system in test["systems"]:
            del system["cost"]  # seconds
    assert standard == recipe
    assert (folder / "standard/report.html").exists()
    written = (folder / "standard/report.md").read_text(encoding="utf-8")
    assert f"with the memory {folder / 'memory.tsv'}" in written
    assert report(folder, "standard")["made"]["recipe_sha256"] is None


def test_without_a_memory_it_measures_what_needs_none(folder: Path) -> None:
    assert evaluate(folder, "bare", *named(folder, "--memory")) == 0
    assert systems(folder, "bare") == ["base", "confirmed"]
    assert evaluate(folder, "bare", *named(folder, "--memory"), "--only", "base") == 0
    assert systems(folder, "bare") == ["base"]


@pytest.mark.parametrize(
    ("modes", "has_cache", "names", "confirm_to"),
    [
        (
            ("copy", "fusion", "both", "off"),
            True,
            ["with the TM", "with the TM, confirmed"],
            "both",
        ),
        (("fusion", "off"), False, ["with the TM", "with the TM, confirmed"], "memory"),
        (("nearest", "off"), True, ["with the TM", "with the TM, confirmed"], "both"),
        (("nearest", "off"), False, ["with the TM", "with the TM, confirmed"], "both"),
    ],
)
def test_systems_are_those_that_the_model_can_serve(
    modes: tuple[Any, ...], has_cache: bool, names: list[str], confirm_to: str
) -> None:
    recipe = standard_recipe(Path("m"), "i", [Path("t.tmx")], ("en", "fr"), modes, has_cache)
    assert [system.name for system in recipe.system] == ["base", "pasted TM", *names]
    last: SystemConfig = recipe.system[-1]
    assert last.options.confirm_to == confirm_to
    assert last.options.mode == modes[0]
    assert narrowed(recipe, [], None) == recipe  # nothing in it is refused
    assert recipe.memory[0].name == "i" and recipe.model[0].name == "m"
    assert ("tmnmt adapt" in recipe.description) == (modes[0] == "nearest")


def test_references_in_the_memory_are_refused_unless_they_are_allowed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leaky = folder / "leaky.tsv"
    write_tsv(leaky, [*segments(), Segment(*TEST[2], "elsewhere")])
    arguments = [*named(folder, "--memory"), "--memory", str(leaky), "--only", "base"]
    assert evaluate(folder, "leaky", *arguments) == 1
    assert "to measure all the same, give --allow-leaks" in capsys.readouterr().err
    assert evaluate(folder, "leaky", *arguments, "--allow-leaks") == 0
    assert "in the memory leaky.tsv with its reference" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a recipe, or --model and --test"),
        (["--model", "model"], "give a recipe, or --model and --test"),
        (["--test", "test.tsv", "--memory", "memory.tsv"], "give a recipe, or --model and --test"),
        (["recipe.toml", "--model", "model"], "--model and a recipe exclude each other"),
        (["recipe.toml", "--allow-leaks"], "--allow-leaks and a recipe exclude each other"),
        (["--model", "gone", "--test", "nowhere"], "no such file: gone, nowhere"),
        (
            ["--model", "model", "--test", "test.tsv", "--only", "fusion"],
            "--only: there is no 'fusion'; allowed: base, confirmed",
        ),
        (["--model", "test.tsv", "--test", "test.tsv"], "test.tsv: no model folder"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(folder)
    assert evaluate(folder, "wrong", *arguments) != 0
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1


@pytest.mark.parametrize(
    ("memory", "name"), [("own", "memory"), ("elasticsearch+http://h:9200/i", "memory")]
)
def test_a_memory_without_a_name_of_its_own_is_the_memory(memory: str, name: str) -> None:
    recipe = standard_recipe(Path("m"), memory, [Path("t.tmx")], ("en", "fr"), ("copy",), False)
    assert recipe.memory[0].name == recipe.test[0].memory == name
    assert narrowed(recipe, [], None) == recipe
