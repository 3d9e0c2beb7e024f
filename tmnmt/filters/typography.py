"""What the model writes, as its language and region set text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tmnmt.codes.record import Code, Source, Text
from tmnmt.filters.contract import Filter, ModelOutput, Undo
from tmnmt.typography import Typography, typography_of

_FIXED = "\ue0fe"  # stands for a quote that is not set otherwise; of private use
_COVERED = "\U00010900"  # a letter that stands for each character that a code covers
_BLANKS = " \u00a0\u202f"
_OPENING = "¿¡"  # what may be put in
_QUOTED = re.compile(f'"({_COVERED}+)"')


class Typesetting(Filter, Undo):
    """Sets quotes, blanks and opening marks as the target's language has them."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        if not self.reader.typography:
            return source, None
        if isinstance(source, Text) and source.codes:
            return source, _CodedTypesetting(typography_of(self.reader.typography))
        return source, self

    def restore_piece(self, output: ModelOutput) -> str:
        if output.is_typed:
            return output.text
        return typography_of(self.reader.typography).typeset(output.text)


@dataclass(frozen=True)
class _CodedTypesetting(Undo):
    """Sets a text once its codes have their places, which the marks of the model decide."""

    typography: Typography

    def typeset(self, target: Text) -> Text:
        return typeset(target, self.typography)


def typeset(text: Text, typography: Typography) -> Text:
    """A text as a language sets it, with its codes at the same words. What codes cover stays, and
    so do straight quotes right around it.

    text: the text.
    typography: that of the language."""
    plain = text.plain
    if any(sign in plain for sign in (_FIXED, _COVERED)):
        return text
    signs = [*plain]
    for code in text.codes:
        span = slice(code.at, code.at + code.covers)
        signs[span] = [sign if sign.isspace() else _COVERED for sign in plain[span]]
    fixed = _QUOTED.sub(rf"{_FIXED}\1{_FIXED}", "".join(signs))
    new = typography.typeset(fixed).replace(_FIXED, '"')
    if new == fixed.replace(_FIXED, '"'):
        return text
    starts = _starts("".join(signs), new)
    codes = tuple(_moved(code, plain, starts, new) for code in text.codes)
    restored = [*new]
    for code, moved in zip(text.codes, codes, strict=True):
        for offset in range(moved.covers):
            restored[moved.at + offset] = plain[code.at + offset]
    return Text("".join(restored), codes)


def _starts(former: str, new: str) -> list[int]:
    """Where every character of a text stands in what became of it; that of a blank is behind what
    stands before it."""
    starts, place = list[int](), 0
    for sign in former:
        if sign in _BLANKS:
            starts.append(place)
            continue
        while new[place] in _BLANKS or (new[place] in _OPENING and sign not in _OPENING):
            place += 1
        starts.append(place)
        place += 1
    return starts


def _moved(code: Code, plain: str, starts: Sequence[int], new: str) -> Code:
    """A code at the place that it has in what became of its text: beside the same sign, before the
    mark that opens a sentence, and with what it covers."""
    at = code.at
    follows = at < len(plain) and plain[at] not in _BLANKS
    if code.covers and follows:
        return replace(code, at=starts[at])
    precedes = at > 0 and plain[at - 1] not in _BLANKS
    if follows and not (precedes and code.kind == "close"):
        place = starts[at]
        while place and new[place - 1] in _OPENING and plain[at] not in _OPENING:
            place -= 1
        return replace(code, at=place)
    before = next((n for n in range(at - 1, -1, -1) if plain[n] not in _BLANKS), -1)
    place = starts[before] + 1 if before >= 0 else 0
    covers = code.covers if new[place : place + code.covers].isspace() else 0
    return replace(code, at=place, covers=covers)
