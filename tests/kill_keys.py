"""Kills `tmnmt keys` at random moments and runs it again: `python kill_keys.py FOLDER MODEL KILLS
SEED`.

Each time the memory is changed first, and a copy of it gets its keys without being disturbed.
However often the other was killed, it has the same bytes in the end. A program of its own, for it
forks: a child that has everything imported starts at once. Prints what was found out, and ends with
an exception at the first difference."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # a pool of threads would not survive the fork

import torch
from brute_force import real_segments
from tiny_model import segments

import tmnmt.keys.compute
from tmnmt.cli import run
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.files import OFFSETS_FILE, verify_keys
from tmnmt.trained_layers.faiss_index import load_faiss

KILLS_A_CHANGE = 5
Content = dict[str, bytes]  # of every file of the keys, by its name


def main(folder: Path, model: Path, kills: int, seed: int) -> None:
    torch.set_num_threads(1)
    load_faiss()
    tmnmt.keys.compute.BLOCK_POSITIONS = 150
    draw = random.Random(seed)
    index, copy = folder / "index", folder / "copy"
    build(
        index,
        [*segments(), *real_segments()[:30], replace(segments()[0], document="again")],
        "en",
        "fr",
    )
    done, changes, unfinished, grown = 0, 0, 0, 0
    while done < kills:
        shutil.copytree(index, copy)
        start = time.monotonic()
        assert finished(compute(copy, model))
        seconds = time.monotonic() - start
        for _ in range(min(KILLS_A_CHANGE, kills - done)):
            before, child = written(index), compute(index, model)
            while (
                done % 2 and written(index) == before and not has_ended(child)
            ):  # whatever the machine's load
                time.sleep(0.001)
            time.sleep(draw.random() * seconds / 2)
            os.kill(child, signal.SIGKILL)
            killed = not finished(child)
            unfinished += killed
            grown += killed and written(index) > before
            done += 1
            verify_keys(index)
        assert finished(compute(index, model))
        assert keys_of(index) == keys_of(copy), f"other bytes, seed {seed}, after {done} kills"
        shutil.rmtree(copy)
        change(index, draw)
        changes += 1
    print(json.dumps({"kills": done, "unfinished": unfinished, "changes": changes, "grown": grown}))


def compute(index: Path, model: Path) -> int:
    """A process that runs `tmnmt keys`; its pid."""
    child = os.fork()
    if not child:
        try:
            with Path(os.devnull).open("w") as silence:
                os.dup2(silence.fileno(), sys.stderr.fileno())
            os._exit(
                run(
                    [
                        "keys",
                        "--index",
                        str(index),
                        "--model",
                        str(model),
                        "--device",
                        "cpu",
                        "--faiss",
                        "ivf",
                    ]
                )
            )
        finally:
            os._exit(9)
    return child


def written(index: Path) -> int:
    """Bytes of all records of keys; 0 while folders are being renamed or removed."""
    with suppress(FileNotFoundError):
        return sum(path.stat().st_size for path in index.rglob(OFFSETS_FILE))
    return 0


def has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def finished(child: int) -> bool:
    """Whether the process came to its end; fails where it ended with an error."""
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"tmnmt keys ended with {status}"
    return not os.WIFSIGNALED(status)


def keys_of(index: Path) -> Content:
    found = [
        path for path in (index / "keys").rglob("*") if path.is_file() and path.name != ".lock"
    ]
    return {str(path.relative_to(index)): path.read_bytes() for path in found}


def change(index: Path, draw: random.Random) -> None:
    """Adds, corrects and deletes; now and then so many that the keys are written again without what
    is gone."""
    with MemoryIndex.open(index) as opened:
        opened.add(draw.sample(real_segments(), 12))
        ids = [segment.id for segment in opened.segments()]
        opened.edit(draw.sample(ids, 3), lambda segment: replace(segment, tgt=segment.tgt + " bis"))
        opened.delete(draw.sample(ids, len(ids) * 2 // 3 if len(ids) > 50 else 5))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
