"""Texts with codes at random places, for hypothesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tmnmt.codes.record import KINDS, Code, Kind, Part, Text, join_parts, pairs

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
TEXTS: st.SearchStrategy[Text] = st.lists(PARTS, max_size=8).map(join_parts)


HALVES: list[Kind] = ["open", "close"]


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> list[Part]:
    """Words, codes and spans of spans."""
    parts: list[Part] = []
    for _ in range(draw(st.integers(0, 4))):
        match draw(st.integers(0, 6 if depth else 4)):
            case 0 | 1:
                parts.append(draw(st.sampled_from(["a", "b c", " ", ", ", ".", " d e "])))
            case 2:
                markup = f"<x{draw(st.integers(0, 3))}/>"
                parts.append((Code(0, "standalone", markup, movable=draw(st.booleans())), ""))
            case 3:
                half: Kind = draw(st.sampled_from(HALVES))
                parts.append((Code(0, half, "<half/>"), ""))
            case 4:
                name = draw(st.sampled_from(["%s", "{a}"]))
                parts += [" ", (Code(0, "placeholder", name), name), " "]
            case _:
                inside = draw(trees(depth=depth - 1))
                number = str(draw(st.integers(0, 10**9)))
                opening = Code(0, "open", f"<{number}>", number)
                closing = Code(0, "close", f"</{number}>", number)
                parts += [(opening, ""), *inside, (closing, "")]
    return parts


SOURCES = trees().map(join_parts)


def kept(source: Text, target: Text) -> None:
    """Fails where the target has other codes than the source, one in another span, or codes that
    cannot be moved in another order."""
    codes = [Counter(replace(c, at=0, covers=0) for c in one.codes) for one in (source, target)]
    assert codes[0] == codes[1]
    assert shape(target.codes) == shape(source.codes)
    fixed = [[c.markup for c in one.codes if not c.movable] for one in (source, target)]
    assert fixed[0] == fixed[1]


def shape(codes: Sequence[Code]) -> dict[str, Counter[str]]:
    """Which codes are in which span, by their markup."""
    closes, inside = pairs(codes), [""]
    found: dict[str, Counter[str]] = {}
    for at, code in enumerate(codes):
        if at in closes.values():
            assert inside.pop() == code.pair
        else:
            found.setdefault(inside[-1], Counter())[code.markup] += 1
        if at in closes:
            inside.append(code.pair)
    return found


def outside(text: Text, words: Sequence[tuple[int, int]], front: bool) -> list[int]:
    """Codes before or after all words that are not the one half of a span among words."""
    closes = pairs(text.codes)
    partner = closes | {close: opening for opening, close in closes.items()}
    first, last = (words[0][0], words[-1][1]) if words else (len(text.plain), len(text.plain))
    count = len(text.codes)
    order = range(count) if front else [n - count for n in range(count - 1, -1, -1)]
    found = []
    for number in order:
        code = text.codes[number]
        other = text.codes[partner.get(number % count, number % count)]
        inside = (first < one.at + one.covers and one.at < last for one in (code, other))
        if any(inside) or (code.at >= last if front else code.at + code.covers <= first):
            break
        found.append(number)
    return found if words else []
