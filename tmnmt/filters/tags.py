"""Tags that stand in a string as text, such as <b>: they become codes, which are placed in the
target by the words that they stand at, and are text again there."""

from __future__ import annotations

from tmnmt.codes.record import Source, Text, inline
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.files.texts import string_of, text_of
from tmnmt.filters.contract import Filter, Undo


class Tags(Filter, Undo):
    """Takes tags out of a string, to be placed in its translation."""

    level = "text"
    is_for_people = True

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        if isinstance(source, Text) or "<" not in source:
            return source, None
        text = text_of(source, breaks=False)
        if not text.codes:
            return source, None
        return text, self if inline(text.codes) else None

    def restore(self, target: Text) -> Text:
        return Text(string_of(target))

    def to_target(self, text: str) -> str:
        return with_tags(Text(text), html_tags).plain
