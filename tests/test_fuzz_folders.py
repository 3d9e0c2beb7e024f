"""Some hundred rounds of `fuzz_folders.py`, which changes index and model folders on purpose; thousands run by hand."""

from __future__ import annotations

import json

from fuzz_folders import CHANGES, fuzz


def test_a_changed_folder_works_or_is_refused_in_one_line() -> None:
    found = fuzz(300, 18)
    assert not found["failed"], json.dumps(found["failed"], indent=1)
    assert sum(found["counts"].values()) == 300
    for name in CHANGES:
        assert found["counts"].get(f"{name}: refused"), f"{name}: nothing was refused"
    assert sum(count for name, count in found["counts"].items() if name.endswith("fine")) > 10
