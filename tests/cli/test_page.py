"""The page of `--explain-html`: what it says is what was traced, no text becomes HTML or script,
and it can be used."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from browser import Browser
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.codes.record import Text as CodedText
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.index import build
from tmnmt.records import decode_subwords
from tmnmt.segments import Segment
from tmnmt.translator import Translator

HOSTILE = Segment(
    "</script><svg onload='alert(1)'> It shall apply.",
    "</script><iframe src=x onerror='alert(1)'> <!-- & « 日 »",
    "<i>&",
)
TEXT = (
    f'The Commission shall inform the "Council".\n\n{HOSTILE.src}\nIt shall apply from 3 '
    "March 1997.\nRepealed.\n<b>Repealed.</b>\n"
)
ELEMENTS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "script",
    "body",
    "header",
    "h1",
    "ul",
    "li",
    "span",
    "p",
    "aside",
    "main",
    "article",
    "details",
    "summary",
    "hr",
    "footer",
}


class Read(HTMLParser):
    """What a browser would take from the page: elements with their attributes and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))
        if tag not in ("meta", "hr"):
            self._open.append(self.found[-1])

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for _, _, texts in self._open:
            texts.append(data)

    def texts(self, tag: str, kind: str | None = None) -> list[str]:
        """Of all elements of a name, and of a class or type where one is given."""
        wanted = [(attributes, texts) for name, attributes, texts in self.found if name == tag]
        return [
            "".join(texts)
            for attributes, texts in wanted
            if kind is None
            or kind in (attributes.get("class") or attributes.get("type") or "").split()
        ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("page")
    write_tiny_model(folder / "model")
    build(folder / "index", [*segments(), HOSTILE], "en", "fr")
    (folder / "input.txt").write_text(TEXT, encoding="utf-8")
    assert (
        translate(
            folder,
            "--explain-html",
            str(folder / "page.html"),
            "--json",
            "-o",
            str(folder / "out.json"),
        )
        == 0
    )
    return folder


def translate(folder: Path, *arguments: str, text: str = "input.txt") -> int:
    settings = (
        "--model",
        str(folder / "model"),
        "--memory",
        str(folder / "index"),
        "--mode",
        "both",
        "--beam",
        "2",
    )
    return run(
        [
            "translate",
            str(folder / text) if text != "-" else text,
            *settings,
            "--threads",
            "1",
            *arguments,
        ]
    )


def told(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "out.json").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["src"]]


def test_the_page_says_what_json_says_and_its_parts_add_up(folder: Path) -> None:
    page, records = Read((folder / "page.html").read_text(encoding="utf-8")), told(folder)
    data = [json.loads(text) for text in page.texts("script", "application/json")]
    assert len(data) == len(records) == 5 and len(page.texts("hr")) == 1
    assert page.texts("p", "source") == [record["src"] for record in records]
    plain = [with_tags(CodedText(record["tgt"]), html_tags).plain for record in records]
    targets = [text.strip() for text in page.texts("p", "target")]
    # ends are those of the sources, and quotes stand around what they stand around there, whatever
    # the model has written
    added = str.maketrans("", "", "«»“”.:\u00a0")
    assert [text.translate(added).strip() for text in targets] == [
        text.translate(added).strip() for text in plain
    ]
    otherwise = [
        record["tgt"]
        for record, text in zip(records, targets, strict=True)
        if record["tgt"] != text
    ]
    assert page.texts("p", "written") == otherwise and any("<b>" in text for text in otherwise)
    assert len(page.texts("span", "token")) == sum(len(record["tokens"]) for record in records)
    for of_page, record in zip(data, records, strict=True):
        for at, token in enumerate(record["tokens"]):
            number = {
                name: of_page.get(name, [0] * (at + 1))[at]
                for name in ("probability", "generated", "plain")
            }
            assert number == pytest.approx({name: token[name] for name in number}, abs=1e-6)
            mixed = 0.0
            for layer in of_page["provenance"]:
                ones = [one for one in token["provenance"] if one["name"] == layer["name"]]
                for field, values in (("weight", "weights"), ("gate", "gates")):
                    total = sum(one[field] for one in ones)
                    assert layer[values][at] == pytest.approx(total, abs=1e-6)
                mixed += layer["weights"][at] if layer["is_mixed"] else 0.0
            assert mixed == pytest.approx(token["recalled"] + token["copied"], abs=1e-6)
            parts = number["generated"] + mixed
            assert parts == pytest.approx(number["probability"], abs=1e-5)
            assert [tuple(read) for read in of_page["attention"][at]] == [
                (read["match"], read["position"], pytest.approx(read["weight"], abs=1e-6))
                for read in token["attention"]
            ]
            for read in token[
                "sources"
            ]:  # positions are those of the pieces: the word that is copied stands there
                piece = of_page["matches"][read["match"]]["pieces"][read["position"]]
                if not re.fullmatch(
                    "<0x..>", token["text"]
                ):  # a byte's piece is its character, or a part of one
                    assert piece == token["text"].replace("▁", " ")
    pairs = [(match["src"], "".join(match["pieces"][:-1]).strip()) for match in data[1]["matches"]]
    assert (HOSTILE.src, HOSTILE.tgt) in pairs


def test_words_taken_as_they_stand_tell_their_pair_and_position(
    folder: Path, tmp_path: Path
) -> None:
    long = Segment("A long one.", " ".join(f"Article {n} de la directive" for n in range(60)))
    build(tmp_path / "index", [*segments(), long], "en", "fr")
    source = f"{long.src}\n{PAIRS[0][0]}\n{PAIRS[2][0]} Repealed.\n"
    (tmp_path / "input.txt").write_text(source, encoding="utf-8")
    out = (
        "--explain-html",
        str(tmp_path / "page.html"),
        "--json",
        "-o",
        str(tmp_path / "out.json"),
    )
    options = (
        "--model",
        str(folder / "model"),
        "--memory",
        str(tmp_path / "index"),
        "--threads",
        "1",
    )
    assert run(["translate", str(tmp_path / "input.txt"), *options, *out]) == 0
    page = Read((tmp_path / "page.html").read_text(encoding="utf-8"))
    data = [json.loads(text) for text in page.texts("script", "application/json")]
    records = told(tmp_path)
    assert [record["tgt"] for record in records[:2]] == [long.tgt, PAIRS[0][1]]
    for of_page, record in zip(data[:2], records[:2], strict=True):
        assert of_page["attention"] == [[[0, at, 1]] for at in range(len(record["tokens"]))]
        (match, *_) = of_page["matches"]
        assert match["src"] == record["src"] and len(match["pieces"]) == len(record["tokens"]) + 1
        assert (
            decode_subwords([token["text"] for token in record["tokens"]]) == match["pieces"][:-1]
        )
    assert any(
        weight < 1 for read in data[2]["attention"] for _, _, weight in read
    )  # that one was translated


def test_no_text_becomes_html_and_nothing_is_loaded(folder: Path) -> None:
    text = (folder / "page.html").read_text(encoding="utf-8")
    page = Read(text)
    assert {name for name, _, _ in page.found} == ELEMENTS
    names = {name for _, attributes, _ in page.found for name in attributes}
    assert not {name for name in names if name.startswith("on")} | names & {
        "src",
        "href",
        "style",
        "srcset",
        "action",
    }
    policy = next(
        a["content"] for _, a, _ in page.found if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert (
        policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy
    )
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.texts(tag)[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert "http://" not in text and "https://" not in text and "innerHTML" not in text


def test_it_is_written_beside_every_other_output(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "page.html"
    stdin = io.BufferedReader(cast(io.RawIOBase, io.BytesIO(TEXT.encode())))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
    assert translate(folder, "--explain-html", str(path), text="-") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line] == [record["tgt"] for record in told(folder)]
    assert path.read_bytes() == (folder / "page.html").read_bytes()
    assert translate(folder, "--explain-html", str(path), "--explain") == 0
    assert "copy gate" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [path]


def test_it_takes_the_place_of_nothing_else(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "out.txt")
    assert translate(folder, "--explain-html", path, "-o", path) == 2
    assert "--explain-html and --output both name" in capsys.readouterr().err
    assert translate(folder, "--explain-html", str(folder / "input.txt")) == 2
    assert "would be written over the input" in capsys.readouterr().err
    assert translate(folder, "--explain-html", str(tmp_path / "none" / "page.html")) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [] and (folder / "input.txt").read_text() == TEXT


def test_interrupted_it_keeps_the_segments_that_were_finished(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Translator.stream

    def stopped(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield next(whole(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(Translator, "stream", stopped)
    assert translate(folder, "--explain-html", str(tmp_path / "page.html")) == 130
    assert "what was finished is in" in capsys.readouterr().err
    partial = tmp_path / "page.html.partial"
    assert list(tmp_path.iterdir()) == [partial]
    assert partial.read_text(encoding="utf-8").count("<article") == 1


def test_bytes_are_put_together_to_characters_and_every_subword_keeps_its_place() -> None:
    assert decode_subwords(["▁a", "<0xE6>", "<0x97>", "<0xA5>", "b"]) == [" a", "", "", "日", "b"]
    assert decode_subwords(["<0xE6>", "b", "<0xE6>"]) == ["", "\ufffdb", "\ufffd"]
    assert decode_subwords([]) == []


@pytest.fixture
def page(browser: Browser, folder: Path) -> Browser:
    browser.open((folder / "page.html").as_uri())
    return browser


INSPECTOR = "document.getElementById('inspector').innerText"
FOCUSED = "[...document.activeElement.parentElement.children].indexOf(document.activeElement)"


def test_a_word_pointed_at_tells_its_pairs_positions_weights_and_effects(
    page: Browser, folder: Path
) -> None:
    token = told(folder)[0]["tokens"][0]
    page.hover(".token")
    shown = page.run(INSPECTOR)
    assert f"{token['copied']:.2f} copied from the memory" in shown
    assert f"plain {token['plain']:.2f}, fusion " in shown
    assert f"copy gate\n{token['copy_gate']:.2f}" in shown
    heaviest = token["attention"][0]
    assert f"most at position {heaviest['position'] + 1} ({heaviest['weight']:.2f})" in shown
    marked = page.run(
        "[...document.querySelectorAll('#inspector mark.heaviest')].map(m => m.title)"
    )
    assert marked == [f"position {heaviest['position'] + 1}: {heaviest['weight']:.2f}"]
    assert page.problems == []


def test_of_a_word_taken_as_it_stands_the_pair_and_its_position_are_shown(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "input.txt").write_text(f"{PAIRS[0][0]}\n", encoding="utf-8")
    options = (
        "--model",
        str(folder / "model"),
        "--memory",
        str(folder / "index"),
        "--threads",
        "1",
    )
    page = str(tmp_path / "page.html")
    assert (
        run(
            [
                "translate",
                str(tmp_path / "input.txt"),
                *options,
                "--explain-html",
                page,
                "-o",
                f"{page}.txt",
            ]
        )
        == 0
    )
    browser.open(Path(page).as_uri())
    browser.hover(".token")
    shown = browser.run(INSPECTOR)
    assert "1.00 copied from the memory" in shown and "match 1" in shown and PAIRS[0][0] in shown
    assert "weight 1.00, most at position 1 (1.00)" in shown
    assert browser.problems == []


def test_words_are_reached_by_keys_held_and_let_go(page: Browser) -> None:
    page.run("document.querySelector('.token').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.run(FOCUSED) == 2
    page.press("Enter")
    held = page.run(INSPECTOR)
    page.press("End")
    assert page.run(FOCUSED) > 2 and page.run(INSPECTOR) == held
    page.press("Escape")
    page.press("ArrowLeft")
    assert page.run(INSPECTOR) != held
    page.press("ArrowDown")
    assert page.run("document.activeElement.closest('article').id") == "s2"
    page.press("Tab")
    assert page.run("document.activeElement.tagName") == "SUMMARY"
    assert page.run("document.querySelectorAll('#s2 .token[tabindex=\"0\"]').length") == 1


def test_a_segment_is_drawn_when_it_is_opened_and_texts_stay_texts(
    page: Browser, folder: Path
) -> None:
    assert page.run("document.querySelectorAll('table').length") == 0
    page.run("document.querySelector('#s2 summary').click()")
    page.run("new Promise(requestAnimationFrame)")
    page.run("new Promise(done => setTimeout(done, 50))")
    record = told(folder)[1]
    assert page.run("document.querySelectorAll('tbody tr').length") == len(record["tokens"])
    assert page.run("document.querySelectorAll('table').length") == 1
    scripts = "document.querySelector('#s2 details').innerText"
    assert HOSTILE.src in page.run(scripts) and HOSTILE.tgt in page.run(scripts)
    assert page.run("document.querySelectorAll('svg, iframe, i').length") == 0
    shown = page.run(
        "[...document.querySelector('tbody tr').children].slice(1).map(c => +c.innerText)"
    )
    gates = [
        name
        for name in ("copy_gate", "fusion_gate", "recall_gate", "cache_gate")
        if any(token[name] for token in record["tokens"])
    ]
    assert shown[: len(gates)] == [round(100 * record["tokens"][0][name]) for name in gates]
    assert sum(shown[len(gates) :]) == pytest.approx(
        100
        * sum(
            read["weight"] for kind in ("attention", "slots") for read in record["tokens"][0][kind]
        ),
        abs=0.5 * len(shown),
    )
    assert page.problems == []


def test_the_policy_holds_and_the_page_follows_the_readers_colours(page: Browser) -> None:
    page.run("document.body.append(Object.assign(document.createElement('span'), {id: 'x'})), 0")
    with pytest.raises(AssertionError, match="TrustedHTML"):
        page.run("document.getElementById('x').innerHTML = '<b>b</b>'")
    page.run("fetch('https://example.org/').catch(() => 0), 0")
    page.run("new Promise(done => setTimeout(done, 50))")
    assert any("Content Security Policy" in problem for problem in page.problems)
    colours = []
    for scheme in ("light", "dark"):
        page.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        colours.append(
            page.run(
                "[...getComputedStyle(document.body).backgroundColor.matchAll(/\\d+/g)].map(Number)"
            )
        )
    assert min(colours[0]) > 200 and max(colours[1]) < 60
