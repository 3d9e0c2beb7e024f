"""Codes that stand apart: with white space on both sides, as words do.

Contact <x/> at once.     the source, whose plain text has one blank there
Contactez <x/>vite.       the code placed
Contactez <x/> vite.      with a blank of its own"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tmnmt.codes.record import Code, Part, Text, join_parts


def with_spacing(source: Text, target: Text) -> Text:
    """A target with a blank beside every standalone code that stands apart in the source and in the
    target has white space on one side alone.

    source: the source.
    target: the target, which has the codes of the source."""
    isolated = Counter(source.codes[number].markup for number in _isolated(source))
    if not isolated:
        return target
    parts = list(target.parts())
    result = list[Part]()
    for index, part in enumerate(parts):
        if isinstance(part, str) or not _is_point(part) or not isolated[part[0].markup]:
            result.append(part)
            continue
        isolated[part[0].markup] -= 1
        preceding, following = _neighbours(parts, index)
        blank = (Code(0, "blank", " "), "")
        pieces = [part]
        if preceding.isspace() and following.isalnum():
            pieces = [part, blank]
        elif following.isspace() and preceding.isalnum():
            pieces = [blank, part]
        result += pieces
    return join_parts(result)


def _isolated(text: Text) -> Iterator[int]:
    """Which standalone codes have white space on both sides."""
    parts = list(text.parts())
    number = 0
    for index, part in enumerate(parts):
        if isinstance(part, str):
            continue
        if _is_point(part):
            preceding, following = _neighbours(parts, index)
            if preceding.isspace() and following.isspace():
                yield number
        number += 1


def _neighbours(parts: Sequence[Part], index: int) -> tuple[str, str]:
    """The signs before and behind a part."""
    preceding = (parts[number] for number in range(index - 1, -1, -1))
    following = (parts[number] for number in range(index + 1, len(parts)))
    return _sign(preceding, -1), _sign(following, 0)


def _is_point(part: tuple[Code, str]) -> bool:
    return part[0].kind == "standalone" and not part[1]


def _sign(parts: Iterator[Part], end: int) -> str:
    """The sign at this end of the first of the parts that has one; blanks that are not in the plain
    text count."""
    for part in parts:
        if isinstance(part, str):
            return part[end]
        code, covered = part
        if text := covered or (code.markup if code.kind == "blank" else ""):
            return text[end]
        if code.kind != "blank" and _is_point(part):
            return ""
    return ""
