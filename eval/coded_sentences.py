"""Two sentences with codes between them: whether what stands between stands there again.

python eval/coded_sentences.py [--model models/law-transformer.en-fr] [--half test] [--seed 1]

Pairs of sentences are drawn from held-out law, and ten kinds of code are put between the two, as
`KINDS` has them. Half of the pairs are for development, and the other half is for the end. A
translation is right where its codes are those of the source, what stood between the sentences
stands there once, each side ends with the mark of its sentence and has a number that its sentence
has, and the second begins with a capital."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
from collections import Counter
from pathlib import Path

import torch

from tmnmt.codes.record import Text
from tmnmt.files.texts import string_of, text_of
from tmnmt.numbers import missing_numbers
from tmnmt.translator import Translator

HELD_OUT = Path("memories/held-out/law.test.en-fr.tsv.gz")
PAIRS = 120
KINDS = {
    "br": ("{0}<br>{1}", "<br>"),
    "br and blanks": ("{0} <br/> {1}", " <br/> "),
    "two br": ("{0}<br><br>{1}", "<br><br>"),
    "line end": ("{0}\n{1}", "\n"),
    "empty line": ("{0}\n\n{1}", "\n\n"),
    "footnote": ("{0}<sup>1</sup> {1}", "<sup>1</sup> "),
    "blank in a span": ("{0}<b> </b>{1}", "<b> </b>"),
    "picture": ('{0} <img src="a.png"/> {1}', ' <img src="a.png"/> '),
    "span behind": ("{0} <b>{1}</b>", " <b>"),
    "span around each": ("<b>{0}</b> <i>{1}</i>", "</b> <i>"),
}
BEGINNINGS = frozenset(
    [
        "The",
        "This",
        "No",
        "Every",
        "An",
        "A",
        "If",
        "Subject",
        "Any",
        "There",
        "These",
        "It",
        "For",
        "In",
        "On",
    ]
)
_TAG = re.compile(r"<[^<>]*>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, default=Path("models/law-transformer.en-fr"))
    parser.add_argument("--half", choices=["dev", "test"], default="dev")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    options = parser.parse_args()
    torch.set_num_threads(1)
    half = slice(0, PAIRS // 2) if options.half == "dev" else slice(PAIRS // 2, PAIRS)
    pairs = drawn(options.seed)[half]
    translator = Translator.load(options.model)
    right = Counter[str]()
    for kind, (template, between) in KINDS.items():
        sources = [template.format(*pair) for pair in pairs]
        found = translator.translate([text_of(source) for source in sources])
        for pair, source, translation in zip(pairs, sources, found, strict=True):
            target = string_of(Text(translation.tgt, translation.tgt_codes))
            problem = wrong(source, target, between, pair)
            right[kind] += not problem
            if problem and options.show:
                print(f"{kind}: {problem}\n  {source!r}\n  {target!r}")
    share = 100 * sum(right.values()) / (len(pairs) * len(KINDS))
    print(json.dumps({"pairs": len(pairs), "right": dict(right), "right %": round(share, 1)}))


def drawn(seed: int) -> list[tuple[str, str]]:
    """Pairs of sentences."""
    with gzip.open(HELD_OUT, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        sentences = sorted({row["src"] for row in rows if is_sentence(row["src"])})
    random.Random(seed).shuffle(sentences)
    return [*zip(sentences[:PAIRS], sentences[PAIRS : 2 * PAIRS], strict=True)]


def is_sentence(text: str) -> bool:
    """Whether it is a whole sentence: definitions and items of lists are none in French law."""
    words = text.split()
    is_definition = "means" in words or "meaning" in words
    return (
        words[0] in BEGINNINGS and text[-1] == "." and 4 <= len(words) <= 40 and not is_definition
    )


def wrong(source: str, target: str, between: str, pair: tuple[str, str]) -> str:
    """What is wrong with a translation; "" where nothing is."""
    tags, theirs = (Counter(_TAG.findall(text)) for text in (source, target))
    if tags != theirs:
        return f"codes {theirs - tags} for {tags - theirs}"
    if target.count(between) != 1:
        return "not between"
    for sentence, side in zip(pair, target.split(between), strict=True):
        text = _TAG.sub("", side)
        if text[-1:] != sentence[-1]:
            return f"ends with {text[-1:]!r}"
        if not (text[0].isupper() or text[0].isdigit() or text[0] in "«(["):
            return f"begins with {text[0]!r}"
        if missing_numbers(sentence, text):
            return f"numbers {missing_numbers(sentence, text)}"
    return ""


if __name__ == "__main__":
    main()
