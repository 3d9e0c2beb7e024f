"""Clients of the server that are no Python packages, for tests: DeepL's library for Node, from npm,
and Okapi's connectors for Java, from Maven Central; 25 MB.

    python tests/fetch_clients.py        # into .cache/clients; needs npm and mvn

`package-lock.json` and `sha256sums` say what each file's hash has to be."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent / "clients"
FOLDER = HERE.parents[1] / ".cache" / "clients"
NODE, JARS = FOLDER / "node", FOLDER / "jars"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def fetch() -> None:
    """All of them are there afterwards."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for to, get in ((NODE, _node), (JARS, _jars)):
        if not to.exists():
            with tempfile.TemporaryDirectory(dir=FOLDER) as name:
                get(new := Path(name) / "new")
                new.rename(to)


def _node(new: Path) -> None:
    new.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, new)
    _run("npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", f"--prefix={new}")


def _jars(new: Path) -> None:
    _run(
        *("mvn", "--quiet", "--batch-mode", f"--file={HERE / 'pom.xml'}", MAVEN_PLUGIN),
        *("-DincludeScope=runtime", f"-DoutputDirectory={new}"),
    )
    lines = (HERE / "sha256sums").read_text(encoding="utf-8").splitlines()
    pinned = {name: total for total, name in (line.split() for line in lines)}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in new.glob("*.jar")}
    if wrong := sorted(name for name in pinned | found if pinned.get(name) != found.get(name)):
        raise SystemExit(f"not the jars that sha256sums pins: {', '.join(wrong)}")


def _run(*command: str) -> None:
    if not shutil.which(command[0]):
        raise SystemExit(f"{command[0]} is not found; install it")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stdout.strip()}")


if __name__ == "__main__":
    sys.exit(fetch())
