"""The jars of Okapi by which tmnmt reads DOCX, XLSX, PPTX, EPUB and IDML: fetched once from Maven
Central.

    python okapi/fetch.py [FOLDER]       # .cache/okapi by default; needs mvn, and javac of a JDK
    export TMNMT_OKAPI=FOLDER            # where tmnmt looks for them

`pom.xml` names the version. A jar whose SHA-256 is not in `sha256sums` is refused. `Office.java`
runs the filters; it is compiled here, so a Java without a compiler is enough later on."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / ".cache" / "okapi"
SUMS = HERE / "sha256sums"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
LEAST_JAVA = "11"  # of Okapi 1.47


class Trouble(Exception):
    """What is missing or went wrong, in one line."""


def fetch(folder: Path) -> None:
    """All jars and the compiled class are in the folder afterwards, and nothing else; or it is as
    it was."""
    for program, where in (("mvn", "Maven"), ("javac", f"a JDK, {LEAST_JAVA} or newer")):
        if not shutil.which(program):
            raise Trouble(f"{program} is not found; install {where}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        new = Path(name) / "jars"
        project, into = f"--file={HERE / 'pom.xml'}", f"-DoutputDirectory={new}"
        maven = "mvn", "--quiet", "--batch-mode"
        _run(*maven, project, MAVEN_PLUGIN, "-DincludeScope=runtime", into)
        check(new)
        java = "javac", "--release", LEAST_JAVA
        _run(*java, "-cp", f"{new}/*", "-d", str(new), str(HERE / "Office.java"))
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def check(folder: Path) -> None:
    """Raises Trouble where the jars of a folder are not those that are pinned."""
    lines = SUMS.read_text(encoding="utf-8").splitlines()
    pinned = {name: total for total, name in (line.split() for line in lines)}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")
    }
    if wrong := sorted(name for name in pinned | found if pinned.get(name) != found.get(name)):
        raise Trouble(
            f"not the jars that {SUMS.name} pins: {', '.join(wrong)}; nothing is installed"
        )


def is_current(folder: Path) -> bool:
    """Whether the folder holds these jars, and the class as its source is now."""
    made = folder / "Office.class"
    if not made.exists() or made.stat().st_mtime < (HERE / "Office.java").stat().st_mtime:
        return False
    try:
        check(folder)
    except Trouble:
        return False
    return True


def _run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Trouble(f"{' '.join(command)} failed: {done.stdout.strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder = parser.parse_args().folder.absolute()
    try:
        if not is_current(folder):
            fetch(folder)
    except Trouble as trouble:
        sys.exit(f"fetch.py: {trouble}")
    print(f"export TMNMT_OKAPI={folder}")


if __name__ == "__main__":
    main()
