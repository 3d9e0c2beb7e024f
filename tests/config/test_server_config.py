"""The file of `tmnmt serve --config`: what it may have, and what the command line changes in it."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tmnmt.cli import run
from tmnmt.config.server_config import config_lines, load_config, server_settings
from tmnmt.config.serving import ServerOptions
from tmnmt.errors import DataError, UsageError

WHOLE = """
host = "0.0.0.0"
port = 5052
keys = "keys.toml"
model = ["m", "/models/n"]
sessions = "redis://someone:hush@example.org:6379/0"
text_length = 70
keep = "[$]{2}"
[memory]
law = "law-index:penalty=5"
far = "elasticsearch+http://example.org:9200/law"
[write_to]
mine = "/memories/mine"
"""


def config_file(folder: Path, text: str) -> Path:
    path = folder / "serve.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_paths_are_below_the_folder_of_the_file_and_addresses_stay(tmp_path: Path) -> None:
    options = load_config(config_file(tmp_path, WHOLE)).options
    assert options.model == (f"{tmp_path}/m", "/models/n")
    assert options.memory == (
        f"law={tmp_path}/law-index:penalty=5",
        "far=elasticsearch+http://example.org:9200/law",
    )
    assert options.write_to == ("mine=/memories/mine",)
    assert (options.keys, options.certificate) == (tmp_path / "keys.toml", None)
    assert options.sessions == "redis://someone:hush@example.org:6379/0"
    assert (options.port, options.text_length, options.seconds) == (5052, 70, 60)


def test_the_command_line_takes_the_place_of_entries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it names the default."""
    path = str(config_file(tmp_path, WHOLE))
    arguments = ["--port", "5051", "--memory", "one=a", "--memory", "two=b"]
    assert run(["serve", "--config", path, *arguments, "--print-config"]) == 0
    table = tomllib.loads(capsys.readouterr().out)
    assert (table["port"], table["host"]) == (5051, "0.0.0.0")
    assert table["memory"] == ["one=a", "two=b"] and table["model"][1] == "/models/n"


def test_what_is_printed_is_a_file_that_says_the_same_without_passwords(tmp_path: Path) -> None:
    first = load_config(config_file(tmp_path, WHOLE))
    text = "\n".join(config_lines(first))
    assert "hush" not in text and "someone" not in text
    again = load_config(config_file(tmp_path, text)).options
    assert again == replace(first.options, sessions="redis://***@example.org:6379/0")


def test_every_option_of_the_command_is_an_entry() -> None:
    names = {field.name for field in fields(ServerOptions)}
    assert {setting.name for setting in server_settings()} == names
    text = "\n".join(config_lines(load_config(None)))
    assert all(f"{name} =" in text for name in names)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("portt = 1", "unknown key `portt`; did you mean `port`?"),
        ("title = 'x'", "unknown key `title`; allowed: bodies_bytes, "),
        ('port = "x"', "port: 'x' is not of the kind that is wanted (a whole number)"),
        ("port = 70000", "port: 70000; it must be a whole number, 0 to 65,535"),
        ("model = 3", "model: 3 is not of the kind that is wanted (a list)"),
        ("model = [3]", "model 1: 3 is not of the kind that is wanted (a text)"),
        ("[model]\nx = 'y'", "model: must be a list of texts"),
        ("[memory]\n'a b' = 'y'", "memory: must be a list of texts, or a table of NAME = PLACE"),
        ("[memory]\na = 3", "memory: must be a list of texts, or a table of NAME = PLACE"),
        ('keep = "("', "keep: '('; it must be a regular expression that matches no empty text"),
        ("port = 1\nhost == 2", "no valid TOML: Invalid value (at line 2"),
        ('host = "${TMNMT_REDIS_PASSWORD}"', "host: TMNMT_REDIS_PASSWORD is secret"),
        ('host = "${NO_SUCH_HOST}"', "host: the environment variable NO_SUCH_HOST is not set"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(
    tmp_path: Path, text: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config_file(tmp_path, text)
    with pytest.raises(UsageError) as error:
        load_config(path)
    assert str(error.value).startswith(f"{path}: {what}")
    assert run(["serve", "--config", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml: cannot be read"):
        load_config(tmp_path / "none.toml")
