"""`tmnmt serve` as a process: it says where it listens, finishes what it took, and loses nothing
that it has acknowledged."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from redis_server import Redis
from serving import post, process, serving

from tmnmt.cli import run
from tmnmt.index import MemoryIndex
from tmnmt.serve.keys import new_key
from tmnmt.serve.running import Server, listening, service_of
from tmnmt.serve.storage.opening import open_storage as storage_opened
from tmnmt.serve.storage.opening import place_of


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_stops_it_once_it_has_finished(folder: Path, number: signal.Signals) -> None:
    with process(folder, "--memory", str(folder / "law")) as (server, port):
        texts = [f"The Commission shall inform the State {n}." for n in range(60)]
        found: list[Any] = []
        asks = threading.Thread(
            target=lambda: found.append(post(port, "/v1/translate", {"texts": texts}))
        )
        asks.start()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:  # until it has been taken
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/metrics")
            told = connection.getresponse().read().decode()
            connection.close()
            if not re.search(r'waiting_characters\{model="model"\} 0$', told, re.M) or found:
                break
        server.send_signal(number)
        asks.join(60)
        assert len(found[0]["translations"]) == 60
        assert server.wait(30) == 0
        assert server.stderr is not None
        assert server.stderr.read().splitlines()[-1] == "stopped: what was taken is finished"


def test_a_server_that_drains_says_so_and_goes_on(folder: Path, tmp_path: Path) -> None:
    service = service_of([], [f"law={folder / 'law'}"], [], sessions=str(tmp_path / "states.db"))
    with serving(service, drain=600) as server:
        assert server.ask("GET", "/ready").status == 200
        server.stop()
        deadline = time.monotonic() + 60
        while server.ask("GET", "/ready").status == 200 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert server.ask("GET", "/ready").json == {"ready": False}
        body = {"texts": ["It shall apply from 1 January 1996."]}
        assert server.ask("POST", "/v1/memories/law/search", body).status == 200


def status_of(port: int, key: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/v1/models", headers={"X-API-Key": key})
        return connection.getresponse().status
    finally:
        connection.close()


def test_sighup_ends_nothing_while_the_log_is_written() -> None:
    """The signal comes again and again while the main thread writes to standard error."""
    program = """
import logging, os, signal, sys, threading, time
from tmnmt.cli.streams import stderr
from tmnmt.serve.reloading import reloading

sys.stderr = stderr(sys.stderr)
logging.basicConfig(format="%(message)s")
ended = threading.Event()

def hang_up():
    while not ended.wait(0.0005):
        os.kill(os.getpid(), signal.SIGHUP)

with reloading(None):
    thread = threading.Thread(target=hang_up)
    thread.start()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        print("serving", file=sys.stderr, flush=True)
    ended.set()
    thread.join()
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[-500:]
    assert "nothing to read again" in told.stderr and "serving" in told.stderr


def test_sighup_has_the_keys_read_again(folder: Path, tmp_path: Path) -> None:
    """A key that is added is answered, one that is taken out is not; a file that is wrong changes
    nothing. Without a file everything else is read again."""
    keys = tmp_path / "keys.toml"
    first = new_key(keys, "first", "read", None, [])
    with process(folder, "--keys", str(keys)) as (server, port):
        assert server.stderr is not None

        def hang_up() -> str:
            assert server.stderr is not None
            server.send_signal(signal.SIGHUP)
            return next(line for line in server.stderr if "SIGHUP" in line)

        keys.rename(tmp_path / "old")
        second = new_key(keys, "second", "read", None, [])
        assert "serving models: 1, memories: 0, lists of terms: 0, keys: 1" in hang_up()
        assert (status_of(port, first), status_of(port, second)) == (401, 200)
        keys.write_text("[[", encoding="utf-8")
        assert "everything stays as it was" in hang_up()
        assert status_of(port, second) == 200
    with process(folder) as (server, port):
        server.send_signal(signal.SIGHUP)
        assert server.stderr is not None
        assert any("SIGHUP: serving models: 1" in line for line in server.stderr)
        assert status_of(port, "") == 200


@pytest.mark.parametrize(
    ("states", "who"),
    [("sqlite", "server"), ("redis", "server"), ("redis", "redis")],
    indirect=["states"],
)
def test_what_was_acknowledged_is_kept_when_it_is_killed(
    folder: Path, tmp_path: Path, states: str, who: str, request: pytest.FixtureRequest
) -> None:
    """Killed in the middle of confirming in four sessions, two of which write to a memory: the
    server, or the Redis that keeps them."""
    acknowledged: list[str] = []
    sessions = dict[int, str]()
    options = "--write-to", str(tmp_path / "kept"), "--sessions", states
    with process(folder, *options) as (server, port):

        def confirm(thread: int) -> None:
            try:
                to = {"write_to": "kept" if thread % 2 else ""}
                sessions[thread] = session = post(port, "/v1/sessions", to)["id"]
                for number in range(10_000):
                    src = f"Notice {thread} of number {number}"
                    post(port, f"/v1/sessions/{session}/confirm", {"src": src, "tgt": "x"})
                    acknowledged.append(src)
            except (OSError, http.client.HTTPException, AssertionError):
                return

        confirming = [threading.Thread(target=confirm, args=(thread,)) for thread in range(4)]
        for thread in confirming:
            thread.start()
        deadline = time.monotonic() + 60
        while len(acknowledged) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        if who == "redis":
            redis: Redis = request.getfixturevalue("redis")
            redis.kill()
            redis.start()
        server.kill()
        for thread in confirming:
            thread.join(30)
    with MemoryIndex.open(tmp_path / "kept") as opened:
        kept = {segment.src for segment in opened.segments()}
    into_memory = {src for src in acknowledged if src.startswith(("Notice 1", "Notice 3"))}
    assert len(acknowledged) >= 20 and into_memory and into_memory <= kept
    storage = storage_opened(place_of(states))
    done = {e.src for id in sessions.values() for e in storage.sessions.pairs("", id)}
    storage.close()
    assert set(acknowledged) <= done


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--memory", "no-such-memory"], "no-such-memory"),
        (["--memory", "x=law", "--memory", "x=other"], "two memories are called x"),
        (["--memory", "a=law", "--memory", "b=law"], "served twice"),
        (["--write-to", "law:readonly"], "readonly"),
        (["--memory", "a b/"], "cannot be the name of a memory"),
        (["--certificate", "c.pem"], "go together"),
        (["--port", "70000"], "65,535"),
        (["--keys", "no-such-keys"], "no-such-keys"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    folder: Path,
    options: list[str],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    if not Path("other").exists():
        from tmnmt.index import build

        build(Path("other"), [], "en", "fr")
        build(Path("a b"), [], "en", "fr")
    assert run(["serve", "--model", "model", "--port", "0", *options]) in (1, 2)
    told = capsys.readouterr().err.splitlines()  # what it was about to open, and the error
    assert what in told[-1] and told[-1].startswith("tmnmt: error: ")
    assert [line for line in told if "error" in line] == told[-1:]


def test_two_models_of_one_name_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(folder / "model")
    assert run(["serve", "--model", model, "--model", model, "--port", "0"]) == 2
    assert "two models are called model" in capsys.readouterr().err


def test_an_answer_does_not_wait_for_the_system_of_its_client() -> None:
    """The accepted connections send what they have at once."""
    with (
        listening("127.0.0.1", 0) as at,
        socket.create_connection(at.getsockname()),
        at.accept()[0] as taken,
    ):
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_search_makes_the_decoder_wait_no_5_ms(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder takes Python's lock anew at every operation of torch."""
    before, seen = sys.getswitchinterval(), list[float]()
    monkeypatch.setattr(Server, "run", lambda *_: seen.append(sys.getswitchinterval()))
    try:
        assert run(["serve", "--model", str(folder / "model"), "--port", "0"]) == 0
    finally:
        sys.setswitchinterval(before)
    assert seen[0] < 0.001
