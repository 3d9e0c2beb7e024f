"""What is copied as it stands, as codes that cover it: placeholders of programs such as %s, what is
no word by its form, such as a file's name, words in foreign scripts, and what the user names."""

from __future__ import annotations

from dataclasses import replace

from tmnmt.codes.placeholders import ALL, with_placeholders
from tmnmt.codes.record import Source, Text, is_text
from tmnmt.filters.contract import Filter, Reader, Undo


class Placeholders(Filter):
    """Finds what is copied as it stands: placeholders, code, foreign script, and what is named."""

    level = "text"
    is_for_people = True

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        copied = reader.copied if not reader.is_person else replace(reader.copied, finders=())
        self._finders, self._first = copied.finders, () if reader.is_person else copied.first

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        text = source if isinstance(source, Text) else Text(source)
        # those that the text's reader has found; there are no others then
        known = frozenset(code.markup for code in text.codes if is_text(code))
        finders = [*(() if known else ALL), *self._finders]
        text = with_placeholders(text, finders, self._first)
        if isinstance(source, str) and not text.codes:
            return source, None
        return text, AsText(known)


class AsText(Undo):
    """Leaves in the plain text what it covers, but for the codes that are `known` by their
    markup."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known

    def restore(self, target: Text) -> Text:
        codes = (code for code in target.codes if not is_text(code) or code.markup in self._known)
        return Text(target.plain, tuple(codes))
