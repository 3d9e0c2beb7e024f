"""JSON Schema of the types by which answers are declared, so that the description of an answer and
its check are made of one declaration."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from inspect import cleandoc
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema = dict[str, Any]
Schemas = MutableMapping[str, Schema]

REFERENCE = "#/components/schemas/"
_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    bytes: {"type": "string", "format": "binary"},
    Any: {},
}


def schema_of(kind: Any, components: Schemas) -> Schema:
    """The schema of a type: of texts, numbers, flags, None, lists, mappings by text, Literal and
    unions, and of TypedDicts and dataclasses, which are named. `Annotated` has the description of a
    value.

    kind: the type.
    components: where the schemas of named types are put, by their names.

    Raises TypeError for another type, and for two types of one name."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_typeddict(kind) or is_dataclass(kind):
        return _reference(kind, components)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return schema_of(arguments[0], components) | {"description": arguments[1]}
    if origin is Literal:
        return {"type": "string", "enum": [*arguments]}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(arguments[0], components)}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], components)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(argument, components) for argument in arguments]}
    raise TypeError(f"{kind} has no schema")


def _reference(kind: type, components: Schemas) -> Schema:
    name = kind.__name__
    reference = {"$ref": f"{REFERENCE}{name}"}
    if name not in components:
        components[name] = {}  # of a type that has itself inside
        components[name] = _object(kind, components)
    elif components[name] and components[name] != _object(kind, {}):
        raise TypeError(f"there are two types called {name}")
    return reference


def _object(kind: type, components: Schemas) -> Schema:
    properties, required = dict[str, Schema](), list[str]()
    for name, hint in _hints(kind).items():
        is_optional = get_origin(hint) is NotRequired
        properties[name] = schema_of(get_args(hint)[0] if is_optional else hint, components)
        if not is_optional:
            required.append(name)
    text = " ".join(cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
    head = {"type": "object", "description": text} if is_typeddict(kind) else {"type": "object"}
    return {**head, "properties": properties, "required": required}


def _hints(kind: type) -> Mapping[str, Any]:
    """The types of the entries, by name."""
    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        return {field.name: hints[field.name] for field in fields(kind)}
    return hints
