"""Concordance: where a phrase stands in the texts of a memory.

Texts are compared by match tokens (`tmnmt.text`), so blanks do not count. Case does not count
either, unless it is asked for; apostrophes, quotation marks and dashes count as alike however they
are written. What is said here for one text is what every index answers for all of its segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from tmnmt.errors import UsageError
from tmnmt.segments import Segment
from tmnmt.text import MAX_TOKEN_CHARS, Span, folded, located_tokens, match_form, token_spans

Side = Literal["source", "target"]

MOST_WITHIN = 30  # tokens, so that both sides of a word fit 64 bits
_SIMILAR_LETTERS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ´", "'"),
        **dict.fromkeys("“”„‟«»″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
)


class Word(NamedTuple):
    """A match token that is looked for.

    text: the token, as `spelling` has it.
    is_beginning: whether all tokens are meant that begin so."""

    text: str
    is_beginning: bool = False

    def is_in(self, token: str) -> bool:
        """Whether a token is meant.

        token: a match token, as `spelling` has it."""
        return token.startswith(self.text) if self.is_beginning else token == self.text


@dataclass(frozen=True)
class Phrase:
    """What is looked for.

    text: the words. A star right behind a word stands for any ending.
    side: the text that is looked at, "source" or "target".
    within: None for words side by side, in their order. A number allows any order; the first and
    the last word are at most so many tokens apart, and 1 stands for neighbours.
    match_case: whether case counts.

    Raises UsageError where there is no word in the text, or for a wrong number."""

    text: str
    side: Side = "source"
    within: int | None = None
    match_case: bool = False

    def __post_init__(self) -> None:
        if self.side not in ("source", "target"):
            raise UsageError(f"a phrase is looked for in source or target, not {self.side!r}")
        if self.within is not None and not 1 <= self.within <= MOST_WITHIN:
            raise UsageError(f"within is {self.within}; it must be 1 to {MOST_WITHIN}")
        if not self.words:
            raise UsageError(f"{self.text!r}: no word to look for")

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of the phrase, by which the tokens of a text are compared. Where they may stand
        near each other, marks and words that come twice count once, and marks beside words do not
        count."""
        words = list[tuple[Word, int]]()
        text = match_form(self.text)
        for begin, end in token_spans(text):
            previous, previous_end = words[-1] if words else (Word(""), -1)
            if text[begin:end] == "*" and previous_end == begin and previous.text[-1:].isalnum():
                words[-1] = Word(previous.text, True), -1
                continue
            token = text[begin:end][:MAX_TOKEN_CHARS]
            words.append((Word(spelling(token, self.match_case)), end))
        phrase_words = tuple(word for word, _ in words)
        if self.within is None:
            return phrase_words
        real = tuple(word for word in phrase_words if word.text[:1].isalnum())
        return tuple(dict.fromkeys(real or phrase_words))

    def side_text(self, segment: Segment) -> str:
        """The text of a segment that is looked at.

        segment: the segment."""
        return segment.src if self.side == "source" else segment.tgt

    def places(self, text: str) -> list[Span]:
        """Where the phrase stands in a text, in characters: every whole phrase, without those that
        overlap an earlier one. Where its words may stand near each other, these are the places of
        every word of the shortest stretches with all words.

        text: the text."""
        spans = located_tokens(text)
        spellings = [spelling(token, self.match_case) for token, _ in spans]
        places = [place for _, place in spans]
        if self.within is not None:
            return [places[index] for index in sorted(self._stretch_positions(spellings))]
        return [
            (places[index][0], places[index + len(self.words) - 1][1])
            for index in self._in_a_row(spellings)
        ]

    def _in_a_row(self, spellings: Sequence[str]) -> Iterator[int]:
        index, size = 0, len(self.words)
        while index + size <= len(spellings):
            if all(word.is_in(spellings[index + i]) for i, word in enumerate(self.words)):
                yield index
                index += size
            else:
                index += 1

    def _stretch_positions(self, spellings: Sequence[str]) -> set[int]:
        """The positions of the words in the shortest stretches that have all and are no longer than
        is allowed."""
        matched_words = {
            position: {word for word in self.words if word.is_in(s)}
            for position, s in enumerate(spellings)
        }
        positions = [position for position, words in matched_words.items() if words]
        last = dict[Word, int]()  # where each has come last
        shortest = dict[int, int]()  # where a stretch ends, by where it begins
        for position in positions:
            last |= dict.fromkeys(matched_words[position], position)
            begin = min(last.values())
            if len(last) == len(self.words) and position - begin <= (self.within or 0):
                shortest.setdefault(begin, position)
        inside = {position for begin, end in shortest.items() for position in range(begin, end + 1)}
        return inside.intersection(positions)


class Occurrence(NamedTuple):
    """A segment that has the phrase.

    segment: the segment.
    places: where the phrase stands in the text that is looked at (`Phrase.places`)."""

    segment: Segment
    places: list[Span]


def spelling(token: str, match_case: bool = False) -> str:
    """A match token as it is compared with others.

    token: the token.
    match_case: whether case counts."""
    if token.isascii():
        return token if match_case else token.lower()
    unified = token.translate(_SIMILAR_LETTERS)
    return unified if match_case else folded(unified)


def occurrences(phrase: Phrase, segments: Iterable[Segment], k: int) -> list[Occurrence]:
    """The newest segments that have a phrase (greatest `changed`, then smallest id), each with its
    places.

    phrase: the phrase.
    segments: the segments that are looked at.
    k: how many segments are given at most."""
    occurring = [
        (segment, places)
        for segment in segments
        if (places := phrase.places(phrase.side_text(segment)))
    ]
    occurring.sort(key=lambda occurrence: occurrence[0].id)
    occurring.sort(key=lambda occurrence: occurrence[0].changed, reverse=True)
    return [Occurrence(segment, places) for segment, places in occurring[:k]]


def check_concordance(k: int) -> None:
    """Checks how many segments are wanted.

    k: the number.

    Raises UsageError for a number below 1."""
    if k < 1:
        raise UsageError(f"k is {k}; it must be at least 1")
