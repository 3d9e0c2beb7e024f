"""reStructuredText: texts of blocks are units, markup inside them codes, and the rest of the file
stays. docutils reads the same tree before and after."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from file_units import echoed, filled, units, untouched, written
from hypothesis import given, settings
from hypothesis import strategies as st
from rst_tree import in_other_words, tree

from tmnmt.codes.record import Code, Text
from tmnmt.files.opening import open_translatable
from tmnmt.files.rst import RST, RstFile
from tmnmt.files.unit import Filling

PAGE = """.. comment, untouched

Title
=====

The **permit** is valid. See `code` and :ref:`x`. A `link <http://x.org>`_, a `Title`_,
`Name <Title_>`_ and Python_.

.. note:: Look *here*
   and there::

      code

.. figure:: a.png
   :alt: untouched

   The caption.

======
 Over
======

- item
  goes on

  1. one
  2. two

term : class
   Definition of ``x``\\ s.

:Date: untouched
:Note: prose here

.. warning::
   :class: untouched

   Beware!

.. admonition:: A heading

   Its text.

.. list-table:: A table
   :header-rows: 1

   * - Name
     - Use
   * - **a**
     - b

.. code-block:: python

   print("untouched")

.. unknown:: untouched

   untouched

.. [1] A footnote.
.. _Python: http://python.org
.. |img| image:: untouched.png
.. |text| replace:: new words

| Line one
| Line two

-v, --verbose  Says more.

>>> untouched = 1
1

== =====
a  A row
== =====

+---+--------+
| b | A cell |
+---+--------+

See [1]_, |img| and |text|, snake_case and 2*3::

> untouched

.. parsed-literal::

   untouched Title_
"""
TEXTS = [
    (3, "Title"),
    (6, "The permit is valid. See `code` and :ref:`x`. A link, a Title, Name and Python_."),
    (9, "Look here and there:"),
    (17, "The caption."),
    (20, "Over"),
    (23, "item goes on"),
    (26, "one"),
    (27, "two"),
    (29, "term"),
    (30, "Definition of ``x``s."),
    (33, "prose here"),
    (38, "Beware!"),
    (40, "A heading"),
    (42, "Its text."),
    (44, "A table"),
    (47, "Name"),
    (48, "Use"),
    (49, "a"),
    (50, "b"),
    (60, "A footnote."),
    (63, "new words"),
    (65, "Line one"),
    (66, "Line two"),
    (68, "Says more."),
    (74, "a"),
    (74, "A row"),
    (78, "b"),
    (78, "A cell"),
    (81, "See [1]_, |img| and |text|, snake_case and 2*3:"),
]


def rst(tmp_path: Path, content: str) -> RstFile:
    path = tmp_path / "a.rst"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, RstFile)
    return file


def test_a_file_is_cut_into_units(tmp_path: Path) -> None:
    file = rst(tmp_path, PAGE)
    assert [(unit.line, unit.source.plain) for unit in units(file)] == TEXTS
    codes = [code.markup for code in units(file)[1].source.codes]
    assert codes == [
        *("**", "**", "`code`", ":ref:`x`", "`", " <http://x.org>`_", "`", "`_"),
        *("`", " <Title_>`_", "Python_"),
    ]
    assert untouched(file).decode() == PAGE


def test_only_texts_change_and_titles_keep_their_lines(tmp_path: Path) -> None:
    file = rst(tmp_path, PAGE)
    new = in_other_words(file).decode()
    assert "== =====\naé Aé\n   rowé\n== =====\n" in new
    assert "+----+--------+\n| bé | Aé     |\n|    | cellé  |\n" in new
    assert new.count("untouched") == PAGE.count("untouched")
    assert "\n.. _Title:\n\nTitleé\n======\n" in new  # by which it was referred to
    assert "=======\n Overé\n=======\n" in new
    assert "`Titleé <Title_>`__" in new and "`Nameé <Title_>`__" in new
    assert "untouched Title_\n" in new
    assert "Definitioné ofé ``x``\\ sé.\n" in new
    assert "andé\n   thereé::\n\n      code" in new or "hereé*\n   andé thereé::" in new
    assert ".. |text| replace:: newé wordsé\n" in new


def test_docutils_reads_the_same_tree(tmp_path: Path) -> None:
    page = PAGE.replace(":ref:`x`", ":sub:`x`")
    for new in (echoed(rst(tmp_path, page)), in_other_words(rst(tmp_path, page))):
        assert tree(new) == tree(page)


@pytest.mark.parametrize(
    ("source", "target", "becomes"),
    [
        ("One", "Un", "Un"),
        ("One", "2 * 3 | 4, a_b, x*", "2 * 3 | 4, a_b, x*"),
        ("One", "*Un*", "\\*Un\\*"),
        ("One", "`Un` et ``deux``", "\\`Un\\` et \\`\\`deux\\`\\`"),
        ("One", "Un_ |x|", "Un\\_ \\|x\\|"),
        ("One", "C:\\x", "C:\\\\x"),
        ("One", "- Un", "\\- Un"),
        ("One", "1. Un", "\\1. Un"),
        ("One", ".. Un", "\\.. Un"),
        ("One", "====", "\\===="),
        ("One", ":Un: deux", "\\:Un: deux"),
        ("One", "Un ::", "Un :\\:"),
        ("One", "Un\n\ndeux", "Un deux"),
        ("One\n===", "1. Un", "1. Un\n====="),
        ("One\n-----", "Unité", "Unité\n-------"),
        ("One\n---------", "Un", "Un\n---------"),
        ("One\n===", "日本", "日本\n===="),
        ("One::\n\n  x", "Un :", "Un\u00a0::\n\n  x"),
        ("One::\n\n  x", "Un", "Un ::\n\n  x"),
        (".. note:: One\n   two::\n\n     x", "Un :", ".. note:: \n   Un\u00a0::\n\n     x"),
    ],
)
def test_a_target_says_what_it_said(tmp_path: Path, source: str, target: str, becomes: str) -> None:
    assert filled(rst(tmp_path, source), target).decode() == becomes


def code(at: int, kind: Any, markup: str, pair: str = "1") -> Code:
    return Code(at, kind, markup, pair, RST)


@pytest.mark.parametrize(
    ("source", "target", "becomes"),
    [
        # markup inside a word, beside an apostrophe, around blanks, and inside other markup
        (
            "A **b** c",
            Text("l'acte", (code(3, "open", "**"), code(5, "close", "**"))),
            "l'a\\ **ct**\\ e",
        ),
        (
            "A **b** c",
            Text("l'acte", (code(2, "open", "**"), code(6, "close", "**"))),
            "l'**acte**",
        ),
        (
            "A **b** c",
            Text("un b c", (code(2, "open", "**"), code(5, "close", "**"))),
            "un **b** c",
        ),
        (
            "A **b** ``c``",
            Text(
                "gras ``c`` fin",
                (
                    code(0, "open", "**"),
                    Code(5, "placeholder", "``c``", "", RST, covers=5),
                    code(14, "close", "**"),
                ),
            ),
            "**gras** ``c`` **fin**",
        ),
        ("A **b** c", Text("ab", (code(1, "open", "**"), code(1, "close", "**"))), "ab"),
    ],
)
def test_markup_stands_where_it_is_read(
    tmp_path: Path, source: str, target: Text, becomes: str
) -> None:
    assert filled(rst(tmp_path, source), target).decode() == becomes


def test_a_link_names_what_it_was_found_by(tmp_path: Path) -> None:
    content = "See `Old site`_.\n\n.. _Old site: http://x.org\n"
    file = rst(tmp_path, content)
    first, last = units(file)[0].source.codes
    target = Text(
        "Voir l'ancien site.",
        (code(7, "open", "`", first.pair), code(18, "close", last.markup, last.pair)),
    )
    new = filled(file, target).decode()
    assert new == content.replace("See `Old site`_", "Voir l'`ancien site <Old site_>`__")
    assert tree(new) == tree(content)


def test_sentences_are_units_where_they_are_asked_for(tmp_path: Path) -> None:
    content = "One is *here*. Two\nis there. Three.\n"
    file = rst(tmp_path, content)
    file.sentences, file.src_lang = True, "en"
    assert [unit.source.plain for unit in units(file)] == [
        "One is here.",
        "Two is there.",
        "Three.",
    ]
    assert untouched(file).decode() == content
    assert filled(file, "Un.", "Deux.").decode() == "Un. Deux. Three.\n"


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_marks_and_line_ends_stay(tmp_path: Path, newline: str) -> None:
    content = f"\ufeffOne{newline}==={newline}{newline}Two{newline}three{newline}"
    file = rst(tmp_path, content)
    assert [unit.source.plain for unit in units(file)] == ["One", "Two three"]
    assert untouched(file).decode() == content
    expected = content.replace("One", "Unité").replace("===", "=====")
    assert filled(file, "Unité").decode() == expected


_LINES = st.sampled_from(
    [
        *("", "", "One two", "*a* **b** ``c`` `d`_ e_", "Title", "=====", "-----", "::", "Text::"),
        *("- item", "  more", "    deep", "1. one", ".. note:: x", ".. image:: a", "   :alt: b"),
        *(".. comment", ":field: body", "| line", "--opt  what", ">>> x", "term", "\ttab", "`open"),
        *("== ==", "+--+", "__ a", ".. _a: b", ".. |s| replace:: t", ".. [1] note", "\\*x* \\ y"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_LINES, max_size=14).map("\n".join))
def test_whatever_stands_in_a_file_stays(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    file = rst(tmp_path_factory.mktemp("rst"), f"{content}\nx")
    assert untouched(file).decode() == f"{content}\nx"
    echoed(file)


@pytest.mark.parametrize(
    "content",
    [
        *("- " * 20_000 + "x", "*a " * 40_000, "`a " * 40_000, "a." * 60_000, "|a " * 40_000),
        *("\n".join(" " * n + "x" for n in range(600)), ":a" * 50_000, "\\" * 100_001 + "x"),
        "A title\n=======\n\n" * 3_000,
    ],
)
def test_odd_files_take_no_longer_than_others(tmp_path: Path, content: str) -> None:
    start = time.process_time()
    file = rst(tmp_path, content)
    written(
        file,
        [None if unit.problem else Filling(unit.source, "memory") for unit in units(file)],
    )
    assert time.process_time() - start < 5
