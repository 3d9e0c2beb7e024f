"""Which placeholders are found, and that a text stays as it was but for their codes."""

from __future__ import annotations

from time import process_time

import pytest
from coded_texts import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.placeholders import ALL_FINDERS, FINDERS, by_pattern, with_placeholders
from tmnmt.codes.record import Code, Text
from tmnmt.errors import UsageError
from tmnmt.formats.clean_codes import clean_codes


def found(text: str) -> list[str]:
    return [code.markup for code in with_placeholders(Text(text)).codes]


@pytest.mark.parametrize(
    ("text", "placeholders"),
    [
        ("Copy %s to %1$s, %-5.2f%% of %d", ["%s", "%1$s", "%-5.2f", "%%", "%d"]),
        ("%ld of %lld in %@ at %05d, %.*s, %dpx", ["%ld", "%lld", "%@", "%05d", "%.*s", "%d"]),
        ("100 % de la valeur, 50%discount, 5% sure", []),
        ("50%d 50%s.", ["%d", "%s"]),
        ("%(count)d files in %(name)s, (%)", ["%(count)d", "%(name)s"]),
        ("{} of {0} and {name!r:>10}, {x.y[0]}", ["{}", "{0}", "{name!r:>10}", "{x.y[0]}"]),
        (
            "${HOME} costs $5 {{ user }} {0,number,#.##}",
            ["${HOME}", "{{ user }}", "{0,number,#.##}"],
        ),
        ("the set { a b c } and { }", []),
        (r"one\ntwo\t\"three\" \u00e9 C:\dir", [r"\n", r"\t", r"\"", r"\"", r"\u00e9"]),
        ("See https://x.org/a?b=1, (www.y.fr).", ["https://x.org/a?b=1", "www.y.fr"]),
        ("Write to a.b+c@mail.x.org.", ["a.b+c@mail.x.org"]),
        ("http://x.org/%s/{id}", ["http://x.org/%s/{id}"]),
        ("The [X4X] of [X16X]State[X30X], [X] [XX]", ["[X4X]", "[X16X]", "[X30X]"]),
        (
            "{n, plural, =0 {none} one {# file in {dir}} other {# files}} left",
            ["{n, plural, =0 {", "} one {", "#", "{dir}", "} other {", "#", "}}"],
        ),
        (
            "{g, select, f {she has {n, plural, other {#}}} other {# they}}",
            ["{g, select, f {", "{n, plural, other {", "#", "}}", "} other {", "}}"],
        ),
        (
            "{n, PLURAL, offset: 1 one {{x} it's '{y}' } other {'{' ''{z}'' '#'}} isn't '{it}'",
            [
                "{n, PLURAL, offset: 1 one {",
                *("{x}", "'{y}'", "} other {", "'{'", "{z}", "'#'", "}}", "'{it}'"),
            ],
        ),
        ("It's '{name}'", ["{name}"]),  # quoted in a text with messages alone
        ("{n, plural, one {a file", []),
        ("{n, plural, } {n, plural, {a}}", ["{n, plural, }", "{a}"]),
    ],
)
def test_placeholders_are_found_as_they_are_written(text: str, placeholders: list[str]) -> None:
    assert found(text) == placeholders
    assert with_placeholders(Text(text)).plain == text


def test_blanks_within_a_placeholder_are_part_of_it() -> None:
    lines = Text("{n, plural,\n  one {a\nfile}\n\tother {#}\n}")
    text = with_placeholders(clean_codes(lines)[0])
    assert [code.markup for code in text.codes if code.kind == "placeholder"] == [
        "{n, plural,\n  one {",
        "}\n\tother {",
        "#",
        "}\n}",
    ]
    assert text.full_text() == lines.plain


def test_what_is_known_by_its_place_alone_cannot_be_moved() -> None:
    codes = with_placeholders(Text("%s %1$s {} {a} %(n)s %% http://x.org")).codes
    assert [code.markup for code in codes if not code.movable] == ["%s", "{}"]


@given(TEXTS)
def test_the_text_and_its_other_codes_stay_as_they_were(text: Text) -> None:
    marked = with_placeholders(text, [*ALL_FINDERS, by_pattern("[a-m]+")])
    assert (marked.plain, marked.full_text()) == (text.plain, text.full_text())
    new = iter(marked.codes)
    assert all(code in new for code in text.codes if code.kind != "blank")


@given(
    st.lists(
        st.sampled_from(["%s", "{}", "{a}", " ", "x", r"\n", "a@b.c", "50%", "#", "{n,plural,o{"])
    )
)
def test_every_text_comes_back_from_its_placeholders(pieces: list[str]) -> None:
    text = with_placeholders(Text("".join(pieces)))
    assert text.full_text() == text.plain == "".join(pieces)
    assert with_placeholders(text) == text


def test_codes_inside_or_over_a_placeholder_leave_it_alone() -> None:
    inside = Text("a %s b", (Code(3, "standalone", "<x/>"),))
    over = Text("a %s b", (Code(0, "placeholder", "a %s", covers=4),))
    around = Text("%s", (Code(0, "open", "<b>", "1"), Code(2, "close", "</b>", "1")))
    assert with_placeholders(inside) == inside
    assert with_placeholders(over) == over
    assert [code.markup for code in with_placeholders(around).codes] == ["<b>", "%s", "</b>"]


def test_a_longer_placeholder_takes_in_a_shorter_one_that_the_reader_has_found() -> None:
    read = with_placeholders(Text("Set #{name} to %s/%s"))
    whole = with_placeholders(read, [by_pattern(r"#\{\w+\}"), by_pattern("%s/%s")])
    assert [(code.markup, code.movable) for code in whole.codes] == [
        ("#{name}", True),
        ("%s/%s", False),
    ]
    assert whole.full_text() == read.full_text()


def test_patterns_of_one_s_own_and_some_of_ours() -> None:
    finders = [*FINDERS["printf"], by_pattern("[A-Z]{2}-[0-9]+")]
    codes = with_placeholders(Text("%s {a} AB-12"), finders).codes
    assert [code.markup for code in codes] == ["%s", "AB-12"]


@pytest.mark.parametrize(
    ("expression", "why"), [("(", "no regular expression: "), ("x*", "it matches an empty text")]
)
def test_a_pattern_that_cannot_be_used_is_one_clear_error(expression: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        by_pattern(expression)


@pytest.mark.parametrize(
    "piece",
    ["%", "{", "{a", "{n,plural,", "{n,plural,o{", "a@", "www.", "\\", "%(", "${", "a.", "{ "],
)
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    start = process_time()
    with_placeholders(Text(piece * 5000))
    assert process_time() - start < 5
