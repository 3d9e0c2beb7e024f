"""Placeholders behind masks: what the model does with them, every one comes back once."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from coded_texts import SOURCES, kept
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.codes.place import place
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Part, Text, join_parts
from tmnmt.filters.contract import ModelOutput, Reader
from tmnmt.filters.masks import mask
from tmnmt.text import token_spans


def target_of(source: str, written: str, links: str = "") -> str:
    """What becomes of a model's words. `links`: which source word every target word comes from."""
    parts: list[Part] = []
    for piece in re.split("(<x>)", source):
        parts.append((Code(0, "standalone", "<x>"), "") if piece == "<x>" else piece)
    masked = mask(with_placeholders(join_parts(parts)))
    said = masked.restore_piece(ModelOutput(written, masked.text.plain))
    rows, columns = token_spans(said), token_spans(masked.text.plain)
    mass = np.zeros((len(rows), len(columns)))
    for row, number in zip(mass, links.split(), strict=False):
        row[int(number)] = 1
    text = masked.restore(place(masked.text, said, columns, rows, mass))
    assert text.full_text().replace("<x>", "") == text.plain
    return text.full_text()


@pytest.mark.parametrize(
    ("source", "read", "written", "wanted"),
    [
        ("No %s of {a}", "No Y of 901", "Nenhum Y de 901", "Nenhum %s de {a}"),
        ("no %s, no {a}", "no Y, no Z", "sem Z, sem Y", "sem {a}, sem %s"),
        ("Y: no %s", "Y: no Z", "Y : nenhum Z", "Y : nenhum %s"),
        ("Note %s", "Note 901", "Nota 901", "Nota %s"),
        ("No %s", "No Y", "Nenhum Y, nem Y", "Nenhum %s, nem"),
        ("No %s", "No Y", "Nenhum %s", "Nenhum %s"),
    ],
)
def test_a_mask_is_a_letter_behind_a_word_that_a_number_would_change(
    source: str, read: str, written: str, wanted: str
) -> None:
    masked = mask(with_placeholders(Text(source)), counts=Reader(lang="en").counts)
    assert masked.text.plain == read
    said = masked.restore_piece(ModelOutput(written, read))
    rows, columns = token_spans(said), token_spans(read)
    placed = place(masked.text, said, columns, rows, np.zeros((len(rows), len(columns))))
    assert masked.restore(placed).plain == wanted
    assert not Reader(lang="fr").counts("No ")


@pytest.mark.parametrize(
    ("source", "written", "links", "wanted"),
    [
        ("Delete %s files?", "Supprimer 901 fichiers ?", "", "Supprimer %s fichiers ?"),
        # a literal that a pair has, and not the source
        ("Return %s now", "Retourner 901 ``True`` maintenant", "", "Retourner %s maintenant"),
        (r"one \n two", "un deux", "0 1", r"un \n deux"),
        ("Copy {a} to {b}", "Vers 902 copier 901", "", "Vers {b} copier {a}"),
        # lost: put in where it belongs, between blanks, and not before a full stop
        ("Delete %s files?", "Supprimer fichiers ?", "0 2 3", "Supprimer %s fichiers ?"),
        ("Delete {a}.", "Supprimer.", "0 2", "Supprimer {a}."),
        ("%s files", "Fichiers", "1", "%s Fichiers"),
        ("v%d is out", "est sorti", "2 3", "%d est sorti"),
        # written twice: once
        ("Delete %s files", "Supprimer 901 fichiers 901", "0 1 2 2", "Supprimer %s fichiers"),
        # of a pair: its own placeholder, one of others
        ("Delete %s files", "Supprimer %s fichiers", "", "Supprimer %s fichiers"),
        ("Delete %s files", "Supprimer 901 %d fichiers", "", "Supprimer %s fichiers"),
        # what cannot be moved keeps its order
        ("%s of %d", "902 par 901", "2 1 0", "%s %d par"),
        # characters that are written otherwise, some of which a translation may do without
        (
            "The owner&#39;s fee",
            "Les frais du propriétaire",
            "0 4 2 1",
            "Les frais du propriétaire",
        ),
        ("50%% of it", "50 % de ça", "0 1 2 3", "50 %% de ça"),
        (r"Say \"no\"", 'Dire "non"', "0 1 2 3", r"Dire \"non\""),
        (r"one\ntwo", "un deux", "0 1", r"un\ndeux"),
        (r"Done\n", "Fait", "0", r"Fait\n"),
        # no mask of its own for a code that stands beside the words
        ("(1)<x>The end", "(1) La fin", "0 1 2 3 4", "(1)<x> La fin"),
        # a number of the source is no mask
        ("Page 901 of %s", "Page 901 de 902", "", "Page 901 de %s"),
    ],
)
def test_a_placeholder_comes_back_once(source: str, written: str, links: str, wanted: str) -> None:
    assert target_of(source, written, links) == wanted


def test_the_model_reads_numbers_that_stand_nowhere_else() -> None:
    source = with_placeholders(Text("%s, {a} and https://x.org/a in 902"))
    assert mask(source).text.plain == "901, 903 and 904 in 902"


def test_what_a_person_wrote_stays_but_for_a_placeholder_that_lacks() -> None:
    source = with_placeholders(Text("Delete %s"))
    masked = mask(source, by_person=True)
    rows = token_spans("Supprimer %d 901")
    placed = place(masked.text, "Supprimer %d 901", token_spans("Delete %s"), rows, np.eye(4, 3))
    assert sorted(masked.restore(placed).plain.split()) == ["%d", "%s", "901", "Supprimer"]


WRITTEN = st.lists(
    st.sampled_from(["A", "BC", ",", ".", "901", "902", "903", "%s", "%d", "{a}", "{b}", "x901"]),
    max_size=8,
)


@settings(max_examples=400)
@given(SOURCES, WRITTEN, st.integers(0, 10**6), st.booleans())
def test_whatever_is_written_every_code_comes_back_once(
    source: Text, words: list[str], seed: int, by_person: bool
) -> None:
    masked = mask(source, by_person)
    said = " ".join(words)
    if not by_person:
        said = masked.restore_piece(ModelOutput(said, masked.text.plain))
    rows, columns = token_spans(said), token_spans(masked.text.plain)
    chance = np.random.default_rng(seed)
    mass = chance.random((len(rows), len(columns)))
    target = masked.restore(place(masked.text, said, columns, rows, mass))
    kept(source, target)
    covered = [
        Counter(one.plain[c.at : c.at + c.covers] for c in one.codes if c.kind == "placeholder")
        for one in (source, target)
    ]
    assert covered[0] == covered[1]  # as text, too
    if not by_person:
        for words_ in (part for part in target.parts() if isinstance(part, str)):
            assert not with_placeholders(Text(words_)).codes
            assert not set(re.findall(r"\d+", words_)) & set(masked.masks.values())
