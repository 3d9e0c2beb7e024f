"""Tags that stand in a text as it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text
from tmnmt.codes.tags import html_tags, phrase_tags, with_tags


@pytest.mark.parametrize(
    ("text", "plain", "codes"),
    [
        ("Click <b>here</b>.", "Click here.", "<b> </b>"),
        ("<a href=\"%s\" title='>'>Read <i>more</i></a>", "Read more", "<a <i> </i> </a>"),
        ("<0>z</0> <x:y>a</x:y>", "z a", "<0> </0> <x:y> </x:y>"),  # as React and others have it
        ("a<br>b<br/>c <hr /> d", "a b c  d", "<br> <br/> <hr"),
        ("One <b>two", "One two", "<b>"),
        ("<b>a <b>b</b></b>", "a b", "<b> <b> </b> </b>"),
        # no tags
        ("git <object> <path> [<name>]", "git <object> <path> [<name>]", ""),
        ("a<b and c>d, x < y, I <3 you, <>, </", "a<b and c>d, x < y, I <3 you, <>, </", ""),
        ("%<PRIu64> of <b>%<name>s%</b>", "%<PRIu64> of %<name>s%", "<b> </b>"),
        ("Copy <input> to <output>", "Copy <input> to <output>", ""),
    ],
)
def test_tags_are_told_from_words(text: str, plain: str, codes: str) -> None:
    made = with_tags(Text(text), html_tags)
    assert made.plain == plain and made.full_text() == text
    assert [code.markup.split()[0] for code in made.codes] == codes.split()


def test_the_halves_of_a_span_have_a_name_of_their_own() -> None:
    made = with_tags(Text("<b>a <b>b</b></b></b>"), html_tags)
    assert [(code.kind, code.pair) for code in made.codes] == [
        *(("open", "1"), ("open", "2"), ("close", "2"), ("close", "1"), ("close", ""))
    ]


def test_codes_that_are_there_stay() -> None:
    before = with_placeholders(Text("%s <b>{a}</b>"))
    made = with_tags(before, html_tags)
    assert made.plain == "%s {a}" and made.full_text() == before.plain
    assert [code.markup for code in made.codes] == ["%s", "<b>", "{a}", "</b>"]


@given(st.text("<>/ab1{}'\"= "))
def test_whatever_the_text_it_is_written_as_it_was(text: str) -> None:
    for find in (html_tags, phrase_tags):
        assert with_tags(Text(text), find).full_text() == text
