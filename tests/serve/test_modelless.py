"""A server without a model: memories are looked up in, and what is typed is confirmed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Server, serving
from tiny_model import PAIRS

from tmnmt.cli import run
from tmnmt.index import MemoryIndex
from tmnmt.serve.running import service_of

SRC, TGT = PAIRS[0]
NEW: dict[str, Any] = {"src": "A text of nobody before.", "tgt": "Un texte de personne avant."}


@pytest.fixture(scope="module")
def modelless(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    states = tmp_path_factory.mktemp("modelless")
    service = service_of(
        [], [f"law={folder / 'law'}"], [f"own={states / 'own'}"], sessions=str(states / "s.db")
    )
    with serving(service) as server:
        yield server


def post(server: Server, path: str, status: int = 200, **body: Any) -> Any:
    reply = server.ask("POST", path, body)
    assert reply.status == status, reply.body
    return reply.json


def test_it_says_that_it_has_no_model(modelless: Server) -> None:
    assert modelless.get("/health") == {"status": "ok", "models": 0}
    assert modelless.get("/ready") == {"ready": True}
    assert modelless.get("/v1/models") == {"models": []}
    pair = {"source": "en", "target": "fr", "models": []}
    assert modelless.get("/v1/languages") == {"pairs": [pair]}
    assert modelless.get("/libretranslate/languages") == []
    assert "tmnmt_uptime_seconds" in modelless.ask("GET", "/metrics").body.decode()
    assert modelless.ask("GET", "/").status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/translate", {"texts": [SRC]}),
        ("/v1/translate/stream", {"texts": [SRC]}),
        ("/v1/complete", {"text": SRC, "prefix": "L"}),
        ("/v1/alternatives", {"text": SRC}),
        ("/libretranslate/translate", {"q": SRC, "source": "en", "target": "fr"}),
        ("/v2/translate", {"text": [SRC], "target_lang": "FR"}),
    ],
)
def test_a_translation_is_refused_with_the_reason(
    modelless: Server, path: str, body: dict[str, Any]
) -> None:
    reply = modelless.ask("POST", path, body)
    assert reply.status == 501 and b"no model is served for these languages" in reply.body
    assert "retry-after" not in reply.headers


def test_a_document_is_refused_before_it_is_a_job(modelless: Server) -> None:
    reply = modelless.ask("POST", "/v1/documents?name=a.json", b'{"a": "b"}')
    assert reply.status == 501 and reply.json["error"]["code"] == "no_model"


def test_terms_are_added_and_found(modelless: Server) -> None:
    path = f"/v1/sessions/{post(modelless, '/v1/sessions')['id']}"
    assert post(modelless, f"{path}/terms/find", text="The permit.")["terms"] == []
    post(modelless, f"{path}/terms", source="permit", target="permis")
    (hit,) = post(modelless, f"{path}/terms/find", text="Two permits.")["terms"]
    assert (hit["targets"], hit["in_session"]) == (["permis"], True)


def test_memories_are_looked_up_in(modelless: Server) -> None:
    (result,) = post(modelless, "/v1/memories/law/search", texts=[SRC])["results"]
    assert result["matches"][0]["tgt"] == TGT
    word = SRC.split()[1]
    assert post(modelless, "/v1/memories/law/concordance", text=word)["matches"]
    found = modelless.get("/mymemory/get", q=SRC, langpair="en|fr")
    assert found["responseData"] == {"translatedText": TGT, "match": 1.0}
    assert all(match["created-by"] != "MT!" for match in found["matches"])
    assert modelless.get(f"/tmserver/en/fr/unit/{SRC.replace(' ', '%20')}")[0]["target"] == TGT


def test_a_document_is_typed_confirmed_and_filled(modelless: Server) -> None:
    sent: dict[str, Any] = {
        "name": "a.txt",
        "content": base64.b64encode(NEW["src"].encode()).decode(),
    }
    kind = post(modelless, "/v1/documents/segments", **sent)
    assert [one["source"] for one in kind["segments"]] == [NEW["src"]]
    session = post(modelless, "/v1/sessions", source="en", target="fr", write_to="own")
    path = f"/v1/sessions/{session['id']}"
    assert session["model"] is None and session["memories"] == ["law", "own"]
    post(modelless, f"{path}/translate", 501, texts=[NEW["src"]])
    assert post(modelless, f"{path}/confirm", **NEW)["confirmed"] == 1
    (result,) = post(modelless, "/v1/memories/own/search", texts=[NEW["src"]])["results"]
    assert result["matches"][0]["tgt"] == NEW["tgt"]
    assert NEW["tgt"] in modelless.ask("GET", f"{path}/tmx").body.decode()
    (reviewed,) = modelless.get(f"{path}/review")["segments"]
    assert reviewed["tgt"] == NEW["tgt"]
    assert modelless.ask("GET", f"{path}/save").status == 501  # it is a model's cache
    filled = post(modelless, "/v1/sessions", source="en", target="fr")
    assert filled["model"] is None
    body = {**sent, "targets": [NEW["tgt"]]}
    assert modelless.ask("POST", "/v1/documents/fill", body).body.decode() == NEW["tgt"]
    assert post(modelless, f"{path}/undo")["undone"]["tgt"] == NEW["tgt"]
    (result,) = post(modelless, "/v1/memories/own/search", texts=[NEW["src"]])["results"]
    assert result["matches"] == []


def test_a_new_memory_takes_the_languages_of_the_others(modelless: Server) -> None:
    own = next(one for one in modelless.service.memories if one.name == "own")
    assert isinstance(own.index, MemoryIndex)
    assert (own.index.src_lang, own.index.tgt_lang) == ("en", "fr")


def test_nothing_to_serve_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--port", "0"]) == 2
    assert "there is nothing to serve; give --model, --memory" in capsys.readouterr().err
