"""A text with tags in pieces, as they stand in a file; and cut at its sentences."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tmnmt.files.sentences import sentences

_BLANKS = " \t\r\n\f"
_BLANK = re.compile(r"[\t\r\n\f]")
# what html.unescape takes for one character, or a character
_SIGN = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)|[\s\S]")


@dataclass(slots=True)
class Piece:
    """A part of a text: words, a tag, or what is left alone."""

    kind: str  # "text", "start", "end", "alone", "placeholder"
    start: int
    stop: int
    name: str = ""


LINE_END = "line end"  # the name of words that are one, and blanks
SPAN_PREFIX = "kept"  # the names of spans begin so whose tags depend on the words inside
Words = Callable[[Piece], str]  # what a piece says; "" of a tag


def spans(pieces: Sequence[Piece]) -> dict[int, str]:
    """The names of the spans, by the numbers of their two tags.

    pieces: the pieces of a text."""
    partners, waiting = dict[int, str](), defaultdict[str, list[int]](list)
    for number, piece in enumerate(pieces):
        if piece.kind == "start":
            waiting[piece.name].append(number)
        elif piece.kind == "end" and waiting[piece.name]:
            opening = waiting[piece.name].pop()
            partners[opening] = partners[number] = str(opening + 1)
    return partners


def by_sentence(
    pieces: Sequence[Piece], text: str, words: Words, language: str
) -> Iterator[list[Piece]]:
    """The pieces of every sentence in turn, and those of blanks between them. No sentence ends
    inside a span, whose tags must stay in one unit.

    pieces: the pieces of a text.
    text: the file.
    words: gives what a piece says.
    language: the code of the text's language.

    Raises UsageError where there are no rules for sentences of the language."""
    whole = _BLANK.sub(" ", "".join(map(words, pieces)))
    parts = sentences(whole, language)
    starts = accumulate(map(len, parts), initial=0)
    ends = {
        start + length
        for start, sentence in zip(starts, parts, strict=False)
        for length in (len(sentence.rstrip()), len(sentence))
    }
    cut = list(_cut(pieces, text, words, ends))
    paired = spans(cut)
    now, offset, depth = list[Piece](), 0, 0
    for number, piece in enumerate(cut):
        # a closing tag or a line break belongs to what is before it
        if offset in ends and not depth and now and piece.kind not in ("end", "alone"):
            yield _merge(now)
            now = []
        if number in paired:
            depth += 1 if piece.kind == "start" else -1
        now.append(piece)
        offset += len(words(piece))
    yield _merge(now)


def _cut(pieces: Sequence[Piece], text: str, words: Words, ends: set[int]) -> Iterator[Piece]:
    """The pieces, with words cut where a sentence ends."""
    offset, in_order = 0, sorted(ends)
    for piece in pieces:
        piece_text = words(piece)
        first, last = (
            bisect_right(in_order, offset),
            bisect_left(in_order, offset + len(piece_text)),
        )
        inside = [end - offset for end in in_order[first:last]]
        begin = piece.start
        if piece.kind == "text" and not piece.name and inside:
            for place in _places(text[piece.start : piece.stop], words, piece, inside):
                yield Piece("text", begin, place)
                begin = place
            yield Piece("text", begin, piece.stop)
        else:
            yield piece
        offset += len(piece_text)


def _places(raw: str, words: Words, piece: Piece, inside: Sequence[int]) -> Iterator[int]:
    """Where the words end in the file that are so many characters long."""
    offset, remaining = 0, deque(inside)
    for sign in _SIGN.finditer(raw):
        if remaining and offset == remaining[0]:
            remaining.popleft()
            yield piece.start + sign.start()
        start = piece.start + sign.start()
        offset += len(words(Piece("text", start, piece.start + sign.end())))


def _merge(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces, words that stand side by side as one."""
    merged = list[Piece]()
    for piece in pieces:
        if (
            piece.kind == "text"
            and merged
            and merged[-1].kind == "text" == piece.kind
            and not (piece.name or merged[-1].name)
        ):
            merged[-1] = Piece("text", merged[-1].start, piece.stop)
        else:
            merged.append(piece)
    return merged


def texts(
    pieces: Sequence[Piece], text: str, words: Words, language: str | None
) -> Iterator[list[Piece]]:
    """What is to be translated of a block: its pieces without what need not be inside at either
    end, where they have words.

    pieces: the pieces of the block.
    text: the file.
    words: gives what a piece says.
    language: the block is cut at its sentences, by the rules of this language; None leaves it
    whole."""
    inner = list(pieces[slice(*_inner(pieces, words))])
    if language is not None and inner:
        parts = list(by_sentence(inner, text, words, language))
        if len(parts) > 1:
            for sentence in parts:
                yield from texts(sentence, text, words, language)
            return
    if any(piece.kind == "text" and any(map(str.isalnum, words(piece))) for piece in inner):
        _trim(inner[0], inner[-1], text)
        yield inner


def _inner(pieces: Sequence[Piece], words: Words) -> tuple[int, int]:
    """From where to where they are without blanks, what stands alone, and tags around the rest."""
    pairs = spans(pieces)
    first, last = 0, len(pieces) - 1
    while first <= last:
        if _is_outside(pieces[first], words):
            first += 1
        elif _is_outside(pieces[last], words):
            last -= 1
        elif (
            first < last
            and first in pairs
            and pairs[first] == pairs.get(last)
            and not pieces[first].name.startswith(SPAN_PREFIX)
        ):
            first, last = first + 1, last - 1
        else:
            break
    return first, last + 1


def _is_outside(piece: Piece, words: Words) -> bool:
    return piece.kind == "alone" or (piece.kind == "text" and not words(piece).strip(_BLANKS))


def _trim(first: Piece, last: Piece, text: str) -> None:
    """Leaves blanks at the ends outside."""
    if first.kind == "text":
        raw = text[first.start : first.stop]
        first.start += len(raw) - len(raw.lstrip(_BLANKS))
    if last.kind == "text":
        raw = text[last.start : last.stop]
        last.stop -= len(raw) - len(raw.rstrip(_BLANKS))
