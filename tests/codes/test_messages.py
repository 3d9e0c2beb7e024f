"""The messages among which an ICU argument chooses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.messages import messages
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text

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
NONE = [
    "Save {name}, and {file}.",
    "{n, plural, one {#} other {#}}",
    "{g, select, male {He has {n, plural, one {# file} other {# files}}} other {Nothing}}",
    "{n, plural, one {# is} other {# are}} here, {name}.",
    "{n, plural, one {is} other {are}} and {n, plural, one {was} other {were}}",
    "No. # has {n, plural, one {one file} other {files}}",
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
    assert found.joined(found.texts) == read(text)


def test_words_around_the_argument_belong_to_every_message() -> None:
    found = messages(read("Save {n, plural, =0 {} one {# file} other {# files}}."))
    assert found is not None
    shown = [message.plain for message in found.texts]
    assert shown == ["Save .", "Save # file.", "Save # files."]
    whole = "{n, plural, =0 {Save .} one {Save # file.} other {Save # files.}}"
    assert found.joined(found.texts) == read(whole)


@pytest.mark.parametrize("text", NONE)
def test_what_belongs_to_no_single_message_is_left_whole(text: str) -> None:
    assert messages(read(text)) is None


@given(
    st.lists(
        st.sampled_from(
            ["{n, plural,", "{g, select,", " one {", " other {", "}", "a b", "#", "{x}"]
        ),
        max_size=14,
    )
)
def test_nothing_is_lost_or_made_of_any_text(parts: list[str]) -> None:
    text = read("".join(parts))
    found = messages(text)
    if found is not None:
        whole = found.joined(found.texts)
        around = text.codes[0].at or text.codes[-1].at + text.codes[-1].covers < len(text.plain)
        assert whole == text or (around and len(whole.plain) >= len(text.plain))
        assert len(found.frames) == len(found.texts) + 1
