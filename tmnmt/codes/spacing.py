"""Codes that stand apart: with white space on both sides, as words do.

Contact <x/> at once.     the source, whose plain text has one blank there
Contactez <x/>vite.       the code placed
Contactez <x/> vite.      with a blank of its own"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tmnmt.codes.record import Code, Part, Text, joined


def with_spacing(source: Text, target: Text) -> Text:
    """`target`, which has the codes of `source`, with a blank beside every standalone code that
    stands apart in the source and in the target has white space on one side alone."""
    apart = Counter(source.codes[number].markup for number in _apart(source))
    if not apart:
        return target
    parts = list(target.parts())
    shown = list[Part]()
    for at, part in enumerate(parts):
        if isinstance(part, str) or not _is_point(part) or not apart[part[0].markup]:
            shown.append(part)
            continue
        apart[part[0].markup] -= 1
        before, behind = _beside(parts, at)
        blank = (Code(0, "blank", " "), "")
        between = [part]
        if before.isspace() and behind.isalnum():
            between = [part, blank]
        elif behind.isspace() and before.isalnum():
            between = [blank, part]
        shown += between
    return joined(shown)


def _apart(text: Text) -> Iterator[int]:
    """Which standalone codes have white space on both sides."""
    parts = list(text.parts())
    number = 0
    for at, part in enumerate(parts):
        if isinstance(part, str):
            continue
        if _is_point(part):
            before, behind = _beside(parts, at)
            if before.isspace() and behind.isspace():
                yield number
        number += 1


def _beside(parts: Sequence[Part], at: int) -> tuple[str, str]:
    """The signs before and behind a part."""
    before = (parts[number] for number in range(at - 1, -1, -1))
    behind = (parts[number] for number in range(at + 1, len(parts)))
    return _sign(before, -1), _sign(behind, 0)


def _is_point(part: tuple[Code, str]) -> bool:
    return part[0].kind == "standalone" and not part[1]


def _sign(parts: Iterator[Part], end: int) -> str:
    """The sign at this end of the first of the parts that has one; blanks that are not in the plain
    text count."""
    for part in parts:
        if isinstance(part, str):
            return part[end]
        code, covered = part
        if shown := covered or (code.markup if code.kind == "blank" else ""):
            return shown[end]
        if code.kind != "blank" and _is_point(part):
            return ""
    return ""
