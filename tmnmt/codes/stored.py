"""Codes as lists for JSON, short, since a memory holds many: [at, kind, markup, pair, form, covers,
flags], without what is as usual at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmnmt.codes.record import KINDS, Code, Text
from tmnmt.errors import DataError

_USUAL: tuple[Any, ...] = ("", "", 0, 0)  # pair, form, covers, flags
_FIXED, _DROPPABLE = 1, 2  # flags
_LETTER = {kind: kind[0] for kind in KINDS}
_KIND = {letter: kind for kind, letter in _LETTER.items()}

Listed = list[str | int]


def listed(plain: str, codes: Sequence[Code]) -> list[Listed]:
    """What `codes_of` makes the same codes of again. Raises DataError where a plain text cannot
    have them."""
    if not codes:
        return []
    try:
        return [_listed(code) for code in Text(plain, tuple(codes)).codes]
    except (ValueError, KeyError) as error:
        raise DataError(f"{plain[:40]!r} cannot have these codes: {error}") from error


def _listed(code: Code) -> Listed:
    flags = _FIXED * (not code.movable) + _DROPPABLE * code.droppable
    values: Listed = [code.at, _LETTER[code.kind], code.markup]
    rest = (code.pair, code.form, code.covers, flags)
    last = max((at for at in range(len(rest)) if rest[at] != _USUAL[at]), default=-1)
    values.extend(rest[: last + 1])
    return values


def codes_of(value: object, plain: str) -> tuple[Code, ...]:
    """The codes of a plain text. Raises ValueError for what `listed` gives of no codes that this
    text can have."""
    if not isinstance(value, list):
        raise ValueError("no list of codes")
    return Text(plain, tuple(map(_code, value))).codes


def _code(value: object) -> Code:
    if not isinstance(value, list) or not 3 <= len(value) <= 3 + len(_USUAL):
        raise ValueError("no code")
    at, letter, markup, pair, form, covers, flags = [*value, *_USUAL[len(value) - 3 :]]
    texts, numbers = (letter, markup, pair, form), (at, covers, flags)
    if not all(type(text) is str for text in texts) or letter not in _KIND:
        raise ValueError("a text of a code is not what it should be")
    if not all(type(number) is int for number in numbers) or not 0 <= flags <= 3:
        raise ValueError("a number of a code is not what it should be")
    "".join(texts).encode()  # half of a character: UnicodeEncodeError, which is a ValueError
    fixed, droppable = bool(flags & _FIXED), bool(flags & _DROPPABLE)
    return Code(at, _KIND[letter], markup, pair, form, covers, not fixed, droppable)
