"""The recipe and the training configuration for the JRC-Acquis splits of Gu et al. 2018, on a
stand-in of a few shipped pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from places import HELD_OUT, JRC, MODEL, ROOT

from tmnmt.cli import run
from tmnmt.eval.recipe import load_recipe
from tmnmt.formats import read_memory
from tmnmt.segments import Segment
from tmnmt.training.config import load_config
from tmnmt.training.data import load_corpora

RECIPE = ROOT / "eval" / "recipes" / "gu.toml"
NEAR = ("Article 2 shall be deleted.", "L'article 2 est supprimé.")  # of a test segment
TEST = [
    Segment("Article 3 shall be deleted.", "L'article 3 est supprimé."),
    Segment("The Commission shall inform the Council.", "La Commission informe le Conseil."),
    Segment("It shall apply from 3 March 1997.", "Il est applicable à partir du 3 mars 1997."),
]


@pytest.fixture
def splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the six files; what the recipe takes from the environment leads there."""
    torch.set_num_threads(1)
    train = [s for s in read_memory(JRC, "en", "fr") if len(s.src) < 60][:40]
    dev = [s for s in read_memory(HELD_OUT / "jrc-acquis.test.en-fr.tsv.gz", "en", "fr")][:5]
    folder = tmp_path / "en-fr"
    folder.mkdir()
    write(folder, "train", [*train, Segment(*NEAR)])
    write(folder, "dev", dev)
    write(folder, "test", TEST)
    for name, value in {
        "SPLITS": folder,
        "SRC": "en",
        "TGT": "fr",
        "MODEL": MODEL,
        "MEMORY": folder / "index",
        "XDG_CACHE_HOME": tmp_path / "cache",
    }.items():
        monkeypatch.setenv(name, str(value))
    return folder


def write(folder: Path, part: str, segments: list[Segment]) -> None:
    for lang, texts in (("en", [s.src for s in segments]), ("fr", [s.tgt for s in segments])):
        (folder / f"{part}.{lang}").write_text("".join(f"{t}\n" for t in texts), encoding="utf-8")


def build(splits: Path) -> None:
    index, prefix = str(splits / "index"), str(splits / "train")
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    assert run(["build-index", prefix, "--index", index, "--force", *languages]) == 0


def evaluate(recipe: Path, out: Path, *only: str) -> int:
    chosen = [word for name in only for word in ("--only", name)]
    return run(["evaluate", "run", str(recipe), "--out", str(out), "--threads", "1", *chosen])


def rows(out: Path) -> list[dict[str, Any]]:
    lines = (out / "segments.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_training_part_is_the_memory_and_another_systems_file_stands_beside(
    splits: Path, tmp_path: Path
) -> None:
    build(splits)
    text = RECIPE.read_text(encoding="utf-8")
    example = text[text.index("# [[system]]\n") :]
    (tmp_path / "beside.toml").write_text(text + example.replace("# ", ""), encoding="utf-8")
    theirs = ["L'article 3 est annulé.", "La Commission le dit.", "Il s'applique."]
    (splits / "another.fr").write_text("\n".join(theirs) + "\n", encoding="utf-8")
    for part in ("test.en", "test.fr", "another.fr"):  # a blank line parts two documents
        lines = (splits / part).read_text(encoding="utf-8").split("\n")
        (splits / part).write_text("\n".join([*lines[:2], "", *lines[2:]]), encoding="utf-8")
    chosen = "pasted TM", "copy", "copy, confirmed in memory", "another system"
    assert evaluate(tmp_path / "beside.toml", tmp_path / "out", *chosen) == 0
    found = rows(tmp_path / "out")
    assert [row["document"] for row in found] == ["test.fr 1", "test.fr 1", "test.fr 2"]
    assert [set(row["systems"]) for row in found] == [{"base", *chosen}] * 3
    assert found[0]["best"]["document"] == "train" and found[0]["best"]["src"] == NEAR[0]
    systems = found[0]["systems"]
    assert systems["pasted TM"]["hyp"] == NEAR[1]
    assert [pair["tgt"] for pair in systems["copy"]["matches"]] == [NEAR[1]]
    assert systems["copy"]["hyp"] == TEST[0].tgt
    assert [row["systems"]["another system"]["hyp"] for row in found] == theirs


def test_a_test_segment_in_the_training_part_with_its_reference_is_refused(
    splits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(splits, "train", [TEST[1], Segment(*NEAR)])
    build(splits)
    assert evaluate(RECIPE, tmp_path / "out", "pasted TM") == 1
    assert TEST[1].src in capsys.readouterr().err


def test_one_folder_serves_both_directions(splits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRC", "fr")
    monkeypatch.setenv("TGT", "en")
    monkeypatch.setenv("MEMORY", str(splits / "train"))
    recipe = load_recipe(RECIPE)
    assert (recipe.name, recipe.src_lang, recipe.tgt_lang) == ("gu fr-en", "fr", "en")
    (test,) = recipe.test
    assert test.src == str(splits / "test.fr") and test.references == (str(splits / "test.en"),)


def test_training_reads_the_parts_and_learns_from_no_source_of_dev_or_test(
    splits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    learned = Segment("A sentence of the training part.", "Une phrase.")
    write(splits, "train", [learned, Segment(TEST[0].src, "Autre chose.")])
    config = load_config(Path("models/gu.toml"))
    assert config.folder == "runs/gu.en-fr" and config.memory is not None
    corpora = load_corpora(config.data)
    parts = corpora.train, corpora.dev, corpora.test
    assert [[len(document) for document in part] for part in parts] == [[1], [5], [3]]
    assert corpora.train[0][0].src == learned.src
