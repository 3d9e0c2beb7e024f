"""Texts as a terminal may show them: what would command it stands as a sign."""

from __future__ import annotations

# One sign for each: the pictures of C0 and of DEL; C1, which can begin an escape sequence too, has
# none.
SIGNS = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}


def visible(text: str) -> str:
    """A text as long as it was, with signs in the place of control characters other than tabs and
    line ends.

    text: the text."""
    return text if text.isprintable() else text.translate(SIGNS)
