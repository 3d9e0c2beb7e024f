"""Kills writers of an index at random moments and looks what they left: `python kill_writers.py
FOLDER ROUNDS SEED`.

A program of its own, for it forks: a child without torch and threads starts in a millisecond, so
that hundreds of kills take a minute. The child says what it is about to do, and when that is done;
so whoever killed it knows the two states that the index may be in. Prints what was found out, and
ends with an exception at the first wrong state."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tmnmt.index import MemoryIndex, build
from tmnmt.segments import Segment

State = dict[str, str]  # target by source
OPERATIONS = ("add", "add", "edit", "delete", "compact", "compact", "build")


def plan(state: State, draw: random.Random) -> tuple[str, State]:
    """An operation, and the state when it is done."""
    operation = draw.choice(OPERATIONS)
    some = draw.sample(sorted(state), draw.randint(1, min(9, len(state))))
    new = {
        f"the sentence number {draw.getrandbits(60)}": "new"
        for _ in range(draw.choice([1, 3, 300]))
    }
    after = {
        "add": state | new,
        "edit": state | dict.fromkeys(some, f"corrected {draw.random()}"),
        "delete": {src: tgt for src, tgt in state.items() if src not in some}
        if len(state) > 50
        else state,
        "compact": state,
        "build": dict(list(state.items())[-200:]) | new,
    }[operation]
    return operation, after


def carry_out(operation: str, state: State, after: State, index: MemoryIndex) -> None:
    number = {segment.src: segment.id for segment in index.segments()}
    if operation == "add":
        index.add([Segment(src, tgt) for src, tgt in after.items() if src not in state])
    elif operation == "edit":
        ids = [number[src] for src in after if after[src] != state[src]]
        index.edit(ids, lambda segment: replace(segment, tgt=after[segment.src]))
    elif operation == "delete":
        index.delete(number[src] for src in state if src not in after)
    elif operation == "compact":
        index.compact()
    else:
        build(index.path, [Segment(src, tgt) for src, tgt in after.items()], "en", "fr", force=True)


def work(path: Path, state: State, seed: int, pipe: int) -> None:
    """Changes the index for ever; "T" before and "D" after every operation."""
    draw = random.Random(seed)
    with MemoryIndex.open(path) as index:
        while True:
            operation, after = plan(state, draw)
            os.write(pipe, b"T")
            carry_out(operation, state, after, index)
            os.write(pipe, b"D")
            state = after


def kill_one(path: Path, state: State, draw: random.Random) -> tuple[str, list[State], int]:
    """What a writer that was killed was about to do, the states it may have left, and how much it
    had done."""
    seed, (reading, writing) = draw.getrandbits(32), os.pipe()
    child = os.fork()
    if not child:
        try:
            work(path, state, seed, writing)
        finally:
            os._exit(1)
    os.close(writing)
    said = os.read(reading, 1)
    wanted = draw.choice(
        [0, 0, 1, 3]
    )  # done before; then a moment more, which on a slow machine may be none
    while said and said.count(b"D") < wanted:
        said += os.read(reading, 1)
    time.sleep(draw.choice([0.0005, 0.005, 0.05, 0.2]) * draw.random())
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, "the writer failed"
    said += b"".join(iter(lambda: os.read(reading, 4096), b""))
    os.close(reading)
    done, operation, states = said.count(b"D"), "nothing", [state]
    again = random.Random(seed)
    for _ in range(said.count(b"T")):
        operation, after = plan(states[-1], again)
        states = [states[-1], after]
    return ("nothing", states[-1:], done) if said.count(b"T") == done else (operation, states, done)


def look(path: Path, states: list[State]) -> State:
    """The state of the index; fails unless it is one of `states`, whole, searchable and as it was
    written."""
    with MemoryIndex.open(path) as index:
        segments = list(index.segments())
        found = {segment.src: segment.tgt for segment in segments}
        assert found in states, (
            f"{len(found)} pairs, which is no state of {[len(state) for state in states]}"
        )
        assert index.verify() == len(index) == len(segments) == len(found)
        src = next(reversed(found))
        ((match,),) = index.search([src], 1, 1.0)
        assert match.segment.tgt == found[src]
    return found


def main(path: Path, rounds: int, seed: int) -> None:
    draw = random.Random(seed)
    state = {f"the sentence number {i}": "old" for i in range(300)}
    build(path, [Segment(src, tgt) for src, tgt in state.items()], "en", "fr")
    look(path, [state])
    during, applied, total = Counter[str](), 0, 0
    for _ in range(rounds):
        operation, states, done = kill_one(path, state, draw)
        before, state = states[0], look(path, states)
        during[operation] += 1
        applied += state != before
        total += done
    print(
        json.dumps(
            {"kills": rounds, "during": during, "done before": total, "applied unsaid": applied}
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
