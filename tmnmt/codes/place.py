"""Where the codes of a source stand in its translation, by the links between their words.

A span goes around the target words that have the most link mass with what it holds, less what they
have with the rest (cf. Zenkel et al. 2021), inner spans first; any other code to the boundary that
the least mass crosses. Whatever the links are:
- every code of the source is there once, but for blanks between words, which the target has as it
  has them;
- every code is in the same span as in the source;
- what stands before or after all words of the source does so in the target;
- no span goes around punctuation alone, unless that is all that it has in the source: where no
  word is free it is empty;
- codes of spans that cross, and those that cannot be moved, keep their order.

T, S: words of target and source. Boundaries of the target's words count from 0 to T."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tmnmt.codes.keep_order import keep_order
from tmnmt.codes.links import Links, Mass, Words, best_stretch, grow_stretch, place_of
from tmnmt.codes.record import Code, Text
from tmnmt.codes.tree import Node, tree

LOCAL_MASS = (
    0.3  # of the mass between a code's word and the word that it would stand at: see `_cost`
)
_HYPHENS = frozenset("-\u2010\u2011")


def place(
    source: Text,
    target: str,
    source_words: Words,
    target_words: Words,
    links: NDArray[np.floating],
    in_order: bool = False,
) -> Text:
    """A target with the codes of its source. A code that covers words, as a placeholder does,
    covers the same words of the target, where these are; elsewhere its markup is put in.

    source: the source.
    target: the target as plain text.
    source_words: where each word of the source begins and ends in its plain text, in characters.
    target_words: the same of the target.
    links: (T, S), how much of a target word comes from a source word.
    in_order: whether all codes keep their order.

    Raises ValueError where the links have another shape."""
    if links.shape != (len(target_words), len(source_words)):
        raise ValueError(f"links {links.shape} of {len(target_words)} by {len(source_words)} words")
    placer = _Placer(source, target, source_words, target_words, Links(links))
    nodes = tree(source.codes)
    text = placer.by_tree(nodes) if nodes is not None and not in_order else None
    return text if text is not None and _fixed_in_order(source, text) else placer.by_order()


def linked_codes(source: Text, words: Words) -> list[int]:
    """The codes, by number, whose places depend on links: those that are not outside all words of
    the source, but for blanks.

    source: the source.
    words: where each of its words begins and ends in its plain text, in characters."""
    placer = _Placer(source, "", words, (), Links(np.zeros((0, len(words)))))
    nodes = tree(source.codes)
    if nodes is None:
        _, numbers, _ = placer.keep_order()
    else:
        _, inner, _ = placer.outside(nodes)
        numbers = [number for node in inner for number in node.codes()]
    return [number for number in numbers if source.codes[number].kind != "blank"]


def _fixed_in_order(source: Text, text: Text) -> bool:
    fixed = [[code.markup for code in side.codes if not code.movable] for side in (source, text)]
    return fixed[0] == fixed[1]


@dataclass
class _Placed:
    """A node and the target words that it goes around, from `start` to `end`; none: a boundary."""

    node: Node
    start: int
    end: int
    inside: list[_Placed] = field(default_factory=list)
    characters: tuple[int, int] | None = None  # that a code covers


class _Placer:
    def __init__(
        self, source: Text, target: str, source_words: Words, target_words: Words, links: Links
    ) -> None:
        self._source, self._target = source, target
        self._source_words, self._words, self._links = source_words, target_words, links
        ends = [(code.at, code.at + code.covers) for code in source.codes]
        self._places = [
            (place_of(start, source_words), place_of(end, source_words)) for start, end in ends
        ]

    # --- spans

    def by_tree(self, nodes: list[Node]) -> Text:
        leading, nodes, trailing = self.outside(nodes)
        width = len(self._words)
        output = _Codes(self._source.codes, len(self._target))
        for number in leading:
            output.add(number, 0)
        placed = self._spans(nodes, 0, width)
        self._emit(self._with_points(nodes, placed, 0, width), output, (0, len(self._target)))
        for number in trailing:
            output.add(number, len(self._target))
        return Text(self._target, tuple(output.codes))

    def outside(self, nodes: list[Node]) -> tuple[list[int], list[Node], list[int]]:
        """The codes before all words, the nodes among words, the codes after all words."""
        leading, trailing = list[int](), list[int]()
        last = float(len(self._source_words))
        while True:
            while nodes and self._extent(nodes[0])[1] == 0:
                leading += nodes[0].codes()
                nodes = nodes[1:]
            while nodes and self._extent(nodes[-1])[0] == last:
                trailing = nodes[-1].codes() + trailing
                nodes = nodes[:-1]
            if len(nodes) != 1 or nodes[0].alone or self._extent(nodes[0]) != (0, last):
                return leading, nodes, trailing
            leading, trailing = [*leading, nodes[0].first], [nodes[0].last, *trailing]
            nodes = nodes[0].children

    def _extent(self, node: Node) -> tuple[float, float]:
        """Where a node begins and ends in the source."""
        return self._places[node.first][0], self._places[node.last][1]

    def _spans(self, nodes: Sequence[Node], lo: int, hi: int) -> list[_Placed]:
        """Those of the nodes that go around words of the target, between two boundaries. They take
        their words one after another, those with the most to gain first."""
        placed = list[_Placed]()
        wide = [node for node in nodes if self._is_wide(node)]
        gains = {node.first: self._links.gain(*self._extent(node)) for node in wide}
        wide.sort(key=lambda node: (not node.alone, -_best_gain(gains[node.first], lo, hi)))
        for node in wide:
            gain = gains[node.first]
            gaps = list(_gaps(placed, lo, hi))
            if node.alone:
                placed += self._covering(node, gaps)
            elif gaps := [gap for gap in gaps if self._fits(node, *gap)]:
                start, end = max(gaps, key=lambda gap: _best_gain(gain, *gap))
                placed.append(self._span(node, gain, start, end))
        return self._in_order(placed)

    def _in_order(self, placed: list[_Placed]) -> list[_Placed]:
        """The same, where spans of the same text in the source have the order that they have
        there."""
        texts = {span.node.first: self._content(span.node) for span in placed}
        for text in {*texts.values()}:
            alike = [
                span
                for span in placed
                if texts[span.node.first] == text and not (span.node.alone or span.node.children)
            ]
            stretches = sorted((span.start, span.end) for span in alike)
            ordered = sorted(alike, key=lambda span: span.node.first)
            for span, (start, end) in zip(ordered, stretches, strict=True):
                span.start, span.end = start, end
        return placed

    def _fits(self, node: Node, lo: int, hi: int) -> bool:
        """Whether a span may go around words between two boundaries: not where these are
        punctuation alone, and it has words in the source."""
        return self._is_of_marks(node) or any(not _is_mark(self._word(i)) for i in range(lo, hi))

    def _is_of_marks(self, node: Node) -> bool:
        return _is_mark(self._content(node))

    def _content(self, node: Node) -> str:
        """What a span has in the source, without the white space at its ends."""
        codes = self._source.codes
        return self._source.plain[codes[node.first].at : codes[node.last].at].strip()

    def _is_wide(self, node: Node) -> bool:
        start, end = self._extent(node)
        return start < end

    def _covering(self, node: Node, gaps: Sequence[tuple[int, int]]) -> list[_Placed]:
        """A code that covers the same words as in the source, where they are in a gap."""
        covering = [
            placed
            for placed in self._same_words(node)
            if any(lo <= placed.start and placed.end <= hi for lo, hi in gaps)
        ]
        mass = self._links.span_mass(*self._extent(node))
        best = max(
            covering,
            key=lambda candidate: float(mass[candidate.start : candidate.end].sum()),
            default=None,
        )
        return [] if best is None else [best]

    def _same_words(self, node: Node) -> Iterator[_Placed]:
        code = self._source.codes[node.first]
        covered = self._source.plain[code.at : code.at + code.covers]
        start = self._target.find(covered)
        while start >= 0 and covered.strip():
            end = start + len(covered)
            inside = [i for i, (a, b) in enumerate(self._words) if a < end and start < b]
            if inside:
                yield _Placed(node, inside[0], inside[-1] + 1, characters=(start, end))
            start = self._target.find(covered, end)

    def _span(self, node: Node, gain: Mass, lo: int, hi: int) -> _Placed:
        inside = self._spans(node.children, lo, hi)
        if inside:
            start, end = min(child.start for child in inside), max(child.end for child in inside)
            core = start, end
            start, end = grow_stretch(gain, start, end, lo, hi)
        else:
            start, end = self._best_stretch(node, gain, lo, hi)
            core = end, start  # none
        start, end = self._punctuated(node, (start, end), core, (lo, hi))
        start, end = self._with_compounds(node, (start, end), (lo, hi))
        return _Placed(node, start, end, self._with_points(node.children, inside, start, end))

    def _best_stretch(self, node: Node, gain: Mass, lo: int, hi: int) -> tuple[int, int]:
        """The words of the greatest gain, and a word among them."""
        start, end = best_stretch(gain, lo, hi)
        words = [i for i in range(lo, hi) if not _is_mark(self._word(i))]
        if not words or self._is_of_marks(node) or any(start <= word < end for word in words):
            return start, end
        word = max(words, key=lambda number: float(gain[number]))
        return grow_stretch(gain, word, word + 1, lo, hi)

    def _punctuated(
        self, node: Node, stretch: tuple[int, int], core: tuple[int, int], limits: tuple[int, int]
    ) -> tuple[int, int]:
        """The stretch with punctuation at its edges as the source's span has it."""
        start, end = stretch
        punctuation = self._content(node)
        if not punctuation or _is_mark(punctuation):
            return stretch
        if not _is_mark(punctuation[-1]):
            while start < end - 1 and core[1] < end and _is_mark(self._word(end - 1)):
                end -= 1
        elif end < limits[1] and self._word(end) == punctuation[-1] != self._word(end - 1):
            end += 1
        if not _is_mark(punctuation[0]):
            while start < end - 1 and start < core[0] and _is_mark(self._word(start)):
                start += 1
        elif start > limits[0] and self._word(start - 1) == punctuation[0] != self._word(start):
            start -= 1
        return start, end

    def _with_compounds(
        self, node: Node, stretch: tuple[int, int], limits: tuple[int, int]
    ) -> tuple[int, int]:
        """The stretch with the whole of a compound, such as `rendez-vous`, of which it has a part;
        but for a side on which the source's span has a hyphen or a letter in front of it, too."""
        start, end = stretch
        if start == end or self._is_of_marks(node):
            return stretch
        is_in_front, is_behind = self._touches(node.first)[0], self._touches(node.last)[1]
        while not is_in_front and limits[0] < start and self._is_compound(start):
            start -= 1
        while not is_behind and end < limits[1] and self._is_compound(end):
            end += 1
        return start, end

    def _is_compound(self, boundary: int) -> bool:
        """Whether a boundary is inside a compound: at a hyphen that stands between two letters."""
        joined = self._words[boundary - 1][1] == self._words[boundary][0]
        place = boundary if self._word(boundary) in _HYPHENS else boundary - 1
        if not joined or self._word(place) not in _HYPHENS or not 0 < place < len(self._words) - 1:
            return False
        sides = self._words[place - 1][1], self._words[place + 1][0]
        is_whole = sides == self._words[place]
        return is_whole and not any(_is_mark(self._word(place + step)) for step in (-1, 1))

    def _word(self, number: int) -> str:
        start, end = self._words[number]
        return self._target[start:end]

    # --- codes alone

    def _with_points(
        self, nodes: Sequence[Node], occupied: list[_Placed], lo: int, hi: int
    ) -> list[_Placed]:
        """All nodes in the target's order: those that took words, and the others at boundaries from
        `lo` to `hi` that are inside none of these."""
        handled = {entry.node.first for entry in occupied}
        free = np.ones(hi - lo + 1, bool)
        for entry in occupied:
            free[entry.start + 1 - lo : entry.end - lo] = False
        placed = list(occupied)
        for node in nodes:
            if node.first not in handled and self._source.codes[node.first].kind != "blank":
                cost = self._cost(node)[lo : hi + 1]
                boundary = lo + int(np.argmin(np.where(free, cost, np.inf)))
                placed.append(
                    _Placed(node, boundary, boundary, self._place_points(node.children, boundary))
                )
        return sorted(placed, key=lambda entry: (entry.start, entry.end, entry.node.first))

    def _cost(self, node: Node) -> Mass:
        """Of every boundary the mass that crosses it, less a share of the mass that links the word
        there to the word that the code touches in the source, (T + 1,)."""
        place = self._extent(node)[0]
        cost = self._links.crossing(place)
        in_front, trailing = self._touches(node.first)
        if in_front:
            cost[1:] -= LOCAL_MASS * self._links.span_mass(np.ceil(place) - 1, np.ceil(place))
        elif trailing:
            cost[:-1] -= LOCAL_MASS * self._links.span_mass(np.floor(place), np.floor(place) + 1)
        return cost

    def _touches(self, number: int) -> tuple[bool, bool]:
        """Whether a code has a word right in front of it, and right behind it."""
        code, plain = self._source.codes[number], self._source.plain
        end = code.at + code.covers
        return plain[: code.at][-1:].strip() != "", plain[end : end + 1].strip() != ""

    def _place_points(self, nodes: Sequence[Node], boundary: int) -> list[_Placed]:
        return [
            _Placed(node, boundary, boundary, self._place_points(node.children, boundary))
            for node in nodes
            if self._source.codes[node.first].kind != "blank"
        ]

    # --- characters

    def _emit(self, placed: Sequence[_Placed], output: _Codes, bounds: tuple[int, int]) -> None:
        for entry in placed:
            first, last = entry.node.first, entry.node.last
            if entry.node.alone:
                self._emit_alone(entry, output, bounds)
                continue
            opening = self._character(first, entry.start, entry.start < entry.end)
            closing = self._character(last, entry.end, False)
            start = output.add(first, opening, bounds)
            self._emit(entry.inside, output, (start, max(start, min(closing, bounds[1]))))
            output.add(last, closing, bounds)

    def _emit_alone(self, entry: _Placed, output: _Codes, bounds: tuple[int, int]) -> None:
        number = entry.node.first
        if entry.characters is not None:
            start, end = entry.characters
            output.add(number, start, bounds, end - start)
            return
        code = self._source.codes[number]
        stands_for = self._source.plain[code.at : code.at + code.covers]
        blank = self._blank(entry.start) if stands_for.isspace() else None
        if blank and bounds[0] <= blank[0] and blank[1] <= bounds[1]:
            output.add(number, blank[0], bounds, blank[1] - blank[0])
        else:
            output.add(number, self._character(number, entry.start, False), bounds)

    def _blank(self, boundary: int) -> tuple[int, int] | None:
        """The white space between the words at a boundary."""
        if not 0 < boundary < len(self._words):
            return None
        start, end = self._words[boundary - 1][1], self._words[boundary][0]
        return (start, end) if self._target[start:end].isspace() else None

    def _character(self, number: int, boundary: int, forward: bool) -> int:
        """Where a code stands at a boundary: at the word behind or before it, as in the source.
        Where that does not say, behind white space if it goes `forward`."""
        previous_end = self._words[boundary - 1][1] if boundary else 0
        next_start = self._words[boundary][0] if boundary < len(self._words) else len(self._target)
        code, plain = self._source.codes[number], self._source.plain
        end = code.at + code.covers
        touches = [
            bool(side) and not side.isspace()
            for side in (plain[: code.at][-1:], plain[end : end + 1])
        ]
        if touches[0] != touches[1]:
            return previous_end if touches[0] else next_start
        if not touches[0]:
            return next_start
        return next_start if forward else previous_end

    # --- in order

    def keep_order(self) -> tuple[list[int], list[int], list[int]]:
        """The codes before all words, those among words and those after all words, where all of
        them keep their order."""
        last, numbers = len(self._source_words), range(len(self._places))
        leading = [n for n in numbers if self._places[n][1] == 0]
        trailing = [n for n in numbers if self._places[n][0] == last and n not in leading]
        return leading, list(numbers[len(leading) : len(numbers) - len(trailing)]), trailing

    def by_order(self) -> Text:
        """With every code where the least mass crosses among the places behind the one before."""
        leading, inner, trailing = self.keep_order()
        nodes = [Node(n, n) for n in inner if self._source.codes[n].kind != "blank"]
        costs = [self._cost(node) for node in nodes]
        covering = [
            [
                (entry.start, entry.end, entry.characters or (0, 0))
                for entry in self._same_words(node)
            ]
            for node in nodes
        ]
        output = _Codes(self._source.codes, len(self._target))
        for number in leading:
            output.add(number, 0)
        everywhere = (0, len(self._target))
        selection = keep_order(costs, [[(a, b) for a, b, _ in stretches] for stretches in covering])
        for node, stretches, (start, end) in zip(nodes, covering, selection, strict=True):
            characters = next((c for a, b, c in stretches if (a, b) == (start, end)), None)
            self._emit_alone(_Placed(node, start, end, characters=characters), output, everywhere)
        for number in trailing:
            output.add(number, len(self._target))
        return Text(self._target, tuple(output.codes))


class _Codes:
    """Codes with their places in the target, none before the end of the one before it."""

    def __init__(self, codes: Sequence[Code], length: int) -> None:
        self._source = codes
        self._length = length
        self._end = 0
        self.codes: list[Code] = []

    def add(
        self, number: int, position: int, bounds: tuple[int, int] | None = None, covers: int = 0
    ) -> int:
        """Adds a code of the source; where it stands: `position`, or the nearest place behind."""
        lo, hi = bounds or (0, self._length)
        place = max(self._end, min(max(position, lo), hi))
        covers = covers if place == position else 0
        self.codes.append(replace(self._source[number], at=place, covers=covers))
        self._end = place + covers
        return place


def _best_gain(gain: Mass, lo: int, hi: int) -> float:
    """The greatest gain of a stretch between two boundaries; none where there is no word."""
    start, end = best_stretch(gain, lo, hi)
    return float(gain[start:end].sum()) if start < end else -np.inf


def _gaps(placed: Sequence[_Placed], lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """What is between those that have taken words, from left to right; empty gaps too."""
    for entry in sorted(placed, key=lambda entry: (entry.start, entry.end)):
        yield lo, entry.start
        lo = entry.end
    yield lo, hi


def _is_mark(text: str) -> bool:
    return not any(character.isalnum() for character in text)
