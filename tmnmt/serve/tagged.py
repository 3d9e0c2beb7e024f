"""Texts of files with their codes as XML with short tags, as a person edits them.

    Click <g1>here</g1>, <x2/> of %s      spans and other codes by their numbers in the source

Words are escaped as XML wants it. Placeholders that are written as they stand, such as %s, have no
tag, and white space that is no single blank has none either: a target gets its ends from the
source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import takewhile
from xml.sax.saxutils import escape

from tmnmt.codes.record import Code, Part, Text, inline, is_text, join_parts, pairs
from tmnmt.codes.tree import tree
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.serve.http_error import wrong

MARKUP = 200  # characters of a code that are told
_TAG = re.compile(r"<[^<>]*>")


class Tags:
    """The tags of one unit: those of its source, then what its target has beside them."""

    def __init__(self, source: Text, target: Text | None = None) -> None:
        """source: the source of the unit.
        target: the target that it has; None for none."""
        self._source = source
        words = source.plain + (target.plain if target is not None else "")
        extra = ""
        while f"<{extra}g" in words or f"<{extra}x" in words:  # words that look like tags
            extra += "t"
        self._of_source = _tagged_codes(source, extra, 1)
        first_number = len(self._of_source) + 1
        self._of_target = _tagged_codes(target, extra, first_number) if target is not None else []
        self._codes = dict([*self._of_target, *self._of_source])

    @property
    def source(self) -> str:
        """The source with its tags."""
        return _render(self._source, [name for name, _ in self._of_source])

    @property
    def markup(self) -> dict[str, str]:
        """What each tag is in the file: its markup, of which the beginning where it is long."""
        return {name: code.markup[:MARKUP] for name, code in self._codes.items()}

    def target(self, target: Text) -> str:
        """A target with its tags: those of the source where the codes are the same.

        target: the target that the unit has."""
        remaining = list(self._of_source)
        names = list[str]()
        for name, code in self._of_target:
            alike = [entry for entry in remaining if _key(entry[1]) == _key(code)]
            names.append(alike[0][0] if alike else name)
            remaining = [entry for entry in remaining if entry not in alike[:1]]
        return _render(target, names)

    def read(self, text: str) -> Text:
        """A target as a person has left it.

        text: the target with tags.

        Raises Refused for a tag that there is not."""
        parts = [*_edge(self._source), *self._parts(text), *_edge(self._source, last=True)]
        return clean_codes(join_parts(parts))[0]

    def _parts(self, text: str) -> Iterator[Part]:
        position = 0
        words = ""
        for tag in _TAG.finditer(text):
            code = self._codes.get(tag[0])
            if code is None:
                allowed = ", ".join(self._codes) or "none"
                why = "{tag} is no tag of this segment; its tags: {tags}"
                raise wrong(why, tag=tag[0][:40], tags=allowed)
            words = unescape(text[position : tag.start()])
            position = tag.end()
            covered = self._covered(code)
            if covered and not covered.strip():  # a blank that stands beside the tag
                covered = words[-1:] if words[-1:].isspace() else ""
                words = words[: len(words) - len(covered)]
            if words:
                yield words
            yield code, covered
        if words := unescape(text[position:]):
            yield words

    def _covered(self, code: Code) -> str:
        return self._source.plain[code.at : code.at + code.covers] if code.covers else ""


def _tagged_codes(text: Text, extra: str, first: int) -> list[tuple[str, Code]]:
    """Every code that has a tag, and that tag. A half of a span, and spans that cross, stand
    alone."""
    codes = inline(text.codes)
    closes = pairs(codes) if tree(codes) is not None else {}
    number = {index: first + place for place, index in enumerate(range(len(codes)))}
    names = [f"<{extra}x{number[index]}/>" for index in range(len(codes))]
    for begin, end in closes.items():
        names[begin] = f"<{extra}g{number[begin]}>"
        names[end] = f"</{extra}g{number[begin]}>"
    return list(zip(names, codes, strict=True))


def _render(text: Text, names: list[str]) -> str:
    """The text with these tags, without the white space at its ends."""
    output, remaining = "", iter(names)
    for part in text.parts():
        if isinstance(part, str):
            output += escape(part)
        elif part[0].kind == "blank" or is_text(part[0]):
            output += escape(part[1])
        else:
            output += ("" if part[1].strip() else part[1]) + next(remaining)
    return output


def _edge(text: Text, last: bool = False) -> list[Part]:
    """The white space at an end that the plain text has in another form."""
    parts = list(text.parts())[:: -1 if last else 1]
    blanks = takewhile(lambda part: not isinstance(part, str) and part[0].kind == "blank", parts)
    return list(blanks)[:: -1 if last else 1]


def _key(code: Code) -> tuple[str, str, str]:
    return code.kind, code.form, code.markup
