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
    """The text with codes for all that the markers find together."""
    text = source if isinstance(source, Text) else Text(source)
    known = frozenset(code.markup for code in text.codes if is_text(code))
    finders = [finder for one in markers if not (known and one.is_reader) for finder in one.finders]
    text = with_placeholders(text, finders, [finder for one in markers for finder in one.first])
    if isinstance(source, str) and not text.codes:
        return source, None
    return text, AsText(known)


class AsText(Undo):
    """Leaves in the plain text what the codes cover, but for those that are `known` by their
    markup."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known

    def restore(self, target: Text) -> Text:
        codes = (code for code in target.codes if not is_text(code) or code.markup in self._known)
        return Text(target.plain, tuple(codes))
