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
    """What `codes_of` makes the same codes of again.

    plain: the text without its codes.
    codes: the codes.

    Raises DataError where the text cannot have them."""
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
    last = max((index for index in range(len(rest)) if rest[index] != _USUAL[index]), default=-1)
    values.extend(rest[: last + 1])
    return values


def codes_of(value: object, plain: str) -> tuple[Code, ...]:
    """The codes of a text.

    value: what `listed` gave.
    plain: the text without its codes.

    Raises ValueError for what `listed` gives of no codes that this text can have."""
    if not isinstance(value, list):
        raise ValueError("no list of codes")
    return Text(plain, tuple(map(_code, value))).codes


def _code(value: object) -> Code:
    if type(value) is not list or not 3 <= len(value) <= 3 + len(_USUAL):
        raise ValueError("no code")
    position, letter, markup, pair, form, covers, flags = (*value, *_USUAL[len(value) - 3 :])
    # one by one: every match of a search is read so
    if not (type(markup) is str and type(pair) is str and type(form) is str):
        raise ValueError("a text of a code is not what it should be")
    if not (
        type(position) is int and type(covers) is int and type(flags) is int and 0 <= flags <= 3
    ):
        raise ValueError("a number of a code is not what it should be")
    if not (markup.isascii() and pair.isascii() and form.isascii()):
        (markup + pair + form).encode()  # half of a character: UnicodeEncodeError, a ValueError
    kind = _KIND.get(letter) if type(letter) is str else None
    if kind is None:
        raise ValueError("a code of no kind")
    return Code(
        position, kind, markup, pair, form, covers, not flags & _FIXED, flags & _DROPPABLE > 0
    )
