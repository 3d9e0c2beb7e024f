"""2,000 damaged files of every kind: each is read with counts, or refused in one line; see
`fuzz_files`."""

from __future__ import annotations

from fuzz_files import Failure, failures

SEED = 18


def test_damaged_files_are_read_or_refused_in_one_line() -> None:
    found: list[Failure] = list(failures(SEED, 0, 2000))
    assert not found, f"seed {SEED}: " + "; ".join(map(str, found))
