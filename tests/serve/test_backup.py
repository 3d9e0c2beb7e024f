"""What a server keeps, in one file and back, while pairs are confirmed."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from serving import post, process, tiny_server
from tiny_model import segments

from tmnmt.cli import run
from tmnmt.config.server_config import ServerConfig, load_config
from tmnmt.errors import DataError
from tmnmt.index import MemoryIndex, build
from tmnmt.serve.backup import back_up, read_contents, restore
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.storage.opening import open_storage


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that a server keeps, and a backup of it."""
    build(tmp_path / "mine.en", segments(), "en", "fr")
    (tmp_path / "house.csv").write_text("en,fr\nState,État\n", encoding="utf-8")
    new_key(tmp_path / "keys.toml", "anna", "write", None, ["mine.en"])
    open_storage(tmp_path / "serve.db").close()
    lines = [
        'write_to = ["mine.en=mine.en:penalty=3"]',
        'terms = ["house.csv"]',
        'keys = "keys.toml"',
        'sessions = "serve.db"',
        "text_length = 77",
        "[tenant.anna]",
        "tenant_documents = 3",
    ]
    (tmp_path / "serve.toml").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    config = Path("serve.toml")  # its places are relative then
    back_up(tmp_path / "b.tar.gz", load_config(config), config)
    return tmp_path


def test_every_pair_that_was_acknowledged_before_is_restored(folder: Path, tmp_path: Path) -> None:
    """While four sessions confirm, two of them into a memory. What the restored sessions say of the
    memory is true of it, and a server goes on with them at the new place."""
    acknowledged: list[str] = []
    sessions = dict[int, str]()
    states, kept, saved = tmp_path / "serve.db", tmp_path / "kept", tmp_path / "b.tar.gz"
    options = ["--write-to", str(kept), "--sessions", str(states)]
    with process(folder, *options) as (server, port):
        ended = threading.Event()

        def confirm(thread: int) -> None:
            to = {"write_to": "kept" if thread % 2 else ""}
            sessions[thread] = session = post(port, "/v1/sessions", to)["id"]
            number = 0
            while not ended.is_set() and number < 100:  # nobody reads the log of the server
                src = f"Notice {thread} of number {number}"
                post(port, f"/v1/sessions/{session}/confirm", {"src": src, "tgt": "x"})
                acknowledged.append(src)
                number += 1

        threads = [threading.Thread(target=confirm, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while len(acknowledged) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        done_before = set(acknowledged)
        command = [sys.executable, "-m", "tmnmt", "backup", "-o", str(saved), *options]
        subprocess.run(command, check=True)
        done_meanwhile = set(acknowledged) - done_before
        ended.set()
        for thread in threads:
            thread.join()
        server.kill()
    assert len(done_before) >= 20 and done_meanwhile
    assert saved.stat().st_mode & 0o777 == 0o600
    restore(saved, tmp_path / "new")
    with MemoryIndex.open(tmp_path / "new" / "memories" / "kept") as index:
        in_memory = {segment.src for segment in index.segments()}
    storage = open_storage(tmp_path / "new" / "sessions.db")
    pairs = [pair for id in sessions.values() for pair in storage.sessions.pairs("", id)]
    pending = [intention.pair.src for intention in storage.sessions.intentions()]
    storage.close()
    in_sessions = {pair.src for pair in pairs}
    written = {pair.src for pair in pairs if pair.memory}
    assert done_before <= in_sessions
    assert {src for src in done_before if src.startswith(("Notice 1", "Notice 3"))} <= written
    assert written <= in_memory <= written | set(pending)  # what is pending is mended at the start
    assert {pair.memory for pair in pairs if pair.memory} == {str(tmp_path / "new/memories/kept")}
    served = (f"kept={tmp_path / 'new/memories/kept'}",)
    with tiny_server(folder, (), served, sessions=tmp_path / "new/sessions.db") as other:
        undone = other.ask("POST", f"/v1/sessions/{sessions[1]}/undo", {})
        assert undone.status == 200, undone.body
        (memory,) = other.service.latest.memories
        assert undone.json["undone"]["src"] not in {s.src for s in memory.index.segments()}


def test_all_comes_back_where_it_was_or_into_a_new_folder(place: Path) -> None:
    names = ["mine.en", "house.csv", "keys.toml", "serve.db", "serve.toml"]
    texts = {name: (place / name).read_bytes() for name in names if name.endswith(("v", "l"))}
    restore(place / "b.tar.gz", place / "new")
    config = load_config(place / "new" / "serve.toml")
    options, limits = config.options, config.tenant["anna"]
    assert (limits.tenant_documents, limits.tenant_bytes) == (3, options.tenant_bytes)
    assert options.write_to == (f"mine.en={place}/new/memories/mine.en:penalty=3",)
    assert options.terms == (f"house={place}/new/terms/house.csv",)
    assert options.keys is not None and Keys.load(options.keys).callers[0].name == "anna"
    assert (options.sessions, options.text_length) == (f"{place}/new/sessions.db", 77)
    with pytest.raises(DataError, match="is there already; nothing was restored"):
        restore(place / "b.tar.gz")
    with pytest.raises(DataError, match="is there already; give a new folder"):
        restore(place / "b.tar.gz", place / "new")
    (place / "away").mkdir()
    for path in place.iterdir():
        if path.name.startswith(tuple(names)):
            path.rename(place / "away" / path.name)
    restore(place / "b.tar.gz")
    assert {name: (place / name).read_bytes() for name in texts} == texts
    with MemoryIndex.open(place / "mine.en") as index:
        assert len(index) == len(segments())
    assert sorted(path.name for path in place.iterdir() if path.name.startswith(".")) == []


def test_a_backup_that_is_damaged_is_refused_and_nothing_is_written(place: Path) -> None:
    content = gzip.decompress((place / "b.tar.gz").read_bytes())
    damaged = place / "damaged.tar.gz"
    at = content.index("État".encode())
    changed = content[:at] + b"e" + content[at + 1 :]
    for text in (
        gzip.compress(changed),
        gzip.compress(content[: len(content) // 2]),
        gzip.compress(content[: content.index(b"backup.json")]),
        (place / "b.tar.gz").read_bytes()[:-200],
        gzip.compress(content.replace(b"house.csv", b"../se.csv")),
        b"",
        b"no backup at all",
    ):
        damaged.write_bytes(text)
        with pytest.raises(DataError, match=r"damaged\.tar\.gz"):
            restore(damaged, place / "new")
        assert not (place / "new").exists() and run(["restore", str(damaged), "--check"]) == 1
    assert len(read_contents(place / "b.tar.gz").files) > 5


def test_a_killed_backup_leaves_no_file_and_the_next_one_is_whole(tmp_path: Path) -> None:
    """Killed at several moments."""
    build(tmp_path / "mine", segments(), "en", "fr")
    with MemoryIndex.open(tmp_path / "mine") as index:
        index.add([segments()[0]] * 30_000)
    saved = tmp_path / "b.tar.gz"
    options = ["--write-to", str(tmp_path / "mine"), "--sessions", str(tmp_path / "serve.db")]
    open_storage(tmp_path / "serve.db").close()
    command = [sys.executable, "-m", "tmnmt", "backup", "-o", str(saved), *options]
    moments = set[bool]()
    for _ in range(3):
        started = subprocess.Popen(command)
        partial = saved.with_name(f"{saved.name}.partial")
        partial.unlink(missing_ok=True)
        while not partial.exists() and started.poll() is None:
            time.sleep(0.0005)
        started.send_signal(signal.SIGKILL)
        started.wait()
        moments.add(saved.exists())
        saved.unlink(missing_ok=True)
    assert False in moments
    subprocess.run(command, check=True)
    assert len(read_contents(saved).places) == 2
    left = {path.name for path in tmp_path.iterdir()} - {"mine", "serve.db", "b.tar.gz"}
    assert left <= {"serve.db-wal", "serve.db-shm"}


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--sessions", "none.db"], "no such file of sessions"),
        (
            ["--sessions", "redis://u:hush@h:1/0"],
            "redis://h:1/0: sessions on a Redis are backed up",
        ),
        (["--without-sessions", "--terms", "none.csv"], "none.csv"),
        (["--without-sessions", "--write-to", "elasticsearch+http://h:1/n"], "its own server"),
    ],
)
def test_what_cannot_be_backed_up_is_told_in_one_line(
    tmp_path: Path,
    options: list[str],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["backup", "-o", "b.tar.gz", *options]) in (1, 2)
    told = capsys.readouterr().err
    assert what in told and told.count("\n") == 1 and "hush" not in told
    assert [*tmp_path.iterdir()] == []


def test_nothing_is_overwritten(place: Path) -> None:
    content = (place / "b.tar.gz").read_bytes()
    with pytest.raises(DataError, match="is there already"):
        back_up(place / "b.tar.gz", ServerConfig())
    assert (place / "b.tar.gz").read_bytes() == content
