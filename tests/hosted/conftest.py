from __future__ import annotations

from pathlib import Path

import pytest

from tmnmt.hosted.connection import KEY_VARIABLE


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, which has no answers yet; nor is there a key."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path / "cache"
