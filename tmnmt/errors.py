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

LONGEST_SHOWN = 100  # characters of a value in a message


class TmnmtError(Exception):
    """What is wrong, where (file, line, key), and what is allowed, in one line."""

    exit_code = 1


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
