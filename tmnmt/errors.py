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
