"""Every error a user can cause, in one tree.

TmnmtError
├── UsageError     wrong options, or an option the model cannot serve      exit code 2
├── DataError      a file or its content: wrong, missing, empty, damaged   exit code 1
│   ├── FormatError    a memory or text file is not what it should be
│   ├── MemoryIndexError   an index is missing, half deleted, or of another format version
│   └── ModelError     a model folder is missing, damaged, or of another kind
├── LockedError    somebody else is writing to the folder                  exit code 1
└── ServerError    the search server is away, refuses, or failed           exit code 1
"""

import re
from collections.abc import Mapping
from typing import Self

LONGEST_SHOWN = 100  # characters of a value in a message
_PLACE = re.compile(r"\{(\w+)\}")


class TmnmtError(Exception):
    """What is wrong, where (file, line, key), and what is allowed, in one line.

    A message with values names their places, as in "{file}: the file is empty". So a page can say
    it in another language: it is the key of its translation (`serve/static/phrases.fr.json`)."""

    exit_code = 1

    def __init__(self, message: object = "", /, **values: str | int) -> None:
        """message: what a person reads, with the places of values.
        values: what stands in those places."""
        self.template, self.values = str(message), values
        super().__init__(filled(self.template, values))


class UsageError(TmnmtError):
    """An option is wrong, or the model cannot serve it."""

    exit_code = 2


class DataError(TmnmtError):
    """A file or its content cannot be used."""


class FormatError(DataError):
    """A memory or text file is not what it should be."""


class MemoryIndexError(DataError):
    """An index is missing, damaged, or of another format version."""


class ModelError(DataError):
    """A model folder is missing, damaged, or of another kind."""


class LockedError(TmnmtError):
    """Somebody else is writing to the folder."""


class ServerError(TmnmtError):
    """A search server cannot be reached, refuses, or failed."""


class Reason(str):
    """Why something cannot be done, in one line; with values it names their places, as an error
    does."""

    template: str
    values: dict[str, str | int]

    def __new__(cls, template: str, /, **values: str | int) -> Self:
        """template: what a person reads, with the places of values.
        values: what stands in those places."""
        reason = super().__new__(cls, filled(template, values))
        reason.template, reason.values = template, values
        return reason


def filled(template: str, values: Mapping[str, str | int]) -> str:
    """A message in English.

    template: the message with the places of values.
    values: what stands there."""

    def value(place: re.Match[str]) -> str:
        text = values.get(place[1], place[0])
        return text if isinstance(text, str) else f"{text:,}"

    return _PLACE.sub(value, template)


def short_repr(value: object) -> str:
    """A value of a file as a message tells it: on one line and short, whatever it is.

    value: the value."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except (
        ValueError,
        RecursionError,
    ):  # a number of too many digits, a list in a list in a list ...
        return f"a {type(value).__name__} too long to be told"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ..."
