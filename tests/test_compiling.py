"""The notice that something is compiled comes when numba compiles it, and at no other time."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

import numba
import pytest

from tmnmt.index.kernels import compiling
from tmnmt.index.kernels.compiling import announced, compiled


def _twice(number: int) -> int:
    return 2 * number


def test_what_lies_in_the_cache_on_disk_is_not_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    caplog.set_level(logging.INFO, "tmnmt")
    told = []
    for _ in range(2):
        monkeypatch.setattr(compiling, "_used", set())  # as in a new process
        caplog.clear()
        function = compiled(_twice)
        for number in (1, cast(int, 1.0)):  # two signatures, one notice
            with announced("doubling"):
                assert function(number) == 2
        told.append(caplog.messages)
    assert told == [["compiling the doubling, once on this machine; some 20 s ..."], []]
