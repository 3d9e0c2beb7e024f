"""Options that several `tmnmt memory` commands share, and segments as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmnmt.cli.options import readable

if TYPE_CHECKING:
    from tmnmt.index.filter import Filter
    from tmnmt.segments import Segment

INDEX = Annotated[
    str, typer.Option("--index", help="Folder or Elasticsearch address of the index.")
]
DOCUMENT = Annotated[
    str | None, typer.Option(help="Only those of this document.", callback=readable)
]
ORIGIN = Annotated[
    str | None,
    typer.Option(
        help="Only those of this origin, such as the file they came from.", callback=readable
    ),
]
USER = Annotated[str | None, typer.Option(help="Only those of this user.", callback=readable)]
SINCE = Annotated[
    str | None,
    typer.Option(help="Only those changed then or later: 2026-01-31 or 2026-01-31T12:00:00Z."),
]
BEFORE = Annotated[str | None, typer.Option(help="Only those changed earlier, or never.")]
PROPERTY = Annotated[
    str | None,
    typer.Option(help="Only those with this property: NAME, or NAME=VALUE.", callback=readable),
]


def chosen(
    document: str | None,
    origin: str | None,
    user: str | None,
    since: str | None,
    before: str | None,
    property: str | None,
) -> Filter:
    """The filter that the options say. Raises UsageError for what is no date."""
    from tmnmt.config.options import Meant
    from tmnmt.index.filter import filter_of

    return filter_of(Meant(document, origin, user, since, before, property))


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
