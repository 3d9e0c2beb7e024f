"""Standard output whose errors are known from those of files: what writes or reads in between does
not rename them."""

from __future__ import annotations

import io
from typing import Any, TextIO

from tmnmt.cli.terminal import Terminal
from tmnmt.errors import TmnmtError


class OutputError(TmnmtError):
    """Standard output cannot be written."""


class OutputClosedError(Exception):
    """Who read standard output went away."""


class _Descriptor(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError as error:
            raise OutputClosedError from error
        except OSError as error:
            raise OutputError(
                f"standard output: cannot be written: {error.strerror or error}"
            ) from error


def named_stdout(stdout: io.TextIOWrapper) -> TextIO:
    """The same output and settings, with OutputError and OutputClosedError in place of OSError,
    which rich and readers of what is piped in would take for theirs."""
    stdout.flush()
    raw = _Descriptor(stdout.fileno(), "wb", closefd=False)
    raw.name = stdout.name
    kind = Terminal if raw.isatty() else io.TextIOWrapper
    return kind(
        io.BufferedWriter(raw),
        stdout.encoding,
        stdout.errors,
        line_buffering=stdout.line_buffering,
        write_through=stdout.write_through,
    )
