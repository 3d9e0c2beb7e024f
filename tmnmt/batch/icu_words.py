"""Words of scripts that put no blanks between them, counted by the dictionaries of ICU (*Unicode
Standard Annex 29*)."""

from __future__ import annotations

import re
from collections.abc import Callable

from tmnmt.errors import UsageError
from tmnmt.text import WITHOUT_BLANKS

_RUN = re.compile(rf"[{WITHOUT_BLANKS}]+")
MISSING = (
    "words are counted by the rules of ICU with the library icu4py, which is not installed: pip "
    "install 'tmnmt[icu]'"
)


def icu_counter() -> Callable[[str], int]:
    """What counts the words of a text: by the rules of ICU where they are Thai, Lao, Khmer,
    Burmese, Chinese or Japanese, and elsewhere what stands between blanks. What has no letter or
    digit is no word.

    Raises UsageError where the library is not installed."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        raise UsageError(MISSING) from error

    def count(text: str) -> int:
        pieces = _RUN.sub(" ", text).split()
        for run in _RUN.findall(text):
            pieces += WordBreaker(run, "en")  # its dictionaries depend on the script alone
        return sum(any(map(str.isalnum, piece)) for piece in pieces)

    return count
