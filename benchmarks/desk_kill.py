"""Kills servers (SIGKILL) at random moments while people write, confirm and take back in one
document, starts them again on the same files, and looks whether anything is lost that was
acknowledged, and whether the document, its session and the memory still agree.

    python benchmarks/desk_kill.py 100
    python benchmarks/desk_kill.py 100 --servers 2 --sessions redis://localhost/9

No model is needed. Three people have segments of their own, of which every source comes three
times. A request that was under way is sent again after the start. Several servers share the
sessions, and write to no memory, since a memory in a folder has one writer."""

from __future__ import annotations

import argparse
import base64
import http.client
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from killed_server import Forked, ask

PEOPLE, SOURCES, TIMES = 3, 4, 3
LATEST = 10**9  # a version that is never older
MOMENTS = 0.1, 2.5  # seconds until a kill


@dataclass
class Person:
    """What one person knows of their segments: number to draft and confirmed text."""

    numbers: list[int]
    known: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)
    request: tuple[str, str, dict[str, Any]] | None = None
    acknowledged: int = 0


def started(folder: Path, sessions: str, writes: bool) -> Forked:
    """A server of the memories in a folder."""
    from tmnmt.serve.running import service_of

    own = [f"own={folder / 'own'}"] if writes else []
    return Forked(lambda: service_of([], [f"law={folder / 'law'}"], own, sessions=sessions))


def chosen(person: Person, draw: random.Random) -> tuple[str, str, dict[str, Any]]:
    """A request to the document."""
    number, text = draw.choice(person.numbers), f"Texte {draw.getrandbits(40)}"
    match draw.randrange(4):
        case 0:
            return "PATCH", f"/segments/{number}", {"version": LATEST, "text": text}
        case 1:
            return "POST", "/undo", {"number": number}
        case _:
            body = {"version": LATEST, "text": text, "request": f"r{draw.getrandbits(60)}"}
            body["repetitions"] = draw.random() < 0.7
            return "POST", f"/segments/{number}/confirm", body


def learn(person: Person, answer: Any) -> None:
    records = (
        [answer] if "number" in answer else [answer.get("segment"), *answer.get("segments", [])]
    )
    for record in [*records, *answer.get("repetitions", [])]:
        if record is not None:
            person.known[record["number"]] = record["text"], record["confirmed"]


def work(port: int, desk: str, person: Person, draw: random.Random) -> None:
    """Works until the server is gone."""
    while True:
        person.request = person.request or chosen(person, draw)
        method, path, body = person.request
        try:
            answer = ask(port, method, desk + path, body, expected=("nothing_confirmed",))
        except (OSError, http.client.HTTPException, ValueError):
            return
        learn(person, answer)
        person.acknowledged += 1
        person.request = None


def check(port: int, desk: str, people: Sequence[Person]) -> list[str]:
    """The translations that the session of a document has. Ends the program where something is
    lost, or the session and the document do not agree."""
    about = ask(port, "GET", desk)
    records = {r["number"]: r for r in ask(port, "GET", f"{desk}/segments")["segments"]}
    for person in people:
        under_way = set[int]()
        if person.request is not None:  # of all segments of the same source
            _, path, body = person.request
            number = body.get("number") or int(path.split("/")[2])
            source = records[number]["source"]
            under_way = {n for n in person.numbers if records[n]["source"] == source}
        for number in person.numbers:
            now = records[number]["text"], records[number]["confirmed"]
            if number in under_way:
                person.known[number] = now
            elif person.known.get(number, (None, None)) != now:
                raise SystemExit(f"lost: {number} is {now}, was {person.known.get(number)}")
    session = f"/v1/sessions/{about['session']['id']}"
    pairs: list[str] = sorted(
        pair["tgt"] for pair in ask(port, "GET", f"{session}/confirmed")["pairs"]
    )
    confirmed = [r["confirmed"] for r in records.values() if r["confirmed"] is not None]
    if pairs != sorted(confirmed):
        raise SystemExit(f"the session has {len(pairs)} pairs, the document {len(confirmed)}")
    return pairs


def check_memory(folder: Path, pairs: Sequence[str]) -> None:
    """Ends the program where the memory has other translations."""
    from tmnmt.index import MemoryIndex

    with MemoryIndex.open(folder / "own") as index:
        stored = sorted(segment.tgt for segment in index.segments())
    if stored != sorted(set(pairs)):
        raise SystemExit(f"the memory has {len(stored)} pairs of {len(set(pairs))}")


def begun(port: int, lines: list[str], write_to: str) -> str:
    """The address of a new document."""
    content = base64.b64encode("\n".join(lines).encode()).decode()
    sent = {"name": "a.txt", "content": content, "sentences": False, "write_to": write_to}
    return f"/v1/desk/{ask(port, 'POST', '/v1/desk', sent)['id']}"


def main() -> None:
    """Prints how much was acknowledged, at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--sessions", help="file or Redis")
    given = parser.parse_args()
    from tmnmt.index import build
    from tmnmt.segments import Segment

    draw, writes, desk = random.Random(given.seed), given.servers == 1, ""
    each = SOURCES * TIMES
    people = [Person([*range(n * each + 1, (n + 1) * each + 1)]) for n in range(PEOPLE)]
    lines = [
        f"Notice {n} of {s}" for n in range(PEOPLE) for s in range(SOURCES) for _ in range(TIMES)
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder / "law", [Segment("It was there.", "Il y était.")], "en", "fr")
        sessions = given.sessions or str(folder / "sessions.db")
        for _ in range(given.rounds + 1):
            servers = [started(folder, sessions, writes) for _ in range(given.servers)]
            ports, threads = [server.port for server in servers], list[threading.Thread]()
            try:
                if desk:
                    pairs = check(ports[0], desk, people)
                    if writes:
                        check_memory(folder, pairs)
                else:
                    desk = begun(ports[0], lines, "own" if writes else "")
                for number, person in enumerate(people):
                    drawn = random.Random(draw.random())
                    arguments = ports[number % len(ports)], desk, person, drawn
                    threads.append(threading.Thread(target=work, args=arguments))
                    threads[-1].start()
                time.sleep(draw.uniform(*MOMENTS))
            finally:
                for server in servers:
                    server.kill()
                for thread in threads:
                    thread.join()
    acknowledged = sum(person.acknowledged for person in people)
    print(f"{given.rounds} kills, {acknowledged:,} changes acknowledged; lost 0, places agree")


if __name__ == "__main__":
    main()
