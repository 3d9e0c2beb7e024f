"""Lines of reStructuredText, with the places in the file where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_TAB = 8  # columns


class Line(NamedTuple):
    """A line, or what is behind the marks of the blocks around it."""

    start: int  # in the file
    text: str  # without blanks at its end

    @property
    def indent(self) -> int:
        """The columns of its blanks."""
        blanks = self.text[: len(self.text) - len(self.text.lstrip(" \t"))]
        return columns(blanks)

    @property
    def bare(self) -> Line:
        """The line without the blanks it begins with."""
        return self.skip(len(self.text) - len(self.text.lstrip(" \t")))

    def skip(self, characters: int) -> Line:
        """What is behind some of its characters.

        characters: how many characters are left out."""
        return Line(self.start + characters, self.text[characters:])

    def dedent(self, columns: int) -> Line:
        """The line without the blanks at its beginning.

        columns: how many columns of blanks are left out at most."""
        characters, column = 0, 0
        while column < columns and self.text[characters : characters + 1] in (" ", "\t"):
            column += _TAB - column % _TAB if self.text[characters] == "\t" else 1
            characters += 1
        return self.skip(characters)


def columns(text: str) -> int:
    """How many columns a text without wide characters has, whose tabs stop at every eighth.

    text: the text."""
    return len(text.expandtabs(_TAB))


def dedented(lines: Sequence[Line]) -> list[Line]:
    """The lines without the blanks that all of them begin with.

    lines: the lines."""
    common = min((line.indent for line in lines if line.text), default=0)
    return [line.dedent(common) for line in lines]
