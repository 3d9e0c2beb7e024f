"""Learned measures beside BLEU: scores of a command, or of a file, and a measure that is absent."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tmnmt.cli import run
from tmnmt.errors import DataError
from tmnmt.eval.measures.learned import AbsentError, Judged, judged
from tmnmt.eval.measures.learned_measure import LearnedMeasure
from tmnmt.eval.recipe import load_recipe

REFERENCES = ["un deux trois", "quatre", "cinq six"]
OUTPUTS = {"good": ["un deux trois", "quatre", "cinq"], "bad": ["un", "rien", "cinq six"]}
SHARED_WORDS = """
import json, pathlib, sys
log = pathlib.Path(sys.argv[1])
for line in sys.stdin:
    one = json.loads(line)
    if one["mt"] == sys.argv[2]:
        sys.exit("no weights here")
    with log.open("a") as file:
        file.write(one["mt"] + "\\n")
    words = set(one["mt"].split()) & set(one["ref"].split())
    print(len(words) / len(one["ref"].split()), flush=True)
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "measure.py").write_text(SHARED_WORDS, encoding="utf-8")
    for name, lines in {"ref": REFERENCES, **OUTPUTS}.items():
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return tmp_path


def command(folder: Path, fails_at: str = "") -> str:
    return shlex.join(
        [sys.executable, str(folder / "measure.py"), str(folder / "log"), fails_at or "-"]
    )


def score(folder: Path, *arguments: str) -> int:
    outputs = [word for name in OUTPUTS for word in ("--hyp", f"{name}={folder / name}")]
    reference = ("--ref", str(folder / "ref"))
    return run(
        ["evaluate", "score", "--out", str(folder / "out"), *reference, *outputs, *arguments]
    )


def report(folder: Path) -> dict[str, Any]:
    test: dict[str, Any] = json.loads((folder / "out/report.json").read_text())["tests"][0]
    return test


def test_a_command_scores_every_translation_once(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = f"shared={command(files)}"
    assert score(files, "--measure", option) == 0
    good, bad = report(files)["systems"]
    assert good["metrics"]["shared"]["score"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert bad["metrics"]["shared"]["score"] == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert bad["gain"]["shared"]["difference"] == pytest.approx(-7 / 18)
    assert any(test["metric"] == "shared" for test in bad["versus"])
    assert "mean of the scores of the command" in good["metrics"]["shared"]["signature"]
    lines = (files / "out/segments.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[1])["systems"]["bad"]["scores"] == {"shared": 0.0}
    assert "| shared |" in capsys.readouterr().out
    assert ">shared<" in (files / "out/report.html").read_text(encoding="utf-8")
    scored = (files / "log").read_text().splitlines()
    assert sorted(scored) == sorted({*OUTPUTS["good"], *OUTPUTS["bad"]})
    assert score(files, "--measure", option) == 0
    assert (files / "log").read_text().splitlines() == scored


def test_an_absent_measure_is_named_and_all_else_is_measured(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(files, "--measure", f"shared={command(files, fails_at='rien')}") == 0
    assert (
        "shared is absent: its command ended with 1: no weights here" in report(files)["warnings"]
    )
    assert "shared" not in report(files)["systems"][0]["metrics"]
    assert "Note: shared is absent" in capsys.readouterr().out
    # what was scored before is kept
    scored = (files / "log").read_text().splitlines()
    assert score(files, "--measure", f"shared={command(files, fails_at='rien')}") == 0
    assert (files / "log").read_text().splitlines() == scored


def test_scores_come_from_a_file(files: Path) -> None:
    records = [
        {"src": "", "mt": mt, "ref": ref, "score": len(mt)}
        for lines in OUTPUTS.values()
        for mt, ref in zip(lines, REFERENCES, strict=True)
    ]
    path = files / "scores.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    assert score(files, "--scores", f"length={path}") == 0
    assert report(files)["systems"][0]["metrics"]["length"]["score"] == pytest.approx(23 / 3)
    path.write_text("".join(json.dumps(record) + "\n" for record in records[1:]), encoding="utf-8")
    assert score(files, "--scores", f"length={path}") == 0
    lacking = f"length is absent: {path} has no score of 1 of 6 translations"
    assert lacking in report(files)["warnings"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]\n", "line 1: each line is a JSON object with src, mt, ref and score"),
        ('{"src": "", "mt": "a", "ref": "b"}\n', "line 1: each line is a JSON object"),
        ('{"src": 1, "mt": "a", "ref": "b", "score": 1}\n', "line 1: texts are strings"),
        ('{"src": "", "mt": "a", "ref": "b", "score": NaN}\n', "line 1: texts are strings"),
    ],
)
def test_a_file_of_scores_that_cannot_be_read(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        judged(LearnedMeasure("a", scores=str(path)), [Judged("", "a", "b")], tmp_path)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print('much')", "line 1 of its command is no number: 'much'"),
        ("print('nan')", "line 1 of its command is no number: 'nan'"),
        ("pass", "its command wrote 0 lines for 1 translation"),
        ("print(1); print(2)", "its command wrote 2 lines for 1 translation"),
    ],
)
def test_a_command_that_gives_no_scores(tmp_path: Path, program: str, reason: str) -> None:
    measure = LearnedMeasure("a", command=shlex.join([sys.executable, "-c", program]))
    with pytest.raises(AbsentError, match=reason):
        judged(measure, [Judged("", "a", "b")], tmp_path)
    with pytest.raises(AbsentError, match="no-such-program cannot be run: No such file"):
        judged(LearnedMeasure("b", command="no-such-program"), [Judged("", "a", "b")], tmp_path)


def test_a_score_that_a_kill_has_cut_is_made_again(files: Path) -> None:
    measure = LearnedMeasure("shared", command=command(files))
    translations = [Judged("", "un", "un deux"), Judged("", "deux", "deux")]
    assert judged(measure, translations, files) == [0.5, 1.0]
    (kept,) = (files / "scores").iterdir()
    kept.write_bytes(kept.read_bytes()[:-5])
    assert judged(measure, translations, files) == [0.5, 1.0]
    assert (files / "log").read_text().splitlines() == ["un", "deux", "deux"]
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--measure", "shared"), "--measure shared: write NAME=COMMAND"),
        (("--measure", "BLEU=cat"), "measure 'BLEU': there is another of this name"),
        (("--measure", "a=cat", "--measure", "a=tac"), "there is another of the name a"),
        (("--measure", "a='cat"), "measure 'a': \"'cat\": No closing quotation"),
        (("--scores", "a=nothing.jsonl"), "no such file: nothing.jsonl"),
    ],
)
def test_what_no_measure_is(
    files: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert score(files, *arguments) in (1, 2)
    assert message in capsys.readouterr().err


def test_a_recipe_names_learned_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("src", "ref", "hyp"):
        (tmp_path / name).write_text("a b\n", encoding="utf-8")
    (tmp_path / "lengths.jsonl").write_text(
        '{"src": "a b", "mt": "a b", "ref": "a b", "score": 3}\n', encoding="utf-8"
    )
    recipe = tmp_path / "recipe.toml"
    text = """
name = "r"
baseline = "s"
[[test]]
name = "t"
src = "src"
references = ["ref"]
[[system]]
name = "s"
hypothesis = "hyp"
[[measure]]
name = "length"
scores = "lengths.jsonl"
"""
    recipe.write_text(text, encoding="utf-8")
    assert load_recipe(recipe).measure == (
        LearnedMeasure("length", scores=str(tmp_path / "lengths.jsonl")),
    )
    assert run(["evaluate", "run", str(recipe), "--out", str(tmp_path / "out")]) == 0
    assert report(tmp_path)["systems"][0]["metrics"]["length"]["score"] == 3
    recipe.write_text(text + 'command = "cat"\n', encoding="utf-8")
    capsys.readouterr()
    assert run(["evaluate", "run", str(recipe), "--out", str(tmp_path / "out")]) == 2
    either = "measure 'length': give either a command, or a file of scores"
    assert either in capsys.readouterr().err
