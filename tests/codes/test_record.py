"""A text with codes goes to pieces and comes back, in memory and as JSON."""

from __future__ import annotations

import json
from typing import cast

import pytest
from coded_texts import CODES, PARTS, TEXTS
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.record import Code, Kind, Part, Text, alike, equal_codes, join_parts, native, pairs
from tmnmt.codes.stored import codes_of, listed
from tmnmt.errors import DataError

BOLD = Code(0, "open", "<b>", "1"), Code(4, "close", "</b>", "1")
FILES = Code(5, "placeholder", "%s", covers=2)


def test_the_whole_text_has_the_markup_in_its_places() -> None:
    text = Text("Save %s now", (*BOLD, FILES))
    assert text.full_text() == "<b>Save</b> %s now"
    assert list(text.parts()) == [(BOLD[0], ""), "Save", (BOLD[1], ""), " ", (FILES, "%s"), " now"]


@given(TEXTS)
def test_the_parts_of_any_text_make_it_again(text: Text) -> None:
    assert join_parts(text.parts()) == text


@given(st.lists(PARTS, max_size=8))
def test_the_whole_text_is_all_of_its_parts(parts: list[Part]) -> None:
    whole = "".join(part if isinstance(part, str) else part[0].markup for part in parts)
    assert join_parts(parts).full_text() == whole
    plain = "".join(part if isinstance(part, str) else part[1] for part in parts)
    assert join_parts(parts).plain == plain


@given(TEXTS)
def test_codes_come_back_from_json(text: Text) -> None:
    assert (
        codes_of(json.loads(json.dumps(listed(text.plain, text.codes))), text.plain) == text.codes
    )


def test_json_leaves_out_what_is_as_usual() -> None:
    assert listed("Save %s", [BOLD[0], Code(3, "standalone", "<x/>"), FILES]) == [
        [0, "o", "<b>", "1"],
        [3, "s", "<x/>"],
        [5, "p", "%s", "", "", 2],
    ]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [3],
        [[0, "s"]],
        [[0, "q", "x"]],
        [["0", "s", "x"]],
        [[True, "s", "x"]],
        [[0, "s", None]],
        [[0, "s", "\ud800"]],
        [[0, "s", "x", "", "", 0, 4]],
        [[0, "s", "x", "", "", 0, 0, 0]],
        [[3, "s", "x"]],
        [[-1, "s", "x"]],
        [[0, "s", "x", "", "", -1]],
        [[1, "s", "x", "", "", 2]],
        [[1, "s", "x"], [0, "s", "x"]],
        [[0, "s", "x", "", "", 2], [1, "s", "x"]],
    ],
)
def test_what_are_no_codes_of_a_text_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        codes_of(value, "ab")


@pytest.mark.parametrize("code", [Code(3, "standalone", "x"), Code(0, cast(Kind, "bold"), "x")])
def test_codes_that_a_text_cannot_have_are_not_written(code: Code) -> None:
    with pytest.raises(DataError, match="'ab' cannot have these codes"):
        listed("ab", [code])


@given(st.lists(CODES, max_size=5), st.randoms(use_true_random=False), CODES)
def test_codes_are_the_same_in_any_order_and_not_with_one_more(
    codes: list[Code], chance: object, more: Code
) -> None:
    shuffled = list(codes)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert equal_codes(codes, shuffled)
    assert equal_codes(codes, [*shuffled, more]) == (more.kind == "blank")


def test_spans_are_found_by_their_pair_and_halves_are_left_alone() -> None:
    def code(kind: str, pair: str) -> Code:
        return Code(0, kind, "", pair)  # type: ignore[arg-type]

    nested = [code("open", "1"), code("open", "1"), code("close", "1"), code("close", "1")]
    assert pairs(nested) == {0: 3, 1: 2}
    crossing = [code("open", "1"), code("open", "2"), code("close", "1"), code("close", "2")]
    assert pairs(crossing) == {0: 2, 1: 3}
    assert pairs([code("close", "1"), code("open", "1"), code("open", ""), code("close", "")]) == {}


def test_a_tag_is_the_same_as_text_and_in_the_elements_of_formats() -> None:
    bold, tmx, xliff, other = (
        Code(0, "open", markup, "1", form)
        for markup, form in (
            ("<b>", ""),
            ('<bpt i="1" x="1">&lt;b&gt;</bpt>', "tmx"),
            ('<x:bpt id="3">&lt;b></x:bpt>', "xliff1"),
            ('<g id="1">', "xliff1"),
        )
    )
    assert [native(one) for one in (bold, tmx, xliff, other)] == ["<b>", "<b>", "<b>", ""]
    assert alike([bold], [tmx]) and alike([tmx], [xliff]) and not equal_codes([bold], [tmx])
    assert (
        not alike([bold], [other]) and not alike([bold, bold], [bold]) and alike([other], [other])
    )
    assert not alike([bold], [Code(0, "close", "<b>", "1")])
