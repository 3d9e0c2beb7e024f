"""The application: every route of every dialect, with what all of them do alike. Who asks is looked
up, what is wrong is told in the dialect's own way, and a request whose client is gone ends."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tmnmt.errors import LockedError, ServerError, TmnmtError
from tmnmt.serve import bodies
from tmnmt.serve.api_request import ApiRequest, FormFile, fields_of, head_of, is_in_parts
from tmnmt.serve.api_v1 import API_V1
from tmnmt.serve.bodies import SMALL, Lease, read_body
from tmnmt.serve.descriptions import DESCRIPTIONS
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.fields import LISTED, check_lists
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.page import PAGE
from tmnmt.serve.request_log import HEADER, begin_request, request_line
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Service
from tmnmt.serve.site import HEADERS

ENTRIES = 50  # of a list that are written at a time: some milliseconds, with all their tokens
CLIENT_CLOSED = 499  # of a request whose client went away, in counts and logs

log = logging.getLogger("tmnmt.serve")


class _Text(PathConvertor):
    """The rest of an address, line ends and all, which the path of Starlette leaves out."""

    regex = "(?s:.*)"


register_url_convertor("text", _Text())


def application(service: Service, dialects: Sequence[Dialect] | None = None) -> ASGIApp:
    """The server's application as ASGI has it.

    service: the service.
    dialects: the dialects that it speaks; None takes all."""
    if dialects is None:
        dialects = (API_V1, DESCRIPTIONS, PAGE, *DIALECTS.values())
    endpoints = [
        StarletteRoute(
            prefix + route.path, _Endpoint(service, dialect, route, prefix), methods=[route.method]
        )
        for dialect in dialects
        for prefix in dialect.prefixes
        for route in dialect.routes
    ]
    if find_spec("mcp") is not None:
        endpoints.append(StarletteRoute("/mcp", _Assistants(service), methods=["POST"]))
    app = Starlette(
        routes=endpoints, exception_handlers={HTTPException: _Elsewhere(service, dialects)}
    )
    app.router.redirect_slashes = False
    return _Gate(app, service)


class _Assistants:
    """The address of the Model Context Protocol. Its SDK is imported at the first request, since
    that takes a second, which few servers need."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._endpoint: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._endpoint is None:
            module = await asyncio.to_thread(import_module, "tmnmt.serve.mcp_server")
            self._endpoint = self._endpoint or module.McpEndpoint(self._service)
        await self._endpoint(scope, receive, send)


class _Gate:
    """What every answer says to browsers; and a request that tells its length in two ways is
    refused, since another server on its way may have read the other one."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent_id = Headers(scope=scope).get(HEADER, "") if scope["type"] == "http" else ""
        id_header = HEADER.lower().encode(), begin_request(sent_id).encode()

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                headers = [h for h in (*HEADERS, id_header) if h[0] not in names]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        app, names = self._app, {name for name, _ in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= names:
            refused = wrong("a request has Content-Length or Transfer-Encoding, not both")
            self._service.counts["requests", "", "400"] += 1
            app = refusal_response(API_V1, refused, {"Connection": "close"})
        with self._service.bound():
            await app(scope, receive, send_named)


class _Elsewhere:
    """What is answered where there is no such route: in the way of a dialect that begins so."""

    def __init__(self, service: Service, dialects: Sequence[Dialect]) -> None:
        self._service, self._dialects = service, dialects

    async def __call__(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        refused = Refused(404, "not_found", "there is no such address")
        if status == 405:
            refused = Refused(405, "wrong_method", "this address has other methods")
        begins = _first(request.scope["path"])
        hosts = [
            dialect
            for dialect in self._dialects
            for prefix in dialect.prefixes
            if any(_first(prefix + route.path) == begins for route in dialect.routes)
        ]
        self._service.counts["requests", "", str(refused.status)] += 1
        headers = error.headers if isinstance(error, HTTPException) else None
        return refusal_response((hosts or [API_V1])[0], refused, headers)


def _first(path: str) -> str:
    """The first part of an address."""
    return path.split("/")[1] if "/" in path else ""


@dataclass
class _Context:
    """What is found out while a request is answered.

    key: the name of its key.
    headers: what its answer says of the limits of its tenant."""

    key: str = ""
    headers: dict[str, str] = field(default_factory=dict)


class _Endpoint:
    """One route of one dialect. An object that is no function: Starlette hands it scope, receive
    and send."""

    def __init__(self, service: Service, dialect: Dialect, route: Route, prefix: str) -> None:
        self._service, self._dialect, self._route = service, dialect, route
        self._name = f"{route.method} {prefix}{route.path}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request, start = Request(scope, receive, send), time.monotonic()
        context = _Context()
        try:
            response = await self._answer(request, context)
        except Refused as refused:
            response = refusal_response(self._dialect, refused)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            response = refusal_response(self._dialect, self._failed(error))
        seconds = time.monotonic() - start
        self._service.counts["requests", self._name, str(response.status_code)] += 1
        self._service.durations.observe(self._name, seconds)
        line = {
            "route": self._name,
            "status": response.status_code,
            "ms": round(1000 * seconds, 1),
            "key": context.key,
        }
        request_line(line)
        response.headers.update(context.headers)
        if response.status_code != CLIENT_CLOSED:
            await response(scope, receive, send)

    async def _answer(self, request: Request, context: _Context) -> Response:
        if self._service.keys is None:
            route = self._route
            self._service.site.check_local(request.headers, route.is_page, route.is_shell)
        with Lease(self._service.room) as lease:
            call = await self._read(request, lease, context)
            return await self._handled(request, call)

    async def _read(self, request: Request, lease: Lease, context: _Context) -> ApiRequest:
        """The request. Who asks is known before its body is read, or before more of it is read than
        a small one where the dialect sends the key in it."""
        service, route = self._service, self._route
        call = head_of(request)
        if route.role is None:
            if route.check is not None:
                await route.check(service, call)
            if route.is_file:
                await self._read_body(request, call, lease)
            return call
        key, key_field = call.key, self._dialect.key_field
        is_inside = service.keys is not None and not key and bool(key_field)
        if is_inside:
            await self._read_body(request, call, lease, SMALL)
            key = str(call.body.get(key_field) or "")
        call.caller = service.caller(key)
        context.key = call.caller.name
        call.caller.check(route.role)
        service.usage.take_request(call.caller.tenant, context.headers)
        lease.assign(call.caller.tenant)
        if not is_inside:
            await self._read_body(request, call, lease)
        return call

    async def _read_body(
        self, request: Request, call: ApiRequest, lease: Lease, limit: int | None = None
    ) -> None:
        """Puts the body into the request. Raises Refused for one of more than `limit` bytes."""
        limits, route = self._service.limits, self._route
        kind = request.headers.get("content-type", "")
        has_file = route.is_file or (bool(route.file_field) and is_in_parts(kind))
        size = limits.file if has_file else limits.body * route.room
        seconds = bodies.SECONDS_OF_FILE if has_file else bodies.SECONDS
        body = await read_body(request, min(size, limit or size), seconds, lease)
        call.size = len(body)
        if route.is_file:
            call.raw = body
            return
        value = await self._service.readers.do(
            body, lambda body: fields_of(body, kind, route.file_field)
        )
        call.body = value if isinstance(value, dict) else {LISTED: value}
        if isinstance(call.body.get(route.file_field), FormFile):
            call.file = call.body.pop(route.file_field)

    async def _handled(self, request: Request, call: ApiRequest) -> Response:
        """The answer of the route; its work ends where the client goes away."""
        work = asyncio.ensure_future(handled(self._service, self._dialect, self._route, call))
        disconnect = asyncio.ensure_future(_await_disconnect(request))
        try:
            await asyncio.wait((work, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return Response(status_code=CLIENT_CLOSED)
        finally:
            disconnect.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))
        answer = work.result()
        return answer if isinstance(answer, Response) else await json_response(answer)

    def _failed(self, error: Exception) -> Refused:
        """What the client hears of a failure; what it is about is in the log, without texts."""
        if isinstance(error, LockedError):
            return Refused(503, "locked", "another program writes to this memory; try again", 5)
        if isinstance(error, ServerError):
            log.error("%s: %s", self._name, error)
            reason = "a memory, the sessions or a base cannot be reached"
            return Refused(503, "memory_away", reason, 5)
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        location = ", ".join(
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames
        )
        log.error("%s: %s at %s", self._name, type(error).__name__, location)
        if isinstance(error, TmnmtError):
            return Refused(503, "unavailable", "a model or a memory cannot be used now", 5)
        return Refused(500, "internal", "the server failed; its log says where")


async def handled(service: Service, dialect: Dialect, route: Route, call: ApiRequest) -> Any:
    """What a route answers to a request whose caller may use it. Fields that nobody reads are left
    out.

    service: what the server serves.
    dialect: the dialect of the route.
    route: the route.
    call: the request.

    Raises Refused for lists that are too long, and what the route raises."""
    if not dialect.is_strict:
        call.keep_fields([field.name for field in route.fields])
    check_lists(call.query, route.fields)
    check_lists(call.body, route.fields)
    if route.is_kept and route.role is not None:
        await service.keep(call.caller, call.size)
    return await route.handler(service, call)


class ReadableJSON(JSONResponse):
    """JSON in which all but control characters stands as it is."""

    def render(self, content: Any) -> bytes:
        """The bytes of an answer.

        content: the answer."""
        return _json_text(content).encode()


async def json_response(content: Any) -> Response:
    """An answer as JSON. A long list in it is written some entries at a time, and others have their
    turn between.

    content: the answer."""
    pieces = list[str]()
    for piece in json_pieces(content):
        pieces.append(piece)
        await asyncio.sleep(0)
    return Response("".join(pieces).encode(), media_type=ReadableJSON.media_type)


def json_pieces(content: Any) -> Iterator[str]:
    """The JSON of an answer, of which the long lists of an object come `ENTRIES` at a time.

    content: the answer."""
    if not isinstance(content, dict) or not any(map(_is_long, content.values())):
        yield _json_text(content)
        return
    for number, (name, value) in enumerate(content.items()):
        yield f"{', ' if number else '{'}{_json_text(name)}: "
        if not _is_long(value):
            yield _json_text(value)
            continue
        for start in range(0, len(value), ENTRIES):
            yield f"{', ' if start else '['}{_json_text(value[start : start + ENTRIES])[1:-1]}"
        yield "]"
    yield "}"


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > ENTRIES


def _json_text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


async def _await_disconnect(request: Request) -> None:
    """Ends when the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refusal_response(
    dialect: Dialect, refused: Refused, headers: Mapping[str, str] | None = None
) -> Response:
    """What answers a request that is refused.

    dialect: the dialect of the request.
    refused: what is refused, and why.
    headers: other headers of the answer."""
    status, body = dialect.refusal(refused)
    response_headers = dict(headers or {})
    if refused.retry_after:
        response_headers["Retry-After"] = str(refused.retry_after)
    if status == 401:
        response_headers["WWW-Authenticate"] = "Bearer"
    return ReadableJSON(body, status, response_headers)
