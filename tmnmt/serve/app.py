"""The application: every route of every dialect, with what all of them do alike. Who asks is looked
up, what is wrong is told in the dialect's own way, and a request whose client is gone ends."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as StarletteRoute

from tmnmt.errors import LockedError, ServerError, TmnmtError
from tmnmt.serve.asked import asked
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.own import OWN
from tmnmt.serve.page import PAGE
from tmnmt.serve.refused import Refused
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Service

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
CLOSED = 499  # of a request whose client went away, in counts and logs

log = logging.getLogger("tmnmt.serve")


class _Text(PathConvertor):
    """The rest of an address, line ends and all, which the path of Starlette leaves out."""

    regex = "(?s:.*)"


register_url_convertor("text", _Text())


def application(
    service: Service, dialects: Sequence[Dialect] = (OWN, PAGE, *DIALECTS)
) -> Starlette:
    """The server's application as ASGI has it."""
    endpoints = [
        StarletteRoute(
            prefix + route.path, _Endpoint(service, dialect, route, prefix), methods=[route.method]
        )
        for dialect in dialects
        for prefix in dialect.prefixes
        for route in dialect.routes
    ]
    app = Starlette(
        routes=endpoints, exception_handlers={HTTPException: _Elsewhere(service, dialects)}
    )
    app.router.redirect_slashes = False
    return app


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
        return _refusal((hosts or [OWN])[0], refused, headers)


def _first(path: str) -> str:
    """The first part of an address."""
    return path.split("/")[1] if "/" in path else ""


class _Endpoint:
    """One route of one dialect. An object that is no function: Starlette hands it scope, receive
    and send."""

    def __init__(self, service: Service, dialect: Dialect, route: Route, prefix: str) -> None:
        self._service, self._dialect, self._route = service, dialect, route
        self._name = f"{route.method} {prefix}{route.path}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request, start = Request(scope, receive, send), time.monotonic()
        who = list[str]()
        try:
            response = await self._answer(request, who)
        except Refused as refused:
            response = _refusal(self._dialect, refused)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            response = _refusal(self._dialect, self._failed(error))
        self._service.counts["requests", self._name, str(response.status_code)] += 1
        line = {
            "route": self._name,
            "status": response.status_code,
            "ms": round(1000 * (time.monotonic() - start), 1),
            "key": "".join(who),
        }
        log.info(json.dumps(line))
        if response.status_code != CLOSED:
            await response(scope, receive, send)

    async def _answer(self, request: Request, who: list[str]) -> Response:
        service, route = self._service, self._route
        if service.keys is None:
            _check_local(request)
        limits = service.limits
        most = limits.file if route.is_file else limits.body * route.room
        given = await asked(request, most, route.is_file)
        if route.role is not None:
            given.caller = service.caller(given.key)
            who.append(given.caller.name)
            given.caller.check(route.role)
        work = asyncio.ensure_future(route.handler(service, given))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return Response(status_code=CLOSED)
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))
        answer = work.result()
        return answer if isinstance(answer, Response) else Written(answer)

    def _failed(self, error: Exception) -> Refused:
        """What the client hears of a failure; what it is about is in the log, without texts."""
        if isinstance(error, LockedError):
            return Refused(503, "locked", "another program writes to this memory; try again", 5)
        if isinstance(error, ServerError):
            log.error("%s: %s", self._name, error)
            return Refused(503, "memory_away", "a memory, or the sessions, cannot be reached", 5)
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        where = ", ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
        log.error("%s: %s at %s", self._name, type(error).__name__, where)
        if isinstance(error, TmnmtError):
            return Refused(503, "unavailable", "a model or a memory cannot be used now", 5)
        return Refused(500, "internal", "the server failed; its log says where")


class Written(JSONResponse):
    """JSON in which all but control characters stands as it is."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()


async def _gone(request: Request) -> None:
    """Ends when the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _check_local(request: Request) -> None:
    """Without keys only programs of this machine may ask, and no page that a browser shows: neither
    by a name that leads here, nor by a form. Raises Refused."""
    host = request.headers.get("host", "")
    if _name_in(f"//{host}") not in LOOPBACK:
        raise Refused(403, "forbidden", "without keys this server answers to localhost alone")
    origin = request.headers.get("origin", "")
    scheme, _, site = origin.partition("://")
    if origin == "null" or (scheme.startswith("http") and site != host):
        raise Refused(403, "forbidden", "without keys this server answers no page of another site")


def _name_in(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # a bracket that does not close
        return None


def _refusal(
    dialect: Dialect, refused: Refused, headers: Mapping[str, str] | None = None
) -> Response:
    status, body = dialect.refusal(refused)
    own = dict(headers or {})
    if refused.retry_after:
        own["Retry-After"] = str(refused.retry_after)
    if status == 401:
        own["WWW-Authenticate"] = "Bearer"
    return Written(body, status, own)
