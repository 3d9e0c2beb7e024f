"""Texts that come again in the files of one command: which units repeat an earlier one, and what
these get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tmnmt.codes.record import Placed, Text
from tmnmt.engine.full_match import value_of
from tmnmt.index.match_value import FULL
from tmnmt.segments import Match, Translation
from tmnmt.text import normalise

BestMatches = Callable[[Sequence[Text]], list[Match | None]]


class RepeatedTexts:
    """Which texts come more than once. Two texts are the same where their match tokens are."""

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def add(self, text: str) -> None:
        """Counts a text that is to be translated.

        text: the text."""
        self._counts[normalise(text)] += 1

    def has(self, text: str) -> bool:
        """Whether a text comes more than once.

        text: the text."""
        return self._counts[normalise(text)] > 1


@dataclass(frozen=True, slots=True)
class Repetition:
    """A unit that repeats an earlier one. `is_copied`: whether it gets the translation of that one
    as it is; otherwise it is translated, as where a memory has the very text."""

    is_copied: bool


class Repetitions:
    """Finds the units that repeat an earlier one in the files of a command, as `tmnmt analyse`
    counts them: a unit that a memory has in the same place is none."""

    def __init__(self, repeated: RepeatedTexts, best_matches: BestMatches, copies: bool) -> None:
        """repeated: the texts that come more than once in all files.
        best_matches: finds for every text the match that is worth most.
        copies: whether repetitions get the earlier translation. Otherwise they are only marked, as
        where all translations come from a memory."""
        self._repeated, self._best_matches, self._copies = repeated, best_matches, copies
        self._sources = dict[str, Text]()  # the first of every text that comes again
        self._translations = dict[str, Translation]()  # of the first, once it is there

    def find(self, sources: Sequence[Placed]) -> list[Repetition | None]:
        """For every text in turn whether it repeats an earlier one; None where it does not.

        sources: the texts of a document, and where they stand."""
        come_again = [self._comes_again(text) for text in sources]
        later = [text for text, is_later in zip(sources, come_again, strict=True) if is_later]
        values = iter(self._values(later))
        return [
            self._repetition(text, next(values)) if is_later else None
            for text, is_later in zip(sources, come_again, strict=True)
        ]

    def _comes_again(self, text: Text) -> bool:
        """Whether a text came before. The first of several is noted."""
        if not self._repeated.has(text.plain):
            return False
        name = normalise(text.plain)
        is_later = name in self._sources
        self._sources.setdefault(name, Text(text.plain, text.codes))
        return is_later

    def _values(self, texts: Sequence[Placed]) -> list[int]:
        """What the best match of a memory is worth, for every text."""
        if not texts:
            return []
        return [0 if match is None else value_of(match) for match in self._best_matches(texts)]

    def _repetition(self, text: Text, value: int) -> Repetition | None:
        """`value`: what the best match of a memory is worth."""
        if value > FULL:
            return None
        is_same = self._sources[normalise(text.plain)] == Text(text.plain, text.codes)
        return Repetition(self._copies and is_same and value < FULL)

    def note(self, text: Text, translation: Translation) -> None:
        """Keeps the translation of a text, where it is the first of several.

        text: the text.
        translation: its translation."""
        name = normalise(text.plain)
        if self._sources.get(name) == Text(text.plain, text.codes):
            self._translations.setdefault(name, translation)

    def translation_of(self, text: Text) -> Translation:
        """The translation that a repetition gets, which is that of the first text.

        text: the text."""
        return self._translations[normalise(text.plain)]
