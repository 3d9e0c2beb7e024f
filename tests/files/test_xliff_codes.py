"""Inline elements of XLIFF become codes and come back as they were, white space too."""

from __future__ import annotations

import re
from random import Random
from xml.etree.ElementTree import canonicalize

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xliff_texts import CONTENTS1, CONTENTS2

from tmnmt.codes.place import place
from tmnmt.codes.record import Code, Text, equal_codes
from tmnmt.files.xliff_codes import (
    XLIFF1,
    XLIFF2,
    Form,
    candidate_of,
    content_of,
    refusal,
    text_of,
)
from tmnmt.text import token_spans

_INSTRUCTION = re.compile(r"<\?.*?\?>")


def text1(content: str, prefix: str = "") -> Text:
    return text_of(content.encode(), prefix, XLIFF1)


def text2(content: str) -> Text:
    return text_of(content.encode(), "", XLIFF2)


def listed(text: Text) -> list[tuple[int, str, str, str, int]]:
    return [(code.at, code.kind, code.markup, code.pair, code.covers) for code in text.codes]


def same_xml(one: str, other: str) -> bool:
    """But for processing instructions."""
    texts = (_INSTRUCTION.sub("", f"<s>{text}</s>") for text in (one, other))
    return len({canonicalize(text) for text in texts}) == 1


BOTH = st.tuples(CONTENTS1, st.just(XLIFF1)) | st.tuples(CONTENTS2, st.just(XLIFF2))


@given(BOTH)
@example(('a<x id="1"/><!-- <g> -->b', XLIFF1))
@example(('a<x id="1"/><?pi?><![CDATA[]]><![CDATA[b]]>', XLIFF1))
@settings(max_examples=400)
def test_what_is_written_is_what_was_read(drawn: tuple[str, Form]) -> None:
    content, form = drawn
    text = text_of(content.encode(), "", form)
    assert same_xml(content_of(text, form), content)
    assert text_of(content_of(text, form).encode(), "", form) == text
    assert refusal(text, text.codes, form) == ""
    assert text.plain == text.plain.strip() and "\n" not in text.plain


def test_spans_and_standalone_codes_of_version_1() -> None:
    text = text1('A <g id="1">b <bpt id="2">&lt;i></bpt>c<ept id="2">&lt;/i></ept></g><x id="3"/>')
    assert text.plain == "A b c"
    assert listed(text) == [
        (2, "open", '<g id="1">', "g 1", 0),
        (4, "open", '<bpt id="2">&lt;i></bpt>', "b 2", 0),
        (5, "close", '<ept id="2">&lt;/i></ept>', "b 2", 0),
        (5, "close", "</g>", "g 1", 0),
        (5, "standalone", '<x id="3"/>', "", 0),
    ]


def test_halves_of_version_1_are_told_by_rid_and_by_pos() -> None:
    text = text1(
        '<bx id="1" rid="9"/>a<ex id="2" rid="9"/><it id="3" pos="open"/><it id="4" pos="close"/>'
    )
    assert [(code.kind, code.pair) for code in text.codes] == [
        ("open", "x 9"),
        ("close", "x 9"),
        ("open", ""),
        ("close", ""),
    ]


def test_spans_and_standalone_codes_of_version_2() -> None:
    text = text2('<pc id="1">a</pc> <sc id="2"/>b<ec startRef="2"/><ph id="3"/> <cp hex="0007"/>')
    assert text.plain == "a b"
    assert [(code.kind, code.pair) for code in text.codes] == [
        ("open", "pc 1"),
        ("close", "pc 1"),
        ("open", "sc 2"),
        ("close", "sc 2"),
        ("standalone", ""),
        ("blank", ""),
        ("standalone", ""),
    ]


@pytest.mark.parametrize(
    ("say", "movable"), [("", True), ("yes", True), ("no", False), ("firstNo", False)]
)
def test_version_2_says_what_may_be_moved(say: str, movable: bool) -> None:
    attribute = f' canReorder="{say}"' if say else ""
    (code,) = text2(f'<ph id="1"{attribute}/>').codes
    assert code.movable == movable


def test_what_is_native_code_is_no_text_not_even_its_sub_flows() -> None:
    text = text1('See <ph id="1">[img alt="<sub>a house</sub>"]</ph> here')
    assert text.plain == "See  here"
    (code,) = text.codes
    assert "<sub>a house</sub>" in code.markup


@pytest.mark.parametrize(
    "content",
    [
        'the <mrk mtype="protected">blue <g id="1">Open</g></mrk> file',
        'the <mrk id="1" translate="no">blue Open</mrk> file',
    ],
)
def test_protected_text_is_a_placeholder_that_covers_it(content: str) -> None:
    text = text1(content)
    assert text.plain == "the blue Open file"
    (code,) = text.codes
    assert (code.kind, code.at, code.covers) == ("placeholder", 4, 9)
    assert content_of(text, XLIFF1) == content


def test_a_standalone_code_between_letters_keeps_words_apart() -> None:
    assert text1('one<x id="1"/>two').plain == "one two"
    assert text1('one <x id="1"/>two').plain == "one two"
    assert text1('one.<x id="1" ctype="lb"/>Two').plain == "one. Two"
    assert text2('one.<ph id="1" type="fmt" subType="xlf:lb"/>Two').plain == "one. Two"
    assert text1('un<g id="1">believ</g>able').plain == "unbelievable"


def test_white_space_is_kept_as_blanks() -> None:
    text = text1("\n   Two\n   lines\t")
    assert text.plain == "Two lines"
    assert [code.kind for code in text.codes] == ["blank"] * 3
    assert content_of(text, XLIFF1) == "\n   Two\n   lines\t"


def test_comments_are_nothing_and_cdata_is_text() -> None:
    assert text1("a<!-- no -->b<?no?>c<![CDATA[<d>]]>") == Text("abc<d>")


def test_elements_of_others_and_with_the_prefix_of_xliff() -> None:
    assert text1('<x:g id="1">a</x:g>', "x:").plain == "a"
    other = text1('a <g id="1">b</g>', "x:")
    assert other.plain == "a" and other.codes[-1].markup == '<g id="1">b</g>'


G = Code(0, "open", '<g id="1">', "g 1", "xliff1")
END = Code(1, "close", "</g>", "g 1", "xliff1")
X = Code(1, "standalone", '<x id="2"/>', "", "xliff1")
TMX = Code(0, "standalone", "<ph/>", "", "tmx")


@pytest.mark.parametrize(
    ("codes", "why"),
    [
        ((G, END), ""),
        ((X,), ""),
        ((), ""),
        ((TMX,), "is not in its source"),
        ((X, X), "not so often"),
        ((G,), "<g> is not closed"),
        ((END,), "closes what is not open"),
        ((Code(0, "placeholder", "%s", covers=1),), ""),
    ],
)
def test_codes_that_cannot_be_written_are_refused(codes: tuple[Code, ...], why: str) -> None:
    said = refusal(Text("a", codes), (G, END, X), XLIFF1)
    assert why in said and bool(why) == bool(said)


def test_the_codes_of_a_match_are_its_units_or_placeholders() -> None:
    known = (G, END)
    assert candidate_of(Text("a", known), known, "", XLIFF1) == '<g id="1">a</g>'
    foreign = Text("a", (TMX, Code(1, "blank", " ")))
    assert candidate_of(foreign, known, "x:", XLIFF1) == '<x:ph id="1">&lt;ph/&gt;</x:ph>a '
    assert candidate_of(foreign, known, "", XLIFF2) == '<ph id="1" disp="&lt;ph/&gt;"/>a '


@given(BOTH, st.lists(st.sampled_from(["un", "deux", "<b c>", "."]), max_size=6), st.randoms())
@settings(max_examples=150)
def test_placed_codes_can_be_written(
    drawn: tuple[str, Form], words: list[str], random: Random
) -> None:
    content, form = drawn
    source = text_of(content.encode(), "", form)
    target = " ".join(words)
    spans = token_spans(source.plain), token_spans(target)
    links = np.array([[random.random() for _ in spans[0]] for _ in spans[1]])
    placed = place(source, target, *spans, links.reshape(len(spans[1]), len(spans[0])))
    assert refusal(placed, source.codes, form) == ""
    again = text_of(content_of(placed, form).encode(), "", form)
    assert equal_codes(again.codes, source.codes)


def test_html_that_stands_as_text_is_codes_and_is_written_as_text_again() -> None:
    for text_in, form in ((text1, XLIFF1), (text2, XLIFF2)):
        raw = " Click &lt;b&gt;here&lt;/b&gt;, if a &lt; b or c &gt; d, &lt;file&gt;.&lt;br/&gt;"
        text = text_in(raw)
        assert text.plain == "Click here, if a < b or c > d, <file>."
        assert [code.markup for code in text.codes if code.kind != "blank"] == [
            "<b>",
            "</b>",
            "<br/>",
        ]
        assert content_of(text, form) == raw
    many = "&lt;br/&gt;" * 1001
    assert not [code for code in text1(many).codes if code.kind != "blank"]
