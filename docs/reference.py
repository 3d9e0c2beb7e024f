"""The page of all commands, written from the program whenever the site is built.

python docs/reference.py        # prints the page
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

ARGUMENTS, OPTIONS = "Arguments", "Options"


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by the words that call it, in the order of `tmnmt --help`."""
    from typer.main import get_command

    from tmnmt.cli import application

    yield from _within("tmnmt", get_command(application()))


def _within(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for word, one in getattr(command, "commands", {}).items():
        yield from _within(f"{name} {word}", one)


def command_line() -> str:
    """The page of all commands with their options, in Markdown."""
    text = [
        "# Command line",
        "This page is made from the options of the program. "
        "`tmnmt COMMAND --help` says the same on a terminal.",
    ]
    for name, command in commands():
        text += [f"## `{name}`", _plain(command.help or "")]
        for panel, parameters in groupby(sorted(command.params, key=_order), key=_panel):
            rows = [_row(parameter) for parameter in parameters]
            text.append("\n".join([f"| {panel} | | default |", "|---|---|---|", *rows]))
    text += ["## The file of `tmnmt serve --config`", *_config_tables()]
    return "\n\n".join(text) + "\n"


def _config_tables() -> Iterator[str]:
    """The entries of the file, from the options of the command."""
    from tmnmt.config.option import groups_of, options_of
    from tmnmt.config.serving import ServerOptions

    yield (
        "Its entries are the options of the command. A value is a text, a number, or a list of "
        "texts. Those of tenants may also stand in a table `[tenant.NAME]`. "
        "What is marked *start* is read at the start alone; everything else is read again "
        "at SIGHUP."
    )
    for group in groups_of(ServerOptions):
        rows = [
            f"| `{setting.name}` | {_plain(setting.description)} | "
            f"{'' if setting.default in (None, ()) else setting.default} | "
            f"{'start' if setting.is_fixed else ''} |"
            for setting in options_of(group)
        ]
        yield "\n".join([f"| {group.title} | | default | |", "|---|---|---|---|", *rows])


def _panel(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return ARGUMENTS
    return getattr(parameter, "rich_help_panel", None) or OPTIONS


def _order(parameter: Any) -> tuple[int, str]:
    """Arguments, options without a panel, panels by name; within one as they are declared."""
    panel = _panel(parameter)
    return (0, "") if panel == ARGUMENTS else (1, "") if panel == OPTIONS else (2, panel)


def _row(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.param_type_name == "argument":
        names = [(parameter.metavar or parameter.name).upper()]
    called = ", ".join(f"`{name}`" for name in names)
    default = parameter.default
    if default is None or callable(default) or isinstance(default, bool) or default in ("", (), []):
        default = ""
    text = _plain(getattr(parameter, "help", None) or "")
    return f"| {called} | {text} | {getattr(default, 'value', default)} |"


def _plain(text: str) -> str:
    """Help on one line, as text: nothing in it is read as Markdown or HTML."""
    signs = {"|": "\\|", "<": "&lt;", "*": "\\*", "_": "\\_", "[": "\\[", "`": "\\`"}
    return " ".join("".join(signs.get(sign, sign) for sign in text.replace("\b", "")).split())


if __name__ == "__main__":
    print(command_line())
