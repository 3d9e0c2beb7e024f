"""Sessions outlive the server, and several servers share them; confirming waits for no model."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Server, tiny_server

from tmnmt.cli import run
from tmnmt.errors import DataError
from tmnmt.serve import sessions
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.storage.sqlite import SqliteStorage

PAIR = {"src": "All of it is void.", "tgt": "Tout est nul."}


def done(server: Server, path: str, key: str = "", **body: Any) -> Any:
    reply = server.ask("POST", path, body, key=key)
    assert reply.status == 200, reply.body
    return reply.json


def said(server: Server, path: str, text: str = PAIR["src"]) -> str:
    return str(done(server, f"{path}/translate", texts=[text])["translations"][0]["text"])


@pytest.fixture
def two(folder: Path, tmp_path: Path, states: str) -> Iterator[tuple[Server, Server]]:
    """Two servers of one memory, and of sessions at one place."""
    memories = ("law=law",), (f"own={tmp_path.name}",)
    with (
        tiny_server(folder, *memories, sessions=states) as one,
        tiny_server(folder, *memories, sessions=states) as other,
    ):
        yield one, other


@pytest.mark.parametrize("write_to", ["", "own"])
def test_what_is_confirmed_at_one_server_is_known_at_the_other(
    two: tuple[Server, Server], write_to: str
) -> None:
    one, other = two
    path = f"/v1/sessions/{done(one, '/v1/sessions', write_to=write_to)['id']}"
    before = said(one, path), said(other, path)
    assert before[0] == before[1] != PAIR["tgt"]
    done(one, f"{path}/confirm", **PAIR)
    assert said(other, path) == said(one, path) == PAIR["tgt"]
    done(other, f"{path}/confirm", src=PAIR["src"], tgt="Rien ne vaut.")
    done(other, f"{path}/confirm", src="Nothing else is.", tgt="Rien de plus.")
    assert said(one, path) == "Rien ne vaut." and one.get(path)["confirmed"] == 3
    for undone in ("Rien de plus.", "Rien ne vaut."):
        assert done(one, f"{path}/undo")["undone"]["tgt"] == undone
    done(one, f"{path}/confirm", src="Nothing else is.", tgt="Rien d'autre.")
    assert said(other, path) == PAIR["tgt"]
    assert said(other, path, "Nothing else is.") == "Rien d'autre."
    for _ in range(2):
        done(other, f"{path}/undo")
    assert said(one, path) == said(other, path) == before[0]
    assert other.ask("DELETE", path).status == 204
    assert one.ask("POST", f"{path}/confirm", PAIR).status == 404


def test_a_session_goes_on_when_the_server_is_started_again(folder: Path, states: str) -> None:
    near = "All of it is now void."
    with tiny_server(folder, ("law=law",), sessions=states) as server:
        path = f"/v1/sessions/{done(server, '/v1/sessions', write_to='')['id']}"
        done(server, f"{path}/confirm", **PAIR)
        before = done(server, f"{path}/translate", texts=[near])["translations"]
        plain = done(server, "/v1/translate", texts=[near])["translations"]
    assert before != plain and ("://" in states or Path(states).stat().st_mode & 0o777 == 0o600)
    with tiny_server(folder, ("law=law",), sessions=states) as server:
        assert server.get(path)["confirmed"] == 1
        assert done(server, f"{path}/translate", texts=[near])["translations"] == before


def test_confirming_waits_for_no_translation(
    two: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = two
    path = f"/v1/sessions/{done(server, '/v1/sessions', write_to='own')['id']}"
    began, go_on = threading.Event(), threading.Event()
    translator = server.service.models[0].translator
    translate_batch = type(translator).translate_batch

    def slowly(*given: Any, **more: Any) -> Any:
        began.set()
        with translator.lock:
            assert go_on.wait(60)
        return translate_batch(*given, **more)

    monkeypatch.setattr(type(translator), "translate_batch", slowly)
    found: list[Any] = []
    asks = threading.Thread(
        target=lambda: found.append(done(server, "/v1/translate", texts=["Slow."]))
    )
    asks.start()
    try:
        assert began.wait(30)
        assert done(server, f"{path}/confirm", **PAIR)["confirmed"] == 1
        assert done(server, f"{path}/undo")["confirmed"] == 0
        done(server, f"{path}/confirm", **PAIR)
        assert found == []
    finally:
        go_on.set()
        asks.join(60)
    assert found and said(server, path) == PAIR["tgt"]


def test_sessions_that_nobody_used_are_forgotten(
    two: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = two
    path = f"/v1/sessions/{done(server, '/v1/sessions', write_to='')['id']}"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + sessions.IDLE - 60)
    server.get(path)
    monkeypatch.setattr(time, "time", lambda: now + sessions.IDLE + 60)
    done(server, "/v1/sessions", write_to="")
    server.get(path)  # it was used a minute ago
    monkeypatch.setattr(time, "time", lambda: now + 2 * sessions.IDLE + 60)
    done(server, "/v1/sessions", write_to="")
    assert server.ask("GET", path).status == 404


def test_a_process_keeps_few_copies_and_reads_the_others_again(
    two: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "KEPT_OPEN", 2)
    server, _ = two
    paths = [f"/v1/sessions/{done(server, '/v1/sessions', write_to='')['id']}" for _ in range(4)]
    for number, path in enumerate(paths):
        done(server, f"{path}/confirm", src=PAIR["src"], tgt=f"Tout est nul {number}.")
    assert [said(server, path) for path in paths] == [f"Tout est nul {n}." for n in range(4)]
    assert len(server.service.sessions._open) == 2


def test_a_session_is_of_its_tenant_and_of_keys_that_see_its_memories(
    folder: Path, tmp_path: Path, states: str
) -> None:
    file = tmp_path / "keys.toml"
    keys = {
        name: new_key(file, name, "translate", tenant, memories)
        for name, tenant, memories in (
            ("one", "a", ["law"]),
            ("same", "a", ["law"]),
            ("blind", "a", []),
            ("other", "b", ["law"]),
        )
    }
    with tiny_server(folder, ("law=law",), keys=Keys.load(file), sessions=states) as server:
        path = f"/v1/sessions/{done(server, '/v1/sessions', keys['one'], write_to='')['id']}"
        for name, status in (("one", 200), ("same", 200), ("blind", 404), ("other", 404)):
            assert server.ask("GET", path, key=keys[name]).status == status
        assert server.ask("DELETE", path, key=keys["other"]).status == 404
        assert server.ask("GET", path, key=keys["one"]).status == 200


def test_another_file_is_not_taken_for_one_of_sessions(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, other, newer = (tmp_path / name for name in ("text", "other.db", "newer.db"))
    text.write_text("no database, but long enough to be looked at\n" * 100, encoding="utf-8")
    for path in (other, newer):
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE mine (a)")
        connection.close()
    SqliteStorage(tmp_path / "sessions.db").close()
    newer.write_bytes((tmp_path / "sessions.db").read_bytes())
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for path, what in (
        (text, "cannot hold sessions"),
        (other, "holds no sessions"),
        (newer, "format 99"),
        (tmp_path, "cannot hold sessions"),
    ):
        with pytest.raises(DataError, match=what):
            SqliteStorage(path)
        model = ["serve", "--model", str(folder / "model"), "--port", "0"]
        assert run([*model, "--sessions", str(path)]) == 1
        told = capsys.readouterr().err
        assert str(path) in told and told.count("\n") == 1
