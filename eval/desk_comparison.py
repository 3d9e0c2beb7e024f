"""How many keys the same document takes on the desk, in OmegaT, in Weblate and in MateCat.

    mvn -f eval/omegat/pom.xml -DincludeScope=runtime -DoutputDirectory=JARS \\
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies
    python eval/desk_comparison.py --jars JARS --weblate .cache/clients/weblate/bin/python \\
        [--seed N] [--segments 30] [--output FILE.json]

A document of the kept-out law is drawn by the seed, and of it so many segments that follow one
another, without repetitions. A translator arrives at the reference of each, then confirms it. All
tools have the memory of Canadian law that ships, learn what is confirmed, and have the machine
translation of one model. In each, the translator takes the way that needs fewest keys:

- nothing, a match or the machine translation is taken, and edited. Each letter that is typed is a
  key, and so is each step over a letter or a word and each letter or word that is deleted; all
  behind the caret is deleted by two. Editing begins at whichever end is better, for nothing. With
  clicks, the caret gets to any place by one.
- OmegaT also completes words from what was confirmed, and predicts the next word.
- on the desk, letters are typed, words of the suggestion taken and deleted, as the page allows it.

OmegaT's own classes find its matches, ask for the machine translation and complete words. Weblate's
own class says what its matches are worth; the search of its database, which finds at most 50 first,
is left out. MateCat is as its documents have it: three suggestions, of which the best stands there,
and 85 for the machine translation. Its matches are those of tmnmt.

The desk is driven in Chromium by keys. A way by typing is planned with the answers that the page
gets, and pressed key by key; where the page does not offer what was planned, letters are typed in
its place, and counted. Where it is better to take a text and to edit it, the page takes the text
and confirms the edited one; the keys between are counted as in the other tools."""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import html
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex
from tmnmt.progress import Progress
from tmnmt.segments import Segment

if TYPE_CHECKING:
    from browser import Browser

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "eval" / "omegat"
MEMORY = ROOT / "memories" / "canadian-law.en-fr.tmx.gz"
TEST = ROOT / "memories" / "held-out" / "law.test.en-fr.tsv.gz"
WORD = re.compile(r"\s*\S+")
LETTERS = re.compile(r"[^\W_]+")
BIG = 10**6
NUMBERED = 10  # suggestions that Weblate numbers
OF_MATECAT, MACHINE = 3, 85  # its suggestions; what a machine translation counts for
DESK = "the desk"
LEAST = 0.5  # value of a match of tmnmt
SECONDS = 30  # that the page may take for what was planned
Numbers = npt.NDArray[np.int64]


class Start(NamedTuple):
    """A text that editing begins with, and the keys by which it is there."""

    text: str
    keys: int


class Jump(NamedTuple):
    """A part of the reference that is typed by other means than letter by letter."""

    start: int
    end: int
    keys: int


@dataclass
class Way:
    """What a segment takes in one tool: keys, and keys and clicks."""

    keys: int
    with_clicks: int
    by: str


# --- editing


def edited(start: str, reference: str, jumps: Sequence[Jump] = (), clicks: bool = False) -> int:
    """Keys that make a text the reference, from whichever end takes fewer."""
    table = np.array([*jumps] or np.empty((0, 3)), dtype=np.int64).reshape(-1, 3)
    forth = _edited(*_coded(start, reference), table, clicks)
    if jumps:  # words are completed as they are typed
        return int(forth)
    return int(min(forth, _edited(*_coded(start[::-1], reference[::-1]), table, clicks)))


def _coded(start: str, reference: str) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Both texts, and where the next word ends and begins behind each place of the first one."""
    ends, begins = (np.full(len(start) + 1, len(start), dtype=np.int64) for _ in range(2))
    for place in range(len(start)):
        if found := re.compile(r"\W*\w+|\W+").match(start, place):
            ends[place] = found.end()
        if found := re.compile(r"\w*\W*").match(start, place):
            begins[place] = max(found.end(), place + 1)
    texts = (np.array([*map(ord, text)], dtype=np.int64) for text in (start, reference))
    first, second = texts
    return first, second, ends, begins


@numba.njit(cache=True)
def _edited(
    text: Numbers,
    reference: Numbers,
    ends: Numbers,
    begins: Numbers,
    jumps: Numbers,
    clicks: bool,
) -> int:
    """Fewest keys: `keys[i, j]` to stand before letter i of the text, with j letters of the
    reference behind the caret."""
    n, m = len(text), len(reference)
    same = np.zeros((n + 1, m + 1), dtype=np.int64)  # letters that agree from here on
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            same[i, j] = same[i + 1, j + 1] + 1 if text[i] == reference[j] else 0
    keys = np.full((n + 1, m + 1), BIG, dtype=np.int64)
    pointed = np.full((n + 1, m + 1), BIG, dtype=np.int64)  # a click leads to here or further
    keys[0, 0], least = 0, BIG
    for i in range(n + 1):
        for j in range(m + 1):
            typed = keys[i, j]
            here = min(typed, pointed[i, j])
            keys[i, j] = here
            if here >= BIG:
                continue
            if same[i, j] == n - i == m - j:
                least = min(least, here)
            if j < m:
                keys[i, j + 1] = min(keys[i, j + 1], here + 1)
            for number in range(len(jumps)):
                if jumps[number, 0] == j:
                    end = jumps[number, 1]
                    keys[i, end] = min(keys[i, end], here + jumps[number, 2])
            if i == n:
                continue
            keys[n, j] = min(keys[n, j], here + 2)
            for end in (i + 1, ends[i], begins[i]):
                keys[end, j] = min(keys[end, j], here + 1)
                if end - i <= same[i, j]:
                    keys[end, j + end - i] = min(keys[end, j + end - i], here + 1)
            if clicks and same[i, j]:
                going = min(typed + 1, pointed[i, j])
                pointed[i + 1, j + 1] = min(pointed[i + 1, j + 1], going)
    return least


def best(
    starts: Mapping[str, Start], reference: str, jumps: Sequence[Jump] = (), last: int = 1
) -> Way:
    """The way of fewest keys from one of the texts; `last`: keys that confirm it."""
    keys, clicks, ways = BIG, BIG, list[tuple[int, str]]()
    for name, (text, first) in starts.items():
        one = first + edited(text, reference, jumps) + last
        ways.append((one, name))
        keys = min(keys, one)
        clicks = min(clicks, first + edited(text, reference, jumps, clicks=True) + last)
    return Way(keys, min(keys, clicks), min(ways)[1])


# --- the other tools


def omegat(told: Mapping[str, Any]) -> dict[str, Start]:
    """The best match stands there from the beginning, as its settings allow it; a text that is put
    in place of what is there takes one key, and one more where it has to be selected."""
    starts = {"nothing": Start("", 0), "machine": Start(told["machine"], 1)}
    for number, match in enumerate(told["matches"]):
        starts[f"match {number + 1}"] = Start(match["tgt"], 2 if number else 0)
    return starts


def completions(told: Mapping[str, Any], reference: str) -> list[Jump]:
    """Words that OmegaT's popup has while they are typed: letters, arrows down, Enter."""
    jumps, before = list[Jump](), ""
    for found in LETTERS.finditer(reference):
        word = found[0]
        for begun, words in told["completed"].items():
            if word.startswith(begun) and word in words:
                keys = len(begun) + words.index(word) + 1
                jumps.append(Jump(found.start(), found.end(), keys))
        if word in told["predicted"].get(before, ()):
            keys = told["predicted"][before].index(word) + 1
            jumps.append(Jump(found.start(), found.end(), keys))
        before = word
    return jumps


def weblate(matches: Sequence[tuple[int, str]], machine: str) -> dict[str, Start]:
    """A suggestion by its number: Ctrl+M, then the digit."""
    ranked = sorted([*matches, (100, machine)], reverse=True)[:NUMBERED]
    starts = {f"suggestion {number}": Start(text, 2) for number, (_, text) in enumerate(ranked, 1)}
    return {"nothing": Start("", 0), "machine": Start(machine, 2), **starts}


def matecat(matches: Sequence[tuple[float, str]], machine: str) -> dict[str, Start]:
    """The best suggestion stands there; others by Ctrl and a digit."""
    ranked = sorted([*matches, (MACHINE, machine)], reverse=True)[:OF_MATECAT]
    starts = {f"suggestion {n}": Start(text, int(n > 1)) for n, (_, text) in enumerate(ranked, 1)}
    return {"nothing": Start("", 1), **starts}


def of_omegat(
    jars: Path, memory: Path, segments: Sequence[Segment], url: str, folder: Path
) -> list[dict[str, Any]]:
    """What OmegaT has for each segment."""
    given = folder / "segments.json"
    given.write_text(json.dumps([{"src": one.src, "tgt": one.tgt} for one in segments]))
    (project := folder / "project").mkdir()
    java = [
        "java",
        "-Djava.awt.headless=true",
        "-Dfile.encoding=UTF-8",
        "-cp",
        f"{jars}/*",
        str(HERE / "OmegaTDesk.java"),
    ]
    places = [str(project), str(memory), str(given), url]
    done = subprocess.run([*java, *places], capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise SystemExit(f"OmegaT failed: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


OF_WEBLATE = """
import json, sys
from weblate.utils.similarity import Comparer
least, compare = 10, Comparer().similarity
memory, segments = json.load(sys.stdin)
for source, target in segments:
    worth = [(compare(source, one), translation) for one, translation in memory]
    print(json.dumps(sorted(({*map(tuple, worth)}), reverse=True)[:10]))
    memory.append([source, target])
"""


def of_weblate(
    python: Path, memory: Sequence[Segment], segments: Sequence[Segment]
) -> list[list[tuple[int, str]]]:
    """What Weblate's own class says of the matches of each segment, the best ones."""
    given = json.dumps([[[one.src, one.tgt] for one in some] for some in (memory, segments)])
    command = [str(python), "-c", OF_WEBLATE]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise SystemExit(f"Weblate failed: {done.stderr[-2000:]}")
    return [[(n, text) for n, text in json.loads(line)] for line in done.stdout.splitlines()]


def of_memory(index: MemoryIndex, segments: Sequence[Segment]) -> list[list[tuple[float, str]]]:
    """The matches of tmnmt, of the memory and of what was confirmed before."""
    from rapidfuzz.distance import Levenshtein

    found, before = list[list[tuple[float, str]]](), list[Segment]()
    matches = index.search([segment.src for segment in segments], 5, LEAST)
    for segment, some in zip(segments, matches, strict=True):
        hits = [(100 * match.score, match.segment.tgt) for match in some]
        for one in before:
            likeness = Levenshtein.normalized_similarity(one.src.split(), segment.src.split())
            hits.append((100 * likeness, one.tgt))
        found.append(sorted((hit for hit in hits if hit[0] >= 100 * LEAST), reverse=True)[:5])
        before.append(segment)
    return found


# --- the desk


@dataclass
class Desk:
    """The page of a server, with the document."""

    browser: Browser
    url: str
    pressed: int = 0
    deviations: int = 0  # plans that the page did not offer
    taken: list[Way] = dataclasses.field(default_factory=list)  # without completion

    def open(self, sources: Sequence[str]) -> None:
        self.browser.open(self.url + "/")
        self.browser.until("document.getElementById('pair').options.length")
        self.run("document.getElementById('sentences').checked = false")
        self.run("document.getElementById('write').value = ''")
        self.run(f"document.getElementById('pasted').value = {json.dumps(chr(10).join(sources))}")
        self.run("document.getElementById('go').click()")

    def run(self, script: str) -> Any:
        return self.browser.run(script)

    def press(self, key: str, *held: str) -> None:
        self.browser.press(key, *held)
        self.pressed += 1

    def type(self, text: str) -> None:
        self.browser.type(text)
        self.pressed += len(text)

    @property
    def session(self) -> str:
        return str(self.run("document.getElementById('review').href")).partition("#")[2]

    def field(self) -> str:
        return str(self.run("document.getElementById('target').value"))

    def complete(self, source: str) -> Callable[[str], str]:
        """What the page is answered for a text that was typed."""
        session = self.session

        def ask(prefix: str) -> str:
            body = {"text": html.escape(source, quote=False), "format": "xml", "prefix": prefix}
            return html.unescape(
                _post(f"{self.url}/v1/complete", body | {"session": session})["text"]
            )

        return ask

    def translate(self, number: int, segment: Segment) -> Way:
        """Works on a segment until it is confirmed."""
        at = f"document.querySelector('.active .number')?.textContent === '{number}'"
        self.browser.until(f"{at} && document.querySelector('#offer .word')")
        self.browser.settle()
        offer = str(self.run("document.getElementById('offer').textContent"))
        matches = list(
            self.run("[...document.querySelectorAll('.match .read')].map((one) => one.textContent)")
        )
        starts = {"the suggestion": Start(offer, 1)}
        starts |= {f"match {n}": Start(text, 1) for n, text in enumerate(matches[:5], 1)}
        taken = best(starts, segment.tgt)
        plan = planned(self.complete(segment.src), offer, segment.tgt)
        self.taken.append(taken)
        is_typed = plan_keys(plan) <= taken.keys
        self.pressed = 0
        if is_typed:
            for step in plan:
                self.do(*step)
        else:
            self.take(taken, segment.tgt)
        if plan and self.field() != segment.tgt:
            raise SystemExit(f"segment {number}: the page has {self.field()!r}")
        done = f"document.getElementById('count').textContent.startsWith('{number} of')"
        idle = "document.getElementById('confirm').ariaDisabled !== 'true'"
        presses = 0
        while not presses or not self.run(done):  # once more, where the checks have found something
            self.press("Enter", "Control")
            presses += 1
            self.browser.until(f"{done} || {idle}")
        clicks = taken.with_clicks + presses - 1
        by = "typed" if is_typed else taken.by
        return Way(self.pressed, min(self.pressed, clicks), by)

    def take(self, way: Way, reference: str) -> None:
        """Takes a text; what edits it is counted, and the edited text put in its place."""
        if way.by == "the suggestion":
            self.press("Enter", "Alt")
        else:
            self.press(way.by.removeprefix("match "), "Control")
        if self.field() != reference:
            field, told = "document.getElementById('target')", "new InputEvent('input')"
            self.run(f"{field}.value = {json.dumps(reference)}; {field}.dispatchEvent({told})")
            self.pressed = way.keys - 1  # all but the key that confirms

    def do(self, kind: str, text: str) -> None:
        """One step of a plan, by as many keys as it takes."""
        if kind == "type":
            self.type(text)
        elif kind == "delete":
            for _ in text:
                self.press("Backspace")
        elif self.offers(text, whole=kind == "all"):
            if kind == "all":
                self.press("Enter", "Alt")
            else:
                for keys in chords(len(WORD.findall(text))):
                    self.press(*keys)
        else:
            self.deviations += 1
            self.type(text)

    def offers(self, text: str, whole: bool) -> bool:
        """Whether what is to be taken comes to stand in grey."""
        rest = "document.querySelector('#ghost .rest').textContent.replace('\\u200b', '')"
        wanted = json.dumps(text)
        there = f"{rest} === {wanted}" if whole else f"({rest} + ' ').startsWith({wanted} + ' ')"
        waiting = (
            f"new Promise((done) => {{ const end = Date.now() + {1000 * SECONDS};"
            f" const look = () => ({there}) ? done(true) : Date.now() > end ? done(false)"
            " : setTimeout(look, 20); look(); })"
        )
        return bool(self.run(waiting))


def chords(words: int) -> Iterator[tuple[str, ...]]:
    """The keys that take so many words of the suggestion."""
    while words > 1:
        yield str(min(words, 9)), "Alt"
        words -= min(words, 9)
    if words:
        yield ("Tab",)


def plan_keys(plan: Sequence[tuple[str, str]]) -> int:
    """How many keys a plan takes, with the one that confirms."""
    count = 1
    for kind, text in plan:
        words = len(WORD.findall(text))
        count += {"all": 1, "take": len([*chords(words)])}.get(kind, len(text))
    return count


def planned(
    complete: Callable[[str], str], suggestion: str, reference: str
) -> list[tuple[str, str]]:
    """How somebody types a reference: steps ("type", letters), ("take", words), ("all", the rest)
    and ("delete", letters of the end). None where the suggestion is confirmed as it stands."""
    steps, done = list[tuple[str, str]](), ""
    if suggestion == reference:
        return []
    while done != reference:
        left, rest = reference[len(done) :], _behind(suggestion, done)
        if rest == left:
            steps.append(("all", left))
            break
        if taken := _agreed(rest, left):
            steps.append(("take", taken))
            done += taken
            continue
        word, offered = _word(left), _word(rest)
        typed, following = _typed(complete, done, word)
        pairs = zip(word, offered, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        mended = 1 + len(offered) - common + len(word) - common
        if common and mended < len(typed) + (typed != word):
            steps.append(("take", offered))
            steps += [("delete", offered[common:])] if offered[common:] else []
            steps += [("type", word[common:])] if word[common:] else []
            done += word
            suggestion = complete(done)
        else:
            steps.append(("type", typed))
            done, suggestion = done + typed, following
    return steps


def _typed(complete: Callable[[str], str], done: str, word: str) -> tuple[str, str]:
    """As much of a word as has to be typed, and what is suggested then."""
    suggestion = ""
    for end in range(1, len(word) + 1):
        suggestion = complete(done + word[:end])
        left = word[end:]
        rest = _behind(suggestion, done + word[:end])
        if end == len(word) or (_word(rest) == left and left):
            return word[:end], suggestion
    return word, suggestion


def _behind(suggestion: str, done: str) -> str:
    return suggestion[len(done) :] if suggestion.startswith(done) else ""


def _word(text: str) -> str:
    found = WORD.match(text)
    return found[0] if found else ""


def _agreed(rest: str, left: str) -> str:
    """The words with which the suggestion goes on as the reference does."""
    agreed = ""
    for offered, wanted in zip(WORD.findall(rest), WORD.findall(left), strict=False):
        if offered != wanted:
            break
        agreed += offered
    return agreed


# --- servers


@contextmanager
def served(model: Path, folder: Path, *options: str) -> Iterator[str]:
    """The address of a server of the model."""
    command = [sys.executable, "-m", "tmnmt", "serve", "--model", str(model), "--port", "0"]
    places = ["--sessions", str(folder / f"{len(options)}.db"), "--threads", "1"]
    started = subprocess.Popen([*command, *places, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert started.stderr is not None
        for line in started.stderr:
            if found := re.match(r"serving at (http://127\.0\.0\.1:\d+)$", line):
                threading.Thread(target=started.stderr.read, daemon=True).start()  # its log
                yield found[1]
                return
        raise SystemExit("the server did not start")
    finally:
        started.kill()
        started.wait()


def _post(url: str, body: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)


def drawn(path: Path, seed: int, count: int) -> list[Segment]:
    """Segments of one document that follow one another, each source once."""
    draw, fitting = random.Random(seed), list[list[Segment]]()
    for _, some in groupby(read_memory(path, "en", "fr"), lambda one: one.document):
        distinct = [*{segment.src: segment for segment in some}.values()]
        if len(distinct) >= count:
            fitting.append(distinct)
    document = draw.choice(fitting)
    start = draw.randrange(len(document) - count + 1)
    return document[start : start + count]


def main() -> None:
    """Prints a table, and writes all of it as JSON where that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jars", type=Path, required=True, help="OmegaT and what it needs")
    parser.add_argument("--weblate", type=Path, required=True, help="Weblate's Python")
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "law-transformer.en-fr")
    parser.add_argument("--seed", type=int, default=46)
    parser.add_argument("--segments", type=int, default=30)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    sys.path.append(str(ROOT / "tests"))
    from browser import browsing

    segments = drawn(TEST, given.seed, given.segments)
    ways: dict[str, list[Way]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        memory = folder / "memory.tmx"
        memory.write_bytes(gzip.decompress(MEMORY.read_bytes()))
        place = str(folder / "law")
        languages = ["--src-lang", "en", "--tgt-lang", "fr"]
        build = [sys.executable, "-m", "tmnmt", "build-index", str(memory), "--index", place]
        subprocess.run([*build, *languages], check=True)
        with served(given.model, folder) as url:
            told = of_omegat(given.jars, memory, segments, url, folder)
        machine = [one["machine"] for one in told]
        with MemoryIndex.open(Path(place)) as index:
            own = of_memory(index, segments)
            stored = [*index.segments()]
        worth = of_weblate(given.weblate, stored, segments)
        ways["OmegaT"], ways["OmegaT without completion"] = [], []
        ways["Weblate"], ways["MateCat, by its documents"], ways[DESK] = [], [], []
        for number, segment in enumerate(segments):
            reference = segment.tgt
            jumps, starts = completions(told[number], reference), omegat(told[number])
            alone = best(starts, reference)
            ways["OmegaT without completion"].append(alone)
            helped = best(starts, reference, jumps)
            ways["OmegaT"].append(min(alone, helped, key=lambda way: way.keys))
            ways["Weblate"].append(best(weblate(worth[number], machine[number]), reference))
            known = matecat(own[number], machine[number])
            ways["MateCat, by its documents"].append(best(known, reference))
        with (
            served(given.model, folder, "--memory", f"law={place}") as url,
            browsing() as browser,
            Progress("the desk", "segments", len(segments)) as progress,
        ):
            desk = Desk(browser, url)
            ways["the desk without completion"] = desk.taken
            desk.open([segment.src for segment in segments])
            for number, segment in enumerate(segments, 1):
                ways[DESK].append(desk.translate(number, segment))
                if given.output is not None:
                    record(given.output, given.seed, segments, ways)
                progress.advance()
    report(segments, ways, desk.deviations)


def report(segments: Sequence[Segment], ways: Mapping[str, Sequence[Way]], deviations: int) -> None:
    """Prints the table."""
    characters = sum(len(segment.tgt) for segment in segments)
    desk = sum(way.keys for way in ways[DESK])
    print(f"{len(segments)} segments of {segments[0].document}, {characters:,} characters")
    print(f"plans that the page did not offer: {deviations}")
    print(f"{'':<28} {'keys':>6} {'desk fewer':>11} {'with clicks':>12}")
    for name, some in ways.items():
        keys = sum(way.keys for way in some)
        clicks = sum(way.with_clicks for way in some)
        print(f"{name:<28} {keys:>6,} {1 - desk / keys:>11.1%} {clicks:>12,}")


def record(
    path: Path, seed: int, segments: Sequence[Segment], ways: Mapping[str, Sequence[Way]]
) -> None:
    """Writes all of it as JSON, of the segments that the desk has done."""
    done = len(ways[DESK])
    told = {
        "document": segments[0].document,
        "seed": seed,
        "sources": [segment.src for segment in segments[:done]],
        "characters": sum(len(segment.tgt) for segment in segments[:done]),
        "ways": {name: [asdict(way) for way in some[:done]] for name, some in ways.items()},
    }
    path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
