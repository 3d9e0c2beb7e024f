"""Kills editors of an index on a server at random moments: `python kill_editors.py ADDRESS SECONDS
SEED`.

Three change the same pairs at once, so that these move between few documents, and say what they
have done; a fourth verifies and searches all the time. Prints what was found out, and ends with an
exception where something was lost, undone or is there twice. A program of its own, for it forks.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from tmnmt.index.base import UnknownIdError
from tmnmt.index.elastic.address import ElasticAddress, parse_address
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.segments import Segment

PAIRS, DOOMED, SOURCES, EDITORS = 12, 400, 5, 3  # those that stay, those that may be deleted

SENTENCE = "one of the sources that all of them want"


def edit(address: ElasticAddress, seed: int, pipe: int) -> None:
    """Changes the index for ever. Says "add NAME", "gone ID" and "edit ID TAG" when that is done,
    "tried ID" before it deletes."""
    draw = random.Random(seed)

    def say(*words: object) -> None:
        os.write(pipe, (" ".join(map(str, words)) + "\n").encode())

    with ElasticIndex.open(address) as index:
        for i in range(10**9):
            doomed = draw.sample(range(PAIRS + 1, PAIRS + DOOMED + 1), 2)
            if draw.random() < 0.2:
                for number in doomed:
                    say("tried", number)
                with suppress(UnknownIdError):  # another was faster
                    index.delete(doomed)
                    for number in doomed:
                        say("gone", number)
            elif draw.random() < 0.3:
                name = f"{seed}-{i}"
                index.add([Segment(_source(draw), name)])
                say("add", name)
            else:
                staying = draw.sample(range(1, PAIRS + 1), 3)
                sources = {number: _source(draw) for number in (*staying, *doomed)}
                tag = f"{seed}-{i}"
                index.edit(staying, partial(_corrected, sources, tag))
                for number in staying:
                    say("edit", number, tag)
                with suppress(UnknownIdError):
                    index.edit(doomed, partial(_corrected, sources, tag))


def _corrected(sources: Mapping[int, str], tag: str, pair: Segment) -> Segment:
    return replace(pair, src=sources[pair.id], properties=(*pair.properties, (tag, "")))


def _source(draw: random.Random) -> str:
    return f"{SENTENCE} {draw.randrange(SOURCES)}"


def verify(address: ElasticAddress, pipe: int) -> None:
    """Verifies and searches the index for ever, and says so; also how many of the pairs that stay a
    search has missed: shards are not read at one moment."""
    with ElasticIndex.open(address) as index:
        while True:
            index.verify()
            ids = [segment.id for segment in index.segments()]
            assert len(ids) == len(set(ids)), "a pair is there twice"
            found = [match.segment.id for match in index.search([SENTENCE], 10_000, 0.0)[0]]
            assert len(found) == len(set(found)), "a pair is found twice"
            missed = set(range(1, PAIRS + 1)) - set(found)
            os.write(pipe, b"verified\n" + b"missed\n" * bool(missed))


@dataclass
class Child:
    """A process, and where it says what it does."""

    number: int
    pipe: int

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
    pairs = [Segment(_source(draw), f"pair {i}") for i in range(1, PAIRS + DOOMED + 1)]
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


def _moving(index: ElasticIndex) -> int:
    """How many documents have segments that move."""
    path, query = f"/{index.address.name}/_count", {"exists": {"field": "moving"}}
    return int(index._server.ask("POST", path, {"query": query})["count"])


def look(address: ElasticAddress, said: list[str]) -> dict[str, int]:
    """Fails unless everything that was said is so."""
    done = [line.split() for line in said]
    added = {line[1] for line in done if line[0] == "add"}
    tried, gone = ({int(line[1]) for line in done if line[0] == what} for what in ("tried", "gone"))
    edits = [(int(line[1]), line[2]) for line in done if line[0] == "edit"]
    with ElasticIndex.open(address) as index:
        moving = _moving(index)
        index.compact()
        segments = list(index.segments())
        targets = [segment.tgt for segment in segments]
        pairs = {segment.id: segment for segment in segments}
        assert len(targets) == len(set(targets)) and added <= set(targets), (
            "an addition is lost, or was made twice"
        )
        built = set(range(1, PAIRS + DOOMED + 1))
        assert built - tried <= pairs.keys() and not gone & pairs.keys(), (
            "a deletion was undone, or made without need"
        )
        assert all(targets[number - 1] == f"pair {number}" for number in range(1, PAIRS + 1))
        tags = {
            number: [name for name, _ in pairs[number].properties] for number in range(1, PAIRS + 1)
        }
        assert all(tag in tags[number] for number, tag in edits), "a correction is lost"
        assert all(len(some) == len(set(some)) for some in tags.values()), (
            "a correction was made twice"
        )
        assert index.verify() == len(index) == len(segments)
        assert not _moving(index)
    counts = {
        "edits": len(edits),
        "added": len(added),
        "deleted": len(gone),
        "verified": said.count("verified"),
    }
    return {**counts, "missed by a search": said.count("missed"), "moves broken off": moving}


if __name__ == "__main__":
    main(parse_address(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
