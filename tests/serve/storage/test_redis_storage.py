"""A Redis as the place of sessions: what is refused at the start and what is warned of, what
happens while it is away, and that no password is told."""

from __future__ import annotations

import http.server
import logging
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from certificates import certificate
from redis_server import Redis, free_port, running
from serving import Server, tiny_server

from tmnmt.cli import run
from tmnmt.codes.record import Text
from tmnmt.engine.confirmed import confirmed_now
from tmnmt.errors import DataError, ServerError, TmnmtError, UsageError
from tmnmt.serve.jobs import Steps
from tmnmt.serve.keys import ANYBODY
from tmnmt.serve.service import WRITERS
from tmnmt.serve.storage import opening as opening
from tmnmt.serve.storage.address import CA, PASSWORD, USER, parse_address
from tmnmt.serve.storage.base import Storage
from tmnmt.serve.storage.opening import open_storage, place_of
from tmnmt.serve.storage.records import Job, StoredSession
from tmnmt.serve.storage.redis_server import SPARED, meaning, risks_of

SECRET = "s3cret:/@#"
WRITTEN = "s3cret%3A%2F%40%23"
SESSION = StoredSession("one", "", "model", {"memories": []}, 100.0)
PAIR = confirmed_now(Text("Source."), Text("Cible."))


@contextmanager
def storage_at(url: str) -> Iterator[Storage]:
    with closing(open_storage(place_of(url))) as storage:
        yield storage


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("redis://localhost", "redis://localhost:6379/0"),
        ("redis://localhost/", "redis://localhost:6379/0"),
        ("rediss://u:p@Redis.example:1234/7", "rediss://redis.example:1234/7"),
        ("redis://:p@[::1]/2", "redis://[::1]:6379/2"),
        ("redis://localhost?db=5", "redis://localhost:6379/5"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock?db=0"),
        ("unix://u:p@/run/a%20b?db=3", "unix:///run/a b?db=3"),
    ],
)
def test_an_address_is_shown_without_its_password(text: str, place: str) -> None:
    address = parse_address(text, {})
    assert str(address) == place and "'p'" not in repr(address)
    assert address.password == ("p" if "p@" in text else None)
    assert address.user == ("u" if "u:" in text else None)


@pytest.mark.parametrize(
    "text",
    [
        "redis://",
        "redis://user:s3/cret@host",
        "redis://user:s3cret@host:s3cret",
        "redis://user:s3cret@host/s3cret",
        "redis://user:s3cret@host/1/2",
        "redis://user:s3cret@[host",
        "redis://user:s3cret@host/1?password=s3cret",
        "redis://user:s3cret@host/1#s3cret",
        "redis://host?db=1&db=2",
        "redis://host?db=",
        "redis://host?s3cret",
        "unix://socket?db=1",
        "unix://host/socket",
        "unix://",
        "http://user:s3cret@host",
        "elasticsearch+http://s3cret/name",
    ],
)
def test_what_is_no_address_is_told_without_what_may_be_a_password(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="redis://"):
        parse_address(text, {})
    model = ["serve", "--model", str(folder / "model"), "--port", "0"]
    assert run([*model, "--sessions", text]) == 2
    told = capsys.readouterr().err
    lines = told.splitlines()  # what the server is about, and the error
    assert lines[-1].startswith("tmnmt: error: ") and told.count("error") == 1
    assert "s3cret" not in told and "cret" not in told.replace("SECRET", "")


def test_user_and_password_may_stand_in_the_environment(tmp_path: Path) -> None:
    named = {USER: "u", PASSWORD: SECRET}
    address = parse_address("redis://host", named)
    assert (address.user, address.password) == ("u", SECRET)
    address = parse_address(f"redis://:{WRITTEN}@host", named | {PASSWORD: "other"})
    assert (address.user, address.password) == (None, SECRET)
    address = parse_address("redis://somebody@host", named)
    assert (address.user, address.password) == ("somebody", SECRET)
    with pytest.raises(UsageError, match="no such file"):
        parse_address("rediss://host", {CA: str(tmp_path / "none")})


def test_without_its_package_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'tmnmt\[server,redis\]'"):
        place_of("redis://localhost")
    assert place_of("redis:file") == Path("redis:file")


def test_a_password_is_asked_for_and_never_told(
    folder: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with running("--requirepass", SECRET, port=free_port()) as server:
        where = f"127.0.0.1:{server.port}/0"
        for url in (f"redis://:{WRITTEN}@{where}", f"unix://:{WRITTEN}@{server.folder}/socket"):
            with storage_at(url) as storage:
                assert storage.sessions.count() == 0
        for user in ("", f":x{WRITTEN}@", f"somebody:{WRITTEN}@"):
            model = ["serve", "--model", str(folder / "model"), "--port", "0"]
            assert run([*model, "--sessions", f"redis://{user}{where}"]) == 1
            told = capsys.readouterr().err
            assert f"redis://{where}: it takes no such user" in told.splitlines()[-1]
            assert told.count("error") == 1
            assert "s3cret" not in told
    assert "s3cret" not in caplog.text


class _Page(http.server.BaseHTTPRequestHandler):
    def log_message(self, *told: Any) -> None: ...


def test_what_is_no_redis_is_one_line() -> None:
    url = f"redis://u:{WRITTEN}@127.0.0.1:{free_port()}"
    with pytest.raises(ServerError, match="cannot be reached: Connection refused") as refused:
        open_storage(place_of(url))
    with pytest.raises(ServerError, match="cannot be reached") as nowhere:
        open_storage(place_of(f"redis://u:{WRITTEN}@no-such-host.invalid"))
    with http.server.HTTPServer(("127.0.0.1", 0), _Page) as page:
        thread = threading.Thread(target=page.serve_forever, args=(0.01,))
        thread.start()
        with pytest.raises(ServerError, match="Redis") as other:
            open_storage(place_of(f"redis://u:{WRITTEN}@127.0.0.1:{page.server_port}"))
        page.shutdown()
        thread.join()
    with pytest.raises(ServerError, match="No such file") as missing:
        open_storage(place_of("unix:///no/such/socket"))
    for told in (refused, nowhere, other, missing):
        assert "s3cret" not in str(told.value) and told.value.__cause__ is None
        assert "\n" not in str(told.value)


def test_what_speaks_first_or_echoes_is_no_redis() -> None:
    """An error of its own that has what was sent."""
    for reply, what in ((b"SSH-2.0-x\r\n", "no Redis"), (b"-ERR unknown: %s\r\n", "is it a Redis")):
        with socket.create_server(("127.0.0.1", 0)) as at:

            def answer(at: socket.socket = at, reply: bytes = reply) -> None:
                with at.accept()[0] as to:
                    sent = to.recv(1000)
                    to.sendall(reply.replace(b"%s", sent.replace(b"\r\n", b" ")) * 9)
                    to.recv(1000)

            thread = threading.Thread(target=answer)
            thread.start()
            with pytest.raises(ServerError, match=what) as told:
                open_storage(place_of(f"redis://u:{WRITTEN}@127.0.0.1:{at.getsockname()[1]}"))
            thread.join(30)
            assert "s3cret" not in str(told.value)


def test_tls_is_spoken_with_who_can_prove_who_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, key = certificate(tmp_path, "DNS:localhost")
    files = ("--tls-cert-file", str(chain), "--tls-key-file", str(key))
    port = free_port()
    with running("--tls-port", str(port), *files, "--tls-auth-clients", "no"):
        with pytest.raises(ServerError, match=r"cannot be reached: self.signed certificate"):
            open_storage(place_of(f"rediss://localhost:{port}"))
        monkeypatch.setenv(CA, str(chain))
        with storage_at(f"rediss://localhost:{port}") as storage:
            assert storage.sessions.count() == 0
        with pytest.raises(ServerError, match=r"cannot be reached: .*127.0.0.1"):
            open_storage(place_of(f"rediss://127.0.0.1:{port}"))


def test_tls_is_not_spoken_with_what_does_not() -> None:
    with running(port=free_port()) as server, pytest.raises(ServerError):
        open_storage(place_of(f"rediss://127.0.0.1:{server.port}"))


def test_another_programs_keys_and_newer_formats_are_refused(redis: Redis) -> None:
    for key, value, what in (
        ("99", None, "format 99, this version reads 1"),
        ("mine", None, "another program"),
        (None, "x", "another program"),
    ):
        redis.run("FLUSHALL")
        redis.run("SET", "tmnmt:format", key) if key else redis.run("LPUSH", "tmnmt:format", value)
        with pytest.raises(DataError, match=what):
            open_storage(place_of(redis.url))
    redis.run("FLUSHALL")
    redis.run("SET", "theirs", "1")
    with storage_at(redis.url) as storage:
        redis.run("SET", "tmnmt:1:sessions:", "1")
        with pytest.raises(ServerError, match="overwritten by another program"):
            storage.sessions.tenant_sessions("")
        with pytest.raises(ServerError, match="overwritten by another program"):
            storage.sessions.make(SESSION, 0.0, 9)
    assert redis.run("GET", "theirs") == b"1"


def test_every_key_says_of_which_program_and_format_it_is(redis: Redis) -> None:
    redis.run("FLUSHALL")
    with storage_at(f"{redis.url}?db=3") as storage:
        storage.sessions.make(replace(SESSION, tenant="a"), 0.0, 9)
        storage.sessions.append("a", "one", PAIR, {}, "n")
        storage.jobs.make(Job("1", "x", {}, "waiting", 0, None, {}, False, 1.0), "a", 0.0, 9)
        with pytest.raises(ValueError):
            storage.sessions.confirmed("a:b", "one")
    assert redis.run("DBSIZE") == 0
    with closing(redis.client(db=3)) as client:
        keys = {key.decode() for key in client.keys()}
    assert keys.pop() and all(k == "tmnmt:format" or k.startswith("tmnmt:1:") for k in keys)


def test_a_replica_a_cluster_and_a_full_one_are_refused(redis: Redis) -> None:
    for options, what in (
        (("--replicaof", "127.0.0.1 1"), "is a replica"),
        (("--cluster-enabled", "yes"), "Redis Cluster"),
        (("--maxmemory", "1", "--maxmemory-policy", "noeviction"), "memory is full"),
    ):
        with running(*options) as server, pytest.raises(ServerError, match=what):
            open_storage(place_of(server.url))
    with pytest.raises(ServerError, match="no database of this number"):
        open_storage(place_of(f"{redis.url}?db=999"))


def test_who_may_do_too_little_is_told(redis: Redis) -> None:
    redis.run("ACL", "SETUSER", "few", "on", f">{SECRET}", "~tmnmt:*", "+@read")
    redis.run(
        "ACL",
        "SETUSER",
        "enough",
        "on",
        f">{SECRET}",
        "~tmnmt:*",
        "+@all",
        "-@admin",
        "-@dangerous",
    )
    place = f"{redis.folder}/socket"
    with pytest.raises(ServerError, match="its user may not do") as told:
        open_storage(place_of(f"unix://few:{WRITTEN}@{place}"))
    assert "s3cret" not in str(told.value)
    with storage_at(f"unix://enough:{WRITTEN}@{place}") as storage:
        storage.sessions.make(SESSION, 0.0, 9)
        assert storage.sessions.get("", "one") is not None


def test_a_redis_that_may_lose_something_is_warned_of_in_one_line(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), storage_at(redis.url):
        assert caplog.messages == []
    for name, value, what in (
        ("appendfsync", "everysec", "appendfsync is everysec, and has to be always"),
        ("appendonly", "no", "appendonly is no, and has to be yes"),
        ("maxmemory-policy", "allkeys-lru", "has to be noeviction"),
        ("no-appendfsync-on-rewrite", "yes", "no-appendfsync-on-rewrite is yes"),
    ):
        _, before = redis.run("CONFIG", "GET", name)
        redis.run("CONFIG", "SET", name, value)
        try:
            caplog.clear()
            with caplog.at_level(logging.WARNING), storage_at(redis.url):
                (message,) = caplog.messages
                assert what in message and message.count("; ") == 0
        finally:
            redis.run("CONFIG", "SET", name, before)


def test_what_a_redis_does_not_say_of_itself_is_a_risk() -> None:
    assert risks_of({}, lambda name: "") == [
        "it does not say what it writes to disk; appendonly has to be yes",
        "appendfsync is not told, and has to be always",
    ]
    told = {"appendfsync": "always"}
    assert risks_of({"aof_enabled": 1}, lambda name: told.get(name, "")) == []


def test_numbers_of_pairs_never_come_again_where_a_redis_has_lost_some(redis: Redis) -> None:
    """So a copy of the session notices."""
    redis.run("FLUSHALL")
    with storage_at(redis.url) as storage:
        sessions = storage.sessions
        sessions.make(SESSION, 0.0, 9)
        sessions.append("", "one", PAIR, {}, "n")
        before = sessions.changes("", "one", ())
        redis.run("FLUSHALL")
        sessions.make(SESSION, 0.0, 9)
        time.sleep(0.001)
        sessions.append("", "one", PAIR, {}, "n")
        assert before is not None
        after = sessions.changes("", "one", before.numbers)
        assert after is not None and (after.retained, len(after.new)) == (0, 1)


@pytest.fixture
def away(folder: Path) -> Iterator[tuple[Server, Redis]]:
    """A server whose Redis may go away."""
    with running() as redis, tiny_server(folder, ("law=law",), sessions=redis.url) as server:
        yield server, redis


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_while_redis_is_away_sessions_answer_503_and_then_go_on(
    away: tuple[Server, Redis], number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    server, redis = away
    pair = {"src": "All of it is void.", "tgt": "Tout est nul."}
    path = f"/v1/sessions/{server.ask('POST', '/v1/sessions', {}).json['id']}"
    assert server.ask("POST", f"{path}/confirm", pair).status == 200
    redis.stop(number)
    texts = {"texts": [pair["src"]]}
    for method, at, body in (
        ("POST", f"{path}/confirm", pair),
        ("POST", f"{path}/translate", texts),
        ("POST", f"{path}/undo", {}),
        ("POST", "/v1/sessions", {}),
        ("GET", "/v1/terms", None),
    ):
        reply = server.ask(method, at, body)
        assert reply.status == 503 and int(reply.headers["retry-after"]) > 0, at
    assert server.ask("POST", "/v1/translate", texts).status == 200
    assert server.get("/health")["status"] == "ok"
    redis.start()
    assert server.ask("POST", f"{path}/confirm", pair).status == 200
    assert server.get(path)["confirmed"] == 2
    (said,) = server.ask("POST", f"{path}/translate", texts).json["translations"]
    assert said["text"] == pair["tgt"] and "sessions cannot be read or written" in caplog.text


@pytest.fixture
def silences(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Answers that somebody waited for in vain, which is short here."""
    silences = list[Exception]()

    def noted(error: Exception) -> str:
        silences.append(error)
        return meaning(error)

    monkeypatch.setattr("tmnmt.serve.storage.redis_server.ANSWERING", 2.0)
    monkeypatch.setattr("tmnmt.serve.storage.redis_server.meaning", noted)
    return silences


def test_a_redis_that_hangs_holds_up_nothing_else(
    silences: list[Exception], away: tuple[Server, Redis]
) -> None:
    server, redis = away
    path = f"/v1/sessions/{server.ask('POST', '/v1/sessions', {}).json['id']}"
    redis.hang()
    pair = {"src": "All of it is void.", "tgt": "Tout est nul."}
    replies = list[int]()

    def confirm() -> None:
        replies.append(server.ask("POST", f"{path}/confirm", pair).status)

    threads = [threading.Thread(target=confirm) for _ in range(3 * WRITERS)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert server.get("/health")["status"] == "ok"
    assert server.ask("POST", "/v1/translate", {"texts": [pair["src"]]}).status == 200
    glossary = {"texts": [pair["src"]], "terms": ["none"]}
    assert server.ask("POST", "/v1/translate", glossary).status == 503
    for thread in threads:
        thread.join(60)
    assert replies == [503] * 3 * WRITERS
    assert 0 < len(silences) < 3 * WRITERS  # the others were told without asking
    assert b"tmnmt_sessions" not in server.ask("GET", "/metrics").body
    redis.go_on()
    time.sleep(SPARED)
    assert server.ask("POST", f"{path}/confirm", pair).status == 200
    assert b"tmnmt_sessions 1" in server.ask("GET", "/metrics").body


def test_a_job_ends_well_though_redis_was_away(
    away: tuple[Server, Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.serve.jobs.PATIENCE", (0.1,) * 100)
    monkeypatch.setattr("tmnmt.serve.jobs.NOTE_INTERVAL", 0.0)
    server, redis = away
    jobs = server.service.jobs
    began, go_on = threading.Event(), threading.Event()

    def work(path: Path, advance: Any) -> Steps:
        began.set()
        assert go_on.wait(60)
        advance(1, 2)
        yield
        return {"added": 1}, path.read_bytes()

    id = jobs.make("import", {}, ANYBODY)
    jobs.start(id, ANYBODY.tenant, b"content", "a.txt", work)
    assert began.wait(30)
    redis.stop()
    go_on.set()
    time.sleep(0.3)
    redis.start()
    deadline = time.monotonic() + 30
    while not (job := jobs.get(id, ANYBODY)).has_ended and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (job.state, job.result) == ("done", {"added": 1})
    assert jobs.file(id, ANYBODY) == b"content"


def test_a_redis_that_still_loads_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it answers then, for it loads too fast to be met."""
    with socket.create_server(("127.0.0.1", 0)) as at:

        def answer() -> None:
            with at.accept()[0] as to:
                while to.recv(1000):
                    to.sendall(b"-LOADING Redis is loading the dataset in memory\r\n" * 4)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(TmnmtError, match="still loading its data"):
            open_storage(place_of(f"redis://127.0.0.1:{at.getsockname()[1]}"))
        thread.join(30)
