"""The modules of the page that know no page, in Node: the machine of a segment, the names of its
keys, and what is looked for in texts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from places import ROOT
from required import absent

HERE = Path(__file__).parent
SCRIPTS = (
    "segments.test.js",
    "sync.test.js",
    "pattern.test.js",
    "reading.test.js",
    "filter.test.js",
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_module_does_what_its_tests_say(script: str) -> None:
    node = shutil.which("node")
    if node is None:
        absent("node", "no Node is installed: apt-get install -y --no-install-recommends nodejs")
    scripts = ROOT / "tmnmt" / "serve" / "static"
    done = subprocess.run(
        [node, "--test", str(HERE / script)],
        env=os.environ | {"TMNMT_PAGE": str(scripts)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout
