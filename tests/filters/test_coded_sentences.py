"""Sentences with codes between them, and notes, which are no words of a sentence."""

from __future__ import annotations

import pytest

from tmnmt.codes.breaks import is_tab, line_ends
from tmnmt.codes.notes import notes
from tmnmt.codes.record import Code, Kind, Text
from tmnmt.files.texts import string_of, text_of
from tmnmt.files.xliff_codes import XLIFF1, XLIFF2, Form
from tmnmt.files.xliff_codes import text_of as xliff_text_of
from tmnmt.filters import Filters
from tmnmt.filters.coded_sentences import coded_sentences
from tmnmt.filters.contract import Reader
from tmnmt.filters.notes import Notes


def parts(string: str) -> list[str]:
    """The sentences of a string, with their codes."""
    split = coded_sentences(text_of(string))
    if split is None:
        return []
    assert string_of(split.join(split.texts)) == string
    return [string_of(text) for text in split.texts]


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("It is void.<br>The fee is due.", ["It is void.", "The fee is due."]),
        ("It is void. <br/>The fee is due.", ["It is void.", "The fee is due."]),
        ("It is void\n\nthe fee is due", ["It is void", "the fee is due"]),
        ("Name:\nAddress:\nDate:", ["Name:", "Address:", "Date:"]),
        ("Send a notice:\n\t- a plan;\n\t- a map.\n", ["Send a notice:", "a plan;", "a map."]),
        ("The owner\tthe applicant", ["The owner", "the applicant"]),
        (
            "It is <b>void.</b><br><i>The fee</i> is due.",
            ["It is <b>void.</b>", "<i>The fee</i> is due."],
        ),
        ("<b>It is void.<br>The fee is due.</b>", ["It is void.", "The fee is due."]),
        ("It is void.<sup>1</sup> The fee is due.", ["It is void.", "The fee is due."]),
        ("In section 65.<sup>1</sup> The fee is due.", ["In section 65.", "The fee is due."]),
        ("It is void. <b>The fee is due.</b>", ["It is void.", "The fee is due."]),
        ("It is void.<b> </b>The fee is due.", ["It is void.", "The fee is due."]),
        ("它是无效的。<br>费用到期。", ["它是无效的。", "费用到期。"]),
        (
            "One is void.<br>Two is void.<br>Three is.",
            ["One is void.", "Two is void.", "Three is."],
        ),
    ],
)
def test_sentences_with_codes_between_them(string: str, expected: list[str]) -> None:
    assert parts(string) == expected


@pytest.mark.parametrize(
    "string",
    [
        "Need help choosing<br>a permit?",
        "It is void. The fee is due.",
        "Mr. <b>Smith</b> is the owner.",
        "See Dr. <b>Smith and the</b> owner.",
        "<b>Note.</b> The permit is valid.",
        "The <b>owner</b> must apply.",
        "***<br>The permit is valid.",
        "The vessel (e.g. <i>a ship</i>) is here.",
    ],
)
def test_what_stays_in_one(string: str) -> None:
    assert parts(string) == []


def xliff(content: str, form: Form) -> Text:
    return xliff_text_of(content.encode(), "", form)


@pytest.mark.parametrize(
    ("content", "form", "lines"),
    [
        ('a<x id="1" ctype="lb"/>b', XLIFF1, 1),
        ('a<ph id="1">&lt;br/&gt;</ph>b', XLIFF1, 1),
        ('a<x id="1" equiv-text="&lt;br&gt;&lt;br&gt;"/>b', XLIFF1, 2),
        ('a<ph id="1" type="fmt" subType="xlf:lb"/>b', XLIFF2, 1),
        ('a<ph id="1" disp="&#10;"/>b', XLIFF2, 1),
        ('a<x id="1" ctype="image"/>b', XLIFF1, 0),
        ('a<ph id="1">&lt;b/&gt;</ph>b', XLIFF1, 0),
    ],
)
def test_line_breaks_of_xliff(content: str, form: Form, lines: int) -> None:
    (code,) = xliff(content, form).codes
    assert line_ends(code, " ") == lines


@pytest.mark.parametrize(
    ("kind", "markup", "covered", "lines", "tab"),
    [
        ("standalone", "\n\n", " ", 2, False),
        ("standalone", "\r\n", " ", 1, False),
        ("standalone", "\t", " ", 0, True),
        ("placeholder", "\\n", "\\n", 1, False),
        ("standalone", "<BR clear='all'>", "", 1, False),
        ("blank", "\n", " ", 0, False),
        ("placeholder", "%s", "%s", 0, False),
    ],
)
def test_line_breaks(kind: Kind, markup: str, covered: str, lines: int, tab: bool) -> None:
    code = Code(0, kind, markup, covers=len(covered))
    assert (line_ends(code, covered), is_tab(code, covered)) == (lines, tab)


@pytest.mark.parametrize(
    ("string", "count"),
    [
        ("The owner<b>1</b> must pay the fee<b>2</b>.", 2),
        ("It is void.<b>12</b>", 1),
        ("<b>1</b> The owner must pay.", 1),
        ("<b>1</b>The owner must pay.", 1),
        ("The fee<b> </b>is due.", 1),
        ("10<sup>6</sup> tonnes", 1),
        ("The owner<b>*</b> must pay.", 1),
        ("H<b>2</b>O is a substance.", 0),
        ("The fee is <b>250</b> dollars.", 0),
        ("<b>12</b> days are enough.", 0),
        ("See section 5.<b>2</b> of the Act.", 0),
        ("See (<b>2</b>).", 0),
        ("The owner<b>a</b> must pay.", 0),
    ],
)
def test_what_is_a_note_comes_through_with_its_text(string: str, count: int) -> None:
    text = text_of(string)
    assert len(notes(text)) == count
    read, undo = Notes(Reader()).prepare(text)
    assert isinstance(read, Text) and len(read.codes) == len(text.codes)
    assert (undo is not None) == bool(count)
    if undo is not None:
        assert undo.restore(read) == text
        assert not notes(read)


def test_the_first_filter_that_splits_a_text_does_so() -> None:
    text = text_of("{n, plural, one {It is void.\nThe fee is due.} other {They are void.}}")
    _, undos = Filters(Reader()).prepare(text, "model")
    assert [type(undo).__name__ for undo in undos[::-1] if hasattr(undo, "texts")][:1] == [
        "SplitMessages"
    ]
