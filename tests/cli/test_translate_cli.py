"""`tmnmt translate` as it is used: files and pipes in, as many lines out, one line for what is
wrong."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from elastic_server import Running
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.codes.record import Code
from tmnmt.engine.piece import Piece
from tmnmt.engine.pipeline import Pipeline
from tmnmt.errors import MemoryIndexError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.elastic.build import build_elastic
from tmnmt.progress import Progress
from tmnmt.segments import Segment, Translation
from tmnmt.translator import Translator

TEXT = "The Commission shall inform the Council.\n\nIt shall apply from 3 March 1997.\nRepealed.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, plain (without memory parameters), index, memory.tsv, input.txt"""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("cli")
    write_tiny_model(folder / "model")
    write_tiny_model(folder / "plain", memories=False)
    build(folder / "index", segments(), "en", "fr")
    rows = ["src\ttgt", *("\t".join(pair) for pair in PAIRS)]
    (folder / "memory.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "input.txt").write_text(TEXT, encoding="utf-8")
    return folder


def translate(folder: Path, *arguments: str, model: str = "model") -> int:
    return run(
        ["translate", "--model", str(folder / model), "--beam", "2", "--threads", "1", *arguments]
    )


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_as_many_lines_out_as_in_and_the_empty_one_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, str(folder / "input.txt"), "--memory", str(folder / "index")) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == len(TEXT.split("\n"))
    assert lines[1] == "" and all(lines[i] for i in (0, 2, 3))


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_text_keeps_its_line_ends_and_its_byte_order_mark(
    folder: Path, tmp_path: Path, mark: str
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(f"{mark}No.\r\n\r\nAll is void.\r\n".encode())
    assert translate(folder, str(source), "-o", str(target)) == 0
    text = target.read_bytes().decode()
    assert re.fullmatch(rf"{mark}[^\r\n\ufeff]+\r\n\r\n[^\r\n]+\r\n", text)
    source.write_bytes("No.\nAll is void.\r\n".encode("utf-16"))
    assert translate(folder, str(source), "-o", str(target)) == 0
    assert re.fullmatch(r"[^\r\n\ufeff]+\n[^\r\n]+\n", target.read_bytes().decode())


def test_stdin_is_read_and_several_files_are_several_documents(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(folder / "input.txt")
    stdin = io.BufferedReader(cast(io.RawIOBase, io.BytesIO(TEXT.encode())))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
    assert translate(folder) == 0
    once = capsys.readouterr().out
    assert translate(folder, path, path) == 0
    assert capsys.readouterr().out == 2 * once


def test_a_pipe_named_as_a_file_is_read_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(
        ["bash", "-c", 'cat "$1" > "$2"', "", str(folder / "input.txt"), str(tmp_path / "fifo")]
    ):
        assert translate(folder, str(tmp_path / "fifo")) == 0
    assert len(capsys.readouterr().out.split("\n")) == len(TEXT.split("\n"))


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("m.tsv", "one\tun\n", "a memory (TSV): `tmnmt translate --memory`"),
        ("m.csv", "a,b\n", "a table (CSV): a CAT tool"),
        ("m.yaml", 'a: "b"\n', "YAML, which is read as Rails has it"),
        ("m.odt", "PK\x03\x04[Content_Types].xml", "an archive, as .docx, .xlsx, .odt"),
    ],
)
def test_what_is_no_plain_text_is_refused_with_what_reads_it(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    why: str,
) -> None:
    (tmp_path / name).write_text(content)
    assert translate(folder, str(tmp_path / name)) == 1
    out, err = capsys.readouterr()
    assert out == "" and f"{name}: no plain text, but {why}" in err and err.count("\n") == 1


def test_a_memory_file_needs_a_place_for_its_index_and_a_header(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    (tmp_path / "bare.tsv").write_text("one\tun\n")
    arguments = [str(folder / "input.txt"), "--memory", str(tmp_path / "bare.tsv")]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert translate(folder, *arguments) == 1
    assert "or build-index --columns" in capsys.readouterr().err
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert translate(folder, *arguments) == 2
    assert "set XDG_CACHE_HOME" in capsys.readouterr().err


def test_the_next_best_are_told_with_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "nbest.txt"
    text.write_text("The Commission shall inform the Council.\n", encoding="utf-8")
    assert translate(folder, str(text), "--nbest", "2", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["others"]) == 1
    assert translate(folder, str(text), "--nbest", "2") != 0
    assert "--nbest is told by --json" in capsys.readouterr().err


def test_json_tells_matches_and_tokens(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        translate(folder, str(folder / "input.txt"), "--memory", str(folder / "index"), "--json")
        == 0
    )
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["src"] for record in records] == TEXT.split("\n")[:-1]
    first = records[0]
    assert set(first) == {
        *("src", "tgt", "origin", "score", "low", "unknown", "missing_numbers"),
        *("checks", "matches", "tokens", "work"),
    }
    match = first["matches"][0]
    assert (match["src"], match["tgt"], match["document"]) == (*PAIRS[0], "tiny")
    for token in first["tokens"]:
        assert token["origin"] in ("model", "memory", "cache")
        assert token["generated"] + token["recalled"] + token["copied"] == pytest.approx(
            token["probability"], abs=1e-5
        )
    assert records[1] == {
        "src": "",
        "tgt": "",
        "origin": "",
        "score": 0,
        "low": False,
        "unknown": 0,
        "missing_numbers": [],
        "checks": [],
        "matches": [],
        "tokens": [],
    }


def test_exact_matches_are_taken_unless_they_are_not_wanted_and_marked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text(f"{PAIRS[0][0]}\nRepealed.\n", encoding="utf-8")
    arguments = [str(text), "--memory", str(folder / "index")]
    assert translate(folder, *arguments, "--json") == 0
    taken, said = records(capsys.readouterr().out)
    assert (taken["tgt"], taken["origin"], taken["score"]) == (PAIRS[0][1], "memory", 0) and said[
        "origin"
    ] == "model"
    assert translate(folder, *arguments, "--json", "--no-verbatim") == 0
    assert [line["origin"] for line in records(capsys.readouterr().out)] == ["model", "model"]
    assert translate(folder, *arguments, "--explain") == 0
    out = capsys.readouterr().out
    assert out.count("an exact match, as it stands") == 1 and out.count("score ") == 1
    assert translate(folder, *arguments, model="plain") == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == PAIRS[0][1]
    assert "warning" not in captured.err


def test_a_line_out_is_a_line_whatever_the_memory_holds(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = ["un\ndeux", "un \r\n\n deux", "un\u2028deux", "un\x85deux", "un\x0cdeux"]
    sources = [f"Text {word}" for word in ("one", "two", "three", "four", "five")]
    build(
        tmp_path / "index", [Segment(*pair) for pair in zip(sources, ends, strict=True)], "en", "fr"
    )
    (tmp_path / "text").write_text("\n".join(sources) + "\n", encoding="utf-8")
    arguments = [str(tmp_path / "text"), "--memory", str(tmp_path / "index")]
    assert translate(folder, *arguments) == 0
    assert capsys.readouterr().out == "un deux\n" * 5
    assert translate(folder, *arguments, "--json") == 0
    assert [line["tgt"] for line in records(capsys.readouterr().out)] == ends


def test_without_a_model_exact_matches_are_taken_and_the_rest_is_left(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "exact.txt").write_text(
        f"{PAIRS[0][0]}\n\n  {PAIRS[1][0]}\nRepealed.\n", encoding="utf-8"
    )
    arguments = ["translate", str(folder / "exact.txt"), "--memory", str(folder / "index")]
    assert run(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{PAIRS[0][1]}\n\n{PAIRS[1][1]}\n\n"
    assert captured.err == "2 of 3 segments have an exact match; 1 left empty\n"
    assert run([*arguments, "--untranslated", "source", "--json"]) == 0
    captured = capsys.readouterr()
    lines = records(captured.out)
    assert [line["origin"] for line in lines] == ["memory", "", "memory", ""] and lines[3][
        "tgt"
    ] == "Repealed."
    assert captured.err == "2 of 3 segments have an exact match; 1 left as it is\n"
    assert run([*arguments, "--explain"]) == 0
    shown = capsys.readouterr().out
    assert (
        f"\n[{PAIRS[0][1]}]\n  an exact match, as it stands\n  match 1  1.00  100 %  (tiny)\n"
        in shown
    )
    assert "subword" not in shown.partition("\n")[2]
    for wrong, message in (
        (["--mode", "copy"], "--mode needs a --model"),
        (["--no-verbatim"], "--no-verbatim needs a --model"),
        (["--interactive"], "--interactive needs a terminal"),
        (
            ["--memory", str(folder / "memory.tsv"), "--src-lang", "de"],
            "this index is from en to fr, not de to fr",
        ),
    ):
        assert run([*arguments, *wrong]) != 0
        assert message in capsys.readouterr().err
    assert run(["translate", str(folder / "exact.txt")]) == 2
    assert "give a --model, a --memory, or both" in capsys.readouterr().err
    assert (
        run(["translate", str(folder / "exact.txt"), "--memory", str(folder / "memory.tsv")]) == 2
    )
    assert (
        "of which languages the memory file is: name them, --src-lang and --tgt-lang"
        in capsys.readouterr().err
    )


def test_without_a_model_counts_have_their_noun_and_verb(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for texts, options, told in (
        (["Repealed."], [], "0 of 1 segment has an exact match; 1 left empty"),
        (
            ["Repealed.", PAIRS[0][0]],
            ["--untranslated", "source"],
            "1 of 2 segments has an exact match; 1 left as it is",
        ),
        (["Repealed."] * 2, [], "0 of 2 segments have an exact match; 2 left empty"),
    ):
        (folder / "counted.txt").write_text(
            "".join(f"{text}\n" for text in texts), encoding="utf-8"
        )
        assert (
            run(
                [
                    "translate",
                    str(folder / "counted.txt"),
                    "--memory",
                    str(folder / "index"),
                    *options,
                ]
            )
            == 0
        )
        assert capsys.readouterr().err == f"{told}\n"


def test_without_a_model_torch_is_not_loaded(folder: Path) -> None:
    program = (
        "import sys; from tmnmt.cli import run; code = run(sys.argv[1:]); assert 'torch' not in "
        "sys.modules; "
        "assert 'readline' not in sys.modules; sys.exit(code)"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "translate",
        str(folder / "input.txt"),
        "--memory",
        str(folder / "index"),
    ]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "\n" * 4


def test_what_is_finished_of_a_document_is_confirmed_first_and_stands_in_the_output(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, done = tmp_path / "text", tmp_path / "done"
    sources = [
        "Notice of the third meeting",
        "Repealed.",
        "",
        "Notice of the third meeting",
        "Notice of a meeting",
    ]
    text.write_text("\n".join(sources) + "\n", encoding="utf-8")
    done.write_text("Avis de la troisième réunion\n\n", encoding="utf-8")
    pairs = tmp_path / "done.tsv"
    pairs.write_text(
        "en\tfr\nNotice of the third meeting\tAvis de la troisième réunion\n", encoding="utf-8"
    )
    for finished in (done, pairs):
        assert (
            translate(
                folder, str(text), "--confirmed", str(finished), "--json", "--threshold", "0.3"
            )
            == 0
        )
        captured = capsys.readouterr()
        lines = records(captured.out)
        assert [line["src"] for line in lines] == sources
        assert [line["origin"] for line in lines] == ["confirmed", "model", "", "memory", "model"]
        assert lines[0]["tgt"] == lines[3]["tgt"] == "Avis de la troisième réunion"
        assert [match["tgt"] for match in lines[4]["matches"]] == ["Avis de la troisième réunion"]
        assert (
            "what is confirmed lasts for this session; --write-to INDEX keeps it in a memory"
            in captured.err
        )
    for _ in range(2):  # what is written is there once
        assert (
            translate(
                folder, str(text), "--confirmed", str(done), "--write-to", str(tmp_path / "own")
            )
            == 0
        )
        assert f"what is confirmed is written to {tmp_path / 'own'}" in capsys.readouterr().err
    with MemoryIndex.open(tmp_path / "own") as opened:
        assert [segment.tgt for segment in opened.segments()] == ["Avis de la troisième réunion"]


@pytest.mark.parametrize("suffix", ["txt", "tsv"])
def test_what_is_finished_is_checked_before_any_of_it_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    text, done, own = tmp_path / "text", tmp_path / f"done.{suffix}", tmp_path / "own"
    text.write_text("Notice.\nRepealed.\n", encoding="utf-8")
    lines = {"txt": "Avis.\n\u200b\n", "tsv": "en\tfr\nNotice.\tAvis.\nAnother.\tAutre.\n"}[suffix]
    done.write_text(lines, encoding="utf-8")
    for there in (False, True):
        if there:
            build(own, [], "en", "fr")
        assert translate(folder, str(text), "--confirmed", str(done), "--write-to", str(own)) == 1
        assert f"{done}" in capsys.readouterr().err
        assert own.exists() == there
    with MemoryIndex.open(own) as opened:
        assert len(opened) == 0


@pytest.mark.parametrize("name", ["done.tsv.fr.txt", "done.v2.TSV", "done.v2.TSV.gz"])
def test_the_end_of_its_name_says_what_is_finished(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text, done = tmp_path / "text", tmp_path / name
    text.write_text("Notice.\nRepealed.\n", encoding="utf-8")
    content = (
        "Avis.\nAbrogé.\n"
        if name.endswith(".txt")
        else "en\tfr\nNotice.\tAvis.\nRepealed.\tAbrogé.\n"
    )
    done.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    assert translate(folder, str(text), "--confirmed", str(done)) == 0
    assert capsys.readouterr().out == "Avis.\nAbrogé.\n"


def test_select_says_which_pairs_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def sources(*arguments: str) -> list[list[str]]:
        path = str(folder / "input.txt")
        found = translate(
            folder,
            path,
            "--memory",
            str(folder / "index"),
            "--json",
            "--threshold",
            "0.1",
            *arguments,
        )
        assert found == 0
        records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [[match["src"] for match in record["matches"]] for record in records]

    plain, greedy = sources(), sources("--select", "greedy")
    assert sources("--select", "topk") == plain
    # "The Commission shall inform the Council.": all but "Council" is covered by the first, so
    # nothing else is read
    assert len(plain[0]) == 4 and greedy[0] == plain[0][:1] == [PAIRS[0][0]]


def test_explain_shows_the_target_by_origin_and_the_matches(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        translate(folder, str(folder / "input.txt"), "--memory", str(folder / "index"), "--explain")
        == 0
    )
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "copy gate" in out and PAIRS[0][1] in out and "match 1  0.75" in out


def test_output_is_written_whole(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, str(folder / "input.txt"), "-o", str(tmp_path / "out.txt")) == 0
    assert len((tmp_path / "out.txt").read_text().split("\n")) == len(TEXT.split("\n"))
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == [tmp_path / "out.txt"]


def test_a_hyphen_is_standard_output(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert translate(folder, str(folder / "input.txt")) == 0
    out = capsys.readouterr().out
    assert translate(folder, str(folder / "input.txt"), "-o", "-") == 0
    assert capsys.readouterr().out == out != ""
    assert translate(folder, str(folder / "input.txt"), "--explain-html", "-") == 2
    assert "--explain-html is -; it must be a file, not standard output" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_memory_file_is_indexed_and_found_again(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = [str(folder / "input.txt"), "--memory", str(folder / "memory.tsv"), "--json"]
    assert translate(folder, *arguments) == 0
    first = capsys.readouterr().out
    assert json.loads(first.splitlines()[0])["matches"][0]["tgt"] == PAIRS[0][1]
    assert translate(folder, *arguments) == 0
    assert capsys.readouterr().out == first
    assert any(tmp_path.rglob("manifest.json"))


@pytest.mark.parametrize(
    ("model", "arguments", "code", "message"),
    [
        (
            "plain",
            ["--mode", "copy", "--memory", "{index}"],
            2,
            "plain: this model has no parameters for mode copy; it",
        ),
        ("plain", ["--cache", "25", "--remember", "own"], 2, "no parameters for a session cache"),
        (
            "model",
            ["--cache", "25"],
            2,
            "--cache is of what is confirmed, and nothing is in this run",
        ),
        (
            "model",
            ["--write-to", "{index}"],
            2,
            "--write-to is of what is confirmed, and nothing is in this run",
        ),
        (
            "model",
            ["--confirm-to", "cache"],
            2,
            "--confirm-to is of what is confirmed, and nothing is in this run",
        ),
        ("model", ["--remember", "all"], 2, "'all' is not one of"),
        ("model", ["--interactive", "-o", "{out}"], 2, "--interactive needs a terminal"),
        (
            "model",
            ["--session", "{missing}"],
            2,
            "missing: there is none; --interactive begins one",
        ),
        ("model", ["--confirmed", "{missing}"], 1, "missing"),
        ("model", ["--confirmed", "{missing}", "{empty}"], 2, "are of one document: name one file"),
        ("model", ["--confirmed", "{long}"], 1, "long: has 6 lines, and the document 4"),
        (
            "model",
            ["--confirmed", "{blank}"],
            1,
            "blank, line 2: is a translation, and the document's line is blank",
        ),
        (
            "model",
            ["--confirmed", "{unseen}"],
            1,
            "unseen, line 1: a confirmed pair needs a text on both sides",
        ),
        (
            "model",
            ["--confirmed", "{other}"],
            1,
            "pair 2 ('Not there') is not in the document, or not in its order",
        ),
        ("model", ["--untranslated", "source"], 2, "--untranslated is of a run without --model"),
        (
            "plain",
            ["--cache-best", "2"],
            2,
            "cache-best is of a session cache of the model's own words, and there is none",
        ),
        (
            "model",
            ["--cache", "0", "--cache-best", "2"],
            2,
            "cache-best is of a session cache of the model's own words, and there is none",
        ),
        (
            "model",
            ["--cache", "0", "--no-cache-overwrite"],
            2,
            "no-cache-overwrite is of a session cache, and there",
        ),
        ("model", ["--mode", "fusion"], 2, "needs a --memory"),
        ("model", ["--explain", "--json"], 2, "exclude each other"),
        ("model", ["--mode", "magic"], 2, "Invalid value for '--mode': 'magic' is not one of"),
        ("model", ["--select", "best"], 2, "best"),
        ("model", ["--alpha", "0.5"], 2, "alpha is of select contrastive, and select is topk"),
        ("model", ["--select", "contrastive", "--alpha", "nan"], 2, "alpha is nan"),
        ("model", ["--threshold", "2"], 2, "threshold"),
        ("model", ["--length-penalty", "1000"], 2, "length-penalty is 1000"),
        (
            "model",
            ["--threads", "99999999999999999999"],
            2,
            "it must be a whole number, 1 to 1,024",
        ),
        ("model", ["--device", "meta"], 2, "device meta is unknown"),
        (
            "model",
            ["--memory", "{index}", "--src-lang", "de"],
            2,
            "model: this model is from en to fr, not de to fr",
        ),
        ("model", ["--src-lang", "de"], 2, "model: this model is from en to fr, not de to fr"),
        ("model", ["--memory", "{missing}"], 1, "missing"),
        ("model", ["--memory", "/dev/null"], 2, "a memory must be a file"),
        ("model", ["{missing}"], 1, "missing"),
        ("model", ["-o", "{missing}/out.txt"], 1, "cannot be written"),
        (
            "missing",
            ["-o", "{missing}/out.txt"],
            1,
            "cannot be written",
        ),  # told before the model is loaded
        ("missing", ["-o", "{index}"], 1, "cannot be written: Is a directory"),
        ("missing", ["-o", ""], 1, "cannot be written: Is a directory"),
        ("index", [], 1, "no model folder"),
        ("missing", [], 1, "no model folder"),
    ],
)
def test_what_is_wrong_is_one_line(
    folder: Path,
    model: str,
    arguments: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "empty").touch()
    written = {
        "long": "x\n" * 6,
        "blank": "x\ny\n",
        "unseen": "\u200b\n",
        "other.tsv": "en\tfr\nRepealed.\tAbrogé.\nNot there\tRien\n",
    }
    for name, content in written.items():
        (folder / name).write_text(content, encoding="utf-8")
    names = {
        name.split(".")[0]: str(folder / name)
        for name in ("index", "missing", "empty", "out", *written)
    }
    assert (
        translate(
            folder, str(folder / "input.txt"), *(a.format(**names) for a in arguments), model=model
        )
        == code
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_memory_at_an_address_translates_as_the_same_in_a_folder(
    folder: Path, server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    address = server.address("translate")
    build_elastic(address, segments(), "en", "fr")
    said = []
    for memory in (str(folder / "index"), str(address)):
        assert translate(folder, str(folder / "input.txt"), "--memory", memory, "--json") == 0
        said.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    exact = [[(line["tgt"], line["matches"], line["origin"]) for line in lines] for lines in said]
    assert exact[0] == exact[1] and any(line["matches"] for line in said[0])
    # keys are kept beside a folder, in fewer bits than they have where they are computed
    scores = [[line["score"] for line in lines] for lines in said]
    assert scores[0] == pytest.approx(scores[1], abs=0.01)


def test_damaged_input_is_counted_and_translated_as_well_as_can_be(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    long = " ".join(src for src, _ in PAIRS * 4)
    path = tmp_path / "damaged.txt"
    path.write_bytes(
        f"{long}\nnul \0 and form feed \f here\nline\u2028separator\n".encode()
        + b"\xe9t\xe9\n\r\nlast"
    )
    assert translate(folder, str(path)) == 0
    captured = capsys.readouterr()
    assert len(captured.out.split("\n")) == 7 and captured.out.endswith("\n")
    assert "1 segment had more than 40 subwords" in captured.err
    assert "1 line had bytes that are not UTF-8" in captured.err + caplog.text
    assert "1 line had NUL bytes" in captured.err + caplog.text
    assert "segment had control" not in captured.err  # once is enough


@pytest.mark.parametrize(
    "arguments",
    [
        ("--model", "model"),
        ("--model", "model", "--remember", "own", "--cache", "9"),
        ("--memory", "index"),
    ],
)
def test_a_line_that_comes_alone_is_answered_before_the_next_one_comes(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tmnmt",
            "translate",
            arguments[0],
            str(folder / arguments[1]),
            *arguments[2:],
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert process.stdin is not None and process.stdout is not None
    for line in ("Repealed.\n", "\n", "It shall apply.\n"):
        process.stdin.write(line)
        assert process.stdout.readline().endswith("\n")  # would be waited for without end
    assert process.communicate(timeout=120)[0] == "" and process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "together"), [((), 30), (("--remember", "own", "--cache", "9"), 1)]
)
def test_lines_that_have_come_are_translated_together_and_as_from_a_file(
    folder: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    together: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = tmp_path / "text"
    text.write_text("Repealed.\nThe Council shall act.\n\nIt shall apply.\n" * 10)
    batches, whole = list[int](), Pipeline.translate

    def counting(self: Pipeline, batch: Sequence[Piece], *given: Any) -> Any:
        batches.append(len(batch))
        return whole(self, batch, *given)

    monkeypatch.setattr(Pipeline, "translate", counting)
    assert translate(folder, str(text), *arguments, "--batch", "40") == 0
    expected = capsys.readouterr().out
    batches.clear()
    read, write = os.pipe()
    os.write(write, text.read_bytes())
    os.close(write)
    with os.fdopen(read) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert translate(folder, *arguments, "--batch", "40") == 0
    assert capsys.readouterr().out == expected and max(batches) == together


@pytest.mark.parametrize(
    ("lines", "piped", "arguments", "used"),
    [
        (3, False, (), {1}),
        (40, False, (), {3}),
        (3, False, ("--threads", "2"), {2}),
        (3, True, (), {1}),
        (40, True, (), {3}),
        (3, True, ("--threads", "2"), {2}),
    ],
)
def test_few_lines_are_translated_by_one_thread_and_many_by_all(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: int,
    piped: bool,
    arguments: tuple[str, ...],
    used: set[int],
) -> None:
    text, threads, whole = tmp_path / "text", set[int](), Pipeline.translate

    def counting(self: Pipeline, *given: Any) -> Any:
        threads.add(torch.get_num_threads())
        return whole(self, *given)

    monkeypatch.setattr(Pipeline, "translate", counting)
    text.write_text("Repealed.\n" * lines)
    torch.set_num_threads(3)
    try:
        command = ["translate", "--model", str(folder / "model"), "--beam", "1", *arguments]
        with subprocess.Popen(["cat", str(text)], stdout=subprocess.PIPE, text=True) as cat:
            assert cat.stdout is not None and cat.wait() == 0  # all is in the pipe
            monkeypatch.setattr(sys, "stdin", cat.stdout)
            assert run(command if piped else [*command, str(text)]) == 0
        assert threads == used and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)


def test_interrupted_it_keeps_what_was_finished(folder: Path) -> None:
    program = "from tmnmt.cli import main; main()"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            program,
            "translate",
            "--model",
            str(folder / "model"),
            "--batch",
            "2",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(b"Repealed.\n\n" * 40)
    process.stdin.flush()
    assert process.stdout.readline().strip()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Traceback" not in err and b"interrupted" in err


@pytest.mark.parametrize(
    ("batches", "lines", "told"),
    [(0, 0, "nothing was finished"), (4, 8, "what was finished is in the output")],
)
def test_interrupted_a_long_first_line_holds_back_few_others(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    batches: int,
    lines: int,
    told: str,
) -> None:
    whole, left = Pipeline.translate, iter(range(batches))

    def stopped(self: Pipeline, *given: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return whole(self, *given)

    monkeypatch.setattr(Pipeline, "translate", stopped)
    (tmp_path / "in").write_text("It shall apply from 1 January 1996.\n" + "Repealed.\n" * 15)
    assert translate(folder, str(tmp_path / "in"), "--batch", "2") == 130
    out, err = capsys.readouterr()
    assert out.count("\n") == lines and err == f"interrupted: {told}\n"


def test_progress_counts_what_waits_for_a_line_before_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, whole, seen = list[int](), Pipeline.translate, list[int]()

    def advance(self: Progress, n: int = 1, share: float | None = None) -> None:
        done.append(n)

    def batch(self: Pipeline, *given: Any) -> Any:
        seen.append(sum(done))
        return whole(self, *given)

    monkeypatch.setattr(Progress, "advance", advance)
    monkeypatch.setattr(Pipeline, "translate", batch)
    (tmp_path / "in").write_text("It shall apply from 1 January 1996.\nRepealed.\n\nRepealed.\n")
    assert translate(folder, str(tmp_path / "in"), "--batch", "1", "-o", str(tmp_path / "out")) == 0
    assert seen == [1, 2, 3] and sum(done) == 4  # the blank one first, the long one last


def test_numbers_that_a_translation_lacks_are_told_and_those_of_a_memory_not(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = [
        Translation("No number.", "Aucun.", 0.0, origin="model"),
        Translation(
            "The fee is $1,250.00 CAD.", "Le droit est de 1 450,00 $.", 0.0, origin="model"
        ),
        Translation("It was 1997.", "C'était ainsi.", 0.0, origin="memory"),
        Translation("Section 3", "Article 3", 0.0, origin="model"),
        Translation("Section 4", "Article 5", 0.0, origin="model"),
    ]
    monkeypatch.setattr(Translator, "stream", lambda *_, **__: iter(said))
    assert translate(folder, str(folder / "input.txt"), "--json") == 0
    out, err = capsys.readouterr()
    assert [record["missing_numbers"] for record in records(out)] == [
        [],
        ["1,250.00"],
        [],
        [],
        ["4"],
    ]
    assert err == (
        "tmnmt: warning: 2 translations lack a number of the source, or write it otherwise; "
        "check lines 2, 5\n"
    )


def test_what_the_checks_find_is_told_and_counted_of_a_memory_placeholders_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = Code(2, "placeholder", "%s", covers=2)
    said = [
        Translation("a %s", "b %s", 0.0, origin="model", src_codes=(code,), tgt_codes=(code,)),
        Translation("a %s", "b", 0.0, origin="model"),
        Translation("a %s", "b très très très", 0.0, origin="memory"),
        Translation("a {b}", "b très très très", 0.0, origin="model"),
    ]
    monkeypatch.setattr(Translator, "stream", lambda *_, **__: iter(said))
    assert translate(folder, str(folder / "input.txt"), "--json") == 0
    out, err = capsys.readouterr()
    assert [record["checks"] for record in records(out)] == [
        [],
        [{"name": "placeholders", "what": "lost: %s"}],
        [{"name": "placeholders", "what": "lost: %s"}],
        [
            {"name": "placeholders", "what": "lost: {b}"},
            {"name": "repeated", "what": "très"},
        ],
    ]
    codes = [[record.get(f"{side}_codes") for side in ("src", "tgt")] for record in records(out)]
    assert codes == [[[[2, "p", "%s", "", "", 2]]] * 2, *[[None, None]] * 3]
    assert err == (
        "tmnmt: warning: translations that have other placeholders than the source: 3; check "
        "lines 2, 3, 4\n"
        "tmnmt: warning: translations that repeat words: 1; check line 4\n"
    )


def test_an_output_that_is_no_regular_file_is_written_to_and_a_link_stays(
    folder: Path, tmp_path: Path
) -> None:
    path = str(folder / "input.txt")
    out = tmp_path / "out"
    link = tmp_path / "link"
    fifo = tmp_path / "fifo"
    link.symlink_to(out)
    assert translate(folder, path, "-o", str(link)) == 0
    assert link.is_symlink() and out.read_text().count("\n") == TEXT.count("\n")
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE, text=True)
    assert translate(folder, path, "-o", str(fifo)) == 0
    assert reader.communicate(timeout=10)[0] == out.read_text() and fifo.is_fifo()
    assert sorted(tmp_path.iterdir()) == [fifo, link, out]


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt(), MemoryIndexError("row 7 is damaged"), OSError(28, "full")]
)
def test_stopped_with_an_output_file_it_keeps_what_was_finished_beside_it(
    stop: BaseException,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stream(self: Translator, *_: object, **__: object) -> Iterator[Translation]:
        yield Translation("Repealed.", "Abroge.", 0.0)
        raise stop

    monkeypatch.setattr(Translator, "stream", stream)
    out = tmp_path / "out"
    assert translate(folder, str(folder / "input.txt"), "-o", str(out)) == (
        130 if isinstance(stop, KeyboardInterrupt) else 1
    )
    assert not out.exists() and (tmp_path / "out.partial").read_text() == "Abroge.\n"
    err = capsys.readouterr().err
    assert str(stop.args[-1] if stop.args else "interrupted") in err and err.endswith(
        "out.partial\n"
    )


def test_an_output_that_is_whole_takes_away_what_was_left_of_an_interrupted_one(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, partial, text = tmp_path / "out", tmp_path / "out.partial", str(folder / "input.txt")
    partial.write_text("Abroge.\n")
    assert translate(folder, text, "-o", str(out / "none")) == 1 and partial.exists()
    assert translate(folder, str(partial), "-o", str(out)) == 2 and partial.exists()
    assert f"{partial} would be written over the input {partial}" in capsys.readouterr().err
    assert translate(folder, text, "-o", str(out)) == 0
    assert [*tmp_path.iterdir()] == [out]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_stopped_by_a_signal_it_leaves_what_an_interruption_leaves(
    folder: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "in").write_text("Repealed.\n\n" * 5000)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tmnmt",
            "translate",
            "--model",
            str(folder / "model"),
            "--batch",
            "1",
            "-o",
            str(tmp_path / "out"),
            str(tmp_path / "in"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        # not measured: an exception out of a signal may leave coverage's own lock taken, and then
        # nothing ends
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
    )
    while not any(file.stat().st_size for file in tmp_path.glob(".out.*")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert "out.partial" in process.communicate(timeout=120)[1] and process.returncode == code
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "out.partial"]


@pytest.mark.parametrize("option", ["-o", "--explain-html"])
def test_nothing_is_written_over_the_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    text, soft, hard = (tmp_path / name for name in ("text", "soft", "hard"))
    text.write_text("Yes.\n", encoding="utf-8")
    soft.symlink_to(text)
    hard.hardlink_to(text)
    for read, written in ((text, text), (text, soft), (soft, text), (hard, text)):
        assert (
            translate(tmp_path, str(read), option, str(written), model="none") == 2
        )  # before the model is looked for
        assert f"{written} would be written over the input {read}\n" in capsys.readouterr().err
    assert text.read_text(encoding="utf-8") == "Yes.\n" and len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("option", ["-o", "--explain-html"])
def test_nothing_is_written_over_a_memory_or_into_an_index(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    memory, index, text = tmp_path / "memory.tsv", tmp_path / "index", tmp_path / "text"
    memory.write_text("en\tfr\nYes.\tOui.\n", encoding="utf-8")
    text.write_text("Yes.\n", encoding="utf-8")
    build(index, segments(), "en", "fr")
    before = (index / "manifest.json").read_bytes()
    for name, target in ((memory, memory), (index, index / "manifest.json")):
        assert translate(folder, "--memory", str(name), option, str(target), str(text)) == 2
        assert f"would be written over {name}" in capsys.readouterr().err
    assert (
        memory.read_text(encoding="utf-8").startswith("en")
        and (index / "manifest.json").read_bytes() == before
    )
