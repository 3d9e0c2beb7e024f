"""Segments of any text, drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from tmnmt.segments import Segment


def printable(min_size: int) -> st.SearchStrategy[str]:
    characters = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
    return st.text(characters, min_size=min_size, max_size=20)


TEXTS = printable(1).map(str.strip).filter(bool)
FIELDS = printable(0)
DATES = st.datetimes().map(
    lambda date: f"{date.year:04}" + date.strftime("-%m-%dT%H:%M:%SZ")
) | st.just("")
PROPERTIES = st.lists(st.tuples(FIELDS, FIELDS | st.just("a\r\n\tb")), max_size=3).map(tuple)
SEGMENTS = st.builds(
    Segment,
    src=TEXTS,
    tgt=TEXTS,
    document=FIELDS,
    position=st.integers(0, 10**9),
    origin=FIELDS,
    created=DATES,
    changed=DATES,
    user=FIELDS,
    properties=PROPERTIES,
)
