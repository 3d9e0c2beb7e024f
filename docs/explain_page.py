"""The picture of the README: a page of `tmnmt translate --explain-html` in a browser.

    python docs/explain_page.py [--picture docs/explain.png]

Needs Chromium. Translates part of the demo's document with the memory and the model that ship. The
lines before it are confirmed as their reference says. Then the pointer is put on a word that came
from the memory. Nothing is drawn by hand.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "memories" / "held-out" / "jrc32002L0085"
FIRST, LAST = 38, 40  # lines of the document that are shown, counted from 1
# The lines that were confirmed before have no translation to be shown.
CONFIRMED = "document.querySelectorAll('article:not(:has(.token))').forEach((one) => one.remove())"
TOKENS = "[...document.querySelectorAll('article')[2].querySelectorAll('.token')]"
WORD = f"{TOKENS}.find((token) => token.textContent == {{word}})"
WIDTH, HEIGHT = 1180, 610  # pixels of the page


def main() -> None:
    """Makes the picture and prints where it lies."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--picture", type=Path, default=ROOT / "docs" / "explain.png")
    options.add_argument("--word", default="nationaux", help="the subword that is pointed at")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = explained(Path(folder))
        chosen.picture.write_bytes(photographed(page, chosen.word))
    print(chosen.picture)


def explained(folder: Path) -> Path:
    """The page, written by the commands that a user gives."""
    sources, references = (lines(Path(f"{DOCUMENT}.{language}.txt")) for language in ("en", "fr"))
    text = folder / "document.txt"
    done = folder / "document.fr.txt"
    text.write_text("\n".join(sources) + "\n", encoding="utf-8")
    done.write_text("\n".join(references[: FIRST - 1]) + "\n", encoding="utf-8")
    memory = ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz"
    page = folder / "page.html"
    tmnmt(
        "build-index", memory, "--index", folder / "index", "--src-lang", "en", "--tgt-lang", "fr"
    )
    written = folder / "translated.txt"
    options = [
        "--model",
        ROOT / "models" / "law-transformer.en-fr",
        "--memory",
        folder / "index",
        "--confirmed",
        done,
    ]
    tmnmt("translate", *options, "--explain-html", page, "--output", written, text)
    return page


def tmnmt(*arguments: str | Path) -> None:
    """Runs a command of this environment; raises CalledProcessError where it fails."""
    subprocess.run([sys.executable, "-m", "tmnmt", *map(str, arguments)], check=True)


def lines(path: Path) -> Sequence[str]:
    """The lines of a file up to the last one that is shown."""
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, LAST)]


def photographed(page: Path, word: str) -> bytes:
    """A PNG of the page while the pointer is on a word."""
    sys.path.append(str(ROOT / "tests"))
    from browser import browsing

    with browsing() as browser:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.5, "mobile": False}
        browser.send("Emulation.setDeviceMetricsOverride", **size)
        browser.open(page.as_uri())
        browser.run(CONFIRMED)
        browser.settle()
        browser.run(f"{WORD.format(word=json.dumps(word))}.id = 'pointed'")
        browser.hover("#pointed")
        browser.settle()
        browser.run("document.documentElement.style.overflow = 'hidden', scrollTo(0, 0)")
        picture = browser.send("Page.captureScreenshot", format="png")["data"]
    return base64.b64decode(picture)


if __name__ == "__main__":
    main()
