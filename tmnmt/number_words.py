"""Numbers in words, as far as to see that a translation has written a number out: "dix" for 10;
and the months of dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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


@dataclass(frozen=True)
class Cardinals:
    """The cardinals of a language from 2 to 99, without accents. `units`: from 1 to 19. `tens`:
    from 20 on, a "-" where there is none. `composites`: how tens and units stand together.
    `scale`: words that make another number of one beside them. `ambiguous`: other words, too.
    `twenties`: as with `NumberWords`, the tens that 10 to 19 are added to."""

    units: str
    tens: str
    composites: Sequence[str]
    scale: str
    ambiguous: frozenset[str] = frozenset()
    twenties: frozenset[int] = frozenset()

    def by_word(self) -> dict[str, int]:
        """Every way to write a number, and the number."""
        units = dict(enumerate(self.units.split(), 1))
        words = {word: number for number, word in units.items() if number > 1}
        for ten, stem in enumerate(self.tens.split(), 2):
            if stem == "-":
                continue
            words[stem] = 10 * ten
            for number in range(1, 20 if ten in self.twenties else 10):
                for composite in self.composites:
                    words[composite.format(ten=stem, unit=units[number])] = 10 * ten + number
        return {word: number for word, number in words.items() if word not in self.ambiguous}


CARDINALS: Mapping[str, Cardinals] = {
    "en": Cardinals(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        ("{ten}-{unit}", "{ten} {unit}"),
        r"(?:hundred|thousand|million|billion|trillion|dozen|point)",
    ),
    "fr": Cardinals(
        "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
        "dix-sept dix-huit dix-neuf",
        "vingt trente quarante cinquante soixante - quatre-vingt -",
        ("{ten}-{unit}", "{ten} {unit}", "{ten} et {unit}", "{ten}-et-{unit}"),
        r"(?:cents?|mille|millions?|milliards?|virgule)",
        frozenset({"neuf"}),  # new
        frozenset({6, 8}),
    ),
    "de": Cardinals(
        "ein zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn "
        "sechzehn siebzehn achtzehn neunzehn",
        "zwanzig dreissig vierzig funfzig sechzig siebzig achtzig neunzig",
        ("{unit}und{ten}",),
        r"(?:hundert|tausend|million(?:en)?|milliarden?|komma)",
        frozenset({"acht"}),  # attention
    ),
    "es": Cardinals(
        "uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
        "dieciseis diecisiete dieciocho diecinueve",
        "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
        ("{ten} y {unit}", "{ten:.5}i{unit}"),  # veintidos
        r"(?:cien(?:to)?|\w+cient[ao]s|mil|mill[oó]n(?:es)?|coma)",
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
    words = WORDS.get(_code(language))
    if words is None or not number.isdecimal() or not 0 < int(number) <= LARGEST:
        return False
    folded = _folded(text)
    for word, value in written_numbers(text, language).items():
        if value != int(number) < 100 and value > 20 and value % 10:  # 3 is not in forty-three
            folded = folded.replace(word, "")
    return all(any(form in folded for form in stem.split("|")) for stem in words.stems(int(number)))


def written_numbers(text: str, language: str) -> dict[str, int]:
    """The cardinals in words from 2 to 99 that surely stand in `text`, as there but without
    accents, and what they are. None for a language that `CARDINALS` does not have."""
    code = _code(language)
    if code not in CARDINALS:
        return {}
    words, pattern = _cardinals(code)
    return {word: words[word] for word in pattern.findall(_folded(text)) if word}


def is_known(language: str) -> bool:
    """Whether the cardinals of a language, by its code, are known."""
    return _code(language) in CARDINALS


@cache
def _cardinals(code: str) -> tuple[Mapping[str, int], re.Pattern[str]]:
    """The cardinals of a language, and what finds them: as whole words, with no scale beside."""
    words = CARDINALS[code].by_word()
    number = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    scale, between = CARDINALS[code].scale, "(?:and|et|und|y)"
    beside = rf"\b{scale}[\s-]+(?:{between}\s+)?(?:{number})\b"
    return words, re.compile(
        rf"{beside}|(?<![\w-])({number})(?![\w-]|\s+(?:{scale}\b|{between}\s+un))"
    )


def _code(language: str) -> str:
    return language.partition("-")[0].lower()


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
