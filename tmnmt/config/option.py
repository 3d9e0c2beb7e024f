"""What an option is: a field of a group, whose annotated type says what it may be and is for."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from tmnmt.config.bounds import Bound, Choices, Fixed, Help, Location
from tmnmt.errors import UsageError


@dataclass(frozen=True)
class Options:
    """A group of options, or several groups in one; a path may be given as text. Raises UsageError
    for a value that an option may not have."""

    title: ClassVar[str]  # of the group, where it is shown

    def __post_init__(self) -> None:
        for setting in (option for group in groups_of(type(self)) for option in options_of(group)):
            value = getattr(self, setting.name)
            if setting.kind is Path and isinstance(value, str):
                value = Path(value)
                object.__setattr__(self, setting.name, value)
            setting.check(value)


class Option(NamedTuple):
    """One option, as it is declared.

    name: its name.
    kind: the type of its value.
    table: the names of all values, where there are only these.
    default: its default.
    optional: whether it may be None.
    help: what it is for.
    bound: what its value may be; None where its type says enough.
    location: how its values name files; None where they name none.
    is_fixed: whether a server keeps it as it is while it runs."""

    name: str
    kind: type[Any]
    table: Collection[str]
    default: Any
    optional: bool
    help: Help
    bound: Bound | None
    location: Location | None = None
    is_fixed: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it may be given several times."""
        return self.kind is tuple

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of all values, where there are only these."""
        return (*self.table,)

    @property
    def description(self) -> str:
        """What the option is for, in a sentence."""
        return self.help.text.replace("{choices}", ", ".join(self.choices))

    @property
    def flag(self) -> str:
        """The name of the option on a command line."""
        return f"{'-' if len(self.name) == 1 else '--'}{self.name.replace('_', '-')}"

    def check(self, value: object, label: str = "") -> None:
        """Checks a value of the option.

        value: the value.
        label: what the message calls the option; "" takes its name.

        Raises UsageError for a value that it may not have."""
        label = label or self.name.replace("_", "-")
        if value is None and self.optional:
            return
        if self.table and value not in self.table:
            raise UsageError(f"{label} {value} is unknown; allowed: {', '.join(self.choices)}")
        if not self._is_of_kind(value) or (self.bound is not None and not self.bound.holds(value)):
            text = str(value) if isinstance(value, Path) else repr(value)
            raise UsageError(f"{label} is {text}; it must be {self.allowed}")

    @property
    def allowed(self) -> str:
        """What the value may be, in words."""
        kinds = {
            bool: "True or False",
            int: "a whole number",
            float: "a number",
            tuple: "a tuple of names",
        }
        description = ", ".join(self.choices) or kinds.get(self.kind, "a name")
        return description if self.bound is None else self.bound.allowed

    def _is_of_kind(self, value: object) -> bool:
        if self.kind in (bool, int):
            return type(value) is self.kind
        if self.is_list:
            return isinstance(value, tuple) and all(isinstance(entry, str) for entry in value)
        if self.kind is float:
            return isinstance(value, float | int) and not isinstance(value, bool)
        return isinstance(value, str | Path)


def groups_of(kind: type[Options]) -> list[type[Options]]:
    """The groups that a class of options consists of, in their order. A group consists of itself
    alone.

    kind: the class."""
    return [group for group in reversed(kind.__mro__) if Options in group.__bases__]


def changed(options: Options, *groups: type[Options]) -> list[str]:
    """The options that are not as they are by default, as a command line has them.

    options: the options.
    groups: the groups that are looked at; without any, all groups of the options."""
    looked_at = groups or (type(options),)
    entries = (option for group in looked_at for option in options_of(group))
    values = ((option, getattr(options, option.name)) for option in entries)
    return [
        f"--no-{option.flag[2:]}"
        if value is False or (option.help.is_negatable and not value)
        else option.flag
        for option, value in values
        if value != option.default
    ]


def options_of(group: type[Options]) -> tuple[Option, ...]:
    """The options of a group, in their order.

    group: the group."""
    if group not in _OPTIONS_CACHE:
        hints = typing.get_type_hints(group, include_extras=True)
        _OPTIONS_CACHE[group] = tuple(
            option(field.name, hints[field.name], field.default) for field in fields(group)
        )
    return _OPTIONS_CACHE[group]


_OPTIONS_CACHE: dict[type, tuple[Option, ...]] = {}  # groups whose types were read before


def option(name: str, hint: Any, default: Any = None) -> Option:
    """An option, from its annotated type.

    name: the name of the option.
    hint: its annotated type, which has a Help.
    default: its default."""
    kind, *notes = typing.get_args(hint)
    optional = False
    kinds = (kind,)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kinds = typing.get_args(kind)
        optional = type(None) in kinds
    is_literal = typing.get_origin(kinds[0]) is Literal
    literals = typing.get_args(kinds[0]) if is_literal else ()
    table = next((note.table for note in notes if isinstance(note, Choices)), literals)
    help_ = next(note for note in notes if isinstance(note, Help))
    bound = next((note for note in notes if isinstance(note, Bound)), None)
    location = next((note for note in notes if isinstance(note, Location)), None)
    is_fixed = any(isinstance(note, Fixed) for note in notes)
    kind = str if table else typing.get_origin(kinds[0]) or kinds[0]
    return Option(name, kind, table, default, optional, help_, bound, location, is_fixed)
