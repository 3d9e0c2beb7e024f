"""Standard streams: terminals that escape sequences in texts and names do not command, and an
output whose errors are known from those of files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, TextIO

from tmnmt.errors import TmnmtError
from tmnmt.visible import visible

if TYPE_CHECKING:
    from rich.console import Console


class Terminal(io.TextIOWrapper):
    """A stream that shows what is printed to it as `visible` does. What rich makes, colours and
    bars, passes as it is, so the texts in it are to be printed by `console`."""

    def write(self, text: str, /) -> int:
        return super().write(visible(text))

    @property
    def rich_proxied_file(self) -> Any:
        """Where rich's consoles write, which look for this name."""
        return _AsItIs(self)


class _AsItIs:
    """A terminal that takes everything."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        return io.TextIOWrapper.write(self._terminal, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)


def console(stream: TextIO) -> Console:
    """A console that prints to `stream`: in colours and with control characters visible where that
    is a terminal."""
    from rich.console import Console, ConsoleRenderable, RenderHook
    from rich.text import Text

    class Visible(RenderHook):
        def process_renderables(
            self, renderables: list[ConsoleRenderable]
        ) -> list[ConsoleRenderable]:
            for text in renderables:
                if isinstance(text, Text):
                    text.plain = visible(text.plain)
            return renderables

    result = Console(file=stream, highlight=False, soft_wrap=True, markup=False)
    if result.is_terminal:
        result.push_render_hook(Visible())
    return result


def stderr(stream: io.TextIOWrapper) -> Terminal:
    """The same stream as a terminal, which it may be or be shown on later."""
    stream.flush()
    raw = io.FileIO(stream.fileno(), "wb", closefd=False)
    return Terminal(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True)


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
