"""`tmnmt build-index` and `tmnmt search` as a user runs them; memory files by their path."""

from __future__ import annotations

import io
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from places import JRC

from tmnmt.cli import run
from tmnmt.cli.explanation import explained
from tmnmt.cli.matches import COVERED, coverage_lines, diff, printer
from tmnmt.cli.search import QUERIES_A_BATCH, answer_lines
from tmnmt.errors import FormatError, ServerError
from tmnmt.index.embedded import build as embedded_build
from tmnmt.index.opening import cache_dir, open_memory
from tmnmt.index.select import Coverage
from tmnmt.segments import Match, Segment, Token, Translation

NO_TOKEN = Token("", "", 0.0, 0.0, 0.0)

LANGUAGES = ["--src-lang", "en", "--tgt-lang", "fr"]


def in_memory(content: bytes) -> io.BufferedReader:
    """A stream of these bytes, which is no pipe."""
    return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(content)))


@pytest.fixture
def index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = str(tmp_path / "index")
    assert run(["build-index", str(JRC), "--index", path, *LANGUAGES]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "kept 1,997" in err and f"{path}: 1,997 segments" in err
    return path


def _type(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BufferedReader(cast(io.RawIOBase, io.BytesIO(text))))
    )


def test_matches_are_shown_with_score_texts_and_document(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["search", "--index", index, "-k", "1", "Article 1 bis"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines] == [
        "Article 1 bis",
        "0.667  66 %  #8  jrc31962L2005  (35 times)",
        "Article 1",
        "Article premier",
    ]


def test_every_line_of_stdin_gets_one_line_of_json(
    index: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _type(
        monkeypatch,
        "Article 1\n\nnothing that is like\u2028it\r\nArticle é\xff".encode() + b"\xfe\n",
    )
    assert run(["search", "--index", index, "--json", "-k", "2"]) == 0
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.split("\n")[:-1]]
    assert [record["query"] for record in records] == [
        "Article 1",
        "",
        "nothing that is like\u2028it",
        "Article éÿ\ufffd",
    ]
    assert records[0]["matches"][0] == {
        "id": 8,
        "src": "Article 1",
        "tgt": "Article premier",
        "score": 1.0,
        "document": "jrc31962L2005",
        "worth": 100,
        "reasons": {},
        "times": 35,
    }
    assert len(records[0]["matches"]) == 2 and records[1]["matches"] == []
    assert "1 line had bytes that are not UTF-8" in err


class _Typed(io.RawIOBase):
    """One line at a time, as somebody types it; what had been answered by then goes to
    `answered`."""

    def __init__(self, lines: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
        self._lines, self._capsys, self.answered = lines, capsys, list[str]()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self.answered.append(self._capsys.readouterr().out)
        line = self._lines.pop(0) if self._lines else b""
        buffer[: len(line)] = line
        return len(line)


def test_a_line_is_answered_before_the_next_is_waited_for(
    index: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = _Typed([b"Article 1\n", b"Article 2\nArt", b"icle 3\n"], capsys)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(typed)))
    assert run(["search", "--index", index, "--json", "-k", "1"]) == 0
    queries = [[json.loads(line)["query"] for line in out.splitlines()] for out in typed.answered]
    assert queries[:4] == [[], ["Article 1"], ["Article 2"], ["Article 3"]]


def test_what_has_come_is_answered_in_batches() -> None:
    batches: list[int] = []
    stream = in_memory(b"a line\n" * 2 * QUERIES_A_BATCH + b"the last")
    answer_lines(stream, lambda queries: batches.append(len(queries)))
    assert batches == [QUERIES_A_BATCH, QUERIES_A_BATCH, 1]


def test_an_error_while_lines_are_answered_ends_the_reading() -> None:
    def answer(queries: object) -> None:
        raise ServerError("away")

    with pytest.raises(ServerError, match="away"):
        answer_lines(in_memory(b"one\ntwo\n"), answer)


def test_explain_marks_what_every_pair_covers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        "a b c d e x x x\tONE",
        "a b c d x x x x\tTWO",
        "x x x x e f g x\tTHREE",
        "a b c d e x x x\tONE",
    ]
    (tmp_path / "memory.tsv").write_text("src\ttgt\n" + "\n".join(rows) + "\n")
    index = str(tmp_path / "index")
    assert run(["build-index", str(tmp_path / "memory.tsv"), "--index", index, *LANGUAGES]) == 0
    capsys.readouterr()
    query = ["search", "--index", index, "--threshold", "0.3", "a b c d e f g h"]
    assert run([*query, "--select", "greedy", "--explain"]) == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "a b c d e f g h",
        "0.625  62 %  #1  memory  (2 times)",
        "a b c d e x x x",
        "ONE",
        "worth 62: as the score",
        "covers 5 of 8 tokens: [a b c d e] f g h",
        "new 5: a b c d e",
        "0.375  37 %  #3  memory",
        "x x x x e f g x",
        "THREE",
        "worth 37: as the score",
        "covers 3 of 8 tokens: a b c d [e f g] h",
        "new 2: f g",
    ]
    assert run([*query, "--explain"]) == 0
    assert "nothing new" in capsys.readouterr().out  # topk takes the second too
    assert run([*query, "--select", "walk", "--explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "query": "a b c d e f g h",
        "tokens": ["a", "b", "c", "d", "e", "f", "g", "h"],
        "matches": [
            {
                "id": 1,
                "src": "a b c d e x x x",
                "tgt": "ONE",
                "score": 0.625,
                "document": "memory",
                "worth": 62,
                "reasons": {},
                "times": 2,
                "covered": [0, 1, 2, 3, 4],
                "new": [0, 1, 2, 3, 4],
            },
            {
                "id": 3,
                "src": "x x x x e f g x",
                "tgt": "THREE",
                "score": 0.375,
                "document": "memory",
                "worth": 37,
                "reasons": {},
                "covered": [4, 5, 6],
                "new": [5, 6],
            },
        ],
    }


@pytest.fixture
def pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (tmp_path / "memory.tsv").write_text(
        "src\ttgt\nPage 3 of 12\tPage 3 sur 12\nClose file\tFermer le fichier\n"
    )
    index = str(tmp_path / "index")
    assert run(["build-index", str(tmp_path / "memory.tsv"), "--index", index, *LANGUAGES]) == 0
    capsys.readouterr()
    return ["search", "--index", index]


def test_numbers_and_case_are_put_in_and_said_to_be(
    pages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*pages, "Page 7 of 31", "--explain"]) == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines()][:6] == [
        "Page 7 of 31",
        "0.500  100 %  #1  memory",
        "Page 3 of 12",
        "Page 3 sur 12",
        "→ Page 7 sur 31",
        "worth 100: other numbers, put in",
    ]
    assert run([*pages, "CLOSE FILE.", "--explain", "--json", "--penalty-case", "3"]) == 0
    (match,) = json.loads(capsys.readouterr().out)["matches"]
    assert (match["score"], match["worth"], match["adapted"]) == (0.0, 97, "FERMER LE FICHIER.")
    assert match["reasons"] == {"case": -3, "punctuation": 0}
    assert run([*pages, "CLOSE FILE", "--threshold", "1"]) == 0
    assert "no match of 1 or more" in capsys.readouterr().out


def test_a_date_or_a_domain_that_is_none_is_told(
    pages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*pages, "a", "--older-than", "yesterday"]) == 2
    assert "--older-than is 'yesterday'; it must be a date" in capsys.readouterr().err
    assert run([*pages, "a", "--domain", "law"]) == 2
    assert "--domain is 'law'; it must be NAME=VALUE" in capsys.readouterr().err


def test_alpha_weighs_likeness_to_the_pairs_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "memory.tsv").write_text(
        "src\ttgt\na b c d e x x x\t1\na b c d x x x x\t2\nx x x x x f g x\t3\n"
    )
    index = str(tmp_path / "index")
    assert run(["build-index", str(tmp_path / "memory.tsv"), "--index", index, *LANGUAGES]) == 0
    query = [
        "search",
        "--index",
        index,
        "--threshold",
        "0.2",
        "-k",
        "2",
        "--json",
        "a b c d e f g h",
    ]
    # after the first: 4/8 - 7/8 alpha and 2/8 - 1/8 alpha, equal at alpha 1/3
    for options, targets in (
        (["--alpha", "0"], ["1", "2"]),
        (["--alpha", "0.9"], ["1", "3"]),
        ([], ["1", "2"]),
    ):
        capsys.readouterr()
        assert run([*query, "--select", "contrastive", *options]) == 0
        assert [match["tgt"] for match in json.loads(capsys.readouterr().out)["matches"]] == targets


def test_covered_tokens_are_coloured_on_a_terminal() -> None:
    first, second = coverage_lines(["a", "b", "c", "d"], Coverage((0, 1, 3), (3,)), colour=True)
    for line, words in ((first, ["a b", "d"]), (second, ["d"])):
        assert [
            line.plain[span.start : span.end] for span in line.spans if span.style == COVERED
        ] == words
    assert first.plain == "covers 3 of 4 tokens: a b c d"


def test_by_bleu_the_score_is_bleu(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            [
                "search",
                "--index",
                index,
                "--json",
                "--similarity",
                "bleu",
                "-k",
                "1",
                "Article 1 bis",
            ]
        )
        == 0
    )
    (match,) = json.loads(capsys.readouterr().out)["matches"]
    assert match["src"] == "Article 1" and match["score"] == pytest.approx(
        math.exp(1 - 3 / 2), abs=1e-8
    )


def test_no_match_is_no_error(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "--index", index, "xyz"]) == 0
    said = capsys.readouterr().out
    assert "no match of 0.5 or more; --concordance PHRASE shows where words stand" in said


def test_the_diff_shows_what_either_side_has_alone() -> None:
    shown = diff("The cat,  sat down.", "The old cat sat.")
    marked = [
        (shown.plain[span.start : span.end], span.style) for span in shown.spans if span.style
    ]
    assert marked == [("old", "red strike"), (",", "green"), ("down", "green")]
    assert shown.plain == "The old cat , sat down."
    bare = diff("The cat,  sat down.", "The old cat sat.", colour=False)
    assert bare.plain == "The [-old-] cat {+,+} sat {+down+}." and not any(
        span.style for span in bare.spans
    )


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_without_colour_has_marks_and_either_a_legend(
    no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color) if no_color else monkeypatch.delenv(
        "NO_COLOR", raising=False
    )
    out = _Terminal()
    matches = [Match(Segment("The old cat", "Le vieux chat"), 0.6, 3)]
    show = printer(out, 0.5)
    for _ in range(2):
        show("The cat", matches, [1])
    assert (
        ("[-old-]" in out.getvalue())
        == bool(no_color)
        != ("[31m" in out.getvalue() or "[9;31m" in out.getvalue())
    )
    assert out.getvalue().count("only in the memory") == 1

    out = _Terminal()
    tokens = tuple(
        replace(NO_TOKEN, text=text, origin=origin)
        for text, origin in [("▁le", "memory"), ("▁chat", "model")]
    )
    for _ in range(2):
        explained(out)(Translation("the cat", "le chat", -1.0, (), tokens))
    assert ("[le] chat" in out.getvalue()) == bool(no_color) != ("[32mle" in out.getvalue())
    assert "from the memory" in out.getvalue() and "written:" not in out.getvalue()
    explained(out)(Translation("the <b>cat</b>", "le <b>chat</b>", -1.0, (), tokens))
    assert "  written: le <b>chat</b>" in out.getvalue()


def test_a_build_in_parts_says_that_each_counts_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.build.SEGMENTS_A_WRITE", 2)
    monkeypatch.setattr("tmnmt.index.embedded.new_parts.SEGMENTS_A_PART", 2)
    memory = tmp_path / "m.tsv"
    for count, counted in (
        (2, "1 distinct source, 2 distinct tokens)"),
        (4, "2 distinct sources, 4 distinct tokens; one that is in several of the 2 parts counts "),
    ):
        memory.write_text("en\tfr\n" + "".join(f"a cat\t{n}\n" for n in range(count)))
        index = str(tmp_path / f"of {count}")
        assert run(["build-index", str(memory), "--index", index, *LANGUAGES]) == 0
        assert f"{count} segments ({counted}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("step", "note"),
    [
        ("_build_generation", "is as it was before; the same command goes on"),
        ("remove_leftovers", "is whole all the same"),
    ],
)
def test_an_interruption_says_whether_the_new_index_is_whole(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    note: str,
) -> None:
    index = tmp_path / "m"
    real = getattr(embedded_build, step)

    def interrupted(*arguments: object, **options: object) -> object:
        if step == "_build_generation" or (index / "manifest.json").exists():
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(embedded_build, step, interrupted)
    (tmp_path / "m.tsv").write_text("en\tfr\na\tb\n")
    memory = str(tmp_path / "m.tsv")
    assert run(["build-index", memory, "--index", str(index), *LANGUAGES]) == 130
    assert capsys.readouterr().err.endswith(f"interrupted: {index} {note}\n")
    assert index.exists() == (step == "remove_leftovers")


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (
            ["build-index", "missing.tmx", "--index", "new", *LANGUAGES],
            1,
            "missing.tmx: no such file",
        ),
        (["build-index", str(JRC), "--index", "new", "--src-lang", "en"], 2, "--tgt-lang"),
        (
            [
                "build-index",
                str(JRC),
                "--index",
                "new",
                *LANGUAGES,
                "--columns",
                "src=9,tgt=3",
            ],
            1,
            "src=9",
        ),
        (
            ["build-index", str(JRC), "--index", "new", *LANGUAGES, "--columns", "nonsense"],
            2,
            "nonsense",
        ),
        (["search", "--index", "nowhere", "x"], 1, "nowhere: no such index"),
        (["search", "--index", ".", "x"], 1, "not an index"),
        (["search", "--index", "x", "-k", "0", "x"], 2, "k"),
        (["search", "--index", "x", "--select", "best", "x"], 2, "best"),
        (
            ["search", "--index", "x", "--select", "greedy", "--alpha", "0.2", "x"],
            2,
            "alpha is of select contrastive",
        ),
        (
            ["search", "--index", "x", "--select", "contrastive", "--alpha", "-1", "x"],
            2,
            "it must be at least 0",
        ),
    ],
)
def test_errors_are_one_line(
    arguments: list[str],
    code: int,
    named: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and named in err
    assert list(tmp_path.iterdir()) == []


def test_replacing_an_index_needs_force(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    again = ["build-index", str(JRC), "--index", index, *LANGUAGES]
    assert run(again) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*again, "--force"]) == 0


@pytest.mark.parametrize(
    ("src_lang", "tgt_lang", "named"),
    [
        ("en", "EN", "two languages"),
        ("fr_CA", "fr-ca", "two languages"),
        ("english", "fr", "'english' is no code of a language in ISO 639: write en"),
        ("en", "xx", "'xx' is no code of a language in ISO 639"),
        (" ", "fr", "no code"),
        ("klingon!", "fr", "no code"),
        ("en", "", "no code"),
    ],
)
def test_what_are_not_two_languages_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], src_lang: str, tgt_lang: str, named: str
) -> None:
    arguments = ["--index", str(tmp_path / "index"), "--src-lang", src_lang, "--tgt-lang", tgt_lang]
    assert run(["build-index", str(JRC), *arguments]) == 2
    assert named in capsys.readouterr().err


def test_a_memory_without_a_usable_unit_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.tsv").write_text("src\ttgt\na\t\n\tb\n")
    assert (
        run(
            [
                "build-index",
                str(tmp_path / "empty.tsv"),
                "--index",
                str(tmp_path / "index"),
                *LANGUAGES,
            ]
        )
        == 1
    )
    reason = (
        "nothing to index: 0 of 2 units kept (empty 2): empty.tsv, line 2: no target; "
        "empty.tsv, line 3: no source"
    )
    assert reason in capsys.readouterr().err.replace(f"{tmp_path}/", "")
    assert not (tmp_path / "index").exists()


def test_a_memory_file_is_indexed_once_and_found_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    units: list[int] = []

    def told(read: int, _: float) -> None:
        units.append(read)

    with open_memory(JRC, "en", "fr", told) as memory:
        assert (len(memory), sum(units)) == (1997, 1997)
    (tmp_path / "moved").mkdir()
    moved = Path(shutil.copy(JRC, tmp_path / "moved"))
    with open_memory(moved, "en", "fr", told) as memory:
        assert memory.search(["Article 1"], 1)[0][0].segment.tgt == "Article premier"
    assert sum(units) == 1997
    moved.write_text("en\tfr\none\tun\n")
    with open_memory(moved, "en", "fr", told) as memory:
        assert len(memory) == 1
    assert sum(units) == 1998
    for manifest in cache_dir().rglob("manifest.json"):
        manifest.write_text("{")
    with open_memory(moved, "en", "fr", told) as memory:  # damaged: made again
        assert len(memory) == 1
    with open_memory(Path(index), "en", "fr", told) as memory:
        assert (len(memory), sum(units)) == (1997, 1999)


def test_two_plain_files_are_a_memory_by_their_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "pair.en").write_text("one\ntwo\n")
    (tmp_path / "pair.fr").write_text("un\ndeux\n")
    with open_memory(tmp_path / "pair", "en", "fr") as memory:
        assert memory.search(["two"])[0][0].segment.tgt == "deux"
    with pytest.raises(FormatError, match="no such"):
        open_memory(tmp_path / "absent", "en", "fr")
