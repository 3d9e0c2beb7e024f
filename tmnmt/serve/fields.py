"""The fields of a request: what each may be, once, for the reader and for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tmnmt.serve.http_error import Refused, wrong

Kind = Literal[
    "text", "texts", "names", "lines", "flag", "number", "whole", "numbers", "object", "objects"
]
_SCHEMAS: dict[Kind, dict[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "names": {"type": "string"},
    "lines": {"type": "string"},
    "flag": {"type": "boolean"},
    "number": {"type": "number"},
    "whole": {"type": "integer"},
    "numbers": {"type": "array", "items": {"type": "integer"}},
    "object": {"type": "object"},
    "objects": {"type": "array", "items": {"type": "object"}},
}
_IN_WORDS: dict[Kind, str] = {
    "text": "a text",
    "texts": "a list of texts",
    "names": "names with commas between them",
    "lines": "a text of lines",
    "flag": "true or false",
    "number": "a number",
    "whole": "a whole number",
    "numbers": "a list of whole numbers",
    "object": "an object",
    "objects": "a list of objects",
}
LISTS: tuple[Kind, ...] = ("texts", "names", "lines", "numbers", "objects")
NAMES = 100  # entries of a list of names: of memories, of lists of terms, of elements
TEXTS = 1_000  # entries of a list of texts that are translated or looked up together
SEGMENTS = 10_000  # pairs that a request adds
DOCUMENT = 50_000  # segments of a document
ENTRIES = 50_000  # terms of a glossary
MOST_NAME = 200  # characters of a name that is told
LARGEST = 2**53 - 1  # of whole numbers: a browser and a database tell it from its neighbours
LISTED = ""  # the name of a body that is itself a list
_UNDECLARED = 100  # entries of a list that no table has
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class Field:
    """`minimum`, `maximum`: of a number, ends included. `choices`: of a text; empty: any. `inside`:
    the fields of an object, or of each in a list.

    `entries`: how many a list may have; every kind of list has to say. A list is one of JSON; names
    are a text with commas, lines a text of lines, or either of them several times. `distinct`: an
    entry that comes again is left out. `is_single`: a text stands for a list of one text."""

    name: str
    kind: Kind
    help: str
    default: Any = None
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    inside: tuple[Field, ...] = ()
    entries: int = 0
    distinct: bool = False
    is_single: bool = False

    def __post_init__(self) -> None:
        if (self.kind in LISTS) != (self.entries > 0):
            raise ValueError(f"field {self.name}: a list, and nothing else, says how many entries")

    def check_entries(self, value: Any) -> None:
        """Checks how many entries a list has.

        value: the value of the field.

        Raises Refused where it is a list of more entries than the field may have."""
        if _count(self.kind, value) > (self.entries or _UNDECLARED):
            raise _too_many(self.name, self.entries or _UNDECLARED)
        if any(field.entries or field.inside for field in self.inside):
            for entry in value if isinstance(value, list) else [value]:
                if isinstance(entry, dict):
                    check_lists(entry, self.inside)

    def read(self, value: Any, strict: bool = True) -> Any:
        """The value of the field. Strings of forms that spell a number or a flag are that.

        value: the value as it came.
        strict: whether an object may have no other fields.

        Raises Refused where it is not what it should be."""
        if isinstance(value, str) and self.kind in ("number", "whole", "flag"):
            value = self._parse(value)
        if self.kind == "names":
            value = _names(value)
        elif self.is_single and isinstance(value, str):
            value = [value]
        if not self._is_of_kind(value):
            raise wrong(f"{self.name} must be {self.allowed}")
        if self.distinct:
            return list(dict.fromkeys(value))
        if self.kind == "object" and self.inside:
            return read(value, self.inside, strict)
        if self.kind == "objects" and self.inside:
            return [read(entry, self.inside, strict) for entry in value]
        return value

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        words = f"one of {', '.join(self.choices)}" if self.choices else _IN_WORDS[self.kind]
        if self.is_single:
            words = f"a text, or {words}"
        if self.minimum is not None:
            words += f" from {self.minimum:g}"
        if self.maximum is not None:
            words += f" up to {self.maximum:g}"
        return words

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema has it."""
        schema = dict(_SCHEMAS[self.kind], description=self.help)
        if self.inside and self.kind == "object":
            schema |= object_schema(self.inside)
        elif self.inside:
            schema["items"] = object_schema(self.inside)
        if schema["type"] == "array":
            schema["maxItems"] = self.entries
        schema |= {"enum": list(self.choices)} if self.choices else {}
        schema |= {"minimum": self.minimum} if self.minimum is not None else {}
        schema |= {"maximum": self.maximum} if self.maximum is not None else {}
        if self.default is not None:
            is_text = self.kind == "names"
            schema["default"] = ",".join(self.default) if is_text else self.default
        return schema

    def _parse(self, value: str) -> Any:
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
            case "lines":
                return isinstance(value, str)
            case "texts" | "names":
                return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
            case "numbers":
                return isinstance(value, list) and all(type(entry) is int for entry in value)
            case "flag":
                return isinstance(value, bool)
            case "object":
                return isinstance(value, dict)
            case "objects":
                return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind == "whole" and not isinstance(value, int):
            return False
        largest = LARGEST if self.kind == "whole" else float("inf")
        low = -largest if self.minimum is None else self.minimum
        return low <= value <= (largest if self.maximum is None else self.maximum)


def read(values: Mapping[str, Any], table: Sequence[Field], strict: bool = True) -> dict[str, Any]:
    """The values of fields by name, with defaults where there are none; null is none.

    values: the values as they came.
    table: what the fields may be.
    strict: whether there may be no other fields.

    Raises Refused for a value that is missing or is not what it should be."""
    names = [field.name for field in table]
    if strict and set(values) - {*names}:
        raise wrong(f"the fields are {', '.join(names)}" if names else "there are no fields here")
    checked = {}
    for field in table:
        value = values.get(field.name)
        if value == "" and field.kind in ("whole", "number", "flag"):
            value = None  # of a form whose field is left empty
        if value is None and field.required:
            raise wrong(f"{field.name} is needed: {field.allowed}")
        checked[field.name] = field.default if value is None else field.read(value, strict)
    return checked


def check_lists(values: Mapping[str, Any], table: Sequence[Field]) -> None:
    """Checks how many entries lists have. A list that is in no table may have a few.

    values: the values as they came.
    table: what the fields may be.

    Raises Refused for a list of more entries."""
    fields = {field.name: field for field in table}
    for name, value in values.items():
        if name in fields:
            fields[name].check_entries(value)
        elif isinstance(value, list | dict) and len(value) > _UNDECLARED:
            raise _too_many("a list that is not read here", _UNDECLARED)


def _too_many(name: str, limit: int) -> Refused:
    return Refused(413, "too_large", f"{name or 'the list'} may have {limit:,} entries")


def _count(kind: Kind, value: Any) -> int:
    """The entries of a value, without making a list of them."""
    listed = value if isinstance(value, list) else [value]
    signs = {"names": ",", "lines": "\n\r"}.get(kind)
    if signs is None:
        return len(value) if isinstance(value, list | dict) else 1
    texts = [entry for entry in listed if isinstance(entry, str)]
    return len(listed) + max(sum(text.count(sign) for text in texts) for sign in signs)


def _names(value: Any) -> Any:
    """The names of a text, or of several; a number is one, too."""
    texts = value if isinstance(value, list) else [value]
    texts = [str(entry) if type(entry) is int else entry for entry in texts]
    if not all(isinstance(text, str) for text in texts):
        return value
    return [name for text in texts for part in text.split(",") if (name := part.strip())]


def object_schema(table: Sequence[Field]) -> dict[str, Any]:
    """The schema of an object.

    table: its fields."""
    return {
        "type": "object",
        "properties": {field.name: field.schema for field in table},
        "required": [field.name for field in table if field.required],
        "additionalProperties": False,
    }
