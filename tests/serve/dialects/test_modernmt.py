"""ModernMT as its own library speaks it, whose address is put into it; and as plain GET."""

from __future__ import annotations

import io
from typing import Any

import modernmt
import pytest
from serving import Server
from tiny_model import PAIRS

ONE_WAY = "unidirectional"


@pytest.fixture
def client(served: Server) -> Any:
    client = modernmt.ModernMT("any")
    client._ModernMT__base_url = f"{served.url}/modernmt"
    return client


def test_the_real_client_translates(client: Any) -> None:
    one = client.translate("en", "fr", PAIRS[0][0])
    assert one.translation == PAIRS[0][1]
    several = client.translate("en", "fr-CA", [pair[0] for pair in PAIRS])
    assert [each.translation for each in several] == [pair[1] for pair in PAIRS]
    assert client.translate(None, "fr", "No.").detectedLanguage == "en"
    assert client.list_supported_languages() == ["en", "fr"]


def test_tags_survive_without_being_announced(client: Any) -> None:
    for text in ("The <b>Commission</b> shall &amp; act.", 'Go <x id="0"/> there.'):
        found = client.translate("en", "fr", text).translation
        for part in ("<b>", "</b>", '<x id="0"/>'):
            assert (part in found) == (part in text)
    assert "&amp;" not in client.translate("en", "fr", "A & B < C").translation


def test_the_real_client_reads_and_fills_memories(client: Any, served: Server) -> None:
    memories = client.memories.list()
    assert [(one.id, one.name) for one in memories] == [(1, "law"), (2, "own")]
    assert client.memories.get(2).name == "own"
    job = client.memories.add(2, "en", "fr", "It came by ModernMT.", "C'est venu par ModernMT.")
    assert client.memories.get_import_status(job.id).progress == 1
    for hints, expected in (([2], True), (["1"], False)):
        found = client.translate("en", "fr", "It came by ModernMT.", hints=hints)
        assert (found.translation == "C'est venu par ModernMT.") == expected
    found = client.translate("en", "fr", "It came by ModernMT.", context_vector="2:0.5")
    assert found.translation == "C'est venu par ModernMT."


def test_the_real_client_makes_glossaries(client: Any) -> None:
    before = len(client.memories.list())
    made = client.memories.create("house")
    try:
        for target in ("Kanton", "Bundesland"):
            terms = io.BytesIO(f"en,fr\r\nState,{target}\r\n".encode())
            job = client.memories.import_glossary(made.id, terms, ONE_WAY)
            assert client.memories.get_import_status(job.id).progress == 1
            found = client.translate("en", "fr", "The State.", options={"glossaries": made.id})
            assert target in found.translation
        assert client.memories.get(made.id).name == "house"
        for text in (b"", b"en,fr", b"en\nState", b"en,fr\nState", b'en,fr\n"a', b"!,fr\na,b"):
            with pytest.raises(modernmt.ModernMTException) as error:
                client.memories.import_glossary(made.id, io.BytesIO(text), ONE_WAY)
            assert error.value.status == 400
    finally:
        client.memories.delete(made.id)
    assert len(client.memories.list()) == before


BOUNDARY = "multipart/form-data; boundary=b"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--b\r\n\r\n--b--"),
        (BOUNDARY, b"name=a"),
        (BOUNDARY, b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\na\r\n'),
        (BOUNDARY, b"--b\r\nContent-Disposition: form-data\r\n\r\na\r\n--b--"),
        (BOUNDARY, b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n\xff\r\n--b--'),
    ],
)
def test_what_is_no_form_in_parts(served: Server, kind: str, body: bytes) -> None:
    path, headers = "/modernmt/memories", {"Content-Type": kind}
    assert served.ask("POST", path, body, headers=headers).status == 400


def test_the_real_client_hears_what_is_wrong(client: Any) -> None:
    for work, status in (
        (lambda: client.translate("en", "de", "No."), 400),
        (lambda: client.translate("en", "fr", "No.", hints=[9]), 404),
        (lambda: client.memories.get(3), 404),
        (lambda: client.memories.add(1, "en", "fr", "a", "b"), 403),
        (lambda: client.memories.add(2, "en", "fr", "a", "b", tuid="x"), 400),
        (lambda: client.memories.import_glossary(2, io.BytesIO(b"en,fr\na,b"), ONE_WAY), 403),
        (lambda: client.memories.edit(1, name="new"), 403),
        (lambda: client.translate("en", "fr", "No.", options={"glossaries": "none"}), 404),
        (lambda: client.memories.delete(1), 403),
        (lambda: client.translate("en", "fr", "a", options={"format": "text/pdf"}), 400),
    ):
        with pytest.raises(modernmt.ModernMTException) as error:
            work()
        assert error.value.status == status and error.value.message


def test_a_plain_get_without_languages_as_okapi_sends_it(served: Server) -> None:
    found = served.get("/modernmt/translate", q=PAIRS[0][0], context="none")
    assert found["data"]["translation"] == PAIRS[0][1] and found["status"] == 200
    assert served.get("/modernmt/languages")["data"] == {"en": ["fr"]}  # as Weblate asks
    assert served.ask("POST", "/modernmt/memories/1", {}).status == 405
