"""Options of commands: what `tmnmt.config.options` declares, as typer takes it, and what several
commands share."""

from __future__ import annotations

import inspect
import os
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from tmnmt.config.bounds import Bound, Help
from tmnmt.config.option import Option, Options, groups_of, option, options_of
from tmnmt.config.options import MEMORY_PLACES, STDOUT
from tmnmt.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., None])

OFF = "no_"  # before the name of an option, that of its --no-
MODEL = Annotated[Path, typer.Option("--model", help="Model folder.")]
MODEL_OR_NONE = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FOLDER",
        help="Model, or openai:URL#NAME; none: the memory alone.",
    ),
]
MEMORIES = Annotated[
    list[str] | None,
    typer.Option(
        "--memory",
        metavar="PLACE",
        help=f"{MEMORY_PLACES}; may be repeated.",
    ),
]

CONFIG = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A file of TOML with these options; what is named beside it takes their place.",
    ),
]

RESUME = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run, exactly.")]


def explicit(context: typer.Context, options: Options) -> dict[str, Any]:
    """Those options of a group that the command line names, by their names.

    context: the context of the command.
    options: the options as the command has them."""
    return {
        setting.name: getattr(options, setting.name)
        for group in groups_of(type(options))
        for setting in options_of(group)
        if (source := context.get_parameter_source(setting.name)) is not None
        and source.name == "COMMANDLINE"
    }


def use_threads(threads: int | None) -> None:
    """Has torch compute with so many threads; None and 0 leave it as it is."""
    if threads:
        import torch

        torch.set_num_threads(threads)


def check_server_installed(command: str) -> None:
    """Raises UsageError where the packages of the server are missing, which a command needs."""
    if not all(map(find_spec, ("starlette", "uvicorn"))):
        raise UsageError(f"{command} needs starlette and uvicorn: pip install 'tmnmt[server]'")


@contextmanager
def interruption_note(note: str) -> Iterator[None]:
    """Has a signal that ends what is done within tell this, unless something within, which knows
    more, has it tell something else."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not hasattr(stop, "__notes__"):
            stop.add_note(note)
        raise


def with_options(command: Command) -> Command:
    """The command as typer takes it: a parameter that is a group becomes the options of the group,
    under its title, the everyday ones before all groups."""
    hints = typing.get_type_hints(command, include_extras=True)
    grouped = any(isinstance(hint, type) and issubclass(hint, Options) for hint in hints.values())
    groups: dict[str, type[Options]] = {}
    checked: list[Option] = []
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Options):
            groups[name] = hint
            checked += options_of(hint)
            for group in groups_of(hint):
                for setting in options_of(group):
                    parameters += [
                        _parameter(setting, group.title),
                        *_negation(setting, group.title),
                    ]
        elif any(isinstance(note, Help) for note in getattr(hint, "__metadata__", ())):
            single = option(name, hint, parameter.default)
            checked.append(single)
            parameters.append(_parameter(single, single.help.title if grouped else ""))
        else:
            parameters.append(
                parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            )

    @wraps(command)
    def run(**values: Any) -> None:
        for setting in checked:
            if setting.is_list:
                values[setting.name] = tuple(values[setting.name] or ())
            setting.check(values[setting.name], setting.flag)
            if setting.help.is_negatable and values.pop(f"{OFF}{setting.name}"):
                if values[setting.name] != setting.default:
                    raise UsageError(
                        f"{setting.flag} and --no-{setting.flag[2:]} exclude each other"
                    )
                values[setting.name] = 0
        for name, group in groups.items():
            values[name] = group(
                **{setting.name: values.pop(setting.name) for setting in options_of(group)}
            )
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {entry.name: entry.annotation for entry in parameters}
    return typing.cast(Command, run)


def _parameter(setting: Option, title: str) -> inspect.Parameter:
    flag = setting.kind is bool and setting.default is False
    long = setting.flag
    if setting.kind is bool and not flag:
        long += f"/--no-{long[2:]}"
    names = [long, setting.help.short] if setting.help.short else [long]
    declared = typer.Option(
        *names,
        help=setting.description,
        metavar=setting.help.metavar or _range(setting.bound),
        rich_help_panel=None if setting.help.everyday else title or None,
    )
    kind: Any = Literal[setting.choices] if setting.choices else setting.kind
    kind = list[str] if setting.is_list else kind
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if setting.is_list else setting.default,
        annotation=Annotated[
            kind | None if setting.optional or setting.is_list else kind, declared
        ],
    )


def _negation(setting: Option, title: str) -> list[inspect.Parameter]:
    """The option that stands for 0 of another, where it has one."""
    if not setting.help.is_negatable:
        return []
    declared = typer.Option(
        f"--no-{setting.flag[2:]}", help=f"{setting.flag} 0.", rich_help_panel=title or None
    )
    kind = Annotated[bool, declared]
    name, how = f"{OFF}{setting.name}", inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, how, default=False, annotation=kind)]


def _range(bound: Bound | None) -> str | None:
    """A range as the word for a value: 0..1000, or 0.. without an end."""
    if bound is None or bound.low is None:
        return None
    return f"{bound.low:g}..{'' if bound.high is None else format(bound.high, 'g')}"


def readable(text: str | None) -> str | None:
    """A `callback` of typer: the text as given. Raises UsageError for bytes that are no text in the
    locale's encoding, which Python passes on as lone surrogates."""
    if text is not None and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{text!r} is no UTF-8 text") from None
    return text


def no_stdout(path: Path | str | None) -> Path | str | None:
    """A `callback` of typer: the file or folder as given. Raises UsageError for -."""
    if str(path) == STDOUT:
        raise UsageError(f"{path} is standard output, to which this cannot be written; give a name")
    return path


def folder(path: Path) -> Path:
    """A `callback` of typer: the folder as given, which need not exist. Raises UsageError where
    there is a file in its place, or above it."""
    no_stdout(path)
    existing = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    if not existing.is_dir():
        raise UsageError(
            f"{path}: {'it' if existing == path else existing} is no folder, and a folder is wanted"
        )
    return path


NEW_MODEL = Annotated[
    Path,
    typer.Option(
        "--output", "-o", help="Model folder to make; must not exist yet.", callback=folder
    ),
]
