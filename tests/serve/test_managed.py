"""What lies on the server: segments corrected and deleted, files into and out of memories,
documents as jobs, lists of terms; and translations that are sent one by one."""

from __future__ import annotations

import http.client
import json
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from serving import Server, tiny_server
from tiny_model import PAIRS

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.formats.reader import read_memories
from tmnmt.serve import jobs
from tmnmt.serve.jobs import ending
from tmnmt.serve.keys import ANYBODY, Keys, new_key
from tmnmt.serve.service import Limits
from tmnmt.session import Session

PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "%s shall inform <b>the Council</b>."
msgstr ""

msgid "Kept."
msgstr "Gardé."
"""


@pytest.fixture(scope="module")
def served(folder: Path, beside: str) -> Iterator[Server]:
    """As that of all tests, with each kind of storage."""
    own = f"own=managed-{'redis' if '://' in beside else 'sqlite'}"
    with tiny_server(folder, ("law=law",), (own,), sessions=beside) as server:
        yield server


def done(server: Server, path: str, status: int = 200, key: str = "", **body: Any) -> Any:
    reply = server.ask("POST", path, body, key=key)
    assert reply.status == status, reply.body
    return reply.json


def sent(server: Server, path: str, content: bytes, key: str = "") -> Any:
    """The job that a file begins, when it has ended."""
    reply = server.ask("POST", path, content, key=key)
    assert reply.status == 202, reply.body
    return ended(server, reply.json["id"], key)


def ended(server: Server, id: str, key: str = "") -> Any:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        job = server.ask("GET", f"/v1/jobs/{id}", key=key).json
        if job["state"] in ("done", "failed"):
            return job
        time.sleep(0.02)
    raise AssertionError("the job does not end")


def test_a_segment_is_corrected_and_deleted(served: Server) -> None:
    pair = {"src": "This one is wrong.", "tgt": "Celui-ci est faux.", "document": "a"}
    (id,) = done(served, "/v1/memories/own/segments", segments=[pair])["ids"]
    path = f"/v1/memories/own/segments/{id}"
    assert served.get(path)["tgt"] == pair["tgt"]
    new = {"src": pair["src"], "tgt": "Celui-ci est juste."}
    edited = served.ask("PUT", path, new).json
    assert (edited["id"], edited["tgt"], edited["document"]) == (id, new["tgt"], "a")
    (told,) = done(served, "/v1/translate", texts=[pair["src"]])["translations"]
    assert told["text"] == new["tgt"]
    assert served.ask("PUT", path, {"src": " ", "tgt": "x"}).status == 400
    assert served.ask("DELETE", path).status == 204
    for method, body in (("GET", None), ("PUT", new), ("DELETE", None)):
        assert served.ask(method, path, body).status == 404
        assert served.ask(method, "/v1/memories/own/segments/x", body).status == 404
    assert served.ask("DELETE", "/v1/memories/law/segments/1").status == 403
    assert served.ask("PUT", "/v1/memories/law/segments/1", new).status == 403


def test_a_memory_goes_into_a_file_and_back(served: Server, tmp_path: Path) -> None:
    for kind in ("tmx", "tsv"):
        job = ended(served, done(served, "/v1/memories/law/export", 202, format=kind)["id"])
        assert (job["state"], job["memory"], job["file"]) == ("done", "law", f"law.{kind}")
        reply = served.ask("GET", f"/v1/jobs/{job['id']}/file")
        assert reply.headers["content-disposition"] == "attachment"
        (path := tmp_path / f"law.{kind}").write_bytes(reply.body)
        assert [(s.src, s.tgt) for s in read_memories([path], "en", "fr")] == PAIRS
    new = b"src\ttgt\nRead from a file.\tLu d'un fichier.\n\tx\n"
    job = sent(served, "/v1/memories/own/import?name=new.tsv", new)
    assert (job["state"], job["added"], job["skipped"]) == ("done", 1, 1)
    (found,) = done(served, "/v1/memories/own/search", texts=["Read from a file."])["results"]
    match = found["matches"][0]
    assert (match["tgt"], match["document"]) == ("Lu d'un fichier.", "new")
    assert served.ask("GET", f"/v1/jobs/{job['id']}/file").status == 409


def test_a_file_that_is_none_is_told_without_its_place(served: Server) -> None:
    for path in ("/v1/memories/own/import?name=x.tmx", "/v1/documents?name=x.xlf"):
        job = sent(served, path, b"<broken")
        assert job["state"] == "failed" and "the file" in job["error"]
        assert tempfile.gettempdir() not in json.dumps(job)
    for path, status in (
        ("/v1/memories/law/import?name=x.tmx", 403),
        ("/v1/memories/none/import?name=x.tmx", 404),
        ("/v1/memories/own/import", 400),
        ("/v1/documents?name=x.xlf&target=de", 400),
        ("/v1/documents?name=x.xlf&memories=none", 404),
        ("/v1/documents?name=x.xlf&overwrite=maybe", 400),
        ("/v1/jobs/none", 405),
    ):
        assert served.ask("POST", path, b"x").status == status, path
    assert served.ask("GET", "/v1/jobs/none").status == 404


def test_names_of_files_are_nothing_but_their_ends() -> None:
    assert ending("a.tmx.gz") == ".tmx.gz" and ending("../../etc/x.po") == ".po"
    assert ending("c:\\x\\y.html") == ".html" and ending("none") == "" == ending("")
    assert ending("a.b c.xlf") == ".xlf" and ending("x.\x00/..") == "" == ending("a.é")


def test_a_document_is_translated_as_the_command_does_it(served: Server) -> None:
    job = sent(served, "/v1/documents?name=messages.po", PO.encode())
    assert (job["state"], job["segments"], job["translated"]) == ("done", 2, 1)
    made = served.ask("GET", f"/v1/jobs/{job['id']}/file").body.decode()
    before, behind = PO.split('msgid "%s shall inform <b>the Council</b>."\nmsgstr ""')
    assert made.startswith(before) and made.endswith(behind)
    filled = made[len(before) : -len(behind)]
    assert all(filled.count(code) == 2 for code in ("%s", "<b>", "</b>"))
    assert served.ask("DELETE", f"/v1/jobs/{job['id']}").status == 204
    assert served.ask("GET", f"/v1/jobs/{job['id']}/file").status == 404


OWN = (
    'msgid ""\nmsgstr "Language: fr\\n"\n\n'
    'msgctxt "a"\nmsgid "The fee schedule is attached."\nmsgstr "Le barème est joint."\n\n'
    'msgctxt "b"\nmsgid "The fee schedule is attached."\nmsgstr ""\n'
)


def test_a_document_is_translated_by_what_it_has_itself(served: Server) -> None:
    def made(path: str) -> str:
        job = sent(served, path, OWN.encode())
        assert (job["state"], job["translated"]) == ("done", 1), job
        return served.ask("GET", f"/v1/jobs/{job['id']}/file").body.decode()

    assert made("/v1/documents?name=m.po").count("Le barème est joint.") == 2
    assert made("/v1/documents?name=m.po&own_translations=off").count("est joint.") == 1
    session = done(served, "/v1/sessions", write_to="")["id"]
    inside = f"/v1/sessions/{session}/documents?name=m.po"
    assert made(inside).count("Le barème est joint.") == 2
    pair: dict[str, Any] = {"src": "The fee schedule is attached.", "tgt": "Les frais sont joints."}
    done(served, f"/v1/sessions/{session}/confirm", **pair)
    assert "Les frais sont joints." in made(inside)  # the last word is what a person says now
    assert served.ask("POST", "/v1/documents?name=m.po&own_translations=x", b"x").status == 400


def test_a_session_knows_what_was_confirmed_before_it(served: Server) -> None:
    background = [
        {"src": "The fee schedule is attached.", "tgt": "Le barème est joint."},
        {"src": "All is <g1>void</g1>.", "tgt": "Tout est <g1>nul</g1>."},
    ]
    begin: dict[str, Any] = {"background": background, "format": "xml", "write_to": ""}
    session = done(served, "/v1/sessions", **begin, name="a.xlf")["id"]
    path = f"/v1/sessions/{session}"

    def translated(text: str) -> Any:
        answer = done(served, f"{path}/translate", texts=[text], format="xml")
        return answer["translations"][0]

    first = translated("The fee schedule is attached.")
    assert first["text"] == "Le barème est joint."
    (segment,) = first["segments"]
    assert segment["origin"] == "memory" and segment["matches"][0]["document"] == "a.xlf"
    assert translated("All is <g1>void</g1>.")["text"] == "Tout est <g1>nul</g1>."
    assert served.get(f"{path}/confirmed") == {"pairs": []} and served.get(path)["confirmed"] == 0
    pair: dict[str, Any] = {"src": "The fee schedule is attached.", "tgt": "Les frais."}
    done(served, f"{path}/confirm", **pair)
    assert translated("The fee schedule is attached.")["text"] == "Les frais."
    served.service.sessions._open.clear()  # as in another process, or after a restart
    assert translated("All is <g1>void</g1>.")["text"] == "Tout est <g1>nul</g1>."
    empty = served.ask("POST", "/v1/sessions", {"background": [{"src": "One", "tgt": " "}]})
    assert empty.status == 400 and "background, pair 1" in str(empty.json)


def test_a_slice_of_a_document_has_the_pairs_beside_it(
    served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = list[list[str]]()
    learn = Session.learn_background

    def noted(self: Session, pairs: Sequence[tuple[str, str]]) -> None:
        learned.append([src for src, _ in pairs])
        learn(self, pairs)

    monkeypatch.setattr(Session, "learn_background", noted)
    monkeypatch.setattr("tmnmt.engine.history.MOST_PAIRS", 2)
    monkeypatch.setattr("tmnmt.serve.files.AT_ONCE", 16)
    messages = 'msgid ""\nmsgstr "Language: fr\\n"\n'
    for number in range(40):
        messages += f'\nmsgid "Open {number}."\nmsgstr ""\n'
        if number % 10 == 0:
            messages += f'\nmsgid "Done {number}."\nmsgstr "Fait {number}."\n'
    assert sent(served, "/v1/documents?name=m.po", messages.encode())["translated"] == 40
    assert [sorted(pairs) for pairs in learned] == [
        ["Done 0.", "Done 10."],
        ["Done 20.", "Done 30."],
        ["Done 20.", "Done 30."],
    ]


def test_a_job_is_of_its_tenant_and_told_when_its_server_is_gone(
    folder: Path, tmp_path: Path, states: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys.toml"
    keys = {name: new_key(file, name, "write", name, ["law"]) for name in ("one", "other")}
    with tiny_server(folder, ("law=law",), keys=Keys.load(file), sessions=states) as server:
        job = sent(server, "/v1/documents?name=a.po", PO.encode(), keys["one"])
        path = f"/v1/jobs/{job['id']}"
        for tail, method in (("", "GET"), ("/events", "GET"), ("/file", "GET"), ("", "DELETE")):
            assert server.ask(method, path + tail, key=keys["other"]).status == 404
        monkeypatch.setattr(jobs, "MAX_JOBS", 1)
        assert server.ask("POST", "/v1/documents?name=a.po", b"", key=keys["one"]).status == 429
        assert server.service.storage.jobs.advance(job["id"], 1, None, time.time())
        assert server.ask("GET", path, key=keys["one"]).json["state"] == "working"
        monkeypatch.setattr(jobs, "SILENT", -1.0)
        assert "was stopped" in server.ask("GET", path, key=keys["one"]).json["error"]


def test_a_file_that_is_too_large_is_refused(folder: Path) -> None:
    with tiny_server(folder, limits=Limits(file=100, body=50)) as server:
        assert server.ask("POST", "/v1/documents?name=a.po", b"x" * 101).status == 413
        assert server.ask("POST", "/v1/documents?name=a.po", b"x" * 99).status == 202


def events(body: bytes) -> list[tuple[str, Any]]:
    found = []
    for one in body.decode().split("\n\n")[:-1]:
        name, data = one.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_long_list_is_sent_as_it_is_translated(served: Server) -> None:
    texts = [f"The Commission shall inform the State {n}." for n in range(20)]
    reply = served.ask("POST", "/v1/translate/stream", {"texts": texts, "explain": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    *every, last = events(reply.body)
    assert last == ("done", {"model": "model", "texts": 20})
    assert [(name, one["index"]) for name, one in every] == [("translation", n) for n in range(20)]
    whole = done(served, "/v1/translate", texts=texts)["translations"]
    assert [one["text"] for _, one in every] == [one["text"] for one in whole]
    assert every[0][1]["segments"][0]["tokens"]
    other = {"texts": ["a"], "target": "de"}
    assert served.ask("POST", "/v1/translate/stream", other).status == 400
    empty = served.ask("POST", "/v1/translate/stream", {"texts": []})
    assert events(empty.body) == [("done", {"model": "model", "texts": 0})]


def test_an_error_in_the_midst_of_a_list_is_an_event(
    served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    translate, calls = served.service.translate, list[int]()

    async def later(*given: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            from tmnmt.errors import MemoryIndexError

            raise MemoryIndexError("/secret/place: is damaged")
        return await translate(*given)

    monkeypatch.setattr(served.service, "translate", later)
    reply = served.ask("POST", "/v1/translate/stream", {"texts": ["No."] * 20})
    names = [name for name, _ in events(reply.body)]
    assert names == ["translation"] * 16 + ["error"] and b"secret" not in reply.body


def watched(server: Server, id: str, key: str = "") -> list[tuple[str, Any]]:
    reply = server.ask("GET", f"/v1/jobs/{id}/events", key=key)
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/event-stream")
    return events(reply.body)


def test_how_far_a_job_is_comes_as_events(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document of 80 segments in parts of one, every one of which is noted."""
    monkeypatch.setattr("tmnmt.serve.files.AT_ONCE", 1)
    monkeypatch.setattr(jobs, "NOTE_INTERVAL", 0.0)
    monkeypatch.setattr("tmnmt.serve.events.NOTE_INTERVAL", 0.001)
    page = "".join(f"<p>Article {n} is repealed.</p>" for n in range(80))
    job = served.ask("POST", "/v1/documents?name=a.html", page.encode()).json
    *before, (last, told) = watched(served, job["id"])
    assert last == "done" and told["translated"] == 80
    assert [name for name, _ in before] == ["progress"] * len(before)
    far = [one["done"] for _, one in before if one["state"] == "working"]
    assert (
        far == sorted(set(far)) and len(far) > 2 and {one["id"] for _, one in before} == {job["id"]}
    )
    assert any(one["total"] == 80 for _, one in before)
    assert watched(served, job["id"]) == [("done", told)]
    assert (told["done"], told["total"]) == (80, 80)
    table = b"src\ttgt\nAll is shut.\tTout est clos.\n"
    read = served.ask("POST", "/v1/memories/own/import?name=x.tsv", table).json
    told = watched(served, read["id"])[-1][1]
    assert told["done"] == told["total"] == len(table) and told["added"] == 1
    bad = served.ask("POST", "/v1/memories/own/import?name=x.tmx", b"<broken").json
    assert watched(served, bad["id"])[-1][0] == "failed"
    assert served.ask("GET", "/v1/jobs/none/events").status == 404


def test_who_watches_a_job_is_told_that_it_is_gone_or_the_server_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.serve.events.NOTE_INTERVAL", 0.01)
    monkeypatch.setattr("tmnmt.serve.events.QUIET", 0.0)
    with ExitStack() as open_, tiny_server(folder, limits=Limits(seconds=1)) as server:
        ids = [server.service.jobs.make("document", {}, ANYBODY) for _ in range(2)]
        replies = list[http.client.HTTPResponse]()
        for id in ids:
            connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
            open_.callback(connection.close)
            connection.request("GET", f"/v1/jobs/{id}/events")
            replies.append(connection.getresponse())  # it is told from now on
        assert server.ask("DELETE", f"/v1/jobs/{ids[0]}").status == 204
        gone = replies[0].read()
        server.stop()
        ended = replies[1].read()
    for body, code in ((gone, "not_found"), (ended, "stopping")):
        first, *stays, last = body.decode().split("\n\n")[:-1]
        assert first.startswith("event: progress") and set(stays) <= {": "}
        assert last.startswith("event: error") and code in last


def test_a_document_in_a_session_has_what_was_confirmed(served: Server) -> None:
    path = f"/v1/sessions/{done(served, '/v1/sessions', memories=['law'], write_to='')['id']}"
    text = "All documents in a session are told."
    done(served, f"{path}/confirm", src=text, tgt="Tout est dit.")
    for name, content in (("a.html", f"<p>{text}</p>"), ("a.md", f"# {text}\n")):
        job = sent(served, f"{path}/documents?name={name}", content.encode())
        assert (job["state"], job["translated"]) == ("done", 1)
        made = served.ask("GET", f"/v1/jobs/{job['id']}/file").body.decode()
        assert made == content.replace(text, "Tout est dit.")
    # the segment that was confirmed is somebody's work, its repetition is a full match
    unit = f"<trans-unit id='1'><source>{text}</source></trans-unit>"
    xliff = (
        "<xliff version='1.2'><file original='a' source-language='en' target-language='fr' "
        f"datatype='plaintext'><body>{unit}{unit}</body></file></xliff>"
    )
    job = sent(served, f"{path}/documents?name=a.xlf", xliff.encode())
    made = served.ask("GET", f"/v1/jobs/{job['id']}/file").body.decode()
    assert re.findall("<target state[^>]*>", made) == [
        '<target state="translated">',
        '<target state="translated" state-qualifier="exact-match">',
    ]
    without = sent(served, "/v1/documents?name=a.html", f"<p>{text}</p>".encode())
    assert "Tout est dit." not in served.ask("GET", f"/v1/jobs/{without['id']}/file").body.decode()
    assert served.ask("POST", "/v1/sessions/none/documents?name=a.html", b"x").status == 404
    assert served.ask("POST", f"{path}/documents", b"x").status == 400
    reply = served.ask("POST", f"{path}/translate/stream", {"texts": [text, "No."] * 9})
    *every, last = events(reply.body)
    assert last == ("done", {"model": "model", "texts": 18}) and len(every) == 18
    assert {one["text"] for _, one in every[::2]} == {"Tout est dit."}
    wrong = {"texts": ["a"], "source": "en"}
    assert served.ask("POST", f"{path}/translate/stream", wrong).status == 400


def test_a_session_is_saved_for_the_command(served: Server, folder: Path, tmp_path: Path) -> None:
    path = f"/v1/sessions/{done(served, '/v1/sessions', memories=['law'], write_to='')['id']}"
    pair: dict[str, Any] = {"src": "All is saved.", "tgt": "Tout est gardé."}
    done(served, f"{path}/confirm", **pair)
    assert served.get(f"{path}/confirmed") == {"pairs": [pair]}
    (file := tmp_path / "session").write_bytes(served.ask("GET", f"{path}/save").body)
    translator = Translator.load(folder / "model", [folder / "law"], TranslationOptions(threads=1))
    assert translator.session(file).translate(pair["src"]).tgt == pair["tgt"]


@pytest.fixture(scope="module")
def with_terms(folder: Path, beside: str) -> Iterator[Server]:
    (folder / "house.csv").write_text("source,target\nCommission,Kommission\n", encoding="utf-8")
    with tiny_server(folder, ("law=law",), terms=("house=house.csv",), sessions=beside) as server:
        yield server


TEXT = "The Commission shall inform the State."


def said(server: Server, **fields: Any) -> str:
    found = done(server, "/v1/translate", texts=[TEXT], terms_mode="hard", **fields)
    return str(found["translations"][0]["text"])


def test_terms_are_kept_to_all_or_by_name(with_terms: Server) -> None:
    assert "Kommission" in said(with_terms) and "Kommission" in said(with_terms, terms=["house"])
    assert "Kommission" not in said(with_terms, terms=[])
    body = {"texts": [TEXT], "terms": ["none"]}
    assert with_terms.ask("POST", "/v1/translate", body).status == 404
    path = f"/v1/sessions/{done(with_terms, '/v1/sessions', terms_mode='hard')['id']}"
    in_session = done(with_terms, f"{path}/translate", texts=[TEXT])["translations"][0]
    assert "Kommission" in in_session["text"]
    assert with_terms.get(path)["terms"] == ["house"]
    none = done(with_terms, "/v1/translate", texts=["The Commission."], options={"mode": "off"})
    checks = none["translations"][0]["segments"][0]["checks"]
    assert {one["name"] for one in checks} <= {"terms"}


def test_a_glossary_is_made_used_and_deleted(with_terms: Server) -> None:
    entries = [{"source": "State", "target": "Kanton"}]
    pair: dict[str, Any] = {"name": "mine", "source": "en", "target": "fr", "entries": entries}
    made = done(with_terms, "/v1/terms", **pair)
    assert made["dictionaries"] == [{"source": "en", "target": "fr", "terms": 1}]
    listed = with_terms.get("/v1/terms")
    assert listed["terms"] == [{"name": "house", "source": "en", "target": "fr", "terms": 1}]
    assert [one["id"] for one in listed["glossaries"]] == [made["id"]]
    both = said(with_terms, terms=["house", made["id"]])
    assert "Kanton" in both and "Kommission" in both
    assert with_terms.ask("DELETE", f"/v1/terms/{made['id']}").status == 204
    body = {"texts": [TEXT], "terms": [made["id"]]}
    assert with_terms.ask("POST", "/v1/translate", body).status == 404
    wrong: list[dict[str, Any]] = [
        {"entries": []},
        {"source": "x" * 70},
        {"entries": [{"source": "a"}]},
    ]
    for change in wrong:
        assert with_terms.ask("POST", "/v1/terms", pair | change).status == 400


def test_a_term_that_is_added_in_a_session_is_in_its_next_translation(
    with_terms: Server,
) -> None:
    """Before those of lists, in this session alone, until it is taken out; and what was confirmed
    before stays known."""
    begun = done(with_terms, "/v1/sessions", terms_mode="hard")
    path = f"/v1/sessions/{begun['id']}"

    def text(path: str = path) -> str:
        return str(done(with_terms, f"{path}/translate", texts=[TEXT])["translations"][0]["text"])

    assert "Kommission" in text() and "Kanton" not in text()
    done(with_terms, f"{path}/confirm", src="Yes.", tgt="Mais oui.")
    term: dict[str, Any] = {"source": "commission", "target": "Behörde"}
    assert done(with_terms, f"{path}/terms", **term) == {"terms": [term]}
    assert "Behörde" in text() and "Kommission" not in text()
    done(with_terms, f"{path}/terms", source="State", target="Kanton")
    assert "Kanton" in text() and "Behörde" in text()
    assert [one["source"] for one in with_terms.get(f"{path}/terms")["terms"]] == [
        "commission",
        "State",
    ]
    assert with_terms.get(f"{path}/confirmed")["pairs"][0]["tgt"] == "Mais oui."
    again = done(with_terms, f"{path}/translate", texts=["Yes."])["translations"][0]
    assert again["text"] == "Mais oui."
    other = f"/v1/sessions/{done(with_terms, '/v1/sessions', terms_mode='hard')['id']}"
    assert "Kommission" in text(other)
    done(with_terms, f"{path}/terms", source="COMMISSION")
    assert "Kommission" in text() and "Kanton" in text()
    assert with_terms.get("/v1/terms")["glossaries"] == []
    assert with_terms.ask("POST", f"{path}/terms", {"source": " ", "target": "x"}).status == 400
    assert with_terms.ask("DELETE", path).status == 204
    assert with_terms.ask("GET", f"{path}/terms").status == 404


def test_the_terms_of_a_text_are_found_in_the_lists_and_the_session(with_terms: Server) -> None:
    path = f"/v1/sessions/{done(with_terms, '/v1/sessions')['id']}"
    text = "All Commissions inform the 𝒳 State."
    (hit,) = done(with_terms, f"{path}/terms/find", text=text)["terms"]
    assert (hit["source"], hit["targets"], hit["in_session"]) == (
        "Commission",
        ["Kommission"],
        False,
    )
    assert text[hit["start"] : hit["end"]] == "Commissions"
    done(with_terms, f"{path}/terms", source="State", target="Kanton")
    done(with_terms, f"{path}/terms", source="commission", target="Behörde")
    hits = done(with_terms, f"{path}/terms/find", text=text)["terms"]
    assert [(hit["targets"], hit["in_session"]) for hit in hits] == [
        (["Behörde"], True),
        (["Kanton"], True),
    ]
    assert text[hits[1]["start"] : hits[1]["end"]] == "State"
    assert done(with_terms, f"{path}/terms/find", text="")["terms"] == []
    none = f"/v1/sessions/{done(with_terms, '/v1/sessions', terms=[])['id']}"
    assert done(with_terms, f"{none}/terms/find", text=text)["terms"] == []
    assert with_terms.ask("POST", "/v1/sessions/none/terms/find", {"text": text}).status == 404


def test_a_domain_chooses_the_meanings_of_terms(folder: Path, beside: str) -> None:
    """Of a request and of a session, which keeps it when a term of its own leaves nothing to
    choose; a domain that no meaning has is refused at the beginning."""
    rows = "State,Zustand,physics\nState,Staat,politics\nCommission,Gebühr,money\n"
    rows += "Commission,Behörde,office\n"
    (folder / "meanings.csv").write_text(f"source,target,context\n{rows}", encoding="utf-8")
    lists = ("meanings=meanings.csv",)
    with tiny_server(folder, ("law=law",), terms=lists, sessions=beside) as server:
        for domain, target in (("politics", "Staat"), (" physics ", "Zustand")):
            assert target in said(server, terms_domain=domain)
        begun = done(server, "/v1/sessions", terms_mode="hard", terms_domain="politics")
        path = f"/v1/sessions/{begun['id']}"
        assert server.get(path)["terms_domain"] == "politics"

        def text() -> str:
            return str(done(server, f"{path}/translate", texts=[TEXT])["translations"][0]["text"])

        assert "Staat" in text()
        (hit,) = done(server, f"{path}/terms/find", text="The State.")["terms"]
        assert hit["targets"] == ["Staat"]
        done(server, f"{path}/terms", source="State", target="Kanton")
        assert "Kanton" in text()
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"terms_domain": "politcs"}, "politcs"),
            ({"terms_domain": "politics", "terms": []}, "there are none"),
            ({"terms_domain": "x" * 201}, "200 characters"),
        ]
        for fields, problem in wrong:
            for route, more in (("translate", {"texts": [TEXT]}), ("sessions", {})):
                reply = server.ask("POST", f"/v1/{route}", {**fields, **more})
                assert reply.status == 400 and problem in reply.json["error"]["message"]


def test_a_session_keeps_to_a_glossary_as_it_is_now(with_terms: Server) -> None:
    entries = [{"source": "Commission", "target": "Behörde"}]
    pair: dict[str, Any] = {"name": "mine", "source": "en", "target": "fr", "entries": entries}
    glossary = done(with_terms, "/v1/terms", **pair)["id"]
    begun = done(with_terms, "/v1/sessions", terms_mode="hard", terms=[glossary])
    path = f"/v1/sessions/{begun['id']}"
    found = done(with_terms, f"{path}/translate", texts=[TEXT])["translations"][0]
    assert "Behörde" in found["text"]
    assert with_terms.ask("DELETE", f"/v1/terms/{glossary}").status == 204
    assert with_terms.ask("POST", f"{path}/translate", {"texts": [TEXT]}).status == 404


def test_a_key_has_the_terms_that_it_names(folder: Path, tmp_path: Path) -> None:
    (folder / "house.csv").write_text("source,target\nCommission,Kommission\n", encoding="utf-8")
    file = tmp_path / "keys.toml"
    keys = {
        name: new_key(file, name, "translate", None, [], terms)
        for name, terms in (("one", ["house"]), ("other", []))
    }
    with tiny_server(folder, keys=Keys.load(file), terms=("house=house.csv",)) as server:
        for name, expected in (("one", True), ("other", False)):
            body: dict[str, Any] = {"texts": [TEXT], "terms_mode": "hard"}
            text = done(server, "/v1/translate", key=keys[name], **body)["translations"][0]["text"]
            assert ("Kommission" in text) == expected
        body = {"texts": [TEXT], "terms": ["house"]}
        assert server.ask("POST", "/v1/translate", body, key=keys["other"]).status == 404


REPEATED = [PAIRS[0][0], "It is new.", "Save it.", "It is new.", "Save it.", PAIRS[0][0]]


@pytest.mark.parametrize(
    ("name", "whole", "entry"),
    [
        ("a.html", "<html><body>{}</body></html>", "<p>{1}</p>\n"),
        ("a.json", '{{{}"z": 1}}', '"k{0}": "{1}",\n'),
        (
            "a.po",
            'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "Save it."\nmsgstr "Fait."\n\n{}',
            'msgctxt "{0}"\nmsgid "{1}"\nmsgstr ""\n\n',
        ),
        (
            "a.xlf",
            "<xliff version='1.2'><file original='a' source-language='en' target-language='fr' "
            "datatype='plaintext'><body>{}</body></file></xliff>",
            "<trans-unit id='{0}'><source>{1}</source></trans-unit>\n",
        ),
    ],
)
def test_a_document_has_the_repetitions_that_analyse_counts(
    served: Server,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    whole: str,
    entry: str,
) -> None:
    text = whole.format("".join(entry.format(*numbered) for numbered in enumerate(REPEATED)))
    (tmp_path / name).write_text(text, encoding="utf-8")
    job = sent(served, f"/v1/documents?name={name}", text.encode())
    command = ["analyse", "--json", "--memory", str(folder / "law"), str(tmp_path / name)]
    assert run(command) == 0
    bands = json.loads(capsys.readouterr().out)["total"]["bands"]
    counts = {band: count["segments"] for band, count in bands.items()}
    assert job["repetitions"] == counts["repetitions"] >= 2
    assert job["segments"] - job["translated"] == counts["unchanged"]
