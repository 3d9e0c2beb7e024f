"""The notice that something is compiled comes when numba compiles it, and at no other time."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import numba
import pytest

from tmnmt.compiled import compiling
from tmnmt.compiled.compiling import announced, compiled
from tmnmt.compiled.native import DamagedError, packed, unpacked


def _twice(number: int) -> int:
    return 2 * number


def test_what_lies_in_the_cache_on_disk_is_not_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    caplog.set_level(logging.INFO, "tmnmt")
    told = []
    for _ in range(2):
        monkeypatch.setattr(compiling, "_ready_labels", set())  # as in a new process
        caplog.clear()
        function = compiled(_twice)
        for number in (1, cast(int, 1.0)):  # two signatures, one notice
            with announced("doubling"):
                assert function(number) == 2
        told.append(caplog.messages)
    assert told == [["compiling the doubling, once on this machine; some 20 s ..."], []]


# Compiles the smallest of the functions that are kept as machine code.
PLACE_ALL = """
import logging, sys
logging.basicConfig(format="%(message)s", level=logging.INFO)
import numpy as np
from tmnmt.index.kernels.arrays import numbered
words = numbered(np.frombuffer(b"one\\ntwo", np.uint8))
print(sorted(words.slots.tolist()), "numba" in sys.modules)
"""


BEGIN = """
from tmnmt.compiled.native import begin
from tmnmt.index.kernels.arrays import _place_all
begin([_place_all])
"""


def placed(folder: Path, before: str = "") -> tuple[str, str]:
    """What a new process answers, and what it says meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", before + PLACE_ALL],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
    )
    return done.stdout.strip(), done.stderr.strip()


def test_kept_machine_code_runs_without_numba_and_damaged_code_is_made_again(
    tmp_path: Path,
) -> None:
    told = "compiling the table of words, once on this machine; some 10 s ..."
    slots = "[-1, -1, -1, -1, -1, -1, 0, 1]"
    assert placed(tmp_path) == (f"{slots} True", told)
    assert placed(tmp_path) == (f"{slots} False", "")
    (kept,) = tmp_path.glob("index.kernels.tokens.place_all.*")
    content = kept.read_bytes()
    kept.write_bytes(content[:-1])
    assert placed(tmp_path) == (f"{slots} True", told)
    assert unpacked(kept.read_bytes())[0] == unpacked(content)[0]


def test_what_was_begun_is_compiled_by_another_process(tmp_path: Path) -> None:
    answer, told = placed(tmp_path, BEGIN)
    assert (answer, bool(told)) == ("[-1, -1, -1, -1, -1, -1, 0, 1] False", True)
    assert placed(tmp_path, BEGIN)[1] == ""


def test_of_processes_that_need_the_same_only_one_compiles_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as threads:
        answers = [answer for answer, _ in threads.map(placed, [tmp_path] * 3)]
    assert sorted(answer.split()[-1] for answer in answers) == ["False", "False", "True"]


def test_what_is_not_whole_is_not_run() -> None:
    whole = packed("name", b"code")
    assert unpacked(whole) == ("name", b"code")
    for damaged in (whole[:-1], b"", bytes([whole[0] ^ 1]) + whole[1:]):
        with pytest.raises(DamagedError):
            unpacked(damaged)
