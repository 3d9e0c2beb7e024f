"""Kills `tmnmt serve` (SIGKILL) at random moments while four clients confirm and take back, starts
it again on the same files, and looks whether anything is lost that was acknowledged, or is in one
place only.

    python benchmarks/serve_kill.py models/law.en-fr 100

Two sessions write to a memory, two keep their pairs alone; all four go on after every start. Some
pairs are confirmed by several sessions, and some for a segment that had another one before, whose
place they take. Once a server has started, a session holds what was acknowledged, with or without
the request that was under way; and the memory holds what the first two sessions hold, each pair
once, no pair more and none less. With
`--sessions redis://localhost/9` the sessions are kept there, in place of a file. With `--forked` a
process that has all modules is forked in place of a start from nothing, which takes a third of the
time."""

from __future__ import annotations

import argparse
import http.client
import random
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from killed_server import Forked, ask
from serve_load import Server

SESSIONS = 4  # the first half of them writes to the memory
SHARED = 6  # pairs that any session may confirm
SEGMENTS = 5  # of a session, by name
UNDONE = 0.35  # share of requests that take back
MOMENTS = 0.02, 1.0  # seconds until a kill


class Pair(NamedTuple):
    """A source that is confirmed, and the segment that it is of; None: of none."""

    source: str
    segment: str | None


@dataclass
class Document:
    """One session as its client knows it. `pairs`: those that were acknowledged; `request`: what is
    not answered yet: a pair that is confirmed, "undo": the last one is taken back."""

    pairs: list[Pair] = field(default_factory=list)
    request: Pair | Literal["undo"] | None = None
    confirmed: int = 0
    undone: int = 0

    def states(self) -> list[list[Pair]]:
        """What the session may hold."""
        request = self.request
        if request is None:
            return [self.pairs]
        if request == "undo":
            return [self.pairs, self.pairs[:-1]]
        others = [one for one in self.pairs if one.segment is None or one.segment != request[1]]
        return [self.pairs, [*others, Pair(*request)]]


def work(port: int, session: str, document: Document, draw: random.Random) -> None:
    """Confirms and takes back until the server is gone."""
    while True:
        is_undo = bool(document.pairs) and draw.random() < UNDONE
        name = draw.randrange(SHARED) if draw.random() < 0.3 else draw.getrandbits(60)
        segment = str(draw.randrange(SEGMENTS)) if draw.random() < 0.5 else None
        pair = Pair(f"Notice of {name}", segment)
        document.request = "undo" if is_undo else pair
        body = {"src": pair.source, "tgt": f"Avis {name}", "segment": segment}
        body = {} if is_undo else body
        try:
            ask(port, "POST", f"/v1/sessions/{session}/{'undo' if is_undo else 'confirm'}", body)
        except (OSError, http.client.HTTPException, ValueError):
            return
        document.pairs = document.states()[1]
        document.request = None
        document.undone += bool(is_undo)
        document.confirmed += not is_undo


def check(folder: Path, sessions: str, documents: Mapping[str, Document]) -> int:
    """How many requests under way were carried out. Ends the program at the first pair that was
    acknowledged and is lost, or is in one place only."""
    from tmnmt.index import MemoryIndex
    from tmnmt.serve.storage.opening import open_storage, place_of

    carried_out, in_sessions = 0, set[str]()
    with closing(open_storage(place_of(sessions))) as storage:
        for number, (session, document) in enumerate(documents.items()):
            sources = [pair.src for pair in storage.sessions.pairs("", session)]
            states = document.states()
            allowed = [state for state in states if [one.source for one in state] == sources]
            if not allowed:
                raise SystemExit(f"lost: {states} is {sources}")
            in_sessions |= set(sources) if number < SESSIONS // 2 else set()
            carried_out += document.request is not None and allowed[0] != document.pairs
            document.pairs, document.request = allowed[-1], None
    with MemoryIndex.open(folder / "own") as index:
        in_memory = [segment.src for segment in index.segments()]
    if sorted(in_memory) != sorted(in_sessions):
        alone = in_sessions.symmetric_difference(in_memory)
        raise SystemExit(f"in one place only: {len(alone)}, as {min(alone, default='twice')!r}")
    return carried_out


class Started:
    """A process of its own, which is killed."""

    def __init__(self, model: Path, folder: Path, sessions: str) -> None:
        self._server = Server(model, folder, ["--threads", "1", "--sessions", sessions])
        self.port = self._server.port

    def kill(self) -> None:
        self._server.process.kill()
        self._server.process.wait()


def forked(model: Path, folder: Path, sessions: str) -> Forked:
    """As `Started`, of a process that has imported all modules."""
    from tmnmt.serve.running import service_of

    own = [f"own={folder / 'own'}"]
    return Forked(lambda: service_of([model], [], own, threads=1, sessions=sessions))


def main() -> None:
    """Prints a line every tenth round, and at the end how much was acknowledged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", help="file or Redis")
    parser.add_argument("--forked", action="store_true")
    given = parser.parse_args()
    draw, start, documents = random.Random(given.seed), time.monotonic(), dict[str, Document]()
    carried_out, start_server = 0, forked if given.forked else Started
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sessions = given.sessions or str(folder / "sessions.db")
        for number in range(given.rounds + 1):
            server = start_server(given.model, folder, sessions)
            carried_out += check(folder, sessions, documents)  # what the start has mended
            if number % 10 == 0 or number == given.rounds:
                tell(number, documents, carried_out)
            while len(documents) < SESSIONS:
                to = "own" if len(documents) < SESSIONS // 2 else ""
                id = ask(server.port, "POST", "/v1/sessions", {"write_to": to})["id"]
                documents[id] = Document()
            threads = [
                threading.Thread(
                    target=work, args=(server.port, id, one, random.Random(draw.random()))
                )
                for id, one in documents.items()
            ]
            for thread in threads:
                thread.start()
            time.sleep(draw.uniform(*MOMENTS))
            server.kill()
            for thread in threads:
                thread.join()
    print(f"{time.monotonic() - start:.0f} s")


def tell(kills: int, documents: Mapping[str, Document], carried_out: int) -> None:
    confirmed = sum(one.confirmed for one in documents.values())
    undone = sum(one.undone for one in documents.values())
    print(
        f"{kills} kills, {confirmed:,} confirmed and {undone:,} taken back were acknowledged; "
        f"{carried_out:,} more were carried out; lost 0, in one place only 0",
        flush=True,
    )


if __name__ == "__main__":
    main()
