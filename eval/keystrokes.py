"""How many keys a translator needs who types the reference and takes what is suggested, and how
long each key takes.

    python eval/keystrokes.py --memory INDEX [--test TSV] [--model DIR] [--segments N]
    [--latency] [--output FILE.json]

A user goes through whole kept-out documents in order. The keys are counted of some segments,
evenly spaced over all documents; those in between are confirmed as their references are. So what is
counted is a sample of the whole work: beginnings, middles and ends of documents. Each key costs 1:

    a letter    where the suggestion goes on wrongly
    Tab         takes the next word of the suggestion, where it is that of the reference
    Enter       takes all that is left of it, where that is right; or drops what is left over

"Base" has no memory and no session. Beside these stands what it costs to paste the best match, or
to take the whole suggestion, and to edit it: one key for it, and one for each character that is
inserted, deleted or replaced; getting from one place to the next costs nothing. "With places" a key
is added for every place that is edited.

Latency is the CPU time of one thread from a letter to the new suggestion, for sources of 20 to 30
words; where nothing else runs it is the time that passes. Times are given of the letters above,
where suggestions go on wrongly; and of all letters of the reference, for a user who types every
one. "Next" is what the page asks for at each wrong letter, before it asks for the whole suggestion.
--latency measures only these times, with memories."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein

from tmnmt.config.options import TranslationOptions
from tmnmt.formats import read_memory
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.session import Session
from tmnmt.text import words
from tmnmt.translator import Translator

ROOT = Path(__file__).resolve().parent.parent
WORD = re.compile(r"\s*\S+")
OF_LENGTH = range(20, 31)  # words of a source whose latency is told


@dataclass
class Tally:
    """What one way of working took."""

    keys: Counter[str] = field(default_factory=Counter)  # letter, Tab, Enter; edit, place
    # of each letter, in sources OF_LENGTH: where the suggestion was wrong, and where it was right
    wrong: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    next: list[float] = field(default_factory=list)  # of the next words, where it was wrong
    first: list[float] = field(default_factory=list)  # of the first suggestion of these

    def edited(self, text: str, reference: str) -> None:
        """A text that is taken whole and edited."""
        edits = [edit for edit in Levenshtein.opcodes(text, reference) if edit.tag != "equal"]
        self.keys["Enter"] += bool(text)
        self.keys["edit"] += Levenshtein.distance(text, reference)
        self.keys["place"] += len(edits)

    def typed(self, session: Session, source: str, reference: str) -> None:
        """A reference that is typed."""
        done, suggested = "", self._asked(self.first, session, source, "")
        while done != reference:
            left, offered = reference[len(done) :], suggested[len(done) :]
            word, wanted = WORD.match(offered), WORD.match(left)
            if offered == left:
                self.keys["Enter"] += 1
                self._agreed(session, source, done, left)
                return
            if word is not None and wanted is not None and word[0] == wanted[0]:
                self.keys["Tab"] += 1
                self._agreed(session, source, done, word[0])
                done += word[0]
                continue
            self.keys["letter"] += 1
            done += left[0]
            if words(source) in OF_LENGTH:
                start = time.process_time()
                session.next_words(source, done)
                self.next.append(time.process_time() - start)
            suggested = self._asked(self.wrong, session, source, done)
        self.keys["Enter"] += suggested != reference

    def _agreed(self, session: Session, source: str, done: str, left: str) -> None:
        """The letters of what is right, as somebody types them."""
        for end in range(1, len(left) + 1) if words(source) in OF_LENGTH else ():
            self._asked(self.right, session, source, done + left[:end])

    @staticmethod
    def _asked(seconds: list[float], session: Session, source: str, done: str) -> str:
        start = time.process_time()
        found = session.complete(source, done).tgt
        if words(source) in OF_LENGTH:
            seconds.append(time.process_time() - start)
        return found

    def summary(self, characters: int) -> dict[str, object]:
        total = sum(count for key, count in self.keys.items() if key != "place")
        told: dict[str, object] = {
            "keys": total,
            "keys of a character": round(total / characters, 3),
            **self.keys,
        }
        if self.keys["place"]:
            told["with places"] = total + self.keys["place"]
        every = [*self.wrong, *self.right]
        kinds = {"first": self.first, "next": self.next, "wrong": self.wrong, "every": every}
        for name, some in kinds.items():
            if some:
                p50, p95 = np.percentile(some, [50, 95]) * 1000
                told[f"ms, {name}"] = {
                    "p50": round(p50, 1),
                    "p95": round(p95, 1),
                    "n": len(some),
                }
        return told


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    test = ROOT / "memories" / "held-out" / "law.test.en-fr.tsv.gz"
    parser.add_argument("--test", type=Path, default=test)
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "law.en-fr")
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--segments", type=int, default=200, help="to count, about so many")
    parser.add_argument("--latency", action="store_true", help="measure nothing else")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    segments = list(read_memory(options.test, "en", "fr"))
    counted = sample(len(segments), options.segments)
    base = Translator.load(options.model, options=TranslationOptions(threads=1))
    translator = Translator.load(options.model, [options.memory], TranslationOptions(threads=1))
    for each in (base, translator):  # what is made once
        each.complete("One.", "U")
    ways = {
        name: Tally()
        for name in (
            "typed, base",
            "typed, memories",
            "best match, edited",
            "base, edited",
            "memories, edited",
        )
    }
    done = list[Segment]()
    with Progress("typing", "segments", len(segments)) as progress:
        numbered = enumerate(segments)
        for number, (_, document) in enumerate(groupby(numbered, lambda one: one[1].document), 1):
            session = translator.session()
            for at, segment in document:
                if at in counted:
                    if not options.latency:
                        one(base, session, segment, ways)
                    elif words(segment.src) in OF_LENGTH:
                        ways["typed, memories"].typed(session, segment.src, segment.tgt)
                    done.append(segment)
                session.confirm(segment.src, segment.tgt)
                progress.advance()
            told = so_far(number, done, ways)
            if options.output:
                options.output.write_text(told + "\n", encoding="utf-8")
    print(told)


def sample(count: int, wanted: int) -> set[int]:
    """About `wanted` numbers below `count`, evenly spaced."""
    step = max(1, count // wanted)
    return set(range(step // 2, count, step))


def so_far(documents: int, done: Sequence[Segment], ways: dict[str, Tally]) -> str:
    characters = sum(len(segment.tgt) for segment in done)
    told = {
        "counted segments": len(done),
        "whole documents": documents,
        "characters": characters,
        "ways": {name: tally.summary(characters) for name, tally in ways.items()},
    }
    return json.dumps(told, indent=1)


def one(base: Translator, session: Session, segment: Segment, ways: dict[str, Tally]) -> None:
    """One segment in every way."""
    source, reference = segment.src, segment.tgt
    alone = base.session()
    ways["typed, base"].typed(alone, source, reference)
    ways["base, edited"].edited(alone.complete(source, "").tgt, reference)
    ways["typed, memories"].typed(session, source, reference)
    found = session.complete(source, "")
    ways["memories, edited"].edited(found.tgt, reference)
    match = max(found.matches, key=lambda one: one.score, default=None)
    ways["best match, edited"].edited(match.tgt if match is not None else "", reference)


if __name__ == "__main__":
    main()
