"""No request holds up the others: who asks is known before a body is read, bodies have room for
all, large ones are read beside the loop, and every list of every table has an end."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest
from health_watch import HealthWatch, idle_server
from serving import Reply, Server, tiny_server

from tmnmt.serve import json_reader
from tmnmt.serve.api_v1 import API_V1, BEGIN, TRANSLATE
from tmnmt.serve.app import json_pieces
from tmnmt.serve.bodies import SMALL, Room, json_of
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.fields import LISTS, Field
from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import Caller, Keys, new_key
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Limits

SLOWEST = 0.2  # seconds that `/health` may take meanwhile
TRIES = 3  # since other programs of this machine may hold up the one and not the other
LIMITS = Limits(seconds=2)
VALUES: Mapping[str, Any] = {
    "source": "en",
    "target": "fr",
    "source_lang": "en",
    "target_lang": "fr",
    "csv": "en,fr\nState,État",
    "entries": "State\tÉtat",
    "content": "Tm8u",
}
PARTS = {"{memory}": "own", "{source}": "en", "{target}": "fr", "{id}": "1"}


class ListField(NamedTuple):
    """A field of a route that is a list. `inside`: the list whose entries have it."""

    dialect: Dialect
    route: Route
    field: Field
    inside: Field | None = None

    @property
    def id(self) -> str:
        name = f"{self.inside.name}.{self.field.name}" if self.inside else self.field.name
        return f"{self.route.method} {self.dialect.prefixes[0]}{self.route.path} {name}"

    def path(self, session: str) -> str:
        path = self.dialect.prefixes[0] + self.route.path
        for part, value in {**PARTS, "{session}": session}.items():
            path = path.replace(part, value)
        return path.replace("{name}", "x").replace("{text:text}", "No.")


def list_fields() -> Iterator[ListField]:
    for dialect in (API_V1, *DIALECTS.values()):
        for route in dialect.routes:
            for field in route.fields:
                if field.kind in LISTS:
                    yield ListField(dialect, route, field)
                for one in field.inside:
                    if one.kind in LISTS:
                        yield ListField(dialect, route, one, field)


EVERY = list(list_fields())
IN_BODY = [one for one in EVERY if one.route.method != "GET" and not one.route.is_file]


def value_of(field: Field) -> Any:
    """Something that a field may be."""
    if field.kind in LISTS and field.name not in VALUES:
        return list_of(field, 1)
    if field.kind == "object":
        return {}
    return VALUES.get(field.name, field.choices[0] if field.choices else "No.")


def list_of(field: Field, count: int) -> Any:
    match field.kind:
        case "names":
            return ",".join(f"n{n:07}" for n in range(count))
        case "lines":
            return "\n".join(f"a{n:06}\tb" for n in range(count))
        case "texts":
            name = field.name in ("memories", "terms", "glossary_ids")
            return [f"n{n:07}" if name else "" for n in range(count)]
    inside = field.inside or (Field("source", "text", ""), Field("target", "text", ""))
    needed = {one.name: value_of(one) for one in inside if one.required or not field.inside}
    return [needed] * count


def request_of(case: ListField, count: int) -> bytes:
    """A body whose list has so many entries, with all else that the route needs."""
    table = case.route.fields
    needed = {one.name: value_of(one) for one in table if one.required and one.name != ""}
    listed = list_of(case.field, count)
    if case.inside is not None:
        listed = [{**list_of(case.inside, 1)[0], case.field.name: listed}]
    if case.field.name == "":
        return json.dumps(listed).encode()
    name = case.inside.name if case.inside is not None else case.field.name
    return json.dumps({**needed, name: listed}).encode()


def full_body(case: ListField) -> bytes:
    """As many entries as the limit of the body has room for."""
    size = LIMITS.body * case.route.room
    empty, more = (len(request_of(case, count)) for count in (1_000, 2_000))
    count = 1_000 + (size - empty) * 1_000 // (more - empty)
    body = request_of(case, count - 1)
    assert 0.99 * size < len(body) <= size
    return body


IDLE = list[int]()  # the port of a server that has nothing to do


@pytest.fixture(scope="module", autouse=True)
def _idle() -> Iterator[None]:
    with idle_server() as port:
        IDLE.append(port)
        yield
        IDLE.clear()


def delay(server: Server, work: Callable[[], Any]) -> float:
    """Seconds by which the slowest `/health` takes longer than the slowest answer of an idle server
    while something is done: other programs of this machine hold up both."""
    watch = HealthWatch(urlsplit(server.url).port or 0)
    with HealthWatch(IDLE[0]) as idle, watch:
        work()
    return watch.longest - idle.longest


def is_healthy(server: Server, work: Callable[[], Any]) -> bool:
    return any(delay(server, work) < SLOWEST for _ in range(TRIES))


@pytest.fixture(scope="module")
def bounded(folder: Path) -> Iterator[Server]:
    with tiny_server(folder, ("law=law",), ("own=bounded",), limits=LIMITS) as server:
        yield server


@pytest.fixture(scope="module")
def session(bounded: Server) -> str:
    return str(bounded.ask("POST", "/v1/sessions", {}).json["id"])


def test_a_list_without_an_end_cannot_be_declared() -> None:
    for kind in LISTS:
        with pytest.raises(ValueError, match="how many entries"):
            Field("x", kind, "")
    assert len(IN_BODY) > 30


@pytest.mark.parametrize("case", IN_BODY, ids=lambda case: case.id)
def test_no_list_holds_up_the_server(bounded: Server, session: str, case: ListField) -> None:
    """At the limit of the body, and with as many entries as it may have."""
    path, method = case.path(session), case.route.method
    kind = {"Content-Type": "application/json"}
    replies = list[Reply]()

    def ask(body: bytes) -> None:
        replies.append(bounded.ask(method, path, body, headers=kind))

    for body in (full_body(case), request_of(case, case.field.entries)):
        assert is_healthy(bounded, lambda body=body: ask(body)), case.id  # type: ignore[misc]
    assert all(reply.status < 500 or reply.status == 503 for reply in replies)


@pytest.mark.parametrize("case", IN_BODY, ids=lambda case: case.id)
def test_every_list_has_an_end(bounded: Server, session: str, case: ListField) -> None:
    body = request_of(case, case.field.entries + 1)
    headers = {"Content-Type": "application/json"}
    reply = bounded.ask(case.route.method, case.path(session), body, headers=headers)
    assert reply.status == 413 and f"{case.field.entries:,} entries".encode() in reply.body


def test_names_of_a_query_have_an_end(bounded: Server) -> None:
    for name in ("memories", "terms"):
        query = urlencode({"name": "x.txt", name: "law," * 200})
        assert bounded.ask("POST", f"/v1/documents?{query}", b"No.").status == 413


def test_a_list_that_no_table_has_is_not_read(served: Server) -> None:
    body = {"q": "No.", "source": "en", "target": "fr", "other": ["x"] * 100_000}
    assert served.ask("POST", "/libretranslate/translate", body).status == 200
    own = {"texts": ["No."], "other": ["x"] * 100_000}
    assert served.ask("POST", "/v1/translate", own).status in (400, 413)


def test_what_is_named_twice_is_read_once(served: Server) -> None:
    body = {"texts": ["No."], "memories": ["law"] * 100}
    reply = served.ask("POST", "/v1/sessions", {"memories": ["law"] * 100})
    assert reply.json["memories"].count("law") == 1
    for field in (*TRANSLATE, *BEGIN):
        if field.name in ("memories", "terms", "ignore_tags"):
            assert field.read(["law", "own", "law"]) == ["law", "own"]
    assert served.ask("POST", "/v1/translate", body).status == 200


def test_glossaries_together_have_an_end(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from tmnmt.serve import terms

    monkeypatch.setattr(terms, "MOST_TERMS", 3)
    made = []
    for word in ("State", "Canton"):
        entries = [{"source": f"{word}{n}", "target": "x"} for n in range(2)]
        body = {"name": word, "source": "en", "target": "fr", "entries": entries}
        made.append(served.ask("POST", "/v1/terms", body).json["id"])
    for ids, status in ((made[:1] * 50, 200), (made, 413)):
        asks = {"texts": ["No."], "terms": ids}
        assert served.ask("POST", "/v1/translate", asks).status == status
    for id in made:
        assert served.ask("DELETE", f"/v1/terms/{id}").status == 204


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Keys, str]:
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    key = new_key(path, "one", "write", None, ["law", "own"])
    return Keys.load(path), key


@pytest.fixture(scope="module")
def keyed(folder: Path, keys: tuple[Keys, str]) -> Iterator[Server]:
    limits = Limits(file=400_000, bodies=1_000_000)
    with tiny_server(folder, ("law=law",), ("own=keyed",), keys[0], limits) as server:
        yield server


def answer_to(server: Server, head: str, part: bytes = b"") -> str:
    """What comes back of a request whose body does not go on."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as to:
        to.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + part)
        return to.recv(4096).decode()


ROUTES = [
    (dialect, f"{route.method} {dialect.prefixes[0]}{route.path}")
    for dialect in (API_V1, *DIALECTS.values())
    for route in dialect.routes
    if route.role is not None
]


def test_no_body_is_read_before_the_key(keyed: Server) -> None:
    """Of any route, where the body does not come: its answer does."""
    for dialect, route in ROUTES:
        head = f"{route} HTTP/1.1\nHost: localhost\nContent-Length: {SMALL + 1}"
        status = answer_to(keyed, head.replace("{", "").replace("}", "")).split()[1]
        assert status == ("413" if dialect.key_field else str(dialect.refusal(NO_KEY)[0])), route


NO_KEY = Refused(401, "no_key", "")


def test_the_dialects_whose_key_is_in_the_body_go_on(keyed: Server, keys: tuple[Keys, str]) -> None:
    translate = {"q": "No.", "source": "en", "target": "fr", "api_key": keys[1]}
    assert keyed.ask("POST", "/libretranslate/translate", translate).status == 200
    assert keyed.ask("POST", "/libretranslate/translate", form=translate).status == 200
    pair = {"q": "No.", "langpair": "en|fr", "key": keys[1]}
    assert keyed.ask("POST", "/mymemory/get", form=pair).status == 200
    assert keyed.ask("POST", "/apertium/translate", form=pair).status == 200
    # a wrong key in a body that is too large is not looked at
    large = translate | {"q": "x" * SMALL, "api_key": "wrong"}
    assert keyed.ask("POST", "/libretranslate/translate", large).status == 413
    wrong = translate | {"api_key": "wrong"}
    assert keyed.ask("POST", "/libretranslate/translate", wrong).status == 403


def test_a_file_for_an_unknown_import_is_not_read(keyed: Server) -> None:
    head = "PUT /deepl/v3/translation_memories/files/x HTTP/1.1\nHost: localhost"
    assert " 404 " in answer_to(keyed, f"{head}\nContent-Length: 300000", b"x")


@contextmanager
def uploads(server: Server, key: str, count: int) -> Iterator[list[socket.socket]]:
    """Files of which all but the last byte has come."""
    where = urlsplit(server.url)
    head = f"POST /v1/memories/own/import?name=x.tmx HTTP/1.1\nHost: localhost\nX-API-Key: {key}"
    with ExitStack() as stack:
        held = []
        for _ in range(count):
            address = where.hostname or "", where.port or 0
            to = stack.enter_context(socket.create_connection(address, timeout=10))
            to.sendall(f"{head}\nContent-Length: 300000\n\n".replace("\n", "\r\n").encode())
            to.sendall(b"x" * 299_999)
            held.append(to)
        yield held


def wait_until(check: Callable[[], bool]) -> None:
    ticks = threading.Event()
    for _ in range(1000):
        if check():
            return
        ticks.wait(0.01)
    raise AssertionError("it did not come")


def test_bodies_of_all_requests_have_room_together(keyed: Server, keys: tuple[Keys, str]) -> None:
    """A tenant has half of it; what is refused may come again, and does when there is room."""
    room = keyed.service.room
    with uploads(keyed, keys[1], 1):
        wait_until(lambda: room.byte_count == 299_999)
        path = "/v1/memories/own/import?name=x.tmx"
        reply = keyed.ask("POST", path, b"x" * 300_000, key=keys[1])
        assert reply.status == 429 and int(reply.headers["retry-after"]) > 0
        assert keyed.ask("POST", path, b"x" * 200_000, key=keys[1]).status == 202
    wait_until(lambda: room.byte_count == 0)
    assert keyed.ask("POST", path, b"x" * 300_000, key=keys[1]).status == 202


def test_room_is_shared() -> None:
    room = Room(100, shares=2)
    room.take("a", 50)
    for tenant, count in (("a", 1), ("b", 51)):
        with pytest.raises(Refused) as refused:
            room.take(tenant, count)
        assert refused.value.status == 429
    room.take("b", 50)
    room.free("a", 50)
    assert room.byte_count == 50


@pytest.mark.parametrize("piece", ["[],", '"\\n",', '{"a":1},'])
def test_large_json_is_read_beside_the_others(bounded: Server, piece: str) -> None:
    inside = piece * (18_000_000 // len(piece))
    body = f'{{"name": "x.txt", "content": [{inside}0]}}'.encode()
    replies = list[Reply]()
    headers = {"Content-Type": "application/json"}
    path = "/v1/documents/segments"
    assert is_healthy(
        bounded, lambda: replies.append(bounded.ask("POST", path, body, headers=headers))
    )
    assert {reply.status for reply in replies} == {413}


def test_large_json_is_never_read_under_the_lock_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(body: bytes, most: int) -> tuple[str, Any]:
        return "value", "read here"

    monkeypatch.setattr(json_reader, "answer", answer)
    text = "x" * SMALL
    assert json_of(json.dumps(text).encode()) == text
    assert json_of(b'"small"') == "read here"


def test_large_json_is_read_as_small_is(bounded: Server) -> None:
    """Of all kinds of values; what is no JSON, or holds half a character, is told."""
    texts = ["é\u2028\U0001f600\\", "a" * SMALL]
    targets = json.dumps({"name": "x.txt", "content": "Tm8u", "targets": texts})
    reply = bounded.ask("POST", "/v1/documents/fill", targets.encode(), headers=JSON)
    assert reply.status == 400 and b"one for each of 1 segment" in reply.body
    for wrong in (
        "[" * SMALL * 2,
        '"' + "x" * SMALL,
        f'["{"x" * SMALL}\\ud800"]',
        "NaN" + " " * SMALL,
    ):
        reply = bounded.ask("POST", "/v1/documents/fill", wrong.encode(), headers=JSON)
        assert reply.status in (400, 413)


JSON = {"Content-Type": "application/json"}


def test_a_long_answer_is_written_in_pieces(bounded: Server) -> None:
    text = "\n".join(f"The Commission shall inform {n}." for n in range(45_000))
    content = base64.b64encode(text.encode()).decode()
    body = json.dumps({"name": "x.txt", "content": content}).encode()
    path, replies = "/v1/documents/segments", list[Reply]()
    assert is_healthy(
        bounded, lambda: replies.append(bounded.ask("POST", path, body, headers=JSON))
    )
    assert len(replies[0].json["segments"]) == 45_000


@pytest.mark.parametrize("count", [0, 1, 50, 51, 100, 101])
def test_pieces_of_json_are_the_json(count: int) -> None:
    long = [{"é": n, "x": [None, "\u2028"]} for n in range(count)]
    for content in ({"a": long, "b": 1, "c": long[:1], "": long}, {"a": long}, {}, long, "x", None):
        assert "".join(json_pieces(content)) == json.dumps(content, ensure_ascii=False)


def test_a_tenant_is_named_by_its_key(keys: tuple[Keys, str]) -> None:
    assert keys[0].caller(keys[1]) == Caller("one", "one", "write", frozenset({"law", "own"}))
