"""The Model Context Protocol as its official SDK speaks it, over HTTP and on standard input."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from places import ROOT
from serving import Server, tiny_server
from tiny_model import PAIRS

from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.mcp_tools import TOOLS, check_characters

PO = 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n\nmsgid "{0}"\nmsgstr "{1}"\n'


@asynccontextmanager
async def connected(url: str, key: str = "") -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await session.initialize()
        yield session


def tried(url: str, work: Callable[[ClientSession], Awaitable[Any]], key: str = "") -> Any:
    async def run() -> Any:
        async with connected(url, key) as session:
            return await work(session)

    return asyncio.run(run())


async def done(session: ClientSession, tool: str, /, **arguments: Any) -> Any:
    result = await session.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(session: ClientSession, tool: str, /, **arguments: Any) -> str:
    result = await session.call_tool(tool, arguments)
    assert result.is_error
    return str(result.structured_content["error"]["message"])


def test_tools_translate_search_and_learn(served: Server) -> None:
    async def work(session: ClientSession) -> None:
        listed = (await session.list_tools()).tools
        assert [tool.name for tool in listed] == [*TOOLS]
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed)
        answer = await done(session, "translate", texts=[PAIRS[0][0]], source="en", target="fr")
        assert answer["translations"][0]["text"] == PAIRS[0][1]
        memory = (await done(session, "list_memories"))["memories"][0]["name"]
        found = await done(session, "search_memory", memory=memory, texts=[PAIRS[0][0]])
        assert found["results"][0]["matches"][0]["tgt"] == PAIRS[0][1]
        assert await done(session, "concordance", memory=memory, text="Commission")
        begun = await done(session, "begin_session", name="A letter", write_to="")
        pair = {"src": "The cat sleeps.", "tgt": "Le chat dort."}
        await done(session, "confirm", session=begun["id"], **pair)
        texts = {"texts": [pair["src"]]}
        learned = await done(session, "translate_in_session", session=begun["id"], **texts)
        assert learned["translations"][0]["text"] == pair["tgt"]
        documents = {r.name: r.uri for r in (await session.list_resources()).resources}
        templates = (await session.list_resource_templates()).resource_templates
        (of_session,) = (template.uri_template for template in templates)
        assert of_session.format(session=begun["id"]) == documents["A letter"]
        read = await session.read_resource(documents["A letter"])
        assert pair["tgt"] in read.contents[0].model_dump()["text"]
        await done(session, "undo", session=begun["id"])
        assert not (await done(session, "list_confirmed", session=begun["id"]))["pairs"]

    tried(served.url, work)


def test_a_file_comes_back_as_it_came(served: Server) -> None:
    async def work(session: ClientSession) -> None:
        source = PO.format(PAIRS[0][0], "")
        made = await done(session, "translate_file", name="a.po", content=source)
        assert made["content"] == PO.format(*PAIRS[0])
        encoded = base64.b64encode(source.encode()).decode()
        made = await done(session, "translate_file", name="a.po", content_base64=encoded)
        assert base64.b64decode(made["content_base64"]).decode() == PO.format(*PAIRS[0])
        assert "a.xlf" not in await refused(session, "translate_file", name="a.xlf", content="<no>")

    tried(served.url, work)


def test_an_assistant_works_on_a_document_with_people(served: Server) -> None:
    source = PO.format(PAIRS[0][0], "") + 'msgid "Close"\nmsgstr "Fermer"\n'
    sent = {"name": "a.po", "content": base64.b64encode(source.encode()).decode(), "write_to": ""}
    id = served.ask("POST", "/v1/desk", sent).json["id"]

    async def work(session: ClientSession) -> None:
        tools = (await session.list_tools()).tools
        reading = {t.name for t in tools if t.annotations and t.annotations.read_only_hint}
        assert {"list_documents", "read_segments"} <= reading
        assert not reading & {"write_draft", "confirm_segment", "comment_segment"}
        assert id in [d["id"] for d in (await done(session, "list_documents"))["documents"]]
        read = await done(session, "read_segments", document=id, state="open")
        (first,) = read["segments"]
        assert (first["number"], first["state"]) == (1, "untouched")
        place = {"document": id, "number": 1, "version": first["version"]}
        draft = await done(session, "write_draft", **place, text="Rien.", origin="model")
        assert (draft["state"], draft["origin"]) == ("draft", "model")
        assert "somebody else" in await refused(session, "write_draft", **place, text="Non.")
        place |= {"version": draft["version"]}
        made = await done(session, "confirm_segment", **place, text=PAIRS[0][1])
        assert made["segment"]["confirmed"] == PAIRS[0][1]
        told = await done(session, "comment_segment", document=id, number=2, text="A verb?")
        assert told["comments"][0]["text"] == "A verb?"
        assert not (await done(session, "read_segments", document=id, state="open"))["segments"]
        assert "number must be" in await refused(
            session, "comment_segment", document=id, number="x", text="a"
        )

    tried(served.url, work)


def test_what_is_wrong_is_said(served: Server) -> None:
    async def work(session: ClientSession) -> None:
        assert "texts is needed" in await refused(session, "translate")
        assert "the fields are" in await refused(session, "translate", texts=[], colour="red")
        assert "not served" in await refused(session, "translate", texts=["a"], target="xx")
        assert "content" in await refused(session, "translate_file", name="a.po")
        assert "base64" in await refused(session, "translate_file", name="a.po", content_base64="%")
        assert "no tool" in await refused(session, "fly")
        assert "no such" in await refused(session, "search_memory", memory="none", texts=["a"])

    tried(served.url, work)


def test_halves_of_characters_are_refused() -> None:
    """As a client may write them in JSON; no answer could hold them."""
    with pytest.raises(Refused, match="half of a character"):
        check_characters({"texts": ["a", "\ud800"]})
    check_characters({"texts": ["\U0001f600"]})


def test_a_key_may_do_with_tools_what_it_may_do_elsewhere(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    reader = new_key(path, "reader", "read", None, ["law"])
    writer = new_key(path, "writer", "write", None, ["law", "own"])
    with tiny_server(folder, ("law=law",), ("own=own",), Keys.load(path)) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            reply = server.ask("POST", "/mcp", {}, headers=headers)
            assert (reply.status, reply.json["error"]["code"]) == (401, "no_key")

        async def read(session: ClientSession) -> None:
            assert len((await done(session, "list_memories"))["memories"]) == 1
            assert "this needs" in await refused(session, "translate", texts=["A."])
            with suppress(MCPError):
                assert not await session.read_resource("tmnmt://sessions/none")

        async def write(session: ClientSession) -> None:
            pair = {"src": "A new day.", "tgt": "Un jour nouveau."}
            assert (await done(session, "add_to_memory", memory="own", segments=[pair]))["ids"]
            found = await done(session, "translate", texts=[pair["src"]])
            assert found["translations"][0]["text"] == pair["tgt"]

        tried(server.url, read, reader)
        tried(server.url, write, writer)


def test_requests_that_are_none_are_refused(served: Server) -> None:
    assert served.ask("GET", "/mcp").status == 405
    assert served.ask("POST", "/mcp", {}, headers={"Host": "evil.example"}).status == 403
    assert served.ask("POST", "/mcp", {"texts": ["x" * 3_000_000]}).status == 413
    assert served.ask("POST", "/mcp", b"{", headers={"Accept": "application/json"}).status >= 400


def test_the_command_serves_standard_streams(folder: Path, tmp_path: Path) -> None:
    """As an assistant starts it."""
    arguments = ["-m", "tmnmt", "mcp", "--model", str(folder / "model")]
    arguments += ["--memory", f"law={folder / 'law'}", "--sessions", str(tmp_path / "s.db")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = StdioServerParameters(command=sys.executable, args=arguments, env=environment)

    async def run() -> None:
        async with stdio_client(command) as streams, ClientSession(*streams) as session:
            start: types.InitializeResult = await session.initialize()
            assert start.instructions and "memor" in start.instructions
            answer = await done(session, "translate", texts=[PAIRS[0][0]])
            assert answer["translations"][0]["text"] == PAIRS[0][1]

    asyncio.run(run())
