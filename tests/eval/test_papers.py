"""The papers' systems side by side: a system that reads what stands before a segment, and the
recipes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from places import ROOT
from reading_model import write_reading_model
from tiny_model import PAIRS

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.eval.recipe import load_recipe
from tmnmt.formats import write_tsv
from tmnmt.models.folder import load_model, parameters
from tmnmt.segments import Segment

RECIPE = """
name = "tiny"
baseline = "base"
[[test]]
name = "own"
files = ["test.tsv"]
[[model]]
name = "plain"
path = "model-plain"
[[model]]
name = "reading"
path = "model"
[[system]]
name = "base"
[[system]]
name = "reading"
model = "reading"
[[system]]
name = "nothing before"
model = "reading"
context = false
"""
RECIPES = ROOT / "eval" / "recipes"


@pytest.fixture(params=["gated", "around"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    write_reading_model(tmp_path / "model", request.param)
    test = [Segment(*pair, f"d{at // 3}", at % 3) for at, pair in enumerate(PAIRS)]
    write_tsv(tmp_path / "test.tsv", test)
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def evaluate(folder: Path) -> dict[str, list[float]]:
    """The scores of every system's translations."""
    out = str(folder / "out")
    assert (
        run(["evaluate", "run", str(folder / "recipe.toml"), "--out", out, "--threads", "1"]) == 0
    )
    systems = json.loads((folder / "out" / "report.json").read_text())["tests"][0]["systems"]
    kept = {one["name"]: one["settings"]["translations"] for one in systems}
    found = {}
    for name, file in kept.items():
        lines = (folder / "out" / "translations" / file).read_text(encoding="utf-8").splitlines()
        segments = [one for line in lines for one in json.loads(line)["segments"]]
        found[name] = [one["score"] for one in segments]
    return found


def test_a_system_reads_the_documents_of_the_test_set(folder: Path) -> None:
    found = evaluate(folder)
    translator = Translator.load(
        folder / "model", options=TranslationOptions(mode="off", verbatim=0, cache=0, threads=1)
    )
    sources = [src for src, _ in PAIRS]
    by_document = [*translator.translate(sources[:3]), *translator.translate(sources[3:])]
    assert found["reading"] == pytest.approx([one.score for one in by_document], abs=1e-5)
    together = translator.translate(sources)  # as if all were one document
    assert abs(together[3].score - by_document[3].score) > 1e-4
    assert found["nothing before"] == pytest.approx(found["base"], abs=1e-5)
    report = json.loads((folder / "out" / "report.json").read_text())
    sizes = [one["cost"]["parameters"] for one in report["tests"][0]["systems"]]
    assert sizes[0] == sizes[2] < sizes[1] == parameters(load_model(folder / "model").backbone)


@pytest.mark.parametrize("name", ["papers", "papers.tvsub"])
def test_the_recipes_are_whole_and_the_page_has_every_row(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (RECIPES / f"{name}.toml").read_text(encoding="utf-8")
    for variable in ("NETWORKS", "TVSUB_NETWORKS", "TVSUB_CACHES", "TVSUB"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("SEED", "1")
    for way in (
        "continued",
        "monolingual",
        "bilingual",
        "attended",
        "auxiliary",
        "gated",
        "around",
    ):
        assert re.search(rf"^# .* {way}\b", text, re.M)  # the command that makes it
        (tmp_path / f"{way}-1").mkdir()
    for way in ("attended-fixed", "deep", "shallow"):
        (tmp_path / f"{way}-1").mkdir()
    for file in ("test.zh", "test.en.0", "test.en.1", "test.en.2"):
        (tmp_path / file).touch()
    text = text.replace("../../runs/tvsub.zh-en", str(tmp_path))
    text = text.replace('"../../', f'"{ROOT}/')
    (tmp_path / "recipe.toml").write_text(text, encoding="utf-8")
    recipe = load_recipe(tmp_path / "recipe.toml")
    used = {system.model for system in recipe.system if system.model}
    assert used == {model.name for model in recipe.model}
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    named = {system.name for system in recipe.system}
    assert {name for name in named if f"`{name}`" not in rows} == set()
