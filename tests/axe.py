"""axe-core, which looks at a page for what people with other senses cannot use. It is fetched once
from npm into .cache, in one version; its licence is MPL-2.0, and nothing of it ships."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from browser import Browser
from places import ROOT
from required import absent

VERSION = "4.14.1"
SHA256 = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"  # of the package
PACKAGE = ROOT / ".cache" / "axe-core" / f"axe-core-{VERSION}.tgz"


def axe() -> str:
    """Its script; where it cannot be had, the test ends as `required.py` says."""
    if not PACKAGE.exists():
        _fetch()
    found = hashlib.sha256(PACKAGE.read_bytes()).hexdigest()
    assert found == SHA256, f"{PACKAGE} is another package: {found}"
    with tarfile.open(PACKAGE) as packed:
        member = packed.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


def violations(browser: Browser, script: str) -> list[str]:
    """What axe finds wrong with the page as it stands: rule and place."""
    browser.run(f"{script}\n0")
    found: list[dict[str, Any]] = browser.run(
        "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"
    )
    return [
        f"{one['id']}: {json.dumps(node['target'])} {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]


def _fetch() -> None:
    npm = shutil.which("npm")
    if npm is None:
        absent("axe", "npm, which fetches it, is not installed")
    PACKAGE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PACKAGE.parent) as new:
        command = [npm, "pack", "--silent", f"axe-core@{VERSION}", "--pack-destination", new]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            absent("axe", f"npm could not fetch it: {done.stderr.strip()[-200:]}")
        (Path(new) / PACKAGE.name).replace(PACKAGE)  # whole or not at all
