"""The command line. One module holds one command: it parses, calls the library and prints.

Results go to stdout, talk and progress to stderr. Exit codes: 0 done (also when nothing was found),
1 files and data, 2 wrong usage or an option that the model cannot serve, 129 the terminal is gone,
130 interrupted, 141 the reader of the output went away, 143 terminated."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence, Set
from copy import copy
from pathlib import Path
from typing import Annotated, TextIO

import typer
from typer.models import CommandInfo

from tmnmt import __version__

# The modules, not their functions: `tmnmt.cli.search` stays a module. They import heavy things only
# when they run.
from tmnmt.cli import (
    adapt,
    align,
    analyse,
    backup,
    build_index,
    cache_report,
    calibrate,
    check,
    doctor,
    evaluate,
    get_model,
    import_model,
    keys,
    mcp,
    memory,
    search,
    serve,
    shortlist,
    start,
    train,
    translate,
    update,
)  # isort: skip
from tmnmt.cli.help import Command, Group, flowed
from tmnmt.cli.options import with_options
from tmnmt.cli.streams import OutputClosedError, OutputError, named_stdout
from tmnmt.cli.streams import stderr as visible_stderr
from tmnmt.errors import TmnmtError, UsageError
from tmnmt.interrupts import STOPPED, exit_code, install, mark_finished
from tmnmt.registry import Registry

OUTPUT_CLOSED = 128 + 13  # as the shell reports a program ended by SIGPIPE
# Typer's words on a number out of range, and on what is none.
RANGE = re.compile(r"\S+ is not in the range \S+\.$|is not a valid (?:int|float) range\.$")

COMMANDS: Registry[Callable[..., None]] = Registry(
    "command",
    {
        "start": start.start,
        "build-index": build_index.build_index,
        "align": align.align,
        "search": search.search,
        "analyse": analyse.analyse,
        "check": check.check,
        "translate": translate.translate,
        "update": update.update,
        "keys": keys.keys,
        "calibrate": calibrate.calibrate,
        "train": train.train,
        "adapt": adapt.adapt,
        "get-model": get_model.get_model,
        "import-model": import_model.import_model,
        "shortlist": shortlist.shortlist,
        "serve": serve.serve,
        "serve-key": serve.serve_key,
        "doctor": doctor.doctor,
        "backup": backup.backup,
        "restore": backup.restore,
        "mcp": mcp.mcp,
        "cache-report": cache_report.cache_report,
    },
)


def _version(requested: bool) -> None:
    if requested:
        print(f"tmnmt {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and leave."
        ),
    ] = False,
) -> None:
    """Only --version: every other option belongs to a command."""


def application() -> typer.Typer:
    """The command line, with all commands that are registered."""
    app = typer.Typer(
        name="tmnmt",
        help="Translation that remembers: a translation memory and a neural decoder that reads it, "
        "token by token.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name, command in COMMANDS.items():
        app.command(name)(with_options(command))
    app.add_typer(evaluate.app)
    app.add_typer(memory.app)
    return app


def main() -> None:
    """The console script: runs `sys.argv` and ends the process with its exit code."""
    install()
    try:
        code = run(sys.argv[1:])
        mark_finished()
    except KeyboardInterrupt as stop:  # when all was told
        mark_finished()
        code = exit_code(stop)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and gives its exit code (see the module); an error is one line on stderr,
    never a traceback.

    A command that has something to say about an interruption adds a note to the KeyboardInterrupt,
    which stays the one that it is: SIGTERM and SIGHUP raise one, too. Notes on an exception are
    told behind it.
    """
    _replace_closed_streams()
    _set_up_output()
    try:
        return _invoke(arguments)
    except OutputError as error:
        _abandon(sys.stdout)
        return _fail(error, error.exit_code)
    except OutputClosedError:
        _abandon(sys.stdout)
        return OUTPUT_CLOSED
    except (TmnmtError, typer.TyperException) as error:
        return _fail(error, error.exit_code)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        absent = UsageError("models need torch, which is not installed: pip install torch")
        return _fail(absent, absent.exit_code)
    except BrokenPipeError:  # of stderr, or of a pipe that is named as an output
        _abandon(sys.stdout)
        return OUTPUT_CLOSED
    except OSError as error:  # disk full, permission denied: the user's to mend, so no traceback
        return _fail(error, TmnmtError.exit_code)
    except KeyboardInterrupt as stop:
        notes = _with_notes(stop)
        try:
            print(f"interrupted: {notes}" if notes else STOPPED, file=sys.stderr)
            sys.stdout.flush()
        except OSError:  # the terminal is gone
            _abandon(sys.stdout, sys.stderr)
        return exit_code(stop)


def _invoke(arguments: Sequence[str]) -> int:
    # Not `command.main()`: it has ways of its own with Ctrl-C and a closed pipe, which differ
    # between versions.
    command = typer.main.get_command(
        _sketched(application(), {word for word in arguments if not word.startswith("-")})
    )
    try:
        with command.make_context("tmnmt", list(arguments)) as context:
            command.invoke(context)
        code = 0
    except typer.Exit as exit_request:
        code = exit_request.exit_code
    sys.stdout.flush()  # here, where a closed pipe is still caught
    return code


def _sketched(app: typer.Typer, words: Set[str]) -> typer.Typer:
    """`app`, in which only the commands that are among `words` have their options: reading those of
    all takes typer a fifth of the time of --help, which shows none of them."""
    sketch = copy(app)
    sketch.info = copy(app.info)
    sketch.info.cls = Group
    sketch.registered_commands = [
        _help_entry(info, bare=_name(info) not in words) for info in app.registered_commands
    ]
    sketch.registered_groups = [copy(group) for group in app.registered_groups]
    for group in sketch.registered_groups:
        group.typer_instance = (
            _sketched(group.typer_instance, words) if group.typer_instance else None
        )
    return sketch


def _name(info: CommandInfo) -> str:
    return info.name or typer.main.get_command_name(getattr(info.callback, "__name__", ""))


def _help_entry(info: CommandInfo, bare: bool) -> CommandInfo:
    """The same as --help shows it; `bare`: for a list of commands, without its options."""
    entry = copy(info)
    entry.cls = Command
    entry.name = _name(info)
    entry.help = flowed(info.help or info.callback.__doc__ or "")
    if bare:
        entry.callback = lambda: None
    return entry


def _fail(error: Exception, code: int) -> int:
    message = _one_line(error)
    if message:  # typer's "no arguments: here is the help" has none
        print(f"tmnmt: error: {message}", file=sys.stderr)
    return code


def _with_notes(error: BaseException, message: str | None = None) -> str:
    parts = [str(error) if message is None else message, *getattr(error, "__notes__", ())]
    return "; ".join(part for part in parts if part)


def _one_line(error: Exception) -> str:
    """What is wrong, on one line; an OSError as `path: reason`."""
    if isinstance(error, typer.TyperException):
        message = RANGE.sub(_range(getattr(error, "param", None)), error.format_message())
    elif isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        message = str(error)
    return " ".join(_with_notes(error, message).split())


def _range(option: object) -> str:
    """What an option that is a number takes."""
    kind = getattr(option, "type", None)
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    number = "a whole number" if getattr(kind, "name", "") == "int range" else "a number"
    return f"must be {number} " + (
        f"of at least {low}" if high is None else f"from {low} to {high}"
    )


def _replace_closed_streams() -> None:
    """Python has None for a standard stream that is closed, and files opened later would take its
    number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 -- to the end of the process


def _set_up_output() -> None:
    """UTF-8 whatever the locale (a lone surrogate is written \\udcff, not an error); the package's
    log on stderr. Nothing that commands a terminal reaches one (`tmnmt/cli/streams.py`)."""
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = named_stdout(sys.stdout)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = visible_stderr(sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogLine())
    logger = logging.getLogger("tmnmt")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)


class _LogLine(logging.Formatter):
    """`message` for what is told, `tmnmt: warning: message` for what should be looked at."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        return (
            message
            if record.levelno < logging.WARNING
            else f"tmnmt: {record.levelname.lower()}: {message}"
        )


def _abandon(*streams: TextIO) -> None:
    # What is still buffered has no reader: without this the interpreter complains about it on its
    # way out.
    for stream in streams:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
