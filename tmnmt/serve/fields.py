"""The fields of a request: what each may be, once, for the reader and for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tmnmt.serve.refused import wrong

Kind = Literal["text", "texts", "flag", "number", "whole", "object", "objects"]
_SCHEMAS: dict[Kind, dict[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "flag": {"type": "boolean"},
    "number": {"type": "number"},
    "whole": {"type": "integer"},
    "object": {"type": "object"},
    "objects": {"type": "array", "items": {"type": "object"}},
}
_IN_WORDS: dict[Kind, str] = {
    "text": "a text",
    "texts": "a list of texts",
    "flag": "true or false",
    "number": "a number",
    "whole": "a whole number",
    "object": "an object",
    "objects": "a list of objects",
}
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class Field:
    """`least`, `most`: of a number, ends included. `choices`: of a text; empty: any. `inside`: the
    fields of an object, or of each in a list."""

    name: str
    kind: Kind
    help: str
    default: Any = None
    needed: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    inside: tuple[Field, ...] = ()

    def read(self, value: Any) -> Any:
        """The value, where it is what it should be. Strings of forms that spell a number or a flag
        are that. Raises Refused."""
        if isinstance(value, str) and self.kind in ("number", "whole", "flag"):
            value = self._spelt(value)
        if not self._is_of_kind(value):
            raise wrong(f"{self.name} must be {self.allowed}")
        if self.kind == "object" and self.inside:
            return read(value, self.inside)
        if self.kind == "objects" and self.inside:
            return [read(one, self.inside) for one in value]
        return value

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        words = f"one of {', '.join(self.choices)}" if self.choices else _IN_WORDS[self.kind]
        if self.least is not None:
            words += f" from {self.least:g}"
        if self.most is not None:
            words += f" up to {self.most:g}"
        return words

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema has it."""
        schema = dict(_SCHEMAS[self.kind], description=self.help)
        if self.inside and self.kind == "object":
            schema |= object_schema(self.inside)
        elif self.inside:
            schema["items"] = object_schema(self.inside)
        schema |= {"enum": list(self.choices)} if self.choices else {}
        schema |= {"minimum": self.least} if self.least is not None else {}
        schema |= {"maximum": self.most} if self.most is not None else {}
        schema |= {"default": self.default} if self.default is not None else {}
        return schema

    def _spelt(self, value: str) -> Any:
        if self.kind == "flag":
            return _FLAGS.get(value.lower(), value)
        try:
            return int(value) if self.kind == "whole" else float(value)
        except ValueError:
            return value

    def _is_of_kind(self, value: Any) -> bool:
        match self.kind:
            case "text":
                return isinstance(value, str) and (not self.choices or value in self.choices)
            case "texts":
                return isinstance(value, list) and all(isinstance(one, str) for one in value)
            case "flag":
                return isinstance(value, bool)
            case "object":
                return isinstance(value, dict)
            case "objects":
                return isinstance(value, list) and all(isinstance(one, dict) for one in value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind == "whole" and not isinstance(value, int):
            return False
        low = -float("inf") if self.least is None else self.least
        return low <= value <= (float("inf") if self.most is None else self.most)


def read(values: Mapping[str, Any], table: Sequence[Field], strict: bool = True) -> dict[str, Any]:
    """The values by name, defaults where there are none; null is none. Raises Refused for one that
    is missing or is not what it should be; `strict`: for one that is not in the table, too."""
    names = [field.name for field in table]
    if strict and set(values) - {*names}:
        raise wrong(f"the fields are {', '.join(names)}" if names else "there are no fields here")
    checked = {}
    for field in table:
        value = values.get(field.name)
        if value is None and field.needed:
            raise wrong(f"{field.name} is needed: {field.allowed}")
        checked[field.name] = field.default if value is None else field.read(value)
    return checked


def object_schema(table: Sequence[Field]) -> dict[str, Any]:
    """The schema of an object with these fields."""
    return {
        "type": "object",
        "properties": {field.name: field.schema for field in table},
        "required": [field.name for field in table if field.needed],
        "additionalProperties": False,
    }
