"""The picture of docs/page.md: the page of `tmnmt serve` at work, in a browser.

    python docs/desk_page.py [--picture docs/desk.png]

Needs Chromium. A server of the model and a memory that ship is started, and part of the demo's
document is pasted. The lines before the one that is shown are confirmed as their reference says.
Then a few words are typed, and the pointer is put on a word. Nothing is drawn by hand.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "memories" / "held-out" / "jrc32002L0085"
FIRST, SHOWN, LAST = 17, 21, 31  # lines of the document, counted from 1
WIDTH, HEIGHT = 1240, 770  # pixels of the page
TAKEN = 3  # words that are taken by Tab
AT_WORK = (
    "document.querySelector('.active .number')?.textContent === '{}' && "
    "document.querySelector('#offer .word')"
)


def main() -> None:
    """Makes the picture and prints where it lies."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--picture", type=Path, default=ROOT / "docs" / "desk.png")
    options.add_argument("--word", default=".word.memory", help="as CSS selects it")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address:
        chosen.picture.write_bytes(photographed(address, chosen.word))
    print(chosen.picture)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server, started by the commands that a user gives."""
    memory = ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz"
    index = folder / "jrc-acquis"
    command = [sys.executable, "-m", "tmnmt"]
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    subprocess.run([*command, "build-index", memory, "--index", index, *languages], check=True)
    model = ROOT / "models" / "law-transformer.en-fr"
    started = subprocess.Popen(
        [*command, "serve", "--model", model, "--memory", index, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in started.stderr or ():
            if line.startswith("serving at "):
                yield line.removeprefix("serving at ").strip()
                return
        raise RuntimeError("the server did not start")
    finally:
        started.terminate()
        started.wait()


def lines(language: str) -> Sequence[str]:
    """Those of the document that are pasted."""
    with Path(f"{DOCUMENT}.{language}.txt").open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, FIRST - 1, LAST)]


def photographed(address: str, word: str) -> bytes:
    """A PNG of the page while the pointer is on a word."""
    sys.path.append(str(ROOT / "tests"))
    from browser import browsing

    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.5, "mobile": False}
    with browsing() as browser:
        browser.send("Emulation.setDeviceMetricsOverride", **size)
        browser.open(address + "/")
        browser.until("document.getElementById('pair').options.length")
        text = json.dumps("\n".join(lines("en")))
        browser.run(f"document.getElementById('pasted').value = {text}")
        browser.run("document.getElementById('go').click()")
        for number, reference in enumerate(lines("fr")[: SHOWN - FIRST], 1):
            browser.until(AT_WORK.format(number))
            browser.type(reference)
            browser.press("Enter", "Control")
        browser.until(AT_WORK.format(SHOWN - FIRST + 1))
        for _ in range(TAKEN):
            browser.press("Tab")
        browser.run(f"(document.querySelector({json.dumps('#offer ' + word)})).id = 'pointed'")
        browser.settle()  # what is scrolled stands
        browser.hover("#pointed")
        browser.settle()
        browser.run("document.documentElement.style.overflow = 'hidden'")
        picture = browser.send("Page.captureScreenshot", format="png")["data"]
    return base64.b64decode(picture)


if __name__ == "__main__":
    main()
