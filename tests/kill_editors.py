"""Kills editors of an index on a server at random moments: `python kill_editors.py ADDRESS SECONDS SEED`.

Three change the same pairs at once, so that these move between few documents, and say what they have done; a fourth
verifies all the time. Prints what was found out, and ends with an exception where something was lost or is there twice.
A program of its own, for it forks.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field, replace

from tmnmt.index.elastic import ElasticIndex
from tmnmt.index.elastic_address import ElasticAddress, parse_address
from tmnmt.index.elastic_build import build_elastic
from tmnmt.segments import Segment

PAIRS, SOURCES, EDITORS = 60, 25, 3


def edit(address: ElasticAddress, seed: int, pipe: int) -> None:
    """Changes the index for ever. Says "add NAME" and "gone NAME" of pairs of its own when that is done, "leaving NAME"
    before it deletes one, "edit" after a correction."""
    draw, own = random.Random(seed), dict[str, int]()

    def say(*words: str) -> None:
        os.write(pipe, (" ".join(words) + "\n").encode())

    with ElasticIndex.open(address) as index:
        for i in range(10**9):
            if own and draw.random() < 0.2:
                name, number = own.popitem()
                say("leaving", name)
                index.delete([number])
                say("gone", name)
            elif draw.random() < 0.3:
                name = f"{seed}-{i}"
                (own[name],) = index.add([Segment(_source(draw), name)])
                say("add", name)
            else:
                some = draw.sample(range(1, PAIRS + 1), 3)
                sources = [_source(draw) for _ in some]
                index.edit(some, lambda pair: replace(pair, src=sources[some.index(pair.id)]))  # noqa: B023
                say("edit")


def _source(draw: random.Random) -> str:
    return f"one of the sources that all of them want {draw.randrange(SOURCES)}"


def verify(address: ElasticAddress, pipe: int) -> None:
    """Verifies the index for ever, and says so."""
    with ElasticIndex.open(address) as index:
        while True:
            index.verify()
            ids = [segment.id for segment in index.segments()]
            assert len(ids) == len(set(ids)), "a pair is there twice"
            os.write(pipe, b"verified\n")


@dataclass
class Child:
    """A process, and the lines it has said."""

    number: int
    pipe: int
    said: list[str] = field(default_factory=list)

    def end(self) -> list[str]:
        """Kills it; what it said. Fails if it ended by itself."""
        os.kill(self.number, signal.SIGKILL)
        _, status = os.waitpid(self.number, 0)
        assert os.WIFSIGNALED(status), "it failed by itself"
        with os.fdopen(self.pipe) as lines:
            return lines.read().splitlines()


def start(work: object, *arguments: object) -> Child:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            work(*arguments, writing)  # type: ignore[operator]
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writing)
    return Child(child, reading)


def main(address: ElasticAddress, seconds: float, seed: int) -> None:
    draw = random.Random(seed)
    pairs = [Segment(_source(draw), f"pair {i}") for i in range(1, PAIRS + 1)]
    build_elastic(address, pairs, "en", "fr", shards=3)
    seeds = iter(range(10**9))
    reader = start(verify, address)
    editors = [start(edit, address, next(seeds)) for _ in range(EDITORS)]
    said: list[str] = []
    kills, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(3 * draw.random())
        place = draw.randrange(EDITORS)
        said += editors[place].end()
        editors[place] = start(edit, address, next(seeds))
        kills += 1
    for child in (*editors, reader):
        said += child.end()
    print(json.dumps({"kills": kills, **look(address, said)}))


def look(address: ElasticAddress, said: list[str]) -> dict[str, int]:
    """Fails unless everything that was said is so."""
    done = [line.split() for line in said]
    added, leaving, gone = ({line[1] for line in done if line[0] == what} for what in ("add", "leaving", "gone"))
    with ElasticIndex.open(address) as index:
        moving = index._server.client.count(index=address.name, query={"exists": {"field": "moving"}})["count"]
        index.compact()
        segments = list(index.segments())
        targets = [segment.tgt for segment in segments]
        assert [segment.id for segment in segments[:PAIRS]] == list(range(1, PAIRS + 1))
        assert targets[:PAIRS] == [f"pair {i}" for i in range(1, PAIRS + 1)]
        assert len(targets) == len(set(targets)) and added - leaving <= set(targets) and not gone & set(targets)
        assert index.verify() == len(index) == len(segments)
        assert not index._server.client.count(index=address.name, query={"exists": {"field": "moving"}})["count"]
    count = {"edits": said.count("edit"), "added": len(added), "deleted": len(gone), "verified": said.count("verified")}
    return {**count, "moves broken off": moving}


if __name__ == "__main__":
    main(parse_address(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
