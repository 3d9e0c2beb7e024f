"""From which pages of a browser a server is asked, what it tells browsers, and under which address
clients reach it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from serving import Server, tiny_server

from tmnmt.errors import UsageError
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.site import HEADERS, Site, site_of

EXTENSION = "moz-extension://7d1e8b9c-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def visited(folder: Path) -> Iterator[Server]:
    """One that answers an extension."""
    with tiny_server(folder, ("law=law",), site=site_of(None, [EXTENSION])) as server:
        yield server


def test_a_page_of_another_site_cannot_ask_by_get(visited: Server) -> None:
    """As a browser does for a picture or a script of such a page; the time of the answer says
    nothing of a memory then."""
    path = "/tmserver/en/fr/unit/No."
    assert visited.ask("GET", path).status == 200
    for headers in (
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ):
        assert visited.ask("GET", path, headers=headers).status == 403
    assert visited.service.counts["searches",] == 1


def test_a_named_extension_is_answered_and_no_other(visited: Server) -> None:
    body = {"q": "No.", "source": "en", "target": "fr"}
    for origin, status in (
        (EXTENSION, 200),
        (EXTENSION[:-1] + "1", 403),
        ("chrome-extension://other", 403),
    ):
        headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
        reply = visited.ask("POST", "/libretranslate/translate", body, headers=headers)
        assert reply.status == status, origin


def test_a_link_leads_to_the_page(visited: Server) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    for path, status in (("/", 200), ("/review", 200), ("/health", 403), ("/page/desk.js", 403)):
        assert visited.ask("GET", path, headers=link).status == status, path
    assert visited.ask("GET", "/", headers={**link, "Sec-Fetch-Mode": "no-cors"}).status == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/page/desk.js"),
        ("GET", "/health"),
        ("GET", "/metrics"),
        ("GET", "/no/such/address"),
        ("DELETE", "/health"),
        ("GET", "/apertium/translate"),
        ("GET", "/v1/sessions/none/tmx"),
        ("POST", "/v1/translate"),
        ("POST", "/v1/translate/stream"),
    ],
)
def test_every_answer_is_for_this_origin_alone(visited: Server, method: str, path: str) -> None:
    reply = visited.ask(method, path, {"texts": ["No."]} if method == "POST" else None)
    for name, value in HEADERS:
        assert reply.headers[name.decode()] == value.decode()


def raw(server: Server, request: bytes) -> bytes:
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as to:
        to.sendall(request)
        reply = b""
        while part := to.recv(65536):
            reply += part
    return reply


def test_what_is_no_request_is_answered_for_this_origin_alone(visited: Server) -> None:
    reply = raw(visited, b"GET\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert all(b": ".join(header) in reply for header in HEADERS)


def test_a_length_told_in_two_ways_is_refused_and_the_connection_ends(visited: Server) -> None:
    """Else what stands behind the first end is another request, which a proxy has not seen."""
    head = b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    behind = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = raw(visited, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + behind)
    assert reply.startswith(b"HTTP/1.1 400 ") and reply.count(b"HTTP/1.1") == 1
    assert b"bad_request" in reply


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Keys, str]:
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    made = new_key(path, "one", "write", None, ["sited"])
    return Keys.load(path), made


@pytest.mark.parametrize(
    ("public", "host", "address"),
    [
        (None, "evil.example", None),
        (None, "localhost:9", "http://localhost:9"),
        ("https://mt.example/tm/", "evil.example", "https://mt.example/tm"),
    ],
)
def test_the_address_of_an_upload_is_no_word_of_the_client(
    folder: Path, key: tuple[Keys, str], public: str | None, host: str, address: str | None
) -> None:
    body = {"source_file": {"file_name": "x.tmx", "content_length": 5}}
    headers = {"Host": host, "X-Forwarded-Proto": "ftp"}
    memory, site = ("sited=sited",), site_of(public, [])
    with tiny_server(folder, (), memory, key[0], site=site) as server:
        path = "/deepl/v3/translation_memories/import"
        reply = server.ask("POST", path, body, headers=headers, key=key[1])
        begin = f"{address or server.url}/deepl/v3/translation_memories/files/"
        assert reply.status == 201 and reply.json["upload_url"].startswith(begin)


@pytest.mark.parametrize(
    ("public", "extension"),
    [
        ("mt.example", None),
        ("ftp://mt.example", None),
        ("https://user@mt.example", None),
        ("https://mt.example/?x=1", None),
        (None, "https://mt.example"),
        (None, "chrome-extension://*"),
        (None, "chrome-extension://x/y"),
    ],
)
def test_what_is_no_address_is_told(public: str | None, extension: str | None) -> None:
    with pytest.raises(UsageError, match="is no"):
        site_of(public, [extension] if extension is not None else [])
    assert site_of("https://[::1]:9/x/", [EXTENSION]) == Site(
        "https://[::1]:9/x", frozenset({EXTENSION})
    )
