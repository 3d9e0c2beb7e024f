"""The machine of a segment on the page, and the names of its keys, without a page: in Node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from places import ROOT
from required import absent


def test_the_machine_of_a_segment_loses_nothing() -> None:
    node = shutil.which("node")
    if node is None:
        absent("node", "no Node is installed: apt-get install -y --no-install-recommends nodejs")
    scripts = ROOT / "tmnmt" / "serve" / "static"
    done = subprocess.run(
        [node, "--test", str(Path(__file__).with_name("segments.test.js"))],
        env=os.environ | {"TMNMT_PAGE": str(scripts)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout
