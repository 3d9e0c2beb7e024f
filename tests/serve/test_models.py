"""Two models of one pair of languages: requests choose one by its name."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Server, serving

from tmnmt.client import Client
from tmnmt.errors import DataError
from tmnmt.serve.running import service_of

PAIR = {"source": "en", "target": "fr"}


@pytest.fixture(scope="module")
def two(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Of the models `model` and `second`, both from English to French."""
    second = tmp_path_factory.mktemp("models") / "second"
    shutil.copytree(folder / "model", second)
    models = [folder / "model", second]
    service = service_of(models, [], [], threads=1, sessions=str(second.parent / "sessions.db"))
    with serving(service) as server:
        yield server


def post(server: Server, path: str, status: int = 200, **body: Any) -> Any:
    reply = server.ask("POST", path, body)
    assert reply.status == status, reply.body
    return reply.json


def test_the_server_tells_all_models_by_name(two: Server) -> None:
    assert [model["name"] for model in two.get("/v1/models")["models"]] == ["model", "second"]
    assert two.get("/v1/languages")["pairs"] == [{**PAIR, "models": ["model", "second"]}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/translate", {"texts": ["No."]}),
        ("/v1/complete", {"text": "No.", "prefix": "N"}),
        ("/v1/alternatives", {"text": "No.", "prefix": "N"}),
        ("/v1/sessions", {}),
    ],
)
def test_a_request_takes_the_model_that_it_names(
    two: Server, path: str, body: dict[str, Any]
) -> None:
    names: list[tuple[dict[str, Any], str]] = [
        ({}, "model"),
        ({"model": ""}, "model"),
        ({"model": "second"}, "second"),
    ]
    for name, expected in names:
        for languages in ({}, PAIR):
            given: dict[str, Any] = {**body, **languages, **name}
            assert post(two, path, **given)["model"] == expected
    told = post(two, path, 404, **body, model="third")
    assert told["error"]["message"] == "there is no such model"
    told = post(two, path, 400, **body, model="second", target="de")
    assert told["error"]["code"] == "wrong_language"


def test_a_session_stays_with_its_model(two: Server) -> None:
    id = post(two, "/v1/sessions", model="second")["id"]
    path = f"/v1/sessions/{id}"
    assert two.get(path)["model"] == "second"
    assert post(two, f"{path}/translate", texts=["No."])["model"] == "second"
    body = {"text": "No.", "prefix": "N", "session": id}
    assert post(two, "/v1/complete", **body, model="second")["model"] == "second"
    assert (
        "another model" in post(two, "/v1/complete", 400, **body, model="model")["error"]["message"]
    )


def test_a_stream_and_a_document_take_the_model_that_they_name(two: Server) -> None:
    reply = two.ask("POST", "/v1/translate/stream", {"texts": ["No."], "model": "second"})
    assert b'"model": "second"' in reply.body
    job = two.ask("POST", "/v1/documents?name=a.html&model=second", b"<p>No.</p>").json
    assert job["model"] == "second"
    content = base64.b64encode(b"No.").decode()
    for path, more in (("segments", {}), ("fill", {"targets": ["Non."]})):
        sent = {"content": content, **more}
        assert two.ask("POST", f"/v1/documents/{path}", {**sent, "model": "second"}).status == 200
        assert two.ask("POST", f"/v1/documents/{path}", {**sent, "model": "third"}).status == 404


def test_a_client_names_its_model(two: Server) -> None:
    client = Client(two.url, model="second")
    assert two.get(f"/v1/sessions/{client.session().id}")["model"] == "second"
    assert client.translate(["No."]) and client.complete("No.", "N")
    with pytest.raises(DataError, match="no such model"):
        Client(two.url, model="third").translate(["No."])


def test_dialects_with_a_field_for_it_name_a_model(
    two: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: list[str] = []
    translate = two.service.translate

    async def noted(request: Any, caller: Any) -> Any:
        answer = await translate(request, caller)
        models.append(answer.model.name)
        return answer

    monkeypatch.setattr(two.service, "translate", noted)
    for model_id in ("second", "en-fr"):
        body = {"text": ["No."], "model_id": model_id}
        assert two.ask("POST", "/watson/v3/translate?version=2018-05-01", body).status == 200
    for tag in ("second", "of another server", ""):
        query = f"input=No.&srcLangCode=en&trgLangCode=fr&modelTag={tag.replace(' ', '+')}"
        assert two.ask("GET", f"/MTRestService/TranslateJson?{query}").status == 200
    assert models == ["second", "model", "second", "model", "model"]


def test_what_the_server_is_told_to_keep_comes_through(folder: Path, tmp_path: Path) -> None:
    sessions = str(tmp_path / "sessions.db")
    service = service_of([folder / "model"], [], [], threads=1, sessions=sessions, keep=r"Acme \w+")
    with serving(service) as server:
        reply = post(server, "/v1/translate", texts=["No Acme works today."])
        assert "Acme works" in reply["translations"][0]["text"]
        session = post(server, "/v1/sessions", write_to="")["id"]
        confirm = f"/v1/sessions/{session}/confirm"
        reply = post(server, confirm, src="No Acme works.", tgt="Non.")
        assert {"name": "placeholders", "what": "lost: Acme works"} in reply["checks"]
