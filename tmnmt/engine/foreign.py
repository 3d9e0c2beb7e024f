"""Words with letters that a vocabulary lacks, or spells byte by byte: the model has hardly met
them, and makes nonsense of them. They come through as placeholders do, and so do signs such as 😀.

    The word закон is Russian.    the source
    The word 901 is Russian.      what the model reads

A language's own rare letters, as the œ of French, are no sign of a foreign word."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from tmnmt.codes.placeholders import Placeholder
from tmnmt.vocab import UNK, Vocabulary

LETTERS = 20  # single letters of a script that a vocabulary has which knows the script
# Latin letters that a language has, if seldom, in words that are no names. Of a language that is
# not here, words in Latin letters are left to the model.
RARE = dict.fromkeys(("ar", "bg", "el", "ga", "he", "hi", "hu", "is", "ja", "ko"), "") | {
    "af": "áéèêëíïóôöúû",
    "ca": "ïüŀ",
    "cs": "óďťň",
    "cy": "áâäéêëîïôöûŵŷ",
    "da": "é",
    "de": "éèêàç",
    "en": "éèêçïæœ",
    "es": "ü",
    "et": "šž",
    "eu": "çñü",
    "fi": "åšž",
    "fr": "ëïœæ",
    "gl": "ïü",
    "hr": "đ",
    "it": "îìíóúé",
    "lt": "",
    "lv": "ōŗ",
    "mt": "àèìîòù",
    "nb": "éèêóòô",
    "nl": "éèêëïóöüá",
    "nn": "éèêóòô",
    "no": "éèêóòô",
    "pl": "é",
    "pt": "üàèôêâ",
    "ro": "şţâî",
    "ru": "",
    "sk": "äôŕĺľďóň",
    "sl": "ćđ",
    "sv": "éà",
    "tr": "âîû",
    "uk": "",
    "zh": "",
}
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_JOINING = ("Mn", "Mc", "Me", "Cf", "Sk")  # categories of what stands with the sign before it
_BETWEEN = " .,;:-'’–—"  # between words of one run
_RUN = re.compile(r"x[xj]*(?: {1,2}x[xj]*)*")
_WORD = re.compile(r"(?:[^\W\d_][\u0300-\u036f]*)+")


class Foreign:
    """Finds them; several words one after another are one placeholder. `lang`: of the texts."""

    def __init__(self, vocab: Vocabulary, lang: str) -> None:
        self._vocab = vocab
        own = RARE.get(re.split("[-_]", lang.lower())[0])
        self._own = None if own is None else frozenset(own)
        self._kinds = dict[str, str]()  # of characters
        self._latin = dict[str, bool]()  # whether they make a word foreign

    def __call__(self, text: str) -> Iterator[Placeholder]:
        if not text.isascii():
            kinds = list(map(self._kind, text))
            for word in _WORD.finditer(text):
                if not word[0].isascii() and self._is_latin_and_foreign(word[0]):
                    kinds[word.start() : word.end()] = "x" * len(word[0])
            for run in _RUN.finditer("".join(kinds)):
                yield Placeholder(*run.span(), True)

    def _is_latin_and_foreign(self, word: str) -> bool:
        for letter in unicodedata.normalize("NFC", word):
            if letter not in self._latin:
                self._latin[letter] = self._is_rare(letter)
            if self._latin[letter]:
                return True
        return False

    def _is_rare(self, letter: str) -> bool:
        """Whether it is a Latin letter that this language has not and the vocabulary lacks."""
        if self._own is None or letter.isascii() or _script(letter) != "LATIN":
            return False
        cases = {one for one in (letter, letter.lower(), letter.upper()) if not one.isascii()}
        return self._own.isdisjoint(cases) and all(map(self._is_lacking, cases))

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
        return self._is_lacking(sign)

    def _is_lacking(self, sign: str) -> bool:
        """Whether the vocabulary has no piece for it, but for bytes where it has those. One that
        lacks digits, too, has nothing that could stand for it."""
        if any(map(_BYTE.fullmatch, self._vocab.source_pieces(sign))):
            return True
        return self._has_digits and UNK in self._vocab.encode_source(sign)

    @cached_property
    def _has_digits(self) -> bool:
        return UNK not in self._vocab.encode_source("1234567890")


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0]
