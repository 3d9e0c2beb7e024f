"""A base behind https: whose certificate is trusted, and who never sees the key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from base_server import BaseServer, Response, base_server
from certificates import certificate

from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ServerError
from tmnmt.hosted import connection
from tmnmt.hosted.connection import CERTIFICATES, KEY_VARIABLE
from tmnmt.translator import Translator

KEY = "sk-of-a-test"


def yes(text: str, request: dict[str, Any]) -> Response:
    return Response("Sim.")


def translated(address: str) -> str:
    translator = Translator.load(address, [], TranslationOptions())
    return translator.translate(["Yes."])[0].tgt


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("certificate"), "IP:127.0.0.1")


@pytest.fixture
def server(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[BaseServer]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv(CERTIFICATES, str(pair[0]))
    with base_server(yes, pair) as server:
        yield server


def test_a_trusted_base_is_asked_and_gets_the_key(server: BaseServer) -> None:
    assert translated(server.address()) == "Sim."
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_base_without_a_trusted_certificate_is_asked_nothing(
    server: BaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CERTIFICATES)
    with pytest.raises(
        ServerError, match=r"not trusted: self.signed certificate \(SSL_CERT_FILE"
    ) as caught:
        translated(server.address())
    assert KEY not in str(caught.value) and not server.asked


def test_a_certificate_of_another_machine_is_refused(server: BaseServer) -> None:
    with pytest.raises(ServerError, match=r"Hostname mismatch.*'localhost'"):
        translated(server.address().replace("127.0.0.1", "localhost"))
    assert not server.asked


def test_what_speaks_no_tls_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_WAIT", 0.0)
    with base_server(yes) as plain:
        with pytest.raises(ServerError, match=r"SSLError: (wrong version number|record layer)"):
            translated(plain.address().replace("http:", "https:"))
        assert not plain.asked


def test_the_key_follows_no_redirect_and_no_proxy(
    server: BaseServer, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with base_server(yes, pair) as other:
        for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
            monkeypatch.setenv(name, other.url)
        elsewhere = {"Location": f"{other.url}/chat/completions"}
        server.respond = lambda *_: Response(status=308, headers=elsewhere)
        with pytest.raises(ServerError, match="answers 308, and sends to another address"):
            translated(server.address())
        assert len(server.asked) == 1 and not other.asked
