"""Tests that are skipped say why, and fail where what they need is required; a failed one says what
it drew from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT, TESTS
from required import KINDS, NAME, absent, required


def test_what_is_absent_skips_a_test_or_fails_it_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium is installed"):
        absent("browser", "no Chromium is installed")
    monkeypatch.setenv(NAME, "elasticsearch, browser")
    with pytest.raises(
        pytest.fail.Exception, match="names browser, and it is not there: no Chromium is installed"
    ):
        absent("browser", "no Chromium is installed")
    with pytest.raises(pytest.skip.Exception):
        absent("disk", "not root")


def test_the_check_of_all_lets_no_test_of_what_it_installs_be_skipped() -> None:
    """What tests may want and the whole check installs, it also requires."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (wanted,) = re.findall(r"TMNMT_REQUIRE-([\w,]+)}", script)
    assert (
        {"elasticsearch", "browser", "firefox", "node", "gettext", "okapi", "axe", "redis"}
        <= set(wanted.split(","))
        <= {*KINDS}
    )


def test_what_no_test_needs_cannot_be_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "elasticsearch,chrome")
    with pytest.raises(
        pytest.UsageError,
        match="no test needs chrome; allowed: elasticsearch, opensearch, browser, firefox, node",
    ):
        required()


def _pytest(folder: Path, test: str, **environment: str) -> str:
    """What pytest says of a test with this project's conftest."""
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
    ]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COVERAGE_", "PYTEST_"))
    }
    path = os.pathsep.join([str(TESTS), *sys.path[1:]])
    return subprocess.run(
        [*command, "--rootdir", str(folder), "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**kept, "PYTHONPATH": path, **environment},
    ).stdout


def test_a_test_that_fails_tells_its_seed_and_draws_the_same_with_it(tmp_path: Path) -> None:
    failing = "import random\n\ndef test_it():\n    assert random.random() < 0, 'drawn'\n"
    first = _pytest(tmp_path, failing)
    seed = first.partition("TMNMT_SEED=")[2].split()[0]
    drawn = [line for line in first.splitlines() if "assert 0." in line]
    again, other = (_pytest(tmp_path, failing, TMNMT_SEED=one) for one in (seed, f"{seed}1"))
    assert drawn and all(line in again for line in drawn)
    assert not any(line in other for line in drawn)
    assert "TMNMT_SEED" not in _pytest(tmp_path, failing.replace("< 0", "< 2"))
