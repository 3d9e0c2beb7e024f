"""Kills `tmnmt serve` (SIGKILL) at random moments while four clients confirm, starts it again on
the same files, and looks whether anything is lost that was acknowledged.

    python benchmarks/serve_kill.py models/law.en-fr 100

Two sessions write to a memory, two keep their pairs alone; all four go on after every start. What
is acknowledged must be in the session and, of the first two, in the memory. With `--sessions
redis://localhost/9` the sessions are kept there, in place of a file."""

from __future__ import annotations

import argparse
import http.client
import json
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from serve_load import Server

SESSIONS = 4  # the first half of them writes to the memory


def ask(port: int, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        found = json.loads(reply.read())
        if reply.status != 200:
            raise SystemExit(f"refused: {reply.status} {found}")
        return found
    finally:
        connection.close()


def confirm(port: int, session: str, acknowledged: list[str], stop: threading.Event) -> None:
    """Until the server is gone."""
    while not stop.is_set():
        src = f"Notice {session[:6]} of number {len(acknowledged)}, {random.random()}"
        try:
            ask(port, f"/v1/sessions/{session}/confirm", {"src": src, "tgt": f"Avis {src}"})
        except (OSError, http.client.HTTPException, ValueError):
            return
        acknowledged.append(src)


def check(folder: Path, sessions: str, acknowledged: dict[str, list[str]]) -> None:
    """Ends the program at the first pair that was acknowledged and is lost."""
    from tmnmt.index import MemoryIndex
    from tmnmt.serve.storage.opened import opened, place_of

    storage = opened(place_of(sessions))
    with MemoryIndex.open(folder / "own") as index:
        kept = {segment.src for segment in index.segments()}
    for number, (session, sources) in enumerate(acknowledged.items()):
        done = {entry.src for entry in storage.sessions.pairs("", session)}
        missing = {*sources} - done | ({*sources} - kept if number < SESSIONS // 2 else set())
        if missing:
            raise SystemExit(f"lost: {len(missing)}, as {min(missing)!r}")
    storage.close()


def main() -> None:
    """Prints a line every tenth round, and at the end how much was acknowledged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", help="file or Redis")
    given = parser.parse_args()
    draw, start, acknowledged = random.Random(given.seed), time.monotonic(), dict[str, list[str]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sessions = given.sessions or str(folder / "sessions.db")
        for number in range(1, given.rounds + 1):
            server = Server(given.model, folder, ["--threads", "1", "--sessions", sessions])
            while len(acknowledged) < SESSIONS:
                to = "own" if len(acknowledged) < SESSIONS // 2 else ""
                id = ask(server.port, "/v1/sessions", {"write_to": to})["id"]
                acknowledged[id] = []
            stop = threading.Event()
            threads = [
                threading.Thread(target=confirm, args=(server.port, id, done, stop))
                for id, done in acknowledged.items()
            ]
            for thread in threads:
                thread.start()
            time.sleep(draw.uniform(0.02, 2.0))
            server.process.kill()
            server.process.wait()
            for thread in threads:
                thread.join()
            check(folder, sessions, acknowledged)
            if number % 10 == 0 or number == given.rounds:
                count = sum(map(len, acknowledged.values()))
                print(f"{number} kills, {count:,} acknowledged, none lost", flush=True)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
