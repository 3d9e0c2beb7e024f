"""report.html of an evaluated run: one file that needs no network, for a browser, for paper, and
for a screen reader.

Tables and plots are plain HTML and SVG and need no script. The segments are packed
(`report_segments`) and unpacked by report/page.js while one reads. A content security policy allows
this style sheet and this script, by their hashes, and nothing else; the script puts text into the
page as text only."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO
from xml.etree.ElementTree import Element

from tmnmt.errors import DataError, UsageError
from tmnmt.eval.report.markup import Child, e, figure, html
from tmnmt.eval.report.plots import baseline_of, best_of, plots
from tmnmt.eval.report.run_folder import REPORT, SEGMENTS, Node, read_report, read_segments
from tmnmt.eval.report.segments import CHUNK, Columns, chunks
from tmnmt.eval.report.tables import summary, tables
from tmnmt.formats.atomic import writing
from tmnmt.progress import Progress
from tmnmt.quantities import quantity


def write_report(run: Path, output: Path | None = None) -> Path:
    """Writes the report of a run folder, to `output` or report.html in it, and gives its path.

    DataError when report.json or segments.jsonl is missing or not what it should be; UsageError
    when `output` is one of them. What was at `output` is replaced when all is written, else kept.
    """
    report, path = read_report(run), output or run / "report.html"
    if path.resolve() in {(run / name).resolve() for name in (REPORT, SEGMENTS)}:
        raise UsageError(f"{path}: the report is made of this file; name another for the report")
    with writing(path) as text:
        _write(report, run, text)
    return path


def _write(report: Node, run: Path, stream: TextIO) -> None:
    style, script = _resource("page.css"), _resource("page.js")
    stream.write(_head(report.text("name"), style, script))
    for part in (
        _top(report),
        *(_test(number, test) for number, test in enumerate(report.nodes("tests"))),
        _browser(),
    ):
        stream.write(_clean(html(part)) + "\n")
    columns = Columns(report)
    for chunk in chunks(_iterate_segments(report, run), columns):
        stream.write(_data("chunk", chunk))
    if not columns.rows:
        raise DataError(f"{run / SEGMENTS}: no segment in it")
    stream.write(_data("columns", columns.packed()))
    stream.write(
        '<script type="application/json" '
        f'id="index">{in_script(_index(report, columns))}</script>\n'
    )
    stream.write(f"<script>{script}</script>\n</body>\n</html>\n")


def _iterate_segments(report: Node, run: Path) -> Iterator[Node]:
    total = sum(int(test.number("segments") or 0) for test in report.nodes("tests"))
    with Progress("reporting", "segments", total or None, lazy=True) as progress:
        for segment in read_segments(run):
            yield segment
            progress.advance()


def in_script(value: Any) -> str:
    """`value` as JSON in which nothing can end, or open, a script element, nor end a line for a
    script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _clean(text)


def _clean(text: str) -> str:
    """Without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _data(kind: str, packed: str) -> str:
    return f'<script type="application/gzip;base64" class="{kind}">{packed}</script>\n'


def _index(report: Node, columns: Columns) -> dict[str, Any]:
    tests = []
    for test in report.nodes("tests"):
        baseline = baseline_of(test)
        tests.append(
            {
                "name": test.name("name"),
                "src": test.text("src_lang"),
                "tgt": test.text("tgt_lang"),
                "systems": [
                    columns.systems[system.name("name")] for system in test.nodes("systems")
                ],
                "baseline": None if baseline is None else columns.systems[baseline.name("name")],
                "best": columns.systems[best_of(test).name("name")],
            }
        )
    names = {"systems": columns.systems, "bands": columns.bands, "documents": columns.documents}
    return {"rows": columns.rows, "chunk": CHUNK, "tests": tests} | {
        key: list(value) for key, value in names.items()
    }


def _resource(name: str) -> str:
    return (files("tmnmt.eval.report") / name).read_text(encoding="utf-8")


def _head(name: str, style: str, script: str) -> str:
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri "
        "'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    metas = (
        {"charset": "utf-8"},
        {"http-equiv": "Content-Security-Policy", "content": policy},
        {"name": "viewport", "content": "width=device-width, initial-scale=1"},
        {"name": "color-scheme", "content": "light dark"},
        {"name": "referrer", "content": "no-referrer"},
    )
    parts = [html(Element("meta", meta)) for meta in metas] + [
        _clean(html(e("title", f"{name or 'Evaluation'} · tmnmt")))
    ]
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>',
            *parts,
            f"<style>{style}</style>\n</head>\n<body>\n",
        )
    )


def _hash(text: str) -> str:
    return (
        f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"
    )


def _top(report: Node) -> Element:
    tests = [test.name("name") for test in report.nodes("tests")]
    links = [e("a", name, href=f"#test-{number}") for number, name in enumerate(tests)]
    description = [e("p", report.text("description"))] if report.text("description") else []
    return e(
        "header",
        e("h1", report.text("name") or "Evaluation"),
        *description,
        _facts(_provenance(report.node("made"))),
        e("nav", *links, e("a", "Segments", href="#segments"), aria_label="Parts of this page"),
    )


def _provenance(provenance: Node) -> list[tuple[str, Child]]:
    seconds = provenance.number("seconds")
    facts: list[tuple[str, Child]] = [
        ("Command", e("code", provenance.text("command")) if provenance.text("command") else ""),
        ("Made", provenance.text("date")),
        ("Took", "" if seconds is None else f"{figure(seconds, 1)} seconds"),
        ("Machine", provenance.text("machine")),
        ("tmnmt", provenance.text("version")),
        (
            "Recipe sha256",
            e("code", provenance.text("recipe_sha256")) if provenance.text("recipe_sha256") else "",
        ),
    ]
    return [(name, fact) for name, fact in facts if fact != ""]


def _facts(facts: list[tuple[str, Child]]) -> Element:
    return e(
        "dl", *(e("div", e("dt", name), e("dd", fact)) for name, fact in facts), class_="facts"
    )


_SIZES = (
    ("segments", "segment"),
    ("distinct", "distinct segment"),
    ("documents", "document"),
    ("words", "reference word"),
)


def _test(number: int, test: Node) -> Element:
    languages = " → ".join(filter(None, (test.text("src_lang"), test.text("tgt_lang"))))
    sizes = [
        quantity(int(count), unit)
        for key, unit in _SIZES
        if (count := test.number(key)) is not None
    ]
    charts = list(plots(test))
    return e(
        "section",
        e("h2", test.name("name"), id=f"test-{number}"),
        e("p", " · ".join(filter(None, (languages, *sizes)))),
        *(
            e("p", e("strong", "Note: "), warning, class_="warning")
            for warning in test.texts("warnings")
        ),
        summary(test),
        *([e("div", *charts, class_="plots")] if charts else []),
        *(
            e("details", e("summary", title), content, class_="more")
            for title, content in tables(test)
        ),
    )


def _browser() -> Element:
    """Where the script puts the segments."""
    return e(
        "section",
        e("h2", "Segments", id="segments", tabindex="-1"),
        e(
            "noscript",
            e("p", "The segments are unpacked by the script in this page: allow it to read them."),
        ),
        e("div", id="browser", aria_busy="true"),
    )
