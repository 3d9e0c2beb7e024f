"""Sentences of running text, by rules in SRX 2.0 (GALA/LISA, *Segmentation Rules eXchange*).

The rules are LanguageTool's, which come with the library choppa-srx and are under LGPL-2.1."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from tmnmt.errors import UsageError
from tmnmt.formats.languages import normal_code

if TYPE_CHECKING:
    from choppa import SrxDocument

# The library's time grows with the third power of the number of full stops, as in a table of
# contents with ". . . . ." So it gets a few at once. No sentence is longer, or has more of them.
_WINDOW = 2000  # characters
_STOPS = re.compile(r"[.?!\u2026\u3002\uff01\uff1f]+")
_MOST_STOPS = 16
# Those with rules of their own.
LANGUAGES = frozenset(
    {
        "ar",
        "ast",
        "be",
        "br",
        "ca",
        "crh",
        "da",
        "de",
        "el",
        "en",
        "eo",
        "es",
        "fa",
        "fr",
        "ga",
        "gl",
        "is",
        "it",
        "ja",
        "lt",
        "ml",
        "nl",
        "pl",
        "pt",
        "ro",
        "ru",
        "sk",
        "sl",
        "sr",
        "sv",
        "ta",
        "tl",
        "uk",
        "zh",
    }
)


def has_rules(code: str) -> bool:
    """Whether text of a language can be cut into sentences here.

    code: the code of the language."""
    try:
        check_language(code)
    except UsageError:
        return False
    return True


def check_language(code: str) -> None:
    """Checks that text of a language can be cut into sentences.

    code: the code of the language.

    Raises UsageError where there are no rules for it, or no library."""
    if _language(code) not in LANGUAGES:
        raise UsageError(
            f"no rules for sentences in {code or 'an unknown language'!r}; allowed: "
            f"{', '.join(sorted(LANGUAGES))}"
        )
    try:
        _rules()
    except ImportError as error:
        raise UsageError(
            "sentences need the library choppa-srx: pip install 'tmnmt[sentences]'"
        ) from error


def sentences(text: str, code: str) -> list[str]:
    """The sentences of a text, each with the white space behind it: together they are the text.

    text: the text.
    code: the code of its language, which `check_language` allows."""
    from choppa import SrxTextIterator

    parts, offset = list[str](), 0
    lines = text.replace("\r\n", " \n").replace("\r", "\n")  # the rules know no other line ends
    while offset < len(text):
        window = lines[offset : _window_end(text, offset)]
        pieces = list(SrxTextIterator(_rules(), f"{_language(code)}_two", window))
        if offset + len(window) < len(text) and len(pieces) > 1:
            pieces.pop()  # goes on behind the window
        for piece in pieces:
            parts.append(text[offset : offset + len(piece)])
            offset += len(piece)
    return parts


def _window_end(text: str, offset: int) -> int:
    end = min(len(text), offset + _WINDOW)
    stop = next(islice(_STOPS.finditer(text, offset, end), _MOST_STOPS, None), None)
    return stop.start() if stop else end


def _language(code: str) -> str:
    return normal_code(code).partition("-")[0]


@cache
def _rules() -> SrxDocument:
    from choppa import DEFAULT_SRX_RULESET, SrxDocument

    return SrxDocument(ruleset=DEFAULT_SRX_RULESET)
