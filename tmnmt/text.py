"""Normalisation and match tokens: what two segments are compared by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import groupby

MAX_TOKEN_CHARS = 200
APOSTROPHES = ("'", "’")

# Scripts written without spaces are compared character by character.
_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u3100-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
# the same where there is nothing else
_ASCII_TOKEN = re.compile(r"[A-Za-z]+|[!-/:-@\[-`{-~]|[0-9]+(?:[.,][0-9]+)*")
_TOKEN = re.compile(rf"[{_CJK}]|\d+(?:[.,]\d+)*|[^\W\d_{_CJK}]+|_|[^\w\s]")
_LINE_END = re.compile("[ \t]*[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029][\\s\x1c-\x1e\x85]*")
_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")
_LONG_RUN = re.compile(r"[^\w\s]{64,}")


def match_tokens(text: str) -> list[str]:
    """The tokens of `text` that the fuzzy score counts: NFC, case kept; words, numbers, single
    punctuation marks, single characters for CJK. A token is cut at 200 characters. Control
    characters separate."""
    if text.isascii():
        words: list[str] = _ASCII_TOKEN.findall(text)
        return words if len(text) <= MAX_TOKEN_CHARS else [word[:MAX_TOKEN_CHARS] for word in words]
    normal = nfc(text)
    tokens: list[str] = _TOKEN.findall(normal)
    is_short = len(normal) <= MAX_TOKEN_CHARS or max(map(len, tokens), default=0) <= MAX_TOKEN_CHARS
    if is_short and "".join(tokens).isprintable():
        return tokens  # nothing to leave out or to cut
    return [token[:MAX_TOKEN_CHARS] for token in tokens if token.isprintable()]


def token_spans(text: str) -> list[tuple[int, int]]:
    """Where the words, numbers and marks of a text begin and end; in a text in NFC these are its
    match tokens, before they are cut."""
    return [token.span() for token in _TOKEN.finditer(text) if token[0].isprintable()]


def nfc(text: str) -> str:
    """`text` in Normalization Form C (UAX #15), in time linear in its length.

    Python sorts the marks on one letter by insertion, which is quadratic: 80 KB of them took 8
    seconds. So long runs are put into that order before, by a stable sort on the combining class,
    as the form defines it."""
    if len(text) > 64:
        text = _LONG_RUN.sub(_in_canonical_order, text)
    return unicodedata.normalize("NFC", text)


def _in_canonical_order(run: re.Match[str]) -> str:
    # Mark by mark: normalised together they would be sorted by insertion again.
    marks = "".join([unicodedata.normalize("NFD", character) for character in run[0]])
    runs = groupby(marks, key=lambda mark: unicodedata.combining(mark) > 0)
    return "".join(
        [
            "".join(sorted(characters, key=unicodedata.combining) if sort else characters)
            for sort, characters in runs
        ]
    )


def written_for_tokens(text: str, tokens: Iterable[str] | None = None) -> tuple[bytes, bool]:
    """What compiled code reads the match tokens from: ASCII as it is, of other text the tokens, one
    a line (and whether). tokens: of the text, where they are known. Raises UnicodeEncodeError where
    a text is no Unicode."""
    if text.isascii():
        return text.encode(), False
    return "\n".join(match_tokens(text) if tokens is None else tokens).encode(), True


def normalise(text: str) -> str:
    """The form under which two sources count as the same: match tokens joined by one space."""
    return " ".join(match_tokens(text))


def one_line(text: str) -> str:
    """`text` with a space for every line end and the blanks around it, so that whoever reads lines
    reads one."""
    return _LINE_END.sub(" ", text) if not text.isprintable() else text


def words(text: str) -> int:
    """The words that translators are paid by: runs between blanks, and every character of CJK."""
    return len(_WORD.findall(text))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each of those words begins and ends."""
    return [word.span() for word in _WORD.finditer(text)]
