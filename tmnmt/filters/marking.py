"""Filters that find what is copied as it stands, and cover it with codes."""

from __future__ import annotations

from collections.abc import Sequence

from tmnmt.codes.placeholders import Finder, with_placeholders
from tmnmt.codes.record import Source, Text, is_text
from tmnmt.filters.contract import Filter, Undo


class Marker(Filter):
    """One of them. Those that stand side by side in the list search together, since of places that
    overlap the first counts. `finders`: what find it; `first`: those that go before all others.
    `is_reader`: a reader of files may have found it already, and then nothing else of this kind is
    looked for."""

    level = "text"
    finders: Sequence[Finder] = ()
    first: Sequence[Finder] = ()
    is_reader = False

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        return mark(source, [self])


def mark(source: Source, markers: Sequence[Marker]) -> tuple[Source, Undo | None]:
    """A text with codes for all that some filters find together, and what takes the codes out
    again.

    source: the text.
    markers: the filters."""
    text = source if isinstance(source, Text) else Text(source)
    markups = frozenset(code.markup for code in text.codes if is_text(code))
    finders = [
        finder
        for marker in markers
        if not (markups and marker.is_reader)
        for finder in marker.finders
    ]
    text = with_placeholders(
        text, finders, [finder for marker in markers for finder in marker.first]
    )
    if isinstance(source, str) and not text.codes:
        return source, None
    return text, AsText(markups)


class AsText(Undo):
    """Leaves in the plain text what the codes cover."""

    def __init__(self, markups: frozenset[str]) -> None:
        """markups: the markups of codes that stay."""
        self._markups = markups

    def restore(self, target: Text) -> Text:
        codes = (code for code in target.codes if not is_text(code) or code.markup in self._markups)
        return Text(target.plain, tuple(codes))
