"""Every option is declared once: Python, the command line and recipes take the same ones."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
import typer

from tmnmt.cli import application, run
from tmnmt.config.option import Option, changed, groups_of, options_of
from tmnmt.config.options import (
    Confirming,
    ModelOptions,
    Output,
    SegmentFilter,
    Terms,
    TranslationOptions,
)
from tmnmt.config.tables import build, keys
from tmnmt.engine.settings import Settings, settled
from tmnmt.errors import UsageError
from tmnmt.eval.recipe import SystemConfig
from tmnmt.translator import Translator

GROUPS = groups_of(ModelOptions)
ALL = [each for group in GROUPS for each in options_of(group)]
WRONG = {bool: "yes", int: -1, float: float("nan"), str: 3}
SCREEN = 40  # lines


def command(name: str) -> Any:
    return typer.main.get_command(application()).commands[name]  # type: ignore[attr-defined]


def test_no_name_stands_for_two_options() -> None:
    names = [each.name for each in ALL]
    names += [each.name for group in (Confirming, Output) for each in options_of(group)]
    assert len({*names}) == len(names)


def test_load_takes_all_options_as_one_object() -> None:
    parameters = inspect.signature(Translator.load).parameters
    assert [*parameters] == ["model", "memory", "options", "write_to", "progress"]
    assert parameters["options"].default == TranslationOptions()
    names = {each.name for each in options_of(TranslationOptions)}
    assert names > {each.name for each in ALL}


def test_settings_and_what_a_result_records_are_the_options() -> None:
    record = asdict(settled(TranslationOptions(), None, "off"))
    assert {*record} == {each.name for each in ALL}
    assert record == asdict(Settings())


def test_the_command_line_has_the_same_names_and_defaults() -> None:
    taken = {each.name: each for each in command("translate").params}
    for each in (*ALL, *options_of(Confirming), *options_of(Output)):
        assert each.flag in taken[each.name].opts
        assert taken[each.name].default == (None if each.is_list else each.default)
        assert taken[each.name].help == each.description
    titles = {each.rich_help_panel for each in taken.values()}
    assert titles >= {group.title for group in GROUPS}


def test_a_recipe_has_the_same_names_and_the_plain_model_by_default() -> None:
    system = build(SystemConfig, {"name": "x", "beam": 2, "select": "walk"}, "system 1")
    assert {name for name, _, _ in keys(system)} >= {each.name for each in ALL}
    assert (system.options.beam, system.options.select) == (2, "walk")
    assert changed(SystemConfig.options) == [
        "--mode",
        "--no-verbatim",
        "--no-headings",
        "--no-lost-sentences",
        "--no-patches",
        "--remember",
    ]


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_a_value_that_is_not_allowed_is_told_with_the_name_and_what_is(
    each: Option, capsys: pytest.CaptureFixture[str]
) -> None:
    group = next(kind for kind in GROUPS if each in options_of(kind))
    wrong = "none such" if each.choices else WRONG[each.kind]
    with pytest.raises(UsageError) as raised:
        group(**{each.name: wrong})
    shown, allowed = each.name.replace("_", "-"), ", ".join(each.choices) or each.allowed
    assert str(raised.value).startswith(shown) and str(raised.value).endswith(allowed)
    if each.kind in (int, float) or each.choices:
        assert run(["translate", f"{each.flag}={wrong}"]) == 2
        told = capsys.readouterr().err
        assert each.flag in told and told.count("\n") == 1
    with pytest.raises(UsageError, match=f"system 1: {each.name}: "):
        build(SystemConfig, {"name": "x", each.name: wrong}, "system 1")


def test_a_path_may_be_given_as_text() -> None:
    assert Terms(terms="terms.csv").terms == Path("terms.csv")  # type: ignore[arg-type]
    assert Confirming(confirmed="done.tsv").confirmed == Path("done.tsv")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="terms is 5; it must be a file"):
        Terms(terms=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="it must be a file, not standard output"):
        Terms(terms="-")  # type: ignore[arg-type]


def test_the_everyday_options_fit_on_one_screen_and_the_others_stand_in_their_groups() -> None:
    code = "from tmnmt.cli import run; run(['translate', '--help'])"
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    lines = done.stdout.splitlines()
    heads = [at for at, line in enumerate(lines) if line.startswith("╭─")]
    titles = [lines[at].split("─ ")[1].split(" ─")[0] for at in heads]
    assert titles[:2] == ["Arguments", "Options"] and heads[2] <= SCREEN
    assert {*titles[2:]} == {
        *(group.title for group in GROUPS),
        SegmentFilter.title,
        Terms.title,
        Output.title,
        "Languages and device",
    }
    everyday = "\n".join(lines[heads[1] : heads[2]])
    for option in ("--model", "--memory", "--output", "--confirmed", "--write-to", "--mode"):
        assert option in everyday
    for option in ("--beam", "--cache", "--no-verbatim", "--remember", "--confirm-to"):
        assert option in done.stdout and f"{option} " not in everyday


def test_an_option_that_only_a_model_serves_is_refused_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (["--beam", "3"], ["--no-verbatim"], ["--cache-best", "2", "--remember", "own"]):
        assert run(["translate", "--memory", str(tmp_path), *option]) == 2
        assert "needs a --model" in capsys.readouterr().err


def test_the_groups_name_no_field_that_is_no_option() -> None:
    for group in (*GROUPS, Confirming, Output):
        assert [each.name for each in fields(group)] == [each.name for each in options_of(group)]
        assert all(each.help.text.endswith(".") for each in options_of(group))
