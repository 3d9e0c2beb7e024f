"""The OpenAPI document of a dialect, made from the tables that read its requests."""

from __future__ import annotations

import re
from typing import Any

from tmnmt import __version__
from tmnmt.serve.events import MEDIA_TYPE
from tmnmt.serve.fields import object_schema
from tmnmt.serve.keys import key_with
from tmnmt.serve.routes import Dialect, Route

_FILE = "application/octet-stream"
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        },
        "checks": {
            "type": "array",
            "description": "Of the code checks: what was found, the name of the check and where.",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "what": {"type": "string"}},
                "required": ["name", "what"],
            },
        },
    },
    "required": ["error"],
}


def document(dialect: Dialect) -> dict[str, Any]:
    """OpenAPI 3.1. Of answers it says no more than that they are JSON, or events; docs/serve.md has
    them.

    dialect: the dialect that is described."""
    paths: dict[str, dict[str, Any]] = {}
    for route in dialect.routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "tmnmt", "version": __version__},
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    text = " ".join((route.handler.__doc__ or "").split())
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-z0-9]+', '_', route.path)}".strip("_"),
        "summary": text,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)", route.path)
        ],
        "responses": {
            "200": {"description": "Done."},
            "default": {
                "description": "Refused.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if route.is_stream:
        operation["responses"]["200"]["content"] = {MEDIA_TYPE: {"schema": {"type": "string"}}}
    if route.role is not None:
        operation["security"] = [{"key": []}]
        operation["description"] = f"Where the server has keys: {key_with(route.role)}."
    if route.is_file:
        queried = [
            {"name": f.name, "in": "query", "required": f.required, "schema": f.schema}
            for f in route.fields
        ]
        operation["parameters"] += queried
        file = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": True, "content": {_FILE: file}}
    elif route.fields:
        schema = object_schema(route.fields)
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation
