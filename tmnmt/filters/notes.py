"""Footnote numbers and the like, which are in a span of their own and are no words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tmnmt.codes.notes import content_of, notes
from tmnmt.codes.record import Part, Source, Text, join_parts
from tmnmt.filters.contract import Filter, Undo


class Notes(Filter):
    """Takes the text out of spans without letters, such as footnote numbers."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        found_notes = notes(source) if isinstance(source, Text) and source.codes else {}
        if not isinstance(source, Text) or not found_notes:
            return source, None
        contents = {
            f"{source.codes[number].markup}\0{number}": content_of(source, number)
            for number in found_notes
        }
        return _without_contents(source, found_notes), NoteContents(contents)


class NoteContents(Undo):
    """Puts the text back into the spans."""

    def __init__(self, contents: dict[str, str]) -> None:
        """contents: the text of every span, by the markup of the code that opens it in the text
        that the model reads."""
        self._contents = contents

    def restore(self, target: Text) -> Text:
        parts, blank_due = list[Part](), False
        for part in target.parts():
            if isinstance(part, str):
                parts.append(part[1:] if blank_due and part[:1].isspace() else part)
                blank_due = False
                continue
            code, covered = part
            if code.markup not in self._contents:
                parts.append(part)
                continue
            content = self._contents[code.markup]
            parts += [(replace(code, markup=code.markup.rpartition("\0")[0]), covered), content]
            blank_due = content.isspace()
        return join_parts(part for part in parts if part != "")


def _without_contents(source: Text, found_notes: dict[int, int]) -> Text:
    """The text with nothing in its notes. A blank that is all that a note has stands behind it."""
    return join_parts(_emptied(source, found_notes))


def _emptied(source: Text, found_notes: dict[int, int]) -> Iterator[Part]:
    number, inside, blank = 0, False, ""
    for part in source.parts():
        if isinstance(part, str):
            if not inside:
                yield part
            continue
        code, covered = part
        if number in found_notes:
            inside = True
            content = content_of(source, number)
            blank = content if content.isspace() else ""
            part = replace(code, markup=f"{code.markup}\0{number}"), covered
        yield part
        if inside and number not in found_notes:
            inside = False
            if blank:
                yield blank
        number += 1
