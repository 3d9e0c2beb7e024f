"""What becomes of texts that a person types on the page while the server is slow: a course of work
that is typed into a browser, and where everything is afterwards.

    PYTHONPATH=. .venv/bin/python tests/typed_texts.py    # the table, for both browsers

The course presses twice, types on while a segment is confirmed, holds keys, presses Tab too often,
inserts from the concordance, is refused, saves with drafts, and opens the page again."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from browser import Browser
from firefox import Firefox
from serving import Server
from slow_line import Line

NAMES = ("Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas")
LINES = len(NAMES)
REPEATS = 30  # of a key that is held for a second
TABS = 40
PAUSE = 150  # milliseconds
REASON = "this was refused"
LATENCIES = (0.0, 0.3, 2.0)  # seconds
_AT = "document.querySelector('.active .number')?.textContent"
_IDLE = 10  # seconds that a course waits for what may never come


@dataclass
class Found:
    """`lost`: texts that are nowhere. `misplaced`: that are not whole in the segment in which they
    were typed. `doubled`: pairs that were posted twice. `unasked`: segments that were confirmed
    without a press of their own. `silent`: refusals whose reason was gone."""

    lost: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(map(len, vars(self).values()))


class Course:
    """One document, from its opening to the page that is opened again."""

    def __init__(self, page: Browser | Firefox, server: Server, line: Line, folder: Path) -> None:
        self.page, self.server, self.line, self.folder = page, server, line, folder
        self.typed: list[tuple[str, int]] = []  # each with its segment
        self.pressed = set[int]()
        self.found = Found()

    def run(self, seconds: float) -> Found:
        """seconds: of latency, once the document is open."""
        self.line.seconds = 0.0
        self.line.confirmations.clear()
        self._open()
        self.line.seconds = seconds
        self._press_twice()
        self._type_on()
        self._hold()
        self._press_tab()
        self._insert()
        self._be_refused()
        self._save()
        self.line.seconds = 0.0
        self._look("before")
        self._open_again()
        self._look("again")
        return self.found

    # --- the course

    def _press_twice(self) -> None:
        self._at_new()
        self._type("Un.")
        self._confirm()
        self.page.press("Enter", "Control")
        self._until(f"{_AT} !== '1'")

    def _type_on(self) -> None:
        self._at_new()
        self._type("Deux.")
        self._confirm()
        self._type(" Et plus.")
        self._until("!document.querySelector('[aria-busy=true]')")
        self._quiet()

    def _hold(self) -> None:
        self._next()
        self._at_new()
        self._type("Trois.")
        self.pressed.add(self._at())
        self.page.hold("Enter", "Control", times=REPEATS)
        self._quiet()

    def _press_tab(self) -> None:
        self._next()
        self._at_new()
        self._until("document.querySelector('#offer .word')")
        for _ in range(TABS):
            self.page.press("Tab")
        self._type(" Quatre.")
        self._quiet()

    def _insert(self) -> None:
        self._next()
        self._at_new()
        self.page.press("k", "Control")
        self.page.type("enter into force")
        self.page.press("Enter")
        self._until("document.querySelector('#found button')")
        text = str(self.page.run("document.querySelector('#found .tgt')?.textContent ?? ''"))
        at = self._at()
        self.page.run("document.querySelector('#found button')?.click()")
        self._quiet()
        self.typed.append((text, at))

    def _be_refused(self) -> None:
        self._next()
        self._at_new()
        self._type("Six.")
        self.line.refusals.append((400, {"error": {"code": "bad", "message": REASON}}))
        self.page.press("Enter", "Control")
        self._until("document.getElementById('problem').textContent")
        self._quiet()
        told = self.page.run("document.getElementById('problem').textContent")
        if REASON not in str(told):
            self.found.silent.append(f"{told!r}")
        self.line.refusals.clear()

    def _save(self) -> None:
        self._next()
        self._at_new()
        self._type("Brouillon.")
        self._quiet()
        self.page.press("s", "Control")
        file = self.folder / "text.fr.txt"
        end = time.monotonic() + _IDLE
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        self._quiet()
        written = file.read_text(encoding="utf-8").split("\n\n") if file.exists() else []
        for text in ("Un.", "Deux.", "Trois."):  # what was confirmed, each in its place
            at = dict(self.typed)[text]
            if written[at - 1 : at] != [text]:
                self.found.lost.append(f"file: {text!r} of {at}")

    # --- what is done there

    def _open(self) -> None:
        self.page.open(self.server.url + "/")
        self._until("document.getElementById('pair').options.length")
        self.page.save_to(self.folder)
        text = "\n\n".join(map(_source, range(1, LINES + 1)))
        self.page.run(f"document.getElementById('pasted').value = {json.dumps(text)}")
        self.page.run("document.getElementById('go').click()")
        self._until(f"{_AT} === '1' && document.querySelector('#offer .word')")
        href = str(self.page.run("document.getElementById('review').href"))
        self.session = href.partition("#")[2]

    def _open_again(self) -> None:
        self.page.open(str(self.page.run("location.href")))
        self._until(_AT)
        self._quiet()

    def _type(self, text: str) -> None:
        before = self._at()
        self.page.type(text)
        after = self._at()  # the page may have gone on between
        is_there = text in str(self.page.run("document.getElementById('target').value"))
        self.typed.append((text, after if is_there else before))

    def _confirm(self) -> None:
        self.pressed.add(self._at())
        self.page.press("Enter", "Control")

    def _next(self) -> None:
        """Away from a segment in which something was left."""
        if self.page.run("document.getElementById('target').value"):
            self.page.press("ArrowDown", "Alt")

    def _at_new(self) -> None:
        """Until an empty field of a segment has the focus, as a person sees before typing."""
        self.page.run("document.querySelector('dialog[open]')?.close()")
        empty = "document.getElementById('target').value === ''"
        for _ in range(LINES):
            self._quiet()
            if self.page.run(empty):
                break
            self.page.press("ArrowDown", "Alt")
        self.page.run("document.getElementById('target').focus()")

    def _at(self) -> int:
        return int(self.page.run(f"{_AT} ?? 0"))

    def _until(self, condition: str) -> None:
        """Until that is so, or for long enough: what never comes is counted at the end."""
        self.page.run(
            f"new Promise((done) => {{ const end = Date.now() + {1000 * _IDLE};"
            f" const look = () => (({condition}) || Date.now() > end) ? done(0)"
            " : setTimeout(look, 20); look(); })"
        )

    def _quiet(self) -> None:
        """Until no request is under way for a while, but for suggestions."""
        pause = f"new Promise((done) => setTimeout(done, {PAUSE}))"
        self.page.run(pause)
        while self.line.waiting:
            while self.line.waiting:
                time.sleep(0.01)
            self.page.run(pause)

    # --- where everything is

    def _look(self, when: str) -> None:
        texts = self._texts()
        for text, at in self.typed:
            if at and text in texts[at - 1]:
                continue
            where = [n for n, one in enumerate(texts, 1) if text in one]
            told = f"{when}: {text!r} of {at}"
            (self.found.misplaced if where else self.found.lost).append(told)
        if when != "before":
            return
        sent = [(one["path"], one["text"]) for one in self.line.confirmations]
        self.found.doubled += [str(one) for one in sorted(set(sent)) if sent.count(one) > 1]
        asked = set(map(_source, self.pressed))
        pairs = self.server.get(f"/v1/sessions/{self.session}/confirmed")["pairs"]
        self.found.unasked += [one["src"] for one in pairs if one["src"] not in asked]

    def _texts(self) -> list[str]:
        """Of every segment what the list has, and of that at work its field, too."""
        rows = "[...document.querySelectorAll('.row')]"
        one = (
            "row.querySelector('.target').textContent + "
            "(row.querySelector('textarea') ? '\\n' + row.querySelector('textarea').value : '')"
        )
        found: list[str] = self.page.run(f"{rows}.map((row) => {one})")
        return found or [""] * LINES


def _source(number: int) -> str:
    """Of that segment; what is typed for it has nothing that the checks would find."""
    return f"{NAMES[number - 1]}'s is void."


def main() -> None:
    """Prints the table."""
    from browser import browsing as chromium
    from firefox import browsing as firefox
    from serving import tiny_server
    from tiny_model import segments, write_tiny_model

    from tmnmt.index import build

    folder = Path(tempfile.mkdtemp())
    write_tiny_model(folder / "model")
    build(folder / "law", segments(), "en", "fr")
    print("| browser | latency s | " + " | ".join(vars(Found())) + " |")
    for name, browsing in (("Chromium", chromium), ("Firefox", firefox)):
        for seconds in LATENCIES:
            line = Line()
            served = tiny_server(folder, ("law=law",), between=line.between)
            with served as server, browsing() as page, tempfile.TemporaryDirectory() as to:
                found = Course(page, server, line, Path(to)).run(seconds)
            counts = " | ".join(str(len(one)) for one in vars(found).values())
            print(f"| {name} | {seconds:g} | {counts} |", flush=True)
            with suppress(BrokenPipeError):
                print(json.dumps(vars(found), ensure_ascii=False), file=sys.stderr)


if __name__ == "__main__":
    main()
