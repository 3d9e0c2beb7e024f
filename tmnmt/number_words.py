"""Numbers in words, as far as to see that a translation has written a number out: "dix" for 10;
and the months of dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LARGEST = 999


@dataclass(frozen=True)
class NumberWords:
    """The stems of a language with blanks between them, without accents, other forms behind a bar.
    `small`: of the numbers from 1 to 19, of one the ordinal, since the cardinal is an article.
    `one`: in composites. `tens`: from 20 on. `twenties`: those tens to which 10 to 19 are added, as
    60 is in French for 72."""

    small: str
    one: str
    tens: str
    hundred: str
    twenties: frozenset[int] = frozenset()

    def stems(self, number: int) -> list[str]:
        """The stems that a number from 1 to 999 is written with, all of which must be there."""
        small, hundreds, rest = self.small.split(), *divmod(number, 100)
        stems = [self.hundred] if hundreds else []
        stems += [small[hundreds - 1]] if hundreds > 1 else []
        if 0 < rest <= len(small):
            return [*stems, small[rest - 1]]
        tens, units = divmod(rest, 10)
        stems += [self.tens.split()[tens - 2]] if tens else []
        units += 10 if tens in self.twenties else 0
        if not units:
            return stems
        return [*stems, self.one if units == 1 else small[units - 1]]


WORDS: Mapping[str, NumberWords] = {
    "en": NumberWords(
        "first two|second three|third four five|fifth six seven eight nin ten eleven twel thirteen "
        "fourteen fifteen sixteen seventeen eighteen nineteen",
        "one|first",
        "twent thirt fort fift sixt sevent eight ninet",
        "hundred",
    ),
    "fr": NumberWords(
        "premi deux|second tro|tiers quatr cinq six sept huit neuf|neuv dix onz douz treiz quatorz "
        "quinz seiz dix-sept dix-huit dix-neu",
        "un",
        "vingt trent quarant cinquant soixant soixant vingt vingt",
        "cent",
        frozenset({7, 9}),
    ),
    "de": NumberWords(
        "erst zwei drei|dritt vier funf sechs sieb acht neun zehn elf zwolf dreizehn vierzehn "
        "funfzehn sechzehn siebzehn achtzehn neunzehn",
        "ein",
        "zwanzig dreissig vierzig funfzig sechzig siebzig achtzig neunzig",
        "hundert",
    ),
    "es": NumberWords(
        "primer dos|segund tres|tercer|tercio cuatr|cuart cinc|quint seis|sext siete|septim "
        "ocho|octav nueve|noven diez|decim once doce trece catorce quince dieciseis diecisiete "
        "dieciocho diecinueve",
        "un|primer",
        "veint treint cuarent cincuent sesent setent ochent novent",
        "cien",
    ),
}
# The months of en, fr, de, es and pt, without accents.
MONTHS: Sequence[frozenset[str]] = [
    frozenset(names.split())
    for names in (
        "january janvier januar enero janeiro",
        "february fevrier februar febrero fevereiro",
        "march mars marz marzo marco",
        "april avril abril",
        "may mai mayo maio",
        "june juin juni junio junho",
        "july juillet juli julio julho",
        "august aout agosto",
        "september septembre septiembre setembro",
        "october octobre oktober octubre outubro",
        "november novembre noviembre novembro",
        "december decembre dezember diciembre dezembro",
    )
]
SHORTEST = 3  # letters of a month's name: "Jan."
_WORD = re.compile(r"[^\W\d_]+")
_SHARP = str.maketrans({"ß": "ss"})


def is_written_out(number: str, text: str, language: str) -> bool:
    """Whether `text`, in a language by its code, may have a whole number in words. False for
    numbers that are not whole or greater than 999, and for languages without words here."""
    words = WORDS.get(language.partition("-")[0].lower())
    if words is None or not number.isdecimal() or not 0 < int(number) <= LARGEST:
        return False
    folded = _folded(text)
    return all(any(form in folded for form in stem.split("|")) for stem in words.stems(int(number)))


def named_months(text: str) -> frozenset[int]:
    """The months, 1 to 12, whose names `text` has in one of the languages, or the beginning of
    these."""
    words = {word for word in _WORD.findall(_folded(text)) if len(word) >= SHORTEST}
    return frozenset(
        number
        for number, names in enumerate(MONTHS, 1)
        if any(name.startswith(word) for word in words for name in names)
    )


def _folded(text: str) -> str:
    parts = unicodedata.normalize("NFD", text.casefold().translate(_SHARP))
    return "".join(sign for sign in parts if not unicodedata.combining(sign))
