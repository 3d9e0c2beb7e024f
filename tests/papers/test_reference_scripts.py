"""The scripts of reference networks: ways that are trained side by side, and the paper's
analyses."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import sacrebleu
import torch
from places import ROOT
from reading_model import write_reading_model
from tiny_memory_training import run_of
from tiny_model import segments, write_tiny_model

from tmnmt.errors import UsageError
from tmnmt.eval.recipe import load_recipe
from tmnmt.formats import write_tsv
from tmnmt.models.folder import load_model
from tmnmt.papers.context_network import InDocument
from tmnmt.papers.reference_network import Referring


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "eval" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_ways_are_trained_and_the_control_has_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.set_num_threads(1)
    made = run_of(tmp_path, None)  # type: ignore[arg-type]  # its files
    corpus = made.data.corpus[0]
    (tmp_path / "c.toml").write_text(
        f'folder = "none"\n[data]\n[[data.corpus]]\nname = "a"\nfiles = ["{corpus.files[0]}"]\n'
        f'columns = "{corpus.columns}"\ndev = "{corpus.dev}"\n'
    )
    base = write_tiny_model(tmp_path / "base")
    ways = ["bilingual", "continued", "anchors-3", "attended", "gated-fixed"]
    options = ["--sentences", "20", "--epochs", "1", "--dev", "5", "--batch-tokens", "400"]
    out = tmp_path / "out"
    arguments = [str(tmp_path / "c.toml"), str(base), str(out), *ways, *options]
    monkeypatch.setattr(sys, "argv", ["reference_networks.py", *arguments])
    script("reference_networks").main()
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert [line[0] for line in lines] == [f"| {way}" for way in ways]
    added = [int(line[4].replace(",", "")) for line in lines]
    networks = [load_model(out / f"{way}-1").backbone for way in ways]
    assert isinstance(networks[0], Referring) and isinstance(networks[2], Referring)
    assert added[1] == 0 and not isinstance(networks[1], Referring)
    assert added[0] == sum(p.numel() for p in networks[0].network.parameters()) > 0
    assert networks[2].network.kind.anchors == 3
    for network, form in zip(networks[3:], ("attended", "gated"), strict=True):
        assert isinstance(network, InDocument) and network.network.kind.form == form
    there = [(out / f"{way}-1" / "memory.safetensors").exists() for way in ways]
    assert there == [True, False, False, False, True]
    updates = [last_update(out / f"{way}-1" / "train.jsonl") for way in ways]
    assert len(set(updates)) == 1 and updates[0] > 1  # as many as each other
    script("reference_networks").main()  # nothing is trained again
    assert [last_update(out / f"{way}-1" / "train.jsonl") for way in ways] == updates
    arguments_before = list(sys.argv)
    monkeypatch.setattr(sys, "argv", [*sys.argv[:-4], "--dev", "4", *sys.argv[-2:]])
    with pytest.raises(UsageError, match="dev_segments was 5, is 4"):
        script("reference_networks").main()
    folder = out / "bilingual-1"
    stage = [*sys.argv[:2], str(folder), str(tmp_path / "next"), "bilingual", *options]
    start = str(folder / "reference.safetensors")
    monkeypatch.setattr(sys, "argv", [*stage, "--start-from", start])
    capsys.readouterr()
    script("reference_networks").main()
    before = float(capsys.readouterr().out.split(" | ")[2])
    assert before == pytest.approx(float(lines[0][3]), abs=2e-4)  # where the first stage ended
    stage.insert(5, "attended")
    monkeypatch.setattr(sys, "argv", [*stage, "--start-from", start])
    with pytest.raises(SystemExit):
        script("reference_networks").main()
    assert "one way alone begins with a file" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", arguments_before)
    for wrong in ["contined", "anchors-1"], ["continued", "--corpus", "b"]:
        monkeypatch.setattr(sys, "argv", [*sys.argv[:4], *wrong])
        with pytest.raises(SystemExit):
            script("reference_networks").main()
    assert "allowed: monolingual, fixed" in (said := capsys.readouterr().err)
    assert f"--corpus b: {tmp_path / 'c.toml'} has a" in said


def last_update(log: Path) -> int:
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return max(line["update"] for line in lines if line["part"] != "anchors")


def test_lengths_are_grouped_and_bleu_is_that_of_each_group() -> None:
    by_length = script("reference_analysis").by_length
    sources = ["a " * 10, "b " * 11, "c " * 60, "d"]
    references = ["le chat dort bien ici", "un deux trois quatre", "x y z w v", "oui"]
    said = ["le chat dort bien ici", "un deux", "x y z w v u", "oui"]
    groups = list(by_length(sources, references, said))
    assert [group.name for group in groups] == ["1-10", "11-20", "> 50", "all"]
    assert [group.segments for group in groups] == [2, 1, 1, 4]
    assert [group.ratio for group in groups] == pytest.approx([1.0, 0.5, 6 / 5, 14 / 15])
    assert groups[0].bleu == pytest.approx(100.0)
    assert groups[3].bleu == pytest.approx(sacrebleu.corpus_bleu(said, [references]).score)


def test_models_stand_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base = write_tiny_model(tmp_path / "base", memories=False)
    write_tsv(tmp_path / "m.tsv", segments())
    arguments = [str(base), str(base), "--segments", str(tmp_path / "m.tsv"), "--most", "3"]
    monkeypatch.setattr(sys, "argv", ["reference_analysis.py", *arguments])
    script("reference_analysis").main()
    out = capsys.readouterr().out
    count = sum(p.numel() for p in load_model(base).backbone.parameters())
    assert f"| base | {count:,} | 0.0 % |" in out and out.count("| all | 3 |") == 2
    assert "over its mean" not in out  # neither has a network


def test_what_networks_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [write_reading_model(tmp_path / form, form) for form in ("attended", "around")]
    write_tsv(tmp_path / "m.tsv", segments())
    arguments = [*map(str, models), "--segments", str(tmp_path / "m.tsv"), "--most", "8"]
    monkeypatch.setattr(sys, "argv", ["reference_analysis.py", *arguments, "--only-reading"])
    script("reference_analysis").main()
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line]
    assert [row[0] for row in rows[2:]] == ["| attended", "| around"]
    for row in rows[2:]:
        loss, off, mean = map(float, row[1:4])
        assert loss != off and float(row[7].split()[0]) == pytest.approx(mean - loss, abs=2e-4)
        assert row[-1] == "no |"  # it has learned nothing, and feeds what is drawn
    assert float(rows[2][6]) > 1 and rows[3][6] == ""


def test_the_recipe_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ("monolingual", "continued", "bilingual"):
        (tmp_path / f"{way}-1").mkdir()
    monkeypatch.setenv("LAW", str(ROOT / "memories" / "canadian-law.en-fr.tmx.gz"))
    monkeypatch.setenv("REFERENCES", str(tmp_path))
    recipe = load_recipe(ROOT / "eval" / "recipes" / "references.toml")
    ways = set(script("reference_networks").WAYS)
    made = [Path(recipe.path_of("model", each.name)) for each in recipe.model[1:]]
    assert {path.name.removesuffix("-1") for path in made} <= ways
    assert recipe.system[-1].model == "bilingual" and recipe.system[-1].options.mode == "copy"
