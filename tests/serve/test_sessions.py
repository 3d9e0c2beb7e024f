"""Sessions outlive the server, and several servers share them; confirming waits for no model."""

from __future__ import annotations

import itertools
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from serving import Server, serving, tiny_server

from tmnmt.cli import run
from tmnmt.codes.record import Text
from tmnmt.engine.confirmation import written_to
from tmnmt.engine.confirmed import confirmed_now
from tmnmt.engine.pipeline import Pipeline
from tmnmt.errors import DataError
from tmnmt.index import MemoryIndex
from tmnmt.serve import sessions
from tmnmt.serve.clock import STEP
from tmnmt.serve.keys import ANYBODY, Keys, new_key
from tmnmt.serve.running import service_of
from tmnmt.serve.storage import sqlite_file
from tmnmt.serve.storage.records import StoredSession
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


@pytest.mark.parametrize("write_to", ["", "own"])
def test_a_request_that_two_servers_have_at_once_confirms_once(
    two: tuple[Server, Server], write_to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first was answered on a connection that was lost, and a proxy chose the other server."""
    path = f"/v1/sessions/{done(two[0], '/v1/sessions', write_to=write_to)['id']}"
    both, looks = threading.Barrier(2), itertools.count()
    for server in two:
        storage = server.service.storage.sessions
        read = storage.reviews

        def read_both(*asked: Any, read: Any = read) -> Any:
            found = read(*asked)
            if next(looks) < 2:
                both.wait(60)  # neither has confirmed when the other one looks
            return found

        monkeypatch.setattr(storage, "reviews", read_both)
    pair = {**PAIR, "request": "1"}
    with ThreadPoolExecutor(2) as threads:
        answers = threads.map(lambda server: done(server, f"{path}/confirm", **pair), two)
        assert len([*answers]) == 2
    assert [entry["tgt"] for entry in two[0].get(f"{path}/confirmed")["pairs"]] == [PAIR["tgt"]]
    done(two[0], f"{path}/undo")
    assert two[1].get(path)["confirmed"] == 0


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
    translate = Pipeline.translate

    def slowly(*given: Any, **more: Any) -> Any:
        began.set()
        with translator.lock:
            assert go_on.wait(60)
        return translate(*given, **more)

    monkeypatch.setattr(Pipeline, "translate", slowly)
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


def test_a_pair_that_the_session_cannot_take_is_in_no_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program holds the file of sessions."""
    monkeypatch.setattr(sqlite_file, "BUSY", 0.1)
    states, name = tmp_path / "sessions.db", tmp_path.name
    with tiny_server(folder, (), (f"own={name}",), sessions=states) as server:
        path = f"/v1/sessions/{done(server, '/v1/sessions')['id']}"
        with closing(sqlite3.connect(states, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for request, body in (("confirm", PAIR), ("undo", {})):
                reply = server.ask("POST", f"{path}/{request}", body)
                assert reply.status == 503 and reply.headers["retry-after"]
            other.execute("ROLLBACK")
        with MemoryIndex.open(folder / name) as index:
            assert list(index.segments()) == []
        assert done(server, f"{path}/confirm", **PAIR)["confirmed"] == 1
        assert done(server, f"{path}/undo")["confirmed"] == 0
        with MemoryIndex.open(folder / name) as index:
            assert list(index.segments()) == []


def test_a_server_mends_at_its_start_what_one_that_was_killed_has_left(
    folder: Path, tmp_path: Path, states: str
) -> None:
    written = (f"own={tmp_path.name}",)
    with tiny_server(folder, (), written, sessions=states) as server:
        path = f"/v1/sessions/{done(server, '/v1/sessions')['id']}"
        done(server, f"{path}/confirm", **PAIR)
        done(server, f"{path}/confirm", src="The permit is void.", tgt="Le permis est nul.")
        memory = server.service.memories.get("own", ANYBODY).writable
        storage, id = server.service.storage.sessions, path.rpartition("/")[2]
        assert memory is not None
        storage.withdraw("", id, "undo")  # killed before the memory was changed
        pair = confirmed_now(Text("It is not."), Text("Il ne l'est pas."))
        storage.intend("", id, "confirm", replace(pair, memory=memory.place), {})
        written_to(memory, pair)  # killed before the session was told
        assert len(list(memory.segments())) == 3
    with tiny_server(folder, (), written, sessions=states) as server:
        assert server.get(path)["confirmed"] == 1
        with MemoryIndex.open(folder / tmp_path.name) as index:
            assert [segment.src for segment in index.segments()] == [PAIR["src"]]


def test_a_session_takes_no_more_than_so_many_pairs(
    folder: Path, tmp_path: Path, states: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sessions.MOST_CONFIRMED == 20_000
    monkeypatch.setattr(sessions, "MOST_CONFIRMED", 2)
    with tiny_server(folder, (), (f"own={tmp_path.name}",), sessions=states) as server:
        path = f"/v1/sessions/{done(server, '/v1/sessions')['id']}"
        for number in range(2):
            done(server, f"{path}/confirm", src=f"Number {number}.", tgt=f"Numéro {number}.")
        reply = server.ask("POST", f"{path}/confirm", PAIR)
        assert reply.status == 409 and reply.json["error"]["code"] == "full"
        assert "2 confirmed pairs" in reply.json["error"]["message"]
        with MemoryIndex.open(folder / tmp_path.name) as index:
            assert len(list(index.segments())) == 2
        done(server, f"{path}/undo")
        assert done(server, f"{path}/confirm", **PAIR)["confirmed"] == 2


def test_sessions_that_nobody_used_are_forgotten(
    two: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = two
    path = f"/v1/sessions/{done(server, '/v1/sessions', write_to='')['id']}"
    now = time.time()

    def wait_until(begin: float, end: float) -> None:
        """The time is so many seconds from now, and was seen to pass."""
        while begin < end:
            begin = min(begin + STEP, end)
            monkeypatch.setattr(time, "time", lambda at=now + begin: at)
            server.service.clock.cutoff(0)

    wait_until(0, sessions.IDLE - 60)
    server.get(path)
    wait_until(sessions.IDLE - 60, sessions.IDLE + 60)
    done(server, "/v1/sessions", write_to="")
    server.get(path)  # it was used a minute ago
    wait_until(sessions.IDLE + 60, 2 * sessions.IDLE + 60)
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
        told = capsys.readouterr().err.splitlines()
        assert str(path) in told[-1] and sum("error" in line for line in told) == 1


def test_a_session_with_terms_is_of_keys_that_have_them(
    folder: Path, tmp_path: Path, states: str
) -> None:
    file, terms = tmp_path / "keys.toml", tmp_path / "house.csv"
    terms.write_text("source,target\nnotice,avis\n", encoding="utf-8")
    keys = {
        name: new_key(file, name, "translate", "a", ["law"], lists)
        for name, lists in (("one", ["house"]), ("same", ["house"]), ("without", []))
    }
    service = service_of(
        [folder / "model"],
        [f"law={folder / 'law'}"],
        [],
        Keys.load(file),
        threads=1,
        terms=[f"house={terms}"],
        sessions=states,
    )
    with serving(service) as server:
        begun = done(server, "/v1/sessions", keys["one"])
        path = f"/v1/sessions/{begun['id']}"
        assert begun["terms"] == ["house"]
        for name, status in (("one", 200), ("same", 200), ("without", 404)):
            assert server.ask("GET", path, key=keys[name]).status == status
            assert server.ask("POST", f"{path}/confirm", PAIR, key=keys[name]).status == status
            listed = server.ask("GET", "/v1/sessions", key=keys[name]).json["sessions"]
            assert len(listed) == (status == 200)
        pair = {"src": "The notice is void.", "tgt": "Le message est nul."}
        checks = done(server, f"{path}/confirm", keys["one"], **pair)["checks"]
        assert checks == [{"name": "terms", "what": "avis for notice"}]


def test_what_is_confirmed_is_synced_to_the_disk_at_every_commit(tmp_path: Path) -> None:
    """Which no test without a power cut can see but so."""
    with closing(SqliteStorage(tmp_path / "sessions.db")) as storage:
        connections = storage._file._write, storage._file._reader
        for connection in connections:
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


@pytest.mark.parametrize("number", [2, 3])
def test_sessions_of_earlier_formats_are_read_and_mended(tmp_path: Path, number: int) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path)) as storage:
        storage.sessions.make(StoredSession("one", "a", "model", {}, 100.0), 0.0, 9)
        pair = replace(confirmed_now(Text("One."), Text("Un.")), id=7, memory="M")
        storage.sessions.append("a", "one", pair, {}, "t")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name in ("done_of_segment", "done_by_held"):
            connection.execute(f"DROP INDEX {name}")
        connection.execute("DROP TABLE inherited")
        columns = {"done": ("held", "segment"), "intention": ("held", "removes")}
        for table, names in columns.items():
            for name in names:
                connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        if number == 2:
            connection.execute("DROP TABLE intention")
        connection.execute(f"PRAGMA user_version = {number}")
    for _ in range(2):
        with closing(SqliteStorage(path)) as storage:
            sessions = storage.sessions
            assert sessions.pairs("a", "one") == [pair] and sessions.intentions() == []
    with closing(SqliteStorage(path)) as storage:
        sessions = storage.sessions
        other = replace(pair, id=-7, changed="later")
        assert sessions.append("a", "one", other, {"segment": "s"}, "t") == []
        assert sessions.withdraw("a", "one", "u", "s") == other
        assert sessions.withdraw("a", "one", "v") == pair
        assert [found.pair for found in sessions.intentions()] == [other, pair]
