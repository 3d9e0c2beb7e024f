"""The repairs of texts around a model, in one ordered list. `contract.py` says what each promises;
the driver, `tmnmt/engine/pipeline.py`, goes through the list and knows none of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from tmnmt.codes.record import Source
from tmnmt.filters.capitals import Capitals
from tmnmt.filters.contract import Filter, Level, Reader, Undo
from tmnmt.filters.control_characters import ControlCharacters, IllegibleSigns
from tmnmt.filters.headings import Headings
from tmnmt.filters.masks import Masks
from tmnmt.filters.messages import ICUMessages
from tmnmt.filters.non_linguistic import NonLinguistic
from tmnmt.filters.numbers import Numbers
from tmnmt.filters.placeholders import Placeholders
from tmnmt.filters.sentences import LostSentences
from tmnmt.filters.tags import Tags
from tmnmt.filters.unknown_words import UnknownWords

# A text goes through them in this order, and its translation in the reverse.
FILTERS: tuple[type[Filter], ...] = (
    ControlCharacters,
    Tags,
    Placeholders,
    ICUMessages,
    NonLinguistic,
    Capitals,
    Numbers,
    Masks,
    IllegibleSigns,
    UnknownWords,
    Headings,
    LostSentences,
)


class Filters:
    """The filters of one reader, in their order."""

    def __init__(self, reader: Reader, kinds: Iterable[type[Filter]] = FILTERS) -> None:
        self.reader, self._kinds = reader, tuple(kinds)
        self._filters = [
            kind(reader) for kind in self._kinds if kind.is_for_people or not reader.is_person
        ]

    @cached_property
    def for_people(self) -> Filters:
        """Those where a person has written the target."""
        return Filters(replace(self.reader, is_person=True), self._kinds)

    def prepare(
        self, source: Source, level: Level, keeps_case: bool = False
    ) -> tuple[Source, list[Undo]]:
        """The text behind all filters of a level, and what takes them back, the last first.
        `keeps_case`: without those that write it in other letters."""
        undos = list[Undo]()
        for one in self._filters:
            if one.level == level:
                text, undo = one.prepare(source)
                if not (keeps_case and undo is not None and undo.is_recased):
                    source = text
                    undos += [undo] if undo is not None else []
        return source, undos[::-1]
