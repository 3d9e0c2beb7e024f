"""ModernMT as its own library speaks it, whose address is put into it; and as plain GET."""

from __future__ import annotations

import gzip
import io
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import modernmt
import pytest
from serving import Server
from tiny_model import PAIRS

from tmnmt.formats.tmx_writer import write_tmx
from tmnmt.segments import Segment
from tmnmt.serve.dialects.modernmt_memories import import_record
from tmnmt.serve.storage.records import Job

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
        (lambda: client.memories.replace(2, "x", "en", "fr", "a", "b"), 400),
        (lambda: client.memories.replace(2, "1-1", "en", "fr", "a", "b"), 400),
        (lambda: client.memories.replace(2, "2-999999", "en", "fr", "a", "b"), 404),
        (lambda: client.memories.import_tmx(1, io.BytesIO(b"<tmx/>")), 403),
        (lambda: client.memories.import_tmx(2, io.BytesIO(b"x"), "gzip"), 400),
        (lambda: client.memories.get_import_status("none"), 404),
        (lambda: client.batch_translate("http://localhost/", "en", "fr", "No."), 403),
        (lambda: client.qe("en", "fr", "No.", "Non."), 403),
        (lambda: client.get_context_vector("en", "de", "No."), 400),
        (lambda: client.get_context_vector("en", "fr", " "), 400),
        (lambda: client.get_context_vector("en", "fr", "No.", hints=[9]), 404),
        (lambda: client.translate("en", "fr", "a", options={"mask_profanities": True}), 400),
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


def test_the_real_client_asks_what_the_server_knows(client: Any) -> None:
    assert client.detect_language("Hello").detectedLanguage == "en"
    assert [one.detectedLanguage for one in client.detect_language(["No.", "Yes."])] == ["en", "en"]
    assert client.me().name == "" and client.me().billingPeriod.chars == 0


def test_the_real_client_gets_next_best_translations(client: Any) -> None:
    options = {"alt_translations": 2, "priority": "background"}
    found = client.translate("en", "fr", "The State shall inform.", options=options)
    assert 1 <= len(found.altTranslations) <= 2 and found.translation not in found.altTranslations
    assert not hasattr(client.translate("en", "fr", "No."), "altTranslations")


def ended(client: Any, job: Any) -> Any:
    deadline = time.monotonic() + 30
    while job.progress < 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
        job = client.memories.get_import_status(job.id)
    return job


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_the_real_client_imports_a_file(
    client: Any, tmp_path: Path, compression: str | None
) -> None:
    text = f"Imported with {compression}."
    path = tmp_path / "a.tmx"
    write_tmx(path, [Segment(text, "Importé.")], "en", "fr")
    if compression:
        path.write_bytes(gzip.compress(path.read_bytes()))
    with path.open("rb") as file:
        job = ended(client, client.memories.import_tmx(2, file, compression))
    assert (job.memory, job.size) == (2, 1)
    assert client.translate("en", "fr", text, hints=[2]).translation == "Importé."
    broken = client.memories.import_tmx(2, io.BytesIO(b"<x"))
    with pytest.raises(modernmt.ModernMTException, match="the file"):
        ended(client, broken)


def test_an_import_that_fails_at_once_has_begun_all_the_same() -> None:
    failure = SimpleNamespace(id="a", state="failed", done=0, total=2, result={"error": "no TMX"})
    assert import_record(cast(Job, failure), 2) == {
        "id": "a",
        "memory": 2,
        "size": 0,
        "progress": 0,
    }


def test_the_real_client_corrects_what_it_has_added(client: Any) -> None:
    job = client.memories.add(2, "en", "fr", "To be corrected.", "Faux.")
    client.memories.replace(2, job.id, "en", "fr", "To be corrected.", "Juste.")
    assert client.translate("en", "fr", "To be corrected.", hints=[2]).translation == "Juste."


def test_a_context_vector_names_the_memories_that_are_near(client: Any, tmp_path: Path) -> None:
    text = "\n".join(source for source, _ in PAIRS)
    vector = client.get_context_vector("en", "fr", text)
    assert vector.startswith("1:1.0")
    assert client.get_context_vector("en", ["fr"], text, limit=1) == {"fr": "1:1.0"}
    assert not client.get_context_vector("en", "fr", text, hints=[2]).startswith("1:")
    assert client.get_context_vector("en", "fr", "Zzz qqq xxx.") == ""
    (path := tmp_path / "a.txt").write_bytes(gzip.compress(text.encode()))
    with path.open("rb") as file:
        packed = client.get_context_vector_from_file("en", "fr", file, compression="gzip")
    assert packed == vector
    found = client.translate("en", "fr", PAIRS[0][0], context_vector=vector)
    assert found.translation == PAIRS[0][1]


def test_the_real_client_adds_terms_one_by_one(client: Any) -> None:
    made = client.memories.create("terms")
    try:
        for target in ("Kanton", "Bundesland"):
            pair = [{"term": "State", "language": "en"}, {"term": target, "language": "fr"}]
            for work in (client.memories.add_to_glossary, client.memories.replace_in_glossary):
                job = work(made.id, pair, ONE_WAY, None)
                assert client.memories.get_import_status(job.id).progress == 1
            found = client.translate("en", "fr", "The State.", options={"glossaries": made.id})
            assert target in found.translation
        packed = io.BytesIO(gzip.compress(b"en,fr\r\nState,Canton\r\n"))
        client.memories.import_glossary(made.id, packed, ONE_WAY, "gzip")
        found = client.translate("en", "fr", "The State.", options={"glossaries": made.id})
        assert "Canton" in found.translation
        assert client.memories.edit(made.id, name="new").name == "new"
        for wrong in (
            lambda: client.memories.add_to_glossary(made.id, pair[:1], ONE_WAY, None),
            lambda: client.memories.add_to_glossary(made.id, pair, "equivalent", "a"),
            lambda: client.memories.edit(made.id, description="more"),
        ):
            with pytest.raises(modernmt.ModernMTException) as error:
                wrong()
            assert error.value.status == 400
    finally:
        client.memories.delete(made.id)
