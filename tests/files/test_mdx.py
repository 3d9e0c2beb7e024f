"""MDX: texts are units as in Markdown, tags and expressions inside them codes; statements and code
stay. @mdx-js/mdx reads the same tree before and after."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from file_units import echoed, filled, units, untouched, written
from hypothesis import given, settings
from hypothesis import strategies as st
from places import TESTS
from required import absent

from tmnmt.codes.record import Text, join_parts
from tmnmt.errors import FormatError
from tmnmt.files.mdx import MdxFile
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Filling, Unit

FOLDER = "TMNMT_MDX"  # names a folder where `npm install @mdx-js/mdx` was run
PAGE = """---
title: untouched
---
import untouched from "@theme/T";
import {A,
  untouchedB} from "x";

export const meta = {
  title: "untouched < y",
};

# Notice <Badge text="untouched" />

The **permit** is valid for {count} years, see <Link to="/a" title="The guide">the *guide*</Link>.
Use `{x}` or `<b>` and a \\< b.

<Tabs groupId="untouched">
  <TabItem value="untouched" label="Apples and pears" default>

    An indented *text* here.

    ```jsx
    <Foo {...untouched}>

    export untouched {
    ```

  </TabItem>
</Tabs>

<Foo
  a={() => { return `untouched ${"}"} {` }}
  title='It&apos;s "here"'
>
  Inside the box.
</Foo>

<p>One line</p>

{/* untouched comment */}

- item <br /> more
- {items.map(i => <li>untouched {i}</li>)}

:::note untouched

An admonition.

:::

**One**\x20\x20
**two** [guide][use]

[use]: /untouched
"""
TEXTS = [
    (12, "Notice"),
    (14, "The permit is valid for count years, see the guide. Use {x} or <b> and a < b."),
    (14, "The guide"),
    (18, "Apples and pears"),
    (20, "An indented text here."),
    (33, 'It\'s "here"'),
    (35, "Inside the box."),
    (38, "One line"),
    (42, "item  more"),
    (47, "An admonition."),
    (51, "One two guide"),
]


def mdx(tmp_path: Path, content: str) -> MdxFile:
    path = tmp_path / "a.mdx"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, MdxFile)
    return file


def changed(unit: Unit) -> Text:
    """A text whose words are others, in the same order."""
    return join_parts(
        re.sub(r"[^\W\d_]+", lambda word: f"{word[0]}é", part) if isinstance(part, str) else part
        for part in unit.source.parts()
    )


def trees(tmp_path: Path, *contents: str | bytes) -> list[Any]:
    """What @mdx-js/mdx finds in each of them, without words."""
    folder = os.environ.get(FOLDER, "")
    if not folder or not shutil.which("node"):
        absent("mdx", f"{FOLDER} names no folder with @mdx-js/mdx, or there is no node")
    paths = [tmp_path / f"{number}.mdx" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    script = TESTS / "files" / "mdx_tree.mjs"
    process = subprocess.run(["node", script, folder, *paths], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    result: list[Any] = json.loads(process.stdout)
    return result


def test_a_file_is_cut_into_units(tmp_path: Path) -> None:
    file = mdx(tmp_path, PAGE)
    assert [(unit.line, unit.source.plain) for unit in units(file)] == TEXTS
    codes = [code.markup for code in units(file)[1].source.codes]
    assert codes == [
        *("**", "**", "{count}", '<Link to="/a" title="The guide">', "*", "*", "</Link>"),
        *("`{x}`", "`<b>`"),
    ]
    assert untouched(file).decode() == PAGE


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_block_of_code_ends_where_it_ends(tmp_path: Path, end: str) -> None:
    lines = ["# The fee", "", "```", "x", "```", "", '<Card title="The owner" />', ""]
    assert [unit.source.plain for unit in units(mdx(tmp_path, end.join(lines)))] == [
        "The fee",
        "The owner",
    ]


def test_only_texts_change(tmp_path: Path) -> None:
    file = mdx(tmp_path, PAGE)
    new = written(file, [Filling(changed(unit), "model") for unit in units(file)]).decode()
    assert new.count("untouched") == PAGE.count("untouched")
    assert 'title="Theé guideé">theé *guideé*</Link>' in new
    assert 'label="Applesé andé pearsé" default' in new
    assert "title='Ité&#39;sé \"hereé\"'" in new
    assert "**Oneé**  \n**twoé** [guideé][use]" in new


def test_the_compiler_reads_the_same_tree(tmp_path: Path) -> None:
    file = mdx(tmp_path, PAGE)
    new = written(file, [Filling(changed(unit), "model") for unit in units(file)])
    page, echo, other = trees(tmp_path, PAGE, echoed(mdx(tmp_path, PAGE)), new)
    assert page == echo == other


@pytest.mark.parametrize(
    ("source", "target", "becomes"),
    [
        ("One", "Un {x} < y", "Un \\{x} \\< y"),
        ("One", "<b>Un</b>", "\\<b>Un\\</b>"),
        ("One", "import Un", "&#105;mport Un"),
        ("# One", "import Un", "# import Un"),
        ("One", "*Un*", "\\*Un\\*"),
        ('<Foo title="One" />', 'Un "deux" < {', '<Foo title="Un &quot;deux&quot; &lt; {" />'),
        ("<p>One</p>", "Un", "<p>Un</p>"),
    ],
)
def test_a_target_says_what_it_said(tmp_path: Path, source: str, target: str, becomes: str) -> None:
    file = mdx(tmp_path, source)
    new = filled(file, target).decode()
    assert new == becomes
    if shutil.which("node") and os.environ.get(FOLDER):
        trees(tmp_path, new)


@pytest.mark.parametrize(
    ("content", "line"),
    [("a\n\nb {c\n", 3), ("a <b\n\nc\n", 1), ("{`a\n", 1), ("<a b={>\n", 1), ("x <!-- y", 1)],
)
def test_what_does_not_end_is_an_error_with_its_line(
    tmp_path: Path, content: str, line: int
) -> None:
    with pytest.raises(FormatError, match=rf"a\.mdx, line {line}: .* does not end"):
        units(mdx(tmp_path, content))


_LINES = st.sampled_from(
    [
        *("", "", "One {two}", "*a* **b** `c` <d>e</d>", "# Title {x}", "<Tabs>", "</Tabs>", "```"),
        *("- item <br/>", "  more", "    deep", "import a from 'b'", "export const a = {", "}", ""),
        *(
            '<A title="text"',
            "/>",
            "<A b={{c: 1}} />",
            "{/* x */}",
            ":::note",
            "> <b>q</b>",
            "\\{x",
        ),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_LINES, max_size=14).map("\n".join))
def test_whatever_stands_in_a_file_stays(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    file = mdx(tmp_path_factory.mktemp("mdx"), f"{content}\nx")
    try:
        units(file)
    except FormatError:
        return
    assert untouched(file).decode() == f"{content}\nx"
    echoed(file)


@pytest.mark.parametrize(
    "content",
    [
        *("{a} " * 500 + "\n\n", "<b>x</b>\n\n" * 5_000, "{" * 20_000, "<a " * 20_000),
        *("`" * 30_000, "`{" * 20_000, "<a b='" * 20_000, "{`${" * 10_000, "```\n" * 20_000),
        "import a\n" * 10_000,
    ],
)
def test_odd_files_take_no_longer_than_others(tmp_path: Path, content: str) -> None:
    start = time.process_time()
    with suppress(FormatError):
        units(mdx(tmp_path, f"x\n\n{content}"))
    assert time.process_time() - start < 5
