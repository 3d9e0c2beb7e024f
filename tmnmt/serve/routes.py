"""What a dialect is to the server: routes, and its own way to say no."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.fields import Field
from tmnmt.serve.http_error import Refused
from tmnmt.serve.roles import Need
from tmnmt.serve.service import Service

Handler = Callable[[Service, ApiRequest], Awaitable[Any]]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
BINARY = "application/octet-stream"
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class RouteAnswer:
    """What a route answers where it refuses nothing.

    kind: the type of its JSON, as `tmnmt.serve.schemas` reads it; str of a text, bytes of a file,
    None where there is no body. Of events, the types of their data by their names.
    status: the status of HTTP.
    media: the media type.
    other_statuses: other statuses with the same body."""

    kind: Any
    status: int = 200
    media: str = "application/json"
    other_statuses: tuple[int, ...] = ()


FILE = RouteAnswer(bytes, media=BINARY)
EMPTY = RouteAnswer(None, 204)


@dataclass(frozen=True)
class Route:
    """One address of a dialect.

    method: the method of HTTP.
    path: the address behind the dialect's own, with {name} for a part, {name:text} for the rest.
    handler: gives what is written as JSON, or a response; its docstring says what it does.
    role: the role or right that a key must have; None where no key is needed.
    fields: the fields of the body, or of the query of a GET.
    is_file: whether the body is a file, and the fields are of the query.
    file_field: the field of a form in parts that is a file; "" where there is none.
    room: how many times as many bytes as the server's limit the body may have.
    answer: what it answers, for the OpenAPI document and for the test that checks every answer;
    None where that is not declared.
    check: raises Refused where the body of a route without a role is not to be read; None reads it.
    is_page: whether it answers with a page, to which any link may lead.
    is_shell: whether it answers with a part of the page that holds nothing of anybody. That is
    given under every address, so that the page can say what is wrong with its own.
    keeps: whether what is sent is kept on the server; None where it is kept if the route needs the
    role write, or is sent a file."""

    method: Method
    path: str
    handler: Handler
    role: Need | None = "translate"
    fields: tuple[Field, ...] = ()
    is_file: bool = False
    file_field: str = ""
    room: int = 1
    answer: RouteAnswer | None = None
    check: Handler | None = None
    is_page: bool = False
    is_shell: bool = False
    keeps: bool | None = None

    @property
    def is_kept(self) -> bool:
        """Whether what the request sends is kept for the caller's tenant."""
        if self.keeps is not None:
            return self.keeps
        return self.method in ("POST", "PUT", "PATCH") and (self.role == "write" or self.is_file)


@dataclass(frozen=True)
class Dialect:
    """An interface that other tools speak.

    name: its name.
    prefixes: where its routes begin; "" is the root.
    routes: its routes.
    refusal: gives what is written as JSON where a request is refused, and its status.
    key_field: the field of a body that has the key, where the dialect sends it so; "" where it
    sends it in a header or in the query.
    is_strict: whether a field that is in no table is refused; otherwise nothing sees it."""

    name: str
    prefixes: tuple[str, ...]
    routes: tuple[Route, ...]
    refusal: Callable[[Refused], tuple[int, Mapping[str, Any]]]
    key_field: str = ""
    is_strict: bool = False
