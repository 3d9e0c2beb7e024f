"""Makes a new memory that is written to in two processes at once, and kills its maker at every
step: `python make_memories.py FOLDER ROUNDS`; with a third number, at every so many steps.

A program of its own, for it forks: a child without torch and threads starts in a millisecond.
Prints how many of the pairs that started together failed, and how many memories of a killed maker
the next one could not open."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tmnmt.errors import LockedError
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.named_memories import open_to_write
from tmnmt.segments import Segment

STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "sqlite3.connect")
MOST_STEPS = 1000


def make(path: Path) -> None:
    """Opens the memory to write, as a server or a translator that starts does, and adds to it."""
    index = open_to_write(path, [], [], "en", "fr")
    while True:
        try:
            index.add([Segment(f"written by {os.getpid()}", "écrit")])
            return
        except LockedError:
            time.sleep(0.01)


def child(work: Callable[[], None]) -> int:
    """The id of a process that does the work, and ends with 1 where it fails."""
    process = os.fork()
    if process:
        return process
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def ended_well(process: int) -> bool:
    return os.waitpid(process, 0)[1] == 0


def together(folder: Path, rounds: int) -> int:
    """In how many rounds one of two that started together failed, or what it added is not there."""
    failed = 0
    for number in range(rounds):
        path = folder / f"together-{number}" / "memory"
        reading, writing = os.pipe()

        def started(path: Path = path, reading: int = reading, writing: int = writing) -> None:
            os.close(writing)
            os.read(reading, 1)  # until both are there
            make(path)

        processes = [child(started), child(started)]
        os.close(reading)
        os.close(writing)
        well = all([ended_well(one) for one in processes])
        failed += not well or count(path) != 2
    return failed


def count(path: Path) -> int:
    with MemoryIndex.open(path) as index:
        return index.verify()


def dies_at(step: int, folder: Path, pipe: int) -> None:
    """This process is killed before it changes the folder, or opens a file in it, for the nth
    time."""
    seen = 0

    def hook(event: str, given: tuple[object, ...]) -> None:
        nonlocal seen
        if event in STEPS and str(folder) in str(given[0]):
            seen += 1
            if seen == step:
                os.write(pipe, b"K")
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def killed(folder: Path, every: int) -> tuple[int, int]:
    """How many makers were killed, each at another step, and how many memories nobody could open
    after that."""
    refused = 0
    for kills, step in enumerate(range(1, MOST_STEPS, every)):
        path = folder / f"killed-{step}" / "memory"
        reading, writing = os.pipe()

        def works(path: Path = path, step: int = step, writing: int = writing) -> None:
            dies_at(step, path.parent, writing)
            open_to_write(path, [], [], "en", "fr")

        done = ended_well(child(works))
        os.close(writing)
        was_killed = os.read(reading, 1) == b"K"
        os.close(reading)
        if not was_killed:
            assert done, "a maker failed by itself"
            return kills, refused
        refused += not ended_well(child(partial(make, path))) or count(path) != 1
    raise AssertionError("it never ends")


def main(folder: Path, rounds: int, every: int = 1) -> None:
    make(folder / "first")  # what is imported and compiled at need is there then
    failed = together(folder, rounds)
    kills, refused = killed(folder, every)
    print(json.dumps({"together": rounds, "failed": failed, "kills": kills, "refused": refused}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
