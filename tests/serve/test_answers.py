"""What the server says of its answers, and what it answers: every route of the own interface, and a
client that is generated from the description. `declared_answers` also checks every answer that any
other test gets."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from urllib.parse import urlencode

import pytest
from declared_answers import OWN, check, events_of, route_of
from fetched_clients import FETCHED, printed
from places import TESTS
from serving import Reply, Server, tiny_server
from tiny_model import PAIRS

from tmnmt.serve import answers
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.schemas import schema_of

PO = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "No."\nmsgstr ""\n'
PAIR = {"src": "It is void.", "tgt": "Il est nul."}


class Calls:
    """Calls of a server, and the routes that have answered them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.routes = set[tuple[str, str]]()

    def __call__(
        self,
        method: str,
        path: str,
        body: bytes | Mapping[str, Any] | None = None,
        **query: str,
    ) -> Reply:
        reply = self._server.ask(method, f"{path}?{urlencode(query)}" if query else path, body)
        assert reply.status < 300, reply.body
        found = route_of(method, path)
        assert found is not None
        self.routes.add((method, found[1].path))
        return reply

    def ended(self, job: str) -> None:
        """Returns when a job has ended."""
        deadline = time.monotonic() + 60
        while self("GET", f"/v1/jobs/{job}").json["state"] != "done":
            assert time.monotonic() < deadline
            time.sleep(0.02)


def translating(call: Calls) -> None:
    texts = {"texts": [PAIRS[0][0], "The State <b>shall</b> inform 30."], "format": "xml"}
    call("POST", "/v1/translate", {**texts, "explain": True, "options": {"nbest": 2}})
    reply = call("POST", "/v1/translate/stream", texts)
    assert [name for name, _ in events_of(reply.body)] == ["translation", "translation", "done"]
    for whole in (True, False):
        typed = {"text": "The State shall.", "prefix": "Le", "whole": whole}
        call("POST", "/v1/complete", typed)
    call("POST", "/v1/alternatives", {"text": "The State shall.", "prefix": "Le"})
    for path in (
        "models",
        "languages",
        "memories",
        "terms",
        "sessions",
        "openapi.json",
        "dialects",
    ):
        call("GET", f"/v1/{path}")
    for path in ("/health", "/ready", "/metrics", "/v1/dialects/deepl/openapi.json"):
        call("GET", path)
    call("POST", "/v1/admin/reload", {})
    call("GET", "/v1/usage")


def memories(call: Calls) -> None:
    (id,) = call("POST", "/v1/memories/own/segments", {"segments": [PAIR]}).json["ids"]
    call("GET", f"/v1/memories/own/segments/{id}")
    call("PUT", f"/v1/memories/own/segments/{id}", PAIR)
    call("POST", "/v1/memories/own/search", {"texts": [PAIR["src"]]})
    call("POST", "/v1/memories/own/concordance", {"text": "void"})
    call("DELETE", f"/v1/memories/own/segments/{id}")
    job = call("POST", "/v1/memories/law/export", {"format": "tsv"}).json["id"]
    call.ended(job)
    call("GET", f"/v1/jobs/{job}/file")
    job = call("POST", "/v1/memories/own/import", b"src\ttgt\nA b.\tC d.\n", name="a.tsv").json[
        "id"
    ]
    reply = call("GET", f"/v1/jobs/{job}/events")
    assert [name for name, _ in events_of(reply.body)][-1] == "done"
    call("DELETE", f"/v1/jobs/{job}")


def sessions(call: Calls) -> None:
    term = {"source": "State", "target": "Kanton"}
    glossary = {"name": "house", "source": "en", "target": "fr", "entries": [term]}
    id = call("POST", "/v1/terms", glossary).json["id"]
    call("DELETE", f"/v1/terms/{id}")
    session = f"/v1/sessions/{call('POST', '/v1/sessions', {'write_to': 'own'}).json['id']}"
    call("POST", f"{session}/terms", term)
    call("POST", f"{session}/terms/find", {"text": "The State shall."})
    pair = {"src": "It is <g1>void</g1>.", "tgt": "Il est <g1>nul</g1> 30.", "format": "xml"}
    call("POST", f"{session}/confirm", {**pair, "suggested": "Il est nul.", "keys": 3})
    for name in ("", "/terms", "/confirmed", "/save", "/review", "/tmx"):
        call("GET", session + name)
    texts = {"texts": ["It is void.", "The State shall."]}
    call("POST", f"{session}/translate", texts)
    call("POST", f"{session}/translate/stream", texts)
    for path in ("/v1/documents", f"{session}/documents"):
        call.ended(call("POST", path, PO, name="a.po").json["id"])
    call("POST", f"{session}/undo", {})
    call("DELETE", session)
    file = {"name": "a.po", "content": base64.b64encode(PO).decode()}
    call("POST", "/v1/documents/segments", file)
    call("POST", "/v1/documents/fill", {**file, "targets": ["Non."]})


def documents(call: Calls) -> None:
    file = {"name": "a.po", "content": base64.b64encode(PO).decode(), "write_to": ""}
    desk = f"/v1/desk/{call('POST', '/v1/desk', file).json['id']}"
    segment = f"{desk}/segments/1"
    call("PATCH", desk, {"project": "house"})
    call("PATCH", segment, {"version": 1, "text": "Non", "origin": "model", "quality": 0.5})
    comment = call("POST", f"{segment}/comments", {"text": "Really?"}).json["comments"][0]["id"]
    call("DELETE", f"{segment}/comments/{comment}")
    call("POST", f"{desk}/segments", {"changes": [{"number": 1, "version": 9, "text": "Non."}]})
    call("POST", f"{segment}/confirm", {"version": 9, "text": "Non.", "repetitions": True})
    call("PUT", f"{desk}/presence", {"number": 1, "tab": "a"})
    for path in ("", "/segments", "/segments/1/history", "/file", "/changes?since=0"):
        call("GET", desk + path)
    call("POST", f"{desk}/undo", {})
    call("GET", "/v1/desk")
    call("DELETE", desk)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Server]:
    with tiny_server(folder, ("law=law",), ("own=answers",)) as server:
        yield server


def test_every_route_answers_as_it_is_described(served: Server) -> None:
    call = Calls(served)
    translating(call)
    memories(call)
    sessions(call)
    documents(call)
    routes = {(route.method, route.path) for dialect in OWN for route in dialect.routes}
    assert call.routes == routes
    assert all(route.answer is not None for dialect in OWN for route in dialect.routes)


def test_an_answer_that_is_not_as_described_is_found() -> None:
    check(answers.Health, {"status": "ok", "models": 1})
    for value in (
        {"status": "ok"},
        {"status": "well", "models": 1},
        {"status": "ok", "models": "1"},
        {"status": "ok", "models": 1, "more": 1},
    ):
        with pytest.raises(AssertionError):
            check(answers.Health, value)
    with pytest.raises(AssertionError, match="models"):
        check(answers.Models, {"models": [{"name": "a"}]})


def test_refusals_are_as_described(served: Server) -> None:
    """Which `Server.ask` checks."""
    for method, path, body, status in (
        ("POST", "/v1/translate", {"texts": 1}, 400),
        ("GET", "/v1/sessions/none", None, 404),
        ("GET", "/v1/dialects/none/openapi.json", None, 404),
        ("GET", "/v1/desk/none", None, 404),
        ("POST", "/v1/documents/fill", {"content": "QQ==", "targets": ["<g9>a</g9>"]}, 400),
    ):
        assert served.ask(method, path, body).status == status


class Leaf(TypedDict):
    """A leaf.

    More of it."""

    text: str
    kind: NotRequired[Literal["a", "b"]]
    share: Annotated[float | None, "From 0 to 1."]
    leaves: list[Leaf]
    counts: dict[str, int]


def namesake() -> type:
    """Another type of the same name."""

    class Leaf(TypedDict):
        text: int

    return Leaf


def test_schemas_of_types() -> None:
    components: dict[str, Any] = {}
    assert schema_of(list[Leaf], components)["items"] == {"$ref": "#/components/schemas/Leaf"}
    leaf = components["Leaf"]
    assert leaf["description"] == "A leaf."
    assert leaf["required"] == ["text", "share", "leaves", "counts"]
    properties = leaf["properties"]
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"]}
    assert properties["share"] == {
        "anyOf": [{"type": "number"}, {"type": "null"}],
        "description": "From 0 to 1.",
    }
    assert properties["counts"]["additionalProperties"] == {"type": "integer"}
    for kind in (set[str], namesake()):
        with pytest.raises(TypeError):
            schema_of(kind, components)


def test_dialects_are_listed_and_described(served: Server) -> None:
    listed = served.get("/v1/dialects")["dialects"]
    assert [dialect["name"] for dialect in listed] == [*DIALECTS]
    for record in listed:
        document = served.get(record["description"])
        routes = {(m.upper(), path) for path, methods in document["paths"].items() for m in methods}
        dialect = DIALECTS[record["name"]]
        assert len(routes) == len(dialect.routes)
        assert all(path.startswith(record["prefixes"][0]) for _, path in routes)
        ids = [
            one["operationId"] for methods in document["paths"].values() for one in methods.values()
        ]
        assert len(set(ids)) == len(ids)


def test_every_route_of_every_dialect_says_what_it_answers() -> None:
    """All tests of dialects are held to that by `declared_answers`."""
    routes = [route for dialect in DIALECTS.values() for route in dialect.routes]
    silent = {route.handler.__name__ for route in routes if route.answer is None}
    assert silent == {"not_deleted", "no_batch", "no_estimate"}  # which refuse whatever is sent


def test_a_client_is_generated_from_the_description(served: Server, tmp_path: Path) -> None:
    python, script = str(FETCHED / "python" / "bin" / "python"), TESTS / "clients" / "generated.py"
    command = [python, str(script), served.url, str(tmp_path), PAIRS[0][0]]
    found = json.loads(printed("python", command))
    assert found["warnings"] == []
    assert found["text"] == PAIRS[0][1] and found["origin"] == "memory"
    assert found["match"] == PAIRS[0][0]
    assert found["confirmed"] == 1 and found["pairs"] == ["Il est nul."]
    assert found["job"] == "done" and 'msgid "No."' in found["file"]
    assert found["error"] == "not_found"
    assert sorted(found["described"]) == sorted(DIALECTS)
