"""Records as lists of JSON, and records of these lists again, by the types of their fields. Nothing
else is ever made of what is read, so whoever sends it cannot choose what is."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
_PLAIN = (str, int, float, bool, type(None))


def dumps(value: object) -> bytes:
    """A value as JSON in UTF-8: records (dataclasses and named tuples) and tuples become lists.
    Numbers keep all their digits, and NaN and the infinities their names.

    value: plain values, lists and tuples of them, and records whose fields are such.

    Raises TypeError for another value."""
    return json.dumps(listed(value), ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def loads(text: bytes) -> Any:
    """What `dumps` wrote, with records as lists.

    text: the JSON.

    Raises ValueError for what is no JSON."""
    return json.loads(text.decode("utf-8", "surrogatepass"))


def listed(value: object) -> Any:
    """A value with its records as lists, in the order of their fields.

    value: as in `dumps`."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        return [listed(item) for item in value]
    if isinstance(value, dict):
        return {str(name): listed(item) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return [listed(getattr(value, name)) for name in _names(type(value))]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def record_of(kind: type[T], value: Any) -> T:
    """The record that a list stands for.

    kind: the class of the record.
    value: what `listed` gave of it, through JSON.

    Raises ValueError for what is no such record."""
    try:
        return cast(T, _reader(cast(Hashable, kind))(value))
    except TypeError as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.init)


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _reader(arguments[0])
    if origin in (Union, types.UnionType):
        return _optional(hint)
    if origin is Literal:
        return _literal(frozenset(arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return _tuple(_reader(arguments[0]))
    if origin is tuple:
        return _row([*map(_reader, arguments)], lambda *values: values)
    if hint in _PLAIN:
        return _plain((int, float) if hint is float else (hint,))
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return _record(hint)
    raise TypeError(f"{hint} has no form in JSON")


def _plain(kinds: tuple[type, ...]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise ValueError(f"{value!r:.60} is no {kinds[-1].__name__}")
        return value

    return read


def _literal(values: frozenset[Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value not in values:
            raise ValueError(f"{value!r:.60} is none of {sorted(values)}")
        return value

    return read


def _optional(hint: Any) -> Callable[[Any], Any]:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    if len(kinds) != 1:
        raise TypeError(f"{hint} has no form in JSON")
    inner = _reader(kinds[0])
    return lambda value: None if value is None else inner(value)


def _tuple(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError(f"{value!r:.60} is no list")
        return tuple(map(inner, value))

    return read


def _row(readers: Sequence[Callable[[Any], Any]], make: Callable[..., Any]) -> Callable[[Any], Any]:
    """What makes something of as many values as there are readers."""

    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise ValueError(f"{value!r:.60} is no list of {len(readers)}")
        return make(*(reader(item) for reader, item in zip(readers, value, strict=True)))

    return read


def _record(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind, include_extras=True)
    names = _names(kind) if is_dataclass(kind) else tuple(getattr(kind, "_fields"))  # noqa: B009
    return _row([_reader(hints[name]) for name in names], kind)
