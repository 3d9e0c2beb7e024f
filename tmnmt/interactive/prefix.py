"""The beginning of a translation as a translator has typed it, and which subwords may follow it.

    La Commission inf          typed
    La Commission              decided: the subwords of the whole words
    ▁inf                       open: all subwords that spell " inf", or a part of it, or more:
                               ▁inf, ▁informe, ▁in + f, ▁in + forme, ▁i + ...

What is open ends within a subword, so a typed word may be half of a word. Everything is compared as
the bytes that subwords spell, because a letter may be several subwords of one byte each."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tmnmt.engine.beam_search import Live
from tmnmt.layers.combine import Stepped
from tmnmt.vocab import FIRST, Vocabulary

_BLANKS = re.compile(r"[ \t\n\r\f\v]+")  # as sentencepiece has them: no-break ones are letters
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


class Spellings:
    """What the subwords of a vocabulary spell, with a blank where a word begins."""

    def __init__(self, vocab: Vocabulary, capitals: bool = False) -> None:
        """vocab: the vocabulary.
        capitals: whether the subwords are taken as they are written in capitals throughout."""
        self.vocab = vocab
        pieces = [vocab.piece(number) for number in range(len(vocab))]
        self._bytes = [b"" if n < FIRST else _spell(p, capitals) for n, p in enumerate(pieces)]
        self._token_ids = defaultdict[bytes, list[int]](list)
        for number, piece_bytes in enumerate(self._bytes):
            if piece_bytes:
                self._token_ids[piece_bytes].append(number)
        spelling = [number for number, piece_bytes in enumerate(self._bytes) if piece_bytes]
        self._numbers = sorted(spelling, key=lambda number: self._bytes[number])
        self._sorted = [self._bytes[number] for number in self._numbers]
        self._longest = max(map(len, self._sorted), default=0)

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        """The bytes that subwords spell, one behind another.

        ids: the subwords."""
        return b"".join(self._bytes[number] for number in ids)

    def size(self, number: int) -> int:
        """How many bytes a subword spells.

        number: the subword."""
        return len(self._bytes[number])

    def prefixes(self, text: bytes) -> list[tuple[int, list[int]]]:
        """The subwords that are a beginning of a text and shorter than it, by their size in bytes.

        text: the text, in bytes."""
        sizes = range(1, min(self._longest, len(text) - 1) + 1)
        return [
            (size, self._token_ids[text[:size]]) for size in sizes if text[:size] in self._token_ids
        ]

    def begin(self, text: bytes) -> bool:
        """Whether any subword begins with a text, or is it.

        text: the text, in bytes."""
        index = bisect_left(self._sorted, text)
        return index < len(self._sorted) and self._sorted[index].startswith(text)

    def extensions(self, text: bytes) -> list[int]:
        """The subwords that begin with a text, or are it.

        text: the text, in bytes."""
        start = bisect_left(self._sorted, text)
        end = bisect_right(
            self._sorted, text, start, key=lambda piece_bytes: piece_bytes[: len(text)]
        )
        return self._numbers[start:end]


def spelt_size(piece: str) -> int:
    """How many bytes a subword spells.

    piece: the subword as it is written in the vocabulary."""
    return len(_spell(piece, False))


def _spell(piece: str, capitals: bool) -> bytes:
    if byte := _BYTE.fullmatch(piece):
        return bytes([int(byte[1], 16)])
    text = piece.replace("▁", " ")
    return (text.upper() if capitals else text).encode()


@dataclass(frozen=True)
class Typed:
    """What was typed of one piece of a segment."""

    decided: tuple[int, ...]  # subwords
    open: bytes  # what those behind have to spell, or to begin with
    spellings: Spellings

    @classmethod
    def parse(cls, text: str, spellings: Spellings) -> Typed:
        """Takes a text in which all that stands before the last word is decided. What the
        vocabulary cannot spell is decided, too, as the vocabulary encodes it.

        text: the text. It may be the last word alone, or nothing.
        spellings: what the subwords spell."""
        vocab, plain = spellings.vocab, one_blank(text)
        decided_text, blank, word = plain.rpartition(" ")
        if not plain.strip():
            decided_text = ""
        open_bytes = f" {word}".encode() if blank or word else b""
        if Opening(open_bytes, spellings).is_possible:
            return cls(tuple(vocab.encode(decided_text)), open_bytes, spellings)
        return cls(tuple(vocab.encode(plain)), b"", spellings)

    @classmethod
    def in_capitals(cls, text: str, spellings: Spellings) -> Typed:
        """Takes a text that is compared in capitals. All of it is open.

        text: the text.
        spellings: what the subwords spell in capitals."""
        plain = one_blank(text).upper()
        open_bytes = (b"" if not plain or plain[0] == " " else b" ") + plain.encode()
        possible = Opening(open_bytes, spellings).is_possible
        return cls((), open_bytes if possible else b"", spellings)

    @property
    def prefix_bytes(self) -> bytes:
        """The bytes that a translation begins with."""
        return self.spellings.bytes_of(self.decided) + self.open

    def tail(self, ids: Sequence[int]) -> str:
        """What the subwords of a translation spell behind what was typed.

        ids: the subwords of the translation."""
        rest = self.spellings.bytes_of(ids[len(self.decided) :])[len(self.open) :]
        text = rest.decode("utf-8", "replace")
        # nothing was typed: the blank before the first word is none
        return text if self.decided or self.open else text.removeprefix(" ")


class Opening:
    """What is open of one text. It leads a search through all ways to spell it.

    What was typed is certain, whatever the model thinks of it. So the log probability of its
    likeliest spelling is taken out of the scores of the search. Otherwise a search that divides by
    the length would gain by every subword behind a text that the model finds unlikely, and it would
    go on behind the end of a sentence."""

    compares_all_words = True

    def __init__(self, text: bytes, spellings: Spellings) -> None:
        """text: what has to be spelled, in bytes.
        spellings: what the subwords spell."""
        self._text, self._spellings = text, spellings
        self._can_end = [True] * (len(text) + 1)  # whether subwords can spell the rest from here
        for offset in range(len(text) - 1, -1, -1):
            remaining = text[offset:]
            ends = (self._can_end[offset + size] for size, _ in spellings.prefixes(remaining))
            self._can_end[offset] = spellings.begin(remaining) or any(ends)
        self._allowed = dict[int, Tensor]()
        self._offsets: list[int] = []  # bytes that every row has spelled; [] before the first step
        self._spelled: float | None = None  # log probability of what is open, once it is spelled

    @property
    def is_possible(self) -> bool:
        """Whether any subwords spell the text."""
        return self._can_end[0]

    @property
    def log_prob(self) -> float:
        """The log probability, in nats, that was taken out of the scores."""
        return self._spelled or 0.0

    def bar(self, live: Live, step: Stepped, position: int) -> None:
        """Leaves in log p only the subwords that may come at a step, as `Leader.bar` does.

        live: the rows that are still decoded.
        step: what the step gave; its log p are changed in place.
        position: the number of the step, from 0."""
        self._offsets = self._offsets or [0] * len(live.prev)
        self._make_certain(live)
        for row, offset in enumerate(self._offsets):
            if offset < len(self._text):
                allowed = self.allowed(offset).to(step.log_probs.device)
                allowed_log_probs = step.log_probs[row, allowed]
                step.log_probs[row] = -torch.inf
                step.log_probs[row, allowed] = allowed_log_probs

    def _make_certain(self, live: Live) -> None:
        """Takes the log probability of what is open out of the scores, as soon as a row has spelled
        it."""
        spelled = [row for row, size in enumerate(self._offsets) if size == len(self._text)]
        if spelled and self._spelled is None:
            self._spelled = float(live.scores.flatten()[spelled].max())
            live.scores -= self._spelled

    def advance(self, rows: Tensor, tokens: Tensor) -> None:
        """Follows the rows of the beam, as `Leader.advance` does.

        rows: (R',) which row each of the next rows was.
        tokens: (R',) the subword that each of them has got."""
        pairs = zip(rows.tolist(), tokens.tolist(), strict=True)
        self._offsets = [
            min(len(self._text), self._offsets[row] + self._spellings.size(token))
            for row, token in pairs
        ]

    def allowed(self, offset: int) -> Tensor:
        """The subwords that may come next.

        offset: how many bytes of the text are spelled already."""
        if offset not in self._allowed:
            self._allowed[offset] = torch.tensor(self._continuations(offset))
        return self._allowed[offset]

    def _continuations(self, offset: int) -> list[int]:
        remaining = self._text[offset:]
        prefixes = [
            number
            for size, numbers in self._spellings.prefixes(remaining)
            for number in numbers
            if self._can_end[offset + size]
        ]
        return prefixes + self._spellings.extensions(remaining)


def one_blank(text: str) -> str:
    """A text with one blank for several, as subwords have it.

    text: the text."""
    return _BLANKS.sub(" ", text)
