"""Texts with codes at random places, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from tmnmt.codes.record import KINDS, Code, Part, Text, joined

CHARACTERS = st.characters(exclude_categories=["Cs"])
CODES = st.builds(
    Code,
    at=st.just(0),
    kind=st.sampled_from(KINDS),
    markup=st.text(CHARACTERS, max_size=8),
    pair=st.sampled_from(["", "1", "2"]),
    form=st.sampled_from(["", "tmx"]),
    movable=st.booleans(),
    droppable=st.booleans(),
)
WORDS = st.text(CHARACTERS, max_size=6)
PARTS: st.SearchStrategy[Part] = WORDS | st.tuples(CODES, st.just("") | WORDS)
TEXTS: st.SearchStrategy[Text] = st.lists(PARTS, max_size=8).map(joined)
