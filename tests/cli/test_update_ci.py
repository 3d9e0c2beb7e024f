"""The workflow and the hooks of docs/ci do what their pages say: their very commands run in a
repository."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import polib
import pytest
import torch
import yaml
from places import ROOT
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.formats import write_tmx

CI = ROOT / "docs" / "ci"
PO = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: fr\\n"\n'
    '"MIME-Version: 1.0\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n\n'
    'msgid "Save it."\nmsgstr "Enregistrez."\n'
)
NEW = '\nmsgid "{}"\nmsgstr "{}"\n'


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("ci") / "model")


class Repository:
    """A clone with one catalogue and a memory, and the programs that a runner has."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.path = folder, folder / "clone"
        programs = folder / "bin"
        programs.mkdir()
        self._program("tmnmt", f'exec {shlex.quote(sys.executable)} -m tmnmt "$@"')
        self._program("gh", f'printf "%s\\n" "$@" >> {folder}/gh')
        self.environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "MODEL": str(model),
            "GITHUB_STEP_SUMMARY": str(folder / "step"),
            "GITHUB_RUN_ID": "7",
            "OMP_NUM_THREADS": "1",
        }
        subprocess.run(["git", "init", "--quiet", "--bare", folder / "remote"], check=True)
        subprocess.run(["git", "clone", "--quiet", folder / "remote", self.path], check=True)
        (self.path / "po").mkdir()
        self.po = self.path / "po" / "fr.po"
        write_tmx(self.path / "memory.tmx", segments(), "en", "fr")
        self.write("")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        self.git("add", "--all")
        self.commit()

    def _program(self, name: str, command: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        path.chmod(0o755)

    def write(self, messages: str) -> None:
        self.po.write_text(PO + messages, encoding="utf-8")

    def commit(self) -> None:
        self.git("commit", "--quiet", "--all", "--message", "One")

    def git(self, *arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=self.path, check=True, capture_output=True, text=True
        ).stdout

    def run(self, *command: str, **environment: str) -> int:
        environment = self.environment | environment
        return subprocess.run([*command], cwd=self.path, env=environment, check=False).returncode


@pytest.fixture
def repository(tmp_path: Path, model: Path) -> Repository:
    return Repository(tmp_path, model)


def workflow(repository: Repository) -> str:
    """Runs the steps as a runner does, but for what it installs: the name of the step that fails,
    or ""."""
    whole = yaml.safe_load((CI / "translate.yml").read_text(encoding="utf-8"))
    variables = {name: value for name, value in whole["env"].items() if name != "MODEL"}
    steps = [step for step in whole["jobs"]["translate"]["steps"] if "run" in step]
    assert [step["name"] for step in steps] == [
        *("Install", "Translate what is new", "Check the files", "Make a pull request")
    ]
    for step in steps[1:]:
        script = repository.folder / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        if repository.run("bash", "-e", str(script), **variables, **step.get("env", {})):
            return str(step["name"])
    return ""


def test_the_workflow_makes_a_pull_request_of_new_messages(repository: Repository) -> None:
    repository.write(NEW.format(PAIRS[0][0], "") + NEW.format("Quite new.", ""))
    repository.commit()
    assert workflow(repository) == ""
    request = (repository.folder / "gh").read_text().split("\n")
    assert request[:2] == ["pr", "create"] and "summary.md" in request
    summary = (repository.folder / "step").read_text()
    assert "| po/fr.po | 2 | 1 |" in summary
    assert summary == (repository.path / "summary.md").read_text()
    assert "translations-7" in repository.git("ls-remote", "--heads", "origin")
    changed = repository.git("show", "--stat", "--format=%an", "origin/translations-7")
    assert "github-actions[bot]" in changed and "1 file changed" in changed
    assert polib.pofile(str(repository.po))[1].msgstr == PAIRS[0][1]
    assert workflow(repository) == ""
    assert (repository.folder / "gh").read_text().split("\n") == request  # nothing was new


def test_the_workflow_stops_at_a_file_that_is_broken(repository: Repository) -> None:
    repository.write("msgid\n")
    assert workflow(repository) == "Translate what is new"
    assert not (repository.folder / "gh").exists()


def hook(repository: Repository, name: str) -> bool:
    """Whether a hook passes: its command does, and changes no file, as pre-commit has it."""
    whole = yaml.safe_load((CI / "pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks: dict[str, Any] = {entry["id"]: entry for entry in whole["repos"][0]["hooks"]}
    before = repository.po.read_bytes()
    code = repository.run(*shlex.split(hooks[name]["entry"]), "po/fr.po")
    return code == 0 and repository.po.read_bytes() == before


def test_the_hooks_pass_where_nothing_is_new_or_wrong(repository: Repository) -> None:
    assert hook(repository, "tmnmt-update") and hook(repository, "tmnmt-check")
    repository.write(NEW.format(PAIRS[0][0], "") + NEW.format("Quite new.", ""))
    assert not hook(repository, "tmnmt-update")
    assert polib.pofile(str(repository.po))[1].msgstr == PAIRS[0][1]
    assert hook(repository, "tmnmt-update")  # what no memory has stays empty
    repository.write(NEW.format("It lasts 30 days.", "Il dure 20 jours."))
    assert hook(repository, "tmnmt-update") and not hook(repository, "tmnmt-check")
    repository.write("msgid\n")
    assert not hook(repository, "tmnmt-update")
