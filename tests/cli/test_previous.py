"""A new version of a file beside its former version and the translation of that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_model import write_tiny_model

from tmnmt.cli import run

OLD = """# Permits

The Minister may revoke the permit.

Keep a **copy** for 10 days.

- The fee is paid.
- Send the report.
"""
OLD_FR = """# Permis (bis)

Le ministre, lui, révoque.

Gardez une **copie** 10 jours.

- Les frais sont payés.
- Envoyez le rapport.
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model") / "model")


def written(folder: Path, **files: str) -> list[str]:
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return paths


def previous(model: Path, old: str, translation: str, new: str, *options: str) -> int:
    command = ["translate", "--model", str(model), "--beam", "2", "--previous", old, translation]
    return run([*command, new, *options])


def test_what_did_not_change_stays_and_the_rest_is_translated_beside_it(
    tmp_path: Path, model: Path
) -> None:
    new = OLD.replace("10 days", "30 days").replace("- Send", "- Quite new it is.\n- Send")
    paths = written(tmp_path, old_md=OLD, old_fr_md=OLD_FR, new_md=new)
    out = tmp_path / "out.md"
    assert previous(model, *paths, "--output", str(out)) == 0
    before, after = OLD_FR.splitlines(), out.read_text(encoding="utf-8").splitlines()
    changed = [
        before.index("Gardez une **copie** 10 jours."),
        before.index("- Envoyez le rapport."),
    ]
    assert after[: changed[0]] == before[: changed[0]]
    assert after[changed[0]].replace("**", "") == "Gardez une copie 30 jours."  # adapted
    assert after[changed[0] + 1 : changed[1]] == before[changed[0] + 1 : changed[1]]
    assert after[changed[1] + 1 :] == before[changed[1] :]
    lines = tmp_path / "out.jsonl"
    assert previous(model, *paths, "--json", "--output", str(lines)) == 0
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert [record["origin"] for record in records] == [
        *("memory", "memory", "adapted", "memory", "model", "memory")
    ]
    assert records[0]["matches"][0]["document"] == str(tmp_path / "old.fr.md")


def test_an_unchanged_file_comes_back_as_its_translation(tmp_path: Path, model: Path) -> None:
    paths = written(tmp_path, old_md=OLD, old_fr_md=OLD_FR, new_md=OLD)
    assert previous(model, *paths, "--output", str(tmp_path / "out.md")) == 0
    assert (tmp_path / "out.md").read_text(encoding="utf-8") == OLD_FR


def test_keys_tell_what_belongs_together(tmp_path: Path, model: Path) -> None:
    old = {"a": "Open", "b": "Save", "c": "Gone"}
    translation = {"b": "Enregistrer", "a": "Ouvrir"}
    new = {"b": "Save", "a": "Open"}
    texts = [json.dumps(catalogue) for catalogue in (old, translation, new)]
    paths = written(tmp_path, old_json=texts[0], fr_json=texts[1], new_json=texts[2])
    assert previous(model, *paths, "--output", str(tmp_path / "out.json")) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {"b": "Enregistrer", "a": "Ouvrir"}


def test_files_that_do_not_belong_together_are_told(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = OLD_FR.replace("- Envoyez le rapport.\n", "")
    old, fr, new, po, text = written(
        tmp_path, old_md=OLD, fr_md=short, new_md=OLD, a_po='msgid "a"\nmsgstr ""\n', a_txt="A\n"
    )
    out = ["--output", str(tmp_path / "out")]
    assert previous(model, old, fr, new, *out) == 2
    assert "fr.md: has 4 segments where the former version has 5" in capsys.readouterr().err
    assert previous(model, old, po, new, *out) == 2
    assert f"{po}: is no Markdown" in capsys.readouterr().err
    assert previous(model, old, old, po, *out) == 2
    assert "give the former file as --memory" in capsys.readouterr().err
    assert previous(model, old, old, text, *out) == 2
    assert "--previous is of one file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
