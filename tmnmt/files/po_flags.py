"""Placeholders of PO messages by their flags: `#, c-format` says that %s stands for words, and `#,
no-c-format` that it does not (manual of gettext, *c-format Flag* and those that follow it)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tmnmt.codes.placeholders import FINDERS, Finder, by_pattern, evident_parameters

_MAX_LENGTH = re.compile(r"max-length:(\d{1,9})")
_FLAGS, _WIDTH = "[-+ #0'I]{0,6}", r"(?:\*|\d{1,9})?(?:\.(?:\*|\d{0,9}))?"
_SIZE = "(?:hh|h|ll|l|L|q|j|z|Z|t|I64|I32)?"
_LETTER = r"(?:[diouxXeEfFgGaAcCsSpnm@]|<PRI[A-Za-z0-9]{2,12}>)"
_CONVERSION = _FLAGS + _WIDTH + _SIZE + _LETTER
_C = (
    by_pattern(rf"%%|%\d{{1,9}}\${_CONVERSION}"),
    by_pattern(rf"%{_CONVERSION}", movable=False),
)
# gcc's own: %qs, %<, %>, %', %E, %T and so on, also with a number
_GCC = (by_pattern(rf"%(?:\d{{1,9}}\$)?[q+#]{{0,3}}{_SIZE}[A-Za-z<>']", movable=False), *_C)
_NUMBERED = (by_pattern(r"%L?(?:\d{1,2}|n)"),)
_BY_FLAG: dict[str, Sequence[Finder]] = {
    "c-format": _C,
    "objc-format": _C,
    "c++-format": (*FINDERS["braces"],),
    "gcc-internal-format": _GCC,
    "gfc-internal-format": _GCC,
    "php-format": _C,
    "perl-format": _C,
    "awk-format": _C,
    "lua-format": _C,
    "object-pascal-format": _C,
    "tcl-format": _C,
    "python-format": (*FINDERS["python"], *_C),
    "python-brace-format": FINDERS["braces"],
    "perl-brace-format": FINDERS["braces"],
    "java-format": FINDERS["braces"],
    "csharp-format": FINDERS["braces"],
    "rust-format": FINDERS["braces"],
    "sh-format": (by_pattern(r"\$(?:\{\w{1,100}\}|[A-Za-z_]\w{0,99}|\d|[@*#?])"),),
    "qt-format": _NUMBERED,
    "qt-plural-format": _NUMBERED,
    "kde-format": _NUMBERED,
    "kde-kuit-format": _NUMBERED,
    "ycp-format": _NUMBERED,
    "boost-format": (by_pattern(r"%\d{1,2}%"), *_C),
    "ruby-format": (by_pattern(rf"%<\w{{1,100}}>{_CONVERSION}|%\{{\w{{1,100}}\}}"), *_C),
    "javascript-format": _C,
    "lisp-format": (by_pattern(r"~[\d,:@']{0,9}[A-Za-z%&~|^;\[\]{}<>(){}*?]", movable=False),),
    "scheme-format": (by_pattern(r"~[\d,:@']{0,9}[A-Za-z%&~|]", movable=False),),
    "elisp-format": _C,
    "librep-format": _C,
    "java-printf-format": _C,
    "sh-printf-format": _C,
    "go-format": (
        by_pattern(r"%%|%[-+# 0]{0,5}\[\d{1,9}\][\d.]{0,9}[A-Za-z]"),
        by_pattern(rf"%{_FLAGS}{_WIDTH}[vTtbcdoOqxXUeEfFgGsp]", movable=False),
    ),
    "d-format": _C,
    "modula2-format": _C,
    "ocaml-format": _C,
    "smalltalk-format": (by_pattern(r"%\d{1,2}|<\d{1,2}[ps]>"),),
}
# What any text may have, and what only formats have.
_PRINTF = (*FINDERS["printf"], *FINDERS["python"])
_USUAL = tuple(
    finder for finders in FINDERS.values() for finder in finders if finder not in _PRINTF
)


def finders_of(flags: Iterable[str]) -> list[Finder]:
    """What finds the placeholders of a message. Without a flag of a format these are the usual
    patterns, and what is a parameter of a shell by what stands around it.

    flags: the flags of the message, such as "c-format"."""
    flags = set(flags)
    finders = [finder for flag in sorted(flags) for finder in _BY_FLAG.get(flag, ())]
    if not finders and not any(flag.startswith("no-") for flag in flags):
        finders = [*_PRINTF, evident_parameters]
    return [*finders, *_USUAL]


def max_length_of(flags: Iterable[str]) -> int | None:
    """How many characters a translation may have, as the flag max-length:N of Weblate says; None
    where there is none.

    flags: the flags of a message."""
    found = (_MAX_LENGTH.fullmatch(flag) for flag in flags)
    return min((int(length[1]) for length in found if length), default=None)
