"""Tables of reStructuredText: the texts of cells are units, and a table is drawn for its new texts
as docutils reads it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched, written
from hypothesis import given, settings
from hypothesis import strategies as st
from rst_tree import in_other_words, tree

from tmnmt.files.rst import RstFile
from tmnmt.files.unit import Filling

GRID = """- In a list:

  +---------+----------------+-----------+
  | Name    | What it says   | 日本      |
  |         | of **it**      |           |
  +=========+================+===========+
  | one     | - First        | Beside    |
  |         |   point        | both      |
  +---------+ - Second       +-----------+
  | two     |                | ``x = 1`` |
  +---------+----------------+-----------+
  | Over all columns         | Note::    |
  |                          |           |
  | Another paragraph        |   code    |
  +--------------------------+-----------+
"""
SIMPLE = """=====  ======  ===========
Name   Inputs  Output
-----  ------  -----------
  A      B     A or B
=====  ==================
one    first   A longer text
       line    that goes beyond

\\      | Two   A `link <http://x.org>`_
five   six
-------------  -----------
seven          eight
=====  ======  ===========
"""
SPANNED = """=====  =====  ======
   Inputs     Output
------------  ------
A      B      A or B
=====  =====  ======
False  False  False
True   False  True
=====  =====  ======
"""
COMMAS = '''.. csv-table:: The *title*
   :header: Name, "Use, and more"
   :widths: 10, 20

   one, "Two, or
   three"
   , "He said ""no"""
   plain text, **last**
'''


def rst(tmp_path: Path, content: str) -> RstFile:
    path = tmp_path / "a.rst"
    path.write_bytes(content.encode())
    return RstFile(path)


def texts(file: RstFile) -> list[str]:
    return [unit.source.plain for unit in units(file)]


def test_cells_of_a_table_with_frames_are_units(tmp_path: Path) -> None:
    file = rst(tmp_path, GRID)
    assert texts(file)[1:] == [
        *("Name", "What it says of it", "日本", "one", "First point", "Second"),
        *("Beside both", "two", "Over all columns", "Another paragraph", "Note:"),
    ]
    assert [unit.line for unit in units(file)][-3:] == [12, 14, 12]


def test_cells_of_a_table_with_rules_are_units(tmp_path: Path) -> None:
    assert texts(rst(tmp_path, SPANNED))[:4] == ["Inputs", "Output", "A", "B"]
    content = SIMPLE.replace("=====  ==================", "=====  ======  ===========")
    assert texts(rst(tmp_path, content)) == [
        *("Name", "Inputs", "Output", "A", "B", "A or B", "one", "first line"),
        *("A longer text that goes beyond", "Two", "A link", "five   six", "seven", "eight"),
    ]
    assert texts(rst(tmp_path, SIMPLE)) == []  # of which docutils says that it is malformed


def test_cells_between_commas_are_units(tmp_path: Path) -> None:
    file = rst(tmp_path, COMMAS)
    assert texts(file) == [
        *("The title", "Name", "Use, and more", "one", "Two, or three", "plain text", "last")
    ]
    new = filled(file, "Titre", "Nom, prénom", 'Un "usage"', "un", "Deux, ou trois", 'x "y"')
    assert new.decode() == (
        '''.. csv-table:: Titre
   :header: "Nom, prénom", "Un ""usage"""
   :widths: 10, 20

   un, "Deux, ou trois"
   , "He said ""no"""
   "x ""y""", **last**
'''
    )
    other = COMMAS.replace("   :widths: 10, 20", "   :delim: ;")
    assert texts(rst(tmp_path, other)) == ["The title"]


@pytest.mark.parametrize(
    "content", [GRID, SIMPLE.replace("==================", "======  ==========="), SPANNED, COMMAS]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_docutils_reads_the_same_table(tmp_path: Path, content: str, newline: str) -> None:
    before = content.replace("\n", newline)
    assert untouched(rst(tmp_path, before)).decode() == before
    file = rst(tmp_path, before)
    longer = [Filling(unit.source, "memory") for unit in units(file)]
    for new in (echoed(file), in_other_words(file), written(file, [*longer[:-1], None])):
        assert tree(new) == tree(before)
        assert new.count(b"\r\n") == (new.count(b"\n") if newline == "\r\n" else 0)


def test_a_table_is_drawn_for_longer_texts(tmp_path: Path) -> None:
    rule = "+-----+-------+"
    content = f"{rule}\n| A   | b c   |\n+=====+=======+\n| d   | e     |\n{rule}\n"
    assert filled(rst(tmp_path, content), "Aa aa", "b, et plus long", "ddddddd").decode() == (
        """+---------+-------+
| Aa      | b, et |
| aa      | plus  |
|         | long  |
+=========+=======+
| ddddddd | e     |
+---------+-------+
"""
    )
    content = "===  ====\nA    b c\n===  ====\nd    e\nf\n===  ====\n"
    assert filled(rst(tmp_path, content), "Un deux", "long b c").decode() == (
        """=======  ====
Un deux  long
         b c
=======  ====
d        e
f
=======  ====
"""
    )


def test_items_in_cells_go_on_below_their_texts(tmp_path: Path) -> None:
    content = "+---------+\n| - one   |\n| - two   |\n+---------+\n"
    new = filled(rst(tmp_path, content), "un, et un").decode()
    assert new == "+---------+\n| - un,   |\n|   et un |\n| - two   |\n+---------+\n"


def test_sentences_of_a_cell_are_filled_alone(tmp_path: Path) -> None:
    content = "+-------------+\n| One is. Two |\n| is. Three.  |\n+-------------+\n"
    file = rst(tmp_path, content)
    file.sentences, file.src_lang = True, "en"
    assert texts(file) == ["One is.", "Two is.", "Three."]
    assert filled(file, "Un est.", "Deux.").decode() == (
        "+-------------+\n| Un est.     |\n| Deux.       |\n| Three.      |\n+-------------+\n"
    )


def test_descriptions_of_a_page_are_units(tmp_path: Path) -> None:
    content = """.. meta::
   :description: About permits
   :description lang=en: More
   :keywords: permit, law
   :robots: untouched
   :property=og:title: Permits

"""
    file = rst(tmp_path, content)
    assert texts(file) == ["About permits", "More", "permit, law", "Permits"]
    assert tree(in_other_words(file)) == tree(content)


_TABLE_LINES = st.sampled_from(
    [
        *("+--+--+", "+==+==+", "|a |b |", "|  +--+", "+--+  |", "+-----+", "|a b c|", "|日|b |"),
        *("=== ===", "--- ---", "-------", "a   b", "    c d", "", "abc def", "=======", "\ta"),
        *(".. csv-table:: a", "   :header: a, b", '   a, "b', '   c", d', '   "a""", b'),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_TABLE_LINES, max_size=14).map("\n".join))
def test_whatever_stands_in_a_table_stays(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    file = rst(tmp_path_factory.mktemp("rst"), f"{content}\nx")
    assert untouched(file).decode() == f"{content}\nx"
    elements, warnings = tree(f"{content}\nx")
    if not warnings:
        assert tree(in_other_words(file)) == (elements, 0)


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(["+-" * 200 + "+", "| " * 200 + "|"] * 300 + ["+-" * 200 + "+"]),
        "\n".join(["+" + "-" * 700 + "+"] + ["|" + " " * 700 + "|"] * 700),
        "== ==\n" + "a  b\n" * 1_500 + "== ==\n",
        ".. csv-table:: a\n\n" + '   a, "b"\n' * 1_500,
        '.. csv-table:: a\n\n   "' + 'a""' * 100_000,
    ],
)
def test_odd_tables_take_no_longer_than_others(tmp_path: Path, content: str) -> None:
    start = time.process_time()
    file = rst(tmp_path, content)
    written(file, [Filling(unit.source, "memory") for unit in units(file)])
    assert time.process_time() - start < 5
