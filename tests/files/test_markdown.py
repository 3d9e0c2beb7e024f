"""Markdown: texts of blocks are units, markup inside them codes, and the rest of the file stays."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from places import ROOT

from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError
from tmnmt.files.html import HtmlFile
from tmnmt.files.markdown import MARKDOWN, MarkdownFile
from tmnmt.files.opening import open_translatable

README = """---
title: "Untouched: *title*"
---
# A `tool` for *work* #

Some **bold** text, [a link](http://x.org/a_b "t") and ![an image](a.png).
Second line &amp; \\* more\x20\x20
behind a break, {name}.

> [!NOTE]
> Quoted **text
> over lines**.

- [x] A task
- Item
  continued

| Name | Pipe \\| here |
|------|:---:|
| `x`  | **Two** `y\\|z` |

<details>
<summary>Click <b>me</b></summary>

Inside.

</details>

```python
print("untouched")
```

    untouched

Underlined *heading*
====

[ref]: http://x.org "Untouched"
[^1]: A footnote.

See [ref], [text][ref], <https://a.b>[^1] and ~~gone~~ :rocket:.
"""


def markdown(tmp_path: Path, content: str) -> MarkdownFile:
    path = tmp_path / "a.md"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, MarkdownFile)
    return file


def test_a_file_is_cut_into_units(tmp_path: Path) -> None:
    file = markdown(tmp_path, README)
    assert [(unit.line, unit.source.plain) for unit in units(file)] == [
        (4, "A tool for work"),
        (6, "Some bold text, a link and . Second line & * more behind a break, {name}."),
        (6, "an image"),
        (11, "Quoted text over lines."),
        (14, "A task"),
        (15, "Item continued"),
        (18, "Name"),
        (18, "Pipe | here"),
        (20, "Two y\\|z"),
        (23, "Click me"),
        (25, "Inside."),
        (35, "Underlined heading"),
        (39, "A footnote."),
        (41, "See ref, text, https://a.b[^1] and gone :rocket:."),
    ]
    codes = [code.markup for code in units(file)[1].source.codes]
    assert codes == [
        *("**", "**", "[", '](http://x.org/a_b "t")', "![an image](a.png)", "  \n", "{name}")
    ]
    assert untouched(file).decode() == README


def test_only_texts_change(tmp_path: Path) -> None:
    file = markdown(tmp_path, README)
    first = units(file)[0].source.codes
    new = filled(file, Text("Outil", ()), None, "une [image]", origin="model").decode()
    assert len(first) == 3
    expected = README.replace("A `tool` for *work*", "Outil")
    assert new == expected.replace("![an image]", "![une \\[image\\]]")


@pytest.mark.parametrize(
    ("source", "target", "becomes"),
    [
        # signs are escaped where they would be markup, and only there
        ("One", "2 * 3, a_b, [x], x < y & C#", "2 * 3, a_b, [x], x < y & C#"),
        ("One", "*Un*", "\\*Un\\*"),
        ("One", "`Un`", "\\`Un\\`"),
        ("One", "[x](y)", "\\[x\\](y)"),
        ("One", "<b>Un</b>", "\\<b>Un\\</b>"),
        ("One", "&amp;", "\\&amp;"),
        ("One", "1. Un", "1\\. Un"),
        ("One", "- Un", "\\- Un"),
        ("One", "# Un", "\\# Un"),
        ("One", "Un\n\ndeux", "Un deux"),
        ("# One", "1. Un", "# 1. Un"),
        ("# One", "Un #", "# Un \\#"),
        ("| One |\n|---|", "Un | deux", "| Un \\| deux |\n|---|"),
        ("> One", "> Un", "> \\> Un"),
        ("[One](y)", "Un]", "[Un\\]](y)"),
    ],
)
def test_a_target_says_what_it_said(tmp_path: Path, source: str, target: str, becomes: str) -> None:
    assert filled(markdown(tmp_path, source), target).decode() == becomes


def test_a_link_that_is_found_by_its_words_names_them(tmp_path: Path) -> None:
    definition = "\n\n[here]: http://x.org"
    file = markdown(tmp_path, f"[here]{definition}")
    codes = units(file)[0].source.codes
    assert [code.markup for code in codes] == ["[", "]"]
    for words, becomes in (("ici", "[ici][here]"), ("here", "[here]")):
        target = Text(words, (codes[0], Code(len(words), "close", "]", codes[1].pair, MARKDOWN)))
        assert filled(file, target).decode() == becomes + definition


def test_emphasis_that_would_not_be_read_is_a_tag(tmp_path: Path) -> None:
    file = markdown(tmp_path, "A **bold** word")
    opening, closing = units(file)[0].source.codes
    target = Text(
        "mot« gras »x",
        (
            Code(3, "open", "**", opening.pair, MARKDOWN),
            Code(11, "close", "**", closing.pair, MARKDOWN),
        ),
    )
    assert filled(file, target).decode() == "mot<strong>« gras »</strong>x"


def test_sentences_are_units_where_that_is_asked_for(tmp_path: Path) -> None:
    text = "> One.\n> **Two**. Three\n> goes on. \n\n- **Four. Five.**\n"
    file = markdown(tmp_path, text)
    file.sentences, file.src_lang = True, "en"
    assert [unit.source.plain for unit in units(file)] == [
        *("One.", "Two.", "Three goes on.", "Four.", "Five.")
    ]
    assert untouched(file).decode() == text
    new = filled(file, "Un.", None, "Trois.", "Quatre.").decode()
    assert new == "> Un.\n> **Two**. Trois. \n\n- **Quatre. Five.**\n"


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff# One\n",
        "# One\r\n\r\nTwo *three*\r\nfour\r\n",
        "One\rtwo\r\r# Three",
        "\t- One\n\n",
        "\n",
    ],
)
def test_any_line_ends_and_marks_come_back(tmp_path: Path, text: str) -> None:
    assert untouched(markdown(tmp_path, text)) == text.encode()


RENDERED = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def rendered(text: str) -> str:
    """As a page; a line end is a blank like others."""
    return re.sub(r"\s+", " ", RENDERED.render(text))


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]), ids=lambda path: path.name
)
def test_real_files_come_back_and_say_the_same_with_their_own_texts(path: Path) -> None:
    file = open_translatable(path)
    assert untouched(file) == path.read_bytes()
    assert len(units(file)) > 5 and not any(unit.problem for unit in units(file))
    assert rendered(echoed(file).decode()) == rendered(path.read_text(encoding="utf-8"))


_PIECES = (
    *("a", "b ", " ", "\n", "\n\n", "*", "**", "_", "`", "[", "]", "(u)", "![", "~~", "\\", "<b>"),
    *(
        "</b>",
        "&amp;",
        "|",
        "\n|-|-|\n",
        "> ",
        "- ",
        "1. ",
        "# ",
        "\n===\n",
        "<div>",
        "  \n",
        ": x",
    ),
)


@settings(max_examples=200)
@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=14).map("".join))
def test_whatever_the_text_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.md"
    path.write_bytes(text.encode())
    file = MarkdownFile(path)
    assert untouched(file) == text.encode()
    echoed(file)


MODULES = """import T from "@theme/T";
import * as U from 'u'
import {
  A,
} from "x";
export const meta = {
  a: 1,

  title: "Keep me",
};

# Notice

import "style.css";
The permit is valid.

export default function Page({a}) {
  return <T>{a}</T>;
}

export default Layout;
"""


def test_statements_of_a_module_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(MODULES)
    file = MarkdownFile(path)
    assert [(u.line, u.source.plain) for u in units(file)] == [
        (12, "Notice"),
        (15, "The permit is valid."),
    ]
    wanted = MODULES.replace("Notice", "Avis").replace("The permit is valid.", "Il vaut.")
    assert filled(file, "Avis", "Il vaut.").decode() == wanted


@pytest.mark.parametrize(
    "prose",
    [
        "import and export of goods are free.",
        "export the file to your computer (or not).",
        "Export const values.",
        "import {count} files",
        "- import x from 'y';",
    ],
)
def test_words_that_begin_as_a_statement_does_are_words(tmp_path: Path, prose: str) -> None:
    (tmp_path / "a.md").write_text(f"{prose}\n")
    assert len(units(MarkdownFile(tmp_path / "a.md"))) == 1


@pytest.mark.parametrize(
    ("target", "new"),
    [
        ("<http://a\x00.b>", r"\<http://a.b>"),
        ("[a]\x01(b)", r"\[a\](b)"),
        ("\x1c[a]: http://x.org", r"\[a]: http://x.org"),
        ("[a]: http://x.org", r"\[a]: http://x.org"),
        ("a\r- b", "a - b"),
        ("\u2028_x__", r"\_x\_\_"),
    ],
)
def test_what_a_reader_drops_parts_no_signs_that_would_be_markup(
    tmp_path: Path, target: str, new: str
) -> None:
    (tmp_path / "a.md").write_text("One.\n")
    data = filled(MarkdownFile(tmp_path / "a.md"), target)
    assert data.decode() == f"{new}\n"
    (tmp_path / "b.md").write_bytes(data)
    (unit,) = units(MarkdownFile(tmp_path / "b.md"))
    assert [code for code in unit.source.codes if code.form == MARKDOWN] == []


SECONDS = 4  # of processor time; the quadratic way took 8 to 14


@pytest.mark.parametrize("line", ["a b\n", "word\n", "A b. \n"])
def test_a_long_paragraph_is_read_in_linear_time(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.md"
    path.write_text(line * (80_000 // len(line)))
    file = MarkdownFile(path, "en")
    file.sentences = line.startswith("A")
    started = time.process_time()
    assert len(units(file)) == (13_333 if file.sentences else 1)
    assert time.process_time() - started < SECONDS * (5 if file.sentences else 1)


def test_a_line_break_between_two_spans_is_a_code(tmp_path: Path) -> None:
    content = "**One**  \n**two**\n"
    file = markdown(tmp_path, content)
    assert [code.markup for code in units(file)[0].source.codes][2] == "  \n"
    assert echoed(file).decode() == content


FRONT = """---
title: Fees  # of permits
description: "Pay: now"
tags: [law, one two]
layout: page
seo:
  title: >-
    Fees that
    are due
---
Pay.
"""


def front_matter_file(tmp_path: Path, name: str, text: str = FRONT) -> HtmlFile:
    (tmp_path / name).write_text(text, encoding="utf-8")
    file = open_translatable(tmp_path / name)
    assert isinstance(file, HtmlFile)
    file.front_matter = ("title", "description", "tags", "seo.title")
    return file


@pytest.mark.parametrize("name", ["a.md", "a.mdx", "a.html"])
def test_front_matter_is_translated_where_its_keys_are_named(tmp_path: Path, name: str) -> None:
    file = front_matter_file(tmp_path, name)
    sources = [unit.source.plain for unit in units(file)]
    assert sources == ["Fees", "Pay: now", "law", "one two", "Fees that are due", "Pay."]
    assert echoed(file).decode().count("Fees that are due") == 1
    content = filled(
        front_matter_file(tmp_path, name), "Droits: # 1", 'Payez "tout"', "loi"
    ).decode()
    assert content == FRONT.replace("Fees  #", '"Droits: # 1"  #', 1).replace(
        '"Pay: now"', '"Payez \\"tout\\""'
    ).replace("[law", "[loi")


def test_front_matter_is_left_alone_where_no_key_is_named(tmp_path: Path) -> None:
    for name in ("b.md", "b.html"):
        file = front_matter_file(tmp_path, name)
        file.front_matter = ()
        assert [unit.source.plain for unit in units(file)] == ["Pay."]


def test_front_matter_that_is_no_yaml_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = front_matter_file(tmp_path, "c.md", "---\na: b\ntitle: [x\n---\nPay.\n")
    with pytest.raises(FormatError, match=r"c\.md, line [34]: no YAML"):
        units(file)
