"""`tmnmt start`: a memory is split, tried with a model and without, measured and indexed, and the
command that is told last works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from places import JRC
from published_student import listed, model_files, published_files
from tiny_model import write_tiny_model

from tmnmt.cli import run
from tmnmt.eval import start as steps
from tmnmt.formats import read_memory, write_tsv
from tmnmt.segments import Segment
from tmnmt.training.config import load_config

LANGUAGES = ("--src-lang", "en", "--tgt-lang", "fr")
SENTENCES = (
    ("Return the number of items in {}.", "Devolve o número de itens em {}."),
    ("The argument {} must be a string.", "O argumento {} deve ser uma string."),
    ("This method was added in version {}.", "Este método foi adicionado na versão {}."),
    ("Open the file {} for reading.", "Abre o arquivo {} para leitura."),
)
NAMES = ("alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa", "theta", "lambda", "zeta")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real pairs in few documents, short ones only, so that a small model is quick."""
    path = tmp_path_factory.mktemp("memory") / "my.tsv"
    pairs = (s for s in read_memory(JRC, "en", "fr") if len(s.src.split()) < 12)
    write_tsv(path, [Segment(s.src, s.tgt, "all", at) for at, s in enumerate(pairs)][:240])
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "base", memories=False)


def start(memory: Path, place: Path, *options: str) -> int:
    command = ["start", str(memory), *LANGUAGES, "-o", str(place), "--sample", "12"]
    return run([*command, "--threads", "1", *options])


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return dict(json.loads(capsys.readouterr().out))


def test_a_memory_and_a_model_give_figures_and_a_command_that_works(
    memory: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "place"
    assert start(memory, place, "--base", str(model), "--json") == 0
    told = found(capsys)
    assert list(told["figures"]) == ["base", "pasted", "with memory", "confirmed"]
    assert 11 <= told["sample"]["segments"] <= 12 and told["sample"]["stretch"] == 3
    assert told["sample"]["rest"] + told["sample"]["same_source_dropped"] < 240
    examples = told["examples"]
    assert len(examples) == 5
    assert all(set(e) == {"src", "base", "with memory", "reference", "match"} for e in examples)
    assert "say hardly anything" in " ".join(told["verdict"])
    assert (place / "measured" / "report.html").exists()
    kept_out = {s.src for s in read_memory(place / "split" / "test.tsv.gz", "en", "fr")}
    rest = {s.src for s in read_memory(place / "split" / "memory.tsv.gz", "en", "fr")}
    assert not kept_out & rest
    text = tmp_path / "document.txt"
    text.write_text("The Commission shall inform the Member States.\n")
    (command,) = told["next"]
    words = [str(text) if word == "document.txt" else word for word in shlex.split(command)[1:]]
    words[words.index("--output") + 1] = str(tmp_path / "out.txt")
    assert run(words) == 0
    assert (tmp_path / "out.txt").read_text().strip()


def test_an_interrupted_start_goes_on_and_says_the_same(
    memory: Path,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert start(memory, tmp_path / "whole", "--base", str(model), "--json") == 0
    whole = found(capsys)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps, "index_all", interrupted)
        assert start(memory, tmp_path / "place", "--base", str(model)) == 130
    assert "the same command goes on" in capsys.readouterr().err
    translated = {path: path.stat().st_mtime_ns for path in tmp_path.glob("place/**/*.jsonl")}
    monkeypatch.setattr(steps, "prepare", interrupted)  # what is there is not made again
    assert start(memory, tmp_path / "place", "--base", str(model), "--json") == 0
    told = found(capsys)
    assert {**told, "place": "", "next": ""} == {**whole, "place": "", "next": ""}
    kept = [path for path in translated if path.parent.name == "translations"]
    assert kept and all(path.stat().st_mtime_ns == translated[path] for path in kept)


def test_without_a_model_the_published_ones_are_named_and_nothing_is_fetched(
    memory: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("urllib.request.OpenerDirector.open", asked)
    assert start(memory, tmp_path / "place") == 0
    told = capsys.readouterr().out
    assert "pasted" in told and "with memory" not in told
    assert "en to fr: base-memory, about 32 MB, MPL-2.0, 49.6 BLEU on FLORES" in told
    assert f"-o {tmp_path / 'place'} --get" in told.splitlines()[-1]


def test_a_pair_of_which_no_model_is_known_is_told_so(
    memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "my.tsv"
    other.write_text(memory.read_text().replace("src\ttgt", "en\tcy", 1))
    command = ["start", str(other), "--src-lang", "en", "--tgt-lang", "cy", "--sample", "12"]
    assert run([*command, "-o", str(tmp_path / "place")]) == 0
    assert "Of en to cy no published model is known" in capsys.readouterr().out


def test_a_published_model_is_fetched_where_that_is_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = published_files(tmp_path / "site")
    (site / "list.json").write_text(listed("."))
    memory = tmp_path / "my.tsv"
    pairs = [(src.format(n), tgt.format(n)) for src, tgt in SENTENCES for n in NAMES]
    write_tsv(memory, [Segment(*pair, f"page {at // 4}", at) for at, pair in enumerate(pairs)])
    command = ["start", str(memory), "--src-lang", "en", "--tgt-lang", "pt-BR", "--sample", "10"]
    options = ["--get", "--registry", str(site / "list.json"), "--threads", "1", "--json"]
    assert run([*command, "-o", str(tmp_path / "place"), *options]) == 0
    told = found(capsys)
    assert told["model"] == str(tmp_path / "place" / "base")
    assert told["faults"] == {"counts": {}, "asked": len(pairs)}
    scores = {name: figures["BLEU"] for name, figures in told["figures"].items()}
    assert scores["with memory"] > scores["base"] > 5


def test_a_base_names_pairs_that_are_no_translations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "en-pt"
    assert run(["import-model", str(model_files()), "-o", str(base)]) == 0
    pairs = [(src.format(n), tgt.format(n)) for src, tgt in SENTENCES for n in NAMES]
    wrong = "O gato dorme no telhado da casa amarela."
    pairs[3] = pairs[3][0], wrong
    memory = tmp_path / "my.tsv"
    write_tsv(memory, [Segment(*pair, f"page {at // 4}", at) for at, pair in enumerate(pairs)])
    languages = ["--src-lang", "en", "--tgt-lang", "pt"]
    command = ["start", str(memory), *languages, "--sample", "10", "--threads", "1"]
    assert run([*command, "-o", str(tmp_path / "place")]) == 0  # without a base nobody is asked
    assert "to look at" not in capsys.readouterr().out
    assert run([*command, "-o", str(tmp_path / "place"), "--base", str(base)]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("to look at")]
    assert "unrelated 1 of 40 that the model was asked of" in line
    assert run(shlex.split(line.split("tmnmt ")[-1])) == 0
    assert wrong in capsys.readouterr().out
    prepared = ["evaluate", "prepare", str(memory), *languages, "--out", str(tmp_path / "data")]
    assert run([*prepared, "--segments", "4", "--model", str(base)]) == 0
    assert "unrelated 1 of" in capsys.readouterr().out
    monkeypatch.setattr("tmnmt.eval.data.prepare.MOST_LOOKED_THROUGH", 3)
    prepared[-1] = str(tmp_path / "again")
    assert run([*prepared, "--segments", "4"]) == 0
    assert "was not looked through" in capsys.readouterr().out


def test_what_is_typed_next_goes_on_with_the_same_start(
    memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns and sample are those of the first time, and English is the way where there is no
    other."""
    other = tmp_path / "my.tsv"
    other.write_text("\n".join(memory.read_text().splitlines()[1:]) + "\n")
    command = ["start", str(other), "--src-lang", "cs", "--tgt-lang", "fr", "--sample", "12"]
    command += ["--columns", "src=1,tgt=2,doc=3"]
    assert run([*command, "-o", str(tmp_path / "place"), "--json"]) == 0
    told = found(capsys)
    (line,) = told["next"]
    assert line.endswith("--get --via en")
    assert any(model.startswith("cs to en: ") for model in told["published"])
    assert any(model.startswith("en to fr: ") for model in told["published"])
    words = shlex.split(line)[1:]
    assert run([word for word in words if word not in ("--get", "--via", "en")]) == 0


@pytest.mark.slow
def test_a_base_is_trained_where_that_is_typed(
    memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "place"
    assert start(memory, place, "--minutes", "0.1", "--json") == 0
    printed = capsys.readouterr()
    assert "pairs make no base that is of use" in printed.err
    told = json.loads(printed.out)
    assert told["model"] == str(place / "base") and "base" in told["figures"]
    updates = load_config(place / "train.toml").training.updates
    assert updates >= 20 and not (place / "training").exists()


def test_what_is_wrong_is_said_in_one_line(
    memory: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.tsv"
    other.write_bytes(memory.read_bytes() + b"Another.\tUn autre.\tall\t999\n")
    assert start(memory, tmp_path / "place") == 0
    (tmp_path / "full").mkdir()
    converted = tmp_path / "converted"
    converted.mkdir()
    for name in ("model.bin", "shared_vocabulary.json"):
        (converted / name).write_text("{}")
    (tmp_path / "full" / "letter.txt").write_text("Dear")
    capsys.readouterr()
    wrong: dict[str, tuple[Any, ...]] = {
        "was begun with other files": (other, tmp_path / "place"),
        "is no folder of a start": (memory, tmp_path / "full"),
        "exclude each other": (memory, tmp_path / "new", "--base", str(model), "--get"),
        "go with --get": (memory, tmp_path / "new", "--registry", "list.json"),
        "there is no such folder": (memory, tmp_path / "new", "--base", "nowhere"),
        "is a CTranslate2 model": (memory, tmp_path / "new", "--base", str(converted)),
        "--via go with --get": (memory, tmp_path / "new", "--via", "en"),
        "this model is from en to fr, not fr to en": (
            memory,
            tmp_path / "turned",
            "--base",
            str(model),
            "--src-lang",
            "fr",
            "--tgt-lang",
            "en",
        ),
        "no such file": (tmp_path / "gone.tmx", tmp_path / "new"),
    }
    for said, (path, place, *options) in wrong.items():
        assert start(path, place, *map(str, options)) in (1, 2), said
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, error
    assert not (tmp_path / "new").exists()
