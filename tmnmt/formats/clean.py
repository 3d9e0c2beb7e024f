"""Text as a segment may hold it: one line, no control characters, no more than a
thousand tokens."""

from __future__ import annotations

import re

from tmnmt.errors import UsageError
from tmnmt.text import match_tokens, nfc

MAX_TOKENS = 1000
MAX_NAME = 1000  # characters

UNWANTED = "\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # inside brackets of an expression
_UNWANTED = re.compile(f"[{UNWANTED}]")
# Each run of blanks is looked at once: from its start only, and without going back.
_LINE_BREAK = re.compile("(?<![ \t])[ \t]*+[\n\r][ \t\n\r]*+")
ILLEGIBLE = "\u200b\ufffd"
_BLANKS = re.compile(" {2,}")
# White space among the control characters: words must not run together where it stood.
_SPACE = re.compile("[\t\x0b\x0c\x1c\x1d\x85]")
_LINES = re.compile("([\t\n\r])")
_KEPT = ("\t", "\n", "\r")
_HYPHEN = "\x1e"  # of Word, which no line breaks at; its optional hyphen is \x1f


def clean(text: str) -> tuple[str, bool]:
    """A text on one line and stripped, and whether control characters other than tabs and line ends
    were in it.

    A line end with the blanks around it becomes one space, so do tabs and other control characters
    that are white space. Of the hyphens of Word, the one at which no line ends stays, and the
    optional one is taken out. So is the rest (NUL, C0, C1, lone surrogates, U+FFFE, U+FFFF: none of
    them legal in XML or of use to a model). U+2028 and U+2029 are no control characters and stay.

    text: the text."""
    if text.isprintable() or not _UNWANTED.search(text):
        return text.strip(), False
    text = _LINE_BREAK.sub(" ", text).replace("\t", " ")
    if not _UNWANTED.search(text):
        return text.strip(), False
    text = _SPACE.sub(" ", text).replace(_HYPHEN, "\u2011")
    return _UNWANTED.sub("", text).strip(), True


def without_controls(text: str) -> str:
    """A text of any number of lines without the control characters that `clean` takes out; tabs
    and line ends stay as they are.

    text: the text."""
    if text.isprintable():
        return text
    return "".join(
        part
        if part in _KEPT
        else _UNWANTED.sub("", _SPACE.sub(" ", part).replace(_HYPHEN, "\u2011"))
        for part in _LINES.split(text)
    )


def legible(text: str, source: str) -> str:
    """What a model wrote, without zero-width spaces and signs that stand for bytes which are no
    character, where the source has none.

    text: what the model wrote.
    source: the source."""
    wrong = [sign for sign in ILLEGIBLE if sign in text and sign not in source]
    for sign in wrong:
        text = text.replace(sign, "")
    return _BLANKS.sub(" ", text) if wrong else text


def clean_name(text: str) -> str:
    """The name of a document, an origin or a user without tabs, line ends and other control
    characters, cut at 1,000 characters.

    text: the name."""
    return text if is_name(text) else clean(text[:MAX_NAME])[0]


def is_name(text: str) -> bool:
    """Whether a text can be such a name as it stands.

    text: the text."""
    return len(text) <= MAX_NAME and (text.isprintable() or not _UNWANTED.search(text))


def excerpt(text: str, at_most: int = 60) -> str:
    """The beginning of a text for a message of one line, with "?" for what cannot be printed.

    text: the text.
    at_most: how many characters are given at most."""
    cut = text if len(text) <= at_most else text[: at_most - 3] + "..."
    return (
        cut if cut.isprintable() else "".join(sign if sign.isprintable() else "?" for sign in cut)
    )


def too_long(text: str) -> bool:
    """Whether a text has more than 1,000 match tokens.

    text: the text."""
    # A token is at least one character of the NFC form, which is at most three times as long as the
    # text.
    if len(text) <= MAX_TOKENS // 3 or len(nfc(text)) <= MAX_TOKENS:
        return False
    return len(match_tokens(text)) > MAX_TOKENS


def check_length(name: str, text: str) -> None:
    """Checks the length of a text.

    name: what the message calls the text.
    text: the text.

    Raises UsageError where it has more than 1,000 match tokens."""
    if too_long(text):
        raise UsageError(
            f"{name} has {len(match_tokens(text)):,} tokens; at most {MAX_TOKENS:,} are allowed"
        )
