"""What a tenant may keep on the server, and how long what is added may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Server, tiny_server

from tmnmt.errors import DataError
from tmnmt.serve.api_v1 import API_V1
from tmnmt.serve.dialects import DIALECTS
from tmnmt.serve.http_error import Refused
from tmnmt.serve.keys import ANYBODY, Keys, new_key
from tmnmt.serve.quota import Quota, size_of_folder
from tmnmt.serve.service import Limits
from tmnmt.serve.storage.opening import open_storage, place_of

LONGEST = 200
LONG = "word " * 60


@pytest.fixture(scope="module")
def short(folder: Path) -> Iterator[Server]:
    """One whose texts may have a few characters."""
    with tiny_server(folder, (), ("own=short",), limits=Limits(text=LONGEST)) as server:
        yield server


ADDITIONS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/memories/own/segments", {"segments": [{"src": "a", "tgt": LONG}]}),
    ("POST", "/v1/memories/own/segments", {"segments": [{"src": LONG, "tgt": "a"}]}),
    ("PUT", "/v1/memories/own/segments/1", {"src": LONG, "tgt": "a"}),
    ("PUT", "/tmserver/en/fr/unit/a", {"source": "a", "target": LONG}),
    ("POST", "/api/v1/en/fr/unit/a", {"source": LONG, "target": "a"}),
    ("POST", "/tmserver/en/fr/store/x", [{"source": "a", "target": LONG}]),
    ("POST", "/mymemory/set", {"seg": "a", "tra": LONG, "langpair": "en|fr"}),
    (
        "POST",
        "/modernmt/memories/1/content",
        {"source": "en", "target": "fr", "sentence": "a", "translation": LONG},
    ),
    ("POST", "/v1/sessions/{session}/confirm", {"src": "a", "tgt": LONG}),
    ("POST", "/v1/sessions/{session}/confirm", {"src": "a", "tgt": "b", "suggested": LONG}),
]


@pytest.mark.parametrize(("method", "path", "body"), ADDITIONS)
def test_a_pair_that_is_added_is_no_longer_than_a_text(
    short: Server, method: str, path: str, body: Any
) -> None:
    pair = {"segments": [{"src": "a", "tgt": "b"}]}
    assert short.ask("POST", "/v1/memories/own/segments", pair).status == 200
    session = short.ask("POST", "/v1/sessions", {}).json["id"]
    reply = short.ask(method, path.replace("{session}", session), body)
    assert reply.status == 413 and b"200 characters" in reply.body


def test_a_file_that_is_read_in_leaves_longer_pairs_out(short: Server) -> None:
    content = f"src\ttgt\na\tb\na\t{LONG}\n".encode()
    path = "/v1/memories/own/import?name=x.tsv"
    id = short.ask("POST", path, content).json["id"]
    events = short.ask("GET", f"/v1/jobs/{id}/events").body
    assert b'"added": 1' in events


def test_a_tenant_keeps_no_more_than_it_may(folder: Path, tmp_path: Path) -> None:
    """Every way to keep something is refused by name, and nothing is kept; another tenant goes on,
    and what is there can be deleted."""
    path = tmp_path / "keys.toml"
    full = new_key(path, "full", "write", None, ["own"])
    free = new_key(path, "free", "write", None, ["law"])
    with tiny_server(folder, ("law=law",), ("own=full",), Keys.load(path)) as server:
        service = server.service
        session = server.ask("POST", "/v1/sessions", {}, key=full).json["id"]
        pair = {"src": "a", "tgt": "b"}
        confirm = f"/v1/sessions/{session}/confirm"
        assert server.ask("POST", confirm, pair, key=full).status == 200
        room = service._size_of("full") + 100
        service.quota = Quota(lambda _: room, service._size_of)
        entries = [{"source": "a" * 100, "target": "b"}]
        glossary = {"name": "x", "source": "en", "target": "fr", "entries": entries}
        segments = {"segments": [{"src": "x" * 100, "tgt": "y"}]}
        before = service._size_of("full")
        for address, body in (
            ("/v1/memories/own/segments", segments),
            (confirm, pair | {"suggested": "x" * 100}),
            ("/v1/terms", glossary),
            ("/v1/memories/own/import?name=x.tsv", b"src\ttgt\n" + b"a\tb\n" * 100),
            ("/v1/documents?name=x.txt", b"No.\n" * 100),
            ("/v1/sessions", {"name": "x" * 100}),
        ):
            reply = server.ask("POST", address, body, key=full)
            assert (reply.status, reply.json["error"]["code"]) == (413, "quota"), address
            assert b"--tenant-bytes" in reply.body
        assert service._size_of("full") == before
        assert server.ask("POST", "/v1/terms", glossary, key=free).status == 200
        assert server.ask("DELETE", f"/v1/sessions/{session}", key=full).status == 204


def test_every_way_to_keep_something_is_counted() -> None:
    """Routes that keep nothing are named here, so that a new one has to be."""
    others = {
        route.handler.__name__
        for dialect in (API_V1, *DIALECTS.values())
        for route in dialect.routes
        if route.method not in ("GET", "DELETE") and not route.is_kept
    }
    assert others == {
        *("translate", "stream", "complete", "alternatives", "search", "concordance"),
        *("in_session", "stream_in_session", "undo", "segments", "fill", "detect", "export"),
        *("find_session_terms", "presence", "reload"),
        *("get", "watson", "dispatch", "document_status", "document_result"),
        *("no_batch", "no_estimate", "status", "languages"),
    }


def test_what_is_taken_counts_until_it_is_measured() -> None:
    measures = list[str]()

    def measure(tenant: str) -> int:
        measures.append(tenant)
        return 50

    quota = Quota(lambda _: 100, measure)
    quota.take("a", 40)
    with pytest.raises(Refused) as refused:
        quota.take("a", 11)
    assert refused.value.code == "quota"
    quota.take("a", 10)
    quota.take("b", 50)
    assert measures == ["a", "b"]


def test_what_is_kept_has_a_size(folder: Path, states: str) -> None:
    with tiny_server(folder, ("law=law",), sessions=states) as server:
        storage = server.service.storage
        empty = storage.size("")
        session = server.ask("POST", "/v1/sessions", {}).json["id"]
        pair = {"src": "x" * 1000, "tgt": "y" * 1000}
        assert server.ask("POST", f"/v1/sessions/{session}/confirm", pair).status == 200
        assert 2000 < storage.size("") - empty < 6000 and storage.size("other") == 0
        id = server.service.jobs.make("export", {}, ANYBODY)
        storage.jobs.finish(id, "done", {}, b"x" * 5000, 0.0)
        entries = [{"source": f"{n}" * 100, "target": "b"} for n in range(9)]
        glossary = {"name": "x", "source": "en", "target": "fr", "entries": entries}
        assert server.ask("POST", "/v1/terms", glossary).status == 200
        assert storage.size("") - empty > 7900


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1000)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"x" * 500)
    folders = (tmp_path / "b").lstat().st_size
    assert size_of_folder(tmp_path) == 1500 + folders


def test_a_file_of_sessions_is_not_made_where_a_link_leads(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "serve.db").symlink_to(elsewhere)
    with pytest.raises(DataError, match="cannot hold sessions"):
        open_storage(place_of(str(tmp_path / "serve.db")))
    assert not elsewhere.exists()
