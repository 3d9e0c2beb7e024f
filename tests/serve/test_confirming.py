"""What is confirmed at the server is checked: told, or refused where the request says so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving import Server, tiny_server

from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.roles import Role

SOURCE = "It ends in 30 days."
WRONG = {"src": SOURCE, "tgt": "Il expire dans 45 jours."}
NUMBERS = [{"name": "numbers", "what": "30"}]


@pytest.fixture
def path(served: Server) -> str:
    return f"/v1/sessions/{served.ask('POST', '/v1/sessions', {'write_to': ''}).json['id']}/confirm"


def confirmed(server: Server, path: str) -> int:
    return int(server.get(path.removesuffix("/confirm"))["confirmed"])


def test_a_client_that_knows_no_checks_confirms_as_ever_and_is_told(
    served: Server, path: str
) -> None:
    reply = served.ask("POST", path, WRONG)
    assert reply.status == 200 and reply.json["confirmed"] == 1
    assert reply.json["checks"] == NUMBERS
    reply = served.ask("POST", path, {"src": SOURCE, "tgt": "Il expire dans 30 jours."})
    assert reply.json["checks"] == [] and reply.json["confirmed"] == 2


def test_who_asks_for_it_is_refused_where_a_check_finds_something(
    served: Server, path: str
) -> None:
    reply = served.ask("POST", path, {**WRONG, "on_checks": "refuse"})
    assert reply.status == 409 and reply.json["checks"] == NUMBERS
    assert reply.json["error"]["code"] == "checks"
    # no message holds a text, which a log might keep
    assert reply.json["error"]["message"].endswith(": numbers")
    assert confirmed(served, path) == 0
    assert served.ask("POST", path, {**WRONG, "on_checks": "tell"}).status == 200
    right = {"src": SOURCE, "tgt": "Il expire dans 30 jours.", "on_checks": "refuse"}
    assert served.ask("POST", path, right).json["checks"] == []
    assert confirmed(served, path) == 2
    assert served.ask("POST", path, {**WRONG, "on_checks": "maybe"}).status == 400


def test_a_request_that_is_sent_again_confirms_once(served: Server, path: str) -> None:
    pair = {"src": "All is void.", "tgt": "Tout est nul.", "request": "7.0"}
    session = path.removesuffix("/confirm")
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: served.ask("POST", path, pair), range(8)))
    assert [reply.status for reply in replies] == [200] * 8
    assert replies[0].json["checks"] == [] and confirmed(served, path) == 1
    for other in ({"request": "8.0"}, {"tgt": "Tout est sans valeur."}, {"request": None}):
        assert served.ask("POST", path, {**pair, **other}).status == 200
    assert confirmed(served, path) == 4
    for count in (3, 2, 1, 0):
        assert served.ask("POST", f"{session}/undo", {}).status == 200
        assert confirmed(served, path) == count
    assert served.ask("POST", path, pair).status == 200 and confirmed(served, path) == 1
    assert served.ask("POST", path, {**pair, "request": "7" * 201}).status == 400


def found(server: Server, text: str) -> list[str]:
    body = {"texts": [text], "threshold": 0.9}
    (result,) = server.ask("POST", "/v1/memories/own/search", body).json["results"]
    return [match["tgt"] for match in result["matches"]]


def begun(server: Server) -> str:
    return "/v1/sessions/" + str(server.ask("POST", "/v1/sessions", {"write_to": "own"}).json["id"])


def test_what_is_confirmed_again_for_a_segment_takes_the_place_of_it(served: Server) -> None:
    session = begun(served)
    source = "The ferry leaves at dawn."

    def confirm(tgt: str, segment: str | None, src: str = source) -> None:
        body = {"src": src, "tgt": tgt, "segment": segment}
        assert served.ask("POST", f"{session}/confirm", body).status == 200

    confirm("Le bac part à", "0")  # half a sentence
    confirm("Rien ne change.", "1", "Nothing at all changes here.")
    confirm("Le bac part à l'aube.", "0")
    assert confirmed(served, f"{session}/confirm") == 2
    assert found(served, source) == ["Le bac part à l'aube."]
    (translation,) = served.ask("POST", f"{session}/translate", {"texts": [source]}).json[
        "translations"
    ]
    assert translation["text"] == "Le bac part à l'aube."
    confirm("Le bac part tôt.", None)  # of another segment, or of none
    assert confirmed(served, f"{session}/confirm") == 3
    undone = served.ask("POST", f"{session}/undo", {"segment": "1"}).json["undone"]
    assert undone["tgt"] == "Rien ne change." and found(served, undone["src"]) == []
    assert served.ask("POST", f"{session}/undo", {"segment": "1"}).status == 409
    assert served.ask("POST", f"{session}/undo", {}).json["undone"]["tgt"] == "Le bac part tôt."
    assert served.ask("POST", f"{session}/undo", {}).status == 200
    assert found(served, source) == [] and confirmed(served, f"{session}/confirm") == 0
    for path in ("confirm", "undo"):
        body = {"segment": "7" * 201, **({"src": "a", "tgt": "b"} if path == "confirm" else {})}
        assert served.ask("POST", f"{session}/{path}", body).status == 400


def test_what_two_sessions_confirmed_stays_until_both_have_taken_it_back(served: Server) -> None:
    source = "The pier is closed in winter."
    sessions = [begun(served) for _ in range(3)]
    for session in sessions:
        body = {"src": source, "tgt": "Le quai est fermé en hiver."}
        assert served.ask("POST", f"{session}/confirm", body).status == 200
    for session in sessions:
        assert found(served, source) == ["Le quai est fermé en hiver."]
        assert served.ask("POST", f"{session}/undo", {}).status == 200
    assert found(served, source) == []


def test_a_session_that_goes_on_takes_over_what_the_former_one_has_added(served: Server) -> None:
    source, half, whole = "The lock was replaced.", "L'écluse a été", "L'écluse a été remplacée."

    def confirm(session: str, tgt: str, **more: Any) -> None:
        body = {"src": source, "tgt": tgt, "segment": "0", **more}
        assert served.ask("POST", f"{session}/confirm", body).status == 200

    former, later = begun(served), begun(served)
    confirm(former, half)
    assert served.ask("DELETE", former).status == 204 and found(served, source) == [half]
    confirm(later, half, resumed=True)
    assert found(served, source) == [half]
    confirm(later, whole)
    assert found(served, source) == [whole]
    assert served.ask("POST", f"{later}/undo", {}).status == 200 and found(served, source) == []
    # what was added otherwise is nobody's
    path, pair = "/v1/memories/own/segments", {"src": source, "tgt": whole}
    assert served.ask("POST", path, {"segments": [pair]}).status == 200
    confirm(later, whole, resumed=True)
    assert served.ask("POST", f"{later}/undo", {}).status == 200
    assert found(served, source) == [whole]


@pytest.mark.parametrize(
    ("tgt", "checks"),
    [
        ("Le <g1>permis</g1> est nul.<x2/>", []),
        ("Le <g1>permis</g1> est nul.", [{"name": "codes", "what": "lost: <x2/>"}]),
        ("The <g1>permit</g1> is void.<x2/>", ["untranslated"]),
        ("le le <g1>permis</g1> est nul.<x2/>", [{"name": "repeated", "what": "le le"}]),
        ("<g1>x</g1><x2/>", ["ends", "length"]),
    ],
)
def test_a_text_with_tags_is_checked(
    served: Server, path: str, tgt: str, checks: list[Any]
) -> None:
    pair = {"src": "The <g1>permit</g1> is void.<x2/>", "tgt": tgt, "format": "xml"}
    reply = served.ask("POST", path, pair)
    assert reply.status == 200
    given = reply.json["checks"]
    assert [
        one["name"] if isinstance(expected, str) else one
        for one, expected in zip(given, checks, strict=True)
    ] == checks


def test_a_tag_that_the_segment_does_not_have_is_refused(served: Server, path: str) -> None:
    for tgt in ("<g9>Le permis</g9> est nul.", "Le <g1>permis</g1> est nul.<x9/>"):
        pair = {"src": "The <g1>permit</g1> is void.", "tgt": tgt, "format": "xml"}
        reply = served.ask("POST", path, pair)
        assert reply.status == 400 and confirmed(served, path) == 0
        assert "is no tag of this segment; its tags: <g1>, </g1>" in reply.json["error"]["message"]
    pair = {"src": 'A <a title="Here">b</a>', "tgt": '<a title="Ici">b</a> de A', "format": "xml"}
    assert served.ask("POST", path, pair).json["checks"][0]["name"] == "codes"


def test_a_numbered_tag_that_stands_too_often_is_refused_in_any_case(
    served: Server, path: str
) -> None:
    source = "The <g1>permit</g1> is <b>void</b>.<x2/>"
    often = "comes more often (2) than in the source (1)"
    for tgt, told in (
        ("Le <g1>permis</g1> est <g1>nul</g1>.<x2/>", f"<g1> {often}"),
        ("Le <g1>permis</g1> est<x2/> nul.<x2/>", f"<x2/> {often}"),
    ):
        for on_checks in ("tell", "refuse"):
            pair = {"src": source, "tgt": tgt, "format": "xml", "on_checks": on_checks}
            reply = served.ask("POST", path, pair)
            assert reply.status == 400 and confirmed(served, path) == 0
            error = reply.json["error"]
            assert error["message"] == told and error["values"]["times"] == 2
            assert error["template"].startswith("{tag} comes more often")
    pair = {"src": source, "tgt": "Le <b>permis</b> est <b>nul</b>.", "format": "xml"}
    assert served.ask("POST", path, pair).json["checks"][0]["name"] == "codes"


def test_a_session_writes_to_the_memory_of_the_server_unless_it_is_told_not_to(
    served: Server,
) -> None:
    for given, expected in (({}, "own"), ({"write_to": "own"}, "own"), ({"write_to": ""}, None)):
        begun = served.ask("POST", "/v1/sessions", given).json
        assert begun["write_to"] == expected
    begun = served.ask("POST", "/v1/sessions", {"memories": ["law"]}).json
    assert begun["memories"] == ["law", "own"] and begun["write_to"] == "own"


def test_a_session_of_a_key_that_may_not_write_writes_nowhere(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    roles: dict[str, Role] = {"reader": "translate", "writer": "write"}
    keys = {name: new_key(file, name, role, "a", ["kept"]) for name, role in roles.items()}
    with tiny_server(folder, (), ("kept=kept",), keys=Keys.load(file)) as server:
        given = {
            name: server.ask("POST", "/v1/sessions", {}, key=key).json["write_to"]
            for name, key in keys.items()
        }
        assert given == {"reader": None, "writer": "kept"}
