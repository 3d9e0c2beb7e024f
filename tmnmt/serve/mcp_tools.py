"""What assistants may do with the server, as tools: each is a route of the server's own interface,
under a name and a description that a language model can choose by."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_v1 import API_V1
from tmnmt.serve.app import handled
from tmnmt.serve.fields import Field, object_schema, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.routes import Method, Route
from tmnmt.serve.service import Service

LOOK_INTERVAL = 0.2  # seconds between two looks at a job
ROUTES = {(route.method, route.path): route for route in API_V1.routes}
_PARTS = {
    field.name: field
    for field in (
        Field("memory", "text", "Name of a memory, as list_memories gives it.", required=True),
        Field("session", "text", "Id of a session, as begin_session gives it.", required=True),
        Field("document", "text", "Id of a document, as list_documents gives it.", required=True),
        Field("number", "whole", "Number of a segment, from 1.", required=True, minimum=1),
    )
}


@dataclass(frozen=True)
class Tool:
    """A tool of an assistant.

    name: its name.
    description: what it does, for the language model that chooses it.
    method, path: the route that does it.
    is_destructive: whether it takes away what is there."""

    name: str
    description: str
    method: Method
    path: str
    is_destructive: bool = False

    @property
    def route(self) -> Route:
        """The route that does it."""
        return ROUTES[self.method, self.path]

    @property
    def parts(self) -> tuple[Field, ...]:
        """The arguments that stand in the path of the route."""
        names = [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
        return tuple(_PARTS[name] for name in names)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its arguments."""
        return (*self.parts, *self.route.fields)

    @property
    def schema(self) -> dict[str, Any]:
        """Its arguments as JSON Schema has them."""
        return object_schema(self.fields)

    @property
    def only_reads(self) -> bool:
        """Whether nothing is another after it."""
        return not self.route.is_kept and not self.is_destructive


_FILE = (
    Field("name", "text", "Name of the file, whose end says its kind, as in a.xlf.", required=True),
    Field("content", "text", "The file as text, if it is one in UTF-8."),
    Field("content_base64", "text", "The bytes of the file as base64; in place of content."),
)


@dataclass(frozen=True)
class FileTool(Tool):
    """The tool that translates a file. It waits for the job that does it."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its arguments."""
        rest = [field for field in self.route.fields if field.name != "name"]
        return (*_FILE, *rest)


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "translate",
            "Translate texts with the user's translation memories and terms. Each answer has the "
            "segments of a text, each with its origin: memory (as a person has translated it), "
            "adapted, or model; with explain, also with the memory that every word came from. "
            "Checks name numbers, placeholders and terms that are lacking.",
            "POST",
            "/v1/translate",
        ),
        FileTool(
            "translate_file",
            "Translate a whole file, such as XLIFF, PO, TMX, HTML, Markdown, JSON or DOCX, and get "
            "the same file with translations; all else in it stays as it is.",
            "POST",
            "/v1/documents",
        ),
        Tool(
            "search_memory",
            "Find segments of a translation memory that are similar to texts, with their "
            "translations and a score from 0 to 1.",
            "POST",
            "/v1/memories/{memory}/search",
        ),
        Tool(
            "concordance",
            "Find where a word or a phrase stands in a translation memory, and how people have "
            "translated it there.",
            "POST",
            "/v1/memories/{memory}/concordance",
        ),
        Tool(
            "add_to_memory",
            "Add pairs, each of a source and its translation, to a translation memory for good.",
            "POST",
            "/v1/memories/{memory}/segments",
        ),
        Tool(
            "list_memories",
            "List the translation memories with their languages and sizes.",
            "GET",
            "/v1/memories",
        ),
        Tool(
            "list_languages",
            "List the pairs of languages that can be translated.",
            "GET",
            "/v1/languages",
        ),
        Tool("list_terms", "List the lists of terms, and the glossaries.", "GET", "/v1/terms"),
        Tool(
            "add_terms",
            "Make a glossary of terms with their translations, which translations then keep to.",
            "POST",
            "/v1/terms",
        ),
        Tool(
            "begin_session",
            "Begin a document that learns: every pair that is confirmed in it is read by all "
            "translations that follow in it. Gives the id of the session.",
            "POST",
            "/v1/sessions",
        ),
        Tool(
            "translate_in_session",
            "Translate the next texts of a session's document, with all that was confirmed in it.",
            "POST",
            "/v1/sessions/{session}/translate",
        ),
        Tool(
            "confirm",
            "Confirm a translation in a session: the user has approved it, and what follows learns "
            "from it. Call it only for what a person has approved.",
            "POST",
            "/v1/sessions/{session}/confirm",
        ),
        Tool(
            "undo",
            "Take back what was confirmed last in a session, or what was confirmed for a segment.",
            "POST",
            "/v1/sessions/{session}/undo",
            is_destructive=True,
        ),
        Tool(
            "list_confirmed",
            "List the pairs that are confirmed in a session.",
            "GET",
            "/v1/sessions/{session}/confirmed",
        ),
        Tool(
            "list_documents",
            "List the documents that people work on together, each with its id, its languages, and "
            "how many words and segments of it are in which state.",
            "GET",
            "/v1/desk",
        ),
        Tool(
            "read_segments",
            "Read segments of a document that people work on: source, draft, what is confirmed, "
            "state, what the checks found, comments, and the version that a change names. They can "
            "be chosen by state, by text, or by whether checks found something.",
            "GET",
            "/v1/desk/{document}/segments",
        ),
        Tool(
            "write_draft",
            "Write a draft of a segment's translation, which a person then looks at. Tags such as "
            "<g1> and <x2/> stand in it as in the source. Say model as its origin. version is that "
            "of the segment as it was read; where somebody else was faster, nothing is changed.",
            "PATCH",
            "/v1/desk/{document}/segments/{number}",
        ),
        Tool(
            "confirm_segment",
            "Confirm the translation of a segment of a document: the user has approved it, and "
            "what follows learns from it. Call it only for what a person has approved.",
            "POST",
            "/v1/desk/{document}/segments/{number}/confirm",
        ),
        Tool(
            "comment_segment",
            "Add a comment to a segment of a document, for those who work on it, such as a doubt.",
            "POST",
            "/v1/desk/{document}/segments/{number}/comments",
        ),
    )
}


async def call_tool(
    service: Service, name: str, arguments: Mapping[str, Any], headers: Mapping[str, str]
) -> Any:
    """Does what a tool does. Returns its answer, as JSON has it.

    service: what the server serves.
    name: the name of the tool.
    arguments: its arguments by name.
    headers: those of the request, which may have a key.

    Raises Refused where it cannot be done."""
    tool = TOOLS.get(name)
    if tool is None:
        raise wrong(f"there is no tool {name!r}; the tools are {', '.join(TOOLS)}")
    check_characters(arguments)
    values = read(arguments, tool.fields)
    values = {key: value for key, value in values.items() if arguments.get(key) is not None}
    if isinstance(tool, FileTool):
        return await _translate_file(service, tool, values, headers)
    path = {part.name: str(values.pop(part.name)) for part in tool.parts}
    return await answer(service, tool.route, headers, path, values)


def check_characters(arguments: Mapping[str, Any]) -> None:
    """Raises Refused for arguments with halves of characters, which no answer can hold.

    arguments: the arguments."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise wrong("a text has half of a character") from error


async def _translate_file(
    service: Service, tool: FileTool, values: dict[str, Any], headers: Mapping[str, str]
) -> Any:
    """The job with the file that it has made: as text where it came as text."""
    text, encoded = values.pop("content", None), values.pop("content_base64", None)
    if (text is None) == (encoded is None):
        raise wrong("content or content_base64 is needed, and not both")
    content = _decoded(encoded) if encoded is not None else text.encode()
    if len(content) > service.limits.file:
        raise Refused(413, "too_large", f"a file may have {service.limits.file:,} bytes")
    job = await answer(service, tool.route, headers, {}, values, content)
    path = {"job": job["id"]}
    look, fetch = ROUTES["GET", "/v1/jobs/{job}"], ROUTES["GET", "/v1/jobs/{job}/file"]
    forget = ROUTES["DELETE", "/v1/jobs/{job}"]
    try:
        while job["state"] not in ("done", "failed"):
            await asyncio.sleep(LOOK_INTERVAL)
            job = await answer(service, look, headers, path)
        if job["state"] == "failed":
            raise wrong(str(job.get("error") or "the file cannot be translated"))
        made = await answer(service, fetch, headers, path)
    finally:
        await answer(service, forget, headers, path)
    if encoded is None:
        return {"job": job, "content": made.decode("utf-8-sig")}
    return {"job": job, "content_base64": base64.b64encode(made).decode("ascii")}


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise wrong("content_base64 is no base64") from error


async def answer(
    service: Service,
    route: Route,
    headers: Mapping[str, str],
    path: Mapping[str, str],
    values: Mapping[str, Any] | None = None,
    content: bytes = b"",
) -> Any:
    """What a route answers: a value of JSON, or the bytes of a file.

    service: what the server serves.
    route: the route, of the server's own interface.
    headers: those of the request, which may have a key.
    path: the parts of the route's path by name.
    values: the fields by name.
    content: the bytes of a file that is sent.

    Raises Refused where the key may not use the route, and what the route raises."""
    scope = {
        "type": "http",
        "method": route.method,
        "scheme": "http",
        "path": route.path,
        "path_params": dict(path),
        "query_string": b"",
        "headers": [(key.lower().encode(), text.encode()) for key, text in headers.items()],
    }
    call = ApiRequest(Request(scope), {})
    call.caller = service.caller(call.key)
    if route.role is not None:
        call.caller.check(route.role)
    if route.is_file or route.method == "GET":
        call.query = {**(values or {})}
    else:
        call.body = {**(values or {})}
    call.raw = content
    call.size = len(content) or len(json.dumps(call.body))
    response = await handled(service, API_V1, route, call)
    if not isinstance(response, Response):
        return response
    body = bytes(response.body)
    is_json = (response.media_type or "").endswith("json")
    return json.loads(body) if is_json and body else body
