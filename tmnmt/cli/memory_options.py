"""Options that several `tmnmt memory` commands share, and segments as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tmnmt.segments import Segment

INDEX = Annotated[
    str, typer.Option("--index", help="Folder or Elasticsearch address of the index.")
]


def pairs(properties: list[str]) -> tuple[tuple[str, str], ...]:
    """Properties from NAME=VALUE each. Raises UsageError."""
    from tmnmt.errors import UsageError

    for text in properties:
        if "=" not in text:
            raise UsageError(f"property {text!r} has no value; write NAME=VALUE")
        if text.startswith("="):
            raise UsageError(
                f"property {text!r} has no name; write NAME=VALUE, of which VALUE may be empty"
            )
    return tuple((name, value) for name, _, value in (text.partition("=") for text in properties))


def record(segment: Segment) -> dict[str, Any]:
    """Every field of a segment for JSON; properties as a list of pairs."""
    fields = asdict(segment)
    return {"id": fields.pop("id"), **fields}
