"""Documents on which people work together, through the server's interface."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Reply, Server, tiny_server
from tiny_model import PAIRS

from tmnmt.serve import api_desk
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.roles import Role
from tmnmt.serve.service import Limits, Service
from tmnmt.serve.workspace import preparing

PO = """msgid ""
msgstr ""
"Language: fr\\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\\n"

#. A hint.
msgid "Save <b>all</b> 3 files"
msgstr ""

msgctxt "menu"
msgid "Close"
msgstr ""

msgid "Close the door"
msgstr "Fermer la porte"

msgctxt "dialog"
msgid "Close"
msgstr ""

#, fuzzy
msgctxt "window"
msgid "Close"
msgstr "Fermé"
"""


def coded(content: bytes | str) -> str:
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()


class Desk:
    """One document of a server, as somebody with a key sees it."""

    def __init__(self, server: Server, id: str, key: str = "") -> None:
        self.server, self.id, self.key = server, id, key

    def ask(self, method: str, path: str = "", body: Any = None) -> Reply:
        return self.server.ask(method, f"/v1/desk/{self.id}{path}", body, key=self.key)

    def do(self, method: str, path: str = "", body: Any = None) -> Any:
        reply = self.ask(method, path, body)
        assert reply.status == 200, reply.body
        return reply.json

    def segment(self, number: int) -> Any:
        (found,) = self.do("GET", f"/segments?first={number}&count=1")["segments"]
        return found

    def write(self, number: int, **body: Any) -> Any:
        body = {"version": self.segment(number)["version"], **body}
        return self.do("PATCH", f"/segments/{number}", body)

    def confirm(self, number: int, text: str, **body: Any) -> Any:
        body = {"version": self.segment(number)["version"], "text": text, **body}
        return self.do("POST", f"/segments/{number}/confirm", body)

    def about(self) -> Any:
        return self.do("GET")

    def pairs(self) -> list[Any]:
        path = f"/v1/sessions/{self.about()['session']['id']}/confirmed"
        return list(self.server.ask("GET", path, key=self.key).json["pairs"])


def opened(
    server: Server, content: str = PO, name: str = "a.po", key: str = "", **body: Any
) -> Desk:
    sent = {"name": name, "content": coded(content), "write_to": "", **body}
    reply = server.ask("POST", "/v1/desk", sent, key=key)
    assert reply.status == 200, reply.body
    return Desk(server, reply.json["id"], key)


@pytest.fixture(scope="module")
def server(folder: Path, beside: str) -> Iterator[Server]:
    with tiny_server(folder, ("law=law",), ("desk=desk",), sessions=beside) as server:
        yield server


def test_a_file_becomes_a_document_with_an_address(server: Server) -> None:
    desk = opened(server, name="dir/a.po", project="house")
    about = desk.about()
    assert about["kind"] == "po" and about["segments"] == 5 and about["version"] == 1
    assert about["words"] == {"all": 10, "confirmed": 3, "draft": 0}
    assert about["states"] == {"untouched": 5} and about["project"] == "house"
    assert about["session"]["write_to"] is None and about["by"] == "you"
    found = desk.do("GET", "/segments")
    first, menu, door, dialog, window = found["segments"]
    assert found["version"] == 1 and first["source"] == "Save <g1>all</g1> 3 files"
    assert first["notes"] == ["A hint."] and first["state"] == "untouched"
    assert first["file"] == {"target": None, "state": "new"} and first["words"] == 4
    assert door["file"] == {"target": "Fermer la porte", "state": "translated"}
    assert [menu["repeats"], dialog["repeats"], window["repeats"]] == [None, 2, 2]
    assert menu["context"] == "menu" and window["file"]["state"] == "draft"
    documents = server.get("/v1/desk")["documents"]
    assert documents[0] == about
    assert desk.do("GET", "/segments?first=4&count=1")["segments"] == [dialog]


def test_segments_are_chosen_by_state_text_and_issues(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_desk, "FEWEST_READ", 1)
    desk = opened(server)
    desk.write(1, text="Tout & rien &amp; <g1>x</g1>")

    def numbers(query: str) -> tuple[list[int], int | None]:
        read = desk.do("GET", f"/segments?{query}")
        return [segment["number"] for segment in read["segments"]], read["next"]

    assert numbers("state=open") == ([1, 2, 4, 5], None)
    assert numbers("state=open&count=2") == ([1, 2], 3) and numbers("first=3&count=1") == ([3], 4)
    assert numbers("state=draft") == numbers("issues=true") == ([1], None)
    assert numbers("text=CLOSE%20THE") == numbers("text=porte") == ([3], None)
    assert numbers("text=%26%20rien%20%26") == ([1], None) and numbers("first=9") == ([], None)
    assert desk.ask("GET", "/segments?state=done").status == 400


def test_a_draft_is_written_and_discarded(server: Server) -> None:
    desk = opened(server)
    found = desk.write(2, text="Fer", origin="model", quality=0.25)
    assert (found["text"], found["state"], found["version"]) == ("Fer", "draft", 2)
    assert (found["origin"], found["quality"], found["by"]) == ("model", 0.25, "you")
    assert desk.about()["words"]["draft"] == 1 and desk.segment(2) == found
    again = desk.write(2, text="Fermer", version=found["version"])
    assert again["origin"] == "person" and again["quality"] is None
    gone = desk.write(2, text=None)
    assert (gone["text"], gone["state"]) == (None, "untouched")
    assert desk.write(5, text="Fermé")["state"] == "untouched"  # what the file has anyway
    assert desk.about()["states"] == {"untouched": 5}
    emptied = desk.write(5, text="")
    assert (emptied["text"], emptied["state"]) == ("", "draft") and desk.segment(5) == emptied
    desk.write(5, text=None)


def test_of_two_people_at_one_segment_neither_loses_a_text(server: Server) -> None:
    desk = opened(server)
    first = desk.write(2, text="Fermer")
    late = {"version": 1, "text": "Clore"}
    reply = desk.ask("PATCH", "/segments/2", late)
    assert reply.status == 409 and reply.json["error"]["code"] == "conflict"
    assert reply.json["segment"] == first == desk.segment(2)
    reply = desk.ask("POST", "/segments/2/confirm", late)
    assert reply.status == 409 and reply.json["segment"] == first and desk.pairs() == []
    same = desk.do("PATCH", "/segments/2", {"version": 1, "text": "Fermer"})
    assert same == first  # the answer was lost, and the request came again
    assert "version is needed" in str(desk.ask("PATCH", "/segments/2", {"text": "x"}).body)


def test_what_is_found_out_beside_them_is_no_conflict_for_people(server: Server) -> None:
    desk = opened(server)
    desk.do("POST", "/segments/2/comments", {"text": "A verb?"})
    desk.do("PATCH", "/segments/2", {"quality": 0.5})
    assert desk.segment(2)["version"] == 3
    written = desk.do("PATCH", "/segments/2", {"version": 1, "text": "Fermer"})
    assert written["text"] == "Fermer" and len(written["comments"]) == 1
    assert desk.ask("PATCH", "/segments/2", {"version": 3, "text": "Clore"}).status == 409


def test_drafts_are_checked_and_a_check_is_ignored_for_a_reason(server: Server) -> None:
    desk = opened(server)
    found = desk.write(1, text="Enregistrer tout")
    names = {check["name"] for check in found["checks"]}
    assert {"numbers", "codes"} <= names and all(c["ignored"] is None for c in found["checks"])
    assert desk.about()["issues"] == len(found["checks"])
    body = {"version": found["version"], "text": "Enregistrer tout", "on_checks": "refuse"}
    reply = desk.ask("POST", "/segments/1/confirm", body)
    assert reply.status == 409 and reply.json["error"]["code"] == "checks"
    assert {check["name"] for check in reply.json["checks"]} == names
    for check in found["checks"]:
        ignored = {"check": check["name"], "what": check["what"], "reason": "as agreed"}
        found = desk.do("PATCH", "/segments/1", {"ignore": ignored})
    assert {check["ignored"] for check in found["checks"]} == {"as agreed"}
    assert desk.about()["issues"] == 0
    assert desk.ask("GET", "/file?issues=refuse").status == 200
    done = desk.do("POST", "/segments/1/confirm", {**body, "version": found["version"]})
    assert done["segment"]["state"] == "translated"
    ignored |= {"reason": None}
    assert desk.do("PATCH", "/segments/1", {"ignore": ignored})["checks"]
    reply = desk.ask("GET", "/file?issues=refuse")
    assert reply.status == 409 and reply.json["issues"][0]["segment"] == 1
    ignored |= {"what": "something else", "reason": "x"}
    assert desk.ask("PATCH", "/segments/1", {"ignore": ignored}).status == 404
    assert desk.write(1, text="<g7>x</g7>")["checks"][0]["name"] == "codes"


def test_a_segment_is_confirmed_in_the_session_and_in_the_file(server: Server) -> None:
    desk = opened(server)
    done = desk.confirm(1, "Enregistrer <g1>tout</g1> 3 fichiers", keys=7, request="r")
    assert done["checks"] == [] and done["differs"] == [] and done["repetitions"] == []
    segment = done["segment"]
    assert segment["confirmed"] == "Enregistrer <g1>tout</g1> 3 fichiers"
    assert (segment["text"], segment["state"]) == (None, "translated")
    assert [pair["tgt"] for pair in desk.pairs()] == ["Enregistrer tout 3 fichiers"]
    written = desk.ask("GET", "/file").body.decode()
    target = 'msgstr "Enregistrer <b>tout</b> 3 fichiers"'
    assert written == PO.replace('files"\nmsgstr ""', f'files"\n{target}')
    assert desk.about()["words"] == {"all": 10, "confirmed": 7, "draft": 0}
    draft = desk.write(1, text="Autre")
    assert draft["state"] == "draft" and draft["confirmed"] == segment["confirmed"]
    assert desk.write(1, text=None)["state"] == "translated"
    path = f"/v1/sessions/{desk.about()['session']['id']}"
    (reviewed, *_) = server.get(f"{path}/review")["segments"]
    assert (reviewed["typed"], reviewed["segment"], reviewed["by"]) == (7, "1", "you")


def test_a_request_to_confirm_that_comes_again_confirms_once(server: Server) -> None:
    desk = opened(server)
    body = {"version": 1, "text": "Fermer", "request": "r1", "repetitions": True}
    first = desk.do("POST", "/segments/2/confirm", body)
    version = desk.about()["version"]
    again = desk.do("POST", "/segments/2/confirm", body)
    assert again == first and desk.about()["version"] == version
    assert len(desk.pairs()) == 3
    other = {**body, "text": "Clore"}
    assert desk.ask("POST", "/segments/2/confirm", other).status == 409


def test_repetitions_are_confirmed_and_taken_back_together(server: Server) -> None:
    desk = opened(server)
    before = desk.segment(5)
    done = desk.confirm(4, "Fermer", repetitions=True)
    assert [s["number"] for s in done["repetitions"]] == [2, 5] and done["differs"] == []
    assert {s["origin"] for s in done["repetitions"]} == {"repetition"}
    assert {s["confirmed"] for s in done["repetitions"]} == {"Fermer"}
    assert len(desk.pairs()) == 3
    desk.confirm(3, "Fermer cette porte")
    assert [s["number"] for s in desk.do("POST", "/undo", {})["segments"]] == [3]
    back = desk.do("POST", "/undo", {})["segments"]
    assert [s["number"] for s in back] == [2, 4, 5] and desk.pairs() == []
    assert [s["state"] for s in back] == ["untouched", "draft", "untouched"]
    assert back[1]["text"] == "Fermer"
    same = {"version", "by", "time"}
    now = desk.segment(5)
    assert {k: v for k, v in now.items() if k not in same} == {
        k: v for k, v in before.items() if k not in same
    }
    assert desk.ask("POST", "/undo", {}).json["error"]["code"] == "nothing_confirmed"
    assert desk.ask("POST", "/undo", {"number": 2}).status == 409


def test_a_repetition_with_a_text_of_a_person_is_told_and_left_alone(server: Server) -> None:
    desk = opened(server)
    desk.write(4, text="Clore")
    done = desk.confirm(2, "Fermer", repetitions=True)
    assert done["differs"] == [4] and [s["number"] for s in done["repetitions"]] == [5]
    assert desk.segment(4)["text"] == "Clore"
    desk.confirm(4, "Clore")
    done = desk.confirm(2, "Refermer", repetitions=True)
    assert done["differs"] == [4] and desk.segment(5)["confirmed"] == "Refermer"
    assert sorted(pair["tgt"] for pair in desk.pairs()) == ["Clore", "Refermer", "Refermer"]
    alone = desk.do("POST", "/undo", {"number": 5})["segments"]
    assert [s["number"] for s in alone] == [5] and alone[0]["state"] == "untouched"
    assert [s["number"] for s in desk.do("POST", "/undo", {"number": 2})["segments"]] == [2]
    assert [pair["tgt"] for pair in desk.pairs()] == ["Clore"]


def test_what_is_confirmed_is_written_to_the_memory_once(server: Server) -> None:
    desk = opened(server, write_to="desk")
    search = {"texts": ["Close"], "threshold": 1}

    def found() -> list[str]:
        reply = server.ask("POST", "/v1/memories/desk/search", search).json
        return [match["tgt"] for match in reply["results"][0]["matches"]]

    desk.confirm(2, "Fermer", repetitions=True)
    assert found() == ["Fermer"]
    desk.do("POST", "/undo", {})
    assert found() == []


def test_what_is_confirmed_is_reviewed_and_approved(server: Server) -> None:
    desk = opened(server)
    reply = desk.ask("PATCH", "/segments/2", {"version": 1, "state": "approved"})
    assert reply.status == 409 and reply.json["error"]["code"] == "not_confirmed"
    desk.confirm(2, "Fermer")
    assert desk.write(2, state="reviewed")["state"] == "reviewed"
    assert desk.write(2, text="Fermez")["state"] == "draft"
    assert desk.write(2, text=None)["state"] == "reviewed"
    assert desk.confirm(3, "Fermer la porte", state="approved")["segment"]["state"] == "approved"
    assert desk.about()["states"] == {"untouched": 3, "reviewed": 1, "approved": 1}
    assert desk.confirm(2, "Fermez")["segment"]["state"] == "translated"


def test_a_history_has_every_confirmed_text_and_drafts_at_pauses(server: Server) -> None:
    desk = opened(server)
    for text in ("F", "Fe", "Fermer"):
        desk.write(2, text=text)
    desk.confirm(2, "Fermer")
    desk.write(2, state="approved")
    desk.do("POST", "/undo", {"number": 2})
    versions = desk.do("GET", "/segments/2/history")["versions"]
    assert [(v["state"], v["text"], v["confirmed"]) for v in versions] == [
        ("draft", "Fermer", None),
        ("approved", None, "Fermer"),
        ("translated", None, "Fermer"),
        ("draft", "Fermer", None),
    ]
    desk.write(5, text="Fermer")
    states = [v["state"] for v in desk.do("GET", "/segments/5/history")["versions"]]
    assert states == ["draft", "untouched"]  # what the file had is not forgotten
    for number in range(105):
        desk.confirm(4, f"Fermer {number}")
    versions = desk.do("GET", "/segments/4/history")["versions"]
    assert len(versions) == 100 and versions[0]["confirmed"] == "Fermer 104"
    assert desk.ask("GET", "/segments/9/history").status == 404


def test_a_history_of_what_was_confirmed_at_once_begins_with_the_file(server: Server) -> None:
    desk = opened(server)
    for number, former in ((5, ["untouched"]), (2, [])):
        desk.confirm(number, "Fermer tout")
        versions = desk.do("GET", f"/segments/{number}/history")["versions"]
        assert [v["state"] for v in versions] == ["translated", *former]
        assert versions[0]["confirmed"] == "Fermer tout" and versions[0]["time"]


def test_comments_are_added_and_deleted(server: Server) -> None:
    desk = opened(server)
    found = desk.do("POST", "/segments/2/comments", {"text": " Is it a verb? "})
    (comment,) = found["comments"]
    assert (comment["text"], comment["by"]) == ("Is it a verb?", "you") and comment["time"]
    assert desk.segment(2)["comments"] == [comment]
    assert desk.do("DELETE", f"/segments/2/comments/{comment['id']}")["comments"] == []
    assert desk.ask("DELETE", f"/segments/2/comments/{comment['id']}").status == 404
    assert desk.ask("POST", "/segments/2/comments", {"text": " "}).status == 400
    assert desk.ask("POST", "/segments/2/comments", {"text": "x" * 2_001}).status == 400
    for _ in range(50):
        desk.do("POST", "/segments/2/comments", {"text": "x"})
    assert desk.ask("POST", "/segments/2/comments", {"text": "x"}).status == 409


def test_many_drafts_are_written_at_once(server: Server) -> None:
    desk = opened(server)
    desk.write(4, text="Clore")
    drafts: list[dict[str, Any]]
    drafts = [{"number": n, "version": 1, "text": "Fermer"} for n in (2, 4, 5)]
    reply = desk.do("POST", "/segments", {"changes": drafts})
    assert [s["number"] for s in reply["segments"]] == [2, 5]
    assert [(s["number"], s["text"]) for s in reply["conflicts"]] == [(4, "Clore")]
    assert {s["version"] for s in reply["segments"]} == {3} == {desk.about()["version"]}
    drafts = [{"number": 2, "version": 3, "text": None}]  # null discards the draft
    (discarded,) = desk.do("POST", "/segments", {"changes": drafts})["segments"]
    assert (discarded["text"], discarded["state"]) == (None, "untouched")
    drafts = [{"number": 99, "version": 1, "text": "x"}]
    assert desk.ask("POST", "/segments", {"changes": drafts}).status == 404


def test_comments_go_into_the_file_and_come_back(server: Server) -> None:
    desk = opened(server, PO.replace("#. A hint.", "# Is it so?\n#. A hint."))
    (of_file,) = desk.segment(1)["comments"]
    assert (of_file["text"], of_file["by"], desk.segment(1)["notes"]) == (
        "Is it so?",
        "",
        ["A hint."],
    )
    gone = desk.ask("DELETE", f"/segments/1/comments/{of_file['id']}")
    assert gone.status == 409 and gone.json["error"]["code"] == "in_file"
    desk.do("POST", "/segments/1/comments", {"text": "It is."})
    desk.do("POST", "/segments/2/comments", {"text": "A verb?"})
    desk.confirm(2, "Fermer")
    written = desk.ask("GET", "/file").body.decode()
    assert written.count("# Is it so?\n") == 1 and "#. A hint" in written
    again = opened(server, written).do("GET", "/segments?count=2")["segments"]
    told = [[comment["text"] for comment in segment["comments"]] for segment in again]
    assert told == [["Is it so?", "It is."], ["A verb?"]]
    assert again[1]["file"]["target"] == "Fermer"
    silent = opened(server)
    assert silent.ask("GET", "/file").body.decode() == PO
    lines = opened(server, "One.\nTwo.\n", "a.txt")  # which has no place for them
    lines.do("POST", "/segments/1/comments", {"text": "A verb?"})
    assert lines.ask("GET", "/file").body.decode() == "One.\nTwo.\n"


def test_no_segment_is_twice_in_one_request(server: Server) -> None:
    desk = opened(server)
    drafts = [{"number": 2, "version": 1, "text": text} for text in ("Fermer", "Clore")]
    reply = desk.ask("POST", "/segments", {"changes": drafts})
    assert reply.status == 400 and "segment 2 is there more than once" in str(reply.body)
    assert desk.segment(2)["text"] is None


def test_control_characters_are_taken_out_wherever_a_text_comes_in(server: Server) -> None:
    desk = opened(server)
    assert desk.write(2, text="Fer\x01mer\x1etout\n")["text"] == "Fermer\u2011tout\n"
    done = desk.confirm(4, "\x01Clo\x7fre", request="r")["segment"]
    assert done["confirmed"] == "Clore" == desk.pairs()[0]["tgt"]
    same = {"version": 1, "text": "\x01Clo\x7fre", "request": "r"}  # as it came before
    assert desk.do("POST", "/segments/4/confirm", same)["segment"] == done
    drafts = [{"number": 5, "version": 1, "text": "\ufffeF\x0bg"}]
    assert desk.do("POST", "/segments", {"changes": drafts})["segments"][0]["text"] == "F g"
    found = desk.do("POST", "/segments/5/comments", {"text": "a\x02\tb"})
    assert found["comments"][0]["text"] == "a\tb"
    assert not set("\x01\x7f\ufffe") & set(desk.ask("GET", "/file?drafts=true").body.decode())


LIMITED = """msgid ""
msgstr ""
"Language: fr\\n"

#, max-length:6
msgctxt "button"
msgid "Close"
msgstr "Refermer"

msgctxt "menu"
msgid "Close"
msgstr ""
"""


def test_what_is_longer_than_the_file_allows_is_an_issue(server: Server) -> None:
    desk = opened(server, LIMITED)
    issue = {"name": "limit", "what": "8 characters of 6", "ignored": None}
    assert desk.segment(1)["checks"] == [issue] and desk.about()["issues"] == 1
    assert desk.segment(2)["repeats"] is None  # another text may stand there
    refused = desk.ask("GET", "/file?issues=refuse")
    assert refused.status == 409 and refused.json["issues"][0]["name"] == "limit"
    body = {"version": 1, "text": "Fermez &amp; &amp;", "on_checks": "refuse"}
    reply = desk.ask("POST", "/segments/1/confirm", body)
    assert reply.status == 409 and reply.json["checks"][-1]["what"] == "10 characters of 6"
    assert desk.write(1, text="Fermez-la")["checks"][-1]["name"] == "limit"
    done = desk.confirm(1, "Fermer", on_checks="refuse")
    assert done["checks"] == [] and desk.ask("GET", "/file?issues=refuse").status == 200
    assert desk.confirm(2, "Refermer", on_checks="refuse")["checks"] == []


def test_how_likely_a_suggestion_is_right_is_kept_whatever_is_confirmed(server: Server) -> None:
    desk = opened(server)
    sent = {"suggested": "Clore", "quality": 0.25}
    assert desk.confirm(2, "Fermer", **sent)["segment"]["quality"] == 0.25
    assert desk.confirm(2, "Fermez")["segment"]["quality"] == 0.25  # nothing was suggested then


def test_who_waits_for_changes_gets_them_and_sees_who_is_there(server: Server) -> None:
    desk = opened(server)
    start = time.monotonic()
    quiet = desk.do("GET", "/changes?since=1&wait=0.5")
    assert time.monotonic() - start >= 0.5
    assert quiet["segments"] == [] == quiet["people"] and quiet["version"] == 1
    answers = list[Any]()
    waiting = threading.Thread(
        target=lambda: answers.append(desk.do("GET", "/changes?since=1&wait=20"))
    )
    waiting.start()
    time.sleep(0.5)
    desk.write(2, text="Fermer")
    waiting.join(10)
    assert [s["number"] for s in answers[0]["segments"]] == [2]
    assert answers[0]["version"] == 2 == answers[0]["about"]["version"]
    assert desk.do("PUT", "/presence", {"number": 2, "tab": "t"}) == {}
    told = desk.do("GET", f"/changes?since=2&wait=20&stamp={quiet['stamp']}")
    ((name, tab, number),) = [(p["name"], p["tab"], p["number"]) for p in told["people"]]
    assert (name, tab, number) == ("you", "t", 2) and told["segments"] == []
    behind = desk.do("GET", "/changes?since=99&wait=20")  # of a storage that was put back
    assert len(behind["segments"]) == 5


def test_matches_of_the_same_text_fill_a_document_as_its_user_wishes(server: Server) -> None:
    (first, target), (second, _) = PAIRS[:2]
    lines = f"{first}\n{second}\nNobody knows it.\n"
    none = opened(server, lines, "a.txt", sentences=False)
    assert none.about()["states"] == {"untouched": 3}
    full = opened(server, lines, "a.txt", sentences=False, fill="full")
    found = full.do("GET", "/segments")["segments"]
    assert [s["state"] for s in found] == ["draft", "draft", "untouched"]
    assert (found[0]["text"], found[0]["origin"]) == (target, "memory")
    assert found[0]["match"] >= 100 and found[2]["match"] is None
    assert full.pairs() == []


def test_tenants_see_nothing_of_one_another_and_roles_are_kept(
    folder: Path, tmp_path: Path, states: str
) -> None:
    path = tmp_path / "keys.toml"
    entries: tuple[tuple[str, str, Role, list[str]], ...] = (
        ("ann", "agency", "write", ["law", "desk2"]),
        ("ben", "agency", "translate", ["law", "desk2"]),
        ("cy", "other", "write", ["law"]),
        ("dee", "agency", "read", ["law", "desk2"]),
        ("eve", "agency", "translate", []),
    )
    keys = {
        name: new_key(path, name, role, tenant, memories)
        for name, tenant, role, memories in entries
    }
    memories = ("law=law",), ("desk2=desk2",)
    with tiny_server(folder, *memories, keys=Keys.load(path), sessions=states) as server:
        desk = opened(server, key=keys["ann"], write_to="desk2")
        assert desk.write(2, text="Fermer")["by"] == "ann"
        for path_ in ("", "/segments", "/changes?since=0", "/file", "/segments/2/history"):
            for name, status in (("cy", 404), ("dee", 403), ("eve", 404), ("ben", 200)):
                other = Desk(server, desk.id, keys[name])
                assert other.ask("GET", path_).status == status, (name, path_)
        for name, status in (("cy", 404), ("dee", 403), ("eve", 404)):
            other = Desk(server, desk.id, keys[name])
            body = {"version": 2, "text": "x"}
            assert other.ask("PATCH", "/segments/2", body).status == status
            assert other.ask("POST", "/segments/2/confirm", body).status == status
            assert other.ask("PUT", "/presence", {"number": 1}).status == status
            assert other.ask("POST", "/undo", {}).status == status
            assert other.ask("DELETE").status == status
        assert server.ask("GET", "/v1/desk", key=keys["cy"]).json["documents"] == []
        assert server.ask("GET", "/v1/desk", key=keys["eve"]).json["documents"] == []
        ben = Desk(server, desk.id, keys["ben"])
        assert ben.write(2, text="Clore")["by"] == "ben"
        body = {"version": 99, "text": "Clore"}
        assert ben.ask("POST", "/segments/2/confirm", body).status == 403  # it writes to a memory
        desk.confirm(2, "Fermer")
        assert ben.segment(2)["by"] == "ann"
        assert server.ask("GET", "/v1/desk/x").status == 401


def test_a_document_goes_with_its_session_and_the_session_not_alone(server: Server) -> None:
    desk = opened(server)
    session = f"/v1/sessions/{desk.about()['session']['id']}"
    reply = server.ask("DELETE", session)
    assert reply.status == 409 and "delete the document" in reply.json["error"]["message"]
    desk.confirm(1, "Fermer")
    pair = {"src": "Close", "tgt": "Clore"}
    for path, body in (
        ("/confirm", pair),
        ("/undo", {}),
    ):  # of which the document would know nothing
        reply = server.ask("POST", session + path, body)
        assert reply.status == 409 and reply.json["error"]["code"] == "in_use"
    renamed = desk.do("PATCH", "", {"name": "b.po", "project": "p"})
    assert (renamed["name"], renamed["project"], renamed["original"]) == ("b.po", "p", "a.po")
    assert desk.ask("DELETE").status == 204 and desk.ask("GET").status == 404
    assert server.ask("GET", session).status == 404 and desk.ask("DELETE").status == 404


def test_a_person_takes_back_what_that_person_confirmed_last(
    folder: Path, tmp_path: Path, states: str
) -> None:
    path = tmp_path / "keys.toml"
    ann, ben, cy = (
        new_key(path, name, "write", "agency", ["law"]) for name in ("ann", "ben", "cy")
    )
    with tiny_server(folder, ("law=law",), keys=Keys.load(path), sessions=states) as server:
        desk = opened(server, key=ann)
        desk.confirm(1, "Fermer")
        other = Desk(server, desk.id, ben)
        other.confirm(2, "Menu")
        assert Desk(server, desk.id, cy).ask("POST", "/undo", {}).status == 409
        assert [s["number"] for s in desk.do("POST", "/undo", {})["segments"]] == [1]
        assert other.segment(2)["state"] == "translated"
        assert desk.ask("POST", "/undo", {}).status == 409
        assert [s["number"] for s in desk.do("POST", "/undo", {"number": 2})["segments"]] == [2]


@pytest.mark.parametrize("number", [2**63, 2**53, 10**30])
def test_numbers_that_no_database_takes_are_refused(server: Server, number: int) -> None:
    desk = opened(server)
    change = {"number": number, "version": 0, "text": "a"}
    assert desk.ask("GET", f"/segments?first={number}").status == 400
    assert desk.ask("POST", "/segments", {"changes": [change]}).status == 400
    assert desk.ask("POST", "/undo", {"number": number}).status == 400
    assert desk.ask("PUT", "/presence", {"tab": "t", "number": number}).status == 400
    assert desk.ask("GET", f"/changes?since={number}").status == 400


def test_what_cannot_be_opened_leaves_nothing_behind(server: Server) -> None:
    before = len(server.get("/v1/sessions")["sessions"]), len(server.get("/v1/desk")["documents"])
    for name, content in (("a.po", "no po"), ("a.txt", " \n"), ("a.bin", "\0")):
        sent = {"name": name, "content": coded(content), "write_to": ""}
        assert server.ask("POST", "/v1/desk", sent).status == 400
    after = len(server.get("/v1/sessions")["sessions"]), len(server.get("/v1/desk")["documents"])
    assert after == before


def test_a_long_document_is_filled_and_checked_while_people_work(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_desk, "TOGETHER", 1)
    monkeypatch.setattr(preparing, "TOGETHER", 1)
    lines = "".join(f"{source}\n" for source, _ in PAIRS[:4])
    later, delayed = Service.do_later, list[str]()

    def killed(service: Service, name: str, step: Any) -> None:
        """As of a process that is killed."""
        delayed.append(name)

    monkeypatch.setattr(Service, "do_later", killed)
    opened(server, lines, "a.txt", sentences=False)  # nothing is to be filled or checked
    assert not delayed
    desk = opened(server, lines, "a.txt", sentences=False, fill="full")
    assert desk.about()["states"] == {"draft": 1, "untouched": 3} and delayed
    desk.write(3, text="Autre")
    monkeypatch.setattr(Service, "do_later", later)
    deadline = time.monotonic() + 60
    while desk.about()["states"] != {"draft": 4}:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    texts = [segment["text"] for segment in desk.do("GET", "/segments")["segments"]]
    assert texts == [PAIRS[0][1], PAIRS[1][1], "Autre", PAIRS[3][1]]


def test_no_file_is_given_before_all_of_it_was_checked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_desk, "TOGETHER", 1)
    monkeypatch.setattr(Service, "do_later", lambda *_: None)
    numbers = 'msgid "Close {0}"\nmsgstr "Fermer"\n\nmsgid "Close 30"\nmsgstr "Fermer"\n'
    desk = opened(server, f'msgid ""\nmsgstr ""\n"Language: fr\\n"\n\n{numbers}')
    reply = desk.ask("GET", "/file?issues=refuse")
    assert reply.status == 409
    assert {issue["segment"] for issue in reply.json["issues"]} == {1, 2}


def test_a_project_says_whether_its_files_may_have_issues(server: Server) -> None:
    numbers = 'msgid "Close 30"\nmsgstr "Fermer"\n'
    po = f'msgid ""\nmsgstr ""\n"Language: fr\\n"\n\n{numbers}'
    one, other, elsewhere = (opened(server, po, project=p) for p in ("Acts", "Acts", "Laws"))
    changed = other.about()["changed"]
    assert one.ask("GET", "/file").status == 200
    assert one.do("PATCH", body={"strict": True})["strict"]
    for desk in (one, other, opened(server, po, project="Acts")):  # also one that comes later
        assert desk.about()["strict"]
        assert desk.ask("GET", "/file").json["error"]["code"] == "issues"
        assert desk.ask("GET", "/file?issues=allow").status == 200
    assert other.about()["changed"] == changed  # nobody worked in it
    assert not elsewhere.about()["strict"] and elsewhere.ask("GET", "/file").status == 200
    assert elsewhere.do("PATCH", body={"project": "Acts"})["strict"]
    other.do("PATCH", body={"strict": False})
    assert not one.about()["strict"] and elsewhere.ask("GET", "/file").status == 200


XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" '
    'source-language="en" target-language="fr" datatype="plaintext"><body>{}</body></file></xliff>'
)


def test_a_file_gets_the_states_that_people_gave(server: Server) -> None:
    sources = ("Close", "Open", "Save", "Undo")
    units = [f'<trans-unit id="{s}"><source>{s}</source></trans-unit>' for s in sources]
    desk = opened(server, XLIFF.format("".join(units)), "a.xlf")
    desk.confirm(1, "Fermer")
    desk.confirm(2, "Ouvrir", state="reviewed")
    desk.confirm(3, "Enregistrer")
    desk.write(3, state="approved")
    desk.write(4, text="Annuler")
    plain = desk.ask("GET", "/file").body.decode()
    for state, text in (("translated", "Fermer"), ("signed-off", "Ouvrir"), ("final", "Enr")):
        assert f'<target state="{state}">{text}' in plain
    assert "Annuler" not in plain
    drafts = desk.ask("GET", "/file?drafts=true").body.decode()
    assert '<target state="needs-review-translation">Annuler' in drafts
    again = opened(server, plain, "a.xlf").do("GET", "/segments")["segments"]
    assert [s["file"]["state"] for s in again] == ["translated"] * 3 + ["new"]


SUBTITLES = (
    "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Close\n"
    "Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,Open\n"
)


def test_a_target_that_the_file_cannot_take_is_told_or_left(server: Server) -> None:
    desk = opened(server, SUBTITLES, "a.ass")
    desk.confirm(1, "Fermer")
    desk.confirm(2, "Ouv{rir}")
    reply = desk.ask("GET", "/file")
    assert reply.status == 400 and reply.json["refused"][0]["segment"] == 2
    left = desk.ask("GET", "/file?refused=leave")
    assert left.body.decode() == SUBTITLES.replace("Close", "Fermer")


def test_documents_are_bounded_in_number_and_count_as_what_is_kept(
    folder: Path, states: str
) -> None:
    limits = Limits(tenant=30_000)
    with tiny_server(folder, ("law=law",), limits=limits, sessions=states) as server:
        server.service.documents._limit = 1
        desk = opened(server)
        sent = {"name": "b.po", "content": coded(PO)}
        reply = server.ask("POST", "/v1/desk", sent)
        assert reply.status == 429 and "too many documents" in reply.json["error"]["message"]
        assert len(server.get("/v1/sessions")["sessions"]) == 1  # none was left behind
        before = server.service.storage.size("")
        desk.write(2, text="x" * 2_000)
        assert server.service.storage.size("") >= before + 4_000  # in the history, too
        statuses = {desk.ask("PATCH", "/segments/4", body(n)).status for n in range(12)}
        assert statuses == {200, 413}


def body(number: int) -> dict[str, Any]:
    return {"version": 99, "text": f"{number} " * 1_500}


def test_two_servers_of_one_place_see_the_same_document(folder: Path, states: str) -> None:
    with (
        tiny_server(folder, ("law=law",), sessions=states) as one,
        tiny_server(folder, ("law=law",), sessions=states) as other,
    ):
        desk = opened(one)
        there = Desk(other, desk.id)
        answers = list[Any]()
        changes = threading.Thread(
            target=lambda: answers.append(there.do("GET", "/changes?since=1&wait=20"))
        )
        changes.start()
        desk.confirm(2, "Fermer", repetitions=True)
        changes.join(30)
        assert answers[0]["version"] > 1
        assert [s["confirmed"] for s in there.do("GET", "/segments")["segments"]].count(
            "Fermer"
        ) == 3

        def write(desk: Desk, text: str) -> None:
            for number in range(10):
                sent = {"version": 10**6, "text": f"{text} {number}"}
                assert desk.ask("PATCH", "/segments/1", sent).status == 200

        writers = [
            threading.Thread(target=write, args=(d, t)) for d, t in ((desk, "a"), (there, "b"))
        ]
        version = desk.about()["version"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert desk.about()["version"] == version + 20 and desk.segment(1) == there.segment(1)
        assert [s["number"] for s in there.do("POST", "/undo", {})["segments"]] == [2, 4, 5]
        assert desk.pairs() == []
