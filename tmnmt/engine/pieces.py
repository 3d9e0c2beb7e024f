"""A segment in pieces: one longer than the model has ever seen, or one of several sentences."""

from __future__ import annotations

import re
from functools import cache

from tmnmt.languages import listed
from tmnmt.vocab import Vocabulary

# Where a text may be cut, the best places first: after a sentence, after a clause, between words.
_BOUNDARIES = (
    re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])"),
    re.compile(r"(?<=[,;:)\]—–])\s+|(?<=[、，；：])"),
    re.compile(r"\s+"),
)

# A sentence ends before white space and a capital; not at a full stop behind what may be short for
# something: a single letter, a name's first three, or what has a full stop in it.
_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+(?=[\"'“‘«(\[]?([^\W\d_]))")
_WORD = re.compile(r"\w+")
_WORDS = 2  # a sentence has at least so many


def sentences(text: str) -> list[str]:
    """The sentences of a text, in a language with capitals, where it is plain that one ends.
    Nothing but white space between them is lost."""
    made, start = [], 0
    for end in _END.finditer(text):
        said, rest = text[start : end.start()], text[end.end() :]
        ends = end[1].isupper() and not (end[0][0] == "." and _abbreviation().search(said))
        if ends and min(len(_WORD.findall(said)), len(_WORD.findall(rest))) >= _WORDS:
            made.append(text[start : end.end()].strip())
            start = end.end()
    return [*made, text[start:].strip()]


@cache
def _abbreviation() -> re.Pattern[str]:
    titles = "|".join(listed("titles"))
    return re.compile(rf"(?:^|[^\w.])(?:\w|[A-Z]\w{{1,2}}|\w+(?:\.\w+)+|{titles})$")


def pieces(text: str, vocab: Vocabulary, longest: int) -> list[str]:
    """`text` in consecutive pieces of at most `longest` subwords, cut after sentences where that is
    enough, else after clauses, between words, or, in a word that is longer itself, anywhere.
    Nothing but white space at cuts is lost."""
    if fits(text, vocab, longest):
        return [text]
    parts = _cut(text, vocab, longest, 0)
    return [piece.strip() for piece in _join(parts, vocab, longest) if piece.strip()]


def fits(text: str, vocab: Vocabulary, longest: int) -> bool:
    """Whether `text` has at most `longest` subwords. Of a text that is much too long that is clear
    from its characters; to encode it would take a thousand times its memory."""
    if (
        len(text) > longest * vocab.longest
        and len(text) - text.count(" ") > longest * vocab.longest
    ):
        return False
    return len(vocab.encode_source(text)) <= longest


def _cut(text: str, vocab: Vocabulary, longest: int, boundary: int) -> list[str]:
    """Parts that fit; put together again they are `text`."""
    if fits(text, vocab, longest):
        return [text]
    if boundary == len(_BOUNDARIES):
        # A character is at most four bytes and a byte at most one subword; one more may mark the
        # start of a word.
        size = max(1, (longest - 1) // 4)
        return [text[at : at + size] for at in range(0, len(text), size)]
    ends = [match.end() for match in _BOUNDARIES[boundary].finditer(text)]
    spans = zip([0, *ends], [*ends, len(text)], strict=True)
    parts = [text[start:end] for start, end in spans if end > start]
    return [
        piece
        for part in parts
        for piece in _join(_cut(part, vocab, longest, boundary + 1), vocab, longest)
    ]


def _join(parts: list[str], vocab: Vocabulary, longest: int) -> list[str]:
    """Neighbours together as long as they fit."""
    joined = parts[:1]
    for part in parts[1:]:
        if fits(joined[-1] + part, vocab, longest):
            joined[-1] += part
        else:
            joined.append(part)
    return joined
