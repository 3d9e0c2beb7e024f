"""Codes of a text as tags that a base writes: <g1>words</g1> for a span, <x2/> for what stands
alone. From where it puts them, the words of its answer know which words they come from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tmnmt.codes.place import linked_codes
from tmnmt.codes.record import Code, Text, pairs
from tmnmt.engine.links import same_words, with_same_words
from tmnmt.spans import Array
from tmnmt.text import token_spans

_TAG = re.compile(r"<(?P<end>/?)g(?P<span>\d{1,4})>|<x(?P<alone>\d{1,4})\s?/>")
_ORDER = 0.02  # of how far words in the same place count, where no tag says more


@dataclass(frozen=True)
class Mark:
    """A tag in a text.

    offset: its place in the text without tags, in characters.
    tag: the tag."""

    offset: int
    tag: str


@dataclass(frozen=True)
class Tagged:
    """A text with tags.

    plain: the text without them.
    marks: the tags, in order."""

    plain: str
    marks: tuple[Mark, ...] = ()

    def markup(self) -> str:
        """The text with its tags."""
        parts, end = list[str](), 0
        for mark in self.marks:
            parts += self.plain[end : mark.offset], mark.tag
            end = mark.offset
        return "".join(parts) + self.plain[end:]

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags alone."""
        return tuple(mark.tag for mark in self.marks)

    @cached_property
    def _regions(self) -> list[tuple[frozenset[str], frozenset[str]]]:
        """For every word, the spans that it is in, and the single tags that stand before it."""
        regions = []
        for start, end in token_spans(self.plain):
            middle = (start + end) / 2
            spans, alone = set[str](), set[str]()
            for mark in self.marks:
                if mark.offset > middle:
                    break
                if mark.tag.startswith("</"):
                    spans.discard(mark.tag[2:])
                elif mark.tag.endswith("/>"):
                    alone.add(mark.tag)
                else:
                    spans.add(mark.tag[1:])
            regions.append((frozenset(spans), frozenset(alone)))
        return regions

    def links(self, source: Tagged) -> Array:
        """How much of every word comes from every word of the source, (T, S), by the tags that both
        are in.

        source: the source with its tags."""
        links = in_order(len(self._regions), len(source._regions)) * _ORDER
        for row, (spans, alone) in enumerate(self._regions):
            for column, (source_spans, source_alone) in enumerate(source._regions):
                if spans == source_spans:
                    links[row, column] += 1.0 if alone == source_alone else 0.1
        sums = links.sum(1, keepdims=True)
        result: Array = np.divide(links, sums, out=np.zeros_like(links), where=sums > 0)
        return result


def in_order(rows: int, columns: int) -> Array:
    """Links of words in the same order, (T, S), from 0 to 1.

    rows: how many words the target has.
    columns: how many words the source has."""
    target = (np.arange(rows) + 0.5)[:, None] / max(rows, 1)
    source = (np.arange(columns) + 0.5)[None, :] / max(columns, 1)
    result: Array = 1 - np.abs(target - source)
    return result


def guessed_links(source: str, target: str) -> Array:
    """Links where nothing is known but the words: those that are the same, and the order.

    source: the source.
    target: its translation."""
    shape = len(token_spans(target)), len(token_spans(source))
    return with_same_words(in_order(*shape) ** 4, source, target)


def moved_links(links: Array, draft: str, target: str) -> Array:
    """The links of a text as those of another one that has nearly the same words.

    links: (T, S) of the words of the text.
    draft: the text.
    target: the other text."""
    result: Array = same_words(draft, target).T @ links
    return result


def tagged(text: Text, start: int, piece: str) -> Tagged:
    """A piece of a text with a tag for every code whose place depends on the words.

    text: the text with its codes.
    start: where the piece begins in the text.
    piece: the piece, as plain text."""
    end = start + len(piece)
    inside = [
        replace(code, at=code.at - start)
        for code in text.codes
        if start <= code.at and code.at + code.covers <= end
    ]
    part = Text(piece, tuple(inside))
    numbers = [
        number
        for number in linked_codes(part, token_spans(piece))
        if not inside[number].covers and inside[number].kind != "blank"
    ]
    return Tagged(piece, tuple(_marks(inside, numbers)))


def _marks(codes: Sequence[Code], numbers: Sequence[int]) -> list[Mark]:
    closes = {a: b for a, b in pairs(codes).items() if a in numbers and b in numbers}
    opens = {b: a for a, b in closes.items()}
    names = dict[int, int]()
    marks = list[Mark]()
    for number in numbers:
        if number in opens:
            tag = f"</g{names[opens[number]]}>"
        else:
            names[number] = len(names) + 1
            tag = f"<g{names[number]}>" if number in closes else f"<x{names[number]}/>"
        marks.append(Mark(codes[number].at, tag))
    return marks


def parse_tags(answer: str, tags: Sequence[str]) -> Tagged:
    """An answer, taken apart. Only tags that were sent are tags; all else is text.

    answer: the answer.
    tags: the tags that were sent."""
    plain, marks, end = "", list[Mark](), 0
    for match in _TAG.finditer(answer) if tags else ():
        tag = match[0].replace(" ", "")
        if tag not in tags:
            continue
        plain = _append(plain, answer[end : match.start()])
        marks.append(Mark(len(plain), tag))
        end = match.end()
    plain = _append(plain, answer[end:]).rstrip()
    return Tagged(plain, tuple(Mark(min(mark.offset, len(plain)), mark.tag) for mark in marks))


def _append(text: str, part: str) -> str:
    """Both, with one blank where a tag had one on each side."""
    return text + (part.lstrip(" ") if not text or text.endswith(" ") else part)


def misplaced(answer: Tagged, tags: Sequence[str]) -> list[str]:
    """The tags that do not stand exactly once, or end before they begin.

    answer: the answer.
    tags: the tags that were sent."""
    times = Counter(answer.tags)
    wrong = [tag for tag in tags if times[tag] != 1]
    if wrong:
        return wrong
    order = {tag: place for place, tag in enumerate(answer.tags)}
    closing = (tag for tag in tags if tag.startswith("</"))
    return [tag for tag in closing if order[tag] < order[f"<{tag[2:]}"]]
