"""The OpenAPI documents of dialects, made from the tables that read their requests and from the
types of their answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tmnmt import __version__
from tmnmt.serve.fields import Field, object_schema
from tmnmt.serve.http_error import wrong
from tmnmt.serve.keys import key_with
from tmnmt.serve.routes import BINARY, EVENTS, Dialect, Route, RouteAnswer
from tmnmt.serve.schemas import Schema, Schemas, schema_of

_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_PARTS = "multipart/form-data"


def document(title: str, dialects: Iterable[Dialect], error: type | None = None) -> dict[str, Any]:
    """OpenAPI 3.1. A dialect with several prefixes is described under the first.

    title: what the interface is called.
    dialects: what is described, together.
    error: the type of what is answered where a request is refused; None shows an example of it."""
    paths, schemas = dict[str, dict[str, Any]](), dict[str, Schema]()
    for dialect in dialects:
        refusal = _refusal(dialect, error, schemas)
        for route in dialect.routes:
            path = dialect.prefixes[0] + re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)
            operation = _operation(dialect, route, path, refusal, schemas)
            paths.setdefault(path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _refusal(dialect: Dialect, error: type | None, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"type": "object"}}
    if error is not None:
        content = {"schema": schema_of(error, schemas)}
    else:
        content["example"] = dialect.refusal(wrong("what is wrong, in words"))[1]
    return {"description": "Refused.", "content": {_JSON: content}}


def _operation(
    dialect: Dialect, route: Route, path: str, refusal: Mapping[str, Any], schemas: Schemas
) -> dict[str, Any]:
    words = re.sub(r"[^a-z0-9]+", "_", re.sub("[{}]", "", path.lower()))
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{words}",
        "summary": " ".join((route.handler.__doc__ or "").split()),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)", path)
        ],
        "responses": {**answer_responses(route.answer, schemas), "default": refusal},
    }
    if route.role is not None:
        operation["security"] = [{"key": []}]
        operation["description"] = f"Where the server has keys: {key_with(route.role)}."
    if route.is_file or route.method == "GET":
        operation["parameters"] += [*map(_parameter, route.fields)]
    if route.is_file:
        file = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": True, "content": {BINARY: file}}
    elif route.file_field:
        operation["requestBody"] = _form_body(route.fields, route.file_field)
    elif route.fields and route.method != "GET":
        operation["requestBody"] = _request_body(route.fields, dialect.is_strict)
    return operation


def answer_responses(answer: RouteAnswer | None, schemas: Schemas) -> dict[str, Any]:
    """The responses of a route where it refuses nothing, by their statuses.

    answer: what it answers; None where this is not declared.
    schemas: where the schemas of named types are put."""
    if answer is None:
        return {"200": {"description": "Done."}}
    response: dict[str, Any] = {"description": "Done."}
    if answer.media == EVENTS:
        events = {name: schema_of(kind, schemas) for name, kind in answer.kind.items()}
        names = ", ".join(events)
        schema = {
            "type": "string",
            "description": f"Server-sent events: {names}.",
            "x-events": events,
        }
        response["content"] = {EVENTS: {"schema": schema}}
    elif answer.kind is not None:
        response["content"] = {answer.media: {"schema": schema_of(answer.kind, schemas)}}
    return {str(status): response for status in (answer.status, *answer.other_statuses)}


def _parameter(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "in": "query",
        "required": field.required,
        "schema": field.schema,
    }


def _request_body(fields: Sequence[Field], is_strict: bool) -> dict[str, Any]:
    """Dialects take a form in place of JSON, and leave out fields that they do not know."""
    schema = object_schema(fields)
    if is_strict:
        return {"required": True, "content": {_JSON: {"schema": schema}}}
    schema = {name: value for name, value in schema.items() if name != "additionalProperties"}
    return {"required": True, "content": {media: {"schema": schema} for media in (_JSON, _FORM)}}


def _form_body(fields: Sequence[Field], file_field: str) -> dict[str, Any]:
    """A form in parts with a file."""
    schema = object_schema(fields)
    file = {"type": "string", "format": "binary", "description": "The file."}
    schema["properties"] = {**schema["properties"], file_field: file}
    return {"required": True, "content": {_PARTS: {"schema": schema}}}
