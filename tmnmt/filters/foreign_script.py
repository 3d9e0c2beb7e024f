"""Words with letters and signs that a vocabulary lacks, spells byte by byte, or reads as others:
the model has hardly met them, and makes nonsense of them. They come through as placeholders do.

    The word закон is Russian.    the source
    The word 901 is Russian.      what the model reads

A sign takes along what it is written together with, as in m², €5 and R&D; one that is glued to one
end of a word stands beside that. A dash that the vocabulary reads as another one comes back as it
was. A language's own rare letters, as the œ of French, are no sign of a foreign word; where
nobody has listed these, words in Latin letters are left to the model."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from tmnmt.codes.form import DASHES, ENTITY
from tmnmt.codes.placeholders import Placeholder
from tmnmt.compatibility import is_plainer
from tmnmt.filters.contract import Reader
from tmnmt.filters.marking import Marker
from tmnmt.languages import data_for
from tmnmt.vocab import UNK, Vocabulary

LETTERS = 20  # single letters of a script that a vocabulary has which knows the script
TYPOGRAPHY = (
    "\"'‘’‚‛“”„‟‹›«»…*-‐‑‒−·.,;:!?()[]/%‰`"  # signs that go by the language, or come through anyway
)
LONGEST_UNIT = 3  # letters that a superscript makes a unit, as cm³
_DASH = re.compile(f"[{DASHES}]")
_ENTITY = re.compile(ENTITY)
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_JOINING = ("Mn", "Mc", "Me", "Cf", "Sk")  # categories of what stands with the sign before it
_JOINERS = " .,;:-'’–—"  # between words of one run
_RUN = re.compile(r"x[xj]*(?: {1,2}x[xj]*)*")
_SIGNS = re.compile("s[sj]*")
_GLUED = re.compile(r"(?:[aj]*(?:[xs]j*)+)+[aj]*")  # a: letters and digits; s: signs
_WORD = re.compile(r"(?:[^\W\d_][\u0300-\u036f]*)+")


class ForeignScript(Marker):
    """Finds words in scripts that the vocabulary lacks, and signs that it lacks, to be copied."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        if reader.vocab is not None:
            self.finders = (Foreign(reader.vocab, reader.lang),)


class Foreign:
    """Finds such words and signs; several words one after another are one placeholder."""

    def __init__(self, vocab: Vocabulary, lang: str) -> None:
        """vocab: the vocabulary.
        lang: the code of the texts' language."""
        self._vocab, self._reads = vocab, Reader(vocab).reads
        letters = data_for(lang).rare_letters
        self._letters = None if letters is None else frozenset(letters)
        self._kinds = dict[str, str]()  # of characters
        self._latin = dict[str, bool]()  # whether they make a word foreign

    def __call__(self, text: str) -> Iterator[Placeholder]:
        kinds = list(map(self._kind, text))
        if not text.isascii():
            for word in _WORD.finditer(text):
                if not word[0].isascii() and self._is_latin_and_foreign(word[0]):
                    kinds[word.start() : word.end()] = "x" * len(word[0])
        for entity in _ENTITY.finditer(text) if "&" in text else ():
            kinds[entity.start() : entity.end()] = "." * len(entity[0])
        for dash in _DASH.finditer(text):
            if self._reads(dash[0]) is not None:
                yield Placeholder(*dash.span(), True)
        if "x" not in kinds and "s" not in kinds:
            return
        signature = "".join(kinds)
        places = [*_RUN.finditer(signature)]
        for glued in _GLUED.finditer(signature):
            is_unit = self._is_unit(text, signature, *glued.span())
            places += [glued] if is_unit else _SIGNS.finditer(signature, *glued.span())
        spans = {place.span() for place in places}
        yield from (
            Placeholder(start, end, True)
            for start, end in sorted(spans)
            if not any((a, b) != (start, end) and a <= start and end <= b for a, b in spans)
        )

    @staticmethod
    def _is_unit(text: str, kinds: str, start: int, end: int) -> bool:
        """Whether signs are one with what is glued to them: not those at one end of a word of
        letters alone, as in vessel†; but m² is one."""
        signs = len(kinds[start:end]) - len(kinds[start:end].lstrip("sj"))
        core = kinds[start:end].strip("sj")
        word = text[start + signs : start + signs + len(core)]
        if not core or "s" in core or "x" in core or any(map(str.isdigit, word)):
            return True
        return len(word) <= LONGEST_UNIT and text[end - 1].isdigit()

    def _is_latin_and_foreign(self, word: str) -> bool:
        for letter in unicodedata.normalize("NFC", word):
            if letter not in self._latin:
                self._latin[letter] = self._is_rare(letter)
            if self._latin[letter]:
                return True
        return False

    def _is_rare(self, letter: str) -> bool:
        """Whether it is a Latin letter that this language has not and the vocabulary lacks."""
        if (
            is_plainer(letter)
            or self._letters is None
            or letter.isascii()
            or _script(letter) != "LATIN"
        ):
            return False
        cases = {case for case in (letter, letter.lower(), letter.upper()) if not case.isascii()}
        return self._letters.isdisjoint(cases) and all(map(self._is_lacking, cases))

    @cached_property
    def _scripts(self) -> set[str]:
        """Those that the vocabulary knows; asked for with the first text that is not in ASCII."""
        pieces = (self._vocab.piece(number).strip("▁") for number in range(len(self._vocab)))
        letters = Counter(_script(piece) for piece in pieces if len(piece) == 1 and piece.isalpha())
        return {script for script, count in letters.items() if count >= LETTERS}

    def _kind(self, sign: str) -> str:
        """x: a foreign letter; s: a sign that the vocabulary has not; a: a letter or digit; j:
        joins two; a blank: may stand between two; else a dot."""
        if sign not in self._kinds:
            if is_plainer(sign) and sign.isalpha():
                self._kinds[sign] = "a"
            elif unicodedata.category(sign) in _JOINING and not sign.isascii():
                self._kinds[sign] = "j"
            elif sign in _JOINERS:
                self._kinds[sign] = " "
            elif self._is_foreign(sign):
                self._kinds[sign] = "x"
            elif self._is_foreign_sign(sign):
                self._kinds[sign] = "s"
            else:
                self._kinds[sign] = "a" if sign.isalnum() else "."
        return self._kinds[sign]

    def _is_foreign(self, sign: str) -> bool:
        return sign.isalpha() and _script(sign) not in self._scripts and self._is_lacking(sign)

    def _is_foreign_sign(self, sign: str) -> bool:
        """Whether the vocabulary has not this sign, or reads it as another one."""
        if (
            sign.isalpha()
            or sign.isspace()
            or sign in TYPOGRAPHY
            or (sign.isascii() and sign.isdigit())
        ):
            return False
        if not self._has_digits or unicodedata.category(sign)[0] not in "SPN":
            return False
        return self._is_lacking(sign) or "".join(self._vocab.source_pieces(sign)).strip("▁") != sign

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
