"""Every answer that a test gets from a server is held to what its route declares: status, media
type, and every field. `Server.ask` does so, for all tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import jsonschema

from tmnmt.serve import answers
from tmnmt.serve.api_v1 import API_V1
from tmnmt.serve.descriptions import DESCRIPTIONS
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.routes import EVENTS, Dialect, Route
from tmnmt.serve.schemas import Schema, schema_of

OWN = (API_V1, DESCRIPTIONS)
_PART = re.compile(r"\{(\w+)(?::\w+)?\}")


def strict(schema: Any) -> Any:
    """A schema whose objects have no fields that are not declared."""
    if isinstance(schema, list):
        return [*map(strict, schema)]
    if not isinstance(schema, dict):
        return schema
    checked = {name: strict(value) for name, value in schema.items()}
    return checked | ({"additionalProperties": False} if "properties" in schema else {})


def check(kind: Any, value: Any) -> None:
    """Raises AssertionError for a value that is not of a declared type."""
    error = next(_validator(kind).iter_errors(value), None)
    assert error is None, f"{error.json_path}: {error.message}"


@cache
def _validator(kind: Any) -> Any:
    components = dict[str, Schema]()
    schema = schema_of(kind, components)
    whole = {**strict(schema), "components": {"schemas": strict(components)}}
    return jsonschema.Draft202012Validator(whole)


@cache
def _patterns() -> Sequence[tuple[Dialect, Route, re.Pattern[str]]]:
    return [
        (dialect, route, re.compile(_PART.sub("[^/]+", prefix + route.path)))
        for dialect in (*OWN, *DIALECTS.values())
        for prefix in dialect.prefixes
        for route in dialect.routes
    ]


def route_of(method: str, path: str) -> tuple[Dialect, Route] | None:
    """The route of an address, and its dialect; None where there is none of these dialects."""
    plain = path.partition("?")[0]
    for dialect, route, pattern in _patterns():
        if route.method == method and pattern.fullmatch(plain):
            return dialect, route
    return None


def events_of(body: bytes) -> Iterator[tuple[str, Any]]:
    """The name and the data of every event of a stream."""
    for frame in body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line[1:])
        if lines:
            yield lines["event"], json.loads(lines["data"])


def check_reply(method: str, path: str, status: int, media: str, body: bytes) -> None:
    """Raises AssertionError for an answer that is not as its route declares it."""
    dialect, route = route_of(method, path) or (None, None)
    if dialect is None or route is None or route.answer is None:
        return
    answer, where = route.answer, f"{method} {route.path}"
    if status not in (answer.status, *answer.other_statuses):
        assert status >= 400, f"{where} answered {status}"
        if dialect in OWN:
            check(answers.Error, json.loads(body))
        return
    assert media.partition(";")[0] == ("" if answer.kind is None else answer.media), where
    if answer.kind is None:
        assert body == b"", where
    elif answer.media == EVENTS:
        for name, data in events_of(body):
            check(answer.kind[name], data)
    elif answer.kind not in (bytes, str):
        check(answer.kind, json.loads(body))
