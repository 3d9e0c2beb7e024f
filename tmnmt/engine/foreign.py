"""Words in a script that a vocabulary spells byte by byte: the model has hardly met them, and makes
nonsense of them. They come through as placeholders do, and so do signs such as 😀.

    The word закон is Russian.    the source
    The word 901 is Russian.      what the model reads"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from tmnmt.codes.placeholders import Placeholder
from tmnmt.vocab import Vocabulary

LETTERS = 20  # single letters of a script that a vocabulary has which knows the script
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_JOINING = ("Mn", "Mc", "Me", "Cf", "Sk")  # categories of what stands with the sign before it
_BETWEEN = " .,;:-'’–—"  # between words of one run
_RUN = re.compile(r"x[xj]*(?: {1,2}x[xj]*)*")


class Foreign:
    """Finds them; several words one after another are one placeholder."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._vocab = vocab
        self._kinds = dict[str, str]()  # of characters

    def __call__(self, text: str) -> Iterator[Placeholder]:
        if not text.isascii():
            kinds = "".join(map(self._kind, text))
            for match in _RUN.finditer(kinds):
                yield Placeholder(*match.span(), True)

    @cached_property
    def _scripts(self) -> set[str]:
        """Those that the vocabulary knows; asked for with the first text that is not in ASCII."""
        pieces = (self._vocab.piece(number).strip("▁") for number in range(len(self._vocab)))
        letters = Counter(_script(piece) for piece in pieces if len(piece) == 1 and piece.isalpha())
        return {script for script, count in letters.items() if count >= LETTERS}

    def _kind(self, sign: str) -> str:
        """x: foreign; j: joins two; a blank: may stand between two; else a dot."""
        if sign not in self._kinds:
            if unicodedata.category(sign) in _JOINING:
                self._kinds[sign] = "j"
            elif sign in _BETWEEN:
                self._kinds[sign] = " "
            else:
                self._kinds[sign] = "x" if self._is_foreign(sign) else "."
        return self._kinds[sign]

    def _is_foreign(self, sign: str) -> bool:
        is_letter = sign.isalpha() and _script(sign) not in self._scripts
        if not (is_letter or unicodedata.category(sign) == "So"):
            return False
        return any(map(_BYTE.fullmatch, self._vocab.source_pieces(sign)))


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0]
