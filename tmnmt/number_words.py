"""Numbers in words, as far as to see that a translation has written a number out: "dix" for 10;
and the months of dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tmnmt.languages import data_for, languages

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
    twenties: Sequence[int] = ()

    def stems(self, number: int) -> list[str]:
        """The stems that a number is written with, all of which must be there.

        number: the number, from 1 to 999."""
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


@dataclass(frozen=True)
class Cardinals:
    """The cardinals of a language from 2 to 99, without accents. `units`: from 1 to 19. `tens`:
    from 20 on, a "-" where there is none. `composites`: how tens and units stand together.
    `scale`: words that make another number of one beside them. `conjunction`: what may join two.
    `ambiguous`: other words, too, with blanks between them.
    `twenties`: as with `NumberWords`, the tens that 10 to 19 are added to."""

    units: str
    tens: str
    composites: Sequence[str]
    scale: str
    conjunction: str
    ambiguous: str = ""
    twenties: Sequence[int] = ()

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
        for word in self.ambiguous.split():
            del words[word]
        return words


SHORTEST = 3  # letters of a month's name: "Jan."
_WORD = re.compile(r"[^\W\d_]+")
_SHARP = str.maketrans({"ß": "ss"})


def is_written_out(number: str, text: str, language: str) -> bool:
    """Whether a text may have a whole number in words. False for numbers that are not whole or
    greater than 999, and for languages without words here.

    number: the number in figures.
    text: the text.
    language: the code of its language."""
    stems = data_for(language).number_stems
    if not stems or not number.isdecimal() or not 0 < int(number) <= LARGEST:
        return False
    folded = _folded(text)
    for word, value in written_numbers(text, language).items():
        if value != int(number) < 100 and value > 20 and value % 10:  # 3 is not in forty-three
            folded = folded.replace(word, "")
    required = NumberWords(**stems).stems(int(number))
    return all(any(form in folded for form in stem.split("|")) for stem in required)


def written_numbers(text: str, language: str) -> dict[str, int]:
    """The cardinals in words from 2 to 99 that surely stand in a text, as there but without
    accents, and their values. There are none for a language whose cardinals are not known.

    text: the text.
    language: the code of its language."""
    if not is_known(language):
        return {}
    words, pattern = _cardinals(language)
    return {word: words[word] for word in pattern.findall(_folded(text)) if word}


def is_known(language: str) -> bool:
    """Whether the cardinals of a language are known.

    language: the code of the language."""
    return bool(data_for(language).cardinals)


@cache
def _cardinals(language: str) -> tuple[Mapping[str, int], re.Pattern[str]]:
    """The cardinals of a language, and what finds them: as whole words, with no scale beside."""
    cardinals = Cardinals(**data_for(language).cardinals)
    words = cardinals.by_word()
    number = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    scale, conjunction = cardinals.scale, re.escape(cardinals.conjunction)
    scaled_number = rf"\b{scale}[\s-]+(?:{conjunction}\s+)?(?:{number})\b"
    return words, re.compile(
        rf"{scaled_number}|(?<![\w-])({number})(?![\w-]|\s+(?:{scale}\b|{conjunction}\s+un))"
    )


def named_months(text: str) -> frozenset[int]:
    """The months, 1 to 12, whose names a text has in one of the languages, or the beginning of
    these.

    text: the text."""
    words = {word for word in _WORD.findall(_folded(text)) if len(word) >= SHORTEST}
    return frozenset(
        number
        for number, names in enumerate(_months(), 1)
        if any(name.startswith(word) for word in words for name in names)
    )


@cache
def _months() -> list[tuple[str, ...]]:
    """The names of every month, in the languages that have them."""
    return [
        *zip(
            *(language.months.split() for language in languages().values() if language.months),
            strict=True,
        )
    ]


def _folded(text: str) -> str:
    parts = unicodedata.normalize("NFD", text.casefold().translate(_SHARP))
    return "".join(sign for sign in parts if not unicodedata.combining(sign))
