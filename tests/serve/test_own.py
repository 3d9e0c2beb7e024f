"""The server's own interface: translate, search, sessions, memories, and what watches it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from serving import Server, serving, tiny_server
from tiny_model import PAIRS

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.formats.dates import iso_utc
from tmnmt.index import MemoryIndex, build
from tmnmt.records import json_line
from tmnmt.segments import Segment
from tmnmt.serve.api_v1 import API_V1
from tmnmt.serve.descriptions import DESCRIPTIONS
from tmnmt.serve.running import service_of
from tmnmt.serve.service import Limits

TEXTS = ["The Commission shall inform the Council.", PAIRS[1][0], "It shall apply from 3 May 1997."]


def post(server: Server, path: str, **body: Any) -> Any:
    reply = server.ask("POST", path, body)
    assert reply.status == 200, reply.body
    return reply.json


def refused(server: Server, path: str, status: int, **body: Any) -> str:
    """The message of a refusal."""
    reply = server.ask("POST", path, body)
    assert reply.status == status, reply.body
    assert set(reply.json) == {"error"}
    names = set(reply.json["error"]) - {"template", "values"}  # of messages in another language
    assert names == {"code", "message", "request"}
    return str(reply.json["error"]["message"])


def test_translations_are_those_of_the_command_line(served: Server, folder: Path) -> None:
    translator = Translator.load(folder / "model", [folder / "law"], TranslationOptions(threads=1))
    with MemoryIndex.open(folder / "law") as index:
        segments = {segment.id: segment for segment in index.segments()}
    for text in TEXTS:
        found = post(served, "/v1/translate", texts=[text], explain=True, memories=["law"])
        (line,) = (json.loads(json_line(one)) for one in translator.translate([text], explain=True))
        assert line["tokens"]
        for match in line["matches"]:
            segment = segments[match["id"]]
            changed = iso_utc(segment.changed) or ""
            match |= {"memory": "law", "user": segment.user, "changed": changed}
        expected = [{"text": line["tgt"], "segments": [line]}]
        assert found == {"model": "model", "translations": expected}


def test_lines_and_tags_stay(served: Server) -> None:
    text = "  Repealed.\n\n\tNo.  "
    found = post(served, "/v1/translate", texts=[text, ""])["translations"]
    assert re.fullmatch(r"  \S.*\n\n\t\S.*  ", found[0]["text"]) and len(found[0]["segments"]) == 2
    assert found[1] == {"text": "", "segments": []}
    tagged = 'The <b>Commission</b> shall <x id="1"/>inform %s.'
    for form in ("xml", "html"):
        (one,) = post(served, "/v1/translate", texts=[tagged], format=form)["translations"]
        tags = sorted(re.findall("<[^>]*>|%s", tagged))
        assert sorted(re.findall("<[^>]*>|%s", one["text"])) == tags
        assert one["segments"][0]["src_codes"]


def test_options_are_those_of_the_translator(served: Server, folder: Path) -> None:
    def told(**options: Any) -> Any:
        return post(served, "/v1/translate", texts=[PAIRS[0][0]], options=options)["translations"]

    assert told()[0]["segments"][0]["origin"] == "memory"
    assert told(verbatim=0)[0]["segments"][0]["origin"] == "model"
    assert told(verbatim=0, mode="off")[0]["segments"][0]["matches"] == []
    others = told(verbatim=0, beam=4, nbest=3)[0]["segments"][0]["others"]
    assert 1 <= len(others) <= 2 and set(others[0]) == {"tgt", "score"}
    assert told(verbatim=0, beam=1, top_k=1, threshold=0.9)[0]["segments"][0]["matches"]
    for options in (
        {"beam": 0},
        {"beam": 21},
        {"beam": "2"},
        {"nbest": 6},
        {"beam": True},
        {"batch": 2},
        {"device": "cuda"},
        {"mode": "knn"},
        {"mode": None},
        {"top_k": 0},
        {"length_penalty": 1e999},
        {"knn_adaptive": "/etc/passwd"},
    ):
        reply = served.ask("POST", "/v1/translate", {"texts": ["No."], "options": options})
        assert reply.status == 400, options
        assert b"option" in reply.body or b"JSON" in reply.body


def test_languages_find_their_model(served: Server) -> None:
    for pair in (("en", "fr"), ("eng", "fre"), ("EN_us", "fr-CA"), ("auto", "fr"), ("", "")):
        body = {"source": pair[0], "target": pair[1]}
        assert post(served, "/v1/translate", texts=["No."], **body)["model"] == "model"
    assert "en to de is not served" in refused(
        served, "/v1/translate", 400, texts=["No."], source="en", target="de"
    )
    assert refused(served, "/v1/translate", 400, texts=["No."], source="../en", target="fr")
    assert served.get("/v1/languages") == {
        "pairs": [{"source": "en", "target": "fr", "models": ["model"]}]
    }
    assert served.get("/v1/models")["models"][0]["modes"] == [
        "copy",
        "fusion",
        "both",
        "nearest",
        "off",
    ]


def test_a_memory_is_searched_and_added_to(served: Server) -> None:
    pair = {"src": "The permit is void.", "tgt": "Le permis est nul.", "document": "a\nb"}
    ids = post(served, "/v1/memories/own/segments", segments=[pair])["ids"]
    found = post(served, "/v1/memories/own/search", texts=["The permit is void now.", "x"], k=1)[
        "results"
    ]
    assert [one["query"] for one in found] == ["The permit is void now.", "x"]
    match = found[0]["matches"][0]
    assert match["memory"] == "own" and match["changed"].endswith("Z")
    assert (match["id"], match["tgt"], match["document"]) == (ids[0], pair["tgt"], "a b")
    assert match["worth"] == 83 and found[1]["matches"] == []
    (one,) = post(served, "/v1/translate", texts=[pair["src"]])["translations"]
    assert one["text"] == pair["tgt"]
    assert one["segments"][0]["matches"][0]["memory"] == "own"


def test_a_match_tells_its_memory_and_who_changed_it(folder: Path, tmp_path: Path) -> None:
    pair = Segment("All is void.", "Tout est nul.", user="anna", changed="2026-01-31T12:00:00Z")
    build(tmp_path / "first", [pair], "en", "fr")
    second = replace(pair, src="All is void now.", user="")
    build(tmp_path / "second", [second], "en", "fr")
    memories = [f"first={tmp_path / 'first'}", f"second={tmp_path / 'second'}:penalty=5"]
    sessions = str(tmp_path / "sessions.db")
    service = service_of([folder / "model"], memories, [], threads=1, sessions=sessions)
    with serving(service) as server:
        id = post(server, "/v1/sessions", write_to="")["id"]
        path = f"/v1/sessions/{id}"
        tagged = "<g1>All</g1> is void now."
        for text, form in (("All is void.", "text"), (tagged, "xml")):
            (answer,) = post(server, f"{path}/translate", texts=[text], format=form)["translations"]
            found = {m["src"]: m for m in answer["segments"][0]["matches"]}
            assert found["All is void."]["memory"] == "first"
            assert found["All is void."]["user"] == "anna"
            assert found["All is void."]["changed"] == "2026-01-31T12:00:00Z"
            others = {m["memory"] for src, m in found.items() if src != "All is void."}
            assert others <= {"second"} and (form == "text" or others)
        post(server, f"{path}/confirm", src="A text of today.", tgt="Un texte.")
        (answer,) = post(server, f"{path}/translate", texts=["A text of today."])["translations"]
        (match,) = answer["segments"][0]["matches"]
        assert (match["memory"], match["user"]) == ("", "")


def test_memories_are_listed_and_the_others_are_not_written_to(served: Server) -> None:
    listed = {one["name"]: one for one in served.get("/v1/memories")["memories"]}
    assert {name: one["writable"] for name, one in listed.items()} == {"law": False, "own": True}
    assert listed["law"] == {
        "name": "law",
        "source": "en",
        "target": "fr",
        "writable": False,
        "segments": 6,
    }
    pairs = [{"src": "a", "tgt": "b"}]
    assert refused(served, "/v1/memories/law/segments", 403, segments=pairs)
    assert refused(served, "/v1/memories/none/segments", 404, segments=pairs)
    for name in ("..", "%2e%2e%2fown", "own%00", "/etc", "own/../law"):
        assert served.ask("POST", f"/v1/memories/{name}/segments", {"segments": pairs}).status in (
            400,
            404,
            405,
        )
    bad = [
        {"src": " ", "tgt": "b"},
        {"src": "a"},
        {"src": "a", "tgt": 1},
        {"src": "a " * 1001, "tgt": "b"},
    ]
    for pair in bad:
        assert refused(served, "/v1/memories/own/segments", 400, segments=[pair])


def test_a_translation_goes_on_from_what_is_typed(served: Server) -> None:
    def told(prefix: str, **more: Any) -> Any:
        return post(served, "/v1/complete", text=TEXTS[0], prefix=prefix, **more)

    body = {"texts": [TEXTS[0]], "explain": True}
    (whole,) = post(served, "/v1/translate", **body)["translations"]
    (segment,) = whole["segments"]
    expected = {"model": "model", "text": whole["text"], **segment}
    assert told("", source="en", target="fr") == expected
    for prefix in ("Les", "Les Éta", "Zut  al", "Les “états” "):
        found = told(prefix, memories=["law"])
        assert found["text"] == found["tgt"] and found["text"].startswith(prefix)
        assert found["tokens"][0]["origin"] == "typed"
    assert post(served, "/v1/complete", text=" ", prefix="x")["text"] == "x"
    assert told("Les", memories=[])["matches"] == []
    body = {"text": "It <b>shall</b> &amp; may <x/> apply.", "format": "xml"}
    for prefix in ("", "Les & "):
        tagged = post(served, "/v1/complete", prefix=prefix, **body)["text"]
        assert sorted(re.findall("<[^>]*>", tagged)) == ["</b>", "<b>", "<x/>"]
        assert unescape(re.sub("<[^>]*>", "", tagged)).startswith(prefix)
    assert post(served, "/v1/complete", text="<x/>", format="xml")["text"] == "<x/>"
    assert post(served, "/v1/alternatives", prefix="Les ", **body)["alternatives"]
    assert "no XML" in refused(served, "/v1/complete", 400, text="<b>", format="xml")
    for status, wrong_one in (
        (400, {"prefix": "x"}),
        (400, {"text": TEXTS[0], "prefix": 1}),
        (400, {"text": TEXTS[0], "target": "de"}),
        (404, {"text": TEXTS[0], "memories": ["none"]}),
        (404, {"text": TEXTS[0], "session": "none"}),
        (413, {"text": "a " * 3000}),
        (413, {"text": "a", "prefix": "a" * 6000}),
    ):
        assert refused(served, "/v1/complete", status, **wrong_one)
    assert "tmnmt_completions_total" in served.ask("GET", "/metrics").body.decode()


def test_the_next_words_come_alone(served: Server) -> None:
    body = {"text": TEXTS[0], "prefix": "Les “É", "memories": []}
    found = post(served, "/v1/complete", **body, whole=False)
    assert found.keys() == {"model", "text"} and found["text"].startswith("Les “É")
    tagged = {"text": "It <b>shall</b> &amp; may <x/> apply.", "prefix": "Les & ", "format": "xml"}
    found = post(served, "/v1/complete", **tagged, whole=False)
    assert found["text"].startswith("Les & ") and "<" not in found["text"]
    assert refused(served, "/v1/complete", 400, **body, whole="few")


def test_the_words_that_may_follow_what_is_typed(served: Server) -> None:
    body = {"text": TEXTS[0], "prefix": "La Com", "source": "en", "count": 3}
    found = post(served, "/v1/alternatives", **body)["alternatives"]
    assert 1 <= len(found) <= 3 and all(one["text"].startswith("Com") for one in found)
    assert all(one["origin"] and one["tokens"] and 0 <= one["probability"] <= 1 for one in found)
    assert refused(served, "/v1/alternatives", 400, **body | {"count": 0})
    assert refused(served, "/v1/alternatives", 404, text="a", session="none")


def test_what_is_typed_in_a_session_knows_what_was_confirmed_in_it(served: Server) -> None:
    id = post(served, "/v1/sessions", source="en", target="fr", write_to="")["id"]
    body = {"text": TEXTS[0], "prefix": "Le C", "session": id}
    before = post(served, "/v1/complete", **body)
    assert before["text"].startswith("Le C")
    post(served, f"/v1/sessions/{id}/confirm", src=TEXTS[0], tgt="Le Conseil est informé.")
    found = post(served, "/v1/complete", **body, source="eng", target="fr")
    assert (found["text"], found["origin"]) == ("Le Conseil est informé.", "memory")
    assert "leave memories out" in refused(served, "/v1/complete", 400, **body, memories=["law"])
    assert refused(served, "/v1/complete", 400, **body, target="de")
    assert served.ask("DELETE", f"/v1/sessions/{id}").status == 204
    assert refused(served, "/v1/complete", 404, **body)


def test_a_session_learns_what_is_confirmed_and_takes_it_back(served: Server) -> None:
    begun = post(served, "/v1/sessions", source="en", target="fr", write_to="")
    path = f"/v1/sessions/{begun['id']}"
    assert begun["confirmed"] == 0 and begun["write_to"] is None
    assert begun["memories"] == ["law", "own"]

    def said() -> str:
        return str(
            post(served, f"{path}/translate", texts=["All is void."])["translations"][0]["text"]
        )

    before = said()
    assert (
        post(served, f"{path}/confirm", src="All is void.", tgt="Tout est nul.")["confirmed"] == 1
    )
    assert said() == "Tout est nul."
    other = post(served, "/v1/sessions", write_to="")
    told = post(served, f"/v1/sessions/{other['id']}/translate", texts=["All is void."])
    assert told["translations"][0]["text"] == before
    undone = post(served, f"{path}/undo")
    assert undone["undone"] == {"src": "All is void.", "tgt": "Tout est nul."}
    assert said() == before and served.get(path)["confirmed"] == 0
    post(
        served,
        f"{path}/confirm",
        src="All is <b>void</b>.",
        tgt="Tout est <b>nul</b>.",
        format="xml",
    )
    (told,) = served.get(f"{path}/confirmed")["pairs"]
    assert (told["src"], told["tgt"]) == ("All is void.", "Tout est nul.")
    assert [len(told[f"{side}_codes"]) for side in ("src", "tgt")] == [2, 2]
    assert post(served, f"{path}/undo")["undone"] == told
    assert refused(served, f"{path}/undo", 409)
    assert refused(served, f"{path}/confirm", 400, src="\n", tgt="x")
    assert served.ask("DELETE", path).status == 204
    for tail in ("/translate", "/confirm", "/undo"):
        body = {"texts": ["a"]} if tail == "/translate" else {"src": "a", "tgt": "b"}
        assert served.ask("POST", path + tail, {} if tail == "/undo" else body).status == 404


def test_what_is_confirmed_into_a_memory_is_on_disk_at_once(served: Server, folder: Path) -> None:
    begun = post(served, "/v1/sessions", memories=["law"], write_to="own")
    assert begun["memories"] == ["law", "own"]
    path = f"/v1/sessions/{begun['id']}"
    post(served, f"{path}/confirm", src="This notice is kept.", tgt="Cet avis est gardé.")
    with MemoryIndex.open(folder / "own") as index:
        assert index.search(["This notice is kept."])[0][0].segment.tgt == "Cet avis est gardé."
    (one,) = post(served, "/v1/translate", texts=["This notice is kept."])["translations"]
    assert one["text"] == "Cet avis est gardé."
    post(served, f"{path}/undo")
    with MemoryIndex.open(folder / "own") as index:
        assert index.search(["This notice is kept."])[0] == []
    assert refused(served, "/v1/sessions", 403, write_to="law")
    assert refused(served, "/v1/sessions", 404, write_to="none")


def test_what_a_request_is_not_is_told(served: Server) -> None:
    bodies: list[Any] = [
        b"{",
        b"[1]",
        b"1",
        b"\xff",
        b'{"texts": NaN}',
        b'{"texts": ["\\ud800"]}',
        b"[" * 100_000,
        b'{"texts": ' + b"9" * 5000 + b"}",
        {"texts": "one"},
        {"texts": [1]},
        {"texts": None},
        {},
        {"texts": [], "more": 1},
        {"texts": [], "explain": "maybe"},
        {"texts": [], "format": "pdf"},
        {"texts": [], "source": 1},
        {"texts": ["a < b"], "format": "xml"},
        {"texts": ["a <b"], "format": "html"},
        {"texts": ["a"], "memories": ["../x"]},
        {"texts": ["a"], "memories": "law"},
    ]
    for body in bodies:
        reply = served.ask(
            "POST", "/v1/translate", body, headers={"Content-Type": "application/json"}
        )
        assert reply.status in (400, 404), body
        assert set(reply.json["error"]) == {"code", "message", "request"}
    headers = {"Content-Type": "text/plain"}
    assert served.ask("POST", "/v1/translate", b'{"texts": []}', headers=headers).status == 415
    headers = {"Content-Type": "application/x-www-form-urlencoded"}  # of curl where none is given
    reply = served.ask("POST", "/v1/translate", b'{"texts": []}', headers=headers)
    assert reply.status == 415 and b"send JSON as application/json" in reply.body
    assert served.ask("POST", "/v1/nothing", {}).status == 404
    assert served.ask("GET", "/v1/translate").status == 405


def test_limits_of_a_request(folder: Path) -> None:
    limits = Limits(body=1000, texts=2, text=50, waiting=60, sessions=1)
    with tiny_server(folder, limits=limits) as server:
        assert "1,000 bytes" in refused(server, "/v1/translate", 413, texts=["x" * 1000])
        huge = server.ask("POST", "/v1/translate", {"texts": ["x" * 12_000]})
        assert huge.status == 413
        assert "2 texts" in refused(server, "/v1/translate", 413, texts=["a", "b", "c"])
        assert "50 characters" in refused(server, "/v1/translate", 413, texts=["x" * 51])
        assert "60 characters" in refused(server, "/v1/translate", 413, texts=["x" * 40] * 2)
        server.service.models[0].queue.room = 1
        assert server.ask("POST", "/v1/translate", {"texts": ["No."]}).status == 413
        post(server, "/v1/sessions")
        reply = server.ask("POST", "/v1/sessions", {})
        assert reply.status == 429 and int(reply.headers["retry-after"]) > 0


def test_counters_and_health(served: Server) -> None:
    post(served, "/v1/translate", texts=["No."])
    assert served.get("/health")["status"] == "ok" and served.get("/ready") == {"ready": True}
    reply = served.ask("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = reply.body.decode().splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    counts = dict(line.rsplit(" ", 1) for line in samples)
    assert int(counts['tmnmt_requests_total{route="POST /v1/translate",status="200"}']) > 0
    assert int(counts["tmnmt_texts_total"]) > 0


def test_the_openapi_document_is_of_what_is_read(served: Server) -> None:
    document = served.get("/v1/openapi.json")
    told = {(m.upper(), p) for p, methods in document["paths"].items() for m in methods}
    routes = [route for dialect in (API_V1, DESCRIPTIONS) for route in dialect.routes]
    assert told == {(route.method, route.path) for route in routes}
    schema = document["paths"]["/v1/translate"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]
    assert schema["required"] == ["texts"] and schema["properties"]["format"]["enum"]
    for name in schema["properties"]:
        body = {"texts": ["No."], name: {"no": "such"}}
        assert served.ask("POST", "/v1/translate", body).status == 400
    assert all(one["summary"] for methods in document["paths"].values() for one in methods.values())
    for path, method in (("/v1/jobs/{job}/events", "get"), ("/v1/translate/stream", "post")):
        answer = document["paths"][path][method]["responses"]["200"]
        assert [*answer["content"]] == ["text/event-stream"]


def test_logs_have_no_texts(served: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tmnmt.serve")
    post(served, "/v1/translate", texts=["Secret sentence."])
    served.get("/tmserver/en/fr/unit/Secret%20word")
    served.ask("POST", "/v1/memories/secret-name/search", {"texts": ["Secret."]})
    routes = [json.loads(record.message)["route"] for record in caplog.records]
    assert routes == [
        "POST /v1/translate",
        "GET /tmserver/{source}/{target}/unit/{text:text}",
        "POST /v1/memories/{memory}/search",
    ]
    assert "ecret" not in caplog.text


def test_a_failure_tells_the_client_nothing(
    served: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError("/etc/secret: The permit is void.")

    monkeypatch.setattr(served.service, "translate", broken)
    reply = served.ask("POST", "/v1/translate", {"texts": ["No."]})
    assert reply.status == 500 and reply.json["error"]["code"] == "internal"
    assert b"secret" not in reply.body and "secret" not in caplog.text
    assert "RuntimeError at" in caplog.text and "own.py" in caplog.text


def test_memories_with_codes_of_three_letters_are_served(folder: Path, tmp_path: Path) -> None:
    build(tmp_path / "three", [Segment("All is void.", "Tout est nul.")], "eng", "fre")
    service = service_of(
        [folder / "model"],
        [f"three={tmp_path / 'three'}"],
        [],
        threads=1,
        sessions=str(tmp_path / "s.db"),
    )
    with serving(service) as server:
        (listed,) = server.get("/v1/memories")["memories"]
        assert (listed["source"], listed["target"]) == ("en", "fr")
        (one,) = post(server, "/v1/translate", texts=["All is void."], source="eng")["translations"]
        assert one["text"] == "Tout est nul."
        found = server.get("/tmserver/en/fr/unit/All%20is%20void.")
        assert found[0]["target"] == "Tout est nul."
