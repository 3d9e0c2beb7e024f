"""DeepL as its own library and command speak it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl
import docx
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries
from okapi_jars import okapi_jars
from serving import Server, tiny_server
from tiny_model import PAIRS

from tmnmt.formats.reader import read_memories
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.service import WRITERS

API = "/deepl"


@pytest.fixture(params=["", "/deepl", "/deepl/"])
def client(served: Server, request: pytest.FixtureRequest) -> Iterator[deepl.DeepLClient]:
    with closing(deepl.DeepLClient("any", server_url=served.url + request.param)) as client:
        yield client


def test_the_real_client_translates(client: deepl.DeepLClient) -> None:
    one = client.translate_text(PAIRS[0][0], target_lang="FR")
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang) == (PAIRS[0][1], "EN")
    assert one.billed_characters == len(PAIRS[0][0])
    texts = [pair[0] for pair in PAIRS]
    several = client.translate_text(texts, source_lang="EN", target_lang="FR-CA")
    assert isinstance(several, list)
    assert [each.text for each in several] == [pair[1] for pair in PAIRS]


def test_the_real_client_names_a_memory(client: deepl.DeepLClient, served: Server) -> None:
    pair = {"src": "This is of one memory.", "tgt": "Ceci est d'une mémoire."}
    served.ask("POST", "/v1/memories/own/segments", {"segments": [pair]})
    for memory, expected in (("own", True), ("law", False)):
        found = client.translate_text(
            pair["src"],
            source_lang="EN",
            target_lang="FR",
            translation_memory=memory,
            translation_memory_threshold=80,
        )
        assert isinstance(found, deepl.TextResult)
        assert (found.text == pair["tgt"]) == expected
    with pytest.raises(deepl.DeepLException, match="no such memory"):
        client.translate_text(
            "No.", target_lang="FR", translation_memory="none", translation_memory_threshold=80
        )


@pytest.mark.parametrize("handling", ["xml", "html"])
def test_tags_survive(client: deepl.DeepLClient, handling: str) -> None:
    text = 'The <b>Commission</b> shall inform <x id="0"></x> &amp; the <i>States</i>.'
    found = client.translate_text(
        text, source_lang="EN", target_lang="FR", tag_handling=handling, ignore_tags=["x"]
    )
    assert isinstance(found, deepl.TextResult)
    assert sorted(re.findall("<[^>]*>", found.text)) == sorted(re.findall("<[^>]*>", text))


def test_what_the_real_client_lists(client: deepl.DeepLClient) -> None:
    assert [one.code for one in client.get_source_languages()] == ["EN"]
    assert [(one.code, one.name) for one in client.get_target_languages()] == [("FR", "French")]
    assert not client.get_usage().any_limit_reached
    assert [one.target_lang for one in client.get_glossary_languages()] == ["fr"]
    memories = client.list_translation_memories()
    assert [one.translation_memory_id for one in memories] == ["law", "own"]
    law = client.get_translation_memory("law")
    assert (law.source_language, law.target_languages, law.segment_count) == ("en", ["fr"], 6)


def test_the_real_client_hears_what_is_wrong(client: deepl.DeepLClient) -> None:
    wrong: list[dict[str, Any]] = [
        {"target_lang": "DE"},
        {"target_lang": "FR", "formality": "more"},
        {"target_lang": "FR", "tag_handling": "xml", "text": "a <b> c"},
    ]
    for options in wrong:
        with pytest.raises(deepl.DeepLException, match="Bad request, message: "):
            client.translate_text(options.pop("text", "No."), **options)


def test_the_real_client_with_a_key(folder: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "one", "translate", None, ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(tmp_path / "keys.toml")) as server:
        with closing(deepl.DeepLClient(key, server_url=server.url + API)) as client:
            found = client.translate_text(PAIRS[0][0], target_lang="FR")
            assert isinstance(found, deepl.TextResult) and found.text == PAIRS[0][1]
        with (
            closing(deepl.DeepLClient("wrong", server_url=server.url + API)) as client,
            pytest.raises(deepl.AuthorizationException),
        ):
            client.translate_text("No.", target_lang="FR")


def test_the_real_command(served: Server) -> None:
    command = [
        sys.executable,
        "-m",
        "deepl",
        "--auth-key",
        "any",
        "text",
        "--to",
        "FR",
        PAIRS[0][0],
    ]
    environment = os.environ | {"DEEPL_SERVER_URL": served.url}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == PAIRS[0][1]


def test_forms_and_older_addresses(served: Server) -> None:
    texts = [PAIRS[0][0], PAIRS[1][0]]
    form = {"text": texts, "target_lang": "FR", "auth_key": "any"}
    for version in ("v1", "v2"):
        reply = served.ask("POST", f"{API}/{version}/translate", form=form)
        assert [one["text"] for one in reply.json["translations"]] == [PAIRS[0][1], PAIRS[1][1]]
    form = {"text": "<k>No.</k>", "target_lang": "FR", "tag_handling": "xml", "ignore_tags": "x,k"}
    reply = served.ask("POST", f"{API}/v2/translate", form=form)
    assert reply.json["translations"][0]["text"] == "<k>No.</k>"
    languages = served.get(f"{API}/v3/languages", resource="translate_text")
    assert [
        (one["lang"], one["usable_as_source"], one["usable_as_target"]) for one in languages
    ] == [
        ("en", True, False),
        ("fr", False, True),
    ]
    assert served.get(f"{API}/v3/languages", resource="glossary") == languages
    assert served.get(f"{API}/v3/languages", resource="write") == []
    assert list(served.ask("POST", f"{API}/v2/translate", {"text": 1}).json) == ["message"]


def test_the_real_client_keeps_glossaries(client: deepl.DeepLClient) -> None:
    text = "The Commission shall inform the State."
    one = client.create_glossary("one", "EN", "FR", {"Commission": "Kommission"})
    assert client.get_glossary_entries(one) == {"Commission": "Kommission"} and one.entry_count == 1
    dictionary = MultilingualGlossaryDictionaryEntries("EN", "FR", {"State": "Kanton"})
    other = client.create_multilingual_glossary("other", [dictionary])
    found = client.translate_text(
        text, source_lang="EN", target_lang="FR", glossary=other.glossary_id
    )
    assert isinstance(found, deepl.TextResult) and "Kanton" in found.text
    more = MultilingualGlossaryDictionaryEntries("EN", "FR", {"Commission": "Behörde"})
    changed = client.update_multilingual_glossary_dictionary(other, more)
    assert changed.dictionaries[0].entry_count == 2
    assert client.update_multilingual_glossary_name(other, "new").name == "new"
    replaced = client.replace_multilingual_glossary_dictionary(other, more)
    assert replaced.entry_count == 1
    entries = client.get_multilingual_glossary_entries(other, "EN", "FR").dictionaries[0].entries
    assert str(entries) == "Commission\tBehörde\n"
    assert {each.name for each in client.list_multilingual_glossaries()} == {"one", "new"}
    client.delete_multilingual_glossary_dictionary(other, source_lang="en", target_lang="fr")
    assert client.get_multilingual_glossary(other.glossary_id).dictionaries == []
    client.delete_multilingual_glossary(other)
    client.delete_glossary(one)
    assert client.list_glossaries() == [] == client.list_multilingual_glossaries()
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(one.glossary_id)


def test_the_real_client_fills_and_reads_memories(
    client: deepl.DeepLClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _, sleep=time.sleep: sleep(0.05))
    client.export_translation_memory_to_filepath("law", tmp_path / "law.tmx")
    found = [(one.src, one.tgt) for one in read_memories([tmp_path / "law.tmx"], "en", "fr")]
    assert found == PAIRS
    job = client.import_translation_memory_from_filepath(
        tmp_path / "law.tmx", display_name="own", timeout_s=60
    )
    assert job.ok and job.result is not None and job.result.translation_memory_id == "own"
    page = client.list_translation_memory_segments("law", page_size=4)
    assert [one.source_text for one in page.segments] == [src for src, _ in PAIRS[:4]]
    rest = client.list_translation_memory_segments("law", page_cursor=page.next_page_cursor)
    assert [one.targets[0].target_text for one in rest.segments] == [tgt for _, tgt in PAIRS[4:]]
    some = client.list_translation_memory_segments("law", filter_text="REGULATION")
    assert len(some.segments) == 1 and some.next_page_cursor is None
    with pytest.raises(deepl.DeepLException):
        client.delete_translation_memory("law")
    with pytest.raises(deepl.DeepLException, match="written to"):
        client.create_translation_memory_import("a.tmx", 1, display_name="law")
    started = client.create_translation_memory_import("a.tmx", 1, display_name="own")
    assert client.get_translation_memory_job(started.job_id).result is not None
    client.upload_translation_memory_file(started, b"<x")
    assert not client.wait_until_translation_memory_job_done(started.job_id, 60).ok
    with pytest.raises(deepl.DeepLException):
        client.upload_translation_memory_file(started, b"<x")


def test_a_file_for_a_memory_that_is_served_no_more_is_refused_at_once(
    folder: Path, tmp_path: Path
) -> None:
    states = tmp_path / "sessions.db"
    path = "/deepl/v3/translation_memories"
    file = {"source_file": {"file_name": "a.tmx", "content_length": 1}}
    with tiny_server(folder, (), (f"gone={tmp_path.name}",), sessions=states) as server:
        job = server.ask("POST", f"{path}/import", file).json
    upload = job["upload_url"].partition("/deepl")[2]
    with tiny_server(folder, ("law=law",), sessions=states) as server:
        for _ in range(WRITERS + 1):  # none keeps a thread
            reply = server.ask("PUT", f"/deepl{upload}", b"<tmx/>")
            assert reply.status == 409 and b"not written to now" in reply.body
        assert server.ask("POST", "/v1/sessions", {}).status == 200


def named(name: str, content: bytes) -> io.BytesIO:
    """An open file, whose name the client sends."""
    file = io.BytesIO(content)
    file.name = name
    return file


HTML = f"<p>{PAIRS[0][0]}</p><p>{PAIRS[1][0]}</p>\n"


def test_the_real_client_translates_documents(
    client: deepl.DeepLClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _, sleep=time.sleep: sleep(0.05))
    source, target = tmp_path / "été.html", tmp_path / "out.html"
    source.write_text(HTML, encoding="utf-8")
    status = client.translate_document_from_filepath(source, target, target_lang="FR")
    assert status.done and status.billed_characters == 0
    expected = HTML
    for pair in PAIRS:
        expected = expected.replace(*pair)
    assert target.read_text(encoding="utf-8") == expected != HTML
    handle = client.translate_document_upload(
        f"{PAIRS[0][0]}\n{PAIRS[1][0]}\n", target_lang="FR", filename="a.txt"
    )
    assert client.translate_document_wait_until_done(handle).done
    out = io.BytesIO()
    client.translate_document_download(handle, out)
    assert out.getvalue().decode() == f"{PAIRS[0][1]}\n{PAIRS[1][1]}\n"
    with pytest.raises(deepl.DeepLException, match="Not found"):  # it was taken
        client.translate_document_download(handle)
    wrong_key = deepl.DocumentHandle(handle.document_id, "x" * len(handle.document_key))
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_document_get_status(wrong_key)


def test_a_document_of_word(
    served: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMNMT_OKAPI", str(okapi_jars()))
    monkeypatch.setattr(time, "sleep", lambda _, sleep=time.sleep: sleep(0.05))
    word, source, target = docx.Document(), tmp_path / "a.docx", tmp_path / "b.docx"
    word.add_paragraph(PAIRS[0][0])
    word.save(str(source))
    with closing(deepl.DeepLClient("any", server_url=served.url)) as client:
        client.translate_document_from_filepath(source, target, target_lang="FR")
    assert [p.text for p in docx.Document(str(target)).paragraphs] == [PAIRS[0][1]]


def test_glossaries_and_memories_hold_for_documents(
    client: deepl.DeepLClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _, sleep=time.sleep: sleep(0.05))
    terms = client.create_glossary("documents", "EN", "FR", {"State": "Kanton"})

    def translated(**options: Any) -> str:
        out = io.BytesIO()
        text = named("a.html", b"<p>The Commission shall inform the State.</p>")
        options |= {"source_lang": "EN", "target_lang": "FR"}
        client.translate_document(text, out, **options)
        return out.getvalue().decode()

    assert "Kanton" in translated(glossary=terms)
    assert "Kanton" in translated(glossary_ids=[terms])
    assert "Kanton" not in translated()
    memory = {"translation_memory": "law", "translation_memory_threshold": 80}
    assert translated(**memory).startswith("<p>")
    client.delete_glossary(terms)


def test_the_real_client_hears_what_is_wrong_with_a_document(
    client: deepl.DeepLClient, served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _, sleep=time.sleep: sleep(0.05))
    wrong: list[dict[str, Any]] = [
        {"target_lang": "DE"},
        {"target_lang": "FR", "formality": "more"},
        {"target_lang": "FR", "output_format": "pdf"},
        {"target_lang": "FR", "filename": "none"},
        {"target_lang": "FR", "style_rule": "a"},
    ]
    for options in wrong:
        with pytest.raises(deepl.DeepLException, match="Bad request, message: "):
            client.translate_document_upload(HTML, **{"filename": "a.html", **options})
    unknown: dict[str, Any] = {
        "source_lang": "EN",
        "target_lang": "FR",
        "filename": "a.html",
        "glossary": "none",
    }
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_document_upload(HTML, **unknown)
    for name, content in (("a.pdf", b"%PDF-1.4"), ("a.docx", b"no archive"), ("a.xlf", b"<x")):
        with pytest.raises(deepl.DocumentTranslationException, match="the file"):
            client.translate_document(named(name, content), io.BytesIO(), target_lang="FR")
    for body in ({"target_lang": "FR"}, None):
        reply = served.ask("POST", f"{API}/v2/document", body)
        assert reply.status == 400 and list(reply.json) == ["message"]


def test_the_real_command_translates_documents(served: Server, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(HTML, encoding="utf-8")
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-m", "deepl", "--auth-key", "any", "document", "--to", "FR"]
    environment = os.environ | {"DEEPL_SERVER_URL": served.url}
    subprocess.run([*command, tmp_path / "a.html", tmp_path / "out"], env=environment, check=True)
    assert PAIRS[0][1] in (tmp_path / "out" / "a.html").read_text(encoding="utf-8")


def test_documents_of_another_tenant_are_not_found(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    keys = [new_key(path, name, "translate", None, ["law"]) for name in ("one", "two")]
    with tiny_server(folder, ("law=law",), keys=Keys.load(path)) as server:
        with closing(deepl.DeepLClient(keys[0], server_url=server.url + API)) as client:
            handle = client.translate_document_upload(HTML, target_lang="FR", filename="a.html")
            client.translate_document_get_status(handle)
        with (
            closing(deepl.DeepLClient(keys[1], server_url=server.url + API)) as client,
            pytest.raises(deepl.DeepLException, match="Not found"),
        ):
            client.translate_document_get_status(handle)
