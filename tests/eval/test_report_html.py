"""The page of an evaluated run: what stands in it, what cannot break it, and how it behaves in a
browser."""

from __future__ import annotations

import base64
import copy
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import tostring

import lxml.html
import pytest
from browser import Browser
from run_folders import segments, write, write_run

from tmnmt.cli import run
from tmnmt.eval.report.html import in_script, write_report
from tmnmt.eval.report.inline_svg import Series, log_ticks, swatch, ticks
from tmnmt.eval.report.segments import CHUNK, runs

HOSTILE = (
    "</script><script>document.title = 'broken'</script><img src=x "
    "onerror=alert(1)>\u2028'\"&amp; \u202eשלום\u202c"
)


def _metrics(bleu: float, ter: float) -> dict[str, Any]:
    return {
        "BLEU": {
            "score": bleu,
            "low": bleu - 1,
            "high": bleu + 1,
            "signature": "nrefs:1|case:mixed",
        },
        "TER": {"score": ter, "low": None, "high": None, "signature": None},
    }


def _versus(
    metric: str, test: str, difference: float, p_holm: float | None, p: float = 0.001
) -> dict[str, Any]:
    return {
        "test": test,
        "metric": metric,
        "against": "base",
        "difference": difference,
        "p": p,
        "p_holm": p_holm,
    }


def _system(name: str, bleu: float, ter: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "baseline": name == "base", "metrics": _metrics(bleu, ter), **more}


AROUND = {"low": 20.0, "high": 41.0}
GAIN = {"difference": 5.0, "low": 4.0, "high": 6.5}
RANDOMISATION = "approximate randomisation"
REPORT: dict[str, Any] = {
    "format": 1,
    "name": "A run",
    "description": None,
    "made": None,
    "tests": [
        {
            "name": "law",
            "src_lang": "en",
            "tgt_lang": "fr",
            "segments": 3,
            "documents": 1,
            "words": 9,
            "distinct": 2,
            "warnings": ["a fresh split"],
            "bands": [
                {"band": "0-0.5", "segments": 2, "share": 0.75, "words": 6, "word_share": 0.625},
                {"band": "0.5-1", "segments": 1},
            ],
            "systems": [
                _system(
                    "base",
                    40.0,
                    50.0,
                    settings={"K": "0", "mode": "copy", "translations": "a"},
                    by_band=[
                        {"band": "0-0.5", "metrics": {"BLEU": 30.0}, "intervals": {"BLEU": AROUND}},
                        {"band": "0.5-1", "metrics": None},
                    ],
                ),
                _system(
                    "copy",
                    45.0,
                    44.0,
                    settings={"K": "4", "mode": "copy", "translations": "b"},
                    versus=[
                        _versus("BLEU", "paired bootstrap", 5.0, 0.2),
                        _versus("BLEU", RANDOMISATION, 5.0, 0.05),
                        _versus("TER", RANDOMISATION, -6.0, 0.02),
                    ],
                    gain={"BLEU": GAIN},
                    by_band=[
                        {
                            "band": "0-0.5",
                            "metrics": {"BLEU": 31.0},
                            "gain": {"BLEU": {**GAIN, "difference": -0.25}},
                        },
                    ],
                ),
                _system(
                    "fusion",
                    39.0,
                    43.0,
                    settings={"K": 4, "mode": "fusion"},
                    versus=[
                        _versus("BLEU", RANDOMISATION, -1.0, 0.051, p=0.017),
                        _versus("BLEU", "sign test", -1.0, 0.01),
                        _versus("TER", RANDOMISATION, -7.0, 0.2),
                    ],
                ),
            ],
        }
    ],
}


def _segment(number: int, outputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    line = {
        "test": "law",
        "document": "d1",
        "position": number,
        "src": f"source {number}",
        "ref": "la référence",
    }
    return {**line, "band": "0-0.5", "best": None, "systems": outputs, **more}


def _hyp(text: str, bleu: float | None) -> dict[str, Any]:
    return {"hyp": text, "bleu": bleu, "edit_rate": None}


SEGMENTS = [
    _segment(i, {"base": _hyp("la base", 50.0), "copy": _hyp("la copie", 50.0 + i)})
    for i in range(3)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "run", REPORT, SEGMENTS)
    return tmp_path / "run"


def _page(path: Path) -> Any:
    return lxml.html.fromstring(path.read_text(encoding="utf-8"))


def _cells(page: Any, caption: str) -> list[list[str]]:
    rows = page.xpath(f"//table[starts-with(caption, '{caption}')]//tr")
    return [[" ".join(" ".join(cell.itertext()).split()) for cell in row] for row in rows]


def test_the_command_writes_the_page_into_the_run_and_prints_where(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", "report", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert run(["evaluate", "report", str(folder), "-o", str(folder.parent / "page.html")]) == 0
    assert (folder.parent / "page.html").read_bytes() == (folder / "report.html").read_bytes()


def test_the_best_is_bold_and_a_mark_is_by_the_rule_of_the_printed_star(folder: Path) -> None:
    page = _page(write_report(folder))
    rows = _cells(page, "law: scores")
    assert rows[0][:3] == ["System", "BLEU ↑", "TER ↓"]
    assert rows[1][:2] == ["base baseline", "40.00 39.00 to 41.00"]
    assert rows[2][1:3] == [
        "45.00 ▲ significantly better than base 44.00 to 46.00",
        "44.00 ▲ significantly better than base",
    ]
    assert rows[3][1:3] == ["39.00 38.00 to 40.00", "43.00"]
    assert [found.text for found in page.xpath("//strong")] == ["Note: ", "45.00", "43.00"]


def test_marks_and_stars_are_the_same_and_say_their_rule(tmp_path: Path) -> None:
    """A real report: what report.md stars is marked on the page, by p of approximate randomisation
    after Holm."""
    refs = [f"la règle {number} du conseil" for number in range(40)]
    outputs = {
        "base": [f"la règle {number} de conseil" for number in range(40)],
        "better": refs,
        "worse": ["rien"] * 40,
        "equal": [f"la règle {number} d'un conseil" for number in range(40)],
    }
    for name, lines in {"ref": refs, **outputs}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = [
        argument for name in outputs for argument in ("--hyp", f"{name}={tmp_path / name}")
    ]
    out = str(tmp_path / "out")
    assert run(["evaluate", "score", "--ref", str(tmp_path / "ref"), "--out", out, *arguments]) == 0
    table = [
        line.split(" | ")
        for line in (tmp_path / "out/report.md").read_text(encoding="utf-8").splitlines()
    ]
    starred = {
        row[0][2:]: ["*" in cell for cell in row[1:4]] for row in table if row[0][2:] in outputs
    }
    page = _page(tmp_path / "out/report.html")
    rows = {row[0].removesuffix(" baseline"): row[1:4] for row in _cells(page, "ref: scores")[1:]}
    assert {
        name: ["▲" in cell or "▼" in cell for cell in cells] for name, cells in rows.items()
    } == starred
    assert starred["better"] == starred["worse"] == [True] * 3 and starred["base"] == [False] * 3
    rule = "p <= 0.05 by approximate randomisation, corrected by Holm"
    assert rule in (tmp_path / "out/report.md").read_text(encoding="utf-8")
    assert rule in page.xpath("//table/caption")[0].text_content()


def test_a_gain_stands_beside_the_share_of_its_band(folder: Path) -> None:
    rows = _cells(_page(write_report(folder)), "BLEU: gain over base")
    assert rows == [
        ["Best fuzzy match", "Segments", "Words", "copy", "fusion"],
        ["all", "100.0 %", "100.0 %", "+5.00 4.00 to 6.50", "–"],
        ["0-0.5", "75.0 %", "62.5 %", "−0.25 4.00 to 6.50", "–"],
        ["0.5-1", "–", "–", "–", "–"],
    ]
    assert (
        "3 segments · 2 distinct segments · 1 document"
        in _page(folder / "report.html").text_content()
    )


def test_a_band_has_its_interval_where_one_is_known(folder: Path) -> None:
    rows = _cells(_page(write_report(folder)), "BLEU by match band")
    assert [row[2] for row in rows[1:]] == ["30.00 20.00 to 41.00", "–"]


def test_a_worse_system_is_marked_so(folder: Path) -> None:
    report = copy.deepcopy(REPORT)
    report["tests"][0]["systems"][2]["versus"] = [_versus("BLEU", RANDOMISATION, -1.0, 0.04)]
    write(folder, report, SEGMENTS)
    assert (
        "39.00 ▼ significantly worse than base"
        in _cells(_page(write_report(folder)), "law: scores")[3][1]
    )


def test_parameters_and_training_stand_with_the_cost_where_they_are_known(folder: Path) -> None:
    page = _page(write_report(folder))
    assert "Parameters" not in page.text_content()  # as in a report of before
    report = copy.deepcopy(REPORT)
    base, copying, _ = report["tests"][0]["systems"]
    base["cost"] = {"parameters": 8_912_345}
    write(folder, report, SEGMENTS)
    page = _page(write_report(folder))
    assert [row[3:-1] for row in _cells(page, "law: scores")] == [
        ["Parameters"],
        ["8,912,345"],
        ["–"],
        ["–"],
    ]
    assert "Parameters: of the backbone and" in page.xpath("//caption")[0].text_content()
    training = {"training_seconds": 13_868.4, "training_tokens_per_second": 2655.4}
    copying["cost"] = {"parameters": 9_000_000, "words_per_second": 310.0, **training}
    write(folder, report, SEGMENTS)
    page = _page(write_report(folder))
    assert [row[3:-1] for row in _cells(page, "law: scores")] == [
        ["Words a second", "Parameters", "Training seconds"],
        ["–", "8,912,345", "–"],
        ["310", "9,000,000", "13,868"],
        ["–", "–", "–"],
    ]
    assert _cells(page, "Time and memory. Parameters and training seconds: of") == [
        [
            "System",
            "Words a second",
            "Parameters",
            "Training seconds",
            "Training subwords a second",
        ],
        ["base", "–", "8,912,345", "–", "–"],
        ["copy", "310.0", "9,000,000", "13,868", "2,655"],
    ]


def test_figures_that_are_not_known_are_dashes(folder: Path) -> None:
    systems = [
        {"name": "base", "baseline": True, "metrics": {"BLEU": None}},
        {"name": "copy", "metrics": _metrics(1, 2)},
    ]
    write(
        folder,
        {"format": 1, "tests": [{"name": "law", "systems": systems}]},
        [_segment(0, {}, document=None)],
    )
    rows = _cells(_page(write_report(folder)), "law: scores")
    assert [row[:3] for row in rows[1:]] == [
        ["base baseline", "–", "–"],
        ["copy", "1.00 0.00 to 2.00", "2.00"],
    ]


def test_a_setting_is_plotted_where_systems_differ_in_it_alone(folder: Path) -> None:
    captions = [found.text for found in _page(write_report(folder)).xpath("//figcaption")]
    assert captions == ["BLEU by the best match in the memory", "BLEU over K"]
    page = _page(folder / "report.html")
    assert _cells(page, "BLEU over K") == [["K", "base / copy"], ["0", "40.00"], ["4", "45.00"]]


def test_a_higher_score_is_drawn_higher(folder: Path) -> None:
    plot = _page(write_report(folder)).xpath(
        "//figure[figcaption='BLEU over K']//svg[@role='img']"
    )[0]
    low, high = (
        float(mark.get("transform").split()[1].rstrip(")")) for mark in plot.xpath(".//path[title]")
    )
    assert high < low


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(folder: Path) -> None:
    page = _page(write_report(folder))
    policy = page.xpath("//meta[@http-equiv]/@content")[0]
    style, script = page.xpath("//style")[0].text, page.xpath("//script[not(@type)]")[0].text
    for name, text in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert not re.search(
        r"(src|href)=\"(?!#)|url\(|innerHTML", (folder / "report.html").read_text(encoding="utf-8")
    )


def test_text_cannot_leave_its_place(folder: Path) -> None:
    report = json.loads(json.dumps(REPORT).replace('"copy"', json.dumps(HOSTILE)))
    report["name"] = HOSTILE
    lines = [
        _segment(0, {HOSTILE: _hyp(HOSTILE, 1.0)}, document=HOSTILE, src=HOSTILE, band=HOSTILE)
    ]
    write(folder, report, lines)
    page = _page(write_report(folder))
    assert [script.get("class") or script.get("id") for script in page.xpath("//script")] == [
        "chunk",
        "columns",
        "index",
        None,
    ]
    assert page.xpath("//img") == []
    assert page.xpath("//h1")[0].text == HOSTILE
    index = json.loads(page.xpath("//script[@id='index']")[0].text)
    assert (
        index["documents"] == [HOSTILE]
        and HOSTILE in index["bands"]
        and HOSTILE in index["systems"]
    )


def test_json_in_a_script_has_no_character_that_means_something_there() -> None:
    text = in_script({"key": HOSTILE})
    assert json.loads(text) == {"key": HOSTILE}
    assert not set(text) & set("<>&\u2028\u2029")


def test_every_segment_is_in_the_page_with_what_it_was_made_of(folder: Path) -> None:
    tokens = [
        {"text": text, "origin": origin}
        for text, origin in (("▁le", "model"), ("▁trai", "memory"), ("té", "memory"))
    ]
    match = {"src": "a treaty", "tgt": "un traité", "score": 0.75, "document": "d9"}
    explained = {**_hyp("le traité", 12.345), "matches": [match], "tokens": tokens}
    lines = [
        _segment(i, {"base": _hyp(f"h{i}", None), "copy": explained}, best=match)
        for i in range(CHUNK + 1)
    ]
    lines[-1]["refs"] = ["la référence", "une autre"]
    write(folder, REPORT, lines)
    page = _page(write_report(folder))
    chunks = [
        json.loads(gzip.decompress(base64.b64decode(found.text)))
        for found in page.xpath("//script[@class='chunk']")
    ]
    assert [len(chunk) for chunk in chunks] == [CHUNK, 1]
    assert chunks[1][0] == {
        "src": f"source {CHUNK}",
        "refs": ["la référence", "une autre"],
        "best": 0,
        "matches": [["a treaty", "un traité", "d9", 0.75]],
        "out": {
            "0": [f"h{CHUNK}", [], []],
            "1": ["le traité", [0], [["model", "le"], ["memory", "traité"]]],
        },
    }
    columns = json.loads(
        gzip.decompress(base64.b64decode(page.xpath("//script[@class='columns']")[0].text))
    )
    assert columns["bleu"][0][0] is None and columns["bleu"][1][0] in (12.34, 12.35)


def test_words_of_one_origin_stand_together() -> None:
    pieces = [
        ("▁a", "model"),
        ("▁b", "memory"),
        ("c", "memory"),
        ("d", "model"),
        ("▁<0xC3>", "x"),
        ("▁e", "memory"),
    ]
    assert runs(pieces) == [("model", "a"), ("memory", "bcd"), ("x", "<0xC3>"), ("memory", "e")]


@pytest.mark.parametrize(
    ("report", "lines", "told"),
    [
        (None, [], "report.json: cannot be read: No such file or directory; a run folder holds "),
        ("{", [], "report.json: not JSON: "),
        ({"format": 2}, [], "report.json: format 2 is not known; this version reads format 1"),
        ({"format": 1, "tests": []}, [], "report.json: no test set in it"),
        ({"format": 1, "tests": [{"name": "law"}]}, [], "report.json.tests[0]: no system in it"),
        (
            {"format": 1, "tests": [{"name": "a", "systems": [{"name": "s"}] * 2}]},
            [],
            "report.json.tests[0].systems[0]: 2 systems are named 's'; a name stands for one",
        ),
        (
            {"format": 1, "tests": [3]},
            [],
            "report.json.tests[0]: an object is expected, not a number",
        ),
        ({**REPORT, "name": 3}, SEGMENTS, "report.json.name: text is expected, not a number"),
        (REPORT, [*SEGMENTS, "{"], "segments.jsonl:4: not JSON: "),
        (
            REPORT,
            [SEGMENTS[0], '{"x": NaN}'],
            "segments.jsonl:2: not JSON: NaN is not a JSON number; write null",
        ),
        (
            REPORT,
            [_segment(0, {"other": _hyp("x", 1.0)})],
            "segments.jsonl:1: system 'other' is not in report.json",
        ),
        (
            REPORT,
            [_segment(0, {}, test="tv")],
            "segments.jsonl:1: test set 'tv' is not in report.json",
        ),
        (
            REPORT,
            [_segment(0, {"base": _hyp("x", True)})],
            "segments.jsonl:1.systems.base.bleu: a number is expected",
        ),
        (REPORT, [], "segments.jsonl: no segment in it"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_and_nothing_is_written(
    report: Any, lines: list[Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if report is not None:
        text = report if isinstance(report, str) else json.dumps(report)
        (tmp_path / "report.json").write_text(text, encoding="utf-8")
    written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (tmp_path / "segments.jsonl").write_text(
        "".join(f"{line}\n" for line in written), encoding="utf-8"
    )
    before = sorted(tmp_path.iterdir())
    assert run(["evaluate", "report", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"tmnmt: error: {tmp_path}/{told}") and err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_the_report_does_not_replace_what_it_is_made_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "segments.jsonl").read_bytes()
    assert run(["evaluate", "report", str(folder), "-o", str(folder / "segments.jsonl")]) == 2
    assert "the report is made of this file" in capsys.readouterr().err
    assert run(["evaluate", "report", str(folder), "-o", "-"]) == 2
    assert "- is standard output, to which this cannot be written" in capsys.readouterr().err
    assert (folder / "segments.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (39.2, 41.1, [39, 39.5, 40, 40.5, 41, 41.5]),
        (-3, 1, [-3, -2, -1, 0, 1]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(
    low: float, high: float, expected: list[float]
) -> None:
    assert ticks(low, high) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (30, 30, [20, 50]),
        (7, 450, [5, 10, 20, 50, 100, 200, 500]),
        (1, 1, [1, 2]),
        (44, 20000, [30, 100, 300, 1000, 3000, 10000, 30000]),
    ],
)
def test_logarithmic_ticks_enclose_the_values(
    low: float, high: float, expected: list[float]
) -> None:
    assert log_ticks(low, high) == expected


def _shown(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.run(
        f"[...document.querySelectorAll({selector!r})].map((found) => found.textContent)"
    )
    return found


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    folder = write_run(tmp_path_factory.mktemp("runs") / "real", segments(30))
    lines = (folder / "segments.jsonl").read_text(encoding="utf-8").splitlines()
    return write_report(folder).as_uri(), [json.loads(line) for line in lines]


def test_what_goes_wrong_in_a_page_is_noticed(browser: Browser, tmp_path: Path) -> None:
    policy = "<meta http-equiv='Content-Security-Policy' content=\"style-src 'none'\">"
    (tmp_path / "wrong.html").write_text(
        f"{policy}<style></style><script>throw new Error('thrown')</script>"
    )
    browser.open((tmp_path / "wrong.html").as_uri())
    assert len(browser.problems) == 2 and "thrown" in "".join(browser.problems)


def test_a_page_of_segments_is_drawn_and_the_console_is_silent(
    browser: Browser, real: tuple[str, list[dict[str, Any]]]
) -> None:
    browser.open(real[0])
    assert browser.problems == []
    assert _shown(browser, "article h3") == [f"Segment {i}" for i in range(1, 26)]
    assert _shown(browser, "article td")[0] == real[1][0]["src"]


@pytest.mark.parametrize(("order", "sign"), [("loss", 1), ("gain", -1)])
def test_the_greatest_loss_or_gain_is_a_click_away(
    browser: Browser, real: tuple[str, list[dict[str, Any]]], order: str, sign: int
) -> None:
    browser.open(real[0])
    browser.run(f"document.querySelector('a[href*=\"K%3D4&order={order}\"]').click()")
    browser.settle()
    differences = [
        line["systems"]["copy K=4"]["bleu"] - line["systems"]["base"]["bleu"] for line in real[1]
    ]
    ranked = sorted(range(len(differences)), key=lambda i: (sign * round(differences[i], 2), i))
    assert _shown(browser, "article h3")[0] == f"Segment {ranked[0] + 1}"
    assert abs(differences[ranked[0]]) > 1
    assert browser.problems == []


def test_differences_put_the_output_and_the_reference_together(
    browser: Browser, folder: Path
) -> None:
    outputs = {"base": _hyp("le traité, du 4 mai est signé", 1.0), "copy": _hyp("条約第二条", 1.0)}
    write(
        folder,
        REPORT,
        [
            _segment(0, outputs, ref="le traité (3) du 4 mai signé ici"),
            _segment(1, outputs, ref="条約第三条"),
        ],
    )
    browser.open(write_report(folder).as_uri())
    assert _shown(browser, "article:nth-child(1) tr:nth-child(4) mark") == [",", "est"]
    assert _shown(browser, "article:nth-child(1) tr:nth-child(4) del") == ["(3)", "ici"]
    assert _shown(browser, "article:nth-child(2) tr:nth-child(3) td") == ["条約第二 三条"]
    assert browser.problems == []


def test_hostile_text_stays_text(browser: Browser, folder: Path) -> None:
    match = {"src": HOSTILE, "tgt": HOSTILE, "score": 0.9, "document": HOSTILE}
    output = {
        **_hyp(HOSTILE, 1.0),
        "matches": [match],
        "tokens": [{"text": f"▁{HOSTILE}", "origin": HOSTILE}],
    }
    report = json.loads(json.dumps(REPORT).replace('"copy"', json.dumps(HOSTILE)))
    write(
        folder,
        report,
        [
            _segment(
                0, {HOSTILE: output, "base": output}, document=HOSTILE, src=HOSTILE, ref=HOSTILE
            )
        ],
    )
    browser.open(write_report(folder).as_uri())
    browser.run("document.querySelector('article summary').click()")
    browser.settle()
    assert _shown(browser, "article td")[:3] == [HOSTILE] * 3
    assert _shown(browser, "article details td")[0].strip() == HOSTILE
    assert browser.run("[document.title, document.images.length]") == ["A run · tmnmt", 0]
    assert browser.problems == []


def test_text_is_found_beyond_the_page_and_the_chunk(browser: Browser, folder: Path) -> None:
    lines = [_segment(i, {"base": _hyp("x", 1.0)}, document=f"d{i % 3}") for i in range(CHUNK + 60)]
    lines[CHUNK + 40]["ref"] = "un Élève"
    write(folder, REPORT, lines)
    browser.open(f"{write_report(folder).as_uri()}#text=%C3%A9l%C3%A8ve")
    assert _shown(browser, "article h3") == [f"Segment {CHUNK + 41}"]
    browser.open(f"{(folder / 'report.html').as_uri()}#document=d1&page=5")
    assert _shown(browser, "article h3") == [f"Segment {i + 1}" for i in range(301, CHUNK + 60, 3)]
    assert browser.problems == []


def test_more_systems_than_colours_look_unlike_each_other() -> None:
    swatches = [swatch(Series(f"system {style}", [], style), line=True) for style in range(64)]
    assert len({tostring(one) for one in swatches}) == 64
