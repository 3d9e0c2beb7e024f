"""A standalone code that stands between blanks in the source does so in the target."""

from __future__ import annotations

import pytest

from tmnmt.codes.record import Code, Part, Text, join_parts
from tmnmt.codes.spacing import with_spacing

X = (Code(0, "standalone", "<x/>"), "")
BLANK = (Code(0, "blank", " "), "")


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        (["Contact ", X, BLANK, "at once."], ["Contactez ", X, "vite."], "Contactez <x/> vite."),
        (["Contact ", X, BLANK, "at once."], ["Contactez", X, " vite."], "Contactez <x/> vite."),
        (["Contact ", X, BLANK, "at once."], ["Contactez ", X, "."], "Contactez <x/>."),
        (["Contact ", X, BLANK, "at once."], ["Vite", X], "Vite<x/>"),
        (["Contact ", X, "at once."], ["Contactez ", X, "vite."], "Contactez <x/>vite."),
        (
            ["One", X, " two ", X, BLANK, "three"],
            ["Un ", X, "deux ", X, "trois"],
            "Un <x/> deux <x/>trois",
        ),
    ],
)
def test_what_stands_apart_is_kept_apart(
    source: list[Part], target: list[Part], wanted: str
) -> None:
    made = with_spacing(join_parts(source), join_parts(target))
    assert made.full_text() == wanted
    assert made.plain == join_parts(target).plain
    assert isinstance(made, Text)
