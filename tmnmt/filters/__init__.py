"""The repairs of texts around a model, in one ordered list. `contract.py` says what each promises;
the driver, `tmnmt/engine/source_segment.py`, goes through the list and knows none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from itertools import groupby
from typing import get_args

from tmnmt.codes.form import Copied
from tmnmt.codes.record import Source
from tmnmt.filters.capitals import Capitals
from tmnmt.filters.code_forms import CodeForms
from tmnmt.filters.coded_sentences import CodedSentences
from tmnmt.filters.contract import Filter, Level, Reader, Undo
from tmnmt.filters.control_characters import ControlCharacters, IllegibleSigns
from tmnmt.filters.ends import Ends
from tmnmt.filters.foreign_script import ForeignScript
from tmnmt.filters.headings import Headings
from tmnmt.filters.labels import Labels
from tmnmt.filters.marking import Marker, mark
from tmnmt.filters.masks import Masks
from tmnmt.filters.messages import ICUMessages
from tmnmt.filters.non_linguistic import NonLinguistic
from tmnmt.filters.notes import Notes
from tmnmt.filters.numbers import Numbers
from tmnmt.filters.placeholders import Placeholders
from tmnmt.filters.quotations import Quotations
from tmnmt.filters.sentences import LostSentences
from tmnmt.filters.tags import Tags
from tmnmt.filters.typography import Typesetting
from tmnmt.filters.unknown_words import UnknownWords
from tmnmt.registry import Registry

# A text goes through them in this order, and its translation in the reverse.
FILTERS: Registry[type[Filter]] = Registry(
    "filter",
    {
        kind.__name__: kind
        for kind in (
            ControlCharacters,
            Tags,
            Placeholders,
            CodeForms,
            ForeignScript,
            ICUMessages,
            CodedSentences,
            Notes,
            NonLinguistic,
            Typesetting,
            Labels,
            Ends,
            Capitals,
            Numbers,
            Masks,
            IllegibleSigns,
            Quotations,
            UnknownWords,
            Headings,
            LostSentences,
        )
    },
)


Step = Callable[[Source], tuple[Source, Undo | None]]


class Filters:
    """The filters of one reader, in their order."""

    def __init__(self, reader: Reader, kinds: Iterable[type[Filter]] | None = None) -> None:
        """reader: who reads the texts.
        kinds: the filters; None takes all that there are."""
        self.reader = reader
        self._kinds = tuple(FILTERS.values() if kinds is None else kinds)
        active = [
            kind(reader) for kind in self._kinds if kind.is_for_people or not reader.is_person
        ]
        self._markers = [marker for marker in active if isinstance(marker, Marker)]
        self._steps = {
            level: _steps(step for step in active if step.level == level)
            for level in get_args(Level)
        }

    @cached_property
    def for_people(self) -> Filters:
        """Those where a person has written the target."""
        return Filters(replace(self.reader, is_person=True), self._kinds)

    def typesetting(self, code: str) -> Filters:
        """The same, which set what is written as another region does; `code`: language and
        region."""
        return Filters(replace(self.reader, typography=code), self._kinds)

    @cached_property
    def copied(self) -> Copied:
        """What is copied besides placeholders of programs: what checks and pairs are searched
        for."""
        finders = [
            find for marker in self._markers if not marker.is_reader for find in marker.finders
        ]
        return Copied(
            tuple(finders), tuple(find for marker in self._markers for find in marker.first)
        )

    def prepare(
        self, source: Source, level: Level, keeps_case: bool = False
    ) -> tuple[Source, list[Undo]]:
        """A text behind all filters of a level, and what takes them back, the last first.

        source: the text.
        level: the level.
        keeps_case: whether filters are left out that write the text in other letters."""
        undos = list[Undo]()
        for step in self._steps[level]:
            text, undo = step(source)
            if not (keeps_case and undo is not None and undo.is_recased):
                source = text
                undos += [undo] if undo is not None else []
        return source, undos[::-1]


def _steps(filters: Iterable[Filter]) -> list[Step]:
    """What prepares a text in turn; markers side by side are one step."""
    steps = list[Step]()
    for is_marker, group in groupby(filters, lambda step: isinstance(step, Marker)):
        together = [*group]
        if is_marker:
            steps.append(partial(mark, markers=[o for o in together if isinstance(o, Marker)]))
        else:
            steps += [step.prepare for step in together]
    return steps
