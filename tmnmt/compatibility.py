"""Characters that a model reads as nothing or as plainer ones: invisible ones, which part words or
say where text runs, and others that are kept in Unicode for the sake of older codes."""

from __future__ import annotations

import unicodedata

INVISIBLE = (
    "\u00ad\u200b\u2060\ufeff"  # soft hyphen, zero-width space, word joiner, byte-order mark
    "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # directions
)
_LIGATURES = range(0xFB00, 0xFB07)
_WIDE = range(0xFF01, 0xFF5F)  # letters, digits and marks as wide as Chinese signs
_PLAIN = {"\u2011": "-", "\u02bc": "\u2019"}
_TABLE: dict[int, str | None] = {
    **dict.fromkeys(map(ord, INVISIBLE)),
    **{ord(sign): plain for sign, plain in _PLAIN.items()},
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in (*_LIGATURES, *_WIDE)},
}


def plainer(text: str) -> str:
    """A text without invisible characters, and with plain ones in place of those of older codes.

    text: the text."""
    return text if text.isascii() else text.translate(_TABLE)


def is_plainer(sign: str) -> bool:
    """Whether a character is read as nothing, or as plainer ones.

    sign: the character."""
    return ord(sign) in _TABLE
