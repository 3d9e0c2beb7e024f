"""Analyses of the session cache: what is counted, what a stopped run keeps, and the files that come
out."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from tiny_model import PAIRS, write_tiny_model

from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.loading import load_layers
from tmnmt.engine.settings import Settings
from tmnmt.errors import DataError, UsageError
from tmnmt.eval.cache.report import TOGETHER, Analysis, Arm, Signs, arms_of
from tmnmt.eval.cache.watch import Watching, classes, frequent_words
from tmnmt.eval.measures.scores import score
from tmnmt.eval.report.inline_svg import ticks
from tmnmt.eval.report.svg import heat_map, line_chart
from tmnmt.models.folder import load_model
from tmnmt.segments import Segment
from tmnmt.trained_layers.cache import CacheKind
from tmnmt.translator import Translator

SEGMENTS = [
    Segment(*PAIRS[(document + i) % len(PAIRS)], f"doc{document}")
    for document in range(TOGETHER + 2)
    for i in range(3)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("report")
    write_tiny_model(folder / "model")
    write_tiny_model(folder / "plain", memories=False)
    rows = ["src\ttgt\tdocument", *(f"{s.src}\t{s.tgt}\t{s.document}" for s in SEGMENTS)]
    (folder / "tiny.test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    single = [f"{row}{number}" for number, row in enumerate(rows[1:])]
    (folder / "single.tsv").write_text("\n".join([rows[0], *single]) + "\n", encoding="utf-8")
    return folder


def analysis(model: Path, runs: Path) -> Analysis:
    loaded = load_model(model)
    memories = load_layers(loaded, "cpu")
    assert memories is not None
    return Analysis(loaded, memories, "tiny", SEGMENTS, Settings(beam=2), runs)


@pytest.mark.parametrize("fusion", ["deep", "shallow"])
def test_what_is_watched_is_what_was_read(tmp_path: Path, fusion: str) -> None:
    folder = write_tiny_model(tmp_path / "model", cache=CacheKind(fusion))  # type: ignore[arg-type]
    model = load_model(folder)
    watching = Watching(
        model, load_layers(model, "cpu"), Settings(cache=4, beam=2, remember="own"), frozenset()
    )
    texts = [src for src, _ in PAIRS[:3]]
    watched = list(watching.stream([texts], explain=True))
    assert watched == list(
        Translator.load(
            folder, options=TranslationOptions(cache=4, remember="own", mode="off", beam=2)
        ).stream([texts], explain=True)
    )
    told = [token.cache_gate + token.recall_gate for one in watched[1:] for token in one.tokens]
    gates = watching.watched.gates.values()
    assert sum(gate.count for gate in gates) == len(told)
    assert sum(gate.total for gate in gates) == pytest.approx(sum(told), abs=1e-4)
    assert sum(mean.total for mean in watching.watched.matching) == pytest.approx(
        len(told), abs=1e-3
    )
    assert [len(watching.watched.matching), watching.watched.matching[0].count] == [4, len(told)]
    matrix = watching.watched.matrix
    assert matrix is not None and matrix.weights.shape == (len(watched[2].tokens), 4)
    torch.testing.assert_close(matrix.weights.sum(1), torch.ones(len(matrix.words)))


def test_the_slots_of_the_matrix_are_the_last_words_written(folder: Path, tmp_path: Path) -> None:
    one = analysis(folder / "model", tmp_path)
    shown = one.view_segment(Arm(4), 3)
    session = Translator.load(
        folder / "model", options=TranslationOptions(cache=4, remember="own", mode="off", beam=2)
    ).session()
    for segment in SEGMENTS[:2]:
        session.translate(segment.src)
    words = [
        int(session.histories["cache"].ids[slot]) for slot in session.histories["cache"].latest
    ]
    assert shown.slots == [one.model.vocab.piece(word) for word in words]
    assert "".join(shown.words).replace("▁", " ").strip() == session.translate(SEGMENTS[2].src).tgt
    with pytest.raises(UsageError, match="segment 4: the first of its document in tiny"):
        one.view_segment(Arm(4), 4)
    with pytest.raises(UsageError, match="tiny has 1 to 30"):
        one.view_segment(Arm(4), 31)


def test_a_run_that_was_stopped_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, arm = analysis(folder / "model", tmp_path), Arm(3)
    whole = one.outcome(arm)
    path = tmp_path / f"{one.digest(arm)}.jsonl"
    first, second = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(first + second[:40], encoding="utf-8")
    done = []
    translated = one._translated
    monkeypatch.setattr(
        one, "_translated", lambda arm, some: done.append(len(some)) or translated(arm, some)
    )
    again = one.outcome(arm)
    assert done == [len(one.documents) - TOGETHER]
    assert (again.lines, again.gates, again.by_segment) == (
        whole.lines,
        whole.gates,
        whole.by_segment,
    )
    assert one.outcome(arm) == again and done == [2]
    assert one.digest(Arm(3, overwrite=False)) != one.digest(arm) != one.digest(Arm(3, best=2))
    record = json.loads(second)
    empty: dict[str, object] = {}
    for wrong in (
        empty,
        5,
        [1],
        record | {"lines": 5},
        record | {"lines": [*record["lines"], "more"]},
        record | {"seconds": 0},
        record | {"seconds": "1"},
        record | {"gates": empty},
        record | {"matching": [1]},
        record | {"format": 1},
        record | {"by_segment": record["by_segment"][1:]},
        json.loads(first),
    ):
        path.write_text(first + json.dumps(wrong) + "\n", encoding="utf-8")
        with pytest.raises(
            DataError, match=r"jsonl, line 2: no results of this command \(.*\); delete the file$"
        ):
            one.outcome(arm)
    for tail, number in ((b"\xff\n", 2), (b"[" * 99999 + b"\n", 2), (second.encode() * 2, 3)):
        path.write_bytes(first.encode() + tail)
        with pytest.raises(DataError, match=f"jsonl, line {number}: no results of this command"):
            one.outcome(arm)


def test_arms_are_sizes_then_variants_at_one_size() -> None:
    assert arms_of([100], 25, 1, True) == [Arm(0), Arm(25), Arm(100), Arm(25, overwrite=False)]
    assert arms_of([0, 5], 5, 3, True) == [Arm(0), Arm(5), Arm(5, overwrite=False), Arm(5, best=3)]
    assert arms_of([], 5, 3, False) == [Arm(0), Arm(5, False), Arm(5), Arm(5, False, best=3)]


def test_the_report_has_numbers_tables_and_plots(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--test",
        str(folder / "tiny.test.tsv"),
        "-o",
        str(tmp_path / "out"),
        "--beam",
        "2",
        "--threads",
        "1",
    ]
    sizes = ["--size", "2", "--size", "30", "--at", "5", "--best", "2"]
    command = ["cache-report", "--model", str(folder / "model"), *arguments, *sizes]
    assert run(command) == 0
    table = list(csv.DictReader(capsys.readouterr().out.splitlines(), delimiter="\t"))
    assert [line["slots"] for line in table] == ["0", "2", "5", "30", "5", "5"]
    assert run([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    tiny = report["tests"]["tiny"]
    assert (tiny["segments"], tiny["documents"], tiny["arms"][0]["sign_test"]) == (30, 10, None)
    for line, arm in zip(table, tiny["arms"], strict=True):
        assert float(line["BLEU"]) == pytest.approx(arm["bleu"], abs=0.005)
        assert arm["words_per_second"] > 0
    assert report["parameters"]["cache"] == 32 * (32 * 3 + 1) + 16 * 32
    with (tmp_path / "out" / "matrix.tiny.tsv").open(encoding="utf-8") as rows:
        lines = list(csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert sum(float(line[1]) for line in lines[1:]) == pytest.approx(1, abs=1e-4)
    for name in ("size", "matching.tiny", "gates.tiny", "matrix.tiny"):
        assert ElementTree.parse(tmp_path / "out" / f"{name}.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "plain"], 2, "plain: this model has no parameters for a session cache"),
        (["--test", "tiny.test.tsv"], 2, "another test set is called tiny already"),
        (["--segment", "4"], 2, "segment 4: the first of its document"),
        (["--best", "3"], 2, "a beam of 2 finds that many at most"),
        (["--test", "missing.tsv"], 1, "missing.tsv"),
        (
            ["--test", "single.tsv"],
            1,
            "single: every document is of one segment, which has no cache to read",
        ),
        (["-o", "tiny.test.tsv"], 2, "tiny.test.tsv: it is no folder"),
        (["-o", "-"], 2, "- is standard output"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    always = [
        "--model",
        "model",
        "--test",
        "tiny.test.tsv",
        "-o",
        str(tmp_path),
        "--beam",
        "2",
        "--at",
        "2",
    ]
    assert run(["cache-report", *always, "--size", "0", "--threads", "1", *arguments]) == code
    assert not list(tmp_path.iterdir())  # before anything is translated
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("tmnmt: error: ") and message in told


def test_classes_follow_words_over_their_subwords() -> None:
    subwords = ["▁L", "'", "art", "icle", "▁2", "▁de", "▁", "«", "loi", "»", "."]
    kinds = {"l": "frequent word", "de": "frequent word"}
    expected = [
        "frequent word",
        "punctuation",
        "other word",
        "other word",
        "number",
        "frequent word",
        "punctuation",
        "punctuation",
        "other word",
        "punctuation",
        "punctuation",
    ]
    assert classes(subwords, set(kinds)) == expected


def test_frequent_words_are_of_letters_and_ties_go_by_the_alphabet() -> None:
    assert frequent_words(["b a 1 1 1 , , ,", "C c b a"], 2) == {"a", "b"}
    assert frequent_words(["b a 1 1 1 , , ,", "C c b a c"], 1) == {"c"}


def test_sign_test_is_by_the_corpus_score_with_one_segment_replaced() -> None:
    references = [
        "the cat sat on the mat today",
        "a dog ran over the green hill",
        "we saw a bird fly",
        "yes , it is so",
    ]
    base = [
        "the cat sat on mat",
        "a dog ran over the green hill",
        "they saw a bird",
        "yes , it is so",
    ]
    ours = [
        "the cat sat on the mat today",
        "a dog walked over the hill",
        "we saw a bird fly",
        "yes , it is so",
    ]
    before, better, worse = score(base, references).bleu, 0, 0
    for i in range(len(base)):
        after = score([*base[:i], ours[i], *base[i + 1 :]], references).bleu
        better, worse = better + (after > before), worse + (after < before)
    found = Signs.compare(base, ours, list("abcd"), references, "en")
    assert (found.better, found.worse) == (better, worse) == (2, 1)
    assert found.p == 1.0 and Signs.compare(base, base, list("abcd"), references, "en").p == 1.0
    again = [[*lines, *lines[:1] * 9] for lines in (base, ours, list("abcd"), references)]
    first, second, third, fourth = again
    found = Signs.compare(first, second, third, fourth, "en")  # one segment ten times
    assert (found.better, found.worse) == (2, 1)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (37.46, 37.53), (-3, 12_345), (5, 5), (0, 0), (1e-7, 3e-7)]
)
def test_ticks_are_round_and_enclose(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 8 and found[0] <= low and found[-1] >= high
    step = found[1] - found[0]
    leading = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert min(abs(leading - round_one) for round_one in (1, 2, 5)) < 1e-6


def test_plots_escape_what_stands_in_them_and_keep_points_inside() -> None:
    chart = ElementTree.fromstring(
        line_chart(
            "a < b", "x & y", "z", ["0", "25", "50"], {"<s>": [1.0, None, 3.0], "short": [2.0]}
        )
    )
    texts = [node.text for node in chart if node.tag.endswith("text")]
    assert {"a < b", "x & y", "z", "<s>", "0", "25"} <= set(texts)
    dots = [node for node in chart if node.tag.endswith("circle")]
    assert len(dots) == 3 and all(
        0 < float(dot.attrib["cy"]) < float(chart.attrib["height"]) for dot in dots
    )
    heat = ElementTree.fromstring(heat_map("t", "x", "y", ["a", "&"], ["<"], [[0.0, 0.5]]))
    opacities = [node.attrib["fill-opacity"] for node in heat if node.tag.endswith("rect")]
    assert opacities == ["0.000", "1.000"]
