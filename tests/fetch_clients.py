"""Clients of the server that are not installed with the tests' own packages: DeepL's library for
Node, from npm; Okapi's connectors and OmegaT's, for Java, from Maven Central; and from PyPI, each
in an environment of its own, Weblate, and what else asks or describes a server; 220 MB.

    python tests/fetch_clients.py        # into .cache/clients; needs npm and mvn

`package-lock.json`, `sha256sums`, `weblate.txt` and `python.txt` say what each file's hash has to
be."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent / "clients"
FOLDER = HERE.parents[1] / ".cache" / "clients"
NODE, JARS, WEBLATE = FOLDER / "node", FOLDER / "jars", FOLDER / "weblate"
PYTHON = FOLDER / "python"
PINS = "tmnmt-pins"  # what was pinned when a folder was fetched
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def fetch() -> None:
    """All of them are there afterwards."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for to, get, pins in (
        (NODE, _node, "package-lock.json"),
        (JARS, _jars, "sha256sums"),
        (WEBLATE, _weblate, "weblate.txt"),
        (PYTHON, _python, "python.txt"),
    ):
        pinned, fetched = (HERE / pins).read_text(encoding="utf-8"), to / PINS
        if fetched.exists() and fetched.read_text(encoding="utf-8") == pinned:
            continue
        with tempfile.TemporaryDirectory(dir=FOLDER) as name:
            get(new := Path(name) / "new")
            (new / PINS).write_text(pinned, encoding="utf-8")
            if to.exists():  # what was pinned before
                shutil.rmtree(to)
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


def _weblate(new: Path) -> None:
    """Without what only Weblate's other parts import."""
    _environment(new, "weblate.txt")


def _python(new: Path) -> None:
    _environment(new, "python.txt")


def _environment(new: Path, pins: str) -> None:
    _run(sys.executable, "-m", "venv", "--without-pip", str(new))
    pip = sys.executable, "-m", "pip", f"--python={new / 'bin' / 'python'}", "--quiet"
    kinds = "--require-hashes", "--no-deps", "--only-binary=:all:", "--no-compile"
    _run(*pip, "install", *kinds, f"--requirement={HERE / pins}")


def _run(*command: str) -> None:
    if not shutil.which(command[0]):
        raise SystemExit(f"{command[0]} is not found; install it")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stdout.strip()}")


if __name__ == "__main__":
    sys.exit(fetch())
