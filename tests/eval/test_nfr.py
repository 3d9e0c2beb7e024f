"""Neural fuzzy repair: every training pair as it is, and with its match from other documents."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from places import ROOT
from tiny_model import write_tiny_model

from tmnmt.index import build
from tmnmt.segments import Segment

Run = Callable[..., str]
PAIRS = [  # document, source, target
    ("a", "the court may fine the agency today", "le tribunal peut condamner l'agence"),
    ("a", "the court may fine the agency now", "le tribunal peut la condamner"),
    ("b", "the court may fine the agency soon", "le tribunal condamnera l'agence"),
    ("c", "nobody here is like any of these others", "personne ne leur ressemble ici"),
    ("d", "the court may fine the agency again", "le tribunal recondamne l'agence"),
]


@pytest.fixture
def nfr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str | Path) -> str:
        monkeypatch.setattr("sys.argv", ["nfr", *map(str, arguments)])
        runpy.run_path(str(ROOT / "eval" / "nfr.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_a_pair_stands_once_alone_and_once_with_the_best_match_of_other_documents(
    tmp_path: Path, nfr: Run
) -> None:
    memory = tmp_path / "memory.tsv"
    memory.write_text("".join("\t".join(pair) + "\n" for pair in PAIRS), encoding="utf-8")
    (tmp_path / "dev.txt").write_text("d\n")
    (tmp_path / "test.txt").write_text("")
    config = (ROOT / "eval" / "nfr.toml").read_text(encoding="utf-8")
    config = config.replace("${NFR}/pairs.tsv", str(memory))
    config = config.replace("${NFR}/dev.txt", str(tmp_path / "dev.txt"))
    (tmp_path / "run.toml").write_text(config)
    model = write_tiny_model(tmp_path / "model")
    out = tmp_path / "out"
    said = nfr("train", tmp_path / "run.toml", model, "--out", out)
    assert "train: 4 pairs, 3 of them with a match" in said
    rows = [line.split("\t") for line in (out / "pairs.tsv").read_text().splitlines()]
    learned = {(document, src): tgt for document, src, tgt in rows if document != "d"}
    for document, src, tgt in PAIRS[:4]:
        assert learned[document, src] == tgt
    alone = {src for _, src, _ in PAIRS}
    shown = {src: src.split(" @@@ ") for document, src in learned if src not in alone}
    assert len(shown) == 3
    of_document = {tgt: document for document, _, tgt in PAIRS}
    documents = {src: document for document, src, _ in PAIRS}
    for src, match in shown.values():
        assert of_document[match] not in (documents[src], "d")
    (of_dev,) = [src for document, src, _ in rows if document == "d"]
    assert of_dev.startswith("the court may fine the agency again @@@ le tribunal")


def test_a_source_without_a_match_is_given_alone(tmp_path: Path, nfr: Run) -> None:
    segments = [Segment(src, tgt, document, 0) for document, src, tgt in PAIRS[:1]]
    build(tmp_path / "index", segments, "en", "fr")
    test = tmp_path / "test.tsv"
    test.write_text(f"src\ttgt\n{PAIRS[1][1]}\tx\n{PAIRS[3][1]}\ty\n", encoding="utf-8")
    said = nfr("append", test, "--memory", tmp_path / "index", "--out", tmp_path / "out")
    assert "2 segments, 1 of them with a match" in said
    assert (tmp_path / "out").read_text().splitlines() == [
        f"{PAIRS[1][1]} @@@ {PAIRS[0][2]}",
        PAIRS[3][1],
    ]
