"""Texts that were read in a wrong encoding, with Ã© in place of é or РїСЂ in place of пр, and texts
that have lost letters."""

from __future__ import annotations

import re

# what the bytes of UTF-8 were taken for, and how many characters must be so: one is no proof where
# the letters are common ones
ENCODINGS = {"cp1252": 1, "cp1251": 2}
CYRILLIC_SHARE = 8  # of so many characters of a text one must be so in cp1251


def _class(first: int, last: int, encoding: str) -> str:
    """A class of a regular expression: what these bytes are in an encoding that is not UTF-8."""
    signs = (bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in range(first, last))
    return "[" + "".join(map(re.escape, signs)) + "]"


def _pattern(encoding: str) -> re.Pattern[str]:
    """Characters of two or three bytes in UTF-8 that texts are full of. Others may stand so by
    chance, as É and a quotation mark."""
    rest = _class(0x80, 0xC0, encoding)
    two = "".join(
        _class(byte, byte + 1, encoding)[1:-1] for byte in b"\xc2\xc3\xc4\xc5\xce\xcf\xd0\xd1"
    )
    three = "".join(_class(byte, byte + 1, encoding)[1:-1] for byte in b"\x80\x82\x84\x86")
    return re.compile(f"[{two}]{rest}|{_class(0xE2, 0xE3, encoding)}[{three}]{rest}")


_PATTERNS = {encoding: _pattern(encoding) for encoding in ENCODINGS}
_LOST_LETTERS = re.compile(r"(?<=[^\W\d_])[?\ufffd](?=[^\W\d_])|\ufffd")


def misread(text: str) -> str:
    """The first word of a text that was read in a wrong encoding; "" where none is found."""
    if text.isascii():
        return ""
    for encoding, fewest in ENCODINGS.items():
        places = [match.start() for match in _PATTERNS[encoding].finditer(text)]
        words = [
            word for word in (_word(text, place) for place in places) if not _is_capitals(word)
        ]
        enough = encoding == "cp1252" or CYRILLIC_SHARE * len(words) >= len(text)
        if len(words) >= fewest and enough:
            return words[0]
    return ""


def lost_letters(src: str, tgt: str) -> str:
    """The first word of a target in which ? stands for a letter, where the source has no such word;
    "" where none is found."""
    match = _LOST_LETTERS.search(tgt)
    return _word(tgt, match.start()) if match is not None and not _LOST_LETTERS.search(src) else ""


def _is_capitals(word: str) -> bool:
    """Whether it is in capitals: É stands before a quotation mark there, as it may."""
    return not any(map(str.islower, word)) and any(c.isascii() and c.isupper() for c in word)


def _word(text: str, position: int) -> str:
    begin = text.rfind(" ", 0, position) + 1
    end = text.find(" ", position)
    return text[begin : end if end >= 0 else len(text)]
