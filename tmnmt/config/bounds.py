"""What a value may be, and what it is for: declared in its type, held where it is given."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import Annotated, Any, NamedTuple

from tmnmt.segments import Segment

MOST_WORDS_EACH = 1000  # target words that a shortlist has for a source word


class Bound(NamedTuple):
    """What a value may be. No bound holds for nan or an infinite number.

    allowed: what is allowed, in words that complete "it must be ...".
    holds: says of a value whether it is allowed.
    low: the smallest number of a range, for those who show it.
    high: the greatest number of a range, for those who show it."""

    allowed: str
    holds: Callable[[Any], bool]
    low: float | None = None
    high: float | None = None


class Choices(NamedTuple):
    """All values that an option may have.

    table: the names of a table, which plug-ins add to."""

    table: Collection[str]


class Help(NamedTuple):
    """What an option is for, and how a command line shows it.

    text: what it is for, in a sentence, in which {choices} stands for the names of all values.
    short: its one letter; "" where it has none.
    metavar: a word for its value; "" where the kind of the value says enough.
    everyday: whether it is shown before all groups.
    title: the group that it is shown in, where it is in none.
    is_negatable: whether its name with --no- before it stands for 0."""

    text: str
    short: str = ""
    metavar: str = ""
    everyday: bool = False
    title: str = ""
    is_negatable: bool = False


class Location(NamedTuple):
    """Marks an option whose values are paths, or addresses.

    is_named: whether a name and = may stand before each of them."""

    is_named: bool = False


class Fixed(NamedTuple):
    """Marks an option of a server that stays as it is while the server runs."""


class Flat(NamedTuple):
    """Marks a dataclass in a dataclass: its keys stand in the table of the outer one."""


class Kinds(NamedTuple):
    """Marks a table of which there are kinds. The table's key `kind` says which it is; where it
    says nothing, it is the first.

    dataclasses: gives the dataclass of every kind."""

    dataclasses: Callable[[], Mapping[str, type]]


def whole(low: int, high: int) -> Bound:
    """The bound of whole numbers in a range, both ends included.

    low: the smallest number.
    high: the greatest number."""
    return Bound(
        f"a whole number, {low} to {high:,}",
        lambda n: type(n) is int and low <= n <= high,
        low,
        high,
    )


def at_least(low: int) -> Bound:
    """The bound of whole numbers without a greatest one.

    low: the smallest number."""
    return Bound(f"a whole number of at least {low}", lambda n: type(n) is int and n >= low, low)


def number(low: float, high: float = math.inf) -> Bound:
    """The bound of numbers in a range, both ends included.

    low: the smallest number.
    high: the greatest number; without it, every finite number from `low` on is allowed."""
    allowed = f"at least {low:g}, and finite" if high == math.inf else f"from {low:g} to {high:g}"
    return Bound(
        allowed,
        lambda x: low <= x <= high and x < math.inf,
        low,
        high if high < math.inf else None,
    )


def is_date(text: str) -> bool:
    """Whether a text is a day such as 2026-01-31.

    text: the text."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_pattern(text: str) -> bool:
    """Whether a text is a regular expression that does not match the empty text.

    text: the text."""
    try:
        return not re.compile(text).match("")
    except (re.error, RecursionError, OverflowError):
        return False


def _field_and_value(text: str) -> bool:
    name, equals, _ = text.partition("=")
    return not text or (bool(equals) and name in Segment.__slots__)


Count = Annotated[int, Bound("at least 1", lambda n: n >= 1)]
# 256 of them are bytes
Pieces = Annotated[int, Bound("from 300 to 200000", lambda n: 300 <= n <= 200_000)]
Size = Annotated[int, Bound("from 1 to 16384", lambda n: 1 <= n <= 16384)]
EvenSize = Annotated[int, Bound("even, from 2 to 16384", lambda n: 2 <= n <= 16384 and n % 2 == 0)]
Seed = Annotated[int, Bound("from 0 to 2**63 - 1", lambda n: 0 <= n < 2**63)]
AtLeastTwo = Annotated[int, Bound("at least 2", lambda n: n >= 2)]
NotNegative = Annotated[int, Bound("at least 0", lambda n: n >= 0)]
AtLeastZero = Annotated[float, Bound("at least 0", lambda x: 0 <= x < math.inf)]
AboveZero = Annotated[float, Bound("above 0", lambda x: 0 < x < math.inf)]
Logit = Annotated[float, Bound("from -20 to 20", lambda x: -20 <= x <= 20)]
Ratio = Annotated[float, Bound("at least 1", lambda x: 1 <= x < math.inf)]
Share = Annotated[float, Bound("from 0 to 1", lambda x: 0 <= x <= 1)]
ShareBelowOne = Annotated[float, Bound("at least 0 and below 1", lambda x: 0 <= x < 1)]
Name = Annotated[str, Bound("not empty", bool)]
Names = Annotated[tuple[Name, ...], Bound("not empty", bool)]
FieldValue = Annotated[
    str, Bound(f"FIELD=VALUE, FIELD one of {', '.join(Segment.__slots__)}", _field_and_value)
]
