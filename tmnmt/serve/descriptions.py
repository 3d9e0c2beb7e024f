"""Where the server describes its interfaces: its own, and those of other servers that it speaks."""

from __future__ import annotations

import re
from typing import Any

from tmnmt.serve import answers
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_v1 import API_V1, refusal
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.http_error import unknown
from tmnmt.serve.openapi import document
from tmnmt.serve.routes import Dialect, Route, RouteAnswer
from tmnmt.serve.service import Service


async def openapi(service: Service, call: ApiRequest) -> Any:
    """This interface as an OpenAPI document."""
    return document("tmnmt", [API_V1, DESCRIPTIONS], answers.Error)


async def dialects(service: Service, call: ApiRequest) -> Any:
    """The interfaces of other servers that this one speaks, and where each is described."""
    return {
        "dialects": [
            {
                "name": dialect.name,
                "prefixes": [*dialect.prefixes],
                "description": f"/v1/dialects/{_label(dialect)}/openapi.json",
            }
            for dialect in DIALECTS.values()
        ]
    }


async def dialect_openapi(service: Service, call: ApiRequest) -> Any:
    """One of them as an OpenAPI document."""
    for dialect in DIALECTS.values():
        if _label(dialect) == call.path["dialect"]:
            return document(f"tmnmt as {dialect.name}", [dialect])
    raise unknown("there is no such dialect")


def _label(dialect: Dialect) -> str:
    """Its name as addresses have it."""
    return re.sub(r"[^a-z0-9]+", "-", dialect.name.lower()).strip("-")


_DOCUMENT = RouteAnswer(answers.OpenApi)
DESCRIPTIONS = Dialect(
    "descriptions",
    ("",),
    (
        Route("GET", "/v1/openapi.json", openapi, None, answer=_DOCUMENT),
        Route("GET", "/v1/dialects", dialects, None, answer=RouteAnswer(answers.Dialects)),
        Route(
            "GET", "/v1/dialects/{dialect}/openapi.json", dialect_openapi, None, answer=_DOCUMENT
        ),
    ),
    refusal,
    is_strict=True,
)
