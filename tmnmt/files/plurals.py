"""Plural forms of languages, as gettext's header writes them: nplurals=2; plural=(n != 1); and by
the categories of CLDR: one, few, other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from gettext import c2py

from tmnmt.formats.clean import excerpt

MAX_FORMS = 10  # Arabic has six
_NUMBERS_TRIED = (
    201  # numbers, from 0: no language has a form that begins later, but for round ones
)
_NUMBERS_LISTED = 5  # numbers of a form that are told
_PLURAL_HEADER = re.compile(r"\s*nplurals\s*=\s*(\d{1,9})\s*;\s*plural\s*=\s*([^;\n]{1,1000});?\s*")

# From the manual of gettext (*Additional functions for plural forms*) and its table plural-table.c.
_SINGLE_FORM = "nplurals=1; plural=0;"
_TWO = "nplurals=2; plural=(n != 1);"
_FRENCH = "nplurals=2; plural=(n > 1);"
_SLAVIC = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20)"
    " ? 1 : 2);"
)
_CZECH = "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;"
_LANGUAGES = {
    _SINGLE_FORM: "id ja ko lo ms th vi zh",
    _TWO: "af bg bn ca da de el en eo es et eu fi fo fy gl gu he hi hu it kn ml mr nb ne nl nn pa"
    " pt sq sv sw ta te tr ur",
    _FRENCH: "fr oc pt-br",
    _SLAVIC: "be bs hr ru sr uk",
    _CZECH: "cs sk",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3"
    " : n%100>=11 ? 4 : 5);": "ar",
    "nplurals=3; plural=n==1 ? 0 : n==2 ? 1 : 2;": "ga",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20)"
    " ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": "pl",
    "nplurals=3; plural=n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2;": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
}
_BY_LANGUAGE = {code: formula for formula, codes in _LANGUAGES.items() for code in codes.split()}

CATEGORIES = ("zero", "one", "two", "few", "many", "other")  # of CLDR, in its order
# The categories that whole numbers have (CLDR 46, *Language Plural Rules*), with `other`, which
# every language has, and which formats want; each expression says which of them a number has.
_CATEGORIES = (
    ("other", _SINGLE_FORM, "id ja jv km ko lo ms my th yue zh"),
    (
        "one other",
        _TWO,
        "af az bg ca da de el en eo es et eu fi fo fy gl hu ia it ka kk ky ml mn mr nb ne nl nn no"
        " pt-pt sq sv sw ta te tk tr ur uz",
    ),
    ("one other", _FRENCH, "am bn fa fr gu hi hy kn pa pt si zu"),
    ("one other", "nplurals=2; plural=(n%10!=1 || n%100==11);", "is mk"),
    ("one few other", _SLAVIC, "bs hr sr"),
    ("one few many other", _SLAVIC.replace("nplurals=3", "nplurals=4"), "be ru uk"),
    ("one few other", _CZECH, "cs sk"),
    (
        "one few many other",
        "nplurals=4; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
        "pl",
    ),
    (
        "one few other",
        "nplurals=3; plural=(n%10==1 && (n%100<11 || n%100>19) ? 0 : n%10>=2 && (n%100<11 ||"
        " n%100>19) ? 1 : 2);",
        "lt",
    ),
    (
        "zero one other",
        "nplurals=3; plural=(n%10==0 || (n%100>=11 && n%100<=19) ? 0 : n%10==1 ? 1 : 2);",
        "lv",
    ),
    (
        "one few other",
        "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>=1 && n%100<=19) ? 1 : 2);",
        "ro",
    ),
    (
        "one two few other",
        "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);",
        "sl",
    ),
    ("one two other", "nplurals=3; plural=(n==1 ? 0 : n==2 ? 1 : 2);", "he se"),
    (
        "one two few many other",
        "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n>=3 && n<=6 ? 2 : n>=7 && n<=10 ? 3 : 4);",
        "ga",
    ),
    (
        "one two few other",
        "nplurals=4; plural=(n==1 || n==11 ? 0 : n==2 || n==12 ? 1 : n>=3 && n<=19 ? 2 : 3);",
        "gd",
    ),
    (
        "one two few many other",
        "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n==0 || (n%100>=3 && n%100<=10) ? 2 :"
        " n%100>=11 && n%100<=19 ? 3 : 4);",
        "mt",
    ),
    (
        "zero one two few many other",
        "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n==3 ? 3 : n==6 ? 4 : 5);",
        "cy",
    ),
    (
        "zero one two few many other",
        "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 :"
        " n%100>=11 ? 4 : 5);",
        "ar",
    ),
)


@dataclass(frozen=True, slots=True)
class Plurals:
    """`count` forms; `singular`: the one of the number 1, -1 where it is that of all numbers."""

    count: int
    singular: int
    formula: str

    def describe(self, form: int) -> str:
        """Which form a form is, and of which numbers, in words: "plural form 2 of 3, for 2, 3, 4,
        22, 23, …".

        form: the number of the form, from 0."""
        numbers = _numbers(self.formula)[form]
        return f"plural form {form + 1} of {self.count}{_examples(numbers)}"


def _examples(numbers: list[int]) -> str:
    """The first numbers of a form, in words: ", for 2, 3, 4, 22, 23, …"; "" where it has none."""
    examples = [
        *map(str, numbers[:_NUMBERS_LISTED]),
        *(["…"] if len(numbers) > _NUMBERS_LISTED else []),
    ]
    return f", for {', '.join(examples)}" if examples else ""


@cache
def _numbers(formula: str) -> dict[int, list[int]]:
    """The first numbers of each form, in order. A number that the header's expression fails at has
    none."""
    numbers = defaultdict[int, list[int]](list)
    if match := _PLURAL_HEADER.fullmatch(formula):
        form_of = c2py(match[2])
        for number in range(_NUMBERS_TRIED):
            with suppress(ZeroDivisionError):
                numbers[form_of(number)].append(number)
    return numbers


def plurals_of(formula: str) -> Plurals:
    """What the field Plural-Forms of a header says.

    formula: the content of the field.

    Raises ValueError where it cannot be used."""
    match = _PLURAL_HEADER.fullmatch(formula)
    if match is None:
        raise ValueError(f"{excerpt(formula)!r} cannot be read")
    count = int(match[1])
    if not 1 <= count <= MAX_FORMS:
        raise ValueError(f"nplurals={count}, but languages have 1 to {MAX_FORMS}")
    try:
        singular = c2py(match[2])(1)
    except ZeroDivisionError as error:
        raise ValueError(f"{excerpt(match[2])!r} divides by zero") from error
    if not 0 <= singular < count:
        raise ValueError(f"the number 1 has form {singular}, but there are {count}")
    return Plurals(count, singular if count > 1 else -1, formula)


def plurals_of_language(code: str) -> Plurals | None:
    """The plural forms of a language; None where they are not known here.

    code: the code of the language. A region such as pt-br may have forms of its own; any other has
    those of its language."""
    formula = _BY_LANGUAGE.get(code) or _BY_LANGUAGE.get(code.partition("-")[0])
    return plurals_of(formula) if formula else None


@dataclass(frozen=True, slots=True)
class Categories:
    """The categories of CLDR that whole numbers have in a language, and `other`, in the order of
    CLDR. `formula`: the expression of gettext that says which of them a number has, from 0."""

    names: tuple[str, ...]
    formula: str

    def describe(self, name: str) -> str:
        """A category, and of which numbers it is: "plural form few, for 2, 3, 4, 22, 23, …".

        name: the name of the category."""
        numbers = _numbers(self.formula)[self.names.index(name)] if name in self.names else []
        return f"plural form {name}{_examples(numbers)}"


_CATEGORIES_BY_LANGUAGE = {
    code: Categories(tuple(names.split()), formula)
    for names, formula, codes in _CATEGORIES
    for code in codes.split()
}


def categories_of_language(code: str) -> Categories | None:
    """The categories of a language; None where they are not known here. The `many` of French,
    Spanish and other Romance languages is not among them: only round millions have it, and what
    lacks it reads `other`.

    code: the code of the language. A region such as pt-pt may have categories of its own; any other
    has those of its language."""
    by_language = _CATEGORIES_BY_LANGUAGE
    return by_language.get(code) or by_language.get(code.partition("-")[0])


def is_plural(names: Iterable[str]) -> bool:
    """Whether the keys of a table are the categories of one message: `other` and no other words.

    names: the keys."""
    keys = {*names}
    return "other" in keys and keys <= {*CATEGORIES}


def needed_categories(names: Iterable[str], language: str) -> list[str]:
    """The categories that a message needs in a language, in the order of CLDR: those that it has
    already, and those of the language, as far as they are known here.

    names: the categories that the message has.
    language: the code of the language."""
    categories = categories_of_language(language)
    needed = {*names, *(categories.names if categories else ())}
    return [name for name in CATEGORIES if name in needed]


def description_of(name: str, language: str) -> str:
    """A category in words for translators, with numbers of it where the language is known.

    name: the name of the category.
    language: the code of the language."""
    categories = categories_of_language(language)
    return categories.describe(name) if categories else f"plural form {name}"
