"""`tmnmt evaluate prepare`: whole documents kept out, no source of them where it may not be, every
pair counted."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import pytest
from full_disk import files_of_at_most
from jrc_files import publish, tei
from leaks import leaks
from places import JRC

from tmnmt.cli import run
from tmnmt.eval.data import prepare as module
from tmnmt.eval.data.editions import find_edition
from tmnmt.formats import read_memory, write_tsv
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, normalise
from tmnmt.training.config import CorpusConfig, DataConfig
from tmnmt.training.data import load_corpora

LANGUAGES = ("--src-lang", "en", "--tgt-lang", "fr")
LONG = "word " * 90


class Planted:
    """Real documents with lists of dev and test, and one more for training that holds their sources
    again."""

    def __init__(self, folder: Path) -> None:
        texts = list(read_memory(JRC, "en", "fr"))
        documents = list(dict.fromkeys(segment.document for segment in texts))
        self.lists = {"dev": documents[3:5], "test": documents[8:10]}
        self.held = [s for s in texts if s.document in self.lists["dev"] + self.lists["test"]]
        self.test = [s for s in texts if s.document in self.lists["test"]]
        again = [Segment(f" {s.src} ", "copie", "planted", at) for at, s in enumerate(self.held)]
        near = [Segment(f"{s.src} Also", "presque", "near", at) for at, s in enumerate(self.test)]
        long = [Segment(LONG, LONG, name, 10_000) for name in (self.lists["test"][0], documents[0])]
        odd = [Segment("one two three", "un " * 20, documents[0], 10_001)]
        self.test.append(long[0])
        self.memory = folder / "my.tsv.gz"
        write_tsv(self.memory, texts + again + near + long + odd)
        (folder / "lists").mkdir()
        for kind, names in self.lists.items():
            (folder / "lists" / f"{kind}.txt").write_text("".join(f"{name}\n" for name in names))
        self.folder, self.read = folder, len(texts) + len(again) + len(near) + len(long) + len(odd)

    def prepare(self, out: str, *options: str) -> tuple[Path, dict[str, Any]]:
        folder = self.folder / out
        lists = ("--splits", str(self.folder / "lists"))
        assert (
            run(
                [
                    "evaluate",
                    "prepare",
                    str(self.memory),
                    *LANGUAGES,
                    "--out",
                    str(folder),
                    *lists,
                    *options,
                ]
            )
            == 0
        )
        return folder, json.loads((folder / "manifest.json").read_text())


def sources(folder: Path, part: str) -> list[str]:
    return [segment.src for segment in read_memory(folder / f"{part}.tsv.gz", "en", "fr")]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def research(planted: Planted) -> tuple[Path, dict[str, Any]]:
    return planted.prepare("research")


@pytest.fixture(scope="module")
def translator(planted: Planted) -> tuple[Path, dict[str, Any]]:
    return planted.prepare("translator", "--regime", "translator")


Prepared = tuple[Path, dict[str, Any]]


def test_dev_and_test_are_the_listed_documents_whole_and_unfiltered(
    planted: Planted, research: Prepared
) -> None:
    folder, manifest = research
    test = list(read_memory(folder / "test.tsv.gz", "en", "fr"))
    texts = [(s.src, s.tgt, s.document, s.position) for s in test]
    assert texts == [(s.src.strip(), s.tgt.strip(), s.document, s.position) for s in planted.test]
    assert (folder / "dev.txt").read_text().split() == sorted(planted.lists["dev"])
    assert manifest["split"]["test"] == {"documents": 2, "segments": len(test)}


def test_research_leaves_no_source_of_dev_or_test_in_training_or_memory(
    planted: Planted, research: Prepared
) -> None:
    folder, manifest = research
    held = sources(folder, "dev") + sources(folder, "test")
    assert leaks(held, sources(folder, "train")) == leaks(held, sources(folder, "memory")) == []
    assert manifest["memory"]["dropped"]["source in dev or test"] >= len(planted.held) + 1
    assert manifest["also_in_memory"]["test"]["exact"] == 0


def test_a_translator_keeps_exact_matches_in_the_memory_but_never_trains_on_them(
    research: Prepared, translator: Prepared
) -> None:
    folder, manifest = translator
    test, train = sources(folder, "test"), sources(folder, "train")
    assert leaks(test, train) == [] and train == sources(research[0], "train")
    found = leaks(test, sources(folder, "memory"))
    assert [leak.number for leak in found] == list(range(1, len(test) + 1))
    assert manifest["also_in_memory"]["test"]["exact"] == len(test)
    assert manifest["memory"]["dropped"] == {"source in dev or test": 0}


def test_near_duplicates_are_counted_as_brute_force_counts_them(research: Prepared) -> None:
    folder, manifest = research
    memory = [match_tokens(src) for src in {normalise(src) for src in sources(folder, "memory")}]
    for kind in ("dev", "test"):
        near = 0
        for src in sources(folder, kind):
            tokens = match_tokens(src)
            close = (
                other
                for other in memory
                if abs(len(other) - len(tokens)) <= 0.05 * max(len(other), len(tokens))
            )
            near += any(0.95 <= fuzzy_score(tokens, other) < 1 for other in close)
        assert manifest["also_in_memory"][kind]["near"] == near
    assert manifest["also_in_memory"]["test"]["near"] > 20


def test_every_pair_is_counted_once(planted: Planted, research: Prepared) -> None:
    folder, manifest = research
    read = manifest["read"]
    assert read["units"] == read["kept"] + sum(read["dropped"].values()) == planted.read
    assert read["kept"] == manifest["train"]["read"] + sum(
        one["segments"] for one in manifest["split"].values()
    )
    for part in ("train", "memory"):
        counts = manifest[part]
        assert counts["read"] == counts["kept"] + sum(counts["dropped"].values())
        assert counts["kept"] == len(sources(folder, part))
    assert manifest["train"]["dropped"]["ratio over 2"] >= 1


def test_training_pairs_are_no_longer_than_asked_for_and_stand_there_once(
    research: Prepared,
) -> None:
    pairs = [(s.src, s.tgt) for s in read_memory(research[0] / "train.tsv.gz", "en", "fr")]
    assert len(set(pairs)) == len(pairs)
    assert all(len(match_tokens(text)) <= 80 for pair in pairs for text in pair)
    assert any(len(match_tokens(src)) > 80 for src in sources(research[0], "memory"))


def test_the_manifest_has_the_sha256_of_every_file_and_the_same_input_gives_the_same_bytes(
    planted: Planted, research: Prepared, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, manifest = research
    capsys.readouterr()
    again, repeated = planted.prepare("again", "--json")
    assert json.loads(capsys.readouterr().out) == repeated == manifest
    assert sorted(path.name for path in again.iterdir()) == sorted(
        [*(one["file"] for one in manifest["outputs"]), "manifest.json"]
    )
    for one in manifest["outputs"]:
        assert one["sha256"] == hashlib.sha256((folder / one["file"]).read_bytes()).hexdigest()
    read = [planted.memory, *(planted.folder / "lists" / f"{kind}.txt" for kind in ("dev", "test"))]
    assert [one["file"] for one in manifest["inputs"]] == list(map(str, read))


def test_the_acquis_as_published_is_split_as_its_texts_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts: dict[str, dict[str, tuple[str, str]]] = {}
    for segment in read_memory(JRC, "en", "fr"):
        numbered = texts.setdefault(segment.document.removeprefix("jrc"), {})
        numbered[str(len(numbered) + 1)] = escape(segment.src), escape(segment.tgt)
    links = {celex: [("1:1", f"{n};{n}") for n in numbered] for celex, numbered in texts.items()}
    links[next(iter(links))] += [("1:0", "1;"), ("1:1", "1;999")]
    sides = [
        [
            tei(celex, lang, {n: pair[side] for n, pair in numbered.items()})
            for celex, numbered in texts.items()
        ]
        for side, lang in enumerate(("en", "fr"))
    ]
    publish(tmp_path, links, {"en": sides[0], "fr": sides[1]})
    options = [*LANGUAGES, "--segments", "100", "--out"]
    assert (
        run(
            [
                "evaluate",
                "prepare",
                "jrc-acquis",
                "--from",
                str(tmp_path),
                *options,
                str(tmp_path / "a"),
            ]
        )
        == 0
    )
    told = capsys.readouterr().out
    assert (
        run(
            [
                "evaluate",
                "prepare",
                str(JRC),
                "--by",
                "document",
                *options,
                str(tmp_path / "b"),
            ]
        )
        == 0
    )
    for part in ("train", "memory", "dev", "test"):
        assert sources(tmp_path / "a", part) == sources(tmp_path / "b", part) != []
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    count, read = sum(map(len, texts.values())), manifest["read"]
    assert (read["links"], read["1-1"], read["kept"]) == (count + 2, count + 1, count)
    assert f"links {count + 2:,}, 1-1 {count + 1:,}; dropped: duplicate 0, empty 1" in told
    assert [Path(one["file"]).name for one in manifest["inputs"]] == [
        "jrc-en-fr.xml.gz",
        "jrc-en.tgz",
        "jrc-fr.tgz",
    ]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["jrc-en-fr.tmx", "jrc-fr-en.xml.gz"], "jrc-fr-en.xml.gz"),
        (["jrc-en-fr.xml.gz", "jrc-en-fr_withText.xml"], "jrc-en-fr_withText.xml"),
        (["fr-en.tmx.gz", "jrc-de-fr.xml"], "fr-en.tmx.gz"),
        (
            ["JRC-Acquis.en-fr.fr.gz", "JRC-Acquis.en-fr.en.gz", "JRC-Acquis.en-fr.ids"],
            "JRC-Acquis.en-fr",
        ),
        (["en-fr.txt.zip"], "en-fr.txt.zip"),
    ],
)
def test_an_edition_is_found_by_its_name(tmp_path: Path, files: list[str], found: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert find_edition(tmp_path, "en", "fr") == tmp_path / found


def prepared_badly(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """What is said, on one line, when preparing ends with `code`."""
    assert run(["evaluate", "prepare", *arguments, *LANGUAGES]) == code
    errors = [
        line for line in capsys.readouterr().err.splitlines() if line.startswith("tmnmt: error:")
    ]
    assert len(errors) == 1
    return errors[0]


def test_two_documents_with_one_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one.tsv", "two.tsv"):
        (tmp_path / name).write_text(
            "doc\tpos\ten\tfr\n" + "".join(f"d\t{n}\t{name} {n}\tx\n" for n in range(9))
        )
    files = str(tmp_path / "one.tsv"), str(tmp_path / "two.tsv")
    said = prepared_badly(capsys, 1, *files, "--out", str(tmp_path / "new" / "newer" / "out"))
    assert "two documents with one id: 'd' has its position 0 again in two.tsv" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tsv", "two.tsv"]


def test_paragraphs_of_one_number_and_documents_that_come_in_pieces_are_no_two_documents(
    tmp_path: Path,
) -> None:
    rows = [(f"d{n // 5 % 20}", n // 2, f"text {n}", f"texte {n}") for n in range(200)]
    rows += [("d3", 500 + n, f"more {n}", f"plus {n}") for n in range(9)]
    lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "m.tsv").write_text("doc\tpos\ten\tfr\n" + lines)
    out = tmp_path / "out"
    assert (
        run(
            [
                "evaluate",
                "prepare",
                str(tmp_path / "m.tsv"),
                *LANGUAGES,
                "--segments",
                "20",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    for kind in ("dev", "test"):
        names = (out / f"{kind}.txt").read_text().split()
        assert sources(out, kind) == [src for name, _, src, _ in rows if name in names]


def test_absent_files_are_all_listed_and_wrong_languages_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert "no such file: a.tmx, b.tsv; allowed" in prepared_badly(
        capsys, 1, "a.tmx", str(JRC), "b.tsv", *out
    )
    assert "needs --from" in prepared_badly(capsys, 2, "jrc-acquis", *out)
    assert "--from goes with jrc-acquis" in prepared_badly(capsys, 2, str(JRC), "--from", ".", *out)
    said = prepared_badly(capsys, 1, "jrc-acquis", "--from", str(tmp_path), *out)
    assert "jrc-en-fr.xml" in said and "jrc-fr-en.tmx" in said and "JRC-Acquis.en-fr" in said
    assert (
        run(
            [
                "evaluate",
                "prepare",
                "jrc-acquis",
                "--from",
                ".",
                "--src-lang",
                "en",
                "--tgt-lang",
                "zh",
                *out,
            ]
        )
        == 2
    )
    assert "has no 'zh'; it has bg, cs," in capsys.readouterr().err
    assert run(["evaluate", "prepare", str(JRC), "--src-lang", "en", "--tgt-lang", "de", *out]) == 1
    assert "names no column for de" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_in_the_way_is_left_alone(
    planted: Planted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = str(planted.memory), "--out", str(tmp_path / "out")
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "thesis.doc").touch()
    assert "it holds thesis.doc" in prepared_badly(capsys, 2, *arguments)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    assert "is there already; give a folder that is new or empty" in prepared_badly(
        capsys, 2, *arguments
    )
    assert (tmp_path / "out" / "mine").exists() and (
        tmp_path / "out.partial" / "thesis.doc"
    ).exists()


@pytest.mark.parametrize("size", [4096, 60_000, 250_000])
def test_a_full_disk_leaves_nothing(
    planted: Planted, tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    out = tmp_path / "out"
    with files_of_at_most(size):
        said = prepared_badly(
            capsys, 1, str(planted.memory), "--segments", "100", "--out", str(out)
        )
    assert "written" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["build", "fresh_split", "write_tsv"])
def test_ctrl_c_leaves_nothing(
    planted: Planted,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, interrupted)
    out = tmp_path / "out"
    assert (
        run(
            [
                "evaluate",
                "prepare",
                str(planted.memory),
                *LANGUAGES,
                "--segments",
                "100",
                "--out",
                str(out),
            ]
        )
        == 130
    )
    assert "was not made; run it again" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from tmnmt.eval.data import prepare
prepare._overlap = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
from tmnmt.cli import run
run(sys.argv[1:])
"""


def test_after_a_kill_there_is_nothing_half_and_the_next_run_clears_up(
    planted: Planted, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = [
        "evaluate",
        "prepare",
        str(planted.memory),
        *LANGUAGES,
        "--segments",
        "100",
        "--out",
        str(out),
    ]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["out.partial"]
    assert run(arguments) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert len(sources(out, "test")) >= 95


def test_a_memory_without_documents_is_split_by_stretches_that_training_finds_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = tmp_path / "my.tsv"
    lines = (f"Rule {n} of {n * 7} holds.\tLa règle {n} de {n * 7} vaut.\n" for n in range(1000))
    memory.write_text("en\tfr\n" + "".join(lines), encoding="utf-8")
    out = tmp_path / "out"
    command = ["evaluate", "prepare", str(memory), *LANGUAGES, "--out", str(out)]
    assert run([*command, "--segments", "80"]) == 0
    assert "stretches of 20 segments are kept out instead" in capsys.readouterr().out
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["stretch"] == 20 and manifest["memory"]["kept"] == 840
    test = list(read_memory(out / "test.tsv.gz", "en", "fr"))
    assert len(test) == manifest["split"]["test"]["segments"] == 80
    places = [int(segment.src.split()[1]) for segment in test]
    names = {f"my {at // 20 * 20 + 1}-{at // 20 * 20 + 20}" for at in places}
    assert {segment.document for segment in test} == names
    lists = {kind: str(out / f"{kind}.txt") for kind in ("dev", "test")}
    corpus = CorpusConfig("my", (str(memory),), **lists)
    corpora = load_corpora(DataConfig((corpus,)))
    assert [s.src for part in corpora.test for s in part] == [s.src for s in test]
    kept = [s.src for part in corpora.train for s in part]
    assert kept == sources(out, "memory")
