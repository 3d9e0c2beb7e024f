"""Codes in the places that a pair of a memory gives them, where a person put them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from tmnmt.codes.links import place_of
from tmnmt.codes.place import linked_codes
from tmnmt.codes.placeholders import Finder, Placeholder, with_placeholders
from tmnmt.codes.record import (
    Code,
    Part,
    Text,
    equal_codes,
    inline,
    is_space,
    is_text,
    join_parts,
    lines_of,
    pairs,
    same_lines,
    without_spaces,
)
from tmnmt.codes.tree import tree
from tmnmt.text import token_spans


def transfer_codes(query: Text, source: Text, target: Text) -> Text | None:
    """The target of a pair with the codes of a text where it has its own; None where the codes of
    text, source and target do not go one to one, or not at the same words of text and source. A
    pair whose codes are those of the text keeps them as they are. White space at the ends is the
    text's. Placeholders that are written in a text are compared as text.

    query: the text.
    source: the source of the pair.
    target: the target of the pair."""
    query_inline, theirs, target_inline = (
        Text(text.plain, tuple(inline(text.codes))) for text in (query, source, target)
    )
    if same_but_lines(query, source) and same_but_lines(source, target):
        result = _with_lines(query, target)
    elif not equal_codes(theirs.codes, target_inline.codes) or _places(query_inline) != _places(
        theirs
    ):
        return None
    else:
        codes = [query_inline.codes[number] for number in _order(theirs.codes, target_inline.codes)]
        result = _with_codes(target_inline, codes)
        if pairs(codes) != pairs(target_inline.codes) or _fixed(result) != _fixed(query_inline):
            return None
    return _with_texts(query, with_ends(query, result))


def same_but_lines(text: Text, reference: Text) -> bool:
    """Whether two texts have the same codes, but that a line break of one may be white space of the
    other.

    text: one text.
    reference: the other text."""
    ours, theirs = (without_spaces(side.codes) for side in (text, reference))
    return equal_codes(ours, theirs) and same_lines(text.codes, reference.codes)


def _with_lines(query: Text, target: Text) -> Text:
    """The target with its own codes, those that stand for white space as the query has them; and
    without those that are written in the text."""
    theirs = defaultdict[str, list[Code]](list)
    for code in reversed(query.codes):
        if is_space(code) and code.kind != "blank":
            theirs[lines_of(code)].append(code)

    def same_line(code: Code) -> Code:
        waiting = theirs[lines_of(code)] if is_space(code) else []
        return replace(waiting.pop(), at=code.at, covers=code.covers) if waiting else code

    codes = (same_line(code) for code in target.codes if not is_text(code))
    return Text(target.plain, tuple(codes))


def borrowed(query: Text, source: Text, target: Text) -> Text | None:
    """The target of a pair with the codes of a text where it has its own, although the source of
    the pair has other words. None where the codes do not go one to one, are not in the same spans,
    or others stand outside all words.

    query: the text.
    source: the source of the pair.
    target: the target of the pair."""
    query_inline, theirs, target_inline = (
        Text(text.plain, tuple(inline(text.codes))) for text in (query, source, target)
    )
    kinds = [
        ([code.kind for code in text.codes], pairs(text.codes)) for text in (query_inline, theirs)
    ]
    if (
        not query_inline.codes
        or kinds[0] != kinds[1]
        or not equal_codes(theirs.codes, target_inline.codes)
    ):
        return None
    order = _order(theirs.codes, target_inline.codes)
    result = _with_codes(target_inline, [query_inline.codes[number] for number in order])
    if _spans(query_inline, range(len(order))) != _spans(result, order) or _fixed(result) != _fixed(
        query_inline
    ):
        return None
    if tree(query_inline.codes) is None or tree(result.codes) is None:
        return None
    return result if _outside(query_inline, range(len(order))) == _outside(result, order) else None


def _spans(text: Text, names: Sequence[int]) -> dict[int, list[int]]:
    """Of every code, by its name, the codes that open the spans which it is in."""
    closes = pairs(text.codes)
    inside = list[int]()
    spans = dict[int, list[int]]()
    for number, name in enumerate(names):
        if inside and closes[inside[-1]] == number:
            inside.pop()
        spans[name] = [names[index] for index in inside]
        if number in closes:
            inside.append(number)
    return spans


def _outside(text: Text, names: Sequence[int]) -> list[int]:
    """The codes, by their names, that stand outside all words."""
    linked = set(linked_codes(text, token_spans(text.plain)))
    return [name for number, name in enumerate(names) if number not in linked]


def _with_texts(query: Text, target: Text) -> Text | None:
    """With the codes of the query that are written in its text; None where the target has not the
    same ones, or not in an order that they can have."""
    query_texts = [_covered(query, code) for code in query.codes if is_text(code)]
    waiting = {
        (text, code.movable): code
        for text, code in zip(query_texts, filter(is_text, query.codes), strict=True)
    }
    placed = with_placeholders(target, [_finder(text, movable) for text, movable in waiting])
    codes = [
        replace(waiting[_covered(placed, code), code.movable], at=code.at, covers=code.covers)
        if is_text(code)
        else code
        for code in placed.codes
    ]
    texts = [_covered(placed, code) for code in codes if is_text(code)]
    whole = Text(target.plain, tuple(codes))
    return (
        whole if sorted(texts) == sorted(query_texts) and _fixed(whole) == _fixed(query) else None
    )


def _covered(text: Text, code: Code) -> str:
    return text.plain[code.at : code.at + code.covers]


def _finder(text: str, movable: bool) -> Finder:
    """Finds a text, also where it overlaps itself, as }} in }}} does."""
    pattern = re.compile(f"(?={re.escape(text)})")
    return lambda plain: (
        Placeholder(match.start(), match.start() + len(text), movable)
        for match in pattern.finditer(plain)
    )


def with_ends(query: Text, target: Text) -> Text:
    """A target with the white space at its ends that a text has, and not its own.

    query: the text.
    target: the target."""
    leading, trailing = _ends(query)
    blank_ids = {id(code) for side in _ends(target) for code in side}
    inner = [code for code in target.codes if id(code) not in blank_ids]
    end = len(target.plain)
    first = [replace(code, at=0, covers=0) for code in leading]
    return Text(target.plain, (*first, *inner, *(replace(c, at=end, covers=0) for c in trailing)))


def _ends(text: Text) -> tuple[list[Code], list[Code]]:
    """The blanks before all words, and those after them."""
    blanks = [code for code in text.codes if code.kind == "blank"]
    leading = [code for code in blanks if not text.plain[: code.at + code.covers].strip()]
    trailing = [
        code for code in blanks if code not in leading and not text.plain[code.at :].strip()
    ]
    return leading, trailing


def _places(text: Text) -> list[tuple[str, float, str, int]]:
    """Of every code its kind, its place among the words, what it covers, and which one closes
    it."""
    words, closes = token_spans(text.plain), pairs(text.codes)
    return [
        (
            code.kind,
            place_of(code.at, words),
            _covered(text, code).strip(),
            closes.get(number, -1),
        )
        for number, code in enumerate(text.codes)
    ]


def _order(codes: Sequence[Code], reference: Sequence[Code]) -> list[int]:
    """Of every one of `reference` which of `codes` is the same; of equals the first one first."""
    waiting: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, code in reversed(list(enumerate(codes))):
        waiting[code.kind, code.form, code.markup].append(number)
    return [waiting[code.kind, code.form, code.markup].pop() for code in reference]


def _with_codes(text: Text, codes: Sequence[Code]) -> Text:
    """With these codes in the places of its own."""
    parts = list[Part]()
    remaining = iter(codes)
    for part in text.parts():
        parts.append(part if isinstance(part, str) else (next(remaining), part[1]))
    return join_parts(parts)


def _fixed(text: Text) -> list[str]:
    return [code.markup for code in text.codes if not code.movable]
