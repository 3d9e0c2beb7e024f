"""Pairs of a memory as a model reads them beside a text with masks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.form import Copied
from tmnmt.codes.placeholders import Placeholder, with_placeholders
from tmnmt.codes.record import Text
from tmnmt.filters.masked_pair import MaskedPair, masked_pair
from tmnmt.filters.masks import mask


def read(source: str, src: str, tgt: str) -> MaskedPair:
    return masked_pair(masks_of(source), src, tgt, Copied(()))


def masks_of(source: str) -> dict[str, str]:
    masked = mask(with_placeholders(Text(source)))
    return {name: masked.covered(number) for name, number in masked.masks.items()}


@pytest.mark.parametrize(
    ("source", "src", "tgt", "wanted"),
    [
        ("Delete %s files", "Move %s files", "Déplacer %s fichiers", "Déplacer 901 fichiers"),
        # other ones, as many
        ("Delete %s files", "Delete {n} files", "Supprimer {n} fichiers", "Supprimer 901 fichiers"),
        ("{a} of {b}", "%s of {b}", "{b} de %s", "902 de 901"),
        ("%s of %s", "%s of %s", "%s sur %s", "901 sur 902"),
        # not as many, or not on both sides: as they stand
        ("Delete files", "Delete %s files", "Supprimer %s fichiers", "Supprimer %s fichiers"),
        ("Delete {a} of {b}", "Delete %s", "Supprimer %s", "Supprimer %s"),
        ("Delete %s files", "Delete %s files", "Supprimer les fichiers", "Supprimer les fichiers"),
        # what is read as a character stays
        (r"One\nline: %s", r"Two\nlines: %s", r"Deux\nlignes : %s", r"Deux\nlignes : 901"),
        # the mask's own number stands there
        ("Delete %s files", "Delete %s of 9012", "Supprimer %s sur 9012", "Supprimer %s sur 9012"),
        ("see {url}", "see {url} and {urls}", "voir {urls} et {url}", "voir {urls} et 901"),
    ],
)
def test_a_pair_has_the_masks_of_the_text(source: str, src: str, tgt: str, wanted: str) -> None:
    assert read(source, src, tgt).tgt == wanted


def test_both_sides_have_them() -> None:
    assert read("Go to {a}", "Come to %s", "Venez à %s").src == "Come to 901"


@given(st.lists(st.sampled_from(["%s", "{name}", "mot", "https://x.org/a", " ", "é"]), max_size=9))
def test_characters_stand_where_they_stood(parts: list[str]) -> None:
    own = "".join(parts)
    pair = read("%s and {name}, https://x.org/a", own, own)
    masks = {name for _, _, name in pair.spans}
    for at, sign in enumerate(pair.tgt):
        within = any(sign in name for name in masks) and sign.isdigit()
        assert within or own[pair.original(at)] == sign
    for start, end, name in pair.spans:
        assert own[start:end].startswith(("%s", "{name}", "https://x.org/a"))
        assert pair.original(pair.tgt.index(name)) == start


def test_the_placeholders_of_a_pair_are_searched_once() -> None:
    searched = list[str]()

    def find(text: str) -> tuple[Placeholder, ...]:
        searched.append(text)
        return ()

    copied = Copied((find,))
    for source in ("Delete %s files", "Move %s files", "Open %s files"):
        masks = masks_of(source)
        pair = masked_pair(masks, "Count {n} files", "Compter {n} fichiers", copied)
        assert pair.tgt == "Compter 901 fichiers"
    assert searched == ["Count {n} files"]
