"""How --help shows commands: paragraphs on one line each, flags without types."""

from __future__ import annotations

import inspect
import re
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

LINE_END = re.compile(r"(?<!\n)\n(?!\n)")


def flowed(text: str) -> str:
    """The paragraphs of a docstring, each on one line."""
    return LINE_END.sub(" ", inspect.cleandoc(text))


class Command(TyperCommand):
    """A command whose flags have no word for a value, which they do not take."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_metavars(super().get_params(ctx))


class Group(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_metavars(super().get_params(ctx))


def _hide_metavars(params: list[Any]) -> list[Any]:
    for param in params:
        if isinstance(param, TyperOption) and param.is_bool_flag:
            param.metavar = ""
    return params
