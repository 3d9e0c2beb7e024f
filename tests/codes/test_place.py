"""Codes are placed where the links say, and keep what they must whatever these say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from coded_texts import SOURCES, kept, outside
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.codes.keep_order import keep_order
from tmnmt.codes.links import Links, best_stretch, grow_stretch, place_of
from tmnmt.codes.place import place
from tmnmt.codes.record import Code, Part, Text, join_parts
from tmnmt.codes.tree import DEEPEST, Node, tree


def spans(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"\w+|[^\w\s]", text)]


def coded(text: str) -> Text:
    """<1>, </1> and <x/> are codes, {a} is a placeholder."""
    parts: list[Part] = []
    for piece in re.split(r"(<.*?>|\{a\d*\})", text):
        if piece.startswith("{"):
            parts.append((Code(0, "placeholder", piece), piece))
        elif piece.startswith("<"):
            name = piece.strip("</>")
            kind = "close" if piece[1] == "/" else "open" if name.isdigit() else "standalone"
            parts.append((Code(0, kind, piece, name if name.isdigit() else ""), ""))  # type: ignore[arg-type]
        elif piece:
            parts.append(piece)
    return join_parts(parts)


def placed(source: str, target: str, links: str) -> str:
    """`links`: which source word every target word comes from, counted from 0; - for none."""
    text = coded(source)
    words, into = spans(text.plain), spans(target)
    mass = np.zeros((len(into), len(words)))
    for row, number in zip(mass, links.split(), strict=True):
        if number != "-":
            row[int(number)] = 1
    return place(text, target, words, into, mass).full_text()


@pytest.mark.parametrize(
    ("source", "target", "links", "wanted"),
    [
        ("the <1>red</1> car", "la voiture rouge", "0 2 1", "la voiture <1>rouge</1>"),
        (
            "Sign <1>here</1> and <2>here</2>",
            "Signez ici et ici",
            "0 3 2 1",
            "Signez <1>ici</1> et <2>ici</2>",
        ),
        (
            "the <1>red car</1> runs",
            "la voiture rouge roule",
            "0 2 1 3",
            "la <1>voiture rouge</1> roule",
        ),
        ("<1>the car</1>", "la voiture", "0 1", "<1>la voiture</1>"),
        ("<x/><1><y/>a b</1><z/>", "B A", "1 0", "<x/><1><y/>B A</1><z/>"),
        ("a<x/> b c", "A B C", "0 1 2", "A<x/> B C"),
        ("a <x/>b c", "A B C", "0 1 2", "A <x/>B C"),
        ("a b <x/>c", "C A B", "2 0 1", "C A B<x/>"),
        ("<1>a <2>b</2></1> c", "C B A", "2 1 0", "C <1><2>B</2> A</1>"),
        ("<1>a</1> <2>b</2>", "B A", "1 0", "<2>B</2> <1>A</1>"),
        ("see <1>this</1>.", "voir ceci.", "0 1 1", "voir <1>ceci</1>."),
        ("see <1>this.</1>", "voir ceci.", "0 1 -", "voir <1>ceci.</1>"),
        ("click <1>here</1>", "cliquez ci-après", "0 1 - -", "cliquez <1>ci-après</1>"),
        ("a <1>meeting</1> now", "un rendez-vous là", "0 - - 1 2", "un <1>rendez-vous</1> là"),
        ("<1>not</1>-smoking", "non-fumeur", "0 1 2", "<1>non</1>-fumeur"),
        ("see <1>this</1> - now", "voir ceci - là", "0 1 2 3", "voir <1>ceci</1> - là"),
        ("un<1>believ</1>able", "incroyable", "0", "<1>incroyable</1>"),
        ("do {a} to {a2}", "vers {a2} de {a}", "4 5 6 7 0 1 2 3", "vers {a2} de {a}"),
        ("{a}<x/>", "a {a}", "- 0 1 2", "a {a}<x/>"),
        ("<1>do</1> {a}", "{a} faire", "1 2 3 0", "{a} <1>faire</1>"),
        ("a<1></1> b", "B A", "1 0", "B A<1></1>"),
        ("a b", "A B", "0 1", "A B"),
        ("<1>a</2> b", "A B", "0 1", "<1>A</2> B"),
        ("a <1>b <2>c</1> d</2> e", "A B C D E", "0 1 2 3 4", "A <1>B <2>C</1> D</2> E"),
    ],
)
def test_codes_stand_where_the_links_lead(
    source: str, target: str, links: str, wanted: str
) -> None:
    assert placed(source, target, links) == wanted


def test_a_placeholder_covers_its_words_and_a_missing_one_is_put_in() -> None:
    source = coded("a {a} b")
    words, into = spans(source.plain), spans("B A")
    mass = np.eye(5)[[4, 0]]
    text = place(source, "B A", words, into, mass)
    assert [(code.markup, code.covers) for code in text.codes] == [("{a}", 0)]
    text = place(source, "A {a} B", words, spans("A {a} B"), np.eye(5))
    assert [(code.at, code.covers) for code in text.codes] == [(2, 3)]


def test_a_code_for_white_space_covers_that_of_the_target() -> None:
    source = Text("a b c", (Code(1, "standalone", "<br/>", covers=1),))
    text = place(source, "A  B C", spans("a b c"), spans("A  B C"), np.eye(3))
    assert text.full_text() == "A<br/>B C"


def test_codes_that_cannot_be_moved_keep_their_order() -> None:
    codes = [Code(0, "standalone", one, movable=False) for one in ("<x/>", "<y/>")]
    source = join_parts(["a ", (codes[0], ""), "b ", (codes[1], ""), "c"])
    links = np.eye(3)[[2, 0, 1]]
    assert (
        place(source, "C A B", spans("a b c"), spans("C A B"), links).full_text() == "C A <x/>B<y/>"
    )
    free = replace(source, codes=tuple(replace(code, movable=True) for code in source.codes))
    text = place(free, "C A B", spans("a b c"), spans("C A B"), np.eye(3)[[2, 1, 0]])
    assert text.full_text() != ""


def test_links_of_another_shape_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"links \(2, 2\) of 1 by 2 words"):
        place(Text("a b"), "A", spans("a b"), spans("A"), np.ones((2, 2)))


# --- whatever the links are


TARGETS = st.lists(st.sampled_from(["A", "BC", ",", ".", "%s", "{a}", "D"]), max_size=8)


def links_for(draw: st.DataObject, rows: int, columns: int) -> np.ndarray:
    seed = draw.draw(st.integers(0, 10**6))
    chance = np.random.default_rng(seed)
    sharp = draw.draw(st.sampled_from([0.0, 1.0, 8.0]))
    mass = chance.random((rows, columns)) ** sharp
    return mass * (chance.random((rows, columns)) < draw.draw(st.sampled_from([0.0, 0.3, 1.0])))


@settings(max_examples=400)
@given(SOURCES, TARGETS, st.data())
def test_whatever_the_links_are_codes_stay_whole(
    source: Text, words: list[str], data: st.DataObject
) -> None:
    target = " ".join(words)
    of_source, of_target = spans(source.plain), spans(target)
    mass = links_for(data, len(of_target), len(of_source))
    text = place(source, target, of_source, of_target, mass)
    assert text.plain == target
    kept(source, text)
    for before in outside(source, of_source, front=True):
        assert source.codes[before].markup == text.codes[before].markup
        assert not target[: text.codes[before].at].strip()
    for behind in outside(source, of_source, front=False):
        assert source.codes[behind].markup == text.codes[behind].markup
        assert not target[text.codes[behind].at :].strip()


@settings(max_examples=200)
@given(SOURCES)
def test_a_text_that_is_its_own_translation_keeps_every_code_in_its_place(source: Text) -> None:
    words = units(source)
    text = place(source, source.plain, words, words, np.eye(len(words)))
    assert squeezed(text) == squeezed(source)


def units(text: Text) -> list[tuple[int, int]]:
    """Placeholders and single characters, so that no code stands inside a word."""
    return [found.span() for found in re.finditer(r"%s|{a}|\S", text.plain)]


def squeezed(text: Text) -> str:
    """The whole text without white space, at which a code may stand on either side."""
    return "".join(text.full_text().split())


def test_spans_that_cross_or_go_too_deep_are_no_tree() -> None:
    assert tree(coded("<1>a<2>b</1>c</2>").codes) is None
    deep = (
        "".join(f"<{n}>" for n in range(DEEPEST + 1)),
        "".join(f"</{n}>" for n in range(DEEPEST, -1, -1)),
    )
    assert tree(coded("a".join(deep)).codes) is None
    source = coded("a".join(deep))
    assert place(source, "A", spans("a"), spans("A"), np.ones((1, 1))).full_text() == "A".join(deep)
    assert tree(coded("<x/><1>a<y/></1></2>").codes) == [
        Node(0, 0),
        Node(1, 3, [Node(2, 2)]),
        Node(4, 4),
    ]


# --- its parts, held to plain loops


@given(st.data(), st.integers(0, 5), st.integers(1, 5))
def test_what_crosses_is_what_a_plain_loop_counts(
    data: st.DataObject, rows: int, columns: int
) -> None:
    mass = links_for(data, rows, columns)
    for place_ in range(columns + 1):
        expected = [
            sum(
                mass[t, s]
                for t, s in product(range(rows), range(columns))
                if (t < k) != (s < place_)
            )
            for k in range(rows + 1)
        ]
        assert np.allclose(Links(mass).crossing(place_), expected)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.data())
def test_the_best_stretch_is_the_best_of_all(gain: list[int], data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, len(gain) - 1))
    hi = data.draw(st.integers(lo + 1, len(gain)))
    stretches = [(a, b) for a in range(lo, hi) for b in range(a + 1, hi + 1)]
    start, end = best_stretch(np.array(gain, float), lo, hi)
    assert (start, end) in stretches
    assert sum(gain[start:end]) == max(sum(gain[a:b]) for a, b in stretches)
    held = data.draw(st.sampled_from(stretches))
    a, b = grow_stretch(np.array(gain, float), *held, lo, hi)
    assert a <= held[0] and held[1] <= b
    around = [(a, b) for a, b in stretches if a <= held[0] and held[1] <= b]
    assert sum(gain[a:b]) == max(sum(gain[a:b]) for a, b in around)


@settings(max_examples=200)
@given(st.data(), st.integers(1, 3), st.integers(1, 4))
def test_places_in_order_are_the_best_of_all(data: st.DataObject, items: int, width: int) -> None:
    costs = [
        np.array(data.draw(st.lists(st.integers(0, 9), min_size=width, max_size=width)), float)
        for _ in range(items)
    ]
    ends = st.integers(0, width - 1)
    some = [
        [(a, b) for a, b in data.draw(st.lists(st.tuples(ends, ends), max_size=2)) if a < b]
        for _ in range(items)
    ]
    ways = product(*([*[(k, k) for k in range(width)], *s] for s in some))
    allowed = [way for way in ways if all(a[1] <= b[0] for a, b in pairwise(way))]

    def worth(way: Sequence[tuple[int, int]]) -> tuple[int, float]:
        cost = sum(cost[start] for cost, (start, _) in zip(costs, way, strict=True))
        return sum(a == b for a, b in way), cost

    chosen = keep_order(costs, some)
    assert tuple(chosen) in allowed
    assert worth(chosen) == min(map(worth, allowed))


@given(st.text(st.sampled_from("ab ,"), max_size=12))
def test_a_place_is_the_number_of_words_before_it(text: str) -> None:
    words = spans(text)
    for at in range(len(text) + 1):
        whole = sum(end <= at for _, end in words)
        part = sum((at - start) / (end - start) for start, end in words if start < at < end)
        assert place_of(at, words) == pytest.approx(whole + part)
