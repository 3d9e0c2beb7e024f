"""The messages among which an ICU argument chooses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.messages import in_sentences, messages
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Text

CASES = {
    "{n, plural, =0 {No file was saved.} one {# file was saved.} other {# files were saved.}}": [
        "No file was saved.",
        "# file was saved.",
        "# files were saved.",
    ],
    "{who, select, male {He must sign.} other {They must sign.}} ": [
        "He must sign.",
        "They must sign.",
    ],
    "{g, select, male {{n, plural, one {He has # file} other {His files}}} other {{name} left}}": [
        "He has # file",
        "His files",
        "{name} left",
    ],
    "{name}: {n, plural, one {one file} other {#}}!": ["one file"],
    "{n, plural, =0 {} other {# files}}": ["# files"],
    "{a, plural, one {a file} other {files}} - {b, plural, one {a door} other {doors}}": [
        "a file",
        "files",
        "a door",
        "doors",
    ],
}
IN_SENTENCES = {
    "Save {n, plural, =0 {} one {# file} other {# files}}.": (
        "{n, plural, =0 {Save .} one {Save # file.} other {Save # files.}}"
    ),
    "{name} has {n, plural, one {# file} other {# files}}, {x}.": (
        "{n, plural, one {{name} has # file, {x}.} other {{name} has # files, {x}.}}"
    ),
    "{g, select, a {{x}} other {{y}}} is here": "{g, select, a {{x} is here} other {{y} is here}}",
    "{name} {n, plural, one {is here} other {are here}}": (
        "{n, plural, one {{name} is here} other {{name} are here}}"
    ),
    # one that chooses in the same way has chosen
    "{g, select, a {He} other {They}} lost {g, select, a {his} other {their}} key.": (
        "{g, select, a {He lost his key.} other {They lost their key.}}"
    ),
    "{n,plural,one{# is}other{# are}} and {n, plural, one {was} other {#}}": (
        "{n,plural,one{# is and was}other{# are and #}}"
    ),
    # the one that gives the # is within the other
    "{n, plural, one {# file} other {# files}} {g, select, a {is his} other {is hers}}": (
        "{g, select, a {{n, plural, one {# file is his} other {# files is his}}} "
        "other {{n, plural, one {# file is hers} other {# files is hers}}}}"
    ),
    "{g, select, a {He has {n, plural, one {# file} other {# files}}.} other {Nothing}}": (
        "{g, select, a {{n, plural, one {He has # file.} other {He has # files.}}} other {Nothing}}"
    ),
    # an offset, or another key, is another choice
    "{n, plural, offset:1 one {it} other {#}} or {n, plural, one {it} other {all}}": (
        "{n, plural, one {{n, plural, offset:1 one {it or it} other {# or it}}} "
        "other {{n, plural, offset:1 one {it or all} other {# or all}}}}"
    ),
}
IN_PARTS = {  # where no sentences can be made
    "{n, plural, one {# file} other {# files}} in {m, plural, one {# place} other {# places}}": [
        *("# file in ", "# place", "# places"),
        *("# files in ", "# place", "# places"),
    ],
    "{n, plural, one {# {g, select, a {man} other {person}}} other {people}}": [
        "man",
        "person",
        "people",
    ],
    "} is {n, plural, one {in it} other {out}}": ["} is ", "in it", "out"],
    "{{x}} is {n, plural, one {in it} other {out}}": ["{{x}} is ", "in it", "out"],
    "No. # has {n, plural, one {one file} other {files}}": ["No. # has ", "one file", "files"],
    " or ".join(f"{{g{i}, select, a {{a}} b {{b}} other {{c}}}}" for i in range(3)): [
        *("a", "b", "c", " or ", "a", "b", "c", " or ", "a", "b", "c"),
    ],
}
NONE = [
    "Save {name}, and {file}.",
    "{n, plural, one {#} other {#}}",
    "{n, plural, one {not closed",
    "{{n}} {0} {}",
]


def read(text: str) -> Text:
    return with_placeholders(Text(text))


@pytest.mark.parametrize("text", CASES)
def test_messages_and_frames_are_the_text(text: str) -> None:
    found = messages(read(text))
    assert found is not None
    assert [message.plain for message in found.texts] == CASES[text]
    assert found.join(found.texts) == read(text)


@pytest.mark.parametrize("text", IN_SENTENCES)
def test_words_around_an_argument_belong_to_every_message(text: str) -> None:
    assert in_sentences(read(text)) == read(IN_SENTENCES[text])
    assert in_sentences(read(IN_SENTENCES[text])) == read(IN_SENTENCES[text])


@pytest.mark.parametrize("text", IN_PARTS)
def test_where_no_sentences_can_be_made_every_run_of_words_is_a_message(text: str) -> None:
    found = messages(read(text))
    assert found is not None
    assert [message.plain for message in found.texts] == IN_PARTS[text]


@pytest.mark.parametrize(("form", "times"), [("", 2), ("xliff", 1)])
def test_a_tag_around_an_argument_comes_again_if_it_is_text(form: str, times: int) -> None:
    tag = Code(0, "standalone", "<br/>", form=form)
    text = read("We have {n, plural, one {# file} other {# files}}.")
    found = messages(replace(text, codes=(tag, *text.codes)))
    assert found is not None
    assert found.join(found.texts).full_text().count("<br/>") == times


def test_what_a_message_makes_up_is_no_syntax() -> None:
    of_word = messages(read("{n, plural, one {it} other {# of C#}} left"))
    assert of_word is not None
    made = [read("l'{x} d'"), Text("} # '{'# ' '")]
    whole = of_word.join(made)
    assert whole.plain == "{n, plural, one {l\u2019{x} d\u2019} other {  '' ' \u2019}}"
    of_names = messages(read("{g, select, a {C#} other {it}}"))
    assert of_names is not None
    assert of_names.join([Text("C#"), Text("#")]).plain == "{g, select, a {C#} other {}}"


def test_blanks_between_messages_are_in_the_plain_text() -> None:
    text = read("We have {n, plural, one { it } other {them}} left.")
    tag = Code(0, "standalone", "<x/>", form="xliff")  # so every run is a message
    found = messages(replace(text, codes=(tag, *text.codes)))
    assert found is not None and found.texts[0].plain == "We have "
    ends = Text("a", (Code(0, "blank", " "), Code(1, "blank", " ")))
    whole = found.join([ends] * 4).plain
    assert whole == "a {n, plural, one { a } other { a }} a"


def test_messages_have_the_keys_of_their_arguments() -> None:
    found = messages(read("He has {n, plural, =0 {no file} other {{g, select, a {it} b {them}}}}"))
    assert found is not None
    assert list(found.by_key()) == [("=0",), ("other", "a"), ("other", "b")]
    twice = messages(read("{a, plural, other {x}} - {b, plural, one {z} other {y}}"))
    assert twice is not None and list(twice.by_key()) == [("one",)]


@pytest.mark.parametrize("text", NONE)
def test_what_chooses_among_no_words_has_no_messages(text: str) -> None:
    assert messages(read(text)) is None


@given(
    st.lists(
        st.sampled_from(
            ("{n, plural,", "{g, select,", " one {", "} other {", "}", "}}", "a b", "#", "{x}")
        ),
        max_size=20,
    )
)
def test_nothing_is_lost_or_made_of_any_text(parts: list[str]) -> None:
    text = read("".join(parts))
    found = messages(text)
    if found is not None:
        whole = found.join(found.texts)
        assert len(found.frames) == len(found.texts) + 1
        assert whole == read(whole.plain)
        assert set(map(_bare, text.codes)) == set(map(_bare, whole.codes))
        assert text.plain.count("a b") <= whole.plain.count("a b")
        assert in_sentences(whole) == whole


def _bare(code: Code) -> Code:
    return replace(code, at=0)
