"""The server for assistants, by the Model Context Protocol: its official SDK, with the tools of
`tmnmt.serve.mcp_tools`, on standard input and output, or at /mcp over HTTP.

Over HTTP a request stands by itself: it has its key, and nothing is kept of it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from tmnmt import __version__
from tmnmt.errors import TmnmtError
from tmnmt.serve import bodies
from tmnmt.serve.api_request import head_of
from tmnmt.serve.api_v1 import API_V1
from tmnmt.serve.app import refusal_response
from tmnmt.serve.bodies import Lease, read_body
from tmnmt.serve.http_error import Refused
from tmnmt.serve.mcp_tools import ROUTES, TOOLS, Tool, answer, call_tool
from tmnmt.serve.service import Service

INSTRUCTIONS = (
    "tmnmt translates with the user's own translation memories, and says where every translation "
    "came from. Prefer a translation of origin memory: a person has approved it. For a document, "
    "begin a session, translate in it, and confirm only what the user has approved. Pass texts as "
    "they are, with their tags and placeholders: these come through."
)
SESSIONS = "tmnmt://sessions/"  # what the addresses of documents begin with

log = logging.getLogger("tmnmt.serve")


def mcp_server(service: Service) -> Server[Any]:
    """The server for assistants, which is not started yet.

    service: what it serves."""

    async def list_tools(
        context: ServerRequestContext[Any, Any], parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool_record(tool) for tool in TOOLS.values()])

    async def call(
        context: ServerRequestContext[Any, Any], parameters: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = parameters.arguments or {}
        try:
            value = await call_tool(service, parameters.name, arguments, _headers(context))
        except Refused as refused:
            return _result({"error": {"code": refused.code, "message": refused.message}}, True)
        except TmnmtError as error:
            log.error("mcp %s: %s", parameters.name, type(error).__name__)
            return _result({"error": {"code": "unavailable", "message": "try again later"}}, True)
        return _result(value if isinstance(value, dict) else {"result": value})

    async def list_resources(
        context: ServerRequestContext[Any, Any], parameters: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        record = await _read(service, "/v1/sessions", context, {})
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=session.get("name") or session["id"],
                    uri=SESSIONS + session["id"],
                    description="A document: the pairs that are confirmed in it.",
                    mime_type="application/json",
                )
                for session in record["sessions"]
            ]
        )

    async def list_resource_templates(
        context: ServerRequestContext[Any, Any], parameters: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="session",
            uri_template=SESSIONS + "{session}",
            description="A document: the pairs that are confirmed in it.",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        context: ServerRequestContext[Any, Any], parameters: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        session = parameters.uri.removeprefix(SESSIONS)
        path = {"session": session}
        record = await _read(service, "/v1/sessions/{session}/confirmed", context, path)
        text = json.dumps(record, ensure_ascii=False)
        return types.ReadResourceResult(
            contents=[
                types.TextResourceContents(
                    uri=parameters.uri, mime_type="application/json", text=text
                )
            ]
        )

    return Server(
        "tmnmt",
        version=__version__,
        title="tmnmt, translation that remembers",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
    )


async def serve_standard_streams(service: Service) -> None:
    """Serves one assistant on standard input and output, until the input ends.

    service: what is served."""
    server = mcp_server(service)
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


class McpEndpoint:
    """The same over HTTP, as ASGI has it. Keys are looked at before bodies are read."""

    def __init__(self, service: Service) -> None:
        """service: what is served."""
        self._service = service
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service, request = self._service, Request(scope, receive, send)
        status = 200
        try:
            with Lease(service.room) as lease:
                body = await self._read_body(request, lease)
                manager = await self._started()
                await manager.handle_request(scope, _replayed(body, receive), send)
        except Refused as refused:
            status = refused.status
            await refusal_response(API_V1, refused)(scope, receive, send)
        service.counts["requests", "POST /mcp", str(status)] += 1

    async def _read_body(self, request: Request, lease: Lease) -> bytes:
        """Raises Refused for a key that is none, and for a body that is too large."""
        service = self._service
        if service.keys is None:
            service.site.check_local(request.headers)
        tenant = service.caller(head_of(request).key).tenant
        service.usage.take_request(tenant, {})
        lease.assign(tenant)
        return await read_body(request, service.limits.body, bodies.SECONDS, lease)

    async def _started(self) -> StreamableHTTPSessionManager:
        """What answers, which runs as long as the loop does."""
        if self._manager is None:
            manager = StreamableHTTPSessionManager(
                mcp_server(self._service),
                json_response=True,
                stateless=True,
                max_request_body_size=self._service.limits.body,
            )
            is_ready = asyncio.Event()

            async def run() -> None:
                async with manager.run():
                    is_ready.set()
                    await asyncio.Event().wait()

            self._manager, self._running = manager, asyncio.create_task(run())
            await is_ready.wait()
        return self._manager


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read, and then what still comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _headers(context: ServerRequestContext[Any, Any]) -> Mapping[str, str]:
    """Those of the request over HTTP; none on standard input."""
    return context.request.headers if isinstance(context.request, Request) else {}


async def _read(
    service: Service, path: str, context: ServerRequestContext[Any, Any], parts: Mapping[str, str]
) -> Any:
    """What a route that only reads answers. Raises MCPError where it refuses."""
    try:
        return await answer(service, ROUTES["GET", path], _headers(context), parts)
    except Refused as refused:
        raise MCPError(types.INVALID_PARAMS, refused.message) from refused


def _tool_record(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=tool.only_reads,
        destructive_hint=tool.is_destructive,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=hints,
    )


def _result(value: dict[str, Any], is_error: bool = False) -> types.CallToolResult:
    text = types.TextContent(text=json.dumps(value, ensure_ascii=False))
    return types.CallToolResult(content=[text], structured_content=value, is_error=is_error)
