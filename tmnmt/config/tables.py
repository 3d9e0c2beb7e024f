"""A TOML file as small dataclasses, one a table; unknown keys and values out of bounds are errors
that say where.

No torch: what is wrong in a file is told before anything heavy is loaded.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from tmnmt.config.bounds import Bound, Choices, Flat, Kinds
from tmnmt.errors import DataError, UsageError

T = TypeVar("T")
PASSWORD, API_KEY = "TMNMT_ES_PASSWORD", "TMNMT_ES_API_KEY"
REDIS_PASSWORD = "TMNMT_REDIS_PASSWORD"
SECRETS = (
    PASSWORD,
    API_KEY,
    REDIS_PASSWORD,
)  # variables that no configuration may name: it would be printed

_KINDS = {  # as TOML has them, in words
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a text",
    tuple: "a list",
    dict: "a table",
}


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file.

    path: the file.

    Raises DataError where it cannot be read. Raises UsageError where it is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: no valid TOML: {error}") from error


def build(kind: type[T], table: dict[str, Any], location: str) -> T:
    """A dataclass from a TOML table, nested tables included. The keys of a field that is marked
    `Flat` stand in the same table, and what the table leaves out is as in its default.

    kind: the dataclass.
    table: the table.
    location: what messages call the table, such as the file and the table's name.

    Raises UsageError for an unknown or missing key, and for a value that is not allowed."""
    hints = _hints(kind)
    flat = {name: part for name, hint in hints.items() if (part := _flat(hint)) is not None}
    keys = [name for name in hints if name not in flat]
    keys += [name for part in flat.values() for name in _hints(part)]
    for key in table:
        if key not in keys:
            suggestions = difflib.get_close_matches(key, keys, n=1)
            hint = (
                f"; did you mean `{suggestions[0]}`?"
                if suggestions
                else f"; allowed: {', '.join(sorted(keys))}"
            )
            raise UsageError(f"{location}: unknown key `{key}`{hint}")
    values: dict[str, Any] = {}
    for entry in dataclasses.fields(kind):  # type: ignore[arg-type]
        if entry.name in flat:
            changes = _field_values(_hints(flat[entry.name]), table, location)
            default: Any = entry.default
            values[entry.name] = dataclasses.replace(default, **changes)
            continue
        no_default = (
            entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        )
        if no_default and entry.name not in table:
            raise UsageError(f"{location}: key `{entry.name}` is missing")
        values |= _field_values({entry.name: hints[entry.name]}, table, location)
    return kind(**values)


def keys(config: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every key of a dataclass that `build` made, its value and its default.

    config: the dataclass."""
    hints = typing.get_type_hints(type(config), include_extras=True)
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        if _flat(hints[entry.name]) is None:
            yield entry.name, value, entry.default
            continue
        for name in _hints(type(value)):
            yield name, getattr(value, name), getattr(entry.default, name)


def _hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {entry.name: hints[entry.name] for entry in dataclasses.fields(kind)}


def _flat(hint: Any) -> type | None:
    """The dataclass whose keys stand in the outer table."""
    marked = any(isinstance(note, Flat) for note in getattr(hint, "__metadata__", ()))
    return hint.__origin__ if marked else None


def _field_values(hints: dict[str, Any], table: dict[str, Any], location: str) -> dict[str, Any]:
    return {
        key: _value(hint, table[key], f"{location}: {key}")
        for key, hint in hints.items()
        if key in table
    }


def _value(hint: Any, value: Any, location: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        kinds = next((note for note in arguments if isinstance(note, Kinds)), None)
        hint = arguments[0] if kinds is None else _of_kind(kinds.dataclasses(), value, location)
        value = _value(hint, value, location)
        for note in arguments[1:]:
            if isinstance(note, Bound):
                _hold(value, note, location)
            elif isinstance(note, Choices) and value not in note.table:
                raise UsageError(f"{location}: {value!r} is none of {', '.join(note.table)}")
        return value
    if origin in (typing.Union, types.UnionType):
        return _value(arguments[0], value, location)
    if origin is tuple and isinstance(value, list):
        return tuple(
            _value(arguments[0], item, f"{location} {number}")
            for number, item in enumerate(value, 1)
        )
    if origin is dict and isinstance(value, dict):
        return {key: _value(arguments[1], item, f"{location}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return build(hint, value, location)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (str, Path) and isinstance(value, str):
        return hint(_expand(value, location))
    if origin is typing.Literal:
        if value in arguments:
            return value
        raise UsageError(f"{location}: {value!r} is none of {', '.join(arguments)}")
    if type(value) is hint:
        return value
    kind = _KINDS.get(typing.get_origin(hint) or hint, getattr(hint, "__name__", hint))
    raise UsageError(f"{location}: {value!r} is not of the kind that is wanted ({kind})")


def _of_kind(kinds: Mapping[str, type], table: Any, location: str) -> Any:
    """The dataclass whose `kind` the table names; the first one's where it names none."""
    kind = table.get("kind", next(iter(kinds))) if isinstance(table, dict) else next(iter(kinds))
    if kind not in kinds:
        raise UsageError(f"{location}: kind: {kind!r} is none of {', '.join(kinds)}")
    return kinds[kind]


def _hold(value: Any, bound: Bound, location: str) -> None:
    if bound.holds(value):
        return
    text = repr(value) if value else "empty" if value in ("", ()) else "0"
    raise UsageError(f"{location}: {text}; it must be {bound.allowed}")


def _expand(text: str, location: str) -> str:
    def variable(match: re.Match[str]) -> str:
        if match[1] in SECRETS:
            raise UsageError(
                f"{location}: {match[1]} is secret; it is read from the environment and stands in "
                "no file"
            )
        try:
            return os.environ[match[1]]
        except KeyError:
            raise UsageError(
                f"{location}: the environment variable {match[1]} is not set"
            ) from None

    return re.sub(r"\$\{(\w+)\}", variable, text)
