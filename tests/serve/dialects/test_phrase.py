"""Phrase's "bring your own engine", by a client that is written to its description: each request
has the fields that Phrase sends, and each answer the fields that it reads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from serving import Reply, Server, tiny_server
from tiny_model import PAIRS

from tmnmt.serve.keys import Keys, new_key

API = "/phrase"


class Engine:
    """Phrase, which asks an engine. `Server.ask` holds its answers to their description."""

    def __init__(self, server: Server, token: str = "") -> None:
        self._server, self._headers = server, {"X-Api-Token": token} if token else {}

    def post(self, path: str, **body: Any) -> Reply:
        return self._server.ask("POST", f"{API}/{path}", body, headers=self._headers)

    def get(self, path: str) -> Reply:
        return self._server.ask("GET", f"{API}/{path}", headers=self._headers)

    def asks(self, path: str, texts: Sequence[str], **more: Any) -> Reply:
        segments = [
            {"idx": str(number), "text": text, "metadata": {"origin": number}}
            for number, text in enumerate(texts)
        ]
        languages = {"sourceLanguage": "en_gb", "targetLanguage": "fr"}
        return self.post(path, **languages, segments=segments, metadata={"key": 1}, **more)

    def later(self, texts: Sequence[str], **more: Any) -> Any:
        """The result of a job."""
        id = self.asks("translateAsync", texts, **more).json["id"]
        deadline = time.monotonic() + 60
        while (status := self.get(f"translateAsyncStatus/{id}").json)["status"] == "running":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert status["status"] == "done", status
        result = self.get(f"translateAsyncResult/{id}")
        assert self.get(f"translateAsyncResult/{id}").status == 404  # it was taken
        return result.json


@pytest.fixture
def engine(served: Server) -> Engine:
    return Engine(served)


def test_status_and_languages(engine: Engine) -> None:
    assert engine.post("status", metadata={"formality": "informal"}).json == {"status": "ok"}
    pairs = [{"sourceLanguage": "en", "targetLanguage": "fr"}]
    assert engine.post("languages", metadata={}).json == {"languagePairs": pairs}


def test_segments_at_once_and_as_a_job(engine: Engine) -> None:
    texts = [source for source, _ in PAIRS] + ["Go <g1>there</g1> %s.", "", "Two.\nLines."]
    at_once = engine.asks("translate", texts).json
    assert at_once["sourceLanguage"] == "en_gb" and at_once["metadata"] == {"key": 1}
    assert [each["idx"] for each in at_once["segments"]] == [*map(str, range(len(texts)))]
    assert [each["text"] for each in at_once["segments"]] == texts
    assert at_once["segments"][3]["metadata"] == {"origin": 3}
    translated = [each["translatedText"] for each in at_once["segments"]]
    assert translated[: len(PAIRS)] == [target for _, target in PAIRS]
    assert all(translated[len(PAIRS)].count(code) == 1 for code in ("<g1>", "</g1>", "%s"))
    assert engine.later(texts) == at_once


def test_a_glossary_holds_for_its_request_alone(engine: Engine, served: Server) -> None:
    glossary = [{"term": "State", "translation": "Kanton"}]
    texts = ["The Commission shall inform the State."]
    for answer in (
        engine.asks("translate", texts, glossary=glossary).json,
        engine.later(texts, glossary=glossary),
    ):
        assert "Kanton" in answer["segments"][0]["translatedText"]
    answer = engine.asks("translate", texts).json
    assert "Kanton" not in answer["segments"][0]["translatedText"]
    assert served.get("/v1/terms")["glossaries"] == []


def test_many_segments(engine: Engine) -> None:
    texts = [PAIRS[number % len(PAIRS)][0] for number in range(500)]
    assert len(engine.later(texts)["segments"]) == 500
    assert engine.asks("translate", [*texts, "one more"]).status == 413


def test_what_is_wrong_is_told(engine: Engine, served: Server) -> None:
    segments = [{"text": "No."}]
    for body, status in (
        ({"sourceLanguage": "en", "targetLanguage": "de", "segments": segments}, 400),
        ({"sourceLanguage": "en", "targetLanguage": "fr", "segments": []}, 400),
        ({"sourceLanguage": "en", "targetLanguage": "fr", "segments": [{"idx": "1"}]}, 400),
        ({"sourceLanguage": "en", "segments": segments}, 400),
        (
            {
                **{"sourceLanguage": "en", "targetLanguage": "fr", "segments": segments},
                "glossary": [{"term": " ", "translation": "a"}],
            },
            400,
        ),
    ):
        for path in ("translate", "translateAsync"):
            reply = engine.post(path, **body)
            assert reply.status == status and list(reply.json) == ["error"]
    job = served.ask("POST", "/v1/memories/law/export", {}).json["id"]
    for id in ("none", job):
        assert engine.get(f"translateAsyncStatus/{id}").status == 404
        assert engine.get(f"translateAsyncResult/{id}").status == 404


def test_the_token_is_a_key(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    key = new_key(path, "phrase", "translate", None, ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(path)) as server:
        assert Engine(server, key).later([PAIRS[0][0]])["segments"]
        for token in ("", "wrong"):
            assert Engine(server, token).post("status").status == 401
